package bytecode

import "fmt"

// Position is the source range of an instruction. Lines count from 1, columns from 0 in UTF-8 bytes; ends are exclusive.
// A part that is not known is -1, as None in co_positions.
type Position struct{ Line, EndLine, Column, EndColumn int }

// NoPosition is the position of an instruction that belongs to no source line.
func NoPosition() Position { return Position{-1, -1, -1, -1} }

// Kinds of entries of the location table, described in CPython's Objects/locations.md. Kinds below locationOneLine hold
// the column's upper bits; kinds from there to locationNoColumns hold the line's advance.
const (
	locationOneLine   = 10
	locationNoColumns = 13
	locationLong      = 14
	locationNone      = 15

	maxLocationUnits = 8       // two-byte code units that one entry covers
	maxLine          = 1 << 30 // keeps sums of advances within an int
)

// locationRun is an entry of the location table: a position and the number of code units that have it.
type locationRun struct {
	position Position
	units    int
}

// parseLocations reads a location table.
func parseLocations(table []byte, firstLine int) ([]locationRun, error) {
	reader := locationReader{table: table, line: firstLine}
	var runs []locationRun
	for len(reader.table) > 0 {
		run, err := reader.next()
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

type locationReader struct {
	table []byte
	line  int
	bad   bool
}

func (r *locationReader) next() (locationRun, error) {
	first := r.byte()
	run := locationRun{position: r.position(int(first) >> 3 & 15), units: int(first)&7 + 1}
	if first&0x80 == 0 || r.bad || r.line > maxLine || r.line < -maxLine {
		return run, fmt.Errorf("location table is malformed %d bytes before its end", len(r.table))
	}
	return run, nil
}

func (r *locationReader) position(kind int) Position {
	switch {
	case kind < locationOneLine:
		second := int(r.byte())
		column := kind<<3 | second>>4&7
		return Position{r.line, r.line, column, column + second&15}
	case kind < locationNoColumns:
		r.line += kind - locationOneLine
		column := int(r.byte())
		return Position{r.line, r.line, column, int(r.byte())}
	case kind == locationNoColumns:
		r.line += r.signed()
		return Position{r.line, r.line, -1, -1}
	case kind == locationLong:
		r.line += r.signed()
		endLine := r.line + int(r.varint())
		column := int(r.varint()) - 1
		return Position{r.line, endLine, column, int(r.varint()) - 1}
	}
	return NoPosition()
}

// byte reads a byte inside an entry.
func (r *locationReader) byte() byte {
	if len(r.table) == 0 {
		r.bad = true
		return 0
	}
	value := r.table[0]
	r.table = r.table[1:]
	return value
}

func (r *locationReader) varint() uint {
	var value uint
	for shift := 0; ; shift += 6 {
		part := r.byte()
		value |= uint(part&63) << shift
		if part&64 == 0 {
			return value
		}
		if shift > 24 {
			r.bad = true
			return 0
		}
	}
}

func (r *locationReader) signed() int {
	value := r.varint()
	if value&1 != 0 {
		return -int(value >> 1)
	}
	return int(value >> 1)
}

// locationWriter writes a location table entry by entry, choosing the forms that CPython's compiler chooses
// (write_location_info_entry in Python/compile.c).
type locationWriter struct {
	table []byte
	line  int
}

// add covers the next units code units.
func (w *locationWriter) add(position Position, units int) {
	for ; units > maxLocationUnits; units -= maxLocationUnits {
		w.entry(position, maxLocationUnits)
	}
	w.entry(position, units)
}

func (w *locationWriter) entry(p Position, units int) {
	if p.Line < 0 {
		w.begin(locationNone, units)
		return
	}
	advance := p.Line - w.line
	oneLine := p.EndLine == p.Line
	hasColumns := p.Column >= 0 && p.EndColumn >= 0
	switch {
	case !hasColumns && (oneLine || p.EndLine < 0):
		w.begin(locationNoColumns, units)
		w.table = appendSignedVarint(w.table, advance)
	case hasColumns && oneLine && advance == 0 && p.Column < 80 && p.EndColumn >= p.Column && p.EndColumn-p.Column < 16:
		w.begin(p.Column>>3, units)
		w.table = append(w.table, byte(p.Column&7<<4|(p.EndColumn-p.Column)))
	case hasColumns && oneLine && advance >= 0 && advance < 3 && p.Column < 128 && p.EndColumn < 128:
		w.begin(locationOneLine+advance, units)
		w.table = append(w.table, byte(p.Column), byte(p.EndColumn))
	default:
		w.long(p, units)
	}
	w.line = p.Line
}

func (w *locationWriter) long(p Position, units int) {
	w.begin(locationLong, units)
	w.table = appendSignedVarint(w.table, p.Line-w.line)
	w.table = appendVarint(w.table, uint(max(p.EndLine-p.Line, 0)))
	w.table = appendVarint(w.table, uint(max(p.Column, -1)+1))
	w.table = appendVarint(w.table, uint(max(p.EndColumn, -1)+1))
}

func (w *locationWriter) begin(kind, units int) {
	w.table = append(w.table, byte(0x80|kind<<3|(units-1)))
}

// PositionAt returns the position of the instruction at a byte offset of the code, and whether the table covers it.
func (c *Code) PositionAt(offset int) (Position, bool) {
	runs, err := parseLocations(c.LineTable, c.FirstLine)
	if err != nil {
		return NoPosition(), false
	}
	unit := offset / 2
	for _, run := range runs {
		if unit < run.units {
			return run.position, true
		}
		unit -= run.units
	}
	return NoPosition(), false
}
