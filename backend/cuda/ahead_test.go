package cuda_test

import (
	"strings"
	"testing"

	"fusee/backend/cuda"
	"fusee/backend/loop"
)

// aheadShapes are products of a centred row by the rows of a matrix, which nothing else writes.
func aheadShapes() []*loop.Kernel {
	return []*loop.Kernel{
		centredProduct("ahead_several_rows", 2050, 96, 16), centredProduct("ahead_unaligned", 2050, 96, 4), centredProduct("ahead_two_rows", 1024, 70, 4),
		centredProduct("ahead_blocks", 9, 1100, 16), centredProduct("ahead_single_row", 1, 33, 4),
		residualProduct("ahead_residual", 2050, 96), residualProduct("ahead_residual_blocks", 9, 1100),
	}
}

// residualProduct is a centred product whose last summand the kernel before it may have made.
func residualProduct(name string, count, length int64) *loop.Kernel {
	kernel := centredProduct(name, count, length, 16)
	kernel.Buffers[3].Constant = false
	return kernel
}

// centredProduct is (row - mean(row)) * scale @ matrix.T + bias.
func centredProduct(name string, count, length int64, alignment int) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(count))
	float32Buffers(b, alignment, "row", "scale", "matrix", "bias", "out")
	for _, buffer := range []int{1, 2, 3} {
		b.Kernel.Buffers[buffer].Constant = true
	}
	along := func(buffer int) loop.Value { return b.Load(buffer, loop.Int{}, loop.Statics(0, 1)...) }
	b.Stage(loop.Static(length))
	total := b.Reduce(loop.Sum, loop.F32, along(0))
	b.Stage()
	mean := b.Do(loop.OpDivide, loop.F32, total, b.Constant(loop.F32, loop.FloatBits(float64(length))))
	b.Stage(loop.Static(length))
	scaled := b.Do(loop.OpMultiply, loop.F32, b.Do(loop.OpSubtract, loop.F32, along(0), mean), along(1))
	product := b.Reduce(loop.Sum, loop.F32, b.Do(loop.OpMultiply, loop.F32, scaled, b.Load(2, loop.Int{}, loop.Statics(length, 1)...)))
	b.Stage()
	b.Store(b.Do(loop.OpAdd, loop.F32, product, b.Load(3, loop.Int{}, loop.Static(1))), 4, loop.Int{}, loop.Static(1))
	return b.Kernel
}

// TestConstantsAreReadBeforeWaiting looks where the loads of constant buffers stand.
func TestConstantsAreReadBeforeWaiting(t *testing.T) {
	for _, kernel := range append(aheadShapes(), centredProduct("ahead_long", 3, 33000, 16)) {
		source, err := cuda.Emit(kernel, cuda.Options{DependentLaunch: true})
		if err != nil {
			t.Fatal(err)
		}
		body := source.Text[strings.Index(source.Text, source.Symbol+"("):]
		before, after, _ := strings.Cut(body, "griddepcontrol.wait")
		reads := func(text, buffer string) bool {
			return strings.Contains(text, ">("+buffer) || strings.Contains(text, "= "+buffer+"[")
		}
		if reads(before, "row_0") || !reads(after, "row_0") {
			t.Errorf("%s: the row is to be read after waiting:\n%s", kernel.Name, body)
		}
		if early := reads(before, "matrix_2"); early != (kernel.Name != "ahead_long") {
			t.Errorf("%s: whether the matrix is read before waiting: %v\n%s", kernel.Name, early, body)
		}
	}
}

// TestSummandsAreReadBeforeReducing looks whether what is added to a product is read before its parts are combined, though after waiting.
func TestSummandsAreReadBeforeReducing(t *testing.T) {
	for _, kernel := range []*loop.Kernel{residualProduct("several", 2050, 96), residualProduct("blocks", 9, 1100)} {
		source, err := cuda.Emit(kernel, cuda.Options{DependentLaunch: true})
		if err != nil {
			t.Fatal(err)
		}
		waits, reads, combines := strings.Index(source.Text, "griddepcontrol.wait"), strings.Index(source.Text, "= bias_3["), strings.Index(source.Text, "__shfl_xor_sync(0x")
		if waits < 0 || reads < waits || combines < reads {
			t.Errorf("%s: waits at %d, reads at %d, combines at %d:\n%s", kernel.Name, waits, reads, combines, source.Text)
		}
	}
}

// TestFirstKernelWaitsBeforeTheNextBegins looks at the order of the two instructions.
func TestFirstKernelWaitsBeforeTheNextBegins(t *testing.T) {
	for _, first := range []bool{false, true} {
		kernel := addRelu("add_relu", loop.Static(64), 16)
		kernel.First = first
		source, err := cuda.Emit(kernel, cuda.Options{DependentLaunch: true})
		if err != nil {
			t.Fatal(err)
		}
		if waits := strings.Index(source.Text, "griddepcontrol.wait") < strings.Index(source.Text, "griddepcontrol.launch_dependents"); waits != first {
			t.Errorf("first %v: waits before the next kernel begins: %v", first, waits)
		}
	}
}
