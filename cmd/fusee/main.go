// Command fusee is the compiler behind the Python package of the same name, and the tools around it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(newRootCommand(), os.Stderr))
}

// run executes the command line and returns the status to exit with.
func run(root *cobra.Command, problems io.Writer) int {
	err := root.Execute()
	if err == nil {
		return 0
	}
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	printError(problems, err)
	return 1
}

// newRootCommand returns the command line: one sub-command for each file of this package.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "fusee",
		Short:         "Compile PyTorch functions, and look at what was compiled",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newCacheCommand(), newCompileCUDACommand(), newDisCommand(), newDoctorCommand(), newExplainCommand(), newReasonsCommand(), newReplayCommand(), newServeCommand())
	return root
}

// exitStatus ends the process with a status and without a message: whoever failed has said why.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func isExit(err error) bool {
	var status exitStatus
	return errors.As(err, &status)
}

// printError writes an error as a person reads it: the message, then each hint on a line of its own.
func printError(out io.Writer, err error) {
	fmt.Fprintln(out, "fusee:", err)
	for _, hint := range errors.GetAllHints(err) {
		fmt.Fprintln(out, "  hint:", hint)
	}
}
