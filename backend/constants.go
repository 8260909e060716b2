package backend

import (
	"slices"

	"fusee/backend/loop"
)

// constants tells kernels on a GPU which of their buffers nothing writes while the plan runs, so that they may read those while the kernel before them
// is still running. The first kernel of a plan sees to it that the plan before has ended.
type constants struct {
	known   bool // nothing in the program writes the memory of inputs, which may overlap
	settled bool // a kernel that is sure to be launched came already
}

func (p *program) constants() *constants {
	for _, op := range p.operations {
		if op.node != nil && len(op.node.Mutates) > 0 || writesInto(op) {
			return &constants{}
		}
	}
	return &constants{known: true}
}

func writesInto(op *operation) bool {
	return slices.ContainsFunc(op.outputs, func(output *tensor) bool { return output != nil && output.into != nil && !output.reuses })
}

// mark completes a kernel, in the order in which kernels run.
func (c *constants) mark(g *group, k *kernel) {
	if !c.known || g.device.Type != "cuda" {
		return
	}
	if !c.settled {
		k.loop.First = true
		c.settled = k.work.Expr == nil && k.work.Hint > 0
		return
	}
	if !g.hasInner() {
		return // it reads everything once, as soon as it may
	}
	for index, root := range k.arguments {
		buffer := &k.loop.Buffers[index]
		buffer.Constant = buffer.Mode == loop.Read && root.producer == nil
	}
}
