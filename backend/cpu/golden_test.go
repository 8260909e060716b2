package cpu

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"fusee/backend/internal/kerneltest"
	"fusee/backend/loop"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

// TestTextMatchesGoldenFiles shows what kernels become, so that a change of the emitter can be read in a diff.
func TestTextMatchesGoldenFiles(t *testing.T) {
	target, _ := TargetNamed("x86-64-v3")
	kernels := map[string]*loop.Kernel{"relu_add_mul": reluAddMul(1000)}
	for _, c := range kerneltest.Special() {
		if c.Name == "softmax" && c.Work == 5 {
			kernels["softmax"] = c.Kernel
		}
		if c.Name == "side by side" {
			kernels["side_by_side"] = c.Kernel
		}
	}
	for name, kernel := range kernels {
		path := filepath.Join("testdata", name+".ll")
		text := Emit(kernel, target)
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s is emitted as\n%s\nbut the golden file holds\n%s", name, text, want)
		}
	}
}
