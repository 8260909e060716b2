package graph

import (
	"slices"
	"strconv"
	"strings"

	"fusee/internal/slice"
)

// Size is a number of elements: static when Expr is nil, otherwise a symbolic expression whose value at capture was Hint.
// A Size is also an argument value: a symbolic int.
type Size struct {
	Hint int64
	Expr *Expr
}

// Static makes a size that is the same at every run.
func Static(n int64) Size { return Size{Hint: n} }

// Statics makes static sizes.
func Statics(n ...int64) []Size { return slice.Map(n, Static) }

// Hints gives the values at capture.
func Hints(sizes []Size) []int64 { return slice.Map(sizes, func(s Size) int64 { return s.Hint }) }

// IsStatic says whether the size is a plain number.
func (s Size) IsStatic() bool { return s.Expr == nil }

// String prints the number or the expression.
func (s Size) String() string {
	if s.Expr == nil {
		return strconv.FormatInt(s.Hint, 10)
	}
	return s.Expr.String()
}

// ExprOp is the operation at the root of an expression.
type ExprOp uint8

// Operations of expressions; division and remainder round towards minus infinity as Python's do.
const (
	ExprConstant ExprOp = iota
	ExprSymbol
	ExprAdd
	ExprMultiply
	ExprFloorDivide
	ExprModulo
	ExprMaximum
	ExprMinimum
)

// Expr is an integer expression over symbols, always in canonical form: a sum of products with sorted terms, so that equal
// polynomials print equally. Value belongs to constants, Name to symbols, Args to everything else.
type Expr struct {
	Op    ExprOp
	Name  string
	Value int64
	Args  []*Expr
}

// String prints the expression as Python would write it.
func (e *Expr) String() string { return e.text(0) }

const (
	precedenceSum = iota + 1
	precedenceProduct
	precedenceAtom
)

func (e *Expr) text(outer int) string {
	switch e.Op {
	case ExprConstant:
		return strconv.FormatInt(e.Value, 10)
	case ExprSymbol:
		return e.Name
	case ExprAdd:
		return parenthesised(e.join(" + ", precedenceSum), outer > precedenceSum)
	case ExprMultiply:
		return parenthesised(e.join("*", precedenceProduct), outer > precedenceProduct)
	case ExprFloorDivide:
		return parenthesised(e.join("//", precedenceAtom), outer >= precedenceProduct)
	case ExprModulo:
		return parenthesised(e.join(" % ", precedenceAtom), outer >= precedenceProduct)
	case ExprMaximum:
		return "max(" + e.join(", ", 0) + ")"
	}
	return "min(" + e.join(", ", 0) + ")"
}

func parenthesised(text string, yes bool) string {
	if yes {
		return "(" + text + ")"
	}
	return text
}

func (e *Expr) join(separator string, precedence int) string {
	parts := slice.Map(e.Args, func(a *Expr) string { return a.text(precedence) })
	return strings.ReplaceAll(strings.Join(parts, separator), " + -", " - ")
}

// Evaluate computes the expression with the given symbol values; false when a symbol is missing or a divisor is zero.
func (e *Expr) Evaluate(symbols map[string]int64) (int64, bool) {
	switch e.Op {
	case ExprConstant:
		return e.Value, true
	case ExprSymbol:
		v, ok := symbols[e.Name]
		return v, ok
	}
	total, ok := e.Args[0].Evaluate(symbols)
	for _, a := range e.Args[1:] {
		v, known := a.Evaluate(symbols)
		if !ok || !known || v == 0 && (e.Op == ExprFloorDivide || e.Op == ExprModulo) {
			return 0, false
		}
		total = applyExpr(e.Op, total, v)
	}
	return total, ok
}

func applyExpr(op ExprOp, a, b int64) int64 {
	switch op {
	case ExprAdd:
		return a + b
	case ExprMultiply:
		return a * b
	case ExprFloorDivide:
		return floorDivide(a, b)
	case ExprModulo:
		return a - b*floorDivide(a, b)
	case ExprMaximum:
		return max(a, b)
	}
	return min(a, b)
}

