package cpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fusee/backend/loop"
)

// Version changes whenever equal kernels may be emitted as different code; it is part of the disk cache's key.
const Version = "15"

// Emit prints a verified kernel as an LLVM module for the target. Equal kernels give equal text.
func Emit(kernel *loop.Kernel, target Target) string {
	if kernel.Parts != nil {
		part := *kernel
		part.Name, part.Parts = kernel.Name+"_part", nil
		return Emit(&part, target) + callParts(kernel, part.Name)
	}
	e := &emitter{
		function: newFunction(), kernel: kernel, target: target, current: 1, vector: -1, begin: "%begin", end: "%end",
		pointers: map[*loop.Access]string{}, values: make([]operand, kernel.Values()), nested: nested(kernel),
	}
	e.native = nativeLanes(kernel, target)
	e.arguments()
	if kernel.Pointwise() || columnwise(kernel) {
		e.overOuter()
	} else {
		e.overInner()
	}
	if e.scratch {
		e.lines = slices.Insert(e.lines, 0, "  %scratch = alloca i64")
	}
	result := "0"
	if e.fails {
		e.lines = slices.Insert(e.lines, 0, "  %failed = alloca i64", "  store i64 0, ptr %failed")
		result = e.assign("load i64, ptr %%failed")
	}
	signature := fmt.Sprintf("@%s(ptr %%pointers, ptr %%scalars, i64 %%begin, i64 %%end)", kernel.Name)
	attributes := fmt.Sprintf(`nounwind "target-cpu"=%q "min-legal-vector-width"="%d" "prefer-vector-width"="%d"`,
		target.Name, 8*target.VectorBytes, 8*target.VectorBytes)
	return e.module(signature, result, attributes)
}

// emitter holds what is known at the place where code is being emitted.
type emitter struct {
	*function
	kernel   *loop.Kernel
	target   Target
	native   int                          // lanes that fill a vector register
	current  int                          // lanes of the code being emitted
	turned   map[*loop.Instruction]string // loads of the present row of a tile that were read across
	mask     string                       // which lanes of the code being emitted there are; "" for all
	begin    string                       // the points, or groups of width points, to compute
	end      string
	width    int                            // neighbouring points that one lane computes and whose results are stored together; 0 for one
	woven    map[*loop.Instruction][]string // what their stores were given so far
	vector   int                            // dimension that lanes run along, -1 for none
	buffers  []string
	scalars  []string
	index    []string                // position along each dimension entered, of the first lane
	pointers map[*loop.Access]string // address of the first lane, by the dimensions entered so far
	values   []operand
	nested   map[*loop.Instruction]bool
	scratch  bool          // some store may be diverted to the stack
	fails    bool          // some index may be out of range
	stage    *loop.Stage   // whose inner loops are open
	sums     []accumulator // of its reductions
	folding  *folding      // of the segment of a loop that is being emitted; nil outside of segments
}

// operand is a value's text; lanes is 0 for constants, which fit any number, and 1 for what all lanes share. The zero operand is not computed yet.
type operand struct {
	text  string
	lanes int
	bits  loop.Bits // of a constant
}

func (o operand) computed() bool { return o.text != "" }

// nativeLanes sizes blocks by the kernel's widest usual type: four bytes, unless all its values are narrower or wider.
func nativeLanes(kernel *loop.Kernel, target Target) int {
	narrow, wide := 8, 1
	for stage := range kernel.Stages {
		for _, in := range kernel.Stages[stage].Body {
			bytes := in.Type.Bytes()
			if in.Op == loop.OpConstant || in.Op == loop.OpIndex || in.Type == loop.Bool {
				continue
			}
			narrow, wide = min(narrow, bytes), max(wide, bytes)
		}
	}
	width := min(max(narrow, 4), wide)
	return target.VectorBytes / width
}

// columnwise reports whether lanes should run along the last outer dimension of a kernel with inner loops: when that, and not the last inner
// dimension, is where neighbours lie in memory. What moves along both decides, as it is most of what is read, unless there is none.
func columnwise(kernel *loop.Kernel) bool {
	last := len(kernel.Outer) - 1
	if last < 0 || kernel.Span != nil && kernel.Span.Dimension == last {
		return false // lanes would have pieces of unequal lengths
	}
	columns, rows, along := 0, 0, 0
	for index := range kernel.Stages {
		stage := &kernel.Stages[index]
		for _, access := range accesses(stage) {
			if len(stage.Inner) == 0 {
				continue
			}
			outer, inner := access.Strides[last], access.Strides[len(access.Strides)-1]
			reads := 1 + oneIf(len(access.Indirect) > 0) // rows at computed places cost more than the indices, which the lanes of a row share
			columns += reads * oneIf(outer.Is(1))
			rows += reads * oneIf(inner.Is(1))
			along += reads * oneIf(outer.Is(1) && !inner.Is(0) && len(access.Indirect) == 0)
			along -= reads * oneIf(inner.Is(1) && !outer.Is(0) && len(access.Indirect) == 0)
		}
	}
	if along != 0 {
		return along > 0
	}
	return columns > rows
}

