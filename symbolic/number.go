package symbolic

import (
	"fmt"
	"slices"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/internal/slice"
)

// Number is a Python int or float that may differ from call to call: one that is read from outside, a size or stride of a tensor, or one
// computed from such numbers. Whatever is not made for numbers asks for its constant (Interpreter.real), which pins it with a guard.
type Number struct {
	hint bytecode.Object // its value at this call: int64 or float64
	size graph.Size      // of an int: what it is of the graph's symbols

	source    *guards.Source // where a number read from outside, or the tensor that it is a size of, is found; nil for others
	tensor    *Tensor        // the tensor that it is a size or stride of
	kind      string         // "value", "size" or "stride" of what is found there
	dimension int

	computed *computation // how Python computes it, where its size does not tell
	leaves   []*Number    // the numbers read from outside that it depends on
	argument *graph.Input // the float input of the graph
	pinned   *Constant
}

// computation is one operation of Python that gives a number of the same type whatever the operands' values.
type computation struct {
	operator int    // argument of BINARY_OP, where name is ""
	name     string // canonical name of the function that is called
	operands []Value
}

func (n *Number) typeName() string { return constantTypeName(n.hint) }

func (n *Number) isInt() bool {
	_, isInt := n.hint.(int64)
	return isInt
}

// key names the place that a number is read from.
func (n *Number) key() string {
	if n.kind == "value" {
		return n.source.Key()
	}
	return fmt.Sprintf("%s %s(%d)", n.source.Key(), n.kind, n.dimension)
}

// shapes is the graph's environment of symbols; decisions taken on it belong to the user's line that is being walked.
func (in *Interpreter) shapes() *graph.ShapeEnvironment {
	in.graph.Shapes.At(in.origin())
	return in.graph.Shapes
}

// numberOf gives the number that a value is, unless it is known to be a constant by now.
func (in *Interpreter) numberOf(value Value) (*Number, error) {
	value, err := in.look(value)
	number, _ := value.(*Number)
	return number, err
}

// constantOf is the constant that guards pin the number to; nil where it may still differ.
func (in *Interpreter) constantOf(n *Number) *Constant {
	if n.pinned == nil && n.isInt() && in.graph.Shapes.Canonical(n.size).IsStatic() {
		n.pinned = &Constant{n.hint}
	}
	return n.pinned
}

// specialise pins the number to its value at this call.
func (in *Interpreter) specialise(n *Number) *Constant {
	if constant := in.constantOf(n); constant != nil {
		return constant
	}
	in.specialiseOrigins(n)
	n.pinned = &Constant{n.hint}
	return n.pinned
}

// specialiseOrigins pins what a number is computed from. A decision may have made a constant of the number itself without that.
func (in *Interpreter) specialiseOrigins(n *Number) {
	for _, leaf := range n.origins() {
		if leaf.isInt() {
			in.shapes().Specialise(leaf.size)
		} else {
			leaf.source.Require(in.reason(), "equals", leaf.hint)
		}
		leaf.pinned = &Constant{leaf.hint}
	}
}

// origins are the numbers read from outside that a number depends on.
func (n *Number) origins() []*Number {
	if n.kind != "" {
		return []*Number{n}
	}
	return n.leaves
}

// fromSize gives an int as Python sees it.
func (in *Interpreter) fromSize(size graph.Size) Value {
	size = in.graph.Shapes.Canonical(size)
	if size.IsStatic() {
		return integer(size.Hint)
	}
	if size.Expr.Op == graph.ExprSymbol {
		return in.symbols[size.Expr.Name]
	}
	number := &Number{hint: size.Hint, size: size}
	for _, name := range size.Expr.Symbols() {
		number.leaves = mergeNumbers(number.leaves, in.symbols[name].origins())
	}
	return number
}

func mergeNumbers(a, b []*Number) []*Number {
	added := slice.Filter(b, func(n *Number) bool { return !slices.Contains(a, n) })
	return slices.Concat(a, added)
}

// compute makes a number that Python computes from operands; nil where its value at this call is no int of 64 bits and no float.
func (in *Interpreter) compute(hint Value, c *computation) Value {
	constant, ok := hint.(*Constant)
	if !ok {
		return nil
	}
	number := &Number{hint: constant.Value, computed: c}
	for _, operand := range c.operands {
		if n, ok := operand.(*Number); ok {
			number.leaves = mergeNumbers(number.leaves, n.origins())
		}
	}
	switch value := constant.Value.(type) {
	case int64:
		if !manageable(value) {
			return nil
		}
		number.size = in.graph.Shapes.NewSymbol(value, graph.Unbounded, graph.SymbolSource{Input: -1, Dim: -1})
		in.symbols[number.size.Expr.Name] = number
	case float64:
	default:
		return nil
	}
	return number
}

