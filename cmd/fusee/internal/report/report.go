// Package report shows what was compiled, as text for a terminal and as one HTML page.
//
// The records are those of section 8 of docs/contracts.md.
package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/cockroachdb/errors"
)

// Format is the version of the records that this package reads.
const Format = 1

// Report describes one compilation.
type Report struct {
	Format    int              `json:"format"`
	Function  Function         `json:"function"`
	Action    string           `json:"action"`
	Reason    *Break           `json:"reason"`
	Graphs    []Graph          `json:"graphs"`
	Breaks    []Break          `json:"breaks"`
	Guards    []Guard          `json:"guards"`
	Kernels   []Kernel         `json:"kernels"`
	Recompile *Recompile       `json:"recompile"`
	Times     map[string]int64 `json:"times"`
}

// Function names what was compiled; ResumesAt is the line that a continuation goes on at, 0 for a whole function.
type Function struct {
	Name      string `json:"name"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	ResumesAt int    `json:"resumes_at"`
}

// Place is an expression in a user's file. Lines count from 1 (0: unknown); columns are 0-based UTF-8 bytes as in
// CPython's co_positions (-1: unknown); Source is the text of the first line.
type Place struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	EndLine   int    `json:"end_line"`
	Column    int    `json:"column"`
	EndColumn int    `json:"end_column"`
	Source    string `json:"source"`
}

// Graph is one captured graph of tensor operations.
type Graph struct {
	Name       string   `json:"name"`
	Text       string   `json:"text"`
	Operations int      `json:"ops"`
	Nodes      []Node   `json:"nodes"`
	Outputs    []string `json:"outputs"`
}

// Node is one operation of a graph, or an input (Target "input").
type Node struct {
	Name   string   `json:"name"`
	Target string   `json:"target"`
	Inputs []string `json:"inputs"`
	Type   string   `json:"type"`
	File   string   `json:"file"`
	Line   int      `json:"line"`
}

// Break says why capture stopped at a place.
type Break struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
	Place
}

// Guard is one check that a call must pass before it may run the compiled code.
type Guard struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
	Place
}

// Kernel is one kernel or library call, with the operations that run in it.
type Kernel struct {
	Name       string   `json:"name"`
	Graph      string   `json:"graph"`
	Target     string   `json:"target"`
	Kind       string   `json:"kind"`
	Operations []string `json:"ops"`
	Source     string   `json:"source"`
}

// Recompile says why the entries that existed did not fit a call.
type Recompile struct {
	Failed []FailedGuard `json:"failed"`
}

// FailedGuard is the guard that rejected a call for one entry.
type FailedGuard struct {
	Entry int    `json:"entry"`
	Guard int    `json:"guard"`
	Text  string `json:"text"`
	Old   string `json:"old"`
	New   string `json:"new"`
	Place
}

// Read decodes reports from lines of JSON. A line that is no report is an error that names the line; the reports
// before it are returned with the error.
func Read(r io.Reader) ([]Report, error) {
	var reports []Report
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, readError := lines.ReadBytes('\n')
		if text := bytes.TrimSpace(line); len(text) > 0 {
			report, err := decode(text)
			if err != nil {
				return reports, errors.Wrapf(err, "line %d", number)
			}
			reports = append(reports, report)
		}
		if readError == io.EOF {
			return reports, nil
		}
		if readError != nil {
			return reports, errors.Wrap(readError, "reading reports")
		}
	}
}

// decode reads one line.
func decode(text []byte) (Report, error) {
	var report Report
	if err := json.Unmarshal(text, &report); err != nil {
		return report, errors.WithHint(errors.Wrap(err, "not a report"), "the file holds one JSON object on each line")
	}
	if report.Format != Format {
		err := errors.Newf("report of format %d, this binary reads format %d", report.Format, Format)
		return report, errors.WithHint(err, "install the Python package and the binary from the same version")
	}
	return report, nil
}
