package backend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fusee/backend/loop"
	"fusee/graph"
)

// Kernels that are alike but for their sizes and tensors, as an optimizer's updates of its parameters are, run as parts of one kernel: one launch on a GPU,
// and one share of work for the threads of a CPU.

const (
	// largestPart bounds the points of a part: where a kernel takes longer than its launch, a launch of its own costs nothing.
	largestPart = 1 << 20
	// mostPointers bounds a batch by the 4096 bytes of arguments that every GPU takes.
	mostPointers = 440
	// mostKept bounds the bytes of new tensors that alike groups make one after another, which all live at once.
	mostKept = 4 << 20
)

// likeness describes what a small group of formulas computes, apart from sizes: alike groups may become one kernel. It is empty for other groups.
func (g *group) likeness() string {
	if g.library || g.hasInner() || product(g.space) > largestPart || slices.ContainsFunc(g.space, func(size graph.Size) bool { return size.Expr != nil }) {
		return ""
	}
	return g.formulas()
}

// formulas describes what the members of a group compute.
func (g *group) formulas() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v", g.device)
	for _, op := range g.members {
		fmt.Fprintf(&text, " %d %v %v %v", op.kind, op.body, op.compute, op.result)
	}
	return text.String()
}

// keeps counts the bytes of tensors that the group makes and stores.
func (g *group) keeps() int64 {
	total := int64(0)
	for t := range g.stored {
		if t.into == nil && !g.library {
			total += product(t.meta.Sizes) * int64(t.meta.DType.Bytes())
		}
	}
	return total
}

// batch makes alike kernels that follow each other, and touch nothing that another of them writes, the parts of one.
func batch(c *compilation) error {
	if c.compiler.options.Batch && !c.compiler.options.Unfused {
		var groups []*group
		var kernels []*kernel
		for first := 0; first < len(c.groups); {
			count := c.alikeFrom(first)
			g, k := c.groups[first], c.kernels[first]
			if count > 1 {
				g, k = joined(c.groups[first:first+count], c.kernels[first:first+count])
			}
			groups, kernels, first = append(groups, g), append(kernels, k), first+count
		}
		c.groups, c.kernels = groups, kernels
	}
	return c.name()
}

// alikeFrom counts the kernels from number first on that can be one.
func (c *compilation) alikeFrom(first int) int {
	if first+1 == len(c.groups) || !sameForm(c.kernels[first], c.kernels[first+1]) {
		return 1
	}
	key := keyOfPart(c.kernels[first])
	count := 1
	for ; key.bare != "" && first+count < len(c.groups); count++ {
		next := first + count
		if !sameForm(c.kernels[first], c.kernels[next]) {
			break
		}
		other := keyOfPart(c.kernels[next])
		if c.groups[next].segment != c.groups[first].segment || c.groups[next].device != c.groups[first].device || !key.alike(other) {
			break
		}
		if (count+1)*len(c.kernels[first].arguments) > mostPointers || c.touched(first, next) {
			break
		}
		key.walks = cmp.Or(key.walks, other.walks)
	}
	return count
}

// sameForm tells kernels that may be alike by a look at their operators, so that few keys are written.
func sameForm(a, b *kernel) bool {
	if a == nil || b == nil || len(a.loop.Buffers) != len(b.loop.Buffers) || len(a.loop.Stages) != 1 || len(b.loop.Stages) != 1 {
		return false
	}
	return slices.EqualFunc(a.loop.Stages[0].Body, b.loop.Stages[0].Body, func(one, other loop.Instruction) bool { return one.Op == other.Op })
}

// partKey describes a kernel that may be a part, apart from its size; the zero value is for others.
type partKey struct {
	bare  string // without strides
	walks string // with them; empty for a kernel of one point, for which all are right
}

func (k partKey) alike(other partKey) bool {
	return k.bare == other.bare && (k.walks == "" || other.walks == "" || k.walks == other.walks)
}

// touched reports whether one of the kernels from number first on and kernel next write what the other one touches.
func (c *compilation) touched(first, next int) bool {
	k := c.kernels[next]
	return slices.ContainsFunc(c.kernels[first:next], func(other *kernel) bool {
		for a, root := range k.arguments {
			for b, known := range other.arguments {
				if root == known && (k.loop.Buffers[a].Mode != loop.Read || other.loop.Buffers[b].Mode != loop.Read) {
					return true
				}
			}
		}
		return false
	})
}

func keyOfPart(k *kernel) partKey {
	if k == nil || len(k.loop.Stages) != 1 || !k.loop.Pointwise() || len(k.loop.Outer) > 1 || k.work.Expr != nil || k.work.Hint > largestPart {
		return partKey{}
	}
	plain, stage := *k.loop, k.loop.Stages[0]
	plain.Name, plain.First, plain.Outer = "part", false, nil
	key := partKey{}
	if len(k.loop.Outer) == 1 {
		key.walks = plain.String()
	}
	stage.Body = slices.Clone(stage.Body)
	for index, in := range stage.Body {
		if in.Op == loop.OpIndex || in.Access != nil && len(in.Access.Indirect) > 0 {
			return partKey{}
		}
		if in.Access != nil {
			access := *in.Access
			access.Strides = nil
			stage.Body[index].Access = &access
		}
	}
	plain.Stages = []loop.Stage{stage}
	key.bare = fmt.Sprint(plain.String(), k.integers)
	return key
}

// joined is one group and one kernel in the place of several.
func joined(groups []*group, kernels []*kernel) (*group, *kernel) {
	g, k := *groups[0], *kernels[0]
	body := *walking(kernels).loop
	g.members, g.stored, k.arguments = nil, map[*tensor]bool{}, nil
	for index, part := range kernels {
		g.members = append(g.members, groups[index].members...)
		for t := range groups[index].stored {
			g.stored[t] = true
		}
		k.arguments = append(k.arguments, part.arguments...)
		body.Parts = append(body.Parts, part.work.Hint)
		body.First = body.First || part.loop.First
	}
	k.loop, k.work = &body, batchedWork(body.Parts, 1)
	return &g, &k
}

// walking is the kernel whose loop does for all of them: one over several points where there is one, and none over no points, whose loop is left out.
func walking(kernels []*kernel) *kernel {
	return slices.MaxFunc(kernels, func(a, b *kernel) int { return cmp.Compare(min(a.work.Hint, 2), min(b.work.Hint, 2)) })
}

// batchedWork counts the points of a kernel in parts: on a GPU each part has blocks of its own, of so many points.
func batchedWork(parts []int64, items int64) graph.Size {
	total := int64(0)
	for _, part := range parts {
		total += (part + items - 1) / items * items
	}
	return graph.Static(total)
}

// name names the kernels, checks those that were joined, and lists the distinct ones.
func (c *compilation) name() error {
	known := map[string]bool{}
	for _, k := range c.kernels {
		if k == nil {
			continue
		}
		k.loop.Name = "kernel"
		k.loop.Name = kernelName(k)
		if c.compiler.options.Check {
			if err := k.loop.Verify(); err != nil {
				return err
			}
		}
		if !known[k.loop.Name] {
			known[k.loop.Name] = true
			c.unique = append(c.unique, k)
		}
	}
	return nil
}
