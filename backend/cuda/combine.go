package cuda

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
)

// partial is one variable of a reduction that threads exchange.
type partial struct {
	name string
	typ  loop.Type
}

// partials returns the variables of a reduction, the value first.
func (e *emitter) partials(in *instruction) []partial {
	name := fmt.Sprintf("v%d", in.value)
	if in.Reduction.Positional() {
		return []partial{{fmt.Sprintf("best%d", in.value), e.typeOf(in.Args[0])}, {name, loop.I64}}
	}
	if in.Reduction == onlineMaximum {
		return []partial{{name, in.Type}, {fmt.Sprintf("v%d", in.partner), in.Type}}
	}
	return []partial{{name, in.Type}}
}

func (s *stage) reductions() []*instruction {
	var result []*instruction
	for i := range s.body {
		if s.body[i].Op == loop.OpReduce {
			result = append(result, &s.body[i])
		}
	}
	return result
}

// combineGroup gives every thread of a group the group's result of each reduction of the stage.
func (e *emitter) combineGroup(s *stage) {
	reductions := s.reductions()
	if len(reductions) == 0 || e.schedule.group == 1 {
		return
	}
	if e.schedule.columns {
		e.combineColumns(reductions)
		return
	}
	e.shuffle(reductions, min(e.schedule.group, warp))
	if warps := e.schedule.group / warp; warps > 1 {
		e.exchangeWarps(reductions, warps)
	}
}

// shuffle combines among the given number of neighbouring lanes; each ends with the same result.
func (e *emitter) shuffle(reductions []*instruction, lanes int) {
	if lanes == 1 {
		return
	}
	if slices.ContainsFunc(reductions, func(in *instruction) bool { return in.Reduction.Positional() }) {
		e.line("#pragma unroll 1") // much code, little gain
	} else {
		e.line("#pragma unroll")
	}
	e.block(fmt.Sprintf("for (u32 distance = %d; distance > 0; distance /= 2)", lanes/2), func() {
		for _, in := range reductions {
			var others []string
			for _, p := range e.partials(in) {
				others = append(others, shuffled(p))
			}
			e.merge(in, others)
		}
	})
}

// shuffled reads a variable of the lane at the loop's distance; small types travel as 32-bit integers.
func shuffled(p partial) string {
	if p.typ.Bytes() < 4 {
		return fmt.Sprintf("(%s)__shfl_xor_sync(0xffffffffu, (i32)%s, distance)", typeName(p.typ), p.name)
	}
	return fmt.Sprintf("__shfl_xor_sync(0xffffffffu, %s, distance)", p.name)
}

// merge prints the combination of a reduction's share with another thread's.
func (e *emitter) merge(in *instruction, others []string) {
	if in.Reduction.Positional() {
		e.line("%s;", e.take(in, others[0], others[1]))
		return
	}
	if in.Reduction == onlineMaximum {
		own := e.partials(in)
		e.line("%s;", e.call("join_exponentials", identity(loop.Maximum, in.Type), own[0].name, own[1].name, others[0], others[1]))
		return
	}
	other := fmt.Sprintf("other%d", in.value)
	e.line("const %s %s = %s;", typeName(in.Type), other, others[0])
	e.line("%s", e.combine(in.Reduction, in.Type, e.partials(in)[0].name, other))
}

// exchangeWarps combines the warps of a block through shared memory; each thread ends with the same result.
func (e *emitter) exchangeWarps(reductions []*instruction, warps int) {
	e.eachPartial(reductions, func(p partial) {
		e.line("__shared__ %s %s_of_warp[%d];", typeName(p.typ), p.name, warps)
	})
	e.block(fmt.Sprintf("if (threadIdx.x %% %d == 0)", warp), func() {
		e.eachPartial(reductions, func(p partial) {
			e.line("%s_of_warp[threadIdx.x / %d] = %s;", p.name, warp, p.name)
		})
	})
	e.line("__syncthreads();")
	e.eachPartial(reductions, func(p partial) {
		e.line("%s = %s_of_warp[threadIdx.x %% %d];", p.name, p.name, warps)
	})
	e.shuffle(reductions, warps)
}

// combineColumns combines the threads of a column through shared memory, in order of rank.
func (e *emitter) combineColumns(reductions []*instruction) {
	e.eachPartial(reductions, func(p partial) {
		e.line("__shared__ %s %s_of_rank[%d][%d];", typeName(p.typ), p.name, e.schedule.group, e.schedule.items(false))
		e.line("%s_of_rank[rank][column] = %s;", p.name, p.name)
	})
	e.line("__syncthreads();")
	e.eachPartial(reductions, func(p partial) { e.line("%s = %s_of_rank[0][column];", p.name, p.name) })
	e.block(fmt.Sprintf("for (u32 other_rank = 1; other_rank < %d; ++other_rank)", e.schedule.group), func() {
		for _, in := range reductions {
			var others []string
			for _, p := range e.partials(in) {
				others = append(others, p.name+"_of_rank[other_rank][column]")
			}
			e.merge(in, others)
		}
	})
}

func (e *emitter) eachPartial(reductions []*instruction, visit func(partial)) {
	for _, in := range reductions {
		for _, p := range e.partials(in) {
			visit(p)
		}
	}
}

// sharedBytes returns the static shared memory that the exchanges of all stages take; no two share a place, so that one
// barrier per stage is enough.
func (e *emitter) sharedBytes() int {
	places := e.schedule.group / warp
	if e.schedule.columns {
		places = e.schedule.threads
	}
	if e.schedule.group == 1 || places <= 1 {
		return 0
	}
	bytes := 0
	for i := range e.nest.stages {
		e.eachPartial(e.nest.stages[i].reductions(), func(p partial) { bytes += places * p.typ.Bytes() })
	}
	return bytes
}
