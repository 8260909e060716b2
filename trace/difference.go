package trace

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"fusee/bytecode"
)

// longestExcerpt bounds how much of a value an explanation shows, in bytes.
const longestExcerpt = 120

func decimal(n int) string { return strconv.Itoa(n) }

// Difference finds the first place where two objects differ: the path to it in Python's notation and both values, shortened. The
// path is empty when they are equal.
func Difference(want, got bytecode.Object) (place, wantText, gotText string) {
	if sameBytes(want, got) {
		return "", "", ""
	}
	wantParts, gotParts := partsOf(want), partsOf(got)
	for i := range min(len(wantParts), len(gotParts)) {
		if wantParts[i].name != gotParts[i].name {
			break
		}
		inner, a, b := Difference(wantParts[i].value, gotParts[i].value)
		if inner != "" {
			return joinPath(wantParts[i].name, inner), a, b
		}
	}
	return "value", excerpt(fromDifference(want, got)), excerpt(fromDifference(got, want))
}

// fromDifference cuts a text off before the line in which it departs from another one.
func fromDifference(object, other bytecode.Object) bytecode.Object {
	text, isText := object.(string)
	otherText, bothText := other.(string)
	if !isText || !bothText {
		return object
	}
	same := 0
	for same < min(len(text), len(otherText)) && text[same] == otherText[same] {
		same++
	}
	return text[strings.LastIndexByte(text[:same], '\n')+1:]
}

func joinPath(name, inner string) string {
	if inner == "value" {
		return name
	}
	return name + inner
}

type part struct {
	name  string
	value bytecode.Object
}

// partsOf lists the parts of a container by the path to each.
func partsOf(object bytecode.Object) []part {
	var parts []part
	switch value := object.(type) {
	case *bytecode.Dict:
		for i, key := range value.Keys {
			parts = append(parts, part{"[" + excerpt(key) + "]", value.Values[i]})
		}
	case *bytecode.Code:
		parts = []part{
			{".co_code", bytecode.Bytes(value.Code)}, {".co_consts", bytecode.Tuple(value.Consts)}, {".co_exceptiontable", bytecode.Bytes(value.ExceptionTable)},
			{".co_linetable", bytecode.Bytes(value.LineTable)}, {".co_stacksize", int64(value.StackSize)},
		}
	case bytecode.Bytes: // a packed report
		if inner, err := bytecode.Unmarshal([]byte(value)); err == nil {
			return partsOf(inner)
		}
	default:
		for i, item := range Items(object) {
			parts = append(parts, part{"[" + decimal(i) + "]", item})
		}
	}
	return parts
}

func sameBytes(a, b bytecode.Object) bool {
	left, leftErr := bytecode.Marshal(a)
	right, rightErr := bytecode.Marshal(b)
	return leftErr == nil && rightErr == nil && bytes.Equal(left, right)
}

func excerpt(object bytecode.Object) string {
	text, err := bytecode.Repr(object)
	if err != nil {
		text = fmt.Sprintf("%T", object)
	}
	if len(text) > longestExcerpt {
		text = text[:longestExcerpt] + "…"
	}
	return text
}

// wholeMessage names a message by its kind and what it asks.
func wholeMessage(body []byte) string {
	if body == nil {
		return "nothing"
	}
	message, err := decodeMessage(body)
	if err != nil {
		return "a damaged message"
	}
	return excerpt(message)
}
