package bytecode

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxIntDigits is CPython's sys.int_info.default_max_str_digits: longer ints have no repr.
const maxIntDigits = 4300

// maxReprSize bounds the text of one constant, which may be larger than the constant by a factor.
const maxReprSize = 1 << 28

// Repr returns Python's repr of an object. Code objects are numbered in order of appearance where CPython prints their
// address; sets keep the order of their items (see OrderSets). Errors are ints of more than 4300 digits, as in CPython, and texts of more than 256 MiB.
func Repr(object Object) (string, error) {
	return (&representer{addresses: map[*Code]int{}}).object(object)
}

// representer remembers which code objects it has named.
type representer struct {
	addresses map[*Code]int
}

func (r *representer) object(object Object) (string, error) {
	var out strings.Builder
	err := r.write(&out, object, 0)
	return out.String(), err
}

func (r *representer) write(out *strings.Builder, object Object, depth int) error {
	if depth > maxMarshalDepth || out.Len() > maxReprSize {
		return fmt.Errorf("constant is too large to print")
	}
	switch value := object.(type) {
	case NoneType:
		out.WriteString("None")
	case EllipsisType:
		out.WriteString("Ellipsis")
	case StopIterationType:
		out.WriteString("<class 'StopIteration'>")
	case bool:
		out.WriteString(map[bool]string{false: "False", true: "True"}[value])
	case int64:
		out.WriteString(strconv.FormatInt(value, 10))
	case *big.Int:
		return writeBigInt(out, value)
	case float64:
		out.WriteString(floatRepr(value, ".0"))
	case complex128:
		out.WriteString(complexRepr(value))
	case string:
		writeStrRepr(out, value)
	case Bytes:
		writeBytesRepr(out, string(value))
	case *Code:
		out.WriteString(r.code(value))
	default:
		return r.writeContainer(out, object, depth+1)
	}
	return nil
}

// code is code_repr of CPython's Objects/codeobject.c, with a number for the address.
func (r *representer) code(code *Code) string {
	address, known := r.addresses[code]
	if !known {
		address = len(r.addresses) + 1
		r.addresses[code] = address
	}
	line := code.FirstLine
	if line == 0 {
		line = -1
	}
	return fmt.Sprintf("<code object %s at %#x, file \"%s\", line %d>", code.Name, address, code.FileName, line)
}

func (r *representer) writeContainer(out *strings.Builder, object Object, depth int) error {
	switch value := object.(type) {
	case Tuple:
		end := ")"
		if len(value) == 1 {
			end = ",)"
		}
		return r.writeItems(out, "(", value, end, depth)
	case *List:
		return r.writeItems(out, "[", value.Items, "]", depth)
	case *Set:
		return r.writeSet(out, value, depth)
	case *Dict:
		return r.writeDict(out, value, depth)
	}
	return fmt.Errorf("type %T is not a Python object", object)
}

func (r *representer) writeItems(out *strings.Builder, begin string, items []Object, end string, depth int) error {
	out.WriteString(begin)
	for i, item := range items {
		if i > 0 {
			out.WriteString(", ")
		}
		if err := r.write(out, item, depth); err != nil {
			return err
		}
	}
	out.WriteString(end)
	return nil
}

func (r *representer) writeSet(out *strings.Builder, set *Set, depth int) error {
	name, begin, end := "set", "{", "}"
	if set.Frozen {
		name, begin, end = "frozenset", "frozenset({", "})"
	}
	if len(set.Items) == 0 {
		out.WriteString(name + "()")
		return nil
	}
	return r.writeItems(out, begin, set.Items, end, depth)
}

func (r *representer) writeDict(out *strings.Builder, dict *Dict, depth int) error {
	out.WriteByte('{')
	for i, key := range dict.Keys {
		if i > 0 {
			out.WriteString(", ")
		}
		if err := r.write(out, key, depth); err != nil {
			return err
		}
		out.WriteString(": ")
		if err := r.write(out, dict.Values[i], depth); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeBigInt(out *strings.Builder, value *big.Int) error {
	// log10(2) > 0.3 sorts out giants before their digits are computed.
	if float64(value.BitLen()-1)*0.3 > maxIntDigits {
		return fmt.Errorf("int has more than %d digits", maxIntDigits)
	}
	text := value.String()
	if len(strings.TrimPrefix(text, "-")) > maxIntDigits {
		return fmt.Errorf("int has more than %d digits", maxIntDigits)
	}
	out.WriteString(text)
	return nil
}

// floatRepr is the shortest decimal that reads back as the value, in the notation that CPython's repr chooses; whole
// numbers in positional notation get the ending.
func floatRepr(value float64, whole string) string {
	switch {
	case math.IsNaN(value):
		return "nan"
	case math.IsInf(value, 1):
		return "inf"
	case math.IsInf(value, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(value, 'e', -1, 64)
	exponent, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	if value != 0 && (exponent < -4 || exponent >= 16) {
		return text
	}
	text = strconv.FormatFloat(value, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += whole
	}
	return text
}

func complexRepr(value complex128) string {
	imaginary := floatRepr(imag(value), "")
	if real(value) == 0 && !math.Signbit(real(value)) {
		return imaginary + "j"
	}
	if imaginary[0] != '-' {
		imaginary = "+" + imaginary
	}
	return "(" + floatRepr(real(value), "") + imaginary + "j)"
}

// quoteFor returns the quote that CPython's repr puts around a text.
func quoteFor(text string) byte {
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		return '"'
	}
	return '\''
}

func writeStrRepr(out *strings.Builder, text string) {
	quote := quoteFor(text)
	out.WriteByte(quote)
	for len(text) > 0 {
		r, size := decodeWTF8(text)
		switch {
		case r < utf8.RuneSelf:
			writeASCIIRepr(out, byte(r), quote)
		case isPrintable(r):
			out.WriteString(text[:size])
		case r <= 0xFF:
			fmt.Fprintf(out, `\x%02x`, r)
		case r <= 0xFFFF:
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			fmt.Fprintf(out, `\U%08x`, r)
		}
		text = text[size:]
	}
	out.WriteByte(quote)
}

func writeBytesRepr(out *strings.Builder, text string) {
	quote := quoteFor(text)
	out.WriteByte('b')
	out.WriteByte(quote)
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			fmt.Fprintf(out, `\x%02x`, text[i])
		} else {
			writeASCIIRepr(out, text[i], quote)
		}
	}
	out.WriteByte(quote)
}

func writeASCIIRepr(out *strings.Builder, c, quote byte) {
	switch {
	case c == quote || c == '\\':
		out.WriteByte('\\')
		out.WriteByte(c)
	case c == '\t':
		out.WriteString(`\t`)
	case c == '\n':
		out.WriteString(`\n`)
	case c == '\r':
		out.WriteString(`\r`)
	case c < ' ' || c == 0x7F:
		fmt.Fprintf(out, `\x%02x`, c)
	default:
		out.WriteByte(c)
	}
}

// isPrintable is str.isprintable of one character in CPython 3.11, whose character database is Unicode 14.
func isPrintable(r rune) bool {
	return unicode.IsPrint(r) && !unicode.Is(&assignedAfterUnicode14, r)
}
