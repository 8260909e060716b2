package bytecode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
)

// findPython returns a CPython 3.11, from FUSEE_TEST_PYTHON or PATH, that can import the modules; it skips the test
// where there is none.
func findPython(t *testing.T, modules ...string) string {
	t.Helper()
	check := "import sys; assert sys.version_info[:2] == (3, 11) and sys.implementation.name == 'cpython'\n" +
		"import importlib.util\nassert all(importlib.util.find_spec(name) for name in sys.argv[1:])"
	for _, candidate := range []string{os.Getenv("FUSEE_TEST_PYTHON"), "python3.11", "python3", "python"} {
		if candidate == "" {
			continue
		}
		if exec.Command(candidate, append([]string{"-c", check}, modules...)...).Run() == nil {
			return candidate
		}
	}
	t.Skipf("no CPython 3.11 with %v: set FUSEE_TEST_PYTHON", modules)
	return ""
}

// checkEverything checks what must hold of a marshalled module that CPython wrote.
func checkEverything(data []byte) (codes int, err error) {
	object, err := Unmarshal(data)
	if err != nil {
		return 0, err
	}
	written, err := Marshal(object)
	if err != nil {
		return 0, err
	}
	again, err := Unmarshal(written)
	if err != nil {
		return 0, err
	}
	rewritten, err := Marshal(again)
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(written, rewritten) {
		return 0, fmt.Errorf("marshalling is not stable")
	}
	tree, err := ReadTree(data)
	if err != nil {
		return 0, err
	}
	if copied, err := tree.Write(); err != nil || !bytes.Equal(copied, data) {
		return 0, fmt.Errorf("tree writes other bytes than it was read from: %v", err)
	}
	return checkCodes(object.(*Code))
}

func checkCodes(code *Code) (codes int, err error) {
	if err := checkAssembly(code); err != nil {
		return 0, fmt.Errorf("%s in %s line %d: %w", code.QualName, code.FileName, code.FirstLine, err)
	}
	codes = 1
	for _, constant := range code.Consts {
		if inner, ok := constant.(*Code); ok {
			more, err := checkCodes(inner)
			codes += more
			if err != nil {
				return codes, err
			}
		}
	}
	return codes, nil
}

func checkAssembly(code *Code) error {
	listing, err := Decode(code)
	if err != nil {
		return err
	}
	if err := listing.Verify(); err != nil {
		return err
	}
	assembled, err := listing.Assemble()
	if err != nil {
		return err
	}
	switch {
	case !bytes.Equal(assembled.Code, code.Code):
		return fmt.Errorf("code differs")
	case !bytes.Equal(assembled.LineTable, code.LineTable):
		return fmt.Errorf("location table differs:\n%x\n%x", code.LineTable, assembled.LineTable)
	case !bytes.Equal(assembled.ExceptionTable, code.ExceptionTable):
		return fmt.Errorf("exception table differs:\n%x\n%x", code.ExceptionTable, assembled.ExceptionTable)
	case assembled.StackSize != code.StackSize:
		return fmt.Errorf("stack size is %d, not %d", assembled.StackSize, code.StackSize)
	}
	return nil
}

func TestLibrariesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, library := range []string{"stdlib", "torch"} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			var python string
			if library == "torch" {
				python = findPython(t, "torch")
			} else {
				python = findPython(t)
			}
			command := exec.Command(python, "-W", "ignore", "testdata/dump_code.py", library)
			command.Stderr = os.Stderr
			output, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			modules, codes := checkStream(t, output)
			if err := command.Wait(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d modules, %d code objects", modules, codes)
			if codes < 10000 {
				t.Errorf("only %d code objects of %s were found", codes, library)
			}
		})
	}
}

// checkStream checks every module of what testdata/dump_code.py writes.
func checkStream(t *testing.T, stream io.Reader) (modules, codes int) {
	t.Helper()
	work := make(chan []byte, 16)
	var lock sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for data := range work {
				count, err := checkEverything(data)
				lock.Lock()
				modules++
				codes += count
				if err != nil {
					t.Error(err)
				}
				lock.Unlock()
			}
		})
	}
	var header [4]byte
	for {
		if _, err := io.ReadFull(stream, header[:]); err != nil {
			break
		}
		data := make([]byte, binary.LittleEndian.Uint32(header[:]))
		if _, err := io.ReadFull(stream, data); err != nil {
			t.Errorf("stream ends early: %v", err)
			break
		}
		work <- data
	}
	close(work)
	workers.Wait()
	return modules, codes
}
