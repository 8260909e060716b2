package main

import (
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/cmd/fusee/internal/service"
	"fusee/trace"
)

const maxStack = 128 << 20 // bytes of one goroutine

// gcPercent lets the heap grow to five times what is in use, 16 MiB at least, before it is collected: most compilations then end without a
// collection, and what they leave is small.
const gcPercent = 400

// ownProgram is what this process runs, even where its file has been replaced since.
const ownProgram = "/proc/self/exe"

// newServeCommand returns the command that the Python package starts: it compiles for the process at the other end of a socket.
func newServeCommand() *cobra.Command {
	descriptor := -1
	command := &cobra.Command{
		Use:    "serve --fd N",
		Short:  "Compile for the Python process that started this one",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if descriptor < 0 {
				return errors.WithHint(errors.New("serve needs the descriptor of a socket"), "it is started by the Python package; run a program that calls fusee.compile")
			}
			// A runaway recursion ends the process early instead of filling memory; the program then runs on in plain Python.
			debug.SetMaxStack(maxStack)
			debug.SetGCPercent(gcPercent)
			syscall.CloseOnExec(descriptor) // the host must see it close when this process ends, whoever that started
			stream := os.NewFile(uintptr(descriptor), "host")
			if stream == nil {
				return errors.Newf("descriptor %d is not open", descriptor)
			}
			go endWithHost(os.Getppid())
			server := service.New(version, trace.NewConnection(stream))
			server.UseWorkers(ownProgram)
			return server.Run()
		},
	}
	command.Flags().IntVar(&descriptor, "fd", descriptor, "descriptor of the socket to the Python process")
	return command
}

// endWithHost ends this process once the one that started it is gone, which a long compile would not notice by its socket.
func endWithHost(host int) {
	for os.Getppid() == host {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}
