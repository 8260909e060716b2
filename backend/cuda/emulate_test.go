package cuda_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fusee/backend/cuda"
	"fusee/backend/interpret"
	"fusee/backend/loop"
)

// TestPrintedCodeComputes compiles the printed kernels as C++ with testdata/emulate.h, runs all their blocks and threads
// on the CPU, and compares with the interpreter of loop kernels.
func TestPrintedCodeComputes(t *testing.T) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skipf("no g++ to run CUDA C on the CPU with: %v", err)
	}
	program := filepath.Join(t.TempDir(), "emulate")
	trials := trials(t)
	build(t, compiler, program, trials)
	var input bytes.Buffer
	for _, trial := range trials {
		for _, buffer := range trial.buffers {
			input.Write(buffer)
		}
	}
	command := exec.Command(program)
	command.Stdin = &input
	output, err := command.Output()
	if err != nil {
		t.Fatalf("the emulation fails: %v", err)
	}
	for _, trial := range trials {
		output = trial.compare(t, output)
	}
}

// trial is one run of a kernel: the buffers before it, and by how many elements their pointers are off the alignment of
// vectors where the kernel assumes none.
type trial struct {
	kernel  *loop.Kernel
	source  cuda.Source
	buffers [][]byte
	scalars []int64
	shift   int
}

func newTrial(t *testing.T, kernel *loop.Kernel, shift int) *trial {
	t.Helper()
	source, err := cuda.Emit(kernel, cuda.Options{DependentLaunch: strings.HasPrefix(kernel.Name, "ahead")})
	if err != nil {
		t.Fatalf("%s: %+v", kernel.Name, err)
	}
	result := &trial{kernel: kernel, source: source, scalars: scalarsFor(kernel), shift: shift}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range len(kernel.Buffers) * max(len(kernel.Parts), 1) {
		buffer := result.buffer(i)
		data := make([]byte, result.elements(i)*int64(buffer.Type.Bytes()))
		memory := &interpret.Bytes{Type: buffer.Type, Data: data}
		for element := range result.elements(i) {
			memory.Store(element, sample(random, kernel.Name, buffer, int(element)))
		}
		result.buffers = append(result.buffers, data)
	}
	return result
}

// buffer describes the buffer of a number; those of a kernel in parts come part by part.
func (t *trial) buffer(index int) loop.Buffer { return t.kernel.Buffers[index%len(t.kernel.Buffers)] }

// outer lists the sizes of the outer dimensions that a buffer is used over.
func (t *trial) outer(buffer int) []loop.Int {
	if t.kernel.Parts != nil {
		return loop.Statics(t.kernel.Parts[buffer/len(t.kernel.Buffers)])
	}
	return t.kernel.Outer
}

// scalarsFor gives the dynamic kernels of the corpus their sizes.
func scalarsFor(kernel *loop.Kernel) []int64 {
	switch kernel.Name {
	case "add_relu_dynamic":
		return []int64{4099}
	case "dynamic_rows":
		return []int64{11, 36, 40}
	case "softmax_dynamic":
		return []int64{3, 1030}
	case "scalar_arguments":
		return []int64{int64(math.Float64bits(-1.5))}
	}
	return make([]int64, kernel.Scalars)
}

// elements returns how many elements the kernel's accesses to a buffer span.
func (t *trial) elements(buffer int) int64 {
	most := int64(0)
	for _, stage := range t.kernel.Stages {
		sizes := append(append([]loop.Int{}, t.outer(buffer)...), stage.Inner...)
		for _, in := range stage.Body {
			if in.Access == nil || in.Access.Buffer != buffer%len(t.kernel.Buffers) {
				continue
			}
			last := t.number(in.Access.Offset)
			for d, stride := range in.Access.Strides {
				last += max(t.number(stride), 0) * (t.number(sizes[d]) - 1)
			}
			for _, indirect := range in.Access.Indirect {
				last += t.number(indirect.Stride) * (t.number(indirect.Size) - 1)
			}
			most = max(most, last+1)
		}
	}
	return most
}

// sample draws an element: special values now and then, and only what the operation is defined for.
func sample(random *rand.Rand, kernel string, buffer loop.Buffer, element int) loop.Bits {
	second := buffer.Name == buffer.Type.String()+"_b"
	switch {
	case buffer.Type == loop.Bool:
		return loop.BoolBits(random.IntN(2) == 1)
	case buffer.Type.Is(loop.ClassFloat | loop.ClassStorage):
		return loop.FloatBits(realSample(random, kernel, element))
	case strings.Contains(kernel, "shift") && second:
		return narrowed(buffer.Type, random.Int64N(70)-3)
	}
	value := narrowed(buffer.Type, int64(random.Uint64()>>random.IntN(64)))
	if element%7 == 0 {
		extremes := []int64{0, -1, 1, math.MinInt64 >> (64 - 8*buffer.Type.Bytes()), math.MaxInt64}
		value = narrowed(buffer.Type, extremes[random.IntN(len(extremes))])
	}
	if second && value == 0 && (strings.Contains(kernel, "divide") || kernel == "op_remainder" || kernel == "op_modulo") {
		return 3 // a divisor is never zero
	}
	return value
}

