package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/cmd/fusee/internal/python"
	"fusee/cmd/fusee/internal/report"
)

// reportsVariable tells the Python package which file to append its reports to.
const reportsVariable = "FUSEE_EXPLAIN_OUT"

// explanation holds the flags of `fusee explain`.
type explanation struct {
	python string
	json   bool
	html   string
	source bool
}

func newExplainCommand() *cobra.Command {
	var e explanation
	command := &cobra.Command{
		Use:   "explain [flags] SCRIPT.py [ARGUMENT…]",
		Short: "Run a Python program and show everything that fusee compiled in it",
		Long: "Runs the program as Python would, then shows each compilation: the graphs, the breaks with their reasons, " +
			"the guards\nwith the lines that need them, the kernels with what was fused, and the times.",
		Example: "  fusee explain train.py --steps 3\n  fusee explain --html report.html train.py",
		Args:    needScript,
		RunE: func(command *cobra.Command, arguments []string) error {
			return e.run(command, arguments)
		},
	}
	flags := command.Flags()
	flags.SetInterspersed(false) // what follows the script belongs to the script
	flags.StringVar(&e.python, "python", "", "the Python interpreter to run (default: the one fusee is installed for)")
	flags.BoolVar(&e.json, "json", false, "print the reports as JSON; what the program prints goes to standard error")
	flags.StringVar(&e.html, "html", "", "write the reports to this file as one self-contained page")
	flags.BoolVar(&e.source, "source", false, "show the source code of each kernel")
	return command
}

func needScript(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return nil
	}
	return errors.WithHint(errors.New("which program?"), "fusee explain train.py")
}

// run runs the program, shows the reports it left, and ends with the program's own failure if it failed.
func (e *explanation) run(command *cobra.Command, arguments []string) error {
	interpreter, err := python.Find(e.python)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "fusee-explain-")
	if err != nil {
		return errors.Wrap(err, "no place for the reports")
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "reports")
	output := command.OutOrStdout()
	if e.json {
		output = command.ErrOrStderr()
	}
	failure := runProgram(interpreter, arguments, file, output)
	if failure != nil && !isExit(failure) {
		return failure
	}
	return errors.CombineErrors(failure, e.show(command, file, arguments[0]))
}

// runProgram runs a Python program that appends its reports to a file. A program that ends with an error returns exitStatus.
func runProgram(interpreter string, arguments []string, file string, output io.Writer) error {
	program := exec.Command(interpreter, arguments...)
	program.Env = append(os.Environ(), reportsVariable+"="+file)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, output, os.Stderr
	// Ctrl-C reaches the program, which decides what becomes of it; the reports so far are still shown.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	err := program.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitStatus(statusOf(exit))
	}
	return errors.Wrapf(err, "%s could not be run", interpreter)
}

// statusOf returns the status as a shell gives it: 128 and the signal's number for a program that a signal ended.
func statusOf(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// show writes the reports of a file in the form that was asked for.
func (e *explanation) show(command *cobra.Command, file, script string) error {
	reports, err := readReports(file)
	if err != nil {
		return err
	}
	if e.html != "" {
		if err := writePage(e.html, script, reports); err != nil {
			return err
		}
		fmt.Fprintf(command.ErrOrStderr(), "fusee: wrote %s\n", e.html)
	}
	out := command.OutOrStdout()
	switch {
	case e.json:
		return writeJSON(out, reports)
	case len(reports) == 0:
		fmt.Fprintf(out, "fusee compiled nothing in %s.\n  hint: decorate a function with @fusee.compile and call it\n", script)
		return nil
	case e.html != "":
		return nil
	}
	fmt.Fprintln(out)
	terminal := terminalOf(out)
	terminal.Source = e.source
	return report.WriteText(out, reports, terminal)
}

// readReports reads the file that the program wrote; it wrote none where it compiled nothing.
func readReports(file string) ([]report.Report, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "the program's reports")
	}
	reports, err := report.Read(bytes.NewReader(content))
	return reports, errors.Wrap(err, "the program's reports")
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return errors.Wrap(encoder.Encode(value), "writing JSON")
}

func writePage(path, script string, reports []report.Report) error {
	var page bytes.Buffer
	if err := report.WriteHTML(&page, filepath.Base(script), reports, drawGraphs); err != nil {
		return err
	}
	err := os.WriteFile(path, page.Bytes(), 0o644)
	return errors.WithHint(errors.Wrap(err, "the page could not be written"), "name a file in a folder that exists")
}

// drawGraphs runs the drawing program beside this binary.
func drawGraphs(dots []string) ([]string, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, errors.Wrap(err, "where this binary is")
	}
	input, err := json.Marshal(dots)
	if err != nil {
		return nil, errors.Wrap(err, "writing the graphs")
	}
	program := exec.Command(filepath.Join(filepath.Dir(binary), "fusee-draw"))
	program.Stdin, program.Stderr = bytes.NewReader(input), os.Stderr
	output, err := program.Output()
	if err != nil {
		return nil, errors.Wrap(err, "running fusee-draw")
	}
	var pictures []string
	return pictures, errors.Wrap(json.Unmarshal(output, &pictures), "reading the pictures")
}
