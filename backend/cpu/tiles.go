package cpu

import (
	"slices"
	"strconv"

	"fusee/backend/loop"
)

// tileRows is the height of a tile; it is one block of lanes wide. A matrix read across the tile's rows is then read a cache line from as many places as there are
// lanes, which stay in the first-level cache even where they all fall into one of its sets, as they do for strides of a power of two.
const tileRows = 16

// crosses reports whether some access walks memory across the rows, while its neighbour in the next row is its neighbour in memory.
func crosses(kernel *loop.Kernel) bool {
	last := len(kernel.Outer) - 1
	for index := range kernel.Stages {
		if last > 0 && slices.ContainsFunc(accesses(&kernel.Stages[index]), walksAcross) {
			return true
		}
	}
	return false
}

func walksAcross(access *loop.Access) bool {
	last := len(access.Strides) - 1
	return !access.Strides[last].Is(0) && !access.Strides[last].Is(1) && access.Strides[last-1].Is(1)
}

// tiles covers rows first…end tile by tile.
func (e *emitter) tiles(first, end, length string) {
	e.loop(first, end, strconv.Itoa(tileRows), nil, func(rows string, _ []string) []string {
		rowsEnd := e.extremum("smin", e.assign("add i64 %s, %d", rows, tileRows), end)
		e.loop("0", length, strconv.Itoa(e.native), nil, func(columns string, _ []string) []string {
			columnsEnd := e.extremum("smin", e.assign("add i64 %s, %d", columns, e.native), length)
			left := e.turn(rows, columns, length, rowsEnd)
			e.each(left, rowsEnd, func(row string) { e.partOfRow(row, length, columns, columnsEnd) })
			return nil
		})
		return nil
	})
}

// mostTurned bounds the instructions of a kernel that are printed once for each row of a tile.
const mostTurned = 40

// turns lists the loads of a kernel whose neighbours in the next row are neighbours in memory, where tiles are read that way and turned over in registers; none where the
// kernel's code would become long.
func (e *emitter) turns() []*loop.Instruction {
	var result []*loop.Instruction
	count := 0
	for _, stage := range e.allStages() {
		count += len(stage.Body)
		for index := range stage.Body {
			in := &stage.Body[index]
			if in.Op == loop.OpLoad && len(in.Args) == 0 && walksAcross(in.Access) && e.kernel.Buffers[in.Access.Buffer].Mode == loop.Read {
				result = append(result, in)
			}
		}
	}
	if count > mostTurned || tileRows%e.native != 0 || len(e.cuts(e.allStages(), e.vector, e.kernel.Outer[e.vector])) > 0 {
		return nil
	}
	return result
}

// turn computes a tile that is whole, of rows that follow one another in the dimension before the last, and returns the first row that is left.
func (e *emitter) turn(rows, columns, length, rowsEnd string) string {
	loads, before := e.turns(), e.kernel.Outer[e.vector-1]
	if loads == nil {
		return rows
	}
	behind := e.assign("add i64 %s, %d", rows, tileRows)
	place := e.assign("urem i64 %s, %s", rows, e.positive(e.int(before)))
	whole := e.assign("icmp sge i64 %s, %s", e.multiply(rows, length), e.begin)
	for _, test := range [][2]string{
		{e.multiply(behind, length), e.end}, {behind, rowsEnd}, {e.assign("add i64 %s, %d", columns, e.native), length},
		{e.assign("add i64 %s, %d", place, tileRows), e.int(before)},
	} {
		whole = e.assign("and i1 %s, %s", whole, e.assign("icmp sle i64 %s, %s", test[0], test[1]))
	}
	left := e.assign("select i1 %s, i64 %s, i64 %s", whole, behind, rows)
	e.loop(rows, left, strconv.Itoa(e.native), nil, func(row string, _ []string) []string {
		e.scoped(func() { e.turnedRows(loads, row, columns) })
		return nil
	})
	return left
}

// turnedRows computes as many rows of a tile as there are lanes.
func (e *emitter) turnedRows(loads []*loop.Instruction, row, columns string) {
	positions := e.positions(row, e.kernel.Outer[:e.vector])
	last := len(positions) - 1
	for _, index := range positions[:last] {
		e.enter(index, e.allStages()...)
	}
	e.current = e.native
	var columnsOf [][]string
	for _, in := range loads {
		e.scoped(func() {
			e.enter(positions[last], e.allStages()...)
			e.enter(columns, e.allStages()...)
			columnsOf = append(columnsOf, e.transpose(in, e.readAcross(in)))
		})
	}
	for number := range e.native {
		e.turned = map[*loop.Instruction]string{}
		for index, in := range loads {
			e.turned[in] = columnsOf[index][number]
		}
		e.scoped(func() {
			e.enter(e.assign("add i64 %s, %d", positions[last], number), e.allStages()...)
			e.enter(columns, e.allStages()...)
			e.stages()
		})
	}
	e.turned, e.current = nil, 1
}

// readAcross reads for each lane a vector of that lane's values in the next rows.
func (e *emitter) readAcross(in *loop.Instruction) []string {
	typ, result := wide(memoryType(in.Type), e.native), make([]string, e.native)
	for lane := range result {
		result[lane] = e.assign("load %s, ptr %s, align %d", typ, e.lanePointer(in.Access, in.Access.Strides[e.vector], lane), in.Type.Bytes())
	}
	return result
}

// transpose turns a square of vectors over: for each bit of their numbers, it changes places with the bit of the lanes' numbers.
func (e *emitter) transpose(in *loop.Instruction, vectors []string) []string {
	typ, lanes := wide(memoryType(in.Type), len(vectors)), len(vectors)
	for bit := 1; bit < lanes; bit *= 2 {
		for number := range lanes {
			if number&bit != 0 {
				continue
			}
			left, right := vectors[number], vectors[number|bit]
			for _, half := range []int{0, bit} {
				places := make([]int, lanes)
				for lane := range places {
					places[lane] = lane&^bit | half
					if lane&bit != 0 {
						places[lane] += lanes
					}
				}
				vectors[number|half] = e.chosen(typ, left, right, places)
			}
		}
	}
	return vectors
}