// narrowed wraps a number to an integer type.
func narrowed(t loop.Type, value int64) loop.Bits {
	return interpret.Cast(loop.I64, t, loop.IntBits(value), false)
}

func realSample(random *rand.Rand, kernel string, element int) float64 {
	switch {
	case strings.HasPrefix(kernel, "cast"): // other numbers have no defined integer
		return random.Float64() * 100
	case element%11 == 3 && (strings.HasPrefix(kernel, "op") || strings.HasPrefix(kernel, "short")):
		special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1e-300, 1e300, 0.5, 1, -1, 2.5, math.Copysign(0, -1)}
		if anyZero(kernel) {
			special = special[:len(special)-1]
		}
		return special[random.IntN(len(special))]
	case strings.HasPrefix(kernel, "pieces"): // sums that cancel would depend on their order
		return random.Float64()
	case kernel == "reduce_product":
		return 1 + random.Float64()/64
	case kernel == "positions" && element == 1500:
		return math.NaN()
	case kernel == "normaliser_short" && element < 200: // rows with a NaN, infinities, and nothing but minus infinity
		row := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Inf(-1)}[element/50]
		if element%50 == 7 || element >= 150 {
			return row
		}
	}
	return random.NormFloat64() * 3
}

// anyZero reports whether C leaves the sign of a zero open that the operation chooses among its arguments.
func anyZero(kernel string) bool {
	return strings.Contains(kernel, "maximum") || strings.Contains(kernel, "minimum") || kernel == "op_nextafter"
}

