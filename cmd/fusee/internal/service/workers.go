package service

import (
	"os/exec"
	"runtime"
	"strings"
	"time"

	"fusee/backend/cuda/workers"
	"fusee/bytecode"
	"fusee/trace"
)

// WorkerCommand is the command of this program that compiles CUDA C for it in another process.
const WorkerCommand = "compile-cuda"

const (
	threadsOfAProcess    = 4  // more mostly wait for NVRTC's lock
	processorsOfAProcess = 3  // which keep so many threads busy
	mostWorkers          = 5  // beside the own process
	worthWorkers         = 12 // kernels that take the own process longer than workers take to start
	workerPatience       = 30 * time.Second
	workerIdle           = 30 * time.Second
)

// newWorkers makes the pool of processes that help compiling for one architecture, as many as there are processors for. They run
// program, which is none where nobody may be started.
func newWorkers(program, library, architecture string) *workers.Pool {
	count := 0
	if program != "" {
		count = min((runtime.GOMAXPROCS(0)-1)/processorsOfAProcess, mostWorkers)
	}
	return workers.New(workers.Config{
		Command:  func() *exec.Cmd { return exec.Command(program, WorkerCommand, "--library", library, architecture) },
		Workers:  count,
		Threads:  threadsOfAProcess,
		Patience: workerPatience,
		Idle:     workerIdle,
	})
}

// mentionsGPU tells requests that describe a tensor on a GPU.
func mentionsGPU(request bytecode.Object) bool {
	for _, item := range trace.Items(trace.Field(request, "descriptions")) {
		fields, _ := item.(bytecode.Tuple)
		if len(fields) != 4 || fields[1] != bytecode.Object("tensor") {
			continue
		}
		metadata, _ := fields[3].(bytecode.Tuple)
		if len(metadata) < 2 {
			continue
		}
		if device, _ := metadata[1].(string); strings.HasPrefix(device, "cuda") {
			return true
		}
	}
	return false
}
