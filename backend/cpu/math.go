package cpu

import (
	"fmt"
	"strings"

	"fusee/backend/loop"
)

// mathFunction is a function of the C library. Those with a vector variant in glibc's libmvec are called a register at a time, also for
// single values, so that a result does not depend on which lane computes it.
type mathFunction struct {
	name      string // of the double variant; floats append f
	arguments int
	vector    bool // has a vector variant since glibc 2.35
}

var mathFunctions = map[loop.Op]mathFunction{
	loop.OpPower:       {"pow", 2, true},
	loop.OpArcTangent2: {"atan2", 2, true},
	loop.OpHypotenuse:  {"hypot", 2, true},
	loop.OpNextAfter:   {"nextafter", 2, false},
	loop.OpExp:         {"exp", 1, true},
	loop.OpExp2:        {"exp2", 1, true},
	loop.OpExpM1:       {"expm1", 1, true},
	loop.OpLog:         {"log", 1, true},
	loop.OpLog2:        {"log2", 1, true},
	loop.OpLog10:       {"log10", 1, true},
	loop.OpLog1P:       {"log1p", 1, true},
	loop.OpSin:         {"sin", 1, true},
	loop.OpCos:         {"cos", 1, true},
	loop.OpTan:         {"tan", 1, true},
	loop.OpArcSin:      {"asin", 1, true},
	loop.OpArcCos:      {"acos", 1, true},
	loop.OpArcTan:      {"atan", 1, true},
	loop.OpSinH:        {"sinh", 1, true},
	loop.OpCosH:        {"cosh", 1, true},
	loop.OpTanH:        {"tanh", 1, true},
	loop.OpArcSinH:     {"asinh", 1, true},
	loop.OpArcCosH:     {"acosh", 1, true},
	loop.OpArcTanH:     {"atanh", 1, true},
	loop.OpErf:         {"erf", 1, true},
	loop.OpErfC:        {"erfc", 1, true},
	loop.OpLogGamma:    {"lgamma", 1, false},
}

// symbol returns the scalar function's name for the type.
func (m mathFunction) symbol(typ loop.Type) string {
	if typ == loop.F32 {
		return m.name + "f"
	}
	return m.name
}

// math appends calls that cover all lanes.
func (e *emitter) math(function mathFunction, typ loop.Type, lanes int, args []string) string {
	width, name := 1, function.symbol(typ)
	if function.vector && e.target.VectorMath {
		width = e.target.VectorBytes / typ.Bytes()
		name = fmt.Sprintf("_ZGV%cN%d%s_%s", e.target.mangling, width, strings.Repeat("v", function.arguments), name)
	}
	typeName := vectorType(typ, width)
	types := make([]string, len(args))
	for index := range types {
		types[index] = typeName
	}
	return e.inPieces(typ, width, lanes, args, func(piece []string) string { return e.call(typeName, name, types, piece) })
}

// inPieces computes pieces of width lanes by themselves.
func (e *emitter) inPieces(typ loop.Type, width, lanes int, args []string, compute func(piece []string) string) string {
	var pieces []string
	for first := 0; first < lanes; first += width {
		piece := make([]string, len(args))
		for index, arg := range args {
			piece[index] = e.resize(typ, arg, lanes, first, width)
		}
		pieces = append(pieces, compute(piece))
	}
	return e.join(typ, pieces, width, lanes)
}

// resize takes width lanes from lane first on; lanes past the end repeat lane 0 or are unspecified.
func (e *emitter) resize(typ loop.Type, text string, lanes, first, width int) string {
	switch {
	case lanes == width:
		return text
	case lanes == 1:
		return e.splat(scalarType(typ), text, width)
	}
	return e.slice(vectorType(typ, lanes), text, first, width)
}

// join concatenates pieces of width lanes and cuts the result to lanes.
func (e *emitter) join(typ loop.Type, pieces []string, width, lanes int) string {
	for len(pieces) > 1 {
		var joined []string
		for index := 0; index < len(pieces); index += 2 {
			joined = append(joined, e.concatenate(typ, pieces[index], pieces[index+1], width))
		}
		pieces, width = joined, 2*width
	}
	if width == lanes {
		return pieces[0]
	}
	return e.slice(vectorType(typ, width), pieces[0], 0, lanes)
}

// concatenate joins two vectors, or two scalars to a vector.
func (e *emitter) concatenate(typ loop.Type, left, right string, width int) string {
	if width == 1 {
		pair := vectorType(typ, 2)
		first := e.assign("insertelement %s poison, %s %s, i32 0", pair, scalarType(typ), left)
		return e.assign("insertelement %s %s, %s %s, i32 1", pair, first, scalarType(typ), right)
	}
	vector := vectorType(typ, width)
	return e.assign("shufflevector %s %s, %s %s, %s", vector, left, vector, right, shuffle(0, 2*width, 1))
}
