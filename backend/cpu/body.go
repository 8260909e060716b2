package cpu

import (
	"fmt"
	"strconv"
	"strings"

	"fusee/backend/loop"
	"fusee/internal/slice"
)

// body computes one inner point, or e.current neighbouring ones.
func (e *emitter) body(stage *loop.Stage) {
	for position := range stage.Body {
		value := stage.First + loop.Value(position)
		if !e.values[value].computed() && !e.folding.idle(value) {
			e.instruction(value, e.folding.simplified(value, &stage.Body[position]))
		}
	}
}

// hoist computes what does not change along a dimension before its loop. Values of earlier stages change along an outer dimension that lanes
// run along, but not along an inner one.
func (e *emitter) hoist(stage *loop.Stage, dimension int, earlier bool) {
	invariant := func(value loop.Value) bool {
		if value < stage.First {
			return earlier
		}
		return e.values[value].computed()
	}
	for position := range stage.Body {
		value := stage.First + loop.Value(position)
		in := e.folding.simplified(value, &stage.Body[position])
		if !e.folding.idle(value) && e.unchanging(in, dimension) && !contains(in.Args, func(arg loop.Value) bool { return !invariant(arg) }) {
			e.instruction(value, in)
		}
	}
}

func contains(args []loop.Value, test func(loop.Value) bool) bool {
	for _, arg := range args {
		if test(arg) {
			return true
		}
	}
	return false
}

// unchanging reports whether an instruction gives one result along a dimension when its arguments do.
func (e *emitter) unchanging(in *loop.Instruction, dimension int) bool {
	switch in.Op {
	case loop.OpStore, loop.OpReduce:
		return false
	case loop.OpIndex:
		return in.Index < len(e.index) && in.Index != dimension
	case loop.OpLoad:
		readOnly := e.kernel.Buffers[in.Access.Buffer].Mode == loop.Read
		return readOnly && len(in.Args) == 0 && len(in.Access.Strides) == dimension+1 && in.Access.Strides[dimension].Is(0)
	}
	return true
}

func (e *emitter) instruction(value loop.Value, in *loop.Instruction) {
	switch in.Op {
	case loop.OpConstant:
		e.values[value] = operand{text: "constant", bits: in.Bits}
	case loop.OpArgument:
		e.values[value] = operand{text: e.argument(in), lanes: 1}
	case loop.OpIndex:
		e.values[value] = e.indexValue(in.Index)
	case loop.OpLoad:
		e.values[value] = e.load(in)
	case loop.OpStore:
		e.store(in)
	case loop.OpReduce:
		e.accumulate(value, in)
	case loop.OpSelect:
		if len(in.Args) == 1 { // of a value that is known to be the one chosen
			e.values[value] = e.values[in.Args[0]]
			return
		}
		e.values[value] = e.compute(in)
	default:
		e.values[value] = e.compute(in)
	}
}

func (e *emitter) argument(in *loop.Instruction) string {
	if in.Type == loop.F64 {
		return e.assign("bitcast i64 %s to double", e.scalars[in.Index])
	}
	return e.scalars[in.Index]
}

func (e *emitter) indexValue(dimension int) operand {
	position := e.index[dimension]
	if dimension != e.vector || e.current == 1 {
		return operand{text: position, lanes: 1}
	}
	typ := wide("i64", e.current)
	return operand{text: e.assign("add %s %s, %s", typ, e.splat("i64", position, e.current), steps(e.current)), lanes: e.current}
}

// steps returns the constant vector 0, 1, 2….
func steps(lanes int) string {
	items := make([]string, lanes)
	for lane := range items {
		items[lane] = fmt.Sprintf("i64 %d", lane)
	}
	return "<" + strings.Join(items, ", ") + ">"
}

// splat repeats a scalar operand in all lanes.
func (e *emitter) splat(scalar, text string, lanes int) string {
	if lanes == 1 {
		return text
	}
	if text[0] != '%' {
		return splatConstant(scalar, text, lanes)
	}
	typ := wide(scalar, lanes)
	single := e.assign("insertelement %s poison, %s %s, i32 0", typ, scalar, text)
	return e.assign("shufflevector %s %s, %s poison, <%d x i32> zeroinitializer", typ, single, typ, lanes)
}

