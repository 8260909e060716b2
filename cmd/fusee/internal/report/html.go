package report

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
)

// LargestDrawing is the number of nodes above which a graph is shown as text only: laying out more takes Graphviz
// longer than a reader waits, and nobody can read the picture.
const LargestDrawing = 400

// Draw turns graphs in Graphviz's language into SVG elements, one for each.
type Draw func(dots []string) ([]string, error)

// WriteHTML writes reports as one page that needs no other file. Graphs are drawn with draw; where that fails the page
// says so and shows the text alone.
func WriteHTML(out io.Writer, title string, reports []Report, draw Draw) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"count":   count,
		"join":    func(parts []string) string { return strings.Join(parts, ", ") },
		"marked":  mark,
		"stages":  Stages,
		"summary": Summary,
		"where":   where,
	}).Parse(pageSource)
	if err != nil {
		return errors.Wrap(err, "the page's template")
	}
	data := struct {
		Title   string
		Reports []view
	}{title, views(reports, draw)}
	return errors.Wrap(page.Execute(out, data), "writing the page")
}

// view is a report with the pictures of its graphs.
type view struct {
	Report
	Pictures []*picture
}

// picture is a graph with its drawing, or with the reason why there is none.
type picture struct {
	Graph
	SVG     template.HTML
	Missing string
}

// views draws the graphs of all reports at once, since starting Graphviz takes longer than drawing.
func views(reports []Report, draw Draw) []view {
	result := make([]view, len(reports))
	var drawn []*picture
	var dots []string
	for i, report := range reports {
		result[i].Report = report
		for _, graph := range report.Graphs {
			p := &picture{Graph: graph}
			result[i].Pictures = append(result[i].Pictures, p)
			if len(graph.Nodes) > LargestDrawing {
				p.Missing = fmt.Sprintf("Not drawn, since it has %d nodes.", len(graph.Nodes))
			} else if len(graph.Nodes) > 0 {
				drawn, dots = append(drawn, p), append(dots, Dot(graph))
			}
		}
	}
	fillIn(drawn, dots, draw)
	return result
}

// fillIn gives each picture its drawing or the reason why there is none.
func fillIn(drawn []*picture, dots []string, draw Draw) {
	if len(dots) == 0 {
		return
	}
	drawings, err := draw(dots)
	if err == nil && len(drawings) != len(dots) {
		err = errors.Newf("%d drawings came back for %d graphs", len(drawings), len(dots))
	}
	for i, p := range drawn {
		if err != nil {
			p.Missing = "Not drawn: " + err.Error()
			continue
		}
		p.SVG = template.HTML(element(drawings[i]))
	}
}

// element cuts off what Graphviz writes before the SVG element, which is not allowed inside a page.
func element(drawing string) string {
	return drawing[max(strings.Index(drawing, "<svg"), 0):]
}

// markedSource is a line of source in three parts, the middle one being the expression.
type markedSource struct{ Before, Marked, After string }

func mark(place Place) markedSource {
	begin, end := byteRange(place)
	begin, end = onRune(place.Source, begin), onRune(place.Source, end)
	before := strings.TrimLeft(place.Source[:begin], " \t")
	return markedSource{before, place.Source[begin:end], strings.TrimRight(place.Source[end:], " \t")}
}

// onRune moves an offset forward to where a character starts.
func onRune(text string, offset int) int {
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	return offset
}

func where(place Place) string {
	if place.Line <= 0 {
		return place.File
	}
	return fmt.Sprintf("%s:%d", place.File, place.Line)
}
