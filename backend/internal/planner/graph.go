package main

import (
	"fmt"

	"fusee/bytecode"
	"fusee/graph"
)

func get(dict *bytecode.Dict, key string) bytecode.Object {
	value, ok := dict.Get(key)
	if !ok {
		panic(fmt.Sprintf("the request has no %s", key))
	}
	return value
}

func readGraph(request *bytecode.Dict) *graph.Graph {
	r := &reader{graph: graph.NewGraph("test")}
	for index, meta := range items(get(request, "inputs")) {
		r.graph.AddTensor(fmt.Sprintf("input%d", index), readMeta(meta))
	}
	for _, node := range items(get(request, "nodes")) {
		r.node(node.(bytecode.Tuple))
	}
	for _, value := range items(get(request, "outputs")) {
		r.graph.Outputs = append(r.graph.Outputs, r.value(value))
	}
	return r.graph
}

type reader struct{ graph *graph.Graph }

func items(object bytecode.Object) []bytecode.Object {
	if tuple, ok := object.(bytecode.Tuple); ok {
		return tuple
	}
	return object.(*bytecode.List).Items
}

func readMeta(object bytecode.Object) graph.Meta {
	tuple := items(object)
	dtype, ok := graph.ParseDType(tuple[0].(string))
	if !ok {
		panic(fmt.Sprintf("unknown dtype %v", tuple[0]))
	}
	return graph.Meta{
		DType: dtype, Device: graph.Device{Type: "cpu"}, Sizes: graph.Statics(integers(tuple[1])...), Strides: graph.Statics(integers(tuple[2])...),
		Offset: graph.Static(tuple[3].(int64)),
	}
}

func integers(object bytecode.Object) []int64 {
	var result []int64
	for _, item := range items(object) {
		result = append(result, item.(int64))
	}
	return result
}

// node reads (target, args, keywords, outputs, mutated arguments, random).
func (r *reader) node(tuple bytecode.Tuple) {
	var args []graph.Value
	for _, arg := range items(tuple[1]) {
		args = append(args, r.value(arg))
	}
	var keywords []graph.Keyword
	for _, keyword := range items(tuple[2]) {
		pair := keyword.(bytecode.Tuple)
		keywords = append(keywords, graph.Keyword{Name: pair[0].(string), Value: r.value(pair[1])})
	}
	var outputs []graph.OutputInfo
	for _, output := range items(tuple[3]) {
		pair := output.(bytecode.Tuple)
		outputs = append(outputs, graph.OutputInfo{Meta: readMeta(pair[0]), Relation: r.relation(pair[1])})
	}
	node := r.graph.Append(tuple[0].(string), args, keywords, outputs, nil)
	for _, value := range items(tuple[4]) {
		node.Mutates = append(node.Mutates, r.value(value))
	}
	node.Random = tuple[5].(bool)
}

func (r *reader) relation(object bytecode.Object) graph.Relation {
	tuple, ok := object.(bytecode.Tuple)
	switch {
	case !ok:
		return graph.New()
	case tuple[0].(string) == "same":
		return graph.SameAs(r.value(tuple[1]))
	}
	return graph.ViewOf(r.value(tuple[1]))
}

func (r *reader) value(object bytecode.Object) graph.Value {
	tuple := object.(bytecode.Tuple)
	switch tuple[0].(string) {
	case "n":
		return r.graph.Nodes[tuple[1].(int64)].Output(int(tuple[2].(int64)))
	case "i":
		return r.graph.Inputs[tuple[1].(int64)]
	case "list":
		list := graph.List{}
		for _, item := range items(tuple[1]) {
			list.Items = append(list.Items, r.value(item))
		}
		return list
	case "dtype":
		dtype, _ := graph.ParseDType(tuple[1].(string))
		return dtype
	case "device":
		return graph.Device{Type: tuple[1].(string)}
	case "memory_format":
		return graph.MemoryFormat(tuple[1].(string))
	case "layout":
		return graph.Layout(tuple[1].(string))
	}
	if _, none := tuple[1].(bytecode.NoneType); none {
		return nil
	}
	return tuple[1]
}
