package main

import (
	"fmt"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/symbolic"
)

// reason is a row of the table of break reasons as JSON.
type reason struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
	Example string `json:"example"`
}

func newReasonsCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "reasons [ID]",
		Short: "List why graphs break, or explain one reason",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			chosen, err := reasonsFor(arguments)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(command.OutOrStdout(), chosen)
			}
			printReasons(command, chosen)
			return nil
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON")
	return command
}

// reasonsFor returns the whole table, or the row that is asked for.
func reasonsFor(ids []string) ([]reason, error) {
	var chosen []reason
	for _, row := range symbolic.Reasons() {
		if len(ids) == 0 || row.ID == ids[0] {
			chosen = append(chosen, reason{row.ID, row.Message, row.Hint, row.Example})
		}
	}
	if len(chosen) == 0 {
		err := errors.Newf("no reason has the id %s", ids[0])
		return nil, errors.WithHint(err, "`fusee reasons` lists all of them")
	}
	return chosen, nil
}

func printReasons(command *cobra.Command, chosen []reason) {
	out := command.OutOrStdout()
	for _, row := range chosen {
		fmt.Fprintf(out, "%s: %s\n  hint: %s\n  example: %s\n", row.ID, row.Message, row.Hint, row.Example)
	}
}