// build compiles all kernels and a main function that reads the buffers of each, launches it, and writes them back.
func build(t *testing.T, compiler, program string, trials []*trial) {
	t.Helper()
	var text strings.Builder
	text.WriteString("#include \"emulate.h\"\n")
	for _, trial := range trials {
		if trial.shift == 0 {
			fmt.Fprintf(&text, "namespace %s {\n%s}\n", trial.namespace(), hostText(trial.source.Text))
		}
	}
	text.WriteString("int main()\n{\n")
	for _, trial := range trials {
		trial.printLaunch(&text)
	}
	text.WriteString("}\n")
	path := program + ".cpp"
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(compiler, "-std=c++17", "-O0", "-ffp-contract=off", "-w", "-I", "testdata", "-o", program, path)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// hostText replaces the PTX instructions by their emulation.
func hostText(source string) string {
	source = regexp.MustCompile(`asm volatile\(.*\);`).ReplaceAllString(source, ";") // what waits and fetches ahead
	return strings.NewReplacer(
		`extern "C" __global__`, "__global__",
		`extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);`, "",
		`asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits))`, "result = ptx_cvt_f32_f16(value.bits)",
		`asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value))`, "result.bits = ptx_cvt_rn_f16_f32(value)",
		`asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value))`, "result.bits = ptx_cvt_rn_bf16_f32(value)",
	).Replace(source)
}

// number returns a size, stride or offset of the trial.
func (t *trial) number(value loop.Int) int64 {
	if argument, dynamic := value.Argument(); dynamic {
		if argument == t.kernel.Scalars {
			return t.number(t.kernel.Span.Size)
		}
		return t.scalars[argument]
	}
	static, _ := value.Static()
	return static
}

func (t *trial) work() int64 {
	work := int64(0)
	for _, points := range t.kernel.Parts {
		work += points
	}
	if t.kernel.Parts != nil {
		return work
	}
	work = 1
	for _, size := range t.kernel.Outer {
		work *= t.number(size)
	}
	return work
}

// misalignment returns by how many bytes the pointer of a buffer is off.
func (t *trial) misalignment(buffer int) int {
	declared := t.buffer(buffer)
	if declared.Alignment > declared.Type.Bytes() {
		return 0
	}
	return t.shift * declared.Type.Bytes()
}

func (t *trial) namespace() string { return "of_" + t.kernel.Name }

func (t *trial) printLaunch(text *strings.Builder) {
	fmt.Fprintf(text, "{\n")
	var arguments []string
	for i, buffer := range t.buffers {
		fmt.Fprintf(text, "static char *b%d = (char *)aligned_alloc(64, %d) + %d;\n", i, len(buffer)/64*64+128, t.misalignment(i))
		fmt.Fprintf(text, "fread(b%d, 1, %d, stdin);\n", i, len(buffer))
		name := elementName(t.buffer(i).Type, t.namespace())
		arguments = append(arguments, fmt.Sprintf("(%s *)b%d", name, i))
	}
	for _, scalar := range t.scalars {
		arguments = append(arguments, fmt.Sprintf("%dll", scalar))
	}
	arguments = append(arguments, fmt.Sprintf("%dll", t.work()))
	blocks := int64(0)
	parts := t.kernel.Parts
	if parts == nil {
		parts = []int64{t.work()}
	}
	for _, points := range parts {
		blocks += (points + int64(t.source.Items) - 1) / int64(t.source.Items)
	}
	fmt.Fprintf(text, "launch(%d, %d, [] { %s::%s(%s); });\n", blocks, t.source.Threads, t.namespace(), t.source.Symbol, strings.Join(arguments, ", "))
	for i, buffer := range t.buffers {
		fmt.Fprintf(text, "fwrite(b%d, 1, %d, stdout);\n", i, len(buffer))
	}
	fmt.Fprintf(text, "}\n")
}

// elementName returns the element type of a kernel's pointer, in the kernel's namespace.
func elementName(t loop.Type, namespace string) string {
	switch t {
	case loop.Bool:
		return namespace + "::u8"
	case loop.F32:
		return "float"
	case loop.F64:
		return "double"
	}
	return namespace + "::" + t.String()
}

// expect runs the interpreter on the trial's buffers.
func (t *trial) expect() {
	var memories []interpret.Memory
	for i, data := range t.buffers {
		memories = append(memories, &interpret.Bytes{Type: t.buffer(i).Type, Data: data})
	}
	interpret.Run(t.kernel, memories, t.scalars, 0, t.work(), interpret.Options{})
}

// compare checks the program's output, which starts with this trial's buffers, and returns the rest.
func (t *trial) compare(test *testing.T, output []byte) []byte {
	t.expect()
	wrong := 0
	for i, want := range t.buffers {
		typ := t.buffer(i).Type
		wanted, computed := interpret.Bytes{Type: typ, Data: want}, interpret.Bytes{Type: typ, Data: output[:len(want)]}
		for element := range int64(len(want) / typ.Bytes()) {
			if expected, got := wanted.Load(element), computed.Load(element); !t.agree(typ, expected, got) && wrong < 3 {
				wrong++
				test.Errorf("%s: %s[%d] is %v, want %v", t.kernel.Name, t.buffer(i).Name, element, show(typ, got), show(typ, expected))
			}
		}
		output = output[len(want):]
	}
	return output
}

func show(t loop.Type, value loop.Bits) any {
	if t.Is(loop.ClassFloat | loop.ClassStorage) {
		return value.Float()
	}
	return value.Int()
}

// agree allows for the difference between two correct mathematical libraries, and for another order of summation.
func (t *trial) agree(typ loop.Type, wanted, computed loop.Bits) bool {
	if !typ.Is(loop.ClassFloat | loop.ClassStorage) {
		return wanted == computed
	}
	want, got := wanted.Float(), computed.Float()
	if math.IsNaN(want) || math.IsNaN(got) || want == got {
		return math.IsNaN(want) == math.IsNaN(got) && (math.IsNaN(want) || math.Signbit(got) == math.Signbit(want))
	}
	tolerance := map[loop.Type]float64{loop.F64: 1e-13, loop.F32: 4e-7, loop.BF16: 8e-3, loop.F16: 1e-3}[typ]
	least := map[loop.Type]float64{loop.F64: 0, loop.F32: 1e-45, loop.BF16: 1e-40, loop.F16: 1.2e-7}[typ]
	if !t.kernel.Pointwise() {
		tolerance = max(tolerance, 10*map[loop.Type]float64{loop.F32: 1e-6}[typ])
	}
	switch {
	case strings.HasPrefix(t.kernel.Name, "short_"):
		tolerance, least = loop.ShortError, 1e-7 // eager's 1 + erf(x) is no better near 0
	case t.kernel.Name == "op_lgamma": // has zeros, near which only the absolute error is small
		least = tolerance
	case strings.Contains(t.kernel.Name, "sum") || strings.HasPrefix(t.kernel.Name, "ahead") || t.kernel.Name == "inner_dimensions": // terms of size 1 cancel
		least = math.Sqrt(float64(len(t.buffers[0]))) * tolerance
	}
	return math.Abs(want-got) <= tolerance*math.Abs(want)+least
}
