package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/backend"
	"fusee/bytecode"
	"fusee/cmd/fusee/internal/report"
	"fusee/cmd/fusee/internal/service"
	"fusee/internal/slice"
	"fusee/symbolic"
	"fusee/trace"
)

// replay holds the flags of `fusee replay`.
type replay struct {
	json    bool
	lenient bool
	run     bool
	seed    uint64
	inputs  string
}

func newReplayCommand() *cobra.Command {
	var r replay
	command := &cobra.Command{
		Use:   "replay [flags] FILE",
		Short: "Compile a recorded function again, without Python",
		Long: "Compiles what a trace recorded, and shows the graph, the guards, the rewritten bytecode and the kernels with their source.\n" +
			"The compiler must say byte for byte what it said when the trace was made; otherwise the status is 1. Neither Python nor\n" +
			"LLVM nor a GPU is needed: compiled kernels come from the trace.\n\n" +
			"With --run, each graph runs in WebAssembly twice, fused and with one kernel for each operation, and the results are compared.",
		Example: "  FUSEE_RECORD=traces python train.py\n  fusee replay traces/0001-train_step-77.fusee\n  fusee replay --run --inputs inputs.json f.fusee",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return r.execute(command, arguments[0])
		},
	}
	flags := command.Flags()
	flags.BoolVar(&r.json, "json", false, "print everything as JSON, the same for the same trace")
	flags.BoolVar(&r.lenient, "lenient", false, "show what this version makes of a trace of another one")
	flags.BoolVar(&r.run, "run", false, "run each graph fused and unfused, and compare the results")
	flags.Uint64Var(&r.seed, "seed", 0, "seed of the random inputs for --run")
	flags.StringVar(&r.inputs, "inputs", "", "JSON file with the inputs for --run: a list of nested lists and numbers, in the order of the graph's inputs")
	return command
}

// execute replays a file and shows what came of it, even where it differs from the recording.
func (r *replay) execute(command *cobra.Command, file string) error {
	inputs, err := r.readInputs()
	if err != nil {
		return err
	}
	replayed, failure := r.replay(file)
	if replayed == nil {
		return failure
	}
	shown := newReplayShown(replayed, failure)
	if r.run {
		runGraphs(command.Context(), shown, replayed, inputs, r.seed)
	}
	out := command.OutOrStdout()
	if r.json {
		err = writeJSON(out, shown)
	} else {
		err = shown.write(out, replayed)
	}
	return errors.CombineErrors(failure, err)
}

func (r *replay) replay(file string) (*service.Replayed, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.WithHint(errors.Wrap(err, "cannot read the trace"), "traces are made with FUSEE_RECORD=FOLDER or `with fusee.record(PATH):`")
	}
	player, err := trace.NewPlayer(data)
	if err != nil {
		return nil, errors.Wrapf(err, "%s", file)
	}
	player.Lenient = r.lenient
	replayed, err := service.Replay(version, player)
	return replayed, errors.Wrapf(err, "%s", file)
}

// readInputs reads the file of --inputs; nil without the flag.
func (r *replay) readInputs() ([]json.RawMessage, error) {
	if r.inputs == "" {
		return nil, nil
	}
	hint := `the file holds a list in the order of the graph's inputs, such as [[[1, 2], [3, 4]], 0.5]`
	data, err := os.ReadFile(r.inputs)
	if err != nil {
		return nil, errors.WithHint(errors.Wrap(err, "cannot read the inputs"), hint)
	}
	inputs := []json.RawMessage{}
	if err := json.Unmarshal(data, &inputs); err != nil {
		return nil, errors.WithHint(errors.Wrapf(err, "%s", r.inputs), hint)
	}
	return inputs, nil
}

// replayShown is a replay as --json prints it.
type replayShown struct {
	Format       int                `json:"format"`
	Python       string             `json:"python"`
	Torch        string             `json:"torch"`
	Fusee        string             `json:"fusee"`
	Questions    int                `json:"questions"`
	Identical    bool               `json:"identical"`
	Difference   string             `json:"difference,omitempty"`
	Complete     bool               `json:"complete"`
	Failures     []string           `json:"failures"`
	Compilations []compilationShown `json:"compilations"`
}

type compilationShown struct {
	Report json.RawMessage `json:"report"`
	Codes  []codeShown     `json:"codes"`
	Runs   []runShown      `json:"runs,omitempty"`
}

// codeShown is a code object that the compiler made, with the functions nested in it.
type codeShown struct {
	Role         string       `json:"role"` // entry, continuation or step
	Name         string       `json:"name"`
	Instructions []listedCode `json:"codes"`
	code         *bytecode.Code
}

// runShown is one graph that ran fused and unfused. Largest is the greatest absolute difference of two elements.
type runShown struct {
	Graph   string   `json:"graph"`
	Outputs int      `json:"outputs"`
	Largest *float64 `json:"largest_difference"`
	Problem string   `json:"problem,omitempty"`
}

