package symbolic

import (
	"slices"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
	"fusee/trace"
	"fusee/trace/wire"
)

// shapedCall asks the host what a call gives for all sizes that its arguments may have, and guards what was decided about them. It is nil where nothing
// changes and where the host cannot tell: then the answer is for the sizes of this call.
func (in *Interpreter) shapedCall(call *hostedCall) (*trace.Outcome, error) {
	symbols := in.changingSizes(call)
	if len(symbols) == 0 || call.target == scaledAttention && call.onGPU() {
		return nil, nil
	}
	in.wiresShapes = true
	positional, keywords := in.wireArguments(call)
	in.wiresShapes = false
	outcome, err := in.session.ShapedCall(symbols, call.wireTarget(), positional, keywords, in.modes())
	if err != nil || outcome.Unsupported != "" || !in.decideShapes(outcome.Decisions) {
		return nil, err
	}
	return outcome, nil
}

const scaledAttention = "torch._C._nn.scaled_dot_product_attention"

func (c *hostedCall) onGPU() bool {
	return slices.ContainsFunc(graph.Tensors(c.args...), func(value graph.Value) bool {
		meta, ok := graph.MetaOf(value)
		return ok && meta.Device.Type != "cpu"
	})
}

// changingSizes describes the symbols in the arguments of a call; none where a number among them is no size.
func (in *Interpreter) changingSizes(call *hostedCall) []bytecode.Object {
	var names []string
	note := func(size graph.Size) {
		if size.Expr != nil {
			names = append(names, size.Expr.Symbols()...)
		}
	}
	for _, value := range call.values() {
		if !graph.VisitSizes(value, note) {
			return nil
		}
	}
	var symbols []bytecode.Object
	for _, symbol := range in.shapes().Symbols() {
		if slices.Contains(names, symbol.Name) {
			symbols = append(symbols, bytecode.Tuple{symbol.Name, symbol.Hint, symbol.Least})
		}
	}
	return symbols
}

// values are the arguments of a call, those with a name too.
func (c *hostedCall) values() []graph.Value {
	values := slices.Clone(c.args)
	for _, keyword := range c.keywords {
		values = append(values, keyword.Value)
	}
	return values
}

// decideShapes guards relations that the host found to hold; false where they do not hold for the sizes of this call.
func (in *Interpreter) decideShapes(decisions []bytecode.Object) bool {
	return !slices.ContainsFunc(decisions, func(decision bytecode.Object) bool { return !in.decideShape(decision) })
}

func (in *Interpreter) decideShape(decision bytecode.Object) bool {
	fields, ok := decision.(bytecode.Tuple)
	if !ok || len(fields) != 3 {
		return false
	}
	shapes := in.shapes()
	left, leftOK := wire.ParseSize(fields[1], shapes)
	right, rightOK := wire.ParseSize(fields[2], shapes)
	if !leftOK || !rightOK {
		return false
	}
	switch fields[0] {
	case "==":
		return shapes.Equal(left, right)
	case "!=":
		return !shapes.Equal(left, right)
	case "<":
		return shapes.Less(left, right)
	case "<=":
		return shapes.LessEqual(left, right)
	case ">":
		return shapes.Less(right, left)
	case ">=":
		return shapes.LessEqual(right, left)
	}
	return false
}

// specialiseCall pins what the arguments of a call depend on.
func (in *Interpreter) specialiseCall(call *hostedCall) {
	for i, arg := range call.args {
		call.args[i] = in.specialiseValue(arg)
	}
	for i, keyword := range call.keywords {
		call.keywords[i].Value = in.specialiseValue(keyword.Value)
	}
	if call.callee != 0 {
		in.specialiseOffsets(call.values()...) // what it asks of them is not known
	}
}

// wireArguments writes the arguments of a call.
func (in *Interpreter) wireArguments(call *hostedCall) (positional, keywords []bytecode.Object) {
	positional = slice.Map(call.args, in.wireGraphValue)
	for _, keyword := range call.keywords {
		keywords = append(keywords, bytecode.Tuple{keyword.Name, in.wireGraphValue(keyword.Value)})
	}
	return positional, keywords
}
