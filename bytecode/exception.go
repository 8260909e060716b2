package bytecode

import "fmt"

// exceptionEntry is a row of the exception table. Offsets are in bytes; end is exclusive.
type exceptionEntry struct {
	start, end, target int
	depth              int
	pushLasti          bool
}

// parseExceptionTable reads an exception table as dis does; see CPython's Objects/exception_handling_notes.txt.
func parseExceptionTable(table []byte) ([]exceptionEntry, error) {
	var entries []exceptionEntry
	for position := 0; position < len(table); {
		var fields [4]int
		for i := range fields {
			value, size := exceptionVarint(table[position:])
			if size == 0 {
				return nil, fmt.Errorf("exception table is malformed at byte %d", position)
			}
			fields[i] = value
			position += size
		}
		entries = append(entries, exceptionEntry{
			start: 2 * fields[0], end: 2 * (fields[0] + fields[1]), target: 2 * fields[2],
			depth: fields[3] >> 1, pushLasti: fields[3]&1 != 0,
		})
	}
	return entries, nil
}

// exceptionVarint reads an integer of six bits a byte, most significant first, and returns its size, or 0 if it does not
// end or exceeds what a code object can hold.
func exceptionVarint(table []byte) (value, size int) {
	for size < len(table) && size < 5 {
		part := table[size]
		size++
		value = value<<6 | int(part&63)
		if part&64 == 0 {
			return value, size
		}
	}
	return 0, 0
}

// appendExceptionEntry writes a row; the first byte of each row is marked so that CPython can search the table.
func appendExceptionEntry(table []byte, e exceptionEntry) []byte {
	first := len(table)
	table = appendExceptionVarint(table, e.start/2)
	table = appendExceptionVarint(table, (e.end-e.start)/2)
	table = appendExceptionVarint(table, e.target/2)
	depthAndLasti := e.depth << 1
	if e.pushLasti {
		depthAndLasti |= 1
	}
	table = appendExceptionVarint(table, depthAndLasti)
	table[first] |= 0x80
	return table
}

func appendExceptionVarint(table []byte, value int) []byte {
	shift := 0
	for value>>shift >= 64 {
		shift += 6
	}
	for ; shift > 0; shift -= 6 {
		table = append(table, byte(value>>shift&63)|64)
	}
	return append(table, byte(value&63))
}
