package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// command runs a command line in this process and returns its status and what it wrote.
func command(arguments ...string) (status int, output, problems string) {
	var out, err bytes.Buffer
	root := newRootCommand()
	root.SetArgs(arguments)
	root.SetOut(&out)
	root.SetErr(&err)
	status = run(root, &err)
	return status, out.String(), err.String()
}

// interpreter writes a program that stands in for Python.
func interpreter(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const oneReport = `{"format": 1, "function": {"name": "train_step", "file": "a.py", "line": 3}, "action": "entry",` +
	` "graphs": [{"name": "graph_0", "text": "x", "ops": 2}], "times": {"total": 1500}}`

func explainer(t *testing.T, status string) string {
	return interpreter(t, "echo \"program says $2\"\necho '"+oneReport+"' >> \"$FUSEE_EXPLAIN_OUT\"\nexit "+status+"\n")
}

func TestExplainShowsReportsAndKeepsTheStatus(t *testing.T) {
	status, output, problems := command("explain", "--python", explainer(t, "3"), "a.py", "--steps")
	if status != 3 || problems != "" {
		t.Errorf("status %d, %s", status, problems)
	}
	for _, want := range []string{"program says --steps\n", "train_step  a.py:3\n", "compiled in 1.5 ms: 1 graph, 2 operations"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q lacks %q", output, want)
		}
	}
}

func TestExplainAsJSONKeepsTheProgramOut(t *testing.T) {
	_, output, problems := command("explain", "--json", "--python", explainer(t, "0"), "a.py", "7")
	var reports []map[string]any
	if err := json.Unmarshal([]byte(output), &reports); err != nil || len(reports) != 1 {
		t.Errorf("%v in %q", err, output)
	}
	if !strings.Contains(problems, "program says 7") {
		t.Errorf("the program's output is lost: %q", problems)
	}
}

func TestExplainWritesAPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	if status, _, problems := command("explain", "--html", page, "--python", explainer(t, "0"), "a.py"); status != 0 {
		t.Fatal(problems)
	}
	content, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(content, []byte("train_step")) {
		t.Errorf("%v, %s", err, content)
	}
}

func TestExplainSaysWhenNothingWasCompiled(t *testing.T) {
	status, output, _ := command("explain", "--python", interpreter(t, "exit 0"), "a.py")
	if status != 0 || !strings.Contains(output, "hint: decorate") {
		t.Errorf("status %d, %q", status, output)
	}
}

func TestExplainWithoutInterpreterHasAHint(t *testing.T) {
	status, _, problems := command("explain", "--python", "/nowhere/python", "a.py")
	if status != 1 || !strings.Contains(problems, "hint: ") {
		t.Errorf("status %d, %q", status, problems)
	}
}

func TestDoctorJudgesByWhatIsMissing(t *testing.T) {
	t.Setenv(cacheVariable, filepath.Join(t.TempDir(), "cache"))
	answer := func(state string) string {
		return interpreter(t, `echo '{"checks": [{"name": "LLVM", "state": "`+state+`", "detail": "somewhere", "advice": "do it"}]}'`)
	}
	for state, want := range map[string]int{"ok": 0, "note": 0, "missing": 1} {
		status, output, _ := command("doctor", "--python", answer(state))
		if status != want || !strings.Contains(output, "somewhere") || !strings.Contains(output, "hint: do it") {
			t.Errorf("%s: status %d, %q", state, status, output)
		}
	}
}

func TestDoctorSurvivesABrokenPackage(t *testing.T) {
	t.Setenv(cacheVariable, filepath.Join(t.TempDir(), "cache"))
	for _, script := range []string{"echo no module >&2; exit 1", "echo '{'", "true"} {
		status, output, _ := command("doctor", "--python", interpreter(t, script))
		if status != 1 || !strings.Contains(output, "MISSING") || !strings.Contains(output, "disk cache") {
			t.Errorf("%s: status %d, %q", script, status, output)
		}
	}
}

func TestCacheCommands(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cache")
	t.Setenv(cacheVariable, folder)
	for arguments, want := range map[string]string{"path": folder, "size": "empty", "verify": "0 sound, 0 removed", "clear": "removed: empty"} {
		if status, output, problems := command("cache", arguments); status != 0 || strings.TrimSpace(output) != want {
			t.Errorf("cache %s: status %d, %q, %s", arguments, status, output, problems)
		}
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Error("looking at the cache made its folder")
	}
}

func TestUnknownCommandIsAnError(t *testing.T) {
	if status, _, problems := command("compile"); status != 1 || !strings.Contains(problems, "unknown command") {
		t.Errorf("status %d, %q", status, problems)
	}
}
