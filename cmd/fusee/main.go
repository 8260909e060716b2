// Command fusee is the compiler behind the Python package of the same name, and the tools around it.
package main

import (
	"fmt"
	"os"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"
)

func main() {
	if err := newRootCommand().Execute(); err != nil {
		printError(err)
		os.Exit(1)
	}
}

// newRootCommand returns the command line: one sub-command per file of this package.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "fusee",
		Short:         "Compile PyTorch functions, and look at what was compiled",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand()
	return root
}

// printError writes an error as a person reads it: the message, then every hint on a line of its own.
func printError(err error) {
	fmt.Fprintln(os.Stderr, "fusee:", err)
	for _, hint := range errors.GetAllHints(err) {
		fmt.Fprintln(os.Stderr, "  hint:", hint)
	}
}
