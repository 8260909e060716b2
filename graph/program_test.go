package graph

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// recordedProgram is a sequence of calls: each step's target, arguments ("$2" is the third value so far) and what eager said
// about requires_grad of all values after it, or nil when it raised.
type recordedProgram struct {
	Inputs []json.RawMessage
	Steps  [][3]any
}

// TestPrograms follows requires_grad through views, mutation and detach.
func TestPrograms(t *testing.T) {
	o := loadOracle(t)
	for i, text := range o.Programs {
		var p recordedProgram
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) { runProgram(t, o, p) })
	}
}

func runProgram(t *testing.T, o *oracle, p recordedProgram) {
	r := &replayer{t: t, oracle: &oracle{Device: "cpu", Tensors: p.Inputs}, graph: NewGraph("program")}
	var values []Value
	for i := range p.Inputs {
		values = append(values, r.tensor(strconv.Itoa(i)))
	}
	for _, step := range p.Steps {
		target, want := step[0].(string), step[2]
		node, err := r.graph.Call(target, programArguments(step[1].([]any), values), nil, gradMode)
		if err != nil {
			t.Logf("%s: %v", target, err)
			return // the host would run it
		}
		if want == nil {
			t.Fatalf("%s: eager raises\n%s", target, r.graph)
		}
		values = append(values, node.Result)
		for i, v := range values {
			expected := want.([]any)[i]
			if _, ok := MetaOf(v); ok && r.graph.RequiresGrad(v) != (expected == true) {
				t.Errorf("after %s: value %d requires grad: %v, eager %v\n%s", target, i, r.graph.RequiresGrad(v), expected, r.graph)
			}
		}
	}
}

func programArguments(items []any, values []Value) []Value {
	args := make([]Value, len(items))
	for i, item := range items {
		switch item := item.(type) {
		case string:
			index, ok := strings.CutPrefix(item, "$")
			if !ok {
				panic(fmt.Sprint("argument ", item))
			}
			k, _ := strconv.Atoi(index)
			args[i] = values[k]
		case float64:
			args[i] = int64(item)
		case json.Number:
			args[i], _ = item.Int64()
		}
	}
	return args
}

// TestChains follows chains of random calls and compares every result's description with eager's. What is unknown here ends a
// chain.
func TestChains(t *testing.T) {
	steps := 0
	o := loadOracle(t)
	for i, text := range o.Chains {
		var p recordedProgram
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) { steps += runChain(t, p) })
	}
	if steps < 5*len(o.Chains) {
		t.Errorf("%d steps of %d chains", steps, len(o.Chains))
	}
}

func runChain(t *testing.T, p recordedProgram) int {
	r := &replayer{t: t, oracle: &oracle{Device: "cpu", Tensors: p.Inputs}, graph: NewGraph("chain")}
	var values []Value
	for i := range p.Inputs {
		values = append(values, r.tensor(strconv.Itoa(i)))
	}
	for done, step := range p.Steps {
		node, err := r.graph.Call(step[0].(string), programArguments(step[1].([]any), values), nil, gradMode)
		if err != nil {
			t.Logf("%s: %v", step[0], err)
			return done
		}
		values = append(values, node.Result)
		m := meta(node.Result)
		want := step[2].([]any)
		got := fmt.Sprintln(m.DType, Hints(m.Sizes), Hints(m.Strides), m.Offset.Hint, m.RequiresGrad)
		if expected := fmt.Sprintln(want[0], nonNil(ints(want[1])), nonNil(ints(want[2])), want[3], want[4]); got != expected {
			t.Fatalf("%s: inferred %s eager %s%s", step[0], got, expected, r.graph)
		}
	}
	return len(p.Steps)
}
