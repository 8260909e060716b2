package graph

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fusee/internal/slice"
)

// String prints the graph in a fixed form, one node a line:
//
//	graph f(x: float32[4], y: float32[4])
//	  add_0: float32[4] = operator.add(x, y)    # example.py:3
//	  return add_0
func (g *Graph) String() string {
	var b strings.Builder
	b.WriteString("graph " + g.Name + "(" + joined(g.Inputs, (*Input).declaration) + ")\n")
	for _, n := range g.Nodes {
		b.WriteString("  " + n.String() + "\n")
	}
	b.WriteString("  return " + joined(g.Outputs, FormatValue) + "\n")
	for _, guard := range g.Shapes.Guards() {
		b.WriteString("  where " + guard.String() + "\n")
	}
	return b.String()
}

func joined[T any](items []T, format func(T) string) string {
	return strings.Join(slice.Map(items, format), ", ")
}

func (in *Input) declaration() string {
	switch in.Kind {
	case Int:
		return in.Name + ": int = " + in.Size.String()
	case Float:
		return in.Name + ": float"
	}
	return in.Name + ": " + in.Meta.String()
}

// String prints the node as in Graph.String.
func (n *Node) String() string {
	text := n.Name
	if len(n.Outputs) > 0 {
		text += ": " + joined(n.Outputs, OutputInfo.String)
	}
	arguments := make([]string, 0, len(n.Args)+len(n.Keywords))
	for _, a := range n.Args {
		arguments = append(arguments, FormatValue(a))
	}
	for _, k := range n.Keywords {
		arguments = append(arguments, k.Name+"="+FormatValue(k.Value))
	}
	text += " = " + n.Target + "(" + strings.Join(arguments, ", ") + ")"
	if len(n.Mutates) > 0 {
		text += " mutates " + joined(n.Mutates, FormatValue)
	}
	if n.Random {
		text += " random"
	}
	if n.Origin.File != "" {
		text += "    # " + filepath.Base(n.Origin.File) + ":" + strconv.Itoa(n.Origin.Line)
	}
	return text
}

// String prints the metadata and, unless the memory is fresh, the relation.
func (o OutputInfo) String() string {
	switch o.Relation.Kind {
	case RelationSame:
		return o.Meta.String() + " is " + FormatValue(o.Relation.Of)
	case RelationView:
		return o.Meta.String() + " of " + FormatValue(o.Relation.Of)
	}
	return o.Meta.String()
}

// String prints "float32[2, 3]", with strides unless contiguous, and what else is out of the ordinary.
func (m Meta) String() string {
	text := m.DType.String() + "[" + joined(m.Sizes, Size.String) + "]"
	if !plainlyContiguous(m.Sizes, m.Strides) {
		text += "{" + joined(m.Strides, Size.String) + "}"
	}
	if m.Offset.Expr != nil || m.Offset.Hint != 0 {
		text += "+" + m.Offset.String()
	}
	if device := m.Device.String(); device != "cpu" {
		text += " " + device
	}
	if m.RequiresGrad {
		text += " grad"
	}
	return text
}

// plainlyContiguous compares strides with those of a fresh tensor without taking a decision on symbols.
func plainlyContiguous(sizes, strides []Size) bool {
	var undecided *ShapeEnvironment
	return slices.EqualFunc(undecided.contiguousStrides(sizes), strides, func(a, b Size) bool { return a.String() == b.String() })
}

// FormatValue prints an argument value as Python would write it, graph values by name.
func FormatValue(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case *Input:
		return v.Name
	case *Output:
		if len(v.Node.Outputs) == 1 {
			return v.Node.Name
		}
		return v.Node.Name + "." + strconv.Itoa(v.Index)
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case float64:
		return formatFloat(v)
	case string:
		return strconv.Quote(v)
	case DType:
		return "torch." + v.String()
	case Layout:
		return "torch." + string(v)
	case MemoryFormat:
		return "torch." + string(v)
	case Ellipsis:
		return "..."
	case List:
		return v.String()
	case Slice:
		return v.String()
	}
	return fmt.Sprint(v)
}

// formatFloat always shows that the number is a float.
func formatFloat(v float64) string {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if strings.ContainsAny(text, ".eIN") {
		return text
	}
	return text + ".0"
}

// String prints the list or tuple in Python's brackets.
func (l List) String() string {
	items := joined(l.Items, FormatValue)
	switch {
	case !l.Tuple:
		return "[" + items + "]"
	case len(l.Items) == 1:
		return "(" + items + ",)"
	}
	return "(" + items + ")"
}

// String prints "start:stop:step" without absent bounds.
func (s Slice) String() string {
	text := optional(s.Start) + ":" + optional(s.Stop)
	if s.Step != nil {
		text += ":" + FormatValue(s.Step)
	}
	return text
}

func optional(v Value) string {
	if v == nil {
		return ""
	}
	return FormatValue(v)
}

// nodeName turns a target into the stem of a node name: "torch.nn.functional.relu" → "relu", "aten.add.Tensor" → "add",
// "Tensor.__add__" → "add".
func nodeName(target string) string {
	parts := strings.Split(target, ".")
	name := parts[len(parts)-1]
	if parts[0] == "aten" && len(parts) > 1 {
		name = parts[1]
	}
	if trimmed := strings.Trim(name, "_"); trimmed != "" {
		return trimmed
	}
	return "node"
}