// use returns a value in the given number of lanes.
func (e *emitter) use(value loop.Value, lanes int) string {
	known := e.values[value]
	typ := e.kernel.Instruction(value).Type
	if instruction := e.kernel.Instruction(value); instruction.Op == loop.OpReduce {
		typ = instruction.Type
	}
	switch known.lanes {
	case 0:
		return constant(typ, known.bits, lanes)
	case lanes:
		return known.text
	}
	return e.splat(scalarType(typ), known.text, lanes)
}

// compute appends an operation in as many lanes as its widest argument has.
func (e *emitter) compute(in *loop.Instruction) operand {
	lanes := 1
	for _, arg := range in.Args {
		lanes = max(lanes, e.values[arg].lanes)
	}
	args := make([]string, len(in.Args))
	for index, arg := range in.Args {
		args[index] = e.use(arg, lanes)
	}
	argument := e.kernel.Instruction(in.Args[0]).Type
	var text string
	switch in.Op {
	case loop.OpCast:
		text = e.cast(argument, in.Type, lanes, args[0])
	case loop.OpBitcast:
		text = e.assign("bitcast %s %s to %s", vectorType(argument, lanes), args[0], vectorType(in.Type, lanes))
	case loop.OpSelect:
		typ := vectorType(in.Type, lanes)
		text = e.assign("select %s %s, %s %s, %s %s", wide("i1", lanes), args[0], typ, args[1], typ, args[2])
	case loop.OpExp:
		text = e.exponential(in, argument, lanes, args)
	case loop.OpDivide:
		text = e.quotient(in, lanes, args)
	default:
		text = e.operation(in.Op, argument, lanes, args)
	}
	return operand{text: text, lanes: lanes}
}

// laneStride returns how far apart in memory neighbouring lanes of an access lie; 0 when there is one lane or they share an element.
func (e *emitter) laneStride(access *loop.Access) loop.Int {
	if e.current == 1 || e.vector < 0 {
		return loop.Static(0)
	}
	return access.Strides[e.vector]
}

func (e *emitter) load(in *loop.Instruction) operand {
	stride := e.laneStride(in.Access)
	lanes := e.current
	if stride.Is(0) && e.uniform(in.Args) {
		lanes = 1
	}
	text := e.read(in, stride, lanes)
	if in.Type == loop.Bool {
		text = e.assign("icmp ne %s %s, %s", wide("i8", lanes), text, splatConstant("i8", "0", lanes))
	}
	return operand{text: text, lanes: lanes}
}

// uniform reports whether all lanes share the values.
func (e *emitter) uniform(values []loop.Value) bool {
	return !contains(values, func(value loop.Value) bool { return e.values[value].lanes > 1 })
}

// read returns elements as they are in memory.
func (e *emitter) read(in *loop.Instruction, stride loop.Int, lanes int) string {
	element, pointer := memoryType(in.Type), e.pointers[in.Access]
	switch {
	case e.turned[in] != "":
		return e.turned[in]
	case len(in.Args) > 0 && e.uniform(in.Args) && (lanes == 1 || stride.Is(1) || stride.Is(-1)):
		return e.rowRead(in, stride, lanes)
	case len(in.Args) > 0:
		return e.maskedRead(in, stride, lanes)
	case lanes == 1 || stride.Is(1) || stride.Is(-1):
		return e.neighbours(in, pointer, stride, lanes)
	case e.mask != "":
		return e.maskedRead(in, stride, lanes)
	case apart(stride):
		return e.everySome(in, stride, lanes)
	}
	typ, text := wide(element, lanes), "poison"
	for lane := range lanes {
		scalar := e.assign("load %s, ptr %s, align %d", element, e.lanePointer(in.Access, stride, lane), in.Type.Bytes())
		text = e.assign("insertelement %s %s, %s %s, i32 %d", typ, text, element, scalar, lane)
	}
	return text
}

// mostApart is the greatest stride for which reading all that lies between and choosing takes less time than reading lane by lane.
const mostApart = 8

func apart(stride loop.Int) bool {
	distance, static := stride.Static()
	return static && distance > 1 && distance <= mostApart
}

// everySome reads elements that lie a few apart: whole vectors up to the last element, of which each gives some lanes.
func (e *emitter) everySome(in *loop.Instruction, stride loop.Int, lanes int) string {
	element, distance, text := memoryType(in.Type), 2, "poison"
	if known, static := stride.Static(); static {
		distance = int(known)
	}
	typ, last := wide(element, lanes), (lanes-1)*distance+1-lanes
	for piece, lane := 0, 0; lane < lanes; piece++ {
		offset, places := min(piece*lanes, last), make([]int, lanes)
		for position := range places {
			places[position] = position
		}
		for ; lane < lanes && lane*distance < offset+lanes; lane++ {
			places[lane] = lanes + lane*distance - offset
		}
		pointer := e.advance(element, e.pointers[in.Access], strconv.Itoa(offset), "1")
		vector := e.assign("load %s, ptr %s, align %d", typ, pointer, in.Type.Bytes())
		text = e.chosen(typ, text, vector, places)
	}
	return text
}

