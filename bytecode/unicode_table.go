package bytecode

import "unicode"

// assignedAfterUnicode14 holds the printable characters that Go's tables know and CPython 3.11's do not. It is never
// written to. TestPrintableCharacters says what to change when Go's tables grow.
var assignedAfterUnicode14 = unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0xcf3, Hi: 0xcf3, Stride: 1},
		{Lo: 0xece, Hi: 0xece, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10efd, Hi: 0x10eff, Stride: 1},
		{Lo: 0x1123f, Hi: 0x11241, Stride: 1},
		{Lo: 0x11b00, Hi: 0x11b09, Stride: 1},
		{Lo: 0x11f00, Hi: 0x11f10, Stride: 1},
		{Lo: 0x11f12, Hi: 0x11f3a, Stride: 1},
		{Lo: 0x11f3e, Hi: 0x11f59, Stride: 1},
		{Lo: 0x1342f, Hi: 0x1342f, Stride: 1},
		{Lo: 0x13440, Hi: 0x13455, Stride: 1},
		{Lo: 0x1b132, Hi: 0x1b132, Stride: 1},
		{Lo: 0x1b155, Hi: 0x1b155, Stride: 1},
		{Lo: 0x1d2c0, Hi: 0x1d2d3, Stride: 1},
		{Lo: 0x1df25, Hi: 0x1df2a, Stride: 1},
		{Lo: 0x1e030, Hi: 0x1e06d, Stride: 1},
		{Lo: 0x1e08f, Hi: 0x1e08f, Stride: 1},
		{Lo: 0x1e4d0, Hi: 0x1e4f9, Stride: 1},
		{Lo: 0x1f6dc, Hi: 0x1f6dc, Stride: 1},
		{Lo: 0x1f774, Hi: 0x1f776, Stride: 1},
		{Lo: 0x1f77b, Hi: 0x1f77f, Stride: 1},
		{Lo: 0x1f7d9, Hi: 0x1f7d9, Stride: 1},
		{Lo: 0x1fa75, Hi: 0x1fa77, Stride: 1},
		{Lo: 0x1fa87, Hi: 0x1fa88, Stride: 1},
		{Lo: 0x1faad, Hi: 0x1faaf, Stride: 1},
		{Lo: 0x1fabb, Hi: 0x1fabd, Stride: 1},
		{Lo: 0x1fabf, Hi: 0x1fabf, Stride: 1},
		{Lo: 0x1face, Hi: 0x1facf, Stride: 1},
		{Lo: 0x1fada, Hi: 0x1fadb, Stride: 1},
		{Lo: 0x1fae8, Hi: 0x1fae8, Stride: 1},
		{Lo: 0x1faf7, Hi: 0x1faf8, Stride: 1},
		{Lo: 0x2b739, Hi: 0x2b739, Stride: 1},
		{Lo: 0x31350, Hi: 0x323af, Stride: 1},
	},
}
