package cpu

import (
	"runtime"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/cpu"
)

// Target is the instruction set that kernels are compiled for, one of the x86-64 micro-architecture levels of the System V ABI
// supplement. A level rather than the machine's own model keeps compiled kernels valid on every machine of the level, and is
// known without loading LLVM.
type Target struct {
	Name        string // LLVM's name of the level
	VectorBytes int    // width of a vector register
	VectorMath  bool   // the C library has vector variants of mathematical functions
	masks       bool   // instructions leave lanes out, and vscalefps is there: AVX-512
	mangling    byte   // letter of the level in the vector function ABI's names
}

func targets() []Target {
	return []Target{
		{"x86-64-v2", 16, true, false, 'b'},
		{"x86-64-v3", 32, true, false, 'd'},
		{"x86-64-v4", 64, true, true, 'e'},
	}
}

// TargetNamed finds a target by LLVM's name of the level.
func TargetNamed(name string) (Target, bool) {
	for _, target := range targets() {
		if target.Name == name {
			return target, true
		}
	}
	return Target{}, false
}

// HostTarget returns the highest level this machine has; false when there is none that kernels can be emitted for.
func HostTarget() (Target, bool) {
	if runtime.GOARCH != "amd64" {
		return Target{}, false
	}
	x86 := cpu.X86
	v2 := x86.HasSSE42 && x86.HasPOPCNT && x86.HasSSSE3
	v3 := v2 && x86.HasAVX2 && x86.HasFMA && x86.HasBMI2
	v4 := v3 && x86.HasAVX512F && x86.HasAVX512BW && x86.HasAVX512CD && x86.HasAVX512DQ && x86.HasAVX512VL
	target := targets()[0]
	switch {
	case v4:
		target = targets()[2]
	case v3:
		target = targets()[1]
	}
	target.VectorMath = hasVectorMath()
	return target, v2
}

// hasVectorMath looks for a function that glibc's libmvec has since version 2.35.
func hasVectorMath() bool {
	library, err := purego.Dlopen("libmvec.so.1", purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return false
	}
	_, err = purego.Dlsym(library, "_ZGVdN4v_tanh")
	return err == nil
}
