package main

import (
	"os"

	"github.com/spf13/cobra"

	"fusee/backend/cuda/nvrtc"
	"fusee/backend/cuda/workers"
	"fusee/cmd/fusee/internal/service"
)

// newCompileCUDACommand returns the command that serve starts several of: it compiles CUDA C for the process at the other end of
// its standard input and output.
func newCompileCUDACommand() *cobra.Command {
	var library string
	command := &cobra.Command{
		Use:    service.WorkerCommand + " --library PATH [ARCHITECTURE]",
		Short:  "Compile CUDA C for the compiler that started this process",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, architectures []string) error {
			compiler, err := nvrtc.Open(library, 0)
			if err != nil {
				return err
			}
			for _, architecture := range architectures {
				go compiler.Warm(architecture)
			}
			return workers.Serve(os.Stdin, os.Stdout, compiler.Compile)
		},
	}
	command.Flags().StringVar(&library, "library", library, "path of NVRTC")
	return command
}
