package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/backend/cache"
	"fusee/cmd/fusee/internal/python"
	"fusee/cmd/fusee/internal/report"
)

// check is one line of the doctor's findings, as section 8 of docs/contracts.md describes it.
type check struct {
	Name   string `json:"name"`
	State  state  `json:"state"`
	Detail string `json:"detail"`
	Advice string `json:"advice"`
}

// state says how serious a finding is.
type state string

const (
	stateOK      state = "ok"
	stateNote    state = "note"    // fusee works without it
	stateMissing state = "missing" // fusee cannot compile without it
)

func newDoctorCommand() *cobra.Command {
	var interpreter string
	var asJSON bool
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Show versions, what was found on this machine, and what is missing",
		Long: "Shows the versions of everything that takes part in a compilation, what was found on this machine, and what\n" +
			"to do about what is missing. Ends with status 1 if fusee cannot compile.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			checks := diagnose(interpreter)
			if asJSON {
				if err := writeJSON(command.OutOrStdout(), map[string]any{"checks": checks}); err != nil {
					return err
				}
			} else {
				printChecks(command.OutOrStdout(), checks)
			}
			return verdict(checks)
		},
	}
	command.Flags().StringVar(&interpreter, "python", "", "the Python interpreter to ask (default: the one fusee is installed for)")
	command.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return command
}

// diagnose collects the findings in the order in which a compilation needs the parts.
func diagnose(interpreter string) []check {
	checks := []check{{Name: "fusee", State: stateOK, Detail: fmt.Sprintf("%s, built with %s", version, runtime.Version())}}
	checks = append(checks, askPython(interpreter)...)
	return append(checks, checkCache())
}

// askPython runs the package's own doctor, since only Python sees what torch offers.
func askPython(wanted string) []check {
	interpreter, err := python.Find(wanted)
	if err != nil {
		return []check{{Name: "Python", State: stateMissing, Detail: err.Error(), Advice: strings.Join(errors.GetAllHints(err), "; ")}}
	}
	checks, err := runDoctor(interpreter)
	if err != nil {
		return []check{{
			Name: "Python package", State: stateMissing, Detail: fmt.Sprintf("%s: %v", interpreter, err),
			Advice: "install fusee for this interpreter (pip install .), or name another one with --python",
		}}
	}
	return checks
}

func runDoctor(interpreter string) ([]check, error) {
	program := exec.Command(interpreter, "-m", "fusee._doctor")
	var problems strings.Builder
	program.Stderr = &problems
	output, err := program.Output()
	if err != nil {
		return nil, errors.Newf("%s", lastLine(problems.String(), err.Error()))
	}
	var found struct {
		Checks []check `json:"checks"`
	}
	if err := json.Unmarshal([]byte(lastLine(string(output), "")), &found); err != nil {
		return nil, errors.Wrap(err, "the package's answer is not JSON")
	}
	return found.Checks, nil
}

// lastLine returns the last line of a text, where Python puts the exception, or the alternative for an empty text.
func lastLine(text, alternative string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return alternative
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// checkCache says where compiled code is kept and whether it can be written there.
func checkCache() check {
	folder, err := cacheFolder()
	if err == nil {
		err = writable(folder)
	}
	if err != nil {
		advice := strings.Join(append(errors.GetAllHints(err), "without a cache every process compiles anew"), "; ")
		return check{Name: "disk cache", State: stateNote, Detail: err.Error(), Advice: advice}
	}
	detail := folder
	if held, err := usageOf(folder); err == nil {
		detail += ", " + held.String()
	}
	return check{Name: "disk cache", State: stateOK, Detail: detail}
}

// writable opens the cache, which makes the folder where there is none, and tries to write a file in it.
func writable(folder string) error {
	if _, err := cache.Open(folder, math.MaxInt64); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, "doctor-")
	if err != nil {
		return errors.Wrap(err, "no disk cache")
	}
	return errors.CombineErrors(file.Close(), os.Remove(file.Name()))
}

func printChecks(out io.Writer, checks []check) {
	rows := make([]report.Row, len(checks))
	for i, c := range checks {
		rows[i] = report.Row{Name: c.Name, Mark: marks(c.State), Text: c.Detail, Advice: c.Advice}
	}
	_ = report.WriteRows(out, rows, terminalOf(out)) // a closed pipe is the reader's wish
}

func marks(s state) report.Mark {
	switch s {
	case stateOK:
		return report.MarkGood
	case stateNote:
		return report.MarkNote
	}
	return report.MarkBad
}

// verdict is an exit status of 1 where something is missing.
func verdict(checks []check) error {
	for _, c := range checks {
		if c.State != stateOK && c.State != stateNote {
			return exitStatus(1)
		}
	}
	return nil
}
