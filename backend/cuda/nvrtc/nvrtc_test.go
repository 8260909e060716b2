package nvrtc_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/backend/cuda/internal/find"
	"fusee/backend/cuda/nvrtc"
)

func open(t *testing.T, limit int) *nvrtc.Library {
	t.Helper()
	library, err := nvrtc.Open(find.NVRTC(t), limit)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return library
}

const twice = `extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }`

// symbols lists the functions that a cubin defines.
func symbols(t *testing.T, image []byte) []string {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatalf("not an ELF image: %v", err)
	}
	found, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, symbol := range found {
		if elf.ST_TYPE(symbol.Info) == elf.STT_FUNC {
			names = append(names, symbol.Name)
		}
	}
	return names
}

func TestCompileGivesACubinPerArchitecture(t *testing.T) {
	library := open(t, 2)
	var programs []nvrtc.Program
	for _, architecture := range []string{"sm_80", "sm_90", "sm_100"} {
		programs = append(programs, nvrtc.Program{Name: "twice.cu", Source: twice, Architecture: architecture, NoCache: true})
	}
	var images [][]byte
	for i, result := range library.CompileAll(programs) {
		if result.Err != nil {
			t.Fatalf("%s: %+v", programs[i].Architecture, result.Err)
		}
		if names := symbols(t, result.Image); !slices.Contains(names, "twice") {
			t.Errorf("%s: defines %v, want twice", programs[i].Architecture, names)
		}
		images = append(images, result.Image)
	}
	if bytes.Equal(images[0], images[1]) || bytes.Equal(images[1], images[2]) {
		t.Error("two architectures share one image")
	}
}

func TestCompileIsDeterministic(t *testing.T) {
	library := open(t, 1)
	program := nvrtc.Program{Name: "twice.cu", Source: twice, Architecture: "sm_90", NoCache: true}
	first, err := library.Compile(program)
	if err != nil {
		t.Fatal(err)
	}
	second, err := library.Compile(program)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second image differs (error %v)", err)
	}
}

func TestAMistakeIsExplained(t *testing.T) {
	_, err := open(t, 1).Compile(nvrtc.Program{Name: "bad.cu", Source: "\n__global__ void k() { missing(); }", Architecture: "sm_90"})
	if err == nil {
		t.Fatal("wrong source compiled")
	}
	details := strings.Join(errors.GetAllDetails(err), "\n")
	for _, want := range []string{"bad.cu(2)", `"missing" is undefined`, "   2  __global__ void k()", "--gpu-architecture=sm_90"} {
		if !strings.Contains(details, want) {
			t.Errorf("details lack %q:\n%s", want, details)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	library := open(t, 1)
	for name, program := range map[string]nvrtc.Program{
		"an unknown architecture":   {Name: "k.cu", Source: twice, Architecture: "sm_1"},
		"an option as architecture": {Name: "k.cu", Source: twice, Architecture: "sm_90 --bogus"},
		"a NUL byte":                {Name: "k.cu", Source: twice + "\x00", Architecture: "sm_90"},
	} {
		if _, err := library.Compile(program); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestArchitectures(t *testing.T) {
	architectures := open(t, 1).Architectures()
	if !slices.IsSorted(architectures) || !slices.Contains(architectures, 80) || !slices.Contains(architectures, 90) {
		t.Errorf("architectures are %v", architectures)
	}
}

func TestANewerArchitectureGetsPTX(t *testing.T) {
	library := open(t, 1)
	architectures := library.Architectures()
	newest := architectures[len(architectures)-1]
	image, err := library.Compile(nvrtc.Program{Name: "twice.cu", Source: twice, Architecture: fmt.Sprintf("sm_%d", newest+5)})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	if !strings.Contains(string(image), fmt.Sprintf(".target sm_%d", newest)) || !strings.Contains(string(image), ".entry twice") {
		t.Errorf("not PTX for sm_%d:\n%.400s", newest, image)
	}
}

func TestOpenFails(t *testing.T) {
	if _, err := nvrtc.Open(filepath.Join(t.TempDir(), "libnvrtc.so"), 1); err == nil {
		t.Error("a missing file is loaded")
	}
	_, err := nvrtc.Open("libc.so.6", 1)
	if err == nil || !strings.Contains(err.Error(), "not an NVRTC") {
		t.Errorf("libc as NVRTC: %v", err)
	}
}

func TestVersionOrder(t *testing.T) {
	for _, row := range []struct {
		version      nvrtc.Version
		major, minor int
		want         bool
	}{{nvrtc.Version{Major: 12, Minor: 9}, 12, 9, true}, {nvrtc.Version{Major: 12, Minor: 8}, 12, 9, false},
		{nvrtc.Version{Major: 13, Minor: 0}, 12, 9, true}, {nvrtc.Version{Major: 11, Minor: 9}, 12, 4, false}} {
		if got := row.version.AtLeast(row.major, row.minor); got != row.want {
			t.Errorf("%v at least %d.%d = %v", row.version, row.major, row.minor, got)
		}
	}
}
