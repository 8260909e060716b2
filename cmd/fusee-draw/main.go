// Command fusee-draw reads a JSON list of graphs in Graphviz's language from standard input and writes the JSON list of
// their SVG pictures to standard output.
//
// It is a binary of its own because linking Graphviz costs every start of a process 70 ms, and more than a second the
// first time (an initialiser compiles its WebAssembly), and the compiler has to answer a few milliseconds after it starts.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/errors"
	"github.com/goccy/go-graphviz"
)

func main() {
	if err := draw(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fusee-draw:", err)
		os.Exit(1)
	}
}

// draw reads the graphs and writes the pictures; one graph that cannot be drawn fails them all.
func draw(ctx context.Context, in io.Reader, out io.Writer) error {
	var sources []string
	if err := json.NewDecoder(in).Decode(&sources); err != nil {
		return errors.Wrap(err, "reading the list of graphs")
	}
	engine, err := graphviz.New(ctx)
	if err != nil {
		return errors.Wrap(err, "starting Graphviz")
	}
	pictures := make([]string, len(sources))
	for i, source := range sources {
		if pictures[i], err = picture(ctx, engine, source); err != nil {
			return errors.Wrapf(err, "graph %d", i)
		}
	}
	return errors.Wrap(json.NewEncoder(out).Encode(pictures), "writing the pictures")
}

// picture lays one graph out.
func picture(ctx context.Context, engine *graphviz.Graphviz, source string) (string, error) {
	graph, err := graphviz.ParseBytes([]byte(source))
	if err != nil {
		return "", errors.Wrap(err, "not a graph in Graphviz's language")
	}
	var svg bytes.Buffer
	if err := engine.Render(ctx, graph, graphviz.SVG, &svg); err != nil {
		return "", errors.Wrap(err, "drawing the graph")
	}
	return svg.String(), errors.Wrap(graph.Close(), "closing the graph")
}
