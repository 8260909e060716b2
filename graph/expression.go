package graph

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
)

// primitiveArity gives the number of arguments of a primitive that formulas call by name, 0 for other names.
func primitiveArity(name string) int {
	switch name {
	case "where":
		return 3
	case "floordiv", "mod", "truncdiv", "fmod", "pow", "atan2", "hypot", "copysign", "nextafter", "gcd", "maximum", "minimum", "fmax", "fmin":
		return 2
	case "abs", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
		"cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "ceil", "floor", "trunc", "round", "isnan", "isinf", "isfinite",
		"signbit":
		return 1
	}
	return 0
}

// Expression is a scalar expression tree. Op is a primitive, "operand" (Operand says which) or "constant" (Constant is a bool,
// int64, float64 or complex128, to be converted to the computation's type). All
// primitives work on the computation's type unless said otherwise; on float16 and bfloat16 they work in float32 and the result is
// rounded once at the end:
//
//	operand, constant               leaves
//	add sub mul                     on bool: or, xor, and
//	div                             true division; never on integers
//	floordiv mod                    towards minus infinity; on floats as c10::div_floor_floating and Python's %
//	truncdiv fmod                   towards zero, C's fmod
//	neg abs sqrt rsqrt              abs of a complex number is real
//	exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma
//	pow atan2 hypot copysign nextafter gcd
//	ceil floor trunc round          round half to even; identities on integers
//	maximum minimum                 NaN if either is NaN
//	fmax fmin                       the other one if either is NaN
//	eq ne lt le gt ge               bool
//	isnan isinf isfinite signbit    bool
//	and or xor not                  bitwise on integers, logical on bool
//	shl shr                         0 (shl) or the sign (shr) when the count is negative or not below the width
//	where                           where(condition, a, b)
type Expression struct {
	Op       string
	Args     []*Expression
	Operand  int
	Constant Value
}

// String prints the expression in prefix form: add(operand0, mul(2.0, operand1)).
func (e *Expression) String() string {
	switch e.Op {
	case "operand":
		return "operand" + strconv.Itoa(e.Operand)
	case "constant":
		return FormatValue(e.Constant)
	}
	return e.Op + "(" + joined(e.Args, (*Expression).String) + ")"
}

// IsBool says whether the expression's value is a bool whatever the computation's type.
func (e *Expression) IsBool() bool {
	switch e.Op {
	case "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "signbit":
		return true
	case "and", "or", "xor", "not":
		return e.Args[0].IsBool()
	case "where":
		return e.Args[1].IsBool()
	}
	return false
}

// looseness levels of binary operators as in Python, from comparisons to products.
const (
	levelComparison = iota
	levelOr
	levelXor
	levelAnd
	levelShift
	levelSum
	levelProduct
	levelUnary
)

// infixOperator gives the primitive behind an operator and its level; levelUnary when it is none.
func infixOperator(token string) (op string, level int) {
	switch token {
	case "==":
		return "eq", levelComparison
	case "!=":
		return "ne", levelComparison
	case "<":
		return "lt", levelComparison
	case "<=":
		return "le", levelComparison
	case ">":
		return "gt", levelComparison
	case ">=":
		return "ge", levelComparison
	case "|":
		return "or", levelOr
	case "^":
		return "xor", levelXor
	case "&":
		return "and", levelAnd
	case "<<":
		return "shl", levelShift
	case ">>":
		return "shr", levelShift
	case "+":
		return "add", levelSum
	case "-":
		return "sub", levelSum
	case "*":
		return "mul", levelProduct
	case "/":
		return "div", levelProduct
	}
	return "", levelUnary
}

// expressionParser reads a formula; resolve turns names into leaves.
type expressionParser struct {
	tokens  []string
	resolve func(name string) (*Expression, bool)
}

func parseExpression(text string, resolve func(string) (*Expression, bool)) (*Expression, error) {
	p := &expressionParser{tokens: Tokens(text, tokenLength), resolve: resolve}
	e, err := p.binary(0)
	if err == nil && len(p.tokens) > 0 {
		err = errors.Newf("unexpected %q", p.tokens[0])
	}
	return e, errors.Wrapf(err, "formula %q", text)
}

// Tokens splits a formula at its spaces and into tokens, of which length gives the bytes of the one that a text starts with.
func Tokens(text string, length func(text string) int) []string {
	var tokens []string
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		n := length(text)
		tokens = append(tokens, text[:n])
		text = text[n:]
	}
	return tokens
}

