package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recordedTrace is a trace that the service's tests replay.
func recordedTrace(name string) string {
	return filepath.Join("internal", "service", "testdata", name+".trace")
}

func TestReplayShowsEverything(t *testing.T) {
	status, output, problems := command("replay", "--lenient", "--run", recordedTrace("reduction"))
	if status != 0 || problems != "" {
		t.Fatalf("status %d, %s", status, problems)
	}
	for _, want := range []string{
		"under Python 3.11", "graph graph(", "torch.softmax", "define i64 @k_", "Guards", "Rewritten bytecode of reduction", "RETURN_VALUE",
		"largest difference", "dentical to the recorded compilation.\n",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the replay lacks %q", want)
		}
	}
}

func TestReplayShowsContinuationsAndSteps(t *testing.T) {
	_, output, _ := command("replay", "--lenient", recordedTrace("inlined_break"))
	for _, want := range []string{"Breaks", "Continuation", "Step _inner"} {
		if !strings.Contains(output, want) {
			t.Errorf("the replay lacks %q", want)
		}
	}
}

func TestReplayAsJSONIsTheSameEachTime(t *testing.T) {
	_, first, _ := command("replay", "--lenient", "--json", "--run", recordedTrace("module"))
	_, second, _ := command("replay", "--lenient", "--json", "--run", recordedTrace("module"))
	var shown replayShown
	if err := json.Unmarshal([]byte(first), &shown); err != nil || first != second {
		t.Fatalf("%v, equal %v", err, first == second)
	}
	if !shown.Complete || len(shown.Compilations) != 1 || shown.Compilations[0].Codes[0].Role != "entry" {
		t.Errorf("%+v", shown)
	}
}

func TestReplayOfBadFiles(t *testing.T) {
	good, err := os.ReadFile(recordedTrace("branch"))
	if err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{
		"damaged": good[:len(good)/2], "not a fusee trace": []byte("hello"), "format": append([]byte("FUSEETR0"), good[8:]...),
		"no compilation": good[:8], "made by fusee 9": bytes.ReplaceAll(good, []byte("0.1.0"), []byte("9.1.0")),
		"differs": bytes.Replace(good, []byte("Tensor.sin"), []byte("Tensor.cos"), 1),
	} {
		file := filepath.Join(t.TempDir(), "bad.trace")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, problems := command("replay", file)
		if status != 1 || !strings.Contains(problems, want) || strings.Count(problems, "hint:") == 0 || strings.Count(problems, "fusee:") != 1 {
			t.Errorf("%s: status %d, %s", want, status, problems)
		}
	}
	if status, _, problems := command("replay", filepath.Join(t.TempDir(), "nothing")); status != 1 || !strings.Contains(problems, "hint:") {
		t.Errorf("status %d, %s", status, problems)
	}
}

func TestReplayTakesInputs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "inputs.json")
	for text, want := range map[string]string{
		"[[0, 1, 2, 3, 4, 5, 6]]": "largest difference 0", "[[0, 1]]": "a list of 7 items is wanted", "[]": "takes 1 inputs, 0 are given",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, output, _ := command("replay", "--lenient", "--run", "--inputs", file, recordedTrace("branch")); status != 0 || !strings.Contains(output, want) {
			t.Errorf("%s: status %d, no %q", text, status, want)
		}
	}
	if status, _, problems := command("replay", "--run", "--inputs", file+"x", recordedTrace("branch")); status != 1 || !strings.Contains(problems, "hint:") {
		t.Errorf("status %d, %s", status, problems)
	}
}
