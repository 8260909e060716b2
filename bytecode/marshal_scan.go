package bytecode

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// scanner reads the primitive parts of the marshal format. It is shared by Unmarshal and ReadTree.
//
// A length is believed only if that many bytes can still follow: promised counts the items that open containers have
// announced and not yet read, of which each takes at least one byte. Allocation is thereby linear in the input.
type scanner struct {
	input    string
	position int
	promised int
	depth    int
}

func (s *scanner) fail(format string, arguments ...any) error {
	return &MarshalError{Offset: s.position, Message: fmt.Sprintf(format, arguments...)}
}

func (s *scanner) remaining() int { return len(s.input) - s.position }

// take returns the next count bytes.
func (s *scanner) take(count int) (string, error) {
	if count > s.remaining() {
		return "", s.fail("%d bytes are missing", count-s.remaining())
	}
	part := s.input[s.position : s.position+count]
	s.position += count
	return part, nil
}

func (s *scanner) byte() (byte, error) {
	if s.position >= len(s.input) {
		return 0, s.fail("input ends early")
	}
	value := s.input[s.position]
	s.position++
	return value, nil
}

func (s *scanner) int32() (int, error) {
	part, err := s.take(4)
	if err != nil {
		return 0, err
	}
	return int(int32(uint32(part[0]) | uint32(part[1])<<8 | uint32(part[2])<<16 | uint32(part[3])<<24)), nil
}

// length reads a length of count bytes or of four.
func (s *scanner) length(short bool) (int, error) {
	if short {
		value, err := s.byte()
		return int(value), err
	}
	value, err := s.int32()
	if err == nil && value < 0 {
		return 0, s.fail("length %d is negative", value)
	}
	return value, err
}

// counted reads a length and that many bytes.
func (s *scanner) counted(short bool) (string, error) {
	length, err := s.length(short)
	if err != nil {
		return "", err
	}
	return s.take(length)
}

// open begins a container of count items and close ends it; the caller calls item before each item.
func (s *scanner) open(count int) error {
	if s.depth >= maxMarshalDepth-1 {
		return s.fail("objects nest more than %d deep", maxMarshalDepth)
	}
	if count > s.remaining()-s.promised {
		return s.fail("a container of %d items does not fit in the rest of the input", count)
	}
	s.depth++
	s.promised += count
	return nil
}

func (s *scanner) item()  { s.promised-- }
func (s *scanner) close() { s.depth-- }

func (s *scanner) float64() (float64, error) {
	part, err := s.take(8)
	if err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(part))), nil
}

// floatText reads the decimal form of marshal versions 0 and 1.
func (s *scanner) floatText() (float64, error) {
	text, err := s.counted(true)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(value, 0) || !isDecimalFloat(text) {
		return 0, s.fail("%q is not a float", text)
	}
	return value, nil
}

// isDecimalFloat excludes what strconv reads and CPython does not: hexadecimal digits and underscores.
func isDecimalFloat(text string) bool {
	for i := range len(text) {
		if text[i] == '_' || text[i] == 'x' || text[i] == 'X' {
			return false
		}
	}
	return true
}

// long reads an int in base 2**15, least significant digit first.
func (s *scanner) long() (Object, error) {
	part, negative, err := s.longDigits()
	if err != nil {
		return nil, err
	}
	magnitude := make([]byte, (len(part)/2*longDigitBits+7)/8)
	accumulator, bits, next := uint32(0), 0, len(magnitude)-1
	for i := 0; i < len(part); i += 2 {
		accumulator |= (uint32(part[i]) | uint32(part[i+1])<<8) << bits
		for bits += longDigitBits; bits >= 8; bits -= 8 {
			magnitude[next] = byte(accumulator)
			accumulator >>= 8
			next--
		}
	}
	if next >= 0 {
		magnitude[next] = byte(accumulator)
	}
	value := new(big.Int).SetBytes(magnitude)
	if negative {
		value.Neg(value)
	}
	return NewInt(value), nil
}

// longDigits reads the digits of an int unconverted and checks that CPython would accept them.
func (s *scanner) longDigits() (digits string, negative bool, err error) {
	count, err := s.int32()
	if err != nil {
		return "", false, err
	}
	if count < 0 {
		negative, count = true, -count
	}
	if count > maxLongDigits {
		return "", false, s.fail("int of %d digits", count)
	}
	digits, err = s.take(2 * count)
	if err != nil {
		return "", false, err
	}
	for i := 1; i < len(digits); i += 2 {
		if digits[i] > 0x7F {
			return "", false, s.fail("digit of an int is out of range")
		}
	}
	if count > 0 && digits[2*count-1] == 0 && digits[2*count-2] == 0 {
		return "", false, s.fail("int has a leading zero")
	}
	return digits, negative, nil
}
