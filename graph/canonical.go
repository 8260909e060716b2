package graph

import (
	"maps"
	"slices"

	"fusee/internal/slice"
)

// At names the user's line for the decisions that follow.
func (e *ShapeEnvironment) At(origin Origin) { e.origin = origin }

// SetSource tells which input of the graph gives a symbol.
func (e *ShapeEnvironment) SetSource(name string, source SymbolSource) {
	if symbol := e.symbol(name); symbol != nil {
		symbol.Source = source
	}
}

// Clone copies the environment: what is decided or placed in one of the two from here on says nothing of the other.
func (e *ShapeEnvironment) Clone() *ShapeEnvironment {
	if e == nil {
		return nil
	}
	return &ShapeEnvironment{symbols: slices.Clone(e.symbols), guards: slices.Clone(e.guards), equal: maps.Clone(e.equal), pinned: maps.Clone(e.pinned), origin: e.origin}
}

// Restore takes back what was decided since the environment was cloned.
func (e *ShapeEnvironment) Restore(earlier *ShapeEnvironment) {
	if e != nil {
		*e = *earlier.Clone()
	}
}

// replace notes that a polynomial is 0: the newest symbol that stands alone in it, once and with coefficient ±1, equals the rest from now on.
func (e *ShapeEnvironment) replace(zero polynomial) {
	for _, symbol := range slices.Backward(e.symbols) {
		rest, ok := zero.without(symbol.Name)
		if !ok {
			continue
		}
		e.equal[symbol.Name] = rest
		for other, known := range e.equal {
			e.equal[other] = e.Canonical(known.size(0)).polynomial()
		}
		e.pinAgain()
		return
	}
	e.pin(zero)
}

// pin notes that a polynomial which gives no symbol, such as that of a quotient or of a product, is 0: all of it but its constant has one value.
// What broadcasts is decided by sizes that are 1, so none may go on looking like a size that is not known.
func (e *ShapeEnvironment) pin(zero polynomial) {
	if rest, constant := zero.parts(); len(rest) > 0 {
		for _, sign := range []int64{1, -1} {
			signed := rest.scaled(sign)
			e.pinned[signed.expr().String()] = pinnedPolynomial{signed, -sign * constant}
		}
	}
}

// pinAgain writes what is pinned with the symbols that were replaced since.
func (e *ShapeEnvironment) pinAgain() {
	known := e.pinned
	e.pinned = map[string]pinnedPolynomial{}
	for _, pinned := range known {
		e.pin(e.Subtract(e.Canonical(pinned.rest.size(pinned.value)), Static(pinned.value)).polynomial())
	}
}

// pinnedPolynomial is a polynomial without a constant term that has one value.
type pinnedPolynomial struct {
	rest  polynomial
	value int64
}

// parts splits a polynomial into its terms with symbols and its constant.
func (p polynomial) parts() (rest polynomial, constant int64) {
	if last := len(p) - 1; last >= 0 && len(p[last].atoms) == 0 {
		return p[:last:last], p[last].coefficient
	}
	return p, 0
}

// valueOf is a size with its pinned terms replaced by their value.
func (e *ShapeEnvironment) valueOf(s Size) Size {
	if s.Expr == nil || len(e.pinned) == 0 {
		return s
	}
	rest, constant := s.polynomial().parts()
	if pinned, ok := e.pinned[rest.expr().String()]; ok {
		return Static(pinned.value + constant)
	}
	return s
}

// without solves p == 0 for a symbol; false where the symbol is no term of its own or stands inside another one.
func (p polynomial) without(name string) (polynomial, bool) {
	var rest polynomial
	sign := int64(0)
	for _, t := range p {
		if t.isSymbol() && t.atoms[0].Name == name {
			sign = t.coefficient
			continue
		}
		if slices.ContainsFunc(t.atoms, func(atom *Expr) bool { return slices.Contains(atom.Symbols(), name) }) {
			return nil, false
		}
		rest = append(rest, t)
	}
	return rest.scaled(-sign), sign != 0
}

// Canonical writes a size with the symbols and terms that guards pinned replaced by what they equal.
func (e *ShapeEnvironment) Canonical(s Size) Size {
	if s.Expr == nil || e == nil || len(e.pinned) == 0 && !slices.ContainsFunc(s.Expr.Symbols(), e.isReplaced) {
		return s
	}
	return e.rewritten(s.Expr)
}

func (e *ShapeEnvironment) isReplaced(name string) bool {
	_, replaced := e.equal[name]
	return replaced
}

func (e *ShapeEnvironment) rewritten(expr *Expr) Size {
	switch expr.Op {
	case ExprConstant:
		return Static(expr.Value)
	case ExprSymbol:
		if p, replaced := e.equal[expr.Name]; replaced {
			return p.size(e.hint(expr.Name))
		}
		return Size{Hint: e.hint(expr.Name), Expr: expr}
	}
	result := e.rewritten(expr.Args[0])
	for _, arg := range expr.Args[1:] {
		result = e.operation(expr.Op)(result, e.rewritten(arg))
	}
	return e.valueOf(result)
}

