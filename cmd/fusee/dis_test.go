package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
)

// findTestPython returns a CPython 3.11, from FUSEE_TEST_PYTHON or PATH; it skips the test where there is none.
func findTestPython(t *testing.T) string {
	t.Helper()
	check := "import sys; assert sys.version_info[:2] == (3, 11) and sys.implementation.name == 'cpython'"
	for _, candidate := range []string{os.Getenv("FUSEE_TEST_PYTHON"), "python3.11", "python3", "python"} {
		if candidate != "" && exec.Command(candidate, "-c", check).Run() == nil {
			return candidate
		}
	}
	t.Skip("no CPython 3.11: set FUSEE_TEST_PYTHON")
	return ""
}

// runDis runs `fusee dis` and returns what it prints.
func runDis(t *testing.T, arguments ...string) (output, problems string, err error) {
	t.Helper()
	command := newDisCommand()
	var out, messages bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&messages)
	command.SetArgs(arguments)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.Execute()
	return out.String(), messages.String(), err
}

func outputOf(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	output, err := exec.Command(name, arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

func withoutAddresses(text string) string {
	return regexp.MustCompile(` at 0x[0-9a-f]+,`).ReplaceAllString(text, " at 0x,")
}

// writeSample writes a source file whose frozensets show the order of their items.
func writeSample(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sample.py")
	source := "def f(x):\n    try:\n        return [lambda: x in {9, 1, 17}, x in {'b', 'a', 'é', 0.5}]\n    except* OSError:\n        pass\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDisPrintsWhatPythonPrints(t *testing.T) {
	python := findTestPython(t)
	t.Setenv("PYTHONHASHSEED", "0")
	library := strings.TrimSpace(outputOf(t, python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"))
	files := []string{writeSample(t)}
	for _, name := range []string{"dis", "enum", "contextlib", "asyncio/base_events"} {
		files = append(files, filepath.Join(library, name+".py"))
	}
	for _, file := range files {
		output, problems, err := runDis(t, "--python", python, file)
		if err != nil {
			t.Errorf("%s: %v %s", file, err, problems)
		}
		if want := outputOf(t, python, "-m", "dis", file); withoutAddresses(output) != withoutAddresses(want) {
			t.Errorf("%s is disassembled differently", file)
		}
	}
}

func TestDisReadsCompiledFiles(t *testing.T) {
	python := findTestPython(t)
	t.Setenv("PYTHONHASHSEED", "0")
	source := writeSample(t)
	compiled := source + "c"
	outputOf(t, python, "-c", "import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2])", source, compiled)
	script := "import dis, marshal, sys; dis.dis(marshal.loads(open(sys.argv[1], 'rb').read()[16:]))"
	output, _, err := runDis(t, compiled)
	if want := outputOf(t, python, "-c", script, compiled); err != nil || withoutAddresses(output) != withoutAddresses(want) {
		t.Errorf("prints\n%s\nand not\n%s\n%v", output, want, err)
	}
}

func TestDisPrintsJSON(t *testing.T) {
	python := findTestPython(t)
	script := `import dis, json, sys
codes = []
def walk(code):
    instructions = [{"offset": i.offset, "opname": i.opname, "arg": i.arg} for i in dis.get_instructions(code)]
    codes.append({"qualname": code.co_qualname, "instructions": instructions})
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            walk(constant)
walk(compile(open(sys.argv[1], "rb").read(), sys.argv[1], "exec"))
print(json.dumps({"codes": codes}))`
	file := writeSample(t)
	output, _, err := runDis(t, "--json", "--python", python, file)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(output), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(outputOf(t, python, "-c", script, file)), &want); err != nil {
		t.Fatal(err)
	}
	gotText, _ := json.Marshal(got)
	wantText, _ := json.Marshal(want)
	if !bytes.Equal(gotText, wantText) {
		t.Errorf("prints\n%s\nand not\n%s", gotText, wantText)
	}
}

// TestDisExplainsFailures checks that every failure comes with a hint.
func TestDisExplainsFailures(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	header := "\xa7\x0d\x0d\x0a" + strings.Repeat("\x00", 12)
	for name, file := range map[string]string{
		"missing source":        filepath.Join(folder, "missing.py"),
		"missing compiled file": filepath.Join(folder, "missing.pyc"),
		"folder":                folder + "/.pyc",
		"other version":         write("other.pyc", "\xcb"+header[1:]+"N"),
		"short file":            write("short.pyc", header[:7]),
		"truncated":             write("truncated.pyc", header+"c"),
		"no code":               write("none.pyc", header+"N"),
	} {
		output, _, err := runDis(t, file)
		if err == nil || output != "" || len(errors.GetAllHints(err)) == 0 {
			t.Errorf("%s: printed %q, error %v with hints %q", name, output, err, errors.GetAllHints(err))
		}
	}
	if _, _, err := runDis(t, "--python", "/nonexistent", write("fine.py", "")); err == nil || len(errors.GetAllHints(err)) == 0 {
		t.Errorf("a missing interpreter: %v", err)
	}
}

func TestDisShowsSyntaxErrors(t *testing.T) {
	python := findTestPython(t)
	file := filepath.Join(t.TempDir(), "bad.py")
	if err := os.WriteFile(file, []byte("def f(:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output, problems, err := runDis(t, "--python", python, file)
	if err == nil || output != "" || !strings.Contains(problems, "SyntaxError") {
		t.Errorf("printed %q and %q, error %v", output, problems, err)
	}
}
