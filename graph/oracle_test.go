package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// oracle is what tests/graph_oracle.py recorded from eager PyTorch.
type oracle struct {
	Torch    string
	Device   string
	Tensors  []json.RawMessage
	Programs []json.RawMessage
	Chains   []json.RawMessage
	Schemas  []string
	Samples  map[string][][]string
	Values   []json.RawMessage
	Cases    []json.RawMessage
}

// loadOracle reads the checked-in recording, or makes a fresh one where FUSEE_TEST_PYTHON names a Python with torch; with
// FUSEE_TEST_EXHAUSTIVE set the fresh one is several times as long.
func loadOracle(t *testing.T) *oracle {
	t.Helper()
	text, err := recording()
	if err != nil {
		t.Fatal(err)
	}
	var o oracle
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

var recording = sync.OnceValues(func() ([]byte, error) {
	golden := filepath.Join("testdata", "oracle.json")
	python := os.Getenv("FUSEE_TEST_PYTHON")
	if python == "" || exec.Command(python, "-c", "import torch").Run() != nil {
		return os.ReadFile(golden)
	}
	directory, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	path := filepath.Join(directory, "oracle.json")
	arguments := []string{filepath.Join("..", "tests", "graph_oracle.py"), "--output", path}
	if os.Getenv("FUSEE_TEST_EXHAUSTIVE") != "" {
		arguments = append(arguments, "--full")
	}
	if out, err := exec.Command(python, arguments...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path)
})

// recordedCall is one case: target, arguments, keywords, grad mode, outcome.
type recordedCall struct {
	target   string
	args     []any
	keywords map[string]any
	state    State
	outcome  any // nil when eager raised
}

func decode(t *testing.T, text json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (o *oracle) call(t *testing.T, i int) recordedCall {
	fields := decode(t, o.Cases[i]).([]any)
	c := recordedCall{target: fields[0].(string), args: fields[1].([]any), keywords: fields[2].(map[string]any), state: State{GradMode: fmt.Sprint(fields[3]) == "1", InferenceMode: fmt.Sprint(fields[3]) == "2"}}
	if outcome, ok := fields[4].(map[string]any); ok {
		c.outcome = outcome["r"]
	}
	return c
}

// replayer builds a graph for one recorded call.
type replayer struct {
	t      *testing.T
	oracle *oracle
	graph  *Graph
	inputs []Value
}

func ints(v any) []int64 {
	var out []int64
	for _, n := range v.([]any) {
		i, _ := n.(json.Number).Int64()
		out = append(out, i)
	}
	return out
}

func (r *replayer) tensor(index string) Value {
	k, _ := strconv.Atoi(index)
	spec := decode(r.t, r.oracle.Tensors[k]).([]any)
	d, ok := ParseDType(spec[0].(string))
	if !ok {
		r.t.Fatalf("type %v", spec[0])
	}
	offset, _ := spec[3].(json.Number).Int64()
	meta := Meta{DType: d, Device: Device{Type: r.oracle.Device}, Sizes: Statics(ints(spec[1])...), Strides: Statics(ints(spec[2])...),
		Offset: Static(offset), RequiresGrad: spec[4].(bool), Flags: FlagLeaf}
	input := r.graph.AddTensor("", meta)
	r.inputs = append(r.inputs, input)
	return input
}

func (r *replayer) value(v any) Value {
	switch v := v.(type) {
	case string:
		if index, ok := strings.CutPrefix(v, "@"); ok {
			return r.tensor(index)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		return List{Items: r.values(v)}
	case map[string]any:
		return r.tagged(v)
	}
	return v
}

func (r *replayer) values(items []any) []Value {
	values := make([]Value, len(items))
	for i, item := range items {
		values[i] = r.value(item)
	}
	return values
}

func (r *replayer) tagged(v map[string]any) Value {
	for tag, payload := range v {
		switch tag {
		case "d":
			d, ok := ParseDType(payload.(string))
			if !ok {
				r.t.Fatalf("type %v", payload)
			}
			return d
		case "m":
			return MemoryFormat(payload.(string))
		case "c":
			parts := payload.([]any)
			re, _ := parts[0].(json.Number).Float64()
			im, _ := parts[1].(json.Number).Float64()
			return complex(re, im)
		case "f":
			f, _ := strconv.ParseFloat(payload.(string), 64)
			return f
		case "u":
			return List{Items: r.values(payload.([]any)), Tuple: true}
		case "s":
			bounds := r.values(payload.([]any))
			return Slice{bounds[0], bounds[1], bounds[2]}
		case "e":
			return Ellipsis{}
		}
	}
	r.t.Fatalf("argument %v", v)
	return nil
}

// describe writes a result in the recorded form.
func (r *replayer) describe(v Value) string {
	if list, ok := v.(List); ok {
		return "[" + joined(list.Items, r.describe) + "]"
	}
	o, ok := v.(*Output)
	if !ok {
		return "no tensor"
	}
	info := o.Node.Outputs[o.Index]
	m := info.Meta
	relation := "n"
	for i, input := range r.inputs {
		if SameValue(input, info.Relation.Of) {
			relation = map[RelationKind]string{RelationSame: "s", RelationView: "v"}[info.Relation.Kind] + strconv.Itoa(i)
		}
	}
	return fmt.Sprintln(m.DType, Hints(m.Sizes), Hints(m.Strides), m.Offset.Hint, m.RequiresGrad, int(m.Flags), relation)
}

func describeRecorded(v any) string {
	list, ok := v.([]any)
	if !ok {
		return "no tensor"
	}
	if len(list) == 7 {
		if _, isTensor := list[0].(string); isTensor {
			return fmt.Sprintln(list[0], nonNil(ints(list[1])), nonNil(ints(list[2])), list[3], list[4], list[5], list[6])
		}
	}
	return "[" + joined(list, describeRecorded) + "]"
}

func nonNil(v []int64) []int64 { return append([]int64{}, v...) }

// replay gives the inferred result, or "unknown".
func (o *oracle) replay(t *testing.T, c recordedCall) (string, error) {
	r := &replayer{t: t, oracle: o, graph: NewGraph("case")}
	args := r.values(c.args)
	var keywords []Keyword
	for name, v := range c.keywords {
		keywords = append(keywords, Keyword{name, r.value(v)})
	}
	node, err := r.graph.Call(c.target, args, keywords, c.state)
	if err != nil {
		return "", err
	}
	if err := r.graph.Verify(); err != nil {
		t.Errorf("%s: %v", c.target, err)
	}
	if lowered, err := r.graph.Lower(); err != nil {
		t.Errorf("%s: %v", c.target, err)
	} else if err := lowered.Verify(); err != nil {
		t.Errorf("%s lowered: %v\n%s", c.target, err, lowered)
	}
	return r.describe(node.Result), nil
}

// TestAgainstEager compares every inferred result with eager's. A call that eager rejects must be unknown here; a call that is
// unknown here although eager accepts it only counts against the share below.
func TestAgainstEager(t *testing.T) {
	o := loadOracle(t)
	known, missing := 0, map[string]int{}
	for i := range o.Cases {
		c := o.call(t, i)
		got, err := o.replay(t, c)
		want := describeRecorded(c.outcome)
		switch {
		case err != nil && !errors.Is(err, ErrUnknown):
			t.Errorf("%s: %v", o.Cases[i], err)
		case err != nil && c.outcome != nil:
			missing[c.target]++
			if os.Getenv("FUSEE_TEST_MISSING") != "" {
				t.Logf("%s: %v", o.Cases[i], err)
			}
		case err == nil && c.outcome == nil:
			t.Errorf("eager rejects %s, inferred %s", o.Cases[i], got)
		case err == nil && got != want:
			t.Errorf("%s\n inferred %s", o.Cases[i], got)
		case err == nil:
			known++
		}
	}
	unknownCount := 0
	for _, n := range missing {
		unknownCount += n
	}
	t.Logf("%d calls inferred, %d left to the host", known, unknownCount)
	if known < 15*unknownCount {
		t.Errorf("too many calls are left to the host: %d, %d inferred", unknownCount, known)
	}
}