// chosen makes a vector of lanes of two others, which are numbered one after the other.
func (e *emitter) chosen(typ, left, right string, places []int) string {
	mask := slice.Map(places, func(place int) string { return fmt.Sprintf("i32 %d", place) })
	return e.assign("shufflevector %s %s, %s %s, <%d x i32> <%s>", typ, left, typ, right, len(mask), strings.Join(mask, ", "))
}

func (e *emitter) lanePointer(access *loop.Access, stride loop.Int, lane int) string {
	return e.advance(e.elementType(access), e.pointers[access], fmt.Sprint(lane), e.int(stride))
}

// maskedRead reads only the lanes whose condition holds. Lanes that must not be read take the address of a zero on the stack instead, which needs no
// branches.
func (e *emitter) maskedRead(in *loop.Instruction, stride loop.Int, lanes int) string {
	element, typ, text := memoryType(in.Type), wide(memoryType(in.Type), lanes), "poison"
	mask, zero := e.permitted(in, lanes), e.zero()
	for lane := range lanes {
		pointer := e.indirect(in, e.lanePointer(in.Access, stride, lane), lanes, lane)
		safe := e.assign("select i1 %s, ptr %s, ptr %s", e.lane("i1", mask, lanes, lane), pointer, zero)
		scalar := e.assign("load %s, ptr %s, align 1", element, safe)
		if lanes == 1 {
			return scalar
		}
		text = e.assign("insertelement %s %s, %s %s, i32 %d", typ, text, element, scalar, lane)
	}
	return text
}

// neighbours reads elements that lie side by side from the first lane's address on, or, for a stride of −1, down.
func (e *emitter) neighbours(in *loop.Instruction, pointer string, stride loop.Int, lanes int) string {
	if lanes == 1 || !stride.Is(-1) {
		return e.side(in, pointer, e.mask, lanes)
	}
	pointer = e.advance(memoryType(in.Type), pointer, strconv.Itoa(1-lanes), "1")
	mask := e.mask
	if mask != "" && lanes > 1 {
		mask = e.reverse("i1", mask, lanes)
	}
	return e.reverse(memoryType(in.Type), e.side(in, pointer, mask, lanes), lanes)
}

func (e *emitter) reverse(scalar, text string, lanes int) string {
	typ := wide(scalar, lanes)
	return e.assign("shufflevector %s %s, %s poison, %s", typ, text, typ, shuffle(lanes-1, lanes, -1))
}

// side reads a vector from memory, or those lanes of it that a mask names.
func (e *emitter) side(in *loop.Instruction, pointer, mask string, lanes int) string {
	typ := wide(memoryType(in.Type), lanes)
	if mask == "" || lanes == 1 {
		return e.assign("load %s, ptr %s, align %d", typ, pointer, in.Type.Bytes())
	}
	return e.call(typ, "llvm.masked.load."+memorySuffix(in.Type, lanes)+".p0", []string{"ptr", "i32", wide("i1", lanes), typ},
		[]string{pointer, strconv.Itoa(in.Type.Bytes()), mask, "zeroinitializer"})
}

// rowRead reads neighbouring elements whose condition and indices all lanes share.
func (e *emitter) rowRead(in *loop.Instruction, stride loop.Int, lanes int) string {
	pointer := e.indirect(in, e.pointers[in.Access], 1, 0)
	zero := e.zero()
	if stride.Is(-1) {
		zero = e.advance(memoryType(in.Type), zero, strconv.Itoa(lanes-1), "1")
	}
	safe := e.assign("select i1 %s, ptr %s, ptr %s", e.permitted(in, 1), pointer, zero)
	return e.neighbours(in, safe, stride, lanes)
}

