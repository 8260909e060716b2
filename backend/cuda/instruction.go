package cuda

import (
	"fmt"
	"strconv"
	"strings"

	"fusee/backend/loop"
)

// vectorName names a value, or the vector that holds it for several lanes; a resident one is the step's element.
func (e *emitter) vectorName(value loop.Value) string {
	if filler, resident := e.resident[value]; resident {
		return "v" + strconv.Itoa(int(filler)) + "[" + e.perRow(filler) + "]"
	}
	return "v" + strconv.Itoa(int(value))
}

// value returns the expression of a value that has been computed.
func (e *emitter) value(value loop.Value) string {
	if name := e.names[value]; name != "" {
		return name
	}
	in := e.nest.kernel.Instruction(value)
	switch in.Op {
	case loop.OpConstant:
		return e.literal(in.Type, in.Bits)
	case loop.OpArgument:
		return argument(in)
	}
	return "v" + strconv.Itoa(int(value))
}

func (e *emitter) literal(t loop.Type, value loop.Bits) string {
	if t.Is(loop.ClassStorage) {
		e.helpers["to_"+t.String()] = true
	}
	return literal(t, value)
}

// argument reads a scalar argument; floats travel as their bits.
func argument(in *loop.Instruction) string {
	if in.Type == loop.F64 {
		return fmt.Sprintf("__longlong_as_double(%s)", scalarName(in.Index))
	}
	return scalarName(in.Index)
}

// offset returns the element of the buffer that an access means at the declared coordinates.
func (e *emitter) offset(in *instruction) string {
	var terms []string
	for d, stride := range in.strides {
		switch {
		case stride.is(0):
		case stride.is(1):
			terms = append(terms, e.places[d])
		default:
			terms = append(terms, e.places[d]+" * "+stride.C())
		}
	}
	if !in.offset.is(0) {
		terms = append(terms, in.offset.C())
	}
	for number, dimension := range in.indirect {
		terms = append(terms, fmt.Sprintf("%s * %s", e.value(in.Args[1+number]), dimension.stride.C()))
	}
	if len(terms) == 0 {
		return "0"
	}
	return strings.Join(terms, " + ")
}

func (e *emitter) address(in *instruction) string {
	return e.bufferName(in.Access.Buffer) + " + " + e.offset(in)
}

// element returns the element in memory, further elements on.
func (e *emitter) element(in *instruction, further string) string {
	return fmt.Sprintf("%s[%s%s]", e.bufferName(in.Access.Buffer), e.offset(in), further)
}

// loadNow declares the value of an unmasked load at the declared coordinates.
func (e *emitter) loadNow(in *instruction) {
	e.define(in, fromMemory(in.Type, e.element(in, "")))
	e.names[in.value] = "v" + strconv.Itoa(int(in.value))
}

// define declares a value.
func (e *emitter) define(in *instruction, expression string) {
	e.useType(in.Type)
	e.line("const %s v%d = %s;", typeName(in.Type), in.value, expression)
}

// instruction prints an instruction at the declared coordinates.
func (e *emitter) instruction(in *instruction) {
	arguments := make([]string, len(in.Args))
	for i, arg := range in.Args {
		arguments[i] = e.value(arg)
	}
	switch in.Op {
	case loop.OpConstant, loop.OpArgument: // spelled where they are used
	case loop.OpIndex:
		e.define(in, e.places[in.dimension])
	case loop.OpLoad:
		e.load(in, arguments)
	case loop.OpStore:
		e.store(in, arguments)
	case loop.OpCast:
		e.define(in, e.convert(e.typeOf(in.Args[0]), in.Type, arguments[0]))
	case loop.OpBitcast:
		e.helpers["bitcast"] = true
		e.define(in, fmt.Sprintf("bitcast<%s>(%s)", typeName(in.Type), arguments[0]))
	case loop.OpSelect:
		e.define(in, fmt.Sprintf("%s ? %s : %s", arguments[0], arguments[1], arguments[2]))
	default:
		if in.Short {
			e.define(in, e.call("short_"+in.Op.String(), arguments...))
			return
		}
		e.define(in, e.elementwise(in.Op, e.typeOf(in.Args[0]), arguments))
	}
}

func (e *emitter) typeOf(value loop.Value) loop.Type { return e.nest.kernel.Instruction(value).Type }

func (e *emitter) load(in *instruction, arguments []string) {
	expression := fromMemory(in.Type, e.element(in, ""))
	for number, dimension := range in.indirect {
		e.line("if (%s && (u64)%s >= %s)", arguments[0], arguments[1+number], dimension.size.C())
		e.line("    %s;", e.call("index_out_of_range"))
	}
	if masked(in) {
		expression = fmt.Sprintf("%s ? %s : %s", arguments[0], expression, e.literal(in.Type, 0))
	}
	e.define(in, expression)
}

func (e *emitter) store(in *instruction, arguments []string) {
	if masked(in) {
		e.line("if (%s)", arguments[1])
		e.line("    %s = %s;", e.element(in, ""), arguments[0])
		return
	}
	e.line("%s = %s;", e.element(in, ""), arguments[0])
}
