// Package python finds and runs the Python interpreter that the package fusee is installed for.
package python

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cockroachdb/errors"
)

// Variable names the environment variable that the `fusee` command of an installed package sets to its interpreter.
const Variable = "FUSEE_PYTHON"

// Find returns the interpreter to use: the one asked for, else the one of the environment variable FUSEE_PYTHON, of the
// active virtual environment, of the environment this binary is installed in, and last the one on PATH.
func Find(wanted string) (string, error) {
	if wanted != "" {
		return lookUp(wanted)
	}
	for _, candidate := range candidates() {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	err := errors.New("no Python interpreter was found")
	return "", errors.WithHint(err, "name one with --python, or set "+Variable)
}

func lookUp(wanted string) (string, error) {
	path, err := exec.LookPath(wanted)
	if err != nil {
		return "", errors.WithHint(errors.Newf("%s is no program", wanted), "--python takes the path of a Python interpreter")
	}
	return path, nil
}

func candidates() []string {
	var found []string
	if path := os.Getenv(Variable); path != "" {
		found = append(found, path)
	}
	if environment := os.Getenv("VIRTUAL_ENV"); environment != "" {
		found = append(found, filepath.Join(environment, "bin", "python"))
	}
	if binary, err := os.Executable(); err == nil {
		// PREFIX/lib/python3.11/site-packages/fusee/bin/fusee
		found = append(found, filepath.Join(filepath.Dir(binary), "../../../../../bin/python3.11"))
	}
	return append(found, "python3.11", "python3", "python")
}
