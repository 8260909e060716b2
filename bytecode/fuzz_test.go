package bytecode

import (
	"bytes"
	"io"
	"testing"
)

// FuzzUnmarshal checks that any input gives an error or an object that survives being written, and that whatever
// Unmarshal accepts ReadTree accepts.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("\xe9\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		object, err := Unmarshal(data)
		if err != nil {
			return
		}
		written, err := Marshal(object)
		if err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		again, err := Unmarshal(written)
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if rewritten, err := Marshal(again); err != nil || !bytes.Equal(written, rewritten) {
			t.Fatalf("writes %x and then %x, %v", written, rewritten, err)
		}
		checkTree(t, data)
		if len(written) < 1<<16 {
			_, _ = Repr(object)
		}
		if code, ok := object.(*Code); ok {
			_ = Disassemble(io.Discard, code)
			checkStableAssembly(t, code)
		}
	})
}

// FuzzReadTree checks that any input gives an error or a tree that writes the same bytes.
func FuzzReadTree(f *testing.F) {
	f.Add([]byte("\xe9\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if tree, err := ReadTree(data); err == nil {
			if written, err := tree.Write(); err != nil || !bytes.Equal(written, data) {
				t.Fatalf("%x writes %x, %v", data, written, err)
			}
		}
	})
}

// FuzzDecode checks that any code gives an error or a listing whose assembly is stable.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{byte(LoadConst), 0, byte(ReturnValue), 0}, []byte{0x80, 0}, []byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, code, lines, exceptions []byte, flags uint32) {
		object := plainCode(code...)
		object.LineTable, object.ExceptionTable, object.Flags = lines, exceptions, CodeFlags(flags)
		_ = Disassemble(io.Discard, object)
		checkStableAssembly(t, object)
	})
}

func checkStableAssembly(t *testing.T, code *Code) {
	listing, err := Decode(code)
	if err != nil {
		return
	}
	first, err := listing.Assemble()
	if err != nil {
		return
	}
	again, err := Decode(first)
	if err != nil {
		t.Fatalf("cannot decode what was assembled: %v", err)
	}
	second, err := again.Assemble()
	if err != nil {
		t.Fatalf("cannot assemble it again: %v", err)
	}
	if !bytes.Equal(first.Code, second.Code) || !bytes.Equal(first.LineTable, second.LineTable) ||
		!bytes.Equal(first.ExceptionTable, second.ExceptionTable) || first.StackSize != second.StackSize {
		t.Fatalf("assembly is not stable:\n%+v\n%+v", first, second)
	}
}