func (e *ShapeEnvironment) operation(op ExprOp) func(a, b Size) Size {
	return map[ExprOp]func(a, b Size) Size{ExprAdd: e.Add, ExprMultiply: e.Multiply, ExprFloorDivide: e.FloorDivide, ExprModulo: e.Modulo,
		ExprMaximum: e.Maximum, ExprMinimum: e.Minimum}[op]
}

func (e *ShapeEnvironment) hint(name string) int64 {
	if symbol := e.symbol(name); symbol != nil {
		return symbol.Hint
	}
	return 0
}

// Canonicalise writes all sizes of the graph with pinned symbols replaced, so that sizes which must be equal print equally.
func (g *Graph) Canonicalise() {
	if g.Shapes == nil || len(g.Shapes.equal)+len(g.Shapes.pinned) == 0 {
		return
	}
	for _, input := range g.Inputs {
		g.Shapes.canonicalMeta(&input.Meta)
		input.Size = g.Shapes.Canonical(input.Size)
	}
	g.Shapes.canonicalNodes(g.Nodes)
	for i := range g.Outputs {
		g.Outputs[i] = g.Shapes.canonicalValue(g.Outputs[i])
	}
}

func (e *ShapeEnvironment) canonicalNodes(nodes []*Node) {
	for _, node := range nodes {
		for i := range node.Outputs {
			e.canonicalMeta(&node.Outputs[i].Meta)
		}
		for i := range node.Args {
			node.Args[i] = e.canonicalValue(node.Args[i])
		}
		for i := range node.Keywords {
			node.Keywords[i].Value = e.canonicalValue(node.Keywords[i].Value)
		}
		e.canonicalNodes(node.Expansion)
	}
}

func (e *ShapeEnvironment) canonicalMeta(meta *Meta) {
	meta.Sizes, meta.Strides = e.canonicalSizes(meta.Sizes), e.canonicalSizes(meta.Strides)
	meta.Offset = e.Canonical(meta.Offset)
}

func (e *ShapeEnvironment) canonicalSizes(sizes []Size) []Size { return slice.Map(sizes, e.Canonical) }

func (e *ShapeEnvironment) canonicalValue(value Value) Value {
	return MapValue(value, func(v Value) Value {
		if size, ok := v.(Size); ok {
			return SizeValue(e.Canonical(size))
		}
		return v
	})
}

// UsedSymbols lists the symbols that nodes, inputs and outputs mention, in order of their creation.
func (g *Graph) UsedSymbols() []Symbol {
	used := map[string]bool{}
	note := func(s Size) {
		if s.Expr != nil {
			for _, name := range s.Expr.Symbols() {
				used[name] = true
			}
		}
	}
	for _, input := range g.Inputs {
		note(input.Size)
		input.Meta.visitSizes(note)
	}
	visitNodeSizes(g.Nodes, note)
	for _, output := range g.Outputs {
		visitValueSizes(output, note)
	}
	return slices.DeleteFunc(g.Shapes.Symbols(), func(s Symbol) bool { return !used[s.Name] })
}

func (m *Meta) visitSizes(visit func(Size)) {
	for _, list := range [][]Size{m.Sizes, m.Strides, {m.Offset}} {
		for _, size := range list {
			visit(size)
		}
	}
}

func visitNodeSizes(nodes []*Node, visit func(Size)) {
	for _, node := range nodes {
		for _, output := range node.Outputs {
			output.Meta.visitSizes(visit)
		}
		visitValueSizes(List{Items: node.arguments()}, visit)
		visitNodeSizes(node.Expansion, visit)
	}
}

func visitValueSizes(value Value, visit func(Size)) {
	switch v := value.(type) {
	case Size:
		visit(v)
	case List:
		for _, item := range v.Items {
			visitValueSizes(item, visit)
		}
	case Slice:
		for _, item := range []Value{v.Start, v.Stop, v.Step} {
			visitValueSizes(item, visit)
		}
	}
}

// VisitSizes visits the sizes that an argument of a node consists of, those of tensors too; false where it holds a number that is given as an input.
func VisitSizes(value Value, visit func(Size)) bool {
	visitValueSizes(value, visit)
	for _, tensor := range Tensors(value) {
		meta, _ := MetaOf(tensor)
		meta.visitSizes(visit)
	}
	return !holdsNumber(value)
}

func holdsNumber(value Value) bool {
	switch v := value.(type) {
	case *Input:
		return v.Kind != Tensor
	case List:
		return slices.ContainsFunc(v.Items, holdsNumber)
	case Slice:
		return slices.ContainsFunc([]Value{v.Start, v.Stop, v.Step}, holdsNumber)
	}
	return false
}