func floorDivide(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// Symbols lists the names of the symbols in the expression, sorted.
func (e *Expr) Symbols() []string {
	names := e.collectSymbols(nil)
	slices.Sort(names)
	return slices.Compact(names)
}

func (e *Expr) collectSymbols(names []string) []string {
	if e.Op == ExprSymbol {
		return append(names, e.Name)
	}
	for _, a := range e.Args {
		names = a.collectSymbols(names)
	}
	return names
}

func constant(v int64) *Expr { return &Expr{Op: ExprConstant, Value: v} }

// term is coefficient × the product of atoms (symbols, quotients, remainders, extrema), atoms sorted by their text.
type term struct {
	coefficient int64
	atoms       []*Expr
	key         string
}

func makeTerm(coefficient int64, atoms []*Expr) term {
	atoms = slices.Clone(atoms)
	slices.SortFunc(atoms, func(a, b *Expr) int { return strings.Compare(a.String(), b.String()) })
	keys := slice.Map(atoms, func(a *Expr) string { return a.text(precedenceAtom) })
	return term{coefficient, atoms, strings.Join(keys, "*")}
}

// polynomial is a sum of terms with distinct keys and coefficients other than zero, sorted by degree, then key.
type polynomial []term

func polynomialOf(e *Expr) polynomial {
	switch e.Op {
	case ExprConstant:
		return normalised(polynomial{makeTerm(e.Value, nil)})
	case ExprAdd:
		var sum polynomial
		for _, a := range e.Args {
			sum = append(sum, polynomialOf(a)...)
		}
		return normalised(sum)
	case ExprMultiply:
		coefficient, atoms := int64(1), []*Expr(nil)
		for _, a := range e.Args {
			if a.Op == ExprConstant {
				coefficient *= a.Value
			} else {
				atoms = append(atoms, a)
			}
		}
		return normalised(polynomial{makeTerm(coefficient, atoms)})
	}
	return polynomial{makeTerm(1, []*Expr{e})}
}

func normalised(p polynomial) polynomial {
	slices.SortStableFunc(p, func(a, b term) int {
		if d := len(b.atoms) - len(a.atoms); d != 0 {
			return d
		}
		return strings.Compare(a.key, b.key)
	})
	var out polynomial
	for _, t := range p {
		if n := len(out); n > 0 && out[n-1].key == t.key {
			out[n-1].coefficient += t.coefficient
		} else {
			out = append(out, t)
		}
	}
	return slices.DeleteFunc(out, func(t term) bool { return t.coefficient == 0 })
}

func (p polynomial) plus(q polynomial) polynomial { return normalised(append(slices.Clone(p), q...)) }

func (p polynomial) times(q polynomial) polynomial {
	var out polynomial
	for _, a := range p {
		for _, b := range q {
			out = append(out, makeTerm(a.coefficient*b.coefficient, append(slices.Clone(a.atoms), b.atoms...)))
		}
	}
	return normalised(out)
}

func (p polynomial) scaled(factor int64) polynomial {
	out := slices.Clone(p)
	for i := range out {
		out[i].coefficient *= factor
	}
	return normalised(out)
}

// constant gives the value of a polynomial without symbols.
func (p polynomial) constant() (int64, bool) {
	switch {
	case len(p) == 0:
		return 0, true
	case len(p) == 1 && len(p[0].atoms) == 0:
		return p[0].coefficient, true
	}
	return 0, false
}

func (p polynomial) expr() *Expr {
	switch len(p) {
	case 0:
		return constant(0)
	case 1:
		return p[0].expr()
	}
	return &Expr{Op: ExprAdd, Args: slice.Map(p, term.expr)}
}

func (t term) expr() *Expr {
	if len(t.atoms) == 0 {
		return constant(t.coefficient)
	}
	if t.coefficient == 1 && len(t.atoms) == 1 {
		return t.atoms[0]
	}
	product := &Expr{Op: ExprMultiply}
	if t.coefficient != 1 {
		product.Args = append(product.Args, constant(t.coefficient))
	}
	product.Args = append(product.Args, t.atoms...)
	return product
}

// quotient divides exactly by a single term; false when some term does not divide.
func (p polynomial) quotient(divisor term) (polynomial, bool) {
	var out polynomial
	for _, t := range p {
		if divisor.coefficient == 0 || t.coefficient%divisor.coefficient != 0 {
			return nil, false
		}
		atoms, ok := withoutAtoms(t.atoms, divisor.atoms)
		if !ok {
			return nil, false
		}
		out = append(out, makeTerm(t.coefficient/divisor.coefficient, atoms))
	}
	return normalised(out), true
}

func withoutAtoms(atoms, remove []*Expr) ([]*Expr, bool) {
	atoms = slices.Clone(atoms)
	for _, r := range remove {
		i := slices.IndexFunc(atoms, func(a *Expr) bool { return a.String() == r.String() })
		if i < 0 {
			return nil, false
		}
		atoms = slices.Delete(atoms, i, i+1)
	}
	return atoms, true
}