func tokenLength(text string) int {
	word := strings.IndexFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.')
	})
	if word < 0 {
		return len(text)
	}
	if word > 0 {
		if c := text[0]; '0' <= c && c <= '9' && text[word-1] == 'e' && text[word] == '-' { // 1e-5
			return word + 1 + tokenLength(text[word+1:])
		}
		return word
	}
	if len(text) > 1 && slices.Contains([]string{"==", "!=", "<=", ">=", "<<", ">>"}, text[:2]) {
		return 2
	}
	return 1
}

func (p *expressionParser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	return token
}

func (p *expressionParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *expressionParser) binary(level int) (*Expression, error) {
	if level == levelUnary {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		op, found := infixOperator(p.peek())
		if found != level {
			return left, nil
		}
		p.next()
		var right *Expression
		right, err = p.binary(level + 1)
		left = apply(op, left, right)
	}
	return nil, err
}

func (p *expressionParser) unary() (*Expression, error) {
	op, ok := map[string]string{"-": "neg", "~": "not"}[p.peek()]
	if !ok {
		return p.primary()
	}
	p.next()
	e, err := p.unary()
	if err != nil {
		return nil, err
	}
	return apply(op, e), nil
}

func (p *expressionParser) primary() (*Expression, error) {
	token := p.next()
	if token == "(" {
		e, err := p.binary(0)
		return e, p.expect(")", err)
	}
	if arity := primitiveArity(token); arity > 0 && p.peek() == "(" {
		return p.call(token, arity)
	}
	if n, err := strconv.ParseInt(token, 10, 64); err == nil {
		return number(n), nil
	}
	if token != "" && '0' <= token[0] && token[0] <= '9' {
		f, err := strconv.ParseFloat(token, 64)
		return number(f), err
	}
	if e, ok := p.resolve(token); ok {
		return e, nil
	}
	return nil, errors.Newf("unknown name %q", token)
}

func (p *expressionParser) expect(token string, err error) error {
	if err == nil && p.next() != token {
		return errors.Newf("%q expected", token)
	}
	return err
}

func (p *expressionParser) call(op string, arity int) (*Expression, error) {
	var args []*Expression
	for i := range arity {
		if err := p.expect(map[bool]string{true: "(", false: ","}[i == 0], nil); err != nil {
			return nil, err
		}
		arg, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return apply(op, args...), p.expect(")", nil)
}

func number(v Value) *Expression { return &Expression{Op: "constant", Constant: v} }

func isNumber(e *Expression, v float64) bool {
	switch c := e.Constant.(type) {
	case int64:
		return float64(c) == v
	case float64:
		return c == v
	}
	return false
}

// apply builds a node, folding constants in float64 and dropping multiplications by one, which change no value.
func apply(op string, args ...*Expression) *Expression {
	if op == "mul" && isNumber(args[0], 1) {
		return args[1]
	}
	if (op == "mul" || op == "div") && isNumber(args[1], 1) {
		return args[0]
	}
	if folded, ok := fold(op, args); ok {
		return folded
	}
	return &Expression{Op: op, Args: args}
}

// fold computes neg, add, sub, mul and div of plain numbers. Integers stay integers except under div.
func fold(op string, args []*Expression) (*Expression, bool) {
	var floats [2]float64
	integers := op != "div"
	for i, a := range args {
		f, isInteger, ok := plainNumber(a)
		if !ok || i > 1 {
			return nil, false
		}
		floats[i] = f
		integers = integers && isInteger
	}
	result, ok := foldFloats(op, floats[0], floats[1])
	if !ok {
		return nil, false
	}
	if integers && math.Abs(result) < 1<<53 {
		return number(int64(result)), true
	}
	return number(result), true
}

func plainNumber(e *Expression) (value float64, isInteger, ok bool) {
	switch c := e.Constant.(type) {
	case int64:
		return float64(c), true, c < 1<<53 && c > -(1<<53)
	case float64:
		return c, false, true
	}
	return 0, false, false
}

func foldFloats(op string, a, b float64) (float64, bool) {
	switch op {
	case "neg":
		return -a, true
	case "add":
		return a + b, true
	case "sub":
		return a - b, true
	case "mul":
		return a * b, true
	case "div":
		return a / b, true
	}
	return 0, false
}