// permitted returns the lanes of a load with a condition that may read memory. It notes when one of them has an index out of range.
func (e *emitter) permitted(in *loop.Instruction, lanes int) string {
	if len(in.Args) == 0 {
		return e.mask
	}
	asked, bit := e.masked(e.use(in.Args[0], lanes), lanes), wide("i1", lanes)
	allowed := asked
	for number, indirect := range in.Access.Indirect {
		size := e.splat("i64", e.int(indirect.Size), lanes)
		inside := e.assign("icmp ult %s %s, %s", wide("i64", lanes), e.use(in.Args[1+number], lanes), size)
		allowed = e.assign("and %s %s, %s", bit, allowed, inside)
	}
	if allowed != asked {
		e.noteFailure(e.assign("xor %s %s, %s", bit, asked, allowed), lanes)
	}
	return allowed
}

// masked restricts lanes to those that there are.
func (e *emitter) masked(condition string, lanes int) string {
	if e.mask == "" || lanes == 1 {
		return condition
	}
	return e.assign("and %s %s, %s", wide("i1", lanes), condition, e.mask)
}

// noteFailure makes the kernel return 1 when one of the lanes is true.
func (e *emitter) noteFailure(wrong string, lanes int) {
	e.fails = true
	if lanes > 1 {
		wrong = e.call("i1", fmt.Sprintf("llvm.vector.reduce.or.v%di1", lanes), []string{wide("i1", lanes)}, []string{wrong})
	}
	before := e.assign("load i64, ptr %%failed")
	e.line("store i64 %s, ptr %%failed", e.assign("or i64 %s, %s", before, e.assign("zext i1 %s to i64", wrong)))
}

// indirect moves the address of a lane by what the load's indices add.
func (e *emitter) indirect(in *loop.Instruction, pointer string, lanes, lane int) string {
	for number, indirect := range in.Access.Indirect {
		index := e.lane("i64", e.use(in.Args[1+number], lanes), lanes, lane)
		pointer = e.advance(memoryType(in.Type), pointer, index, e.int(indirect.Stride))
	}
	return pointer
}

// zero returns the address of zero bytes, as many as lanes may read at once.
func (e *emitter) zero() string {
	e.declarations[".zero"] = fmt.Sprintf("@zero = private unnamed_addr constant [%d x i8] zeroinitializer, align 8", 8*8*e.target.VectorBytes)
	return "@zero"
}

// lane takes one lane of a vector, or the scalar itself.
func (e *emitter) lane(scalar, text string, lanes, lane int) string {
	if lanes == 1 {
		return text
	}
	return e.assign("extractelement %s %s, i32 %d", wide(scalar, lanes), text, lane)
}

func (e *emitter) store(in *loop.Instruction) {
	lanes, stride := e.current, e.laneStride(in.Access)
	text, element := e.use(in.Args[0], lanes), memoryType(in.Type)
	if in.Type == loop.Bool {
		text = e.assign("zext %s %s to %s", wide("i1", lanes), text, wide("i8", lanes))
	}
	if e.width > 0 {
		e.woven[in] = append(e.woven[in], text)
		return
	}
	if len(in.Args) == 1 && (lanes == 1 || stride.Is(1)) {
		e.storeSide(in, text, lanes)
		return
	}
	for lane := range lanes {
		value := e.lane(element, text, lanes, lane)
		pointer := e.lanePointer(in.Access, stride, lane)
		if len(in.Args) == 2 || e.mask != "" {
			pointer = e.divert(in, pointer, lanes, lane)
		}
		e.line("store %s %s, ptr %s, align 1", element, value, pointer)
	}
}

// storeSide writes a vector, or those lanes of it that there are.
func (e *emitter) storeSide(in *loop.Instruction, text string, lanes int) {
	typ, pointer, align := wide(memoryType(in.Type), lanes), e.pointers[in.Access], in.Type.Bytes()
	if e.mask == "" {
		e.line("store %s %s, ptr %s, align %d", typ, text, pointer, align)
		return
	}
	name, bit := "llvm.masked.store."+memorySuffix(in.Type, lanes)+".p0", wide("i1", lanes)
	e.declarations[name] = fmt.Sprintf("declare void @%s(%s, ptr, i32, %s)", name, typ, bit)
	e.line("call void @%s(%s %s, ptr %s, i32 %d, %s %s)", name, typ, text, pointer, align, bit, e.mask)
}

// divert sends a store whose condition does not hold to a place nobody reads.
func (e *emitter) divert(in *loop.Instruction, pointer string, lanes, lane int) string {
	e.scratch = true
	allowed := e.mask
	if len(in.Args) == 2 {
		allowed = e.masked(e.use(in.Args[1], lanes), lanes)
	}
	mask := e.lane("i1", allowed, lanes, lane)
	return e.assign("select i1 %s, ptr %s, ptr %%scratch", mask, pointer)
}
