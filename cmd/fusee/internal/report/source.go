package report

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// excerpt is a line of source cut to a width, with the underlined part as terminal columns.
type excerpt struct {
	text       string
	start, end int
}

// excerptOf returns the source line of a place without its indentation, at most width columns wide and so that the
// marked expression stays in view. Start equals end where the columns are unknown.
func excerptOf(place Place, width int) excerpt {
	begin, end := byteRange(place)
	line := excerpt{text: expandTabs(place.Source), start: columnOf(place.Source, begin), end: columnOf(place.Source, end)}
	indentation := len(line.text) - len(strings.TrimLeft(line.text, " "))
	return line.cutLeft(min(indentation, line.start)).fit(width)
}

// byteRange returns the marked bytes of the first line, both 0 where the place does not know its columns.
func byteRange(place Place) (begin, end int) {
	length := len(place.Source)
	if place.Column < 0 || place.Column >= length {
		return 0, 0
	}
	end = place.EndColumn
	if place.EndLine > place.Line || end > length {
		end = length
	}
	return place.Column, max(end, place.Column+1)
}

// expandTabs writes each tab as one space: the excerpt shows an expression, not the layout of the file.
func expandTabs(text string) string { return strings.ReplaceAll(text, "\t", " ") }

// columnOf converts an offset in bytes to a terminal column, never splitting a character.
func columnOf(text string, offset int) int {
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	return runewidth.StringWidth(expandTabs(text[:offset]))
}

// cutLeft removes columns from the left.
func (e excerpt) cutLeft(columns int) excerpt {
	text := e.text
	removed := 0
	for removed < columns && text != "" {
		r, size := utf8.DecodeRuneInString(text)
		removed += runewidth.RuneWidth(r)
		text = text[size:]
	}
	return excerpt{text: text, start: max(e.start-removed, 0), end: max(e.end-removed, 0)}
}

// fit cuts to a width, first on the left while the marked part would leave the view, then on the right.
func (e excerpt) fit(width int) excerpt {
	const ellipsis = "…"
	if runewidth.StringWidth(e.text) <= width {
		return e
	}
	if e.end > width {
		shift := min(e.start, e.end-width+2)
		e = e.cutLeft(shift)
		e = excerpt{text: ellipsis + e.text, start: e.start + 1, end: e.end + 1}
	}
	e.text = runewidth.Truncate(e.text, width, ellipsis)
	e.end = min(e.end, width)
	return e
}

// marks returns the line under the excerpt: carets below the marked part, empty where there is none.
func (e excerpt) marks() string {
	if e.end <= e.start {
		return ""
	}
	return strings.Repeat(" ", e.start) + strings.Repeat("^", e.end-e.start)
}
