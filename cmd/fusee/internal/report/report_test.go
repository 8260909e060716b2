package report

import (
	"os"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

func sample(t *testing.T) []Report {
	t.Helper()
	file, err := os.Open("testdata/two.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reports, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

func text(t *testing.T, width int) string {
	t.Helper()
	var out strings.Builder
	if err := WriteText(&out, sample(t), Terminal{Width: width, Directory: "/home/user", Source: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTextFitsTheTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		for _, line := range strings.Split(text(t, width), "\n") {
			if runewidth.StringWidth(line) > width {
				t.Errorf("%d columns, the line has %d: %s", width, runewidth.StringWidth(line), line)
			}
		}
	}
}

func TestTextSaysEverything(t *testing.T) {
	got := strings.Join(strings.Fields(text(t, 100)), " ")
	for _, report := range sample(t) {
		want := []string{report.Function.Name, Stages(report.Times)}
		for _, b := range report.Breaks {
			want = append(want, b.ID, b.Message, b.Hint)
		}
		for _, guard := range report.Guards {
			want = append(want, guard.Text)
		}
		for _, kernel := range report.Kernels {
			want = append(want, kernel.Name, strings.Join(kernel.Operations, ", "), kernel.Source)
		}
		for _, w := range want {
			if !strings.Contains(got, strings.Join(strings.Fields(w), " ")) {
				t.Errorf("the text lacks %q", w)
			}
		}
	}
}

// TestCaretsStandUnderTheExpression reads the marked columns back from the two lines and compares them with the source.
func TestCaretsStandUnderTheExpression(t *testing.T) {
	cases := []struct {
		source, expression string
		width              int
	}{
		{"    if y.sum() > 0:", "y.sum() > 0", 80},
		{"\t\tif y.sum() > 0:", "y.sum() > 0", 80},
		{"    grüße = \"漢字\" if x.max() > 0 else y", "x.max() > 0", 80},
		{strings.Repeat("left + ", 40) + "f(x)" + strings.Repeat(" + right", 40), "f(x)", 30},
		{"f(x)" + strings.Repeat(" + right", 40), "f(x)", 30},
		{strings.Repeat("left + ", 40) + "f(x)", "f(x)", 30},
	}
	for _, c := range cases {
		begin := strings.Index(c.source, c.expression)
		place := Place{Line: 1, EndLine: 1, Column: begin, EndColumn: begin + len(c.expression), Source: c.source}
		shown := excerptOf(place, c.width)
		if runewidth.StringWidth(shown.text) > c.width {
			t.Errorf("%q is wider than %d columns", shown.text, c.width)
		}
		if got := underlined(shown.text, shown.marks()); got != c.expression {
			t.Errorf("the carets are under %q, not %q:\n%s\n%s", got, c.expression, shown.text, shown.marks())
		}
	}
}

// underlined returns the characters of a line that have a caret below them.
func underlined(line, marks string) string {
	var result strings.Builder
	column := 0
	for _, r := range line {
		if column < len(marks) && marks[column] == '^' {
			result.WriteRune(r)
		}
		column += runewidth.RuneWidth(r)
	}
	return result.String()
}

func TestUnknownColumnsHaveNoCarets(t *testing.T) {
	for _, place := range []Place{
		{Line: 1, Column: -1, EndColumn: -1, Source: "x = 1"},
		{Line: 1, Column: 90, EndColumn: 95, Source: "x = 1"},
		{Line: 1, Column: 0, EndColumn: 0, Source: ""},
	} {
		if marks := excerptOf(place, 80).marks(); marks != "" {
			t.Errorf("%+v is marked %q", place, marks)
		}
	}
}

func TestReadNamesTheBadLine(t *testing.T) {
	good := `{"format": 1, "function": {"name": "f"}}`
	for _, bad := range []string{`{"format": 2}`, `{"format":`, `[]`, "\x00"} {
		reports, err := Read(strings.NewReader(good + "\n" + bad + "\n"))
		if err == nil || !strings.Contains(err.Error(), "line 2") || len(reports) != 1 {
			t.Errorf("%q: %d reports, error %v", bad, len(reports), err)
		}
	}
}

func FuzzReadAndWrite(f *testing.F) {
	content, err := os.ReadFile("testdata/two.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		reports, _ := Read(strings.NewReader(string(content)))
		var out strings.Builder
		if err := WriteText(&out, reports, Terminal{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if err := WriteHTML(&out, "fuzz", reports, noDrawing); err != nil {
			t.Fatal(err)
		}
	})
}

func noDrawing(dots []string) ([]string, error) { return make([]string, len(dots)), nil }
