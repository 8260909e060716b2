package symbolic

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/trace"
)

// Dynamic says which numbers and sizes may differ from call to call in one capture; see docs/contracts.md, section 1.
type Dynamic struct {
	Off    bool // nothing may
	Marked bool // with Off: dimensions that the user marked may all the same
	All    bool // all arguments' numbers and sizes may, from the start
	// Numbers and Tensors are what was seen to change, by the keys of sources (guards.PathKey).
	Numbers map[string]bool
	Tensors map[string]ChangedTensor
}

// ChangedTensor lists the dimensions along which a tensor's size or stride was seen to change.
type ChangedTensor struct{ Sizes, Strides []int }

// symbolicConstant makes a number of an int or float that may differ from call to call; nil for other constants.
func (in *Interpreter) symbolicConstant(source *guards.Source, value bytecode.Object) *Number {
	dynamic := &in.request.Options.Dynamic
	if source == nil || source.Accessor.Kind == "object" || dynamic.Off || !dynamic.All && len(dynamic.Numbers) == 0 {
		return nil
	}
	if known := in.numbers[source]; known != nil {
		return known
	}
	n, isInt := value.(int64)
	_, isFloat := value.(float64)
	if !isInt && !isFloat || isInt && !manageable(n) {
		return nil
	}
	if key := source.Key(); in.static[key] || !dynamic.Numbers[key] && !(dynamic.All && source.IsArgument()) {
		return nil
	}
	number := &Number{hint: value, source: source, kind: "value"}
	if isInt {
		source.Require(in.reason(), "range", bytecode.None, bytecode.None)
		number.size = in.graph.Shapes.NewSymbol(n, graph.Unbounded, graph.SymbolSource{Input: -1, Dim: -1})
		in.symbols[number.size.Expr.Name] = number
	} else {
		source.Require(in.reason(), "float")
	}
	in.numbers[source] = number
	return number
}

// marks are the dimensions of a tensor that the user marked.
type marks struct {
	dynamic, static []int
	least, most     map[int]bytecode.Object
}

// readMarks reads the last item of a tensor's description.
func readMarks(fields bytecode.Tuple) *marks {
	found := &marks{least: map[int]bytecode.Object{}, most: map[int]bytecode.Object{}}
	if len(fields) < 11 {
		return found
	}
	pair, ok := fields[10].(bytecode.Tuple)
	if !ok || len(pair) != 2 {
		return found
	}
	for _, item := range trace.Items(pair[0]) {
		if bounds, ok := item.(bytecode.Tuple); ok && len(bounds) == 3 {
			dimension, _ := bounds[0].(int64)
			found.dynamic = append(found.dynamic, int(dimension))
			found.least[int(dimension)], found.most[int(dimension)] = bounds[1], bounds[2]
		}
	}
	for _, item := range trace.Items(pair[1]) {
		dimension, _ := item.(int64)
		found.static = append(found.static, int(dimension))
	}
	return found
}

// symbolicSizes gives an existing tensor symbols for the sizes and strides that may differ from call to call.
func (in *Interpreter) symbolicSizes(t *Tensor, fields bytecode.Tuple) {
	dynamic := &in.request.Options.Dynamic
	if t.source == nil || t.source.Accessor.Kind == "object" || dynamic.Off && !dynamic.Marked || t.meta.Flags&(graph.FlagNotPlain|graph.FlagWrapper) == graph.FlagNotPlain {
		return
	}
	if !dynamic.All && len(dynamic.Tensors) == 0 && len(fields) < 11 && t.outer == nil {
		return
	}
	in.likeOuter(t)
	found := readMarks(fields)
	changed := dynamic.Tensors[t.source.Key()]
	if dynamic.Off {
		changed = ChangedTensor{}
	}
	all := dynamic.All && t.isArgument() && t.meta.Flags&graph.FlagParameter == 0
	for d := range t.meta.Sizes {
		wanted := all || slices.Contains(changed.Sizes, d) || slices.Contains(found.dynamic, d)
		if wanted && t.meta.Sizes[d].IsStatic() && !slices.Contains(found.static, d) {
			t.meta.Sizes[d] = in.symbolOfTensor(t, "size", d, t.meta.Sizes[d])
		}
	}
	in.symbolicStrides(t, changed.Strides)
	in.guardBounds(t, found)
}

// isArgument tells tensors that the call is given, and what those wrap.
func (t *Tensor) isArgument() bool {
	for t.outer != nil {
		t = t.outer
	}
	return t.source.IsArgument()
}

// symbolOfTensor makes a symbol for a size or stride, unless it turned out that the capture needs it constant.
func (in *Interpreter) symbolOfTensor(t *Tensor, kind string, d int, known graph.Size) graph.Size {
	number := &Number{hint: known.Hint, source: t.source, tensor: t, kind: kind, dimension: d}
	if in.static[number.key()] {
		return known
	}
	number.size = in.graph.Shapes.NewSymbol(known.Hint, 0, graph.SymbolSource{Input: -1, Dim: d, Stride: kind == "stride"})
	in.symbols[number.size.Expr.Name] = number
	return number.size
}

