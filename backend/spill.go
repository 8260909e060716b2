package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// costly lists the primitives that take many instructions.
func costly(e *graph.Expression) bool {
	names := []string{"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "erf", "erfc", "pow", "atan2", "lgamma"}
	return slices.Contains(names, e.Op) || slices.ContainsFunc(e.Args, costly)
}

// planSpills finds costly members that one stage computes for a reduction and a later stage needs again, and lets them wait in the memory of an output of the same type
// instead of being computed twice. On a GPU rows stay in registers, and a store would cost more than it saves.
func (k *kernelBuilder) planSpills(members []*operation) {
	k.spills, k.spilled = map[*operation]*operation{}, map[*operation]bool{}
	if k.group.device.Type == "cuda" {
		return
	}
	taken, last := map[*operation]bool{}, 0
	for _, op := range members {
		last = max(last, k.levels[op])
	}
	for _, op := range members {
		output := slices.IndexFunc(members, func(out *operation) bool {
			return !taken[out] && k.levels[out] == last && k.canHold(out, op) // no later stage may want the value once the output is stored
		})
		if op.kind == pointwise && costly(op.body) && output >= 0 && k.feedsReduction(op, members) {
			k.spills[op] = members[output]
			taken[members[output]] = true
		}
	}
}

// canHold reports whether a member's values fit element by element into the memory of an output that a later stage stores.
func (k *kernelBuilder) canHold(out, op *operation) bool {
	stored := out.kind == pointwise && k.group.stored[out.outputs[0]] && out.outputs[0].into == nil
	return stored && !k.group.stored[op.outputs[0]] && !k.perRow(op) && !k.perRow(out) && out.result == op.result && op.result == computeType(op.result) &&
		k.levels[out] > k.levels[op] && k.group.mappings[out].equal(k.group.mappings[op]) && reads(out, op, k) && !slices.Contains(k.group.mappings[op], -1)
}

// reads reports whether a member's value depends on another's other than through a reduction.
func reads(out, op *operation, k *kernelBuilder) bool {
	return out == op || out.needs(k.formula, func(producer *operation) bool { return producer == op })
}

// formula gives the member that makes an operand, if it is no reduction.
func (k *kernelBuilder) formula(_ *operation, o operand) *operation {
	if producer := k.member(o.tensor); producer != nil && producer.kind == pointwise {
		return producer
	}
	return nil
}

// feedsReduction reports whether a reduction of the same level needs the member's value.
func (k *kernelBuilder) feedsReduction(op *operation, members []*operation) bool {
	return slices.ContainsFunc(members, func(other *operation) bool {
		return other.kind == reduction && k.levels[other] == k.levels[op] && other.needs(k.formula, func(producer *operation) bool { return producer == op })
	})
}

// spill stores the members computed in the open stage that are needed again.
func (k *kernelBuilder) spill(members []*operation) {
	for _, op := range members {
		known, computed := k.points[op]
		out := k.spills[op]
		if out == nil || !computed || k.spilled[op] {
			continue
		}
		access := k.access(out.outputs[0], op.result, loop.Write, k.home(out))
		k.Append(loop.Instruction{Op: loop.OpStore, Type: op.result, Args: []loop.Value{known.number}, Access: access})
		k.spilled[op] = true
	}
}

// unspill reads a member's value back.
func (k *kernelBuilder) unspill(op *operation) value {
	out := k.spills[op]
	access := k.access(out.outputs[0], op.result, loop.Read, k.home(out))
	return value{k.Append(loop.Instruction{Op: loop.OpLoad, Type: op.result, Access: access}), op.result}
}

// home is where an output's elements lie.
func (k *kernelBuilder) home(out *operation) strided {
	output := out.outputs[0]
	return reading(k.shapes, output, output.meta.Sizes, k.group.mappings[out], len(k.group.space))
}
