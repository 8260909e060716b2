// Package find locates the libraries that tests of the CUDA backend need.
package find

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const locate = `import importlib.metadata as m, pathlib
for d in m.distributions():
    if "nvrtc" in (d.metadata["Name"] or ""):
        for f in d.files or ():
            if f.name.startswith("libnvrtc.so"):
                print(f.locate())`

// NVRTC returns the path of libnvrtc: the environment variable FUSEE_TEST_NVRTC, or the newest one that
// the Python interpreter named by FUSEE_TEST_PYTHON (python3 otherwise) has installed. Without one the
// test is skipped, with the reason.
func NVRTC(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("FUSEE_TEST_NVRTC"); path != "" {
		return path
	}
	python := os.Getenv("FUSEE_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	output, err := exec.Command(python, "-c", locate).Output()
	if err != nil {
		t.Skipf("no NVRTC: set FUSEE_TEST_NVRTC or FUSEE_TEST_PYTHON (%s: %v)", python, err)
	}
	found := strings.Fields(string(output))
	if len(found) == 0 {
		t.Skipf("no NVRTC: %s has no nvrtc wheel installed; set FUSEE_TEST_NVRTC or FUSEE_TEST_PYTHON", python)
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(filepath.Base(b), filepath.Base(a)) })
	return found[0]
}
