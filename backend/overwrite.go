package backend

import (
	"cmp"
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/graph"
)

// A formula that is stored to the memory of an argument, as an optimizer does with parameters and moments, is no barrier where all readers of that memory
// are known: it makes a new version of the tensor, which is a value like any other. What reads an old version runs before the new one is stored, or in the
// same kernel, at the same index.

// separate reports whether all that reads or writes a tensor's memory names the tensor: it is whole, nobody made views that the program does not know, and
// of the inputs it is one that the launch proves to be apart from the others.
func (b *builder) separate(target *tensor) bool {
	memory := target.memory()
	arranged := b.arranging.on && len(target.meta.Sizes) == 4 // images may lie otherwise than the program says, and be turned back under all their names
	if target.root != target || memory.aliased || arranged || b.compilation.compiler.options.Unfused || overlapsItself(&memory.meta) {
		return false
	}
	if memory.producer != nil {
		return true
	}
	return b.compilation.compiler.options.Disjoint && !slices.ContainsFunc(b.program.inputs, func(input *tensor) bool {
		return input != nil && input.meta.Flags&graph.FlagNotPlain != 0
	})
}

// overlapsItself reports whether two of a tensor's elements may be one place in memory.
func overlapsItself(meta *graph.Meta) bool {
	order := make([]int, 0, len(meta.Sizes))
	for dimension, size := range meta.Sizes {
		if !isStatic(size, 1) {
			order = append(order, dimension)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(meta.Strides[a].Hint, meta.Strides[b].Hint) })
	reached := int64(0)
	for _, dimension := range order {
		if meta.Strides[dimension].Hint <= reached {
			return true
		}
		reached += (meta.Sizes[dimension].Hint - 1) * meta.Strides[dimension].Hint
	}
	return false
}

// supersede appends an in-place operation that is no barrier, and gives all names of its target, and of views of it, the new version. An intermediate
// value of formulas needs no memory that both versions share.
func (b *builder) supersede(target *tensor, op *operation, result *tensor) {
	memory := target.memory()
	byLibrary := func(user *operation) bool { return user.kind == library }
	if memory.producer == nil || memory.producer.kind == library || target.into != nil || slices.ContainsFunc(target.uses, byLibrary) {
		if b.raises {
			b.segment, b.raises = b.segment+1, false
		}
		b.overwrites = true
		result.into, target.overwritten = memory, op
		if memory.producer == nil && !slices.Contains(b.program.apart, memory) {
			b.program.apart = append(b.program.apart, memory)
		}
	}
	b.append(op, result)
	views := map[*tensor]*tensor{target: result}
	for key, known := range b.program.values {
		t := known.tensor
		if t == nil || t.root != target {
			continue
		}
		if views[t] == nil {
			views[t] = result.under(t.meta)
			views[t].name, views[t].untracked = t.name, t.untracked
		}
		known.tensor = views[t]
		b.program.values[key] = known
	}
}

// keepErrorsFirst puts a barrier between operations that may raise and those that write memory which the program sees: it must find there what eager
// would have left.
func (b *builder) keepErrorsFirst(op *operation) {
	gathers := slices.ContainsFunc(op.operands, func(operand operand) bool { return operand.gather != nil })
	if !gathers && (op.kind != library || !op.node.MayRaise) {
		return
	}
	if b.overwrites {
		b.segment, b.overwrites = b.segment+1, false
	}
	b.raises = true
}

// markAliased notes whose memory a library call gives views of.
func markAliased(op *operation) {
	views := func(output graph.OutputInfo) bool {
		return output.Relation.Kind != graph.RelationNew && output.Relation.Kind != graph.RelationSame
	}
	if !slices.ContainsFunc(op.node.Outputs, views) {
		return
	}
	for _, operand := range op.operands {
		operand.tensor.memory().aliased = true
	}
	for _, output := range op.outputs {
		if output != nil {
			output.aliased = true
		}
	}
}

// readsOverwritten reports whether memory that the operation read was written since, so that it cannot be computed again.
func (op *operation) readsOverwritten() bool {
	return slices.ContainsFunc(op.operands, func(operand operand) bool { return operand.tensor != nil && operand.tensor.root.overwritten != nil })
}

// followers lists the operations that come after an operation: those that read its outputs, and those that store over what it reads or made.
func followers(op *operation) []*operation {
	result := consumers(op)
	follow := func(t *tensor) {
		if t != nil && t.root.overwritten != nil && t.root.overwritten != op {
			result = append(result, t.root.overwritten)
		}
	}
	for _, output := range op.outputs {
		follow(output)
	}
	for _, operand := range op.operands {
		follow(operand.tensor)
	}
	return result
}

// target is the tensor whose memory an operation shares with later or earlier versions of it; nil for other operations.
func (op *operation) target() *tensor {
	if op.kind == library {
		return nil
	}
	output := op.outputs[0]
	if output.into == nil && output.overwritten != nil {
		return output
	}
	return output.into
}

// overwrites reports whether one of the group's members stores over memory that was there before.
func (g *group) overwrites() bool {
	return slices.ContainsFunc(g.members, func(member *operation) bool { return member.target() != nil })
}

// leavesMemory reports whether an operation's store is seen in memory when the group's kernel is over.
func (op *operation) leavesMemory(g *group) bool {
	output := op.outputs[0]
	if output.into == nil {
		return output.overwritten != nil
	}
	return output.overwritten == nil || output.overwritten.group != g
}

// undisturbed reports whether the operation can be in the kernel of a group: each of its points may read only the one place of overwritten memory that it
// stores to itself, after all reading.
func (f *fusion) undisturbed(op *operation, g *group, m mapping) bool {
	if op.target() == nil && !g.overwrites() {
		return true
	}
	if op.kind == reduction || g.hasInner() {
		return false
	}
	rank := len(g.space)
	for _, member := range g.members {
		target := member.target()
		if target == nil {
			continue
		}
		stored := reading(f.shapes, target, member.inputSpace(), g.mappings[member], rank)
		same := func(t *tensor) bool {
			return t.memory() != target.memory() || stored.equal(reading(f.shapes, t, op.inputSpace(), m, rank))
		}
		if own := op.target(); own != nil && !same(own) {
			return false
		}
		for _, operand := range op.operands {
			if t := operand.tensor; t != nil && (!same(t) || operand.gather != nil && t.memory() == target.memory()) {
				return false
			}
		}
	}
	return true
}

// equal reports whether two accesses are to the same place at every point.
func (s strided) equal(other strided) bool {
	return sameSize(s.offset, other.offset) && slices.EqualFunc(s.strides, other.strides, sameSize)
}

// verifyOrder checks that groups run after what they read, and before what stores over it. The error names the operations.
func verifyOrder(groups []*group) error {
	position := map[*group]int{}
	for index, g := range groups {
		position[g] = index
	}
	for index, g := range groups {
		for _, op := range g.members {
			for _, next := range followers(op) {
				if next.group != nil && position[next.group] < index {
					return errors.Newf("%s runs before %s, which must come first", next.name, op.name)
				}
			}
		}
	}
	return nil
}
