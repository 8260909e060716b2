package cpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fusee/backend/loop"
)

// sweep is a loop along the dimension of the lanes, over the stages given. fold turns the carried values of one number of lanes into the next's; body computes as many
// points as there are lanes.
type sweep struct {
	stages []*loop.Stage
	fold   func(lanes int) []carried
	body   func(lanes int, position string, current []string) []string
}

// sweep covers from…to in blocks of each number of lanes in turn, of which the last is 1. In its place some lanes of a vector may be left out.
func (e *emitter) sweep(s sweep, from, to string, blocks []int) {
	last := len(blocks) - 1
	for _, lanes := range blocks[:last] {
		whole := e.assign("and i64 %s, %d", e.assign("sub i64 %s, %s", to, from), -lanes)
		limit := e.assign("add i64 %s, %s", from, whole)
		e.lanes(s, lanes, from, limit, "")
		from = limit
	}
	e.rest(s, from, to)
	e.current = 1
}

// rest covers less than two vectors.
func (e *emitter) rest(s sweep, from, to string) {
	if !e.mayMask(s.stages) {
		e.lanes(s, 1, from, to, "")
		return
	}
	e.lanes(s, e.native, from, to, to)
	if s.fold != nil {
		s.fold(1)
	}
}

// lanes covers from…to by a number of lanes at a time, those before end if that is given.
func (e *emitter) lanes(s sweep, lanes int, from, to, end string) {
	var values []carried
	if s.fold != nil {
		values = s.fold(lanes)
	}
	e.current = lanes
	e.keep(e.loop(from, to, strconv.Itoa(lanes), values, func(position string, current []string) (next []string) {
		e.scoped(func() {
			if end != "" {
				e.mask = e.before(position, end, lanes)
			}
			next = s.body(lanes, position, current)
			e.mask = ""
		})
		return next
	}))
}

// before is true in the lanes from a position on that lie before the end, which is less than 256 further on. It compares whole registers: of the lanes beyond shorter
// vectors LLVM 22 takes for granted that they are false.
func (e *emitter) before(position, end string, lanes int) string {
	scalar := fmt.Sprintf("i%d", 8*e.target.VectorBytes/lanes)
	rest := e.assign("sub i64 %s, %s", end, position)
	if scalar != "i64" {
		rest = e.assign("trunc i64 %s to %s", rest, scalar)
	}
	numbers := strings.ReplaceAll(steps(lanes), "i64", scalar)
	return e.assign("icmp ult %s %s, %s", wide(scalar, lanes), numbers, e.splat(scalar, rest, lanes))
}

// mayMask reports whether a few lanes of a vector take less time than as many points one by one: the processor leaves lanes out by itself, and no access takes its lanes
// one by one.
func (e *emitter) mayMask(stages []*loop.Stage) bool {
	return e.target.masks && !slices.ContainsFunc(stages, func(stage *loop.Stage) bool {
		return slices.ContainsFunc(stage.Body, func(in loop.Instruction) bool { return in.Access != nil && e.scatters(&in) })
	})
}

// scatters reports whether the lanes of an access do not lie side by side.
func (e *emitter) scatters(in *loop.Instruction) bool {
	stride := in.Access.Strides[e.vector]
	shared := in.Op == loop.OpLoad && stride.Is(0) && len(in.Args) == 0
	return !shared && !stride.Is(1) && !(in.Op == loop.OpLoad && stride.Is(-1))
}
