package guards

import (
	"fmt"
	"slices"

	"fusee/bytecode"
)

// Number is an int or float that a guard computes. Operation is "constant", "value" (of the source), "size" or "stride" (of the tensor that the
// source is, along Dimension), or one of Python's operators + - * // % / and the functions max and min over Args.
type Number struct {
	Operation string
	Constant  bytecode.Object
	Source    *Source
	Dimension int
	Args      []*Number
}

// comparison is a condition on numbers of one or more sources.
type comparison struct {
	relation    string // ==, !=, < or <=
	left, right *Number
	reason      Position
}

// Compare requires that two numbers keep comparing as they do: relation is ==, !=, < or <=. At least one of them is read from a source.
func (p *Program) Compare(reason Position, relation string, left, right *Number) {
	c := &comparison{relation, left, right, reason}
	sources := c.sources()
	for _, source := range sources {
		if len(sources) > 1 {
			source.Wanted()
		}
	}
	if len(sources) > 0 {
		p.comparisons = append(p.comparisons, c)
	}
}

func (c *comparison) sources() []*Source { return c.right.sources(c.left.sources(nil)) }

func (n *Number) sources(known []*Source) []*Source {
	if n.Source != nil && !slices.Contains(known, n.Source) {
		known = append(known, n.Source)
	}
	for _, arg := range n.Args {
		known = arg.sources(known)
	}
	return known
}

// settle puts the check on the source that comes last in the order of reading.
func (c *comparison) settle(order map[*Source]int) {
	sources := c.sources()
	last := slices.MaxFunc(sources, func(a, b *Source) int { return order[a] - order[b] })
	last.Checks = append(last.Checks, Check{Kind: "holds", Reason: c.reason, comparison: c,
		Arguments: []bytecode.Object{c.relation, c.left.wire(last), c.right.wire(last)}})
}

// wire writes the number as docs/contracts.md, section 6; own is the source that the check is on.
func (n *Number) wire(own *Source) bytecode.Object {
	switch n.Operation {
	case "constant":
		return n.Constant
	case "value":
		return bytecode.Tuple{n.Operation, n.capture(own)}
	case "size", "stride":
		return bytecode.Tuple{n.Operation, n.capture(own), int64(n.Dimension)}
	}
	return bytecode.Tuple{n.Operation, n.Args[0].wire(own), n.Args[1].wire(own)}
}

func (n *Number) capture(own *Source) int64 {
	if n.Source == own {
		return -1
	}
	return int64(n.Source.Capture)
}

// text writes the comparison as Python would, with a constant on the right.
func (c *comparison) text(name func(Accessor) string) string {
	left, right, relation := c.left, c.right, c.relation
	if left.Operation == "constant" {
		left, right = right, left
		relation = map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">="}[relation]
	}
	return left.text(name, false) + " " + relation + " " + right.text(name, false)
}

func (n *Number) text(name func(Accessor) string, inner bool) string {
	switch n.Operation {
	case "constant":
		return ConstantText(n.Constant)
	case "value":
		return n.Source.Path(name)
	case "size", "stride":
		return fmt.Sprintf("%s.%s(%d)", n.Source.Path(name), n.Operation, n.Dimension)
	case "max", "min":
		return n.Operation + "(" + n.Args[0].text(name, false) + ", " + n.Args[1].text(name, false) + ")"
	}
	text := n.Args[0].text(name, true) + " " + n.Operation + " " + n.Args[1].text(name, true)
	if inner {
		return "(" + text + ")"
	}
	return text
}

// rangeText writes the bounds of an int; without any it is only an int of 64 bits.
func rangeText(path string, bounds []bytecode.Object) string {
	low, hasLow := bounds[0].(int64)
	high, hasHigh := bounds[1].(int64)
	switch {
	case hasLow && hasHigh:
		return fmt.Sprintf("%d <= %s <= %d", low, path, high)
	case hasLow:
		return fmt.Sprintf("%s >= %d", path, low)
	case hasHigh:
		return fmt.Sprintf("%s <= %d", path, high)
	}
	return fmt.Sprintf("type(%s) is int", path)
}