// manageable keeps ints far from the limits of 64 bits, where expressions over them might overflow.
func manageable(n int64) bool { return -1<<62 < n && n < 1<<62 }

// mostTerms bounds expressions: beyond it Python computes the number, and the expressions over it start anew.
const (
	mostTerms       = 24
	mostCoefficient = 1 << 30
)

// small tells expressions that another operation neither overflows nor makes unwieldy.
func small(size graph.Size) bool {
	if size.Expr == nil {
		return -mostCoefficient < size.Hint && size.Hint < mostCoefficient
	}
	terms, fits := 0, true
	var walk func(e *graph.Expr)
	walk = func(e *graph.Expr) {
		terms++
		fits = fits && (e.Op != graph.ExprConstant || -mostCoefficient < e.Value && e.Value < mostCoefficient)
		for _, arg := range e.Args {
			walk(arg)
		}
	}
	walk(size.Expr)
	return fits && terms <= mostTerms
}

// operandOf is what an operator of numbers takes: a number, or a constant int, float or bool (as the int that it is).
func operandOf(value Value) (operand Value, hint bytecode.Object) {
	switch v := value.(type) {
	case *Number:
		return v, v.hint
	case *Constant:
		switch constant := v.Value.(type) {
		case int64, float64:
			return v, constant
		case bool:
			n, _ := constantInt(v)
			return integer(n), n
		}
	}
	return nil, nil
}

// sizeOf is an int operand as a size; false for floats.
func sizeOf(operand Value) (graph.Size, bool) {
	if n, ok := operand.(*Number); ok {
		return n.size, n.isInt()
	}
	n, ok := operand.(*Constant).Value.(int64)
	return graph.Static(n), ok
}

// numberBinary is an operator over numbers of which one at least may differ from call to call; nil where the constants must do.
func (in *Interpreter) numberBinary(row operatorRow, left, right Value) (Value, error) {
	left, a := operandOf(left)
	right, b := operandOf(right)
	if left == nil || right == nil {
		return nil, nil
	}
	x, firstInt := sizeOf(left)
	y, secondInt := sizeOf(right)
	if stable, err := in.keepsType(row.function, left, right); !stable || err != nil {
		return nil, err
	}
	hint, err := in.numberHint("operator."+row.function, a, b)
	if err != nil || hint == nil {
		return nil, err
	}
	if firstInt && secondInt {
		if size, ok := in.intBinary(row.function, x, y); ok && hint.Value == bytecode.Object(size.Hint) && manageable(size.Hint) {
			return in.fromSize(size), nil
		}
	}
	return in.compute(hint, &computation{operator: operatorNumber(row.function), operands: []Value{left, right}}), nil
}

// numberHint computes the value of this call; nil where Python raises: the constants then lead to the exception.
func (in *Interpreter) numberHint(name string, operands ...bytecode.Object) (*Constant, error) {
	function := shortName(name)
	if len(operands) == 2 {
		if folded := foldBinary(function, operands[0], operands[1]); folded != nil {
			return &Constant{folded}, nil
		}
	}
	wired := make([]bytecode.Object, len(operands))
	for i, operand := range operands {
		wired[i] = bytecode.Tuple{operand}
	}
	outcome, err := in.session.Evaluate(nameWire(name), wired, nil)
	if err != nil || outcome.Raised != 0 {
		return nil, err
	}
	value, err := in.outcomeValue(outcome)
	constant, _ := value.(*Constant)
	return constant, err
}

// keepsType tells operations whose result has the same type for all values of the operands that may come; guards may see to that.
func (in *Interpreter) keepsType(function string, left, right Value) (bool, error) {
	_, firstInt := sizeOf(left)
	_, secondInt := sizeOf(right)
	switch function {
	case "add", "sub", "mul", "truediv", "floordiv", "mod":
		return true, nil
	case "and_", "or_", "xor", "rshift", "lshift":
		return firstInt && secondInt, nil
	case "pow":
		switch {
		case firstInt && secondInt: // a negative exponent gives a float
			return true, in.decideSign(comparisons[5], right)
		case secondInt:
			return true, nil
		}
		// A base that is not positive may raise, or give a complex number.
		positive, err := in.isPositive(left)
		return positive, err
	}
	return false, nil
}

