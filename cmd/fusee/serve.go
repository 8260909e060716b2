package main

import (
	"os"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/cmd/fusee/internal/service"
	"fusee/trace"
)

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
			stream := os.NewFile(uintptr(descriptor), "host")
			if stream == nil {
				return errors.Newf("descriptor %d is not open", descriptor)
			}
			return service.New(version, trace.NewConnection(stream)).Run()
		},
	}
	command.Flags().IntVar(&descriptor, "fd", descriptor, "descriptor of the socket to the Python process")
	return command
}
