package cpu

import (
	"strconv"

	"fusee/backend/loop"
)

// Where the last dimension is short, as that of the colours of an image, of complex numbers, and of tensors that are stacked, lanes run along the one before it. Each lane computes
// all points of its group, whose results are then woven together, and whole vectors are stored.

// widest is the longest dimension that is woven: vectors take as many shuffles as its square.
const widest = 4

// interleaved returns the length of the last dimension of a kernel that is woven; 0 for others.
func interleaved(kernel *loop.Kernel) int {
	last := len(kernel.Outer) - 1
	if last < 1 || !kernel.Pointwise() || kernel.Span != nil {
		return 0
	}
	width, static := kernel.Outer[last].Static()
	if !static || width < 2 || width > widest {
		return 0
	}
	for index := range kernel.Stages {
		for _, in := range kernel.Stages[index].Body {
			if in.Op == loop.OpStore && (len(in.Args) > 1 || !in.Access.Strides[last].Is(1) || !in.Access.Strides[last-1].Is(width)) {
				return 0
			}
		}
	}
	return int(width)
}

// groups is the number of the first group of points that begins at a point or behind it: a group is of the call that its first point is of.
func (e *emitter) groups(point string) string {
	return e.roundedUp(point, strconv.Itoa(e.width))
}

// points computes a group's points, or the one that there is.
func (e *emitter) points() {
	if e.width == 0 {
		e.stages()
		return
	}
	e.woven = map[*loop.Instruction][]string{}
	before, last := e.folding, len(e.kernel.Outer)-1
	for number := range e.width {
		e.scoped(func() {
			e.folding = before
			e.folding = e.known(e.allStages(), last, int64(number))
			e.enter(strconv.Itoa(number), e.allStages()...)
			e.stages()
		})
	}
	e.folding = before
	for _, stage := range e.allStages() {
		for index := range stage.Body {
			if in := &stage.Body[index]; in.Op == loop.OpStore {
				e.storeWoven(in, e.woven[in])
			}
		}
	}
}

// storeWoven stores as many values of each lane as there are points in a group.
func (e *emitter) storeWoven(in *loop.Instruction, values []string) {
	element, lanes := memoryType(in.Type), e.current
	typ := wide(element, lanes)
	for piece := range values {
		text := values[piece]
		if lanes > 1 {
			text = e.weave(typ, values, piece, lanes)
		}
		pointer := e.advance(element, e.pointers[in.Access], strconv.Itoa(piece*lanes), "1")
		e.line("store %s %s, ptr %s, align %d", typ, text, pointer, in.Type.Bytes())
	}
}

// weave makes the vector of number piece: of lanes in turn, the values of each.
func (e *emitter) weave(typ string, values []string, piece, lanes int) string {
	text := values[0]
	for number := 1; number < len(values); number++ {
		places := make([]int, lanes)
		for position := range places {
			lane, of, chosen := (piece*lanes+position)/len(values), (piece*lanes+position)%len(values), position
			switch {
			case of == number:
				chosen = lanes + lane
			case of == 0 && number == 1:
				chosen = lane
			}
			places[position] = chosen
		}
		text = e.chosen(typ, text, values[number], places)
	}
	return text
}
