package symbolic

import (
	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/internal/slice"
	"fusee/trace"
)

// Result is what a capture came to.
type Result struct {
	Code          *bytecode.Code // nil where a whole graph was asked for and there is a break, or where nothing is to be captured
	Captures      int
	Program       *guards.Program
	Graph         *graph.Graph // nil when no tensor operation is needed
	PythonOnly    bool         // the graph holds an operation that only Python can run
	Continuations []Code
	Steps         []Code
	Breaks        []Break
	Warnings      []string
	Frame         trace.ObjectID
}

// Code is one code object of a break, with the id of the globals it runs in, 0 for those of the captured function.
type Code struct {
	Code    *bytecode.Code
	Name    string
	Globals int64
}

// Break tells people where and why the capture ended early.
type Break struct {
	Reason   *Reason
	Detail   string
	File     string
	Function string
	Position bytecode.Position
}

// note records a break at the user's line: the innermost frame that belongs to no library.
func (in *Interpreter) note(f *Frame, reason *Unsupported) {
	at := f
	for at.internal() && at.back != nil {
		at = at.back
	}
	if at.internal() {
		at = f // no user's frame is on the way: the library's own line says more than none
	}
	in.notes = append(in.notes, Break{reason.Reason, reason.Detail, at.code.FileName, at.code.QualName, at.current.Position})
}

// Wire writes the result in the form of docs/contracts.md, section 4, without its graphs and report.
func (r *Result) Wire() *bytecode.Dict {
	if r.Code == nil {
		return bytecode.NewDict("action", "plain")
	}
	return bytecode.NewDict("action", "entry", "code", r.Code, "captures", int64(r.Captures), "guards", r.Program.Wire(),
		"continuations", wireCodes(r.Continuations), "steps", wireCodes(r.Steps))
}

func wireCodes(codes []Code) *bytecode.List {
	return &bytecode.List{Items: slice.Map(codes, func(code Code) bytecode.Object {
		wired := bytecode.NewDict("code", code.Code, "name", code.Name)
		if code.Globals != 0 {
			wired.Set("globals", code.Globals)
		}
		return wired
	})}
}
