package report

import (
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// Terminal says how text is laid out.
type Terminal struct {
	Width     int    // columns
	Color     bool   // whether escape sequences for bold, dim and colours may be written
	Directory string // file names below it are written relative to it
	Source    bool   // whether kernels are shown with their code
}

// writer lays out one report after the other.
type writer struct {
	Terminal
	text strings.Builder
}

// style is an escape sequence of a terminal.
type style string

const (
	bold style = "\x1b[1m"
	dim  style = "\x1b[2m"
	red  style = "\x1b[31m"
)

// WriteText writes reports as a person reads them on a terminal.
func WriteText(out io.Writer, reports []Report, terminal Terminal) error {
	terminal.Width = max(terminal.Width, 40)
	w := &writer{Terminal: terminal}
	for i, report := range reports {
		if i > 0 {
			w.line("")
		}
		w.report(report)
	}
	w.summary(reports)
	_, err := io.WriteString(out, w.text.String())
	return err
}

func (w *writer) line(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	w.text.WriteString(strings.TrimRight(text, " ") + "\n")
}

func (w *writer) styled(s style, text string) string {
	if !w.Color {
		return text
	}
	return string(s) + text + "\x1b[0m"
}

// wrap writes text in lines of at most the terminal's width; the lines after the first are indented by hang columns.
func (w *writer) wrap(prefix, text string, hang int) {
	line := prefix
	column := runewidth.StringWidth(prefix)
	empty := true
	for _, word := range strings.Fields(text) {
		width := runewidth.StringWidth(word)
		if !empty && column+1+width > w.Width {
			w.line("%s", line)
			line, column, empty = strings.Repeat(" ", hang), hang, true
		}
		if !empty {
			line, column = line+" ", column+1
		}
		line, column, empty = line+word, column+width, false
	}
	w.line("%s", line)
}

func (w *writer) report(r Report) {
	w.title(r)
	w.recompile(r.Recompile)
	w.graphs(r.Graphs)
	section(w, "Kernels", r.Kernels, w.kernel)
	w.breaks(r)
	section(w, "Guards", r.Guards, w.oneGuard)
	w.times(r.Times)
}

func (w *writer) title(r Report) {
	name := r.Function.Name
	if r.Function.ResumesAt > 0 {
		name += fmt.Sprintf(", from line %d on", r.Function.ResumesAt)
	}
	w.line("%s  %s", w.styled(bold, name), w.place(r.Function.File, r.Function.Line))
	w.wrap("  ", Summary(r), 2)
}

// Summary is one sentence about a report: what came of the compilation, in numbers.
func Summary(r Report) string {
	if r.Action == "plain" {
		return "runs as plain Python from now on"
	}
	parts := []string{
		count(len(r.Graphs), "graph"), count(operations(r.Graphs), "operation"), count(len(r.Kernels), "kernel"),
		count(len(r.Breaks), "break"), count(len(r.Guards), "guard"),
	}
	text := "compiled: " + strings.Join(parts, ", ")
	if total, ok := r.Times["total"]; ok {
		text = "compiled in " + duration(total) + strings.TrimPrefix(text, "compiled")
	}
	return text
}

func operations(graphs []Graph) int {
	sum := 0
	for _, graph := range graphs {
		sum += graph.Operations
	}
	return sum
}

// count returns a number with its noun: "1 graph", "no breaks", "3 guards".
func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func duration(microseconds int64) string {
	d := time.Duration(microseconds) * time.Microsecond
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", microseconds)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(microseconds)/1e3)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// place returns "file:line", the file relative to the directory where it lies below it.
func (w *writer) place(file string, line int) string {
	if relative, err := filepath.Rel(w.Directory, file); err == nil && filepath.IsLocal(relative) {
		file = relative
	}
	if line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func (w *writer) heading(text string) {
	w.line("")
	w.line("  %s", w.styled(bold, text))
}

// code shows the source line of a place with carets under the expression.
func (w *writer) code(place Place, indent int) {
	if strings.TrimSpace(place.Source) == "" {
		return
	}
	margin := strings.Repeat(" ", indent)
	number := fmt.Sprint(place.Line)
	blank := strings.Repeat(" ", len(number))
	shown := excerptOf(place, w.Width-indent-len(number)-3)
	w.line("%s%s %s", margin, w.styled(dim, number+" |"), shown.text)
	if marks := shown.marks(); marks != "" {
		spaces := len(marks) - len(strings.TrimLeft(marks, " "))
		w.line("%s%s %s%s", margin, w.styled(dim, blank+" |"), marks[:spaces], w.styled(red, marks[spaces:]))
	}
}

func (w *writer) recompile(r *Recompile) {
	if r != nil {
		section(w, "Recompiled, since no entry fitted the call", r.Failed, w.failed)
	}
}

func (w *writer) failed(_ int, failed FailedGuard) {
	text := fmt.Sprintf("guard %d, %s: was %s, now %s", failed.Guard, failed.Text, failed.Old, failed.New)
	w.wrap(fmt.Sprintf("    entry %d: ", failed.Entry), text, 13)
	if failed.Line > 0 {
		w.line("             %s", w.place(failed.File, failed.Line))
		w.code(failed.Place, 13)
	}
}

func (w *writer) graphs(graphs []Graph) {
	for _, graph := range graphs {
		w.heading(fmt.Sprintf("Graph %s, %s", graph.Name, count(graph.Operations, "operation")))
		w.block(graph.Text, 4)
	}
}

func (w *writer) kernel(_ int, kernel Kernel) {
	prefix := fmt.Sprintf("    %s (%s, %s): ", kernel.Name, kernel.Target, kernel.Kind)
	w.wrap(prefix, strings.Join(kernel.Operations, ", "), 8)
	if w.Source && kernel.Source != "" {
		w.block(kernel.Source, 8)
	}
}

// block writes text as it is, indented.
func (w *writer) block(text string, indent int) {
	margin := strings.Repeat(" ", indent)
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		w.line("%s", margin+line)
	}
}

func (w *writer) breaks(r Report) {
	if r.Reason != nil {
		w.heading("Why it is not compiled")
		w.oneBreak("    ", *r.Reason)
	}
	section(w, "Breaks", r.Breaks, func(i int, b Break) { w.oneBreak(fmt.Sprintf("    %d. ", i+1), b) })
}

func (w *writer) oneBreak(prefix string, b Break) {
	hang := len(prefix)
	margin := strings.Repeat(" ", hang)
	w.wrap(prefix, fmt.Sprintf("%s [%s]", b.Message, b.ID), hang)
	if b.File != "" {
		w.line("%s%s", margin, w.place(b.File, b.Line))
	}
	w.code(b.Place, hang)
	if b.Hint != "" {
		w.wrap(margin+"hint: ", b.Hint, hang+6)
	}
}

// oneGuard writes the check and, at the right edge or on the next line, the line of the program that needs it.
func (w *writer) oneGuard(number int, guard Guard) {
	prefix := fmt.Sprintf("    %3d  ", number)
	where := ""
	if guard.Line > 0 {
		where = w.place(guard.File, guard.Line)
	}
	used := len(prefix) + runewidth.StringWidth(guard.Text)
	gap := w.Width - used - runewidth.StringWidth(where)
	if gap >= 2 && where != "" {
		w.line("%s%s%s%s", prefix, guard.Text, strings.Repeat(" ", gap), w.styled(dim, where))
		return
	}
	w.wrap(prefix, guard.Text, len(prefix)+2)
	if where != "" {
		w.line("%s%s", strings.Repeat(" ", len(prefix)+2), w.styled(dim, where))
	}
}

// times lists the stages in the order in which they run.
func (w *writer) times(times map[string]int64) {
	if len(times) == 0 {
		return
	}
	w.heading("Times")
	w.wrap("    ", Stages(times), 4)
}

// Stages returns the time of each stage as text, in the order in which they run, the total last.
func Stages(times map[string]int64) string {
	order := []string{"capture", "autograd", "lower", "emit", "load"}
	known := map[string]bool{"total": true}
	var parts, others []string
	for _, stage := range order {
		known[stage] = true
		if t, ok := times[stage]; ok {
			parts = append(parts, stage+" "+duration(t))
		}
	}
	for stage, t := range times {
		if !known[stage] {
			others = append(others, stage+" "+duration(t))
		}
	}
	sort.Strings(others)
	parts = append(parts, others...)
	if total, ok := times["total"]; ok {
		parts = append(parts, "total "+duration(total))
	}
	return strings.Join(parts, ", ")
}

// summary closes a list of more than one report.
func (w *writer) summary(reports []Report) {
	if len(reports) < 2 {
		return
	}
	graphs, breaks, plain := 0, 0, 0
	var total int64
	for _, r := range reports {
		graphs, breaks, total = graphs+len(r.Graphs), breaks+len(r.Breaks), total+r.Times["total"]
		if r.Action == "plain" {
			plain++
		}
	}
	w.line("")
	text := fmt.Sprintf("%s, %s, %s", count(len(reports), "compilation"), count(graphs, "graph"), count(breaks, "break"))
	if plain > 0 {
		text += fmt.Sprintf(", %d left as plain Python", plain)
	}
	if total > 0 {
		text += ", " + duration(total)
	}
	w.wrap("", text, 0)
}

// section writes a heading and what stands under it, or nothing where there is nothing.
func section[T any](w *writer, heading string, items []T, write func(number int, item T)) {
	if len(items) > 0 {
		w.heading(heading)
	}
	for i, item := range items {
		write(i, item)
	}
}
