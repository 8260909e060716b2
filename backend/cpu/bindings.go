package cpu

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// bindings are the functions of libllvmlite that compiling needs. Handles are opaque pointers of the library.
type bindings struct {
	setOption            func(program, option string)
	initializeTarget     func() int32
	initializeAsmPrinter func() int32
	defaultTriple        func(**byte)
	targetFromTriple     func(string, **byte) uintptr
	createMachine        func(target uintptr, triple, cpu, features string, optimisation int32, relocation, codeModel string, printCode, jit int32, abi string) uintptr
	createDataLayout     func(uintptr) uintptr
	disposeDataLayout    func(uintptr)
	copyDataLayout       func(uintptr, **byte)
	createContext        func() uintptr
	disposeContext       func(uintptr)
	parse                func(context uintptr, text string, message **byte) uintptr
	verify               func(module uintptr, message **byte) int32
	setTriple            func(uintptr, string)
	setDataLayout        func(uintptr, string)
	emit                 func(machine, module uintptr, object int32, message **byte) uintptr
	bufferStart          func(uintptr) *byte
	bufferSize           func(uintptr) uintptr
	disposeBuffer        func(uintptr)
	disposeModule        func(uintptr)
	disposeString        func(*byte)
}

// load opens the library and looks every function up.
func (b *bindings) load(path string) error {
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	for name, function := range b.symbols() {
		address, err := purego.Dlsym(library, "LLVMPY_"+name)
		if err != nil {
			return err
		}
		purego.RegisterFunc(function, address)
	}
	return nil
}

func (b *bindings) symbols() map[string]any {
	return map[string]any{
		"SetCommandLine":             &b.setOption,
		"InitializeNativeTarget":     &b.initializeTarget,
		"InitializeNativeAsmPrinter": &b.initializeAsmPrinter,
		"GetDefaultTargetTriple":     &b.defaultTriple,
		"GetTargetFromTriple":        &b.targetFromTriple,
		"CreateTargetMachine":        &b.createMachine,
		"CreateTargetMachineData":    &b.createDataLayout,
		"DisposeTargetData":          &b.disposeDataLayout,
		"CopyStringRepOfTargetData":  &b.copyDataLayout,
		"ContextCreate":              &b.createContext,
		"ContextDispose":             &b.disposeContext,
		"ParseAssembly":              &b.parse,
		"VerifyModule":               &b.verify,
		"SetTarget":                  &b.setTriple,
		"SetDataLayout":              &b.setDataLayout,
		"TargetMachineEmitToMemory":  &b.emit,
		"GetBufferStart":             &b.bufferStart,
		"GetBufferSize":              &b.bufferSize,
		"DisposeMemoryBuffer":        &b.disposeBuffer,
		"DisposeModule":              &b.disposeModule,
		"DisposeString":              &b.disposeString,
	}
}

// take copies a string that the library allocated and frees it.
func (b *bindings) take(text *byte) string {
	if text == nil {
		return ""
	}
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(text), length)) != 0 {
		length++
	}
	result := string(unsafe.Slice(text, length))
	b.disposeString(text)
	return result
}
