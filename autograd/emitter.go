package autograd

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"fusee/graph"
)

// emitter appends operators to a graph. The first error sticks, and what is appended after it means nothing.
type emitter struct {
	graph *graph.Graph
	state graph.State
	err   error
	// appended, when set, sees every operator that is appended.
	appended func(*graph.Node) error
	// tracked, when set, says whether gradients flow to a value.
	tracked func(graph.Value) bool
	// read, when set, says what stands for a tensor that a formula names.
	read func(graph.Value) graph.Value
	// postpone, when set, leaves a write of the memory of inputs, which reads and writes the values given, for later.
	postpone func(touched []graph.Value, write func(*emitter)) error
}

func (e *emitter) fail(err error) graph.Value {
	if e.err == nil {
		e.err = err
	}
	return nil
}

// call appends an operator by name and gives its result as Python sees it.
func (e *emitter) call(name string, args ...graph.Value) graph.Value {
	return e.callWith(name, args, nil)
}

func (e *emitter) callWith(name string, args []graph.Value, keywords []graph.Keyword) graph.Value {
	if e.err != nil {
		return nil
	}
	node, err := e.graph.CallOperator(name, args, keywords, e.state)
	if err != nil {
		return e.fail(refuse("%s: %v", name, err))
	}
	return e.noted(node)
}

// noted shows a node that was appended, and gives its result.
func (e *emitter) noted(node *graph.Node) graph.Value {
	if e.appended != nil {
		if err := e.appended(node); err != nil {
			return e.fail(err)
		}
	}
	return node.Result
}

// scope is what the names of a formula stand for.
type scope map[string]graph.Value

// evaluate computes a formula.
func (e *emitter) evaluate(text string, names scope) (graph.Value, error) {
	parsed, err := parseFormula(text)
	if err != nil {
		return nil, err
	}
	value := e.value(parsed, names)
	return value, e.err
}

func (e *emitter) value(s *syntax, names scope) graph.Value {
	if e.err != nil {
		return nil
	}
	switch s.kind {
	case "constant":
		return s.constant
	case "name":
		v, ok := names[s.text]
		if !ok {
			return e.fail(refuse("the formula of a gradient reads %s, which is not there", s.text))
		}
		if e.read != nil {
			return mapped(v, e.read)
		}
		return v
	case "list":
		return graph.List{Items: e.values(s.items, names)}
	case "call":
		return e.function(s, names)
	case "index":
		return e.item(e.value(s.items[0], names), e.value(s.items[1], names))
	}
	operands := e.values(s.items, names)
	if len(operands) == 1 {
		return e.negated(operands[0])
	}
	return e.infix(s.kind, operands[0], operands[1])
}

func (e *emitter) values(items []*syntax, names scope) []graph.Value {
	values := make([]graph.Value, len(items))
	for i, item := range items {
		values[i] = e.value(item, names)
	}
	return values
}

func (e *emitter) item(list, index graph.Value) graph.Value {
	l, isList := list.(graph.List)
	i, isInt := index.(int64)
	if !isList || !isInt || i < 0 || i >= int64(len(l.Items)) {
		return e.fail(refuse("the formula of a gradient reads a result that is not there"))
	}
	return l.Items[i]
}

// function calls a helper or an operator. A choice by a constant evaluates only what it picks.
func (e *emitter) function(s *syntax, names scope) graph.Value {
	if s.text == "where" && len(s.items) == 3 {
		if condition, ok := e.value(s.items[0], names).(bool); ok {
			return e.value(s.items[map[bool]int{true: 1, false: 2}[condition]], names)
		}
	}
	args := e.values(s.items, names)
	if e.err != nil {
		return nil
	}
	if helper, ok := helpers[s.text]; ok {
		return helper(e, args)
	}
	if s.text == "where" && len(graph.Tensors(args[1:]...)) == 0 {
		return e.fail(refuse("a choice between numbers, which would be of the default type"))
	}
	if n, ok := number(args[0]); ok && s.text == "log" {
		return math.Log(n)
	}
	var keywords []graph.Keyword
	for _, name := range slices.Sorted(maps.Keys(s.keywords)) {
		keywords = append(keywords, graph.Keyword{Name: name, Value: e.value(s.keywords[name], names)})
	}
	return e.callWith(s.text, args, keywords)
}

