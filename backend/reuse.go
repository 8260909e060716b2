package backend

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/graph"
)

// reuse has a kernel store a result over memory that it is the last to read, where each of its points reads there only what it stores to itself: the
// plan needs one buffer less, and what is written lies in the cache already. Memory of other buffers goes back to the allocator after their last use.
func reuse(c *compilation) error {
	if !c.compiler.options.Unfused {
		last := c.lastUses()
		for index, g := range c.groups {
			c.reuseIn(g, func(memory *tensor) bool { return last[memory] == index })
		}
	}
	if c.compiler.options.Check {
		return c.verifyMemory()
	}
	return nil
}

// lastUses gives the place among the groups of the last one that touches each memory; what the graph returns is used after all of them.
func (c *compilation) lastUses() map[*tensor]int {
	last := map[*tensor]int{}
	for index, g := range c.groups {
		for _, op := range g.members {
			for _, t := range op.touches() {
				last[t.memory()] = index
			}
		}
	}
	for _, output := range c.program.outputs {
		if output.tensor != nil {
			last[output.tensor.memory()] = len(c.groups)
		}
	}
	return last
}

// touches lists the tensors that an operation reads or makes.
func (op *operation) touches() []*tensor {
	var result []*tensor
	for _, operand := range op.operands {
		if operand.tensor != nil {
			result = append(result, operand.tensor)
		}
	}
	for _, output := range op.outputs {
		if output != nil {
			result = append(result, output)
		}
	}
	return result
}

// reuseIn places results of one group in memory whose last use it is.
func (c *compilation) reuseIn(g *group, ends func(*tensor) bool) {
	if g.library || g.hasInner() || g.split {
		return
	}
	taken := map[*tensor]bool{}
	for _, op := range g.members {
		output := op.outputs[0]
		if !g.stored[output] || output.into != nil || output.overwritten != nil || !g.visitsOnce(op) {
			continue
		}
		for _, memory := range g.readMemory() {
			if !taken[memory] && ends(memory) && memory.ownedByPlan() && sameLayout(&memory.meta, &output.meta) && c.readsWhereItStores(g, op, memory) {
				taken[memory], output.into, output.reuses = true, memory, true
				break
			}
		}
	}
}

// visitsOnce reports whether no two points of the group store the same element of a member's result.
func (g *group) visitsOnce(op *operation) bool {
	for dimension, size := range g.space {
		if !isStatic(size, 1) && !slices.Contains(g.mappings[op], dimension) {
			return false
		}
	}
	return true
}

// readMemory lists the memory that the group reads, in order of its members; what it makes itself is not in memory.
func (g *group) readMemory() []*tensor {
	var result []*tensor
	for _, op := range g.members {
		for _, operand := range op.operands {
			if operand.tensor == nil || g.makes(operand.tensor) != nil || slices.Contains(result, operand.tensor.memory()) {
				continue
			}
			result = append(result, operand.tensor.memory())
		}
	}
	return result
}

// ownedByPlan reports whether a kernel of the plan made the memory, so that nobody else knows of it.
func (t *tensor) ownedByPlan() bool {
	return t.producer != nil && t.producer.kind != library && !t.aliased && !overlapsItself(&t.meta)
}

// sameLayout reports whether two tensors' elements lie alike.
func sameLayout(a, b *graph.Meta) bool {
	return a.DType == b.DType && a.Device == b.Device && sameSizes(a.Sizes, b.Sizes) && sameSizes(a.Strides, b.Strides) && sameSize(a.Offset, b.Offset)
}

// readsWhereItStores reports whether each point of the group touches of the memory only the element that lies where the operation stores its result.
func (c *compilation) readsWhereItStores(g *group, op *operation, memory *tensor) bool {
	shapes, rank := c.graph.Shapes, len(g.space)
	stored := reading(shapes, op.outputs[0], op.inputSpace(), g.mappings[op], rank)
	for _, member := range g.members {
		if output := member.outputs[0]; g.stored[output] && output.memory() == memory {
			return false // two results in one place
		}
		for _, operand := range member.operands {
			t := operand.tensor
			if t == nil || g.makes(t) != nil || t.memory() != memory {
				continue
			}
			if operand.gather != nil || !stored.equal(reading(shapes, t, member.inputSpace(), g.mappings[member], rank)) {
				return false
			}
		}
	}
	return true
}

// verifyMemory checks that no two values are in one memory at a time: nothing reads or returns a value whose memory a result took over. The error names
// the value.
func (c *compilation) verifyMemory() error {
	inside := map[*tensor][]*tensor{} // by memory: the values that were stored there
	gone := map[*tensor]bool{}
	for _, g := range c.groups {
		for _, op := range g.members {
			for _, operand := range op.operands {
				if t := operand.tensor; t != nil && g.makes(t) == nil && gone[t.root] {
					return errors.Newf("%s reads %s, whose memory holds another value", op.name, t.name)
				}
			}
		}
		for _, op := range g.members {
			for _, output := range op.outputs {
				if output == nil {
					continue
				}
				memory := output.memory()
				for _, before := range inside[memory] {
					gone[before] = gone[before] || output.reuses
				}
				inside[memory] = append(inside[memory], output)
			}
		}
	}
	for _, output := range c.program.outputs {
		if output.tensor != nil && gone[output.tensor.root] {
			return errors.Newf("%s is returned, but its memory holds another value", output.tensor.name)
		}
	}
	return nil
}
