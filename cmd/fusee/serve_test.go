package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTheSocketIsNotPassedOn has the compiler serve, and looks whether processes that it starts would hold its socket open.
func TestTheSocketIsNotPassedOn(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	closes := make(chan bool, 1)
	go func() {
		defer syscall.Close(pair[0])
		for range 2000 {
			flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(pair[1]), syscall.F_GETFD, 0)
			if flags&syscall.FD_CLOEXEC != 0 {
				closes <- true
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		closes <- false
	}()
	status, _, problems := command("serve", "--fd", strconv.Itoa(pair[1]))
	if !<-closes || status != 0 {
		t.Errorf("status %d, %s", status, problems)
	}
}

func TestAWorkerWithoutNVRTCSaysSo(t *testing.T) {
	status, output, problems := command("compile-cuda", "--library", "/nowhere/libnvrtc.so", "sm_90")
	if status != 1 || output != "" || !strings.Contains(problems, "cannot load NVRTC") {
		t.Errorf("status %d, %q, %q", status, output, problems)
	}
}
