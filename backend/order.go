package backend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fusee/graph"
)

// common makes equal formulas over the same operands one operation. A library call is left alone: it may be costly to keep its result for long.
func common(c *compilation) error {
	first := map[string]*operation{}
	renamed := map[*tensor]*tensor{}
	for _, op := range c.program.operations {
		for index := range op.operands {
			if t, ok := renamed[op.operands[index].tensor]; ok {
				op.operands[index].tensor = t
			}
		}
		if op.kind == library || op.barrier || op.outputs[0].into != nil {
			continue
		}
		key := op.key()
		same, known := first[key]
		if !known {
			first[key] = op
			continue
		}
		if !op.outputs[0].output {
			c.program.redirect(op.outputs[0], same.outputs[0], renamed)
		}
	}
	return nil
}

// key describes what a formula or reduction computes; operations with equal keys give equal results. Operations in different segments differ,
// because memory may change in between.
func (op *operation) key() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %d %v %v %v %v ", op.segment, op.kind, op.compute, op.result, op.reduce, op.reduced)
	if op.body != nil {
		text.WriteString(op.body.String())
	}
	fmt.Fprintf(&text, " %s", op.outputs[0].meta.String())
	if op.counts() || op.draws != nil {
		fmt.Fprintf(&text, " %p", op.node) // in kernels of different nodes positions cost less to compute again than to keep
	}
	for _, operand := range op.operands {
		if operand.scalar != nil {
			fmt.Fprintf(&text, " %p:%d %v:%d:%s:%v:%d", operand.scalar.state, operand.scalar.item, operand.scalar.typ, operand.scalar.slot, operand.scalar.size, operand.as, operand.scalar.counted)
			continue
		}
		fmt.Fprintf(&text, " %p:%s:%v:%s", operand.tensor.root, operand.tensor.meta.String(), operand.as, operand.gather)
	}
	return text.String()
}

// redirect replaces a tensor by an equal one in everything that reads it, unless one of them may change later or is read through views.
func (p *program) redirect(from, to *tensor, renamed map[*tensor]*tensor) {
	if from.mayChange() || to.mayChange() {
		return
	}
	for _, user := range from.uses {
		for _, operand := range user.operands {
			if operand.tensor != nil && operand.tensor.root == from && operand.tensor != from || user.kind == library {
				return
			}
		}
	}
	renamed[from] = to
	to.uses = append(to.uses, from.uses...)
	from.uses = nil
}

// mayChange reports whether a barrier may write to the tensor's memory, directly or by way of a library call that returns a view of it.
func (t *tensor) mayChange() bool {
	return slices.ContainsFunc(t.uses, func(user *operation) bool {
		return user.barrier || user.kind == library && slices.ContainsFunc(user.node.Outputs, func(output graph.OutputInfo) bool { return output.Relation.Kind != graph.RelationNew })
	})
}

// dead drops formulas, reductions and library calls whose results nobody needs. Barriers stay: they change memory or the random state. So
// do library calls that may raise, since the program would see that.
func dead(c *compilation) error {
	operations := c.program.operations
	var live []*operation
	for index := len(operations) - 1; index >= 0; index-- {
		op := operations[index]
		if op.needed() {
			live = append(live, op)
			continue
		}
		for _, operand := range op.operands {
			if operand.tensor != nil {
				root := operand.tensor.root
				root.uses = slices.DeleteFunc(root.uses, func(user *operation) bool { return user == op })
			}
		}
	}
	slices.Reverse(live)
	c.program.operations = live
	return nil
}

func (op *operation) needed() bool {
	return op.barrier || op.kind == library && op.node.MayRaise || slices.ContainsFunc(op.outputs, func(output *tensor) bool {
		return output != nil && (output.output || output.into != nil || output.overwritten != nil || len(output.uses) > 0)
	})
}

// schedule orders groups so that each follows what it reads: by segment, then by dependencies, then by place in the program.
func schedule(c *compilation) error {
	waiting := map[*group]int{}
	for _, g := range c.groups {
		g.order = g.members[0].index
		for _, op := range g.members {
			g.order = min(g.order, op.index)
		}
		for next := range g.after {
			waiting[next]++
		}
	}
	ready := slices.DeleteFunc(slices.Clone(c.groups), func(g *group) bool { return waiting[g] > 0 })
	var ordered []*group
	run := alikeRun{likeness: map[*group]string{}}
	if c.compiler.options.Batch {
		for _, g := range c.groups {
			run.likeness[g] = g.likeness()
		}
	}
	for len(ready) > 0 {
		next := slices.MinFunc(ready, func(a, b *group) int {
			return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(run.distance(a), run.distance(b)), cmp.Compare(a.order, b.order))
		})
		run.take(next)
		ready = slices.DeleteFunc(ready, func(g *group) bool { return g == next })
		ordered = append(ordered, next)
		for follower := range next.after {
			if waiting[follower]--; waiting[follower] == 0 {
				ready = append(ready, follower)
			}
		}
	}
	c.groups = ordered
	if c.compiler.options.Check {
		return verifyOrder(ordered)
	}
	return nil
}

// alikeRun is a run of groups that are alike, which schedule puts one after another where it may.
type alikeRun struct {
	likeness map[*group]string // of all groups
	last     string
	kept     int64
}

// distance is 0 for a group that goes on with the run, and 1 for others.
func (r *alikeRun) distance(g *group) int {
	if r.last != "" && r.kept < mostKept && r.likeness[g] == r.last {
		return 0
	}
	return 1
}

// take notes that a group is the next one.
func (r *alikeRun) take(g *group) {
	if r.distance(g) > 0 {
		r.last, r.kept = r.likeness[g], 0
	}
	r.kept += g.keeps()
}