// guardBounds adds the bounds of mark_dynamic.
func (in *Interpreter) guardBounds(t *Tensor, found *marks) {
	for _, d := range found.dynamic {
		if d >= len(t.meta.Sizes) || t.meta.Sizes[d].IsStatic() {
			continue
		}
		size := &guards.Number{Operation: "size", Source: t.source, Dimension: d}
		if least, ok := found.least[d].(int64); ok && least <= t.meta.Sizes[d].Hint {
			in.program.Compare(in.reason(), "<=", constantNumber(least), size)
		}
		if most, ok := found.most[d].(int64); ok && t.meta.Sizes[d].Hint <= most {
			in.program.Compare(in.reason(), "<=", size, constantNumber(most))
		}
	}
}

func constantNumber(value bytecode.Object) *guards.Number {
	return &guards.Number{Operation: "constant", Constant: value}
}

// symbolicStrides writes strides that follow from symbolic sizes as products of those, innermost first, and guards that they do. Others that
// were seen to change get symbols of their own.
func (in *Interpreter) symbolicStrides(t *Tensor, changed []int) {
	order := make([]int, len(t.meta.Strides))
	for d := range order {
		order[d] = d
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(t.meta.Strides[a].Hint - t.meta.Strides[b].Hint) })
	for _, d := range order {
		product, follows := in.followingStride(t, d)
		switch {
		case follows:
			t.meta.Strides[d] = product
			stride := &guards.Number{Operation: "stride", Source: t.source, Dimension: d}
			in.program.Compare(in.reason(), "==", stride, in.guardExpression(product.Expr))
		case slices.Contains(changed, d):
			t.meta.Strides[d] = in.symbolOfTensor(t, "stride", d, t.meta.Strides[d])
		}
	}
}

// followingStride finds a dimension just inside of d: one whose stride times its size, which is symbolic, is d's stride.
func (in *Interpreter) followingStride(t *Tensor, d int) (graph.Size, bool) {
	for other := range t.meta.Strides {
		stride, size := t.meta.Strides[other], t.meta.Sizes[other]
		if other == d || stride.Hint*size.Hint != t.meta.Strides[d].Hint || size.Hint == 0 || stride.Hint == 0 {
			continue
		}
		if product := in.graph.Shapes.Multiply(stride, size); !product.IsStatic() {
			return product, true
		}
	}
	return graph.Size{}, false
}

// checkedMeta is a tensor's metadata as its guard compares it: None stands for what may differ.
func checkedMeta(t *Tensor, fields bytecode.Tuple) bytecode.Tuple {
	checked := append(bytecode.Tuple{}, fields[:7]...)
	checked[2], checked[3] = checkedSizes(t.meta.Sizes, fields[2]), checkedSizes(t.meta.Strides, fields[3])
	return checked
}

func checkedSizes(sizes []graph.Size, described bytecode.Object) bytecode.Object {
	items := append(bytecode.Tuple{}, trace.Items(described)...)
	for d := range items {
		if d < len(sizes) && !sizes[d].IsStatic() {
			items[d] = bytecode.None
		}
	}
	return items
}

// guardExpression writes an expression over symbols for a guard; nil where a symbol of it is known in Python only.
func (in *Interpreter) guardExpression(e *graph.Expr) *guards.Number {
	switch e.Op {
	case graph.ExprConstant:
		return constantNumber(e.Value)
	case graph.ExprSymbol:
		return in.guardNumber(in.symbols[e.Name])
	}
	operation := expressionOperators[e.Op]
	result := in.guardExpression(e.Args[0])
	for _, arg := range e.Args[1:] {
		next := in.guardExpression(arg)
		if result == nil || next == nil {
			return nil
		}
		result = &guards.Number{Operation: operation, Args: []*guards.Number{result, next}}
	}
	return result
}

var expressionOperators = map[graph.ExprOp]string{graph.ExprAdd: "+", graph.ExprMultiply: "*", graph.ExprFloorDivide: "//", graph.ExprModulo: "%",
	graph.ExprMaximum: "max", graph.ExprMinimum: "min"}

// guardNumber writes a number for a guard, pinned or not; nil where only Python can compute it.
func (in *Interpreter) guardNumber(value Value) *guards.Number {
	n, ok := value.(*Number)
	if !ok {
		return constantNumber(value.(*Constant).Value)
	}
	switch {
	case n.kind != "":
		return &guards.Number{Operation: n.kind, Source: n.source, Dimension: n.dimension}
	case n.computed != nil:
		return in.guardComputation(n.computed)
	}
	return in.guardExpression(n.size.Expr)
}