// number reads a constant number.
func number(v graph.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func (e *emitter) negated(v graph.Value) graph.Value {
	switch v := v.(type) {
	case int64:
		return -v
	case float64:
		return -v
	}
	return e.call("neg", v)
}

// infix computes an operator; of constants right away.
func (e *emitter) infix(operator string, a, b graph.Value) graph.Value {
	_, leftTensor := graph.MetaOf(a)
	_, rightTensor := graph.MetaOf(b)
	if !leftTensor && !rightTensor {
		return e.constant(operator, a, b)
	}
	names := map[string]string{"+": "add", "-": "sub", "*": "mul", "/": "div", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
		"&": "bitwise_and", "|": "bitwise_or"}
	if n, ok := number(b); ok && n == 1 && (operator == "*" || operator == "/") {
		return a
	}
	if leftTensor {
		return e.call(names[operator], a, b)
	}
	switch operator {
	case "+", "*":
		return e.infix(operator, b, a)
	case "-":
		return e.call("rsub", b, a)
	case "/":
		return e.infix("*", e.call("reciprocal", b), a)
	case "&":
		if a == true {
			return b
		}
		return e.call("zeros_like", b)
	}
	return e.fail(refuse("the formula of a gradient compares a number with a tensor"))
}

func (e *emitter) constant(operator string, a, b graph.Value) graph.Value {
	if changes(a) || changes(b) {
		return e.changing(operator, a, b)
	}
	x, leftNumber := number(a)
	y, rightNumber := number(b)
	if operator == "==" && (!leftNumber || !rightNumber) {
		return a == b // None and words
	}
	if !leftNumber || !rightNumber {
		return e.fail(refuse("the formula of a gradient computes with something that is no number"))
	}
	switch operator {
	case "==":
		return x == y
	case "!=":
		return x != y
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	case ">=":
		return x >= y
	case "&":
		return x != 0 && y != 0
	case "|":
		return x != 0 || y != 0
	case "/":
		return x / y
	}
	result := map[string]float64{"+": x + y, "-": x - y, "*": x * y}[operator]
	_, leftInt := a.(int64)
	_, rightInt := b.(int64)
	if leftInt && rightInt {
		return int64(result)
	}
	return result
}

// changes tells ints whose values may change from call to call.
func changes(v graph.Value) bool {
	n, isInt := graph.SizeOf(v)
	return isInt && !n.IsStatic()
}

// changing computes an operator of ints whose values may change from call to call; comparisons are decided, and become guards.
func (e *emitter) changing(operator string, a, b graph.Value) graph.Value {
	x, leftInt := graph.SizeOf(a)
	y, rightInt := graph.SizeOf(b)
	shapes := e.graph.Shapes
	switch {
	case !leftInt || !rightInt:
	case operator == "+":
		return sizeValue(shapes.Add(x, y))
	case operator == "-":
		return sizeValue(shapes.Subtract(x, y))
	case operator == "*":
		return sizeValue(shapes.Multiply(x, y))
	case operator == "==":
		return shapes.Equal(x, y)
	case operator == "!=":
		return !shapes.Equal(x, y)
	}
	return e.fail(refuse("the formula of a gradient computes with an int that changes"))
}

// inverse gives what lies behind a view when that holds the value. The gradient of a view of all elements, which only moves them, is its inverse.
func (e *emitter) inverse(view *graph.Output, derivative *graph.Derivative, value, base graph.Value, all bool) (graph.Value, error) {
	names, err := parameters(view.Node, func(v graph.Value) graph.Value { return base })
	formula := derivative.Written
	if formula == "" && all && len(view.Node.Outputs) == 1 && len(derivative.Gradients) == 1 {
		formula = derivative.Gradients[0].Formula
	}
	if err != nil || formula == "" {
		return nil, refuse("a write through the view %s", view.Node.Target)
	}
	names["grad"], names["value"], names["piece"], names["pieces"] = value, value, int64(view.Index), pieceLengths(view, names["dim"])
	return e.evaluate(formula, names)
}

// pieceLengths are the sizes, along a dimension, of the views that one operator gave.
func pieceLengths(view *graph.Output, dim graph.Value) graph.Value {
	lengths := graph.List{}
	for k := range view.Node.Outputs {
		m := view.Node.Outputs[k].Meta
		if d, ok := dim.(int64); ok && m.Dim() > 0 {
			lengths.Items = append(lengths.Items, sizeValue(m.Sizes[(d+int64(m.Dim()))%int64(m.Dim())]))
		}
	}
	return lengths
}

// parameters binds the arguments of a node to the names of its operator's parameters.
func parameters(n *graph.Node, replace func(graph.Value) graph.Value) (scope, error) {
	op, ok := n.Operator()
	if !ok {
		return nil, refuse("the operator %s is not known", n.Target)
	}
	values, err := op.Bind(n.Args, n.Keywords)
	if err != nil {
		return nil, refuse("%v", err)
	}
	names := scope{}
	for i, p := range op.Schema.Parameters {
		names[p.Name] = mapped(values[i], replace)
	}
	return names, nil
}

// fitted gives a value, a number or a tensor, in the type and sizes of another tensor.
func (e *emitter) fitted(value, target graph.Value) (graph.Value, error) {
	wanted := metaOf(target)
	m, isTensor := graph.MetaOf(value)
	if !isTensor {
		return e.call("full_like", target, value), e.err
	}
	if m.DType != wanted.DType {
		value = e.cast(value, wanted.DType)
	}
	if e.err == nil && !e.graph.Shapes.AllEqual(metaOf(value).Sizes, wanted.Sizes) {
		value = e.call("expand", value, sizesOf(wanted))
	}
	return value, e.err
}

// owned gives a value in memory of its own that is laid out like that of another tensor.
func (e *emitter) owned(value, target graph.Value) (graph.Value, error) {
	laidOut := e.ordered(value, target)
	if e.err == nil && !e.graph.Shapes.AllEqual(metaOf(laidOut).Strides, metaOf(target).Strides) {
		return nil, refuse("an in-place operation on an intermediate whose memory has gaps")
	}
	return laidOut, e.err
}

// ordered gives a value in memory of its own, without gaps, in which the dimensions are in the order of another tensor's.
func (e *emitter) ordered(value, target graph.Value) graph.Value {
	if e.err != nil {
		return nil
	}
	strides := metaOf(target).Strides
	if e.graph.Shapes.AllEqual(metaOf(value).Strides, strides) && relationOf(value).Kind == graph.RelationNew {
		if _, isInput := value.(*graph.Input); !isInput {
			return value
		}
	}
	order := graph.List{}
	for d := range strides {
		order.Items = append(order.Items, int64(d))
	}
	slices.SortStableFunc(order.Items, func(a, b graph.Value) int {
		return cmp.Compare(strides[b.(int64)].Hint, strides[a.(int64)].Hint)
	})
	laidOut := e.callWith("clone", []graph.Value{e.permuted(value, order)}, []graph.Keyword{{Name: "memory_format", Value: graph.ContiguousFormat}})
	return e.permuted(laidOut, inversePermutation(e, []graph.Value{order}))
}

// permuted reorders dimensions unless they are in order.
func (e *emitter) permuted(v, order graph.Value) graph.Value {
	list, _ := order.(graph.List)
	for d, item := range list.Items {
		if item != graph.Value(int64(d)) {
			return e.call("permute", v, order)
		}
	}
	return v
}

// drawn gives a tensor, like the first argument, of the random numbers that an in-place operation draws.
func (e *emitter) drawn(name string, args []graph.Value, keywords []graph.Keyword) (graph.Value, error) {
	m := metaOf(args[0])
	like := []graph.Keyword{{Name: "dtype", Value: m.DType}, {Name: "device", Value: m.Device}}
	// Which element gets which number depends on the strides.
	empty := e.callWith("empty_strided", []graph.Value{sizesOf(m), sizeList(m.Strides)}, like)
	return e.callWith(name, append([]graph.Value{empty}, args[1:]...), keywords), e.err
}

// cast converts the element type.
func (e *emitter) cast(v graph.Value, d graph.DType) graph.Value {
	return e.callWith("_to_copy", []graph.Value{v}, []graph.Keyword{{Name: "dtype", Value: d}})
}

// sizesOf is the sizes of a tensor as an argument.
func sizesOf(m *graph.Meta) graph.List { return sizeList(m.Sizes) }

func sizeList(sizes []graph.Size) graph.List {
	list := graph.List{}
	for _, size := range sizes {
		list.Items = append(list.Items, sizeValue(size))
	}
	return list
}

func sizeValue(size graph.Size) graph.Value {
	if size.IsStatic() {
		return size.Hint
	}
	return size
}
