package bytecode

import (
	"unicode/utf8"

	"fusee/internal/slice"
)

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decodeWTF8 is utf8.DecodeRuneInString that also accepts the three-byte form of a surrogate.
func decodeWTF8(text string) (rune, int) {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 && isSurrogateEncoding(text) {
		return rune(text[0]&0x0F)<<12 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), 3
	}
	return r, size
}

// Characters splits a str into its code points, lone surrogates among them, each as it is written in a str.
func Characters(text string) []string {
	var characters []string
	for len(text) > 0 {
		_, size := decodeWTF8(text)
		characters = append(characters, text[:size])
		text = text[size:]
	}
	return characters
}

func isSurrogateEncoding(text string) bool {
	return len(text) >= 3 && text[0] == 0xED && text[1] >= 0xA0 && text[1] <= 0xBF && text[2] >= 0x80 && text[2] <= 0xBF
}

func validWTF8(text string) bool {
	if utf8.ValidString(text) {
		return true
	}
	for len(text) > 0 {
		r, size := decodeWTF8(text)
		if r == utf8.RuneError && size == 1 {
			return false
		}
		text = text[size:]
	}
	return true
}

// latin1 decodes bytes of which each is one code point.
func latin1(text string) string {
	if isASCII(text) {
		return text
	}
	return string(slice.Map([]byte(text), func(letter byte) rune { return rune(letter) }))
}
