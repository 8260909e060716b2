package backend

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// recipe writes one operator as formulas and reductions. Nothing reaches the program before commit, so that a recipe can give up halfway.
type recipe struct {
	b       *builder
	node    *graph.Node
	device  graph.Device
	pending []*operation
	failed  bool
}

// argument returns an argument of the node: by name where the operator's schema is known, else by position.
func (r *recipe) argument(name string, position int) graph.Value {
	if value, ok := r.node.Argument(name); ok {
		return value
	}
	if value, ok := r.node.Keyword(name); ok {
		return value
	}
	if position >= 0 && position < len(r.node.Args) {
		return r.node.Args[position]
	}
	return nil
}

// tensor returns an argument that loops can read; the recipe fails when it is none.
func (r *recipe) tensor(name string, position int) *tensor {
	key, ok := keyOf(r.argument(name, position))
	found := r.b.program.values[key].tensor
	if !ok || found == nil || found.meta.Device != r.device || !loopable(&found.meta) {
		r.failed = true
		return newTensor("", graph.Meta{})
	}
	return found
}

// optional is tensor for an argument that may be None.
func (r *recipe) optional(name string, position int) *tensor {
	if r.argument(name, position) == nil {
		return nil
	}
	return r.tensor(name, position)
}

func (r *recipe) flag(name string, position int) bool {
	value, _ := r.argument(name, position).(bool)
	return value
}

func (r *recipe) number(name string, position int, otherwise float64) float64 {
	switch value := r.argument(name, position).(type) {
	case float64:
		return value
	case int64:
		return float64(value)
	case nil:
		return otherwise
	}
	r.failed = true
	return otherwise
}

// dimensions reads a dim argument: a number, a list, or nothing, which means all dimensions.
func (r *recipe) dimensions(rank int, value graph.Value) []bool {
	reduced := make([]bool, rank)
	mark := func(value graph.Value) {
		dimension, ok := value.(int64)
		if dimension < 0 {
			dimension += int64(rank)
		}
		if !ok || dimension < 0 || dimension >= int64(rank) {
			r.failed = true
			return
		}
		reduced[dimension] = true
	}
	list, isList := value.(graph.List)
	if value == nil || isList && len(list.Items) == 0 {
		list = graph.List{}
		for dimension := range reduced {
			list.Items = append(list.Items, int64(dimension))
		}
	} else if !isList {
		list = graph.List{Items: []graph.Value{value}}
	}
	for _, item := range list.Items {
		mark(item)
	}
	return reduced
}

// fresh makes an intermediate result that is usually never stored.
func (r *recipe) fresh(dtype graph.DType, sizes []graph.Size) *tensor {
	strides := contiguousStrides(r.b.program.graph.Shapes, sizes)
	name := fmt.Sprintf("%s.%d", r.node.Name, len(r.pending))
	return newTensor(name, graph.Meta{DType: dtype, Device: r.device, Sizes: sizes, Strides: strides})
}

// result makes the tensor of the node's output number index.
func (r *recipe) result(index int) *tensor {
	var read []operand
	for _, value := range tensorArguments(r.node) {
		key, _ := keyOf(value)
		read = append(read, r.b.program.values[key])
	}
	return r.b.follow(newTensor(outputName(r.node, index), r.node.Outputs[index].Meta), read)
}

// formula appends a pointwise operation that computes in the type of output.
func (r *recipe) formula(name string, output *tensor, body *graph.Expression, operands ...*tensor) *tensor {
	return r.formulaIn(name, output.meta.DType, output, body, operands...)
}

// formulaIn is formula with a type to compute in.
func (r *recipe) formulaIn(name string, dtype graph.DType, output *tensor, body *graph.Expression, operands ...*tensor) *tensor {
	compute, ok := machineType(dtype)
	result, known := machineType(output.meta.DType)
	if !ok || !known {
		r.failed = true
		return output
	}
	op := &operation{kind: pointwise, name: name, node: r.node, body: body, compute: computeType(compute), result: result, outputs: []*tensor{output}}
	for _, t := range operands {
		op.operands = append(op.operands, operand{tensor: t, as: compute})
	}
	r.pending = append(r.pending, op)
	return output
}

// reduce appends a reduction of the elements of t converted to type as. The recipe fails where one thread would look for a position alone.
func (r *recipe) reduce(how loop.Reduction, t *tensor, reduced []bool, as graph.DType, output *tensor) *tensor {
	sizes := chosenSizes(t.meta.Sizes, reduced)
	typ, ok := machineType(as)
	result, known := machineType(output.meta.DType)
	if !ok || !known || len(significant(sizes)) == 0 || how.Positional() && r.tooLong(t, sizes) {
		r.failed = true
	}
	r.pending = append(r.pending, &operation{
		kind: reduction, name: how.String(), node: r.node, reduce: how, reduced: reduced, compute: computeType(typ), result: result,
		operands: []operand{{tensor: t, as: typ}}, outputs: []*tensor{output},
	})
	return output
}

// tooLong reports whether one thread would do all the work of a reduction.
func (r *recipe) tooLong(t *tensor, sizes []graph.Size) bool {
	outer := product(t.meta.Sizes) / max(product(sizes), 1)
	return outer < pointLimit && product(sizes) > rowLimit
}

// kept returns the sizes left by a reduction that keeps its dimensions as 1.
func kept(sizes []graph.Size, reduced []bool) []graph.Size {
	result := slices.Clone(sizes)
	for dimension := range result {
		if reduced[dimension] {
			result[dimension] = graph.Static(1)
		}
	}
	return result
}

// count multiplies the reduced sizes; the recipe fails when they are not known at compile time.
func (r *recipe) count(t *tensor, reduced []bool) float64 {
	result := int64(1)
	for dimension, size := range t.meta.Sizes {
		if reduced[dimension] {
			r.failed = r.failed || size.Expr != nil
			result *= size.Hint
		}
	}
	return float64(result)
}

// commit appends the recipe's operations to the program and names the node's outputs; false when the recipe failed.
func (r *recipe) commit(outputs ...*tensor) bool {
	if r.failed || len(outputs) != len(r.node.Outputs) {
		return false
	}
	for _, op := range r.pending {
		r.b.append(op, op.outputs...)
	}
	for index, output := range outputs {
		r.b.program.values[valueKey{node: r.node, index: index}] = operand{tensor: output}
	}
	return true
}

// Expressions of formulas.

func arg(index int) *graph.Expression { return &graph.Expression{Op: "operand", Operand: index} }

func number(value graph.Value) *graph.Expression {
	return &graph.Expression{Op: "constant", Constant: value}
}

func apply(op string, args ...*graph.Expression) *graph.Expression {
	return &graph.Expression{Op: op, Args: args}
}