// decideSign leaves a guard on how a number compares with 0.
func (in *Interpreter) decideSign(row comparisonRow, value Value) error {
	if !isNumber(value) {
		return nil
	}
	_, err := in.compare(row, value, integer(0))
	return err
}

func (in *Interpreter) isPositive(value Value) (bool, error) {
	result, err := in.compare(comparisons[4], value, integer(0))
	if err != nil {
		return false, err
	}
	return in.truth(result)
}

// intBinary gives the result as an expression of symbols; false where it is none or has become too long.
func (in *Interpreter) intBinary(function string, x, y graph.Size) (graph.Size, bool) {
	shapes := in.shapes()
	if !small(x) || !small(y) {
		return graph.Size{}, false
	}
	switch function {
	case "add":
		return shapes.Add(x, y), true
	case "sub":
		return shapes.Subtract(x, y), true
	case "mul":
		return shapes.Multiply(x, y), true
	case "floordiv":
		return shapes.FloorDivide(x, y), !shapes.IsZero(y)
	case "mod":
		return shapes.Modulo(x, y), !shapes.IsZero(y)
	}
	return graph.Size{}, false
}

func operatorNumber(function string) int {
	for k, row := range binaryOperators {
		if row.function == function {
			return k
		}
	}
	return -1
}

// numberUnary is +, -, ~ or abs of a number; nil where the constant must do.
func (in *Interpreter) numberUnary(function string, n *Number) (Value, error) {
	if n.isInt() && small(n.size) {
		shapes := in.shapes()
		switch negated := shapes.Multiply(graph.Static(-1), n.size); function {
		case "pos":
			return n, nil
		case "neg":
			return in.fromSize(negated), nil
		case "invert":
			return in.fromSize(shapes.Subtract(negated, graph.Static(1))), nil
		case "abs":
			return in.fromSize(shapes.Maximum(n.size, negated)), nil
		}
	}
	return in.numberCall("operator."+function, n)
}

// numberFunctions are functions of one number that give one type, whatever the number.
var numberFunctions = map[string]bool{
	"operator.neg": true, "operator.pos": true, "operator.abs": true, "operator.invert": true, "builtins.float": true, "builtins.int": true,
	"builtins.round": true, "builtins.abs": true, "math.sqrt": true, "math.exp": true, "math.log": true, "math.log2": true, "math.log10": true,
	"math.log1p": true, "math.expm1": true, "math.sin": true, "math.cos": true, "math.tan": true, "math.tanh": true, "math.atan": true,
	"math.fabs": true, "math.floor": true, "math.ceil": true, "math.trunc": true, "math.radians": true, "math.degrees": true, "math.erf": true,
}

// numberFunctionsOfTwo are functions of two numbers that give a float, whatever the numbers.
var numberFunctionsOfTwo = map[string]bool{"math.pow": true, "math.fmod": true, "math.copysign": true, "math.atan2": true, "math.log": true}

// numberCall is a function of one number; nil where the constant must do.
func (in *Interpreter) numberCall(name string, n *Number) (Value, error) {
	if !numberFunctions[name] {
		return nil, nil
	}
	return in.computeCall(name, n)
}

func (in *Interpreter) computeCall(name string, operands ...Value) (Value, error) {
	hints := make([]bytecode.Object, len(operands))
	for i, operand := range operands {
		_, hints[i] = operandOf(operand)
	}
	hint, err := in.numberHint(name, hints...)
	if err != nil || hint == nil {
		return nil, err
	}
	return in.compute(hint, &computation{name: name, operands: operands}), nil
}

// numberFunction is a call of a function with numbers, of which one at least may differ from call to call; nil where constants must do.
func (in *Interpreter) numberFunction(name string, arguments Arguments) (Value, error) {
	operands := make([]Value, len(arguments.Positional))
	symbolic := false
	for i, argument := range arguments.Positional {
		value, err := in.look(argument)
		if err != nil {
			return nil, err
		}
		if operands[i], _ = operandOf(value); operands[i] == nil {
			return nil, nil
		}
		symbolic = symbolic || isNumber(value)
	}
	if !symbolic || len(arguments.Keywords) > 0 {
		return nil, nil
	}
	switch len(operands) {
	case 1:
		return in.numberCall(name, operands[0].(*Number))
	case 2:
		_, constant := operands[1].(*Constant)
		_, plain := constantInt(operands[1])
		roundsFloat := name == "builtins.round" && constant && plain && operands[0].typeName() == "float"
		if roundsFloat || numberFunctionsOfTwo[name] {
			return in.computeCall(name, operands...)
		}
	}
	return nil, nil
}

