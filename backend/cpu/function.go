package cpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// function is the text of one LLVM function under construction. Values are operands as LLVM writes them: "%7", "0", "splat (i8 1)".
type function struct {
	lines        []string
	names        int
	block        string            // label of the open block
	declarations map[string]string // by function name
}

func newFunction() *function {
	return &function{block: "entry", declarations: map[string]string{}}
}

// line appends one instruction.
func (f *function) line(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf("  "+format, args...))
}

// assign appends one instruction with a result and returns the result's name.
func (f *function) assign(format string, args ...any) string {
	name := f.fresh()
	f.lines = append(f.lines, "  "+name+" = "+fmt.Sprintf(format, args...))
	return name
}

func (f *function) fresh() string {
	f.names++
	return "%v" + strconv.Itoa(f.names)
}

// open starts a block.
func (f *function) open(label string) {
	f.lines = append(f.lines, label+":")
	f.block = label
}

// call appends a call of a function outside the module, declaring it.
func (f *function) call(result, name string, types, args []string) string {
	f.declarations[name] = fmt.Sprintf("declare %s @%s(%s)", result, name, strings.Join(types, ", "))
	operands := make([]string, len(args))
	for index := range args {
		operands[index] = types[index] + " " + args[index]
	}
	return f.assign("call %s @%s(%s)", result, name, strings.Join(operands, ", "))
}

// carried is a value that a loop passes from one turn to the next.
type carried struct {
	typ     string
	initial string
}

// loop appends "for index = from; index < to; index += step" and returns the final carried values. The body receives the index and the
// carried values and returns the next ones.
func (f *function) loop(from, to, step string, values []carried, body func(index string, current []string) []string) []string {
	f.names++
	label := "loop" + strconv.Itoa(f.names)
	before := f.block
	f.line("br label %%%s.head", label)
	f.open(label + ".head")
	index := f.fresh()
	phis := len(f.lines)
	f.lines = append(f.lines, make([]string, len(values)+1)...)
	current := make([]string, len(values))
	for position := range values {
		current[position] = f.fresh()
	}
	f.line("%s.more = icmp slt i64 %s, %s", index, index, to)
	f.line("br i1 %s.more, label %%%s.body, label %%%s.exit", index, label, label)
	f.open(label + ".body")
	next := body(index, current)
	f.line("%s.next = add i64 %s, %s", index, index, step)
	f.lines[phis] = fmt.Sprintf("  %s = phi i64 [ %s, %%%s ], [ %s.next, %%%s ]", index, from, before, index, f.block)
	for position, value := range values {
		f.lines[phis+1+position] = fmt.Sprintf("  %s = phi %s [ %s, %%%s ], [ %s, %%%s ]",
			current[position], value.typ, value.initial, before, next[position], f.block)
	}
	f.line("br label %%%s.head", label)
	f.open(label + ".exit")
	return current
}

// module returns the text of a module that holds the function, which returns result, and what it calls.
func (f *function) module(signature, result, attributes string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "define i64 %s #0 {\nentry:\n", signature)
	for _, line := range f.lines {
		text.WriteString(line)
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "  ret i64 %s\n}\n", result)
	names := make([]string, 0, len(f.declarations))
	for name := range f.declarations {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text.WriteString(f.declarations[name])
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "attributes #0 = { %s }\n", attributes)
	return text.String()
}
