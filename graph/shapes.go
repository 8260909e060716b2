package graph

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// SymbolSource says which run-time number a symbol stands for: dimension Dim of input Input, its stride when Stride is set,
// or the integer input itself when Dim is −1. Input is −1 while no input of the graph gives it.
type SymbolSource struct {
	Input  int
	Dim    int
	Stride bool
}

// Unbounded is the Least of a symbol that has no known lower bound.
const Unbounded = math.MinInt64

// Symbol is a number that may differ from run to run. Least is a lower bound known to hold, or Unbounded.
type Symbol struct {
	Name   string
	Hint   int64
	Least  int64
	Source SymbolSource
}

// ShapeRelation compares the two sides of a shape guard.
type ShapeRelation uint8

// Relations of shape guards.
const (
	RelationEqual ShapeRelation = iota
	RelationNotEqual
	RelationLess
	RelationLessEqual
)

var relationText = [...]string{RelationEqual: "==", RelationNotEqual: "!=", RelationLess: "<", RelationLessEqual: "<="}

// ShapeGuard is a decision taken on symbolic sizes that must come out the same way at run time. Origin is the user's line that took it.
type ShapeGuard struct {
	Left     *Expr
	Relation ShapeRelation
	Right    *Expr
	Origin   Origin
}

// String prints the guard as an inequality, "s0 <= 2*s1".
func (g ShapeGuard) String() string {
	return g.Left.String() + " " + relationText[g.Relation] + " " + g.Right.String()
}

// Holds evaluates the guard; false also when a symbol is missing.
func (g ShapeGuard) Holds(symbols map[string]int64) bool {
	left, leftKnown := g.Left.Evaluate(symbols)
	right, rightKnown := g.Right.Evaluate(symbols)
	if !leftKnown || !rightKnown {
		return false
	}
	switch g.Relation {
	case RelationEqual:
		return left == right
	case RelationNotEqual:
		return left != right
	case RelationLess:
		return left < right
	}
	return left <= right
}

// ShapeEnvironment owns the symbols of a graph and the guards that decisions on them left behind. All methods work on a nil
// environment for static sizes.
type ShapeEnvironment struct {
	symbols []Symbol
	guards  []ShapeGuard
	// equal gives symbols that a guard pins the polynomial that they equal.
	equal  map[string]polynomial
	pinned map[string]pinnedPolynomial // by the text of the polynomial
	origin Origin
}

// NewShapeEnvironment makes an empty environment.
func NewShapeEnvironment() *ShapeEnvironment {
	return &ShapeEnvironment{equal: map[string]polynomial{}, pinned: map[string]pinnedPolynomial{}}
}

// NewSymbol makes a symbolic size; least is a lower bound the caller guards elsewhere (2 where 0 and 1 are specialised).
func (e *ShapeEnvironment) NewSymbol(hint, least int64, source SymbolSource) Size {
	name := "s" + strconv.Itoa(len(e.symbols))
	e.symbols = append(e.symbols, Symbol{Name: name, Hint: hint, Least: least, Source: source})
	return e.SymbolSize(e.symbols[len(e.symbols)-1])
}

// SymbolSize is the size that a symbol of the environment stands for.
func (e *ShapeEnvironment) SymbolSize(symbol Symbol) Size {
	return Size{Hint: symbol.Hint, Expr: &Expr{Op: ExprSymbol, Name: symbol.Name}}
}

// Symbols lists the symbols in order of creation.
func (e *ShapeEnvironment) Symbols() []Symbol {
	if e == nil {
		return nil
	}
	return slices.Clone(e.symbols)
}

// Guards lists the decisions taken so far, in order, without repetition.
func (e *ShapeEnvironment) Guards() []ShapeGuard {
	if e == nil {
		return nil
	}
	return slices.Clone(e.guards)
}

// String prints the guards one a line.
func (e *ShapeEnvironment) String() string {
	var lines []string
	for _, g := range e.Guards() {
		lines = append(lines, g.String())
	}
	return strings.Join(lines, "\n")
}

func (s Size) polynomial() polynomial {
	if s.Expr == nil {
		return normalised(polynomial{makeTerm(s.Hint, nil)})
	}
	return polynomialOf(s.Expr)
}

func (p polynomial) size(hint int64) Size {
	if v, ok := p.constant(); ok {
		return Static(v)
	}
	return Size{Hint: hint, Expr: p.expr()}
}

// Add gives a + b.
func (e *ShapeEnvironment) Add(a, b Size) Size {
	if a.Expr == nil && b.Expr == nil {
		return Static(a.Hint + b.Hint)
	}
	return a.polynomial().plus(b.polynomial()).size(a.Hint + b.Hint)
}