// numberExtreme is min or max of numbers of one type; nil where they must be compared.
func (in *Interpreter) numberExtreme(largest bool, items []Value) (Value, error) {
	var operands []Value
	symbolic, ints := false, 0
	for _, item := range items {
		value, err := in.look(item)
		if err != nil {
			return nil, err
		}
		_, isNumber := value.(*Number)
		symbolic = symbolic || isNumber
		if constant, ok := value.(*Constant); ok && constantTypeName(constant.Value) == "bool" {
			return nil, nil
		}
		operand, _ := operandOf(value)
		if operand == nil {
			return nil, nil
		}
		if _, isInt := sizeOf(operand); isInt {
			ints++
		}
		operands = append(operands, operand)
	}
	if !symbolic || ints != 0 && ints != len(operands) {
		return nil, nil
	}
	result := operands[0]
	for _, operand := range operands[1:] {
		var err error
		if result, err = in.numberExtremeOfTwo(largest, result, operand); result == nil || err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (in *Interpreter) numberExtremeOfTwo(largest bool, left, right Value) (Value, error) {
	x, isInt := sizeOf(left)
	y, _ := sizeOf(right)
	if isInt && small(x) && small(y) {
		if largest {
			return in.fromSize(in.shapes().Maximum(x, y)), nil
		}
		return in.fromSize(in.shapes().Minimum(x, y)), nil
	}
	if largest {
		return in.computeCall("builtins.max", left, right)
	}
	return in.computeCall("builtins.min", left, right)
}

// numberTruth decides whether a number is other than zero.
func (in *Interpreter) numberTruth(n *Number) (bool, error) {
	if n.isInt() {
		return !in.shapes().IsZero(n.size), nil
	}
	value, err := in.numberCompare(comparisons[3], n, &Constant{0.0})
	if err != nil || value == nil {
		return constantTruth(in.specialise(n).Value), err
	}
	return value.(*Constant).Value.(bool), nil
}

// numberCompare decides a comparison by the values of this call and guards that it comes out the same; nil where the constants must do.
func (in *Interpreter) numberCompare(row comparisonRow, left, right Value) (Value, error) {
	if row.function == "eq" || row.function == "ne" {
		if unlikeNumber(left) || unlikeNumber(right) {
			return boolean(row.function == "ne"), nil
		}
	}
	left, a := operandOf(left)
	right, b := operandOf(right)
	if left == nil || right == nil {
		return nil, nil
	}
	x, firstInt := sizeOf(left)
	y, secondInt := sizeOf(right)
	if firstInt && secondInt && manageable(x.Hint) && manageable(y.Hint) { // so that their difference, which is compared, fits
		return boolean(in.compareSizes(row.function, x, y)), nil
	}
	result, ok := foldCompare(row.function, a, b)
	first, second := in.guardNumber(left), in.guardNumber(right)
	if !ok || first == nil || second == nil {
		return nil, nil
	}
	in.guardComparison(row.function, result, first, second)
	return boolean(result), nil
}

// unlikeNumber tells constants that equal no number.
func unlikeNumber(value Value) bool {
	constant, ok := value.(*Constant)
	return ok && kindClass(constant.Value) != 0
}

func (in *Interpreter) compareSizes(function string, x, y graph.Size) bool {
	shapes := in.shapes()
	switch function {
	case "lt":
		return shapes.Less(x, y)
	case "le":
		return shapes.LessEqual(x, y)
	case "gt":
		return shapes.Less(y, x)
	case "ge":
		return shapes.LessEqual(y, x)
	case "ne":
		return !shapes.Equal(x, y)
	}
	return shapes.Equal(x, y)
}

// guardedComparisons says how guards write a comparison, and which one holds where it does not.
var guardedComparisons = map[string]struct {
	relation string
	swapped  bool // guards know no greater
	opposite string
}{
	"lt": {"<", false, "ge"}, "gt": {"<", true, "le"}, "le": {"<=", false, "gt"}, "ge": {"<=", true, "lt"},
	"eq": {"==", false, "ne"}, "ne": {"!=", false, "eq"},
}

// guardComparison guards a comparison of floats. Where one does not hold its opposite is guarded, which no NaN passes.
func (in *Interpreter) guardComparison(function string, result bool, a, b *guards.Number) {
	if !result {
		function = guardedComparisons[function].opposite
	}
	row := guardedComparisons[function]
	if row.swapped {
		a, b = b, a
	}
	in.program.Compare(in.reason(), row.relation, a, b)
}
