package report

import (
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Mark says at a glance whether a row of a table is as it should be.
type Mark string

// The marks, as they are written before a row.
const (
	MarkGood Mark = "ok"
	MarkNote Mark = "note"
	MarkBad  Mark = "MISSING"
)

// Row is one finding: what was looked for, what was found, and what to do about it.
type Row struct {
	Name   string
	Mark   Mark
	Text   string
	Advice string
}

// WriteRows writes findings in three columns, with the advice under the text.
func WriteRows(out io.Writer, rows []Row, terminal Terminal) error {
	w := &writer{Terminal: terminal}
	width := 0
	for _, row := range rows {
		width = max(width, runewidth.StringWidth(row.Name))
	}
	for _, row := range rows {
		w.row(row, width)
	}
	_, err := io.WriteString(out, w.text.String())
	return err
}

func (w *writer) row(row Row, width int) {
	prefix := runewidth.FillRight(row.Name, width) + "  " + runewidth.FillRight(string(row.Mark), len(MarkBad)) + "  "
	hang := runewidth.StringWidth(prefix)
	w.wrap(prefix, row.Text, hang)
	if row.Advice != "" {
		w.wrap(strings.Repeat(" ", hang)+"hint: ", row.Advice, hang+6)
	}
}
