package loop

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reluAddMul is relu(x + y) * 2 over 1000 elements, y broadcast from one element.
func reluAddMul() *Kernel {
	b := NewBuilder("relu_add_mul", Static(1000))
	x, y, out := b.Buffer("x", F32, Read), b.Buffer("y", F32, Read), b.Buffer("out", F32, Write)
	b.Stage()
	sum := b.Do(OpAdd, F32, b.Load(x, Static(0), Static(1)), b.Load(y, Static(3), Static(0)))
	relu := b.Do(OpMaximum, F32, sum, b.Constant(F32, FloatBits(0)))
	b.Store(b.Do(OpMultiply, F32, relu, b.Constant(F32, FloatBits(2))), out, Static(0), Static(1))
	return b.Kernel
}

// softmaxRows is a bf16 softmax over rows of a length passed at launch.
func softmaxRows() *Kernel {
	b := NewBuilder("softmax_rows", Static(16))
	columns := Argument(b.Scalar())
	x, out := b.Buffer("x", BF16, Read), b.Buffer("out", BF16, Write)
	load := func() Value { return b.Cast(F32, b.Load(x, Static(0), columns, Static(1))) }
	b.Stage(columns)
	greatest := b.Reduce(Maximum, F32, load())
	b.Stage(columns)
	sum := b.Reduce(Sum, F32, b.Do(OpExp, F32, b.Do(OpSubtract, F32, load(), greatest)))
	b.Stage(columns)
	numerator := b.Do(OpExp, F32, b.Do(OpSubtract, F32, load(), greatest))
	b.Store(b.Cast(BF16, b.Do(OpDivide, F32, numerator, sum)), out, Static(0), columns, Static(1))
	return b.Kernel
}

func update(t *testing.T) bool {
	t.Helper()
	return flag.Lookup("update").Value.(flag.Getter).Get().(bool)
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

func TestPrintedFormMatchesGoldenFiles(t *testing.T) {
	for _, kernel := range []*Kernel{reluAddMul(), softmaxRows()} {
		if err := kernel.Verify(); err != nil {
			t.Fatalf("%s: %v", kernel.Name, err)
		}
		path := filepath.Join("testdata", kernel.Name+".loop")
		if update(t) {
			if err := os.WriteFile(path, []byte(kernel.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := kernel.String(); got != string(want) {
			t.Errorf("%s prints\n%s\nbut the golden file holds\n%s", kernel.Name, got, want)
		}
	}
}

func TestVerifyRejects(t *testing.T) {
	cases := map[string]func(k *Kernel){
		"no C identifier":        func(k *Kernel) { k.Name = "9x" },
		"is not visible here":    func(k *Kernel) { k.Stages[0].Body[2].Args[0] = 5 },
		"read f32 buffer":        func(k *Kernel) { k.Buffers[2].Mode = Read },
		"1 strides in 2":         func(k *Kernel) { k.Outer = append(k.Outer, Static(2)) },
		"scalar argument 0 of 0": func(k *Kernel) { k.Outer[0] = Argument(0) },
		"result type f64":        func(k *Kernel) { k.Stages[0].Body[2].Type = F64 },
		"arguments instead of":   func(k *Kernel) { k.Stages[0].Body[2].Args = nil },
		"outside an inner loop": func(k *Kernel) {
			k.Stages[0].Body[2] = Instruction{Op: OpReduce, Type: F32, Args: []Value{0}, Reduction: Sum}
		},
		"with alignment 3":        func(k *Kernel) { k.Buffers[0].Alignment = 3 },
		"operation 0":             func(k *Kernel) { k.Stages[0].Body[0].Op = OpInvalid },
		"first value is 1, not 0": func(k *Kernel) { k.Stages[0].First = 1 },
	}
	for want, change := range cases {
		kernel := reluAddMul()
		change(kernel)
		if err := kernel.Verify(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestReductionIsVisibleOnlyAfterItsStage(t *testing.T) {
	kernel := softmaxRows()
	kernel.Stages[0].Body = append(kernel.Stages[0].Body, Instruction{Op: OpNegate, Type: F32, Args: []Value{2}})
	if err := kernel.Verify(); err == nil || !strings.Contains(err.Error(), "not visible") {
		t.Errorf("got %v", err)
	}
}

func TestEveryOperationHasARow(t *testing.T) {
	names := map[string]Op{}
	for _, op := range Ops() {
		if op.String() == "" || op.Domain() == 0 {
			t.Errorf("operation %d has no row", op)
		}
		if other, taken := names[op.String()]; taken {
			t.Errorf("operations %d and %d are both %s", other, op, op)
		}
		names[op.String()] = op
	}
}