func newReplayShown(replayed *service.Replayed, failure error) *replayShown {
	shown := &replayShown{
		Format: report.Format, Python: trace.Text(replayed.Hello, "python"), Torch: trace.Text(replayed.Hello, "torch"), Fusee: trace.Text(replayed.Hello, "fusee"),
		Questions: replayed.Questions, Identical: failure == nil && !replayed.Departed, Complete: replayed.Complete, Failures: append([]string{}, replayed.Failures...),
	}
	if failure != nil {
		shown.Difference = failure.Error()
	}
	for _, compilation := range replayed.Compilations {
		shown.Compilations = append(shown.Compilations, showCompilation(compilation))
	}
	return shown
}

func showCompilation(c *service.Compilation) compilationShown {
	text, err := json.Marshal(c.PlainReport())
	if err != nil {
		text = []byte("null") // a number that JSON lacks, as from a damaged trace
	}
	shown := compilationShown{Report: text}
	if c.Capture == nil {
		return shown
	}
	shown.Codes = append(shown.Codes, showCode("entry", symbolic.Code{Code: c.Capture.Code, Name: c.Capture.Code.QualName}))
	for _, code := range c.Capture.Continuations {
		shown.Codes = append(shown.Codes, showCode("continuation", code))
	}
	for _, code := range c.Capture.Steps {
		shown.Codes = append(shown.Codes, showCode("step", code))
	}
	return shown
}

func showCode(role string, code symbolic.Code) codeShown {
	// A code object that cannot be listed shows in the text, with the reason.
	instructions, _ := listCodes(code.Code)
	return codeShown{Role: role, Name: code.Name, Instructions: instructions, code: code.Code}
}

// runGraphs adds the comparison of each graph.
func runGraphs(ctx context.Context, shown *replayShown, replayed *service.Replayed, inputs []json.RawMessage, seed uint64) {
	for i, compilation := range replayed.Compilations {
		shown.Compilations[i].Runs = slice.Map(compilation.Graphs, func(graph *service.CompiledGraph) runShown {
			return runGraph(ctx, graph, inputs, seed)
		})
	}
}

func runGraph(ctx context.Context, graph *service.CompiledGraph, inputs []json.RawMessage, seed uint64) runShown {
	comparison, err := graph.Compare(ctx, inputs, seed)
	if err != nil {
		return runShown{Graph: graph.Graph.Name, Problem: problemOf(err)}
	}
	return runShown{Graph: graph.Graph.Name, Outputs: comparison.Outputs, Largest: &comparison.Largest}
}

func problemOf(err error) string {
	if errors.Is(err, backend.ErrNotRunnable) {
		return "only torch can run it: " + err.Error()
	}
	return strings.Join(append([]string{err.Error()}, errors.GetAllHints(err)...), "; ")
}

// write prints a replay as a person reads it.
func (s *replayShown) write(out io.Writer, replayed *service.Replayed) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "Trace of fusee %s under Python %s and torch %s, %d questions\n", s.Fusee, s.Python, s.Torch, s.Questions)
	for i, compilation := range s.Compilations {
		fmt.Fprintln(&text)
		if err := compilation.write(&text, out); err != nil {
			return err
		}
		s.writeReasons(&text, replayed.Compilations[i])
	}
	for _, failure := range s.Failures {
		fmt.Fprintf(&text, "\nThe request failed, now as then: %s\n", failure)
	}
	switch {
	case replayed.Departed:
		fmt.Fprintln(&text, "\nNot identical to the recorded compilation.")
	case s.Identical && s.Complete:
		fmt.Fprintln(&text, "\nIdentical to the recorded compilation.")
	case s.Identical:
		fmt.Fprintln(&text, "\nIdentical as far as the trace goes; it ends in the middle of a compilation.")
	}
	_, err := out.Write(text.Bytes())
	return errors.Wrap(err, "writing the replay")
}

func (s *replayShown) writeReasons(text *bytes.Buffer, c *service.Compilation) {
	for _, graph := range c.Graphs {
		if graph.Compiled == nil && graph.Trained == nil {
			fmt.Fprintf(text, "\n  Python runs %s: %s\n", graph.Graph.Name, graph.Why)
		}
	}
}

func (c *compilationShown) write(text *bytes.Buffer, out io.Writer) error {
	reports, err := report.Read(bytes.NewReader(c.Report))
	if err != nil {
		return err
	}
	terminal := terminalOf(out)
	terminal.Source = true
	for _, r := range reports {
		if err := report.WriteText(text, []report.Report{r}, terminal); err != nil {
			return err
		}
	}
	for _, code := range c.Codes {
		fmt.Fprintf(text, "\n  %s %s\n\n", code.title(), code.Name)
		if err := bytecode.Disassemble(text, code.code); err != nil {
			fmt.Fprintf(text, "  cannot be shown: %v\n", err)
		}
	}
	for _, run := range c.Runs {
		fmt.Fprintf(text, "\n  %s\n", run)
	}
	return nil
}

func (c *codeShown) title() string {
	return map[string]string{"entry": "Rewritten bytecode of", "continuation": "Continuation", "step": "Step"}[c.Role]
}

func (r runShown) String() string {
	if r.Problem != "" {
		return fmt.Sprintf("%s was not run: %s", r.Graph, r.Problem)
	}
	return fmt.Sprintf("Ran %s fused and unfused: %d outputs, largest difference %g", r.Graph, r.Outputs, *r.Largest)
}
