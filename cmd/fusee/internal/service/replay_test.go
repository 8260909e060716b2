package service

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/backend"
	"fusee/bytecode"
	"fusee/trace"
)

// The traces are recorded by tests/replay/record_traces.py from the functions beside it.

func updating() bool { return flag.Lookup("update").Value.(flag.Getter).Get().(bool) }

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files, and in the traces what the compiler says")
	flag.Parse()
	os.Exit(m.Run())
}

func traces(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.trace"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d traces, %v", len(files), err)
	}
	found := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(file), ".trace")] = data
	}
	return found
}

// versionOf is the version that made a trace; tests replay under it.
func versionOf(player *trace.Player) string { return newRecording(player.Messages(false)).version }

// mustReplay replays what the compiler says now: what it said when the trace was recorded is the golden files' concern, and how kernels
// are printed that of their emitters.
func mustReplay(t *testing.T, data []byte) *Replayed {
	t.Helper()
	player, err := trace.NewPlayer(rewrite(t, data))
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := Replay(versionOf(player), player)
	if err != nil {
		t.Fatal(err)
	}
	return replayed
}

// taping passes messages on and keeps them.
type taping struct {
	trace.Transport
	data []byte
	err  error
}

func (tape *taping) keep(fromHost bool, message trace.Message) {
	data, err := trace.AppendRecorded(tape.data, fromHost, message)
	tape.data, tape.err = data, errors.CombineErrors(tape.err, err)
}

func (tape *taping) Receive() (trace.Message, error) {
	message, err := tape.Transport.Receive()
	if err == nil {
		tape.keep(true, message)
	}
	return message, err
}

func (tape *taping) Send(message trace.Message) error {
	err := tape.Transport.Send(message)
	if err == nil {
		tape.keep(false, message)
	}
	return err
}

// rewrite returns the trace with what the compiler says now.
func rewrite(t *testing.T, data []byte) []byte {
	t.Helper()
	player, err := trace.NewPlayer(data)
	if err != nil {
		t.Fatal(err)
	}
	player.Lenient = true
	tape := &taping{Transport: player, data: []byte(trace.Magic)}
	if _, err := replay(versionOf(player), player, tape); err != nil || tape.err != nil {
		t.Fatal("record the trace again: ", err, tape.err)
	}
	return tape.data
}

// shown is the golden text of a replay: graphs, guards, breaks and code.
func shown(t *testing.T, replayed *Replayed) string {
	t.Helper()
	var text bytes.Buffer
	for _, compilation := range replayed.Compilations {
		for _, compiled := range compilation.Graphs {
			fmt.Fprint(&text, compiled.Graph)
			switch {
			case compiled.Why != "":
				fmt.Fprintf(&text, "Python runs it: %s\n", compiled.Why)
			case compiled.Trained != nil:
				showSteps(&text, "forward", compiled.Trained.ForwardPlan)
				showSteps(&text, "backward", compiled.Trained.BackwardPlan)
			default:
				showSteps(&text, "steps", compiled.Compiled)
			}
		}
		if compilation.Capture != nil {
			showCapture(t, &text, compilation)
		}
	}
	return text.String()
}

func showSteps(text *bytes.Buffer, title string, plan *backend.Compiled) {
	fmt.Fprintf(text, "%s:\n  %s\n", title, strings.Join(plan.Steps, "\n  "))
}

func showCapture(t *testing.T, text *bytes.Buffer, compilation *Compilation) {
	t.Helper()
	report := compilation.PlainReport()
	for i, guard := range report["guards"].([]any) {
		fields := guard.(map[string]any)
		fmt.Fprintf(text, "guard %d: %v  (%v:%v)\n", i, fields["text"], fields["file"], fields["line"])
	}
	for _, found := range report["breaks"].([]any) {
		fields := found.(map[string]any)
		fmt.Fprintf(text, "break %v at %v:%v: %v\n", fields["id"], fields["file"], fields["line"], fields["source"])
	}
	showCode(t, text, "entry", compilation.Capture.Code)
	for _, code := range compilation.Capture.Continuations {
		showCode(t, text, "continuation", code.Code)
	}
	for _, code := range compilation.Capture.Steps {
		showCode(t, text, "step", code.Code)
	}
}

func showCode(t *testing.T, text *bytes.Buffer, role string, code *bytecode.Code) {
	t.Helper()
	fmt.Fprintf(text, "%s %s, %d parameters, stack of %d\n", role, code.QualName, code.ArgCount, code.StackSize)
	if err := bytecode.Disassemble(text, code); err != nil {
		t.Errorf("%s: %v", code.QualName, err)
	}
}

func TestTracesReplay(t *testing.T) {
	for name, data := range traces(t) {
		t.Run(name, func(t *testing.T) {
			if updating() {
				data = rewrite(t, data)
				writeFile(t, name+".trace", data)
			}
			replayed := mustReplay(t, data)
			if !replayed.Complete || len(replayed.Compilations) != 1 || len(replayed.Failures) > 0 {
				t.Fatalf("complete %v, %d compilations, failures %v", replayed.Complete, len(replayed.Compilations), replayed.Failures)
			}
			compareGolden(t, name+".golden", shown(t, replayed))
		})
	}
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("testdata", name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	if updating() {
		writeFile(t, name, []byte(got))
	}
	want, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; if it should, run with -update:\n%s", name, firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	wanted, found := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wanted), len(found)) {
		if wanted[i] != found[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, wanted[i], found[i])
		}
	}
	return fmt.Sprintf("%d lines, golden %d", len(found), len(wanted))
}

