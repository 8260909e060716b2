package cuda

import (
	"slices"

	"fusee/backend/loop"
)

// deferOuter moves what one outer point needs only after a stage with inner points behind that stage's loop, to where the threads' shares are not combined
// yet: a block would wait for memory twice before its loop where it reads at a computed index, and so hides that behind the combination. Plain loads stay in
// front, for a load takes time only once its value is wanted.
func (n *nest) deferOuter() {
	for index := 0; index+1 < len(n.stages); index++ {
		outer, inner := &n.stages[index], &n.stages[index+1]
		if outer.hasInner || !inner.hasInner {
			continue
		}
		needed := n.neededBy(inner)
		var early []instruction
		for _, in := range outer.body {
			if needed[in.value] || in.Op == loop.OpStore || in.Op == loop.OpLoad && !masked(&in) {
				early = append(early, in)
			} else {
				inner.late = append(inner.late, in)
			}
		}
		if slices.ContainsFunc(inner.late, func(in instruction) bool { return in.Op == loop.OpLoad }) && !outer.stores() {
			outer.body = early
		} else {
			inner.late = nil
		}
	}
}

// neededBy marks the values that a stage's instructions need, directly or not.
func (n *nest) neededBy(s *stage) map[loop.Value]bool {
	needed := map[loop.Value]bool{}
	var mark func(value loop.Value)
	mark = func(value loop.Value) {
		if needed[value] {
			return
		}
		needed[value] = true
		for _, arg := range n.find(value).Args {
			mark(arg)
		}
	}
	for i := range s.body {
		mark(s.body[i].value)
	}
	return needed
}
