package symbolic

import (
	"math"
	"os"
	"testing"

	"fusee/bytecode"
)

// foldRow is one operation recorded from CPython by tests/language/record_folds.py.
type foldRow struct {
	function string
	operands bytecode.Tuple
	raised   bool
	value    bytecode.Object
}

func recordedFolds(t *testing.T) []foldRow {
	t.Helper()
	data, err := os.ReadFile("testdata/folds.marshal")
	if err != nil {
		t.Fatal(err)
	}
	object, err := bytecode.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var rows []foldRow
	for _, item := range object.(*bytecode.List).Items {
		fields := item.(bytecode.Tuple)
		rows = append(rows, foldRow{fields[0].(string), fields[1].(bytecode.Tuple), fields[2] == "raise", fields[3]})
	}
	return rows
}

// fold is what constant folding makes of a row; nil where it leaves the operation to Python.
func (r foldRow) fold() bytecode.Object {
	if r.function == "truth" {
		return constantTruth(r.operands[0])
	}
	if len(r.operands) == 1 {
		return foldUnary(r.function, r.operands[0])
	}
	if folded := foldBinary(r.function, r.operands[0], r.operands[1]); folded != nil {
		return folded
	}
	if folded, ok := foldCompare(r.function, r.operands[0], r.operands[1]); ok {
		return folded
	}
	return nil
}

// sameObject compares type and value; floats by their bits, so that -0.0 and NaN count.
func sameObject(a, b bytecode.Object) bool {
	x, okX := a.(float64)
	y, okY := b.(float64)
	if okX && okY {
		return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y
	}
	left, errLeft := bytecode.Marshal(a)
	right, errRight := bytecode.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}

func TestFoldingAgreesWithCPython(t *testing.T) {
	folded := map[string]int{}
	for _, row := range recordedFolds(t) {
		got := row.fold()
		if got == nil {
			continue
		}
		folded[row.function]++
		if row.raised {
			t.Errorf("%s%v gives %v, where CPython raises %v", row.function, row.operands, got, row.value)
		} else if !sameObject(got, row.value) {
			t.Errorf("%s%v gives %T %v, CPython %T %v", row.function, row.operands, got, got, row.value, row.value)
		}
	}
	for _, function := range []string{"add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "le", "eq", "ne", "gt", "ge", "neg", "pos", "invert", "truth"} {
		if folded[function] < 5 {
			t.Errorf("%s is folded %d times only", function, folded[function])
		}
	}
}

func TestEqualConstantsMeetUnderOneKey(t *testing.T) {
	for _, row := range recordedFolds(t) {
		if row.function != "eq" || row.raised {
			continue
		}
		a, b := constantKey(row.operands[0]), constantKey(row.operands[1])
		if a == nil || b == nil {
			continue // a NaN is a key of its own
		}
		if (a == b) != (row.value == true) {
			t.Errorf("keys of %T %v and %T %v: same %v, CPython says equal %v", row.operands[0], row.operands[0], row.operands[1], row.operands[1], a == b, row.value)
		}
	}
}