// Subtract gives a − b.
func (e *ShapeEnvironment) Subtract(a, b Size) Size {
	return e.Add(a, e.Multiply(Static(-1), b))
}

// Multiply gives a × b.
func (e *ShapeEnvironment) Multiply(a, b Size) Size {
	if a.Expr == nil && b.Expr == nil {
		return Static(a.Hint * b.Hint)
	}
	return a.polynomial().times(b.polynomial()).size(a.Hint * b.Hint)
}

// FloorDivide gives a // b. A divisor whose hint is 0 gives 0: callers decide about such divisors first.
func (e *ShapeEnvironment) FloorDivide(a, b Size) Size {
	if b.Hint == 0 {
		return Static(0)
	}
	hint := floorDivide(a.Hint, b.Hint)
	if a.Expr == nil && b.Expr == nil {
		return Static(hint)
	}
	if p := b.polynomial(); len(p) == 1 {
		if q, ok := a.polynomial().quotient(p[0]); ok {
			return q.size(hint)
		}
	}
	return Size{Hint: hint, Expr: binary(ExprFloorDivide, a, b)}
}

// Modulo gives a % b with Python's sign rule. A divisor whose hint is 0 gives 0.
func (e *ShapeEnvironment) Modulo(a, b Size) Size {
	if b.Hint == 0 {
		return Static(0)
	}
	hint := a.Hint - b.Hint*floorDivide(a.Hint, b.Hint)
	if a.Expr == nil && b.Expr == nil {
		return Static(hint)
	}
	if p := b.polynomial(); len(p) == 1 {
		if _, ok := a.polynomial().quotient(p[0]); ok {
			return Static(0)
		}
	}
	return Size{Hint: hint, Expr: binary(ExprModulo, a, b)}
}

// Maximum gives the larger of the two.
func (e *ShapeEnvironment) Maximum(a, b Size) Size {
	return e.extremum(ExprMaximum, a, b, max(a.Hint, b.Hint))
}

// Minimum gives the smaller of the two.
func (e *ShapeEnvironment) Minimum(a, b Size) Size {
	return e.extremum(ExprMinimum, a, b, min(a.Hint, b.Hint))
}

func (e *ShapeEnvironment) extremum(op ExprOp, a, b Size, hint int64) Size {
	difference := e.Subtract(a, b)
	least, bounded := e.least(difference.polynomial())
	if bounded && least >= 0 {
		return map[bool]Size{true: a, false: b}[op == ExprMaximum]
	}
	least, bounded = e.least(difference.polynomial().scaled(-1))
	if bounded && least >= 0 {
		return map[bool]Size{true: b, false: a}[op == ExprMaximum]
	}
	expr := binary(op, a, b)
	slices.SortFunc(expr.Args, func(x, y *Expr) int { return strings.Compare(x.String(), y.String()) })
	return Size{Hint: hint, Expr: expr}
}

func binary(op ExprOp, a, b Size) *Expr {
	return &Expr{Op: op, Args: []*Expr{a.polynomial().expr(), b.polynomial().expr()}}
}

// Product multiplies sizes; 1 for none.
func (e *ShapeEnvironment) Product(sizes []Size) Size {
	product := Static(1)
	for _, s := range sizes {
		product = e.Multiply(product, s)
	}
	return product
}

// least is a lower bound of p, when there is one: with every symbol written as its own lower bound plus something not negative,
// all terms that are not constant must have positive coefficients.
func (e *ShapeEnvironment) least(p polynomial) (int64, bool) {
	var shifted polynomial
	for _, t := range p {
		product := polynomial{makeTerm(t.coefficient, nil)}
		for _, atom := range t.atoms {
			low, ok := e.leastOf(atom)
			if !ok {
				return 0, false
			}
			product = product.times(normalised(polynomial{makeTerm(1, []*Expr{atom}), makeTerm(low, nil)}))
		}
		shifted = append(shifted, product...)
	}
	total := int64(0)
	for _, t := range normalised(shifted) {
		if len(t.atoms) > 0 && t.coefficient < 0 {
			return 0, false
		}
		if len(t.atoms) == 0 {
			total = t.coefficient
		}
	}
	return total, true
}

