package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
)

func page(t *testing.T, reports []Report, draw Draw) string {
	t.Helper()
	var out strings.Builder
	if err := WriteHTML(&out, "a program", reports, draw); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPageNeedsNoOtherFile(t *testing.T) {
	html := page(t, sample(t), noDrawing)
	if found := regexp.MustCompile(`(src|href)="[^#][^"]*"|url\(|@import`).FindString(html); found != "" {
		t.Errorf("the page refers to %s", found)
	}
}

func TestPageEscapesWhatTheProgramSays(t *testing.T) {
	reports := sample(t)
	const hostile = `<script>alert("x")</script>`
	reports[0].Function.Name = hostile
	reports[0].Graphs[0].Text = hostile
	reports[0].Breaks[0].Source = hostile
	reports[0].Kernels[0].Source = hostile
	if html := page(t, reports, noDrawing); strings.Contains(html, "<script") {
		t.Error("the page holds a script")
	}
}

func TestPageShowsTheDrawing(t *testing.T) {
	var drawn string
	html := page(t, sample(t), func(dots []string) ([]string, error) {
		drawn = strings.Join(dots, "")
		return []string{`<?xml version="1.0"?><!DOCTYPE svg><svg id="drawn"></svg>`}, nil
	})
	for _, want := range []string{`"add" -> "relu"`, `"relu" -> "mul"`, `"x" -> "add"`} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the drawing lacks %s", want)
		}
	}
	if !strings.Contains(html, `<svg id="drawn">`) || strings.Contains(html, "<?xml") {
		t.Error("the page lacks the drawing, or holds what stood before it")
	}
}

func TestPageWithoutDrawingSaysWhy(t *testing.T) {
	html := page(t, sample(t), func([]string) ([]string, error) { return nil, errors.New("no Graphviz today") })
	if !strings.Contains(html, "no Graphviz today") || !strings.Contains(html, "torch.relu(add)") {
		t.Error("the page lacks the reason or the graph's text")
	}
}

func TestDotQuotesNames(t *testing.T) {
	graph := Graph{Nodes: []Node{{Name: `a"b\`, Target: "input"}}}
	if dot := Dot(graph); !strings.Contains(dot, `"a\"b\\" [label="a\"b\\"`) {
		t.Error(dot)
	}
}
