package wasm

import (
	"context"
	"testing"

	"fusee/backend/internal/kerneltest"
)

// runCase runs a case's kernel as WebAssembly and returns its buffers.
func runCase(t *testing.T, runtime *Runtime, c *kerneltest.Case) [][]byte {
	t.Helper()
	buffers, err := tryCase(t, runtime, c)
	if err != nil {
		t.Fatalf("%s: %v\n%s", c.Name, err, c.Kernel)
	}
	return buffers
}

// tryCase is runCase for a kernel that may fail.
func tryCase(t *testing.T, runtime *Runtime, c *kerneltest.Case) ([][]byte, error) {
	t.Helper()
	ctx := context.Background()
	kernel, err := runtime.Load(ctx, Emit(c.Kernel))
	if err != nil {
		t.Fatalf("%s: %v\n%s", c.Name, err, c.Kernel)
	}
	defer func() { _ = kernel.Close(ctx) }()
	buffers := c.Copy()
	pointers := make([]uint32, len(buffers))
	for index, buffer := range buffers {
		if pointers[index], err = runtime.Allocate(int64(len(buffer))); err != nil || !runtime.Write(pointers[index], buffer) {
			t.Fatalf("%s: placing buffer %d: %v", c.Name, index, err)
		}
	}
	if err := kernel.Run(ctx, pointers, c.Scalars, 0, c.Work); err != nil {
		return nil, err
	}
	for index, buffer := range buffers {
		buffers[index], _ = runtime.Read(pointers[index], uint32(len(buffer)))
	}
	return buffers, nil
}

func TestIndexOutOfRangeFails(t *testing.T) {
	ctx := context.Background()
	runtime, err := NewRuntime(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = runtime.Close(ctx) }()
	c := kerneltest.OutOfRange()
	if _, err := tryCase(t, runtime, &c); err == nil {
		t.Error("reads past the end of the table")
	}
	if c.Succeeds() {
		t.Error("the interpreter reads past the end of the table")
	}
}

func TestAgreesWithInterpreterBitForBit(t *testing.T) {
	ctx := context.Background()
	runtime, err := NewRuntime(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = runtime.Close(ctx) }()
	for _, c := range kerneltest.All() {
		if err := c.Kernel.Verify(); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if difference := c.Compare(runCase(t, runtime, &c), c.Interpret(), 0); difference != "" {
			t.Errorf("%s\n%s", difference, c.Kernel)
		}
	}
}
