package cuda

import (
	"fmt"
	"slices"
	"strings"

	"fusee/backend/loop"
	"fusee/internal/slice"
)

// A kernel in parts gives each part blocks of its own. A block finds its part by its number, and takes that part's pointers from the arguments.

// likeAllParts is a kernel in parts with a size that tells of no part more than is true of all: it is no less than any of them, and divisible by powers of
// two that all of them are divisible by, but by no greater one.
func likeAllParts(kernel *loop.Kernel) *loop.Kernel {
	if kernel.Parts == nil || len(kernel.Outer) == 0 {
		return kernel
	}
	unit := int64(vectorElements)
	for unit > 1 && slices.ContainsFunc(kernel.Parts, func(points int64) bool { return points%unit != 0 }) {
		unit /= 2
	}
	size := (slices.Max(kernel.Parts) + unit - 1) / unit
	if unit < vectorElements && size%2 == 0 {
		size++
	}
	result := *kernel
	result.Outer = loop.Statics(size * unit)
	return &result
}

// parameterName names the pointer of a buffer among the arguments.
func (e *emitter) parameterName(part, buffer int) string {
	if e.nest.kernel.Parts == nil {
		return e.bufferName(buffer)
	}
	return fmt.Sprintf("p%d_%d", part, buffer)
}

// ownBlock is the number of the block among those of its part.
func (e *emitter) ownBlock() string {
	if e.nest.kernel.Parts == nil {
		return "blockIdx.x"
	}
	return "block"
}

// firstBlocks prints the table of the blocks that parts begin with.
func (e *emitter) firstBlocks() {
	if e.nest.kernel.Parts == nil {
		return
	}
	items, next := int64(e.schedule.items(true)), int64(0)
	first := slice.Map(e.nest.kernel.Parts, func(points int64) string {
		from := next
		next += (points + items - 1) / items
		return fmt.Sprint(from)
	})
	e.line("__constant__ u32 first_block[%d] = {%s};", len(first), strings.Join(first, ", "))
	e.line("")
}

// choosePart declares the pointers, the number of points and the number of the block in its part.
func (e *emitter) choosePart() {
	parts := e.nest.kernel.Parts
	if parts == nil {
		return
	}
	e.line("u32 part = 0;")
	e.block(fmt.Sprintf("for (u32 step = %d; step > 0; step >>= 1)", powerOfTwo(int64(len(parts)))), func() {
		e.line("if (part + step < %d && first_block[part + step] <= blockIdx.x)", len(parts))
		e.line("    part += step;")
	})
	e.line("const u32 block = blockIdx.x - first_block[part];")
	e.line("i64 work;")
	for buffer := range e.nest.kernel.Buffers {
		e.line("%s %s;", e.pointer(buffer), e.bufferName(buffer))
	}
	e.block("switch (part)", func() {
		for part := range parts {
			e.assignPart(part)
		}
	})
}

// assignPart prints the case of one part; the last one is the default, so that all is seen to be assigned.
func (e *emitter) assignPart(part int) {
	parts := e.nest.kernel.Parts
	label := fmt.Sprintf("case %d:", part)
	if part == len(parts)-1 {
		label = "default:"
	}
	e.line("%s", label)
	for buffer := range e.nest.kernel.Buffers {
		e.line("    %s = %s;", e.bufferName(buffer), e.parameterName(part, buffer))
	}
	e.line("    work = %d;", parts[part])
	e.line("    break;")
}
