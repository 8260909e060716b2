package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
)

func TestDrawsEachGraph(t *testing.T) {
	var out strings.Builder
	in := `["digraph { \"first\" -> \"second <&> \\\"\" }", "digraph { third }"]`
	if err := draw(context.Background(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var pictures []string
	if err := json.Unmarshal([]byte(out.String()), &pictures); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"first", `second <&> "`}, {"third"}} {
		texts := textElements(t, pictures[i])
		for _, w := range want {
			if !strings.Contains(texts, w) {
				t.Errorf("picture %d shows %q, not %q", i, texts, w)
			}
		}
	}
}

// textElements returns the characters of all elements of a well-formed picture.
func textElements(t *testing.T, picture string) string {
	t.Helper()
	var texts strings.Builder
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts.String()
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if characters, ok := token.(xml.CharData); ok {
			texts.Write(characters)
		}
	}
}

func TestBadInputIsAnError(t *testing.T) {
	for _, in := range []string{"", "digraph {}", `["digraph {"]`, `["not a graph"]`} {
		if err := draw(context.Background(), strings.NewReader(in), io.Discard); err == nil {
			t.Errorf("%q was drawn", in)
		}
	}
}
