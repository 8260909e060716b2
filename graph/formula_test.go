package graph

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// evaluator computes formulas in float64, or in int64 when the computation's type is an integer.
type evaluator struct {
	operands []float64
	integer  bool
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (v evaluator) eval(e *Expression) float64 {
	switch e.Op {
	case "operand":
		return v.operands[e.Operand]
	case "constant":
		f, _, _ := plainNumber(e)
		if b, ok := e.Constant.(bool); ok {
			f = truth(b)
		}
		return f
	case "where":
		if v.eval(e.Args[0]) != 0 {
			return v.eval(e.Args[1])
		}
		return v.eval(e.Args[2])
	}
	args := make([]float64, len(e.Args))
	for i, a := range e.Args {
		args[i] = v.eval(a)
	}
	if len(args) == 1 {
		return v.unary(e, args[0])
	}
	return v.binary(e.Op, args[0], args[1])
}

func (v evaluator) unary(e *Expression, a float64) float64 {
	functions := map[string]func(float64) float64{
		"abs": math.Abs, "sqrt": math.Sqrt, "exp": math.Exp, "exp2": math.Exp2, "expm1": math.Expm1, "log": math.Log, "log2": math.Log2,
		"log10": math.Log10, "log1p": math.Log1p, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos,
		"atan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
		"erf": math.Erf, "erfc": math.Erfc, "ceil": math.Ceil, "floor": math.Floor, "trunc": math.Trunc, "round": math.RoundToEven,
		"neg":    func(a float64) float64 { return -a },
		"rsqrt":  func(a float64) float64 { return 1 / math.Sqrt(a) },
		"lgamma": func(a float64) float64 { g, _ := math.Lgamma(a); return g },
		"isnan":  func(a float64) float64 { return truth(math.IsNaN(a)) }, "isinf": func(a float64) float64 { return truth(math.IsInf(a, 0)) },
		"isfinite": func(a float64) float64 { return truth(!math.IsNaN(a) && !math.IsInf(a, 0)) },
		"signbit":  func(a float64) float64 { return truth(math.Signbit(a)) },
		"not": func(a float64) float64 {
			if e.Args[0].IsBool() {
				return 1 - a
			}
			return float64(^int64(a))
		},
	}
	return functions[e.Op](a)
}

func (v evaluator) binary(op string, a, b float64) float64 {
	if v.integer {
		if result, ok := integerBinary(op, int64(a), int64(b)); ok {
			return float64(result)
		}
	}
	propagate := func(f func(a, b float64) float64) float64 {
		if math.IsNaN(a) || math.IsNaN(b) {
			return math.NaN()
		}
		return f(a, b)
	}
	ignore := func(f func(a, b float64) float64) float64 {
		switch {
		case math.IsNaN(a):
			return b
		case math.IsNaN(b):
			return a
		}
		return f(a, b)
	}
	switch op {
	case "add":
		return a + b
	case "sub":
		return a - b
	case "mul":
		return a * b
	case "div":
		return a / b
	case "maximum":
		return propagate(math.Max)
	case "minimum":
		return propagate(math.Min)
	case "fmax":
		return ignore(math.Max)
	case "fmin":
		return ignore(math.Min)
	case "and":
		return float64(int64(a) & int64(b))
	case "or":
		return float64(int64(a) | int64(b))
	case "xor":
		return float64(int64(a) ^ int64(b))
	}
	return floatBinary(op, a, b)
}

func floatBinary(op string, a, b float64) float64 {
	switch op {
	case "pow":
		return math.Pow(a, b)
	case "fmod":
		return math.Mod(a, b)
	case "mod":
		m := math.Mod(a, b)
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m
	case "floordiv":
		return floorDivideFloat(a, b)
	case "atan2":
		return math.Atan2(a, b)
	case "hypot":
		return math.Hypot(a, b)
	case "copysign":
		return math.Copysign(a, b)
	case "nextafter":
		return math.Nextafter(a, b)
	}
	comparisons := map[string]bool{"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
	result, ok := comparisons[op]
	if !ok {
		panic("primitive " + op)
	}
	return truth(result)
}

// floorDivideFloat follows c10::div_floor_floating.
func floorDivideFloat(a, b float64) float64 {
	if b == 0 {
		return a / b
	}
	mod := math.Mod(a, b)
	div := (a - mod) / b
	if mod != 0 && (b < 0) != (mod < 0) {
		div--
	}
	if div == 0 {
		return math.Copysign(0, a/b)
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor
}

func integerBinary(op string, a, b int64) (int64, bool) {
	switch op {
	case "truncdiv":
		return a / b, true
	case "floordiv":
		return floorDivide(a, b), true
	case "mod":
		return a - b*floorDivide(a, b), true
	case "fmod":
		return a % b, true
	case "shl":
		if b < 0 || b > 63 {
			return 0, true
		}
		return a << b, true
	case "shr":
		return a >> min(uint64(b), 63), true
	case "gcd":
		for b != 0 {
			a, b = b, a%b
		}
		return max(a, -a), true
	case "pow":
		result := int64(1)
		if b < 0 {
			return map[int64]int64{1: 1, -1: 1 - 2*(b&1)}[a], true
		}
		for range b {
			result *= a
		}
		return result, true
	}
	return 0, false
}

// TestFormulasAgainstEager evaluates every recorded pointwise call by its formula in float64.
func TestFormulasAgainstEager(t *testing.T) {
	o := loadOracle(t)
	checked := map[string]bool{}
	for _, text := range o.Values {
		fields := decode(t, text).([]any)
		if target, ok := checkFormula(t, o, fields); ok {
			checked[target] = true
		}
	}
	for _, target := range Targets() {
		op, _ := LookUp(target)
		if op.Kind == KindPointwise && op.hasBody() && !op.InPlace && !checked[target] {
			t.Logf("%s: formula without samples", target)
		}
	}
	if len(checked) < 100 {
		t.Errorf("only %d formulas checked", len(checked))
	}
}

func checkFormula(t *testing.T, o *oracle, fields []any) (string, bool) {
	target, d := fields[0].(string), Float64
	if strings.HasPrefix(fields[1].(string), "int64") {
		d = Int64
	}
	g := NewGraph("sample")
	r := &replayer{t: t, oracle: o, graph: g}
	columns, results := o.Samples[fields[1].(string)], fields[4].([]any)
	var args []Value
	for range columns {
		args = append(args, g.AddTensor("", plain(d, int64(len(results)))))
	}
	args = append(args, r.values(fields[2].([]any))...)
	if strings.Contains(target, "elu_backward") && len(args) == 6 { // its tensor comes last
		args = append(append(args[:1:1], args[2:]...), args[1])
	}
	var keywords []Keyword
	for name, v := range fields[3].(map[string]any) {
		keywords = append(keywords, Keyword{name, r.value(v)})
	}
	if _, err := g.Call(target, args, keywords, gradMode); err != nil {
		return "", false
	}
	lowered, err := g.Lower()
	if err != nil || len(lowered.Nodes) != 1 {
		return "", false
	}
	node := lowered.Nodes[0]
	computation, ok := node.Computation(State{DefaultDType: Float64})
	if !ok {
		return "", false
	}
	for row := range results {
		compareRow(t, target, computation, columns, row, results[row].(string))
	}
	return node.Target, true
}

func compareRow(t *testing.T, target string, c *Computation, columns [][]string, row int, wanted string) {
	v := evaluator{integer: !c.Compute.IsFloat()}
	for _, operand := range c.Operands {
		number, _ := strconv.ParseFloat(columns[operand.(*Input).Index][row], 64)
		v.operands = append(v.operands, number)
	}
	got := v.eval(c.Body)
	want, _ := strconv.ParseFloat(wanted, 64)
	if c.Result == Bool {
		got = truth(got != 0)
	}
	tolerance := 1e-12
	if v.integer || len(c.Operands) > 0 && c.Operands[0].(*Input).Meta.DType == Int64 { // eager computed in float32
		tolerance = 3e-7
	}
	if math.IsNaN(got) && math.IsNaN(want) || got == want || math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want)) {
		return
	}
	t.Errorf("%s of %v: %s gives %v, eager %v", target, v.operands, c.Body, got, want)
}
