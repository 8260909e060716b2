package backend

import (
	"cmp"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/errors"

	"fusee/backend/cache"
	"fusee/backend/cpu"
	"fusee/backend/loop"
)

// CPUEmitter makes object files of loop kernels, keeping them in a disk cache. Kernels that the cache holds need no LLVM at all.
type CPUEmitter struct {
	Toolchain *cpu.Toolchain
	Target    cpu.Target
	Cache     *cache.Cache // nil keeps nothing
}

// Emit implements Emitter. Kernels that are not cached compile in parallel.
func (e *CPUEmitter) Emit(kernels []*loop.Kernel) ([]Image, error) {
	images, failures := make([]Image, len(kernels)), make([]error, len(kernels))
	var group sync.WaitGroup
	for index, kernel := range kernels {
		group.Go(func() { images[index], failures[index] = e.emit(kernel) })
	}
	group.Wait()
	return images, cmp.Or(failures...)
}

func (e *CPUEmitter) emit(kernel *loop.Kernel) (Image, error) {
	image := Image{Source: cpu.Emit(kernel, e.Target)}
	key := cache.KeyOf([]byte("cpu object"), []byte(cpu.Version), []byte(fmt.Sprint(e.Target)), []byte(e.toolchain()), []byte(image.Source))
	if code, ok := e.Cache.Get(key); ok {
		image.Code = code
		return image, nil
	}
	if err := e.Toolchain.Wait(); err != nil {
		return Image{}, err // of no kernel in particular
	}
	code, err := e.Toolchain.Compile(image.Source, e.Target)
	if err != nil {
		return Image{}, errors.Wrapf(err, "compiling kernel %s", kernel.Name)
	}
	image.Code = code
	if err := e.Cache.Put(key, code); err != nil {
		image.Warnings = append(image.Warnings, err.Error())
	}
	return image, nil
}

// toolchain identifies the LLVM library by what tells builds of it apart without reading it.
func (e *CPUEmitter) toolchain() string {
	info, err := os.Stat(e.Toolchain.Path())
	if err != nil {
		return "none"
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}
