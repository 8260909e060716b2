package cuda_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fusee/backend/cuda"
	"fusee/backend/cuda/internal/find"
	"fusee/backend/cuda/nvrtc"
	"fusee/backend/loop"
)

var exportTo = flag.String("export", "", "directory to write compiled trials to, for tests/cuda on a machine with a GPU")
var exportFor = flag.String("architecture", "sm_90", "architecture of the exported trials")

// exported describes a trial to tests/cuda/test_cuda_kernels.py.
type exported struct {
	Name, Symbol    string
	Threads, Blocks int64
	Shift           int // elements by which pointers are off
	Buffers         []exportedBuffer
	Scalars         []int64
	Work            int64
	Pointwise       bool
}

type exportedBuffer struct {
	Name, Type, Mode string
	Bytes            int
	Shift            int // bytes
}

// TestExport writes every trial with a cubin, its inputs and what the interpreter makes of them.
func TestExport(t *testing.T) {
	if *exportTo == "" {
		t.Skip("nothing to export: -export DIR writes the trials for a machine with a GPU")
	}
	library, err := nvrtc.Open(find.NVRTC(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	compiler := cuda.Compiler{Library: library, Architecture: *exportFor}
	var all []exported
	for _, trial := range trials(t) {
		all = append(all, trial.export(t, &compiler))
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	save(t, "trials.json", text)
}

func save(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(*exportTo, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (t *trial) export(test *testing.T, compiler *cuda.Compiler) exported {
	compiled, err := compiler.Compile([]*loop.Kernel{t.kernel})
	if err != nil {
		test.Fatal(err)
	}
	name := t.kernel.Name
	if t.shift > 0 {
		name += "_shifted"
	}
	result := exported{
		Name: name, Symbol: t.source.Symbol, Threads: int64(t.source.Threads), Shift: t.shift, Scalars: t.scalars, Work: t.work(),
		Blocks: (t.work() + int64(t.source.Items) - 1) / int64(t.source.Items), Pointwise: t.kernel.Pointwise(),
	}
	for i, buffer := range t.kernel.Buffers {
		result.Buffers = append(result.Buffers, exportedBuffer{buffer.Name, buffer.Type.String(), buffer.Mode.String(), len(t.buffers[i]), t.misalignment(i)})
	}
	save(test, name+".cubin", compiled[0].Image)
	// What is written counts too: a masked store leaves some of it as it was.
	save(test, name+".in", join(t.buffers, func(loop.Buffer) bool { return true }, t.kernel))
	t.expect()
	save(test, name+".out", join(t.buffers, func(buffer loop.Buffer) bool { return buffer.Mode != loop.Read }, t.kernel))
	return result
}

// join concatenates the buffers that keep chooses.
func join(buffers [][]byte, keep func(loop.Buffer) bool, kernel *loop.Kernel) []byte {
	var all []byte
	for i, buffer := range buffers {
		if keep(kernel.Buffers[i]) {
			all = append(all, buffer...)
		}
	}
	return all
}

// trials returns a run of every kernel that fits in memory, and one on misaligned pointers of those where that matters.
func trials(t *testing.T) []*trial {
	t.Helper()
	var result []*trial
	for _, kernel := range corpus() {
		if work, static := kernel.Work(); static && work >= 1<<20 {
			continue
		}
		result = append(result, newTrial(t, kernel, 0))
		if !strings.HasPrefix(kernel.Name, "op_") && !strings.HasPrefix(kernel.Name, "cast_") {
			result = append(result, newTrial(t, kernel, 1))
		}
	}
	return result
}
