package report

import (
	"fmt"
	"strings"
)

// Dot returns a graph in Graphviz's language: one box for each node, an arrow for each value that flows.
func Dot(graph Graph) string {
	var b strings.Builder
	b.WriteString("digraph {\n" +
		"  bgcolor=transparent; rankdir=TB; nodesep=0.25; ranksep=0.3\n" +
		"  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10, margin=\"0.2,0.08\"]\n" +
		"  edge [color=\"#7a7a7a\", arrowsize=0.6]\n")
	outputs := map[string]bool{}
	for _, name := range graph.Outputs {
		outputs[name] = true
	}
	for _, node := range graph.Nodes {
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=\"%s\"]\n", quote(node.Name), quote(label(node)), fill(node, outputs))
	}
	for _, node := range graph.Nodes {
		for _, input := range node.Inputs {
			fmt.Fprintf(&b, "  %s -> %s\n", quote(input), quote(node.Name))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// label is what a box says: the operation with the node's name, and the type of its value.
func label(node Node) string {
	text := node.Target + "  " + node.Name
	if node.Target == "input" {
		text = node.Name
	}
	if node.Type != "" {
		text += "\n" + node.Type
	}
	return text
}

// fill colours inputs and outputs, which the reader looks for first.
func fill(node Node, outputs map[string]bool) string {
	switch {
	case node.Target == "input":
		return "#dbeafe"
	case outputs[node.Name]:
		return "#dcfce7"
	}
	return "#f5f5f4"
}

// quote writes a string of Graphviz's language. Backslashes are doubled, since its labels know escapes of their own.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", "").Replace(text) + `"`
}