func (in *Interpreter) guardComputation(c *computation) *guards.Number {
	if c.name != "" {
		return nil
	}
	sign := binaryOperators[c.operator].sign
	if !slices.Contains([]string{"+", "-", "*", "/"}, sign) {
		return nil
	}
	left, right := in.guardNumber(c.operands[0]), in.guardNumber(c.operands[1])
	if left == nil || right == nil {
		return nil
	}
	return &guards.Number{Operation: sign, Args: []*guards.Number{left, right}}
}

var shapeRelations = map[graph.ShapeRelation]string{graph.RelationEqual: "==", graph.RelationNotEqual: "!=", graph.RelationLess: "<", graph.RelationLessEqual: "<="}

// guardShapes turns the decisions on symbols into guards. A decision on a number that only Python can compute pins what it is computed from.
func (in *Interpreter) guardShapes() {
	shapes := in.graph.Shapes
	for k := 0; k < len(shapes.Guards()); k++ {
		guard := shapes.Guards()[k]
		if in.compared[guard.String()] {
			continue
		}
		in.compared[guard.String()] = true
		left, right := in.guardExpression(guard.Left), in.guardExpression(guard.Right)
		if left == nil || right == nil {
			for _, name := range append(guard.Left.Symbols(), guard.Right.Symbols()...) {
				in.specialiseOrigins(in.symbols[name])
			}
			continue
		}
		position := guards.Position{File: guard.Origin.File, Line: guard.Origin.Line}
		in.program.Compare(position, shapeRelations[guard.Relation], left, right)
	}
}

// derive shows the finished graph to whoever derives graphs from it, and guards what they decided. Where this does not
// express gradients that are differentiated again, or that flow to a leaf made in the function, what begins them is left to Python: only that knows
// which leaves there are. So is backward where it is not expressed, as it may raise.
func (in *Interpreter) derive() error {
	if !in.derivation.needed && !in.derivation.asked && len(in.graph.UsedSymbols()) == 0 {
		return nil
	}
	err := errors.New("an operation is not in the op table")
	if in.request.Derive != nil && !in.pythonOnly {
		err = in.request.Derive(in.graph)
		in.graph.Canonicalise()
		in.guardShapes()
	}
	switch why := errors.UnwrapAll(err); {
	case err == nil:
		return nil
	case in.derivation.needed:
		return &restart{step: in.derivation.step, reason: &Unsupported{reasonAutograd, in.derivation.what + ": " + why.Error()}}
	case in.derivation.asked && in.mayBreak():
		return &restart{step: in.derivation.askedAt, reason: &Unsupported{reasonAutograd, "gradients: " + why.Error()}}
	}
	return nil
}

// specialiseValue pins every number and size that an argument of a graph node depends on, and gives the argument without them.
func (in *Interpreter) specialiseValue(value graph.Value) graph.Value {
	switch v := value.(type) {
	case graph.Size:
		return in.shapes().Specialise(v)
	case *graph.Input:
		if v.Kind == graph.Float {
			return in.specialise(in.arguments[v.Index].(*Number)).Value
		}
		in.specialiseMeta(&v.Meta)
	case *graph.Output:
		if meta, ok := graph.MetaOf(v); ok {
			in.specialiseMeta(meta)
		}
	case graph.List:
		items := make([]graph.Value, len(v.Items))
		for i, item := range v.Items {
			items[i] = in.specialiseValue(item)
		}
		return graph.List{Items: items, Tuple: v.Tuple}
	case graph.Slice:
		return graph.Slice{Start: in.specialiseValue(v.Start), Stop: in.specialiseValue(v.Stop), Step: in.specialiseValue(v.Step)}
	}
	return value
}

// specialiseMeta leaves where in its memory the tensor begins as it is: what is computed does not depend on it.
func (in *Interpreter) specialiseMeta(meta *graph.Meta) {
	for _, size := range slices.Concat(meta.Sizes, meta.Strides) {
		in.shapes().Specialise(size)
	}
}

// specialiseOffsets pins where tensors begin in their memory.
func (in *Interpreter) specialiseOffsets(values ...graph.Value) {
	for _, v := range graph.Tensors(values...) {
		if meta, ok := graph.MetaOf(v); ok {
			in.shapes().Specialise(meta.Offset)
		}
	}
}

// beginLike has a view, which the host described for this call, begin where it does relative to what it is a view of.
func (in *Interpreter) beginLike(info *graph.OutputInfo) {
	of, known := graph.MetaOf(info.Relation.Of)
	if info.Relation.Kind == graph.RelationNew || !known || of.Offset.IsStatic() || !info.Meta.Offset.IsStatic() {
		return
	}
	info.Meta.Offset = in.shapes().Add(of.Offset, graph.Static(info.Meta.Offset.Hint-of.Offset.Hint))
}
