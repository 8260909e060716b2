package service

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"fusee/bytecode"
	"fusee/trace"
)

func described(kind, device string) bytecode.Object {
	metadata := bytecode.Tuple{"float32", device, bytecode.Tuple{int64(4)}, bytecode.Tuple{int64(1)}, int64(0), false, int64(0), int64(1), int64(0), bytecode.Tuple{}}
	return bytecode.Tuple{int64(1), kind, int64(0), metadata}
}

func TestRequestsThatMentionAGPU(t *testing.T) {
	list := func(items ...bytecode.Object) bytecode.Object {
		return dict("descriptions", &bytecode.List{Items: items})
	}
	for _, row := range []struct {
		name    string
		request bytecode.Object
		want    bool
	}{
		{"a tensor on a GPU", list(described("tensor", "cpu"), described("tensor", "cuda:1")), true},
		{"a tensor on the CPU", list(described("tensor", "cpu")), false},
		{"another object", list(described("opaque", "cuda:0")), false},
		{"nonsense", list(int64(1), bytecode.Tuple{}, bytecode.Tuple{int64(1), "tensor", int64(0), bytecode.None}), false},
		{"nothing", dict(), false},
	} {
		if got := mentionsGPU(row.request); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// starts writes a program that notes each start and its arguments, and gives a function that waits for as many lines as are wanted.
func starts(t *testing.T) (program string, lines func(want int) []string) {
	t.Helper()
	folder := t.TempDir()
	program, notes := filepath.Join(folder, "program"), filepath.Join(folder, "notes")
	if err := os.WriteFile(program, []byte(fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %q\n", notes)), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, func(want int) []string {
		var found []string
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(notes)
			if found = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"); len(found) >= want && found[0] != "" {
				break
			}
			if want == 0 {
				break
			}
		}
		return found
	}
}

// TestWorkersAreStartedAheadWhereKernelsWillBeNeeded has a request mention tensors and counts the processes that it starts.
func TestWorkersAreStartedAheadWhereKernelsWillBeNeeded(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(9))
	for _, row := range []struct {
		name, device, architecture, library string
		want                                int
	}{
		{"a tensor on a GPU", "cuda:0", "sm_90", "/no/libnvrtc.so", 2},
		{"a tensor on the CPU", "cpu", "sm_90", "/no/libnvrtc.so", 0},
		{"no GPU in use", "cuda:0", "", "/no/libnvrtc.so", 0},
		{"no NVRTC", "cuda:0", "sm_90", "", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			program, lines := starts(t)
			request := dict("function", int64(1), "state", dict("cuda_arch", row.architecture), "descriptions", &bytecode.List{Items: []bytecode.Object{described("tensor", row.device)}})
			h := &host{messages: []trace.Message{{"hello", dict("cache_dir", "", "llvm", "", "nvrtc", row.library)}, {"compile", request}}}
			s := New("1.2", h)
			s.UseWorkers(program)
			for len(h.messages) > 0 {
				message, _ := h.Receive()
				s.reply(message)
			}
			found := lines(row.want)
			s.generators.close()
			if row.want == 0 && found[0] == "" {
				return
			}
			if wanted := WorkerCommand + " --library " + row.library + " " + row.architecture; len(found) != row.want || found[0] != wanted {
				t.Errorf("started %q", found)
			}
		})
	}
}

func TestAWarmCacheStartsNoWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(9))
	program, lines := starts(t)
	folder := t.TempDir()
	hello := dict("cache_dir", folder, "llvm", "", "nvrtc", "/no/libnvrtc.so")
	cold := newEmitters(hello, "").(*emitters)
	if err := cold.cache.Put([32]byte{1}, []byte("a kernel")); err != nil {
		t.Fatal(err)
	}
	warm := newEmitters(hello, program)
	warm.foresee("sm_90")
	time.Sleep(100 * time.Millisecond)
	if found := lines(0); found[0] != "" {
		t.Errorf("started %q", found)
	}
	warm.close()
}