func oneIf(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

func accesses(stage *loop.Stage) []*loop.Access {
	var result []*loop.Access
	for index := range stage.Body {
		if access := stage.Body[index].Access; access != nil {
			result = append(result, access)
		}
	}
	return result
}

// arguments loads the pointers and scalars and forms each access's base address.
func (e *emitter) arguments() {
	for index := range e.kernel.Buffers {
		address := e.assign("getelementptr ptr, ptr %%pointers, i64 %d", index)
		e.buffers = append(e.buffers, e.assign("load ptr, ptr %s", address))
	}
	for index := range e.kernel.Scalars {
		address := e.assign("getelementptr i64, ptr %%scalars, i64 %d", index)
		e.scalars = append(e.scalars, e.assign("load i64, ptr %s", address))
	}
	e.scalars = append(e.scalars, "") // the length of a piece, once it is known which
	for index := range e.kernel.Stages {
		for _, access := range accesses(&e.kernel.Stages[index]) {
			e.pointers[access] = e.advance(e.elementType(access), e.buffers[access.Buffer], e.int(access.Offset), "1")
		}
	}
}

func (e *emitter) elementType(access *loop.Access) string {
	return memoryType(e.kernel.Buffers[access.Buffer].Type)
}

// int returns the operand for a size or stride.
func (e *emitter) int(value loop.Int) string {
	if argument, ok := value.Argument(); ok {
		return e.scalars[argument]
	}
	return value.String()
}

// advance moves an address by index*stride elements.
func (e *emitter) advance(element, pointer, index, stride string) string {
	distance := e.multiply(index, stride)
	if distance == "0" {
		return pointer
	}
	return e.assign("getelementptr %s, ptr %s, i64 %s", element, pointer, distance)
}

// multiply appends an i64 product unless it is plain to see.
func (e *emitter) multiply(left, right string) string {
	switch {
	case left == "0" || right == "0":
		return "0"
	case left == "1":
		return right
	case right == "1":
		return left
	}
	a, errA := strconv.ParseInt(left, 10, 64)
	b, errB := strconv.ParseInt(right, 10, 64)
	if errA == nil && errB == nil {
		return strconv.FormatInt(a*b, 10)
	}
	return e.assign("mul i64 %s, %s", left, right)
}

// scoped runs body and forgets the values and addresses it computed, which later blocks cannot see.
func (e *emitter) scoped(body func()) {
	values, index := slices.Clone(e.values), slices.Clone(e.index)
	pointers := make(map[*loop.Access]string, len(e.pointers))
	for access, pointer := range e.pointers {
		pointers[access] = pointer
	}
	body()
	e.values, e.index, e.pointers = values, index, pointers
}

// enter fixes the position along the next dimension for the accesses of the stages.
func (e *emitter) enter(position string, stages ...*loop.Stage) {
	dimension := len(e.index)
	e.index = append(e.index, position)
	if span := e.kernel.Span; span != nil && span.Dimension == dimension {
		size := e.int(span.Size)
		rest := e.assign("sub i64 %s, %s", e.int(span.Total), e.multiply(position, size))
		e.scalars[e.kernel.Scalars] = e.extremum("smin", rest, size)
	}
	moved := map[string]string{} // equal accesses share one address
	for _, stage := range stages {
		for _, access := range accesses(stage) {
			stride, element := e.int(access.Strides[dimension]), e.elementType(access)
			key := strings.Join([]string{element, e.pointers[access], stride}, "|")
			if _, known := moved[key]; !known {
				moved[key] = e.advance(element, e.pointers[access], position, stride)
			}
			e.pointers[access] = moved[key]
		}
	}
}

func (e *emitter) allStages() []*loop.Stage {
	result := make([]*loop.Stage, len(e.kernel.Stages))
	for index := range result {
		result[index] = &e.kernel.Stages[index]
	}
	return result
}

// overOuter runs lanes along the last outer dimension, or, where that is short, along the one before it.
func (e *emitter) overOuter() {
	last := len(e.kernel.Outer) - 1
	if last < 0 {
		e.each(e.begin, e.end, func(string) { e.stages() })
		return
	}
	if e.kernel.Outer[last].Is(0) {
		return
	}
	if width := interleaved(e.kernel); width > 0 {
		e.width, last = width, last-1
		e.begin, e.end = e.groups(e.begin), e.groups(e.end)
	}
	e.vector = last
	if last == 0 {
		e.row(e.begin, e.end)
		return
	}
	length := e.positive(e.int(e.kernel.Outer[last]))
	first := e.assign("udiv i64 %s, %s", e.begin, length)
	end := e.roundedUp(e.end, length)
	if e.kernel.Pointwise() && e.width == 0 && crosses(e.kernel) {
		e.tiles(first, end, length)
		return
	}
	e.each(first, end, func(row string) { e.partOfRow(row, length, "0", length) })
}

// roundedUp divides and rounds up.
func (e *emitter) roundedUp(number, divisor string) string {
	rounded := e.assign("add i64 %s, %s", number, e.assign("sub i64 %s, 1", divisor))
	return e.assign("udiv i64 %s, %s", rounded, divisor)
}

// each runs body for every number from…to.
func (e *emitter) each(from, to string, body func(number string)) {
	e.loop(from, to, "1", nil, func(number string, _ []string) []string {
		e.scoped(func() { body(number) })
		return nil
	})
}

// partOfRow covers the positions from…to of a row that belong to the call's outer points.
func (e *emitter) partOfRow(row, length, from, to string) {
	e.decompose(row, e.kernel.Outer[:e.vector])
	before := e.multiply(row, length)
	from = e.extremum("smax", e.assign("sub i64 %s, %s", e.begin, before), from)
	e.row(from, e.extremum("smin", e.assign("sub i64 %s, %s", e.end, before), to))
}

// positive replaces a size of 0, which no point has, by 1 so that dividing by it is harmless.
func (e *emitter) positive(size string) string {
	if size[0] != '%' {
		return size
	}
	return e.extremum("smax", size, "1")
}

func (e *emitter) extremum(which, left, right string) string {
	return e.call("i64", "llvm."+which+".i64", []string{"i64", "i64"}, []string{left, right})
}

// decompose enters the dimensions of the given sizes at row-major number position.
func (e *emitter) decompose(position string, sizes []loop.Int) {
	for _, index := range e.positions(position, sizes) {
		e.enter(index, e.allStages()...)
	}
}

// positions splits a row-major number over dimensions of the given sizes.
func (e *emitter) positions(position string, sizes []loop.Int) []string {
	indices := make([]string, len(sizes))
	for dimension := len(sizes) - 1; dimension > 0; dimension-- {
		size := e.positive(e.int(sizes[dimension]))
		indices[dimension] = e.assign("urem i64 %s, %s", position, size)
		position = e.assign("udiv i64 %s, %s", position, size)
	}
	if len(sizes) > 0 {
		indices[0] = position
	}
	return indices
}

// row covers positions from…to of the last outer dimension, in blocks of lanes and then one by one.
func (e *emitter) row(from, to string) {
	e.scoped(func() {
		blocks := []int{4 * e.native, e.native, 1} // columns are read in whole cache lines
		if e.kernel.Pointwise() {
			blocks = blocks[1:]
			for _, stage := range e.allStages() {
				e.hoist(stage, e.vector, false)
			}
		}
		e.segments(e.allStages(), e.kernel.Outer[e.vector], from, to, func(from, to string) {
			e.sweep(sweep{stages: e.allStages(), body: func(_ int, position string, _ []string) []string {
				e.enter(position, e.allStages()...)
				e.points()
				return nil
			}}, from, to, blocks)
		})
	})
}

// stages runs all stages at one outer point, or at e.current neighbouring ones.
func (e *emitter) stages() {
	for _, stage := range e.allStages() {
		if len(stage.Inner) == 0 {
			e.body(stage)
			continue
		}
		e.inner(stage)
	}
}

// overInner runs one outer point at a time, and lanes along the last inner dimension.
func (e *emitter) overInner() {
	e.loop(e.begin, e.end, "1", nil, func(point string, _ []string) []string {
		e.scoped(func() {
			e.decompose(point, e.kernel.Outer)
			e.stages()
		})
		return nil
	})
}