// leastOf is a lower bound of a symbol, of a quotient or remainder by a positive number, or of a maximum.
func (e *ShapeEnvironment) leastOf(atom *Expr) (int64, bool) {
	switch atom.Op {
	case ExprSymbol:
		return e.leastSymbol(atom.Name)
	case ExprModulo:
		return 0, atom.Args[1].Op == ExprConstant && atom.Args[1].Value > 0
	case ExprFloorDivide:
		low, ok := e.least(polynomialOf(atom.Args[0]))
		divisor := atom.Args[1]
		if !ok || divisor.Op != ExprConstant || divisor.Value <= 0 {
			return 0, false
		}
		return floorDivide(low, divisor.Value), true
	case ExprMaximum:
		a, okA := e.least(polynomialOf(atom.Args[0]))
		b, okB := e.least(polynomialOf(atom.Args[1]))
		return max(a, b), okA && okB
	}
	return 0, false
}

func (e *ShapeEnvironment) leastSymbol(name string) (int64, bool) {
	if symbol := e.symbol(name); symbol != nil {
		return symbol.Least, symbol.Least != Unbounded
	}
	return 0, false
}

// Equal decides a == b; a decision that depends on symbols is taken by the hints and recorded.
func (e *ShapeEnvironment) Equal(a, b Size) bool {
	if a.Expr == nil && b.Expr == nil {
		return a.Hint == b.Hint
	}
	difference := e.Canonical(e.Subtract(a, b)).polynomial()
	if v, ok := difference.constant(); ok {
		return v == 0
	}
	for _, p := range []polynomial{difference, difference.scaled(-1)} {
		if low, ok := e.least(p); ok && low > 0 {
			return false
		}
	}
	relation := RelationEqual
	if a.Hint != b.Hint {
		relation = RelationNotEqual
	}
	e.record(difference, relation)
	return a.Hint == b.Hint
}

// AtLeast reports whether a size is certain to be no less than bound, whatever its symbols are. It records no guard.
func (e *ShapeEnvironment) AtLeast(s Size, bound int64) bool {
	if s.Expr == nil {
		return s.Hint >= bound
	}
	low, ok := e.least(e.Canonical(s).polynomial())
	return ok && low >= bound
}

// Less decides a < b.
func (e *ShapeEnvironment) Less(a, b Size) bool { return !e.LessEqual(b, a) }

// LessEqual decides a <= b.
func (e *ShapeEnvironment) LessEqual(a, b Size) bool {
	if a.Expr == nil && b.Expr == nil {
		return a.Hint <= b.Hint
	}
	difference := e.Canonical(e.Subtract(b, a)).polynomial()
	if v, ok := difference.constant(); ok {
		return v >= 0
	}
	if low, ok := e.least(difference); ok && low >= 0 {
		return true
	}
	if low, ok := e.least(difference.scaled(-1)); ok && low > 0 {
		return false
	}
	if a.Hint <= b.Hint {
		e.record(difference.scaled(-1), RelationLessEqual)
		return true
	}
	e.record(difference, RelationLess)
	return false
}

// IsOne decides whether the size is 1.
func (e *ShapeEnvironment) IsOne(s Size) bool { return e.Equal(s, Static(1)) }

// IsZero decides whether the size is 0.
func (e *ShapeEnvironment) IsZero(s Size) bool { return e.Equal(s, Static(0)) }

// AllEqual decides whether two lists of sizes agree.
func (e *ShapeEnvironment) AllEqual(a, b []Size) bool { return slices.EqualFunc(a, b, e.Equal) }

// Specialise turns a symbolic size into its hint, with a guard that pins it.
func (e *ShapeEnvironment) Specialise(s Size) int64 {
	e.Equal(s, Static(s.Hint))
	return s.Hint
}

// record keeps "difference relation 0" with the negative terms moved to the right side, once.
func (e *ShapeEnvironment) record(difference polynomial, relation ShapeRelation) {
	if relation <= RelationNotEqual && len(difference) > 0 && difference[0].coefficient < 0 {
		difference = difference.scaled(-1) // so that a == b and b == a read the same
	}
	if e.bound(difference, relation) {
		return
	}
	var left, right polynomial
	for _, t := range difference {
		if t.coefficient > 0 {
			left = append(left, t)
		} else {
			right = append(right, t)
		}
	}
	guard := ShapeGuard{Left: left.expr(), Relation: relation, Right: right.scaled(-1).expr(), Origin: e.origin}
	text := guard.String()
	known := slices.ContainsFunc(e.guards, func(g ShapeGuard) bool { return g.String() == text })
	if !known {
		e.guards = append(e.guards, guard)
	}
	if relation == RelationEqual {
		e.replace(difference)
	}
}

// withSize is a shape with another size in one dimension.
func withSize(sizes []Size, d int, size Size) []Size {
	sizes = slices.Clone(sizes)
	sizes[d] = size
	return sizes
}