// TestCompilingTwiceGivesTheSame also covers what a trace does not: kernels printed by one process twice.
func TestCompilingTwiceGivesTheSame(t *testing.T) {
	for name, data := range traces(t) {
		first, second := mustReplay(t, data).Compilations, mustReplay(t, data).Compilations
		for i := range first {
			place, a, b := trace.Difference(untimed(first[i].Result), untimed(second[i].Result))
			if place != "" {
				t.Errorf("%s%s: %s, then %s", name, place, a, b)
			}
		}
	}
}

func untimed(result *bytecode.Dict) bytecode.Object {
	copied := &bytecode.Dict{}
	for i, key := range result.Keys {
		if key != "report" {
			copied.Set(key, result.Values[i])
		}
	}
	return copied
}

func TestReplayNoticesADifference(t *testing.T) {
	data := traces(t)["pointwise"]
	changed := bytes.Replace(data, []byte("operator.mul"), []byte("operator.sub"), 1)
	if bytes.Equal(data, changed) {
		t.Fatal("the trace has another form")
	}
	player, err := trace.NewPlayer(changed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Replay(versionOf(player), player)
	var mismatch *trace.Mismatch
	if !errors.As(err, &mismatch) || len(errors.GetAllHints(err)) == 0 {
		t.Fatalf("%v", err)
	}
}

func TestReplayOfAnotherVersionHasAHint(t *testing.T) {
	player, err := trace.NewPlayer(traces(t)["branch"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Replay("99.0", player); err == nil || !strings.Contains(err.Error(), "99.0") || len(errors.GetAllHints(err)) == 0 {
		t.Fatalf("%v", err)
	}
}

// TestLenientReplayShowsPlansWithoutCode replays a trace from which the compiled kernels were lost.
func TestLenientReplayShowsPlansWithoutCode(t *testing.T) {
	data := traces(t)["pointwise"]
	changed := bytes.ReplaceAll(data, []byte("k_fused_mul"), []byte("k_fused_nul"))
	for _, lenient := range []bool{false, true} {
		player, err := trace.NewPlayer(changed)
		if err != nil {
			t.Fatal(err)
		}
		player.Lenient = lenient
		replayed, err := Replay(versionOf(player), player)
		if (err == nil) != lenient {
			t.Fatalf("lenient %v: %v", lenient, err)
		}
		if hasPlan := replayed.Compilations[0].Graphs[0].Compiled != nil; hasPlan != lenient {
			t.Errorf("lenient %v: plan %v", lenient, hasPlan)
		}
	}
}

func TestGraphsRunFusedAndUnfused(t *testing.T) {
	ran := 0
	for name, data := range traces(t) {
		for _, compiled := range mustReplay(t, data).Compilations[0].Graphs {
			comparison, err := compiled.Compare(context.Background(), nil, 1)
			switch {
			case errors.Is(err, backend.ErrNotRunnable):
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case comparison.Largest > 1e-6 || comparison.Outputs == 0:
				t.Errorf("%s: %d outputs differ by %g", name, comparison.Outputs, comparison.Largest)
			default:
				ran++
			}
		}
	}
	if ran < 8 {
		t.Errorf("only %d graphs ran", ran)
	}
}

func TestInputsOfAGraph(t *testing.T) {
	graph := mustReplay(t, traces(t)["branch"]).Compilations[0].Graphs[0] // one float32 tensor of seven elements
	for text, wrong := range map[string]string{
		`[[1, 2, 3, 4, 5, 6, 7]]`: "", `[[true, 2, 3, 4, 5, 6, 7]]`: "",
		`[]`: "takes 1 inputs", `[[1, 2]]`: "list of 7 items", `[7]`: "list of 7 items", `[[1, 2, 3, 4, 5, 6, "x"]]`: "where a number should", `[{}]`: "list of 7 items",
	} {
		var inputs []json.RawMessage
		if err := json.Unmarshal([]byte(text), &inputs); err != nil {
			t.Fatal(err)
		}
		_, err := graph.Compare(context.Background(), inputs, 0)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzReplay changes bytes of traces: whatever the host says, the compiler answers or stops with an error.
func FuzzReplay(f *testing.F) {
	for _, data := range traces(f) {
		f.Add(data, uint32(len(data)/2), byte(1))
		f.Add(data, uint32(len(data)/3), byte(0x80))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint32, change byte) {
		if len(data) == 0 {
			return
		}
		data[int(at)%len(data)] ^= change
		replayHostile(t, data)
	})
}

// TestDamagedTraces does a little of that in every run, always the same.
func TestDamagedTraces(t *testing.T) {
	const changes = 30 // for each trace
	random := rand.New(rand.NewPCG(1, 2))
	all := traces(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		data := all[name]
		for range changes {
			damaged := bytes.Clone(data)
			at, change := random.IntN(len(data)), byte(1+random.IntN(255))
			damaged[at] ^= change
			t.Run(fmt.Sprintf("%s/%d^%d", name, at, change), func(t *testing.T) { replayHostile(t, damaged) })
		}
	}
}

// replayHostile replays and looks for mistakes that only the last safeguard caught.
func replayHostile(t *testing.T, data []byte) {
	t.Helper()
	player, err := trace.NewPlayer(data)
	if err != nil {
		return
	}
	player.Lenient = true
	replayed, _ := Replay("fuzz", player)
	if replayed == nil {
		return
	}
	for _, failure := range replayed.Failures {
		if strings.Contains(failure, "internal error") {
			t.Error(failure)
		}
	}
}
