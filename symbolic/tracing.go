package symbolic

import "slices"

// tracingCall is the name by which code sets a trace or profile function, "" where it sets none. What runs from there on calls that function with
// its frames and lines, which rewritten code has not.
func tracingCall(names []string) string {
	for _, name := range []string{"settrace", "setprofile"} {
		if slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

// leaveToPython ends the capture without code: every call of the function runs as plain Python.
func (in *Interpreter) leaveToPython(frame *Frame, reason *Unsupported) {
	for _, i := range frame.info.listing.Instructions {
		if frame.current = i; i.Position.Line > 0 {
			break
		}
	}
	in.note(frame, reason)
	in.result = &Result{Program: in.program, Breaks: in.notes, Frame: in.request.Function}
}
