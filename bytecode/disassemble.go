package bytecode

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ListedInstruction is an instruction as dis.get_instructions counts them: EXTENDED_ARG prefixes are listed, inline
// caches are not.
type ListedInstruction struct {
	Offset int
	Opcode Opcode
	Arg    int // with prefixes folded in; 0 where the opcode has no argument
}

// ListInstructions returns the instructions of a code object in order.
func ListInstructions(code *Code) ([]ListedInstruction, error) {
	var list []ListedInstruction
	err := scanCode(code.Code, func(raw rawInstruction) error {
		listed := ListedInstruction{Offset: raw.offset, Opcode: raw.op}
		if raw.op.HasArgument() {
			listed.Arg = raw.arg
		}
		list = append(list, listed)
		return nil
	})
	return list, err
}

// WalkCodes calls visit for a code object and then for those among its constants, each followed by its own, as dis does.
func WalkCodes(code *Code, visit func(*Code) error) error {
	if err := visit(code); err != nil {
		return err
	}
	for _, constant := range code.Consts {
		if inner, ok := constant.(*Code); ok {
			if err := WalkCodes(inner, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// Disassemble writes what CPython 3.11's dis.dis prints for a code object and those nested in it. Addresses of code objects
// are numbers in order of appearance, and frozensets keep the order of their items (see OrderSets). It reports malformed code and arguments that name nothing.
func Disassemble(w io.Writer, code *Code) error {
	out := bufio.NewWriterSize(w, 1<<16)
	printer := disassembler{out: out, names: &representer{addresses: map[*Code]int{}}}
	nested := false
	err := WalkCodes(code, func(code *Code) error {
		if nested {
			fmt.Fprintf(out, "\nDisassembly of %s:\n", printer.names.code(code))
		}
		nested = true
		return printer.print(code)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

type disassembler struct {
	out   *bufio.Writer
	names *representer
}

// disassembly is what is known about one code object before its first line is printed.
type disassembly struct {
	code                   *Code
	lineStarts             map[int]int // source line by the offset at which it begins
	labels                 map[int]bool
	lineWidth, offsetWidth int
	showLines              bool
	exceptionTable         []exceptionEntry
}

func (d *disassembler) print(code *Code) error {
	view, err := newDisassembly(code)
	if err != nil {
		return err
	}
	err = scanCode(code.Code, func(raw rawInstruction) error { return d.instruction(view, raw) })
	if err != nil || len(view.exceptionTable) == 0 {
		return err
	}
	d.out.WriteString("ExceptionTable:\n")
	for _, entry := range view.exceptionTable {
		lasti := ""
		if entry.pushLasti {
			lasti = " lasti"
		}
		fmt.Fprintf(d.out, "  %d to %d -> %d [%d]%s\n", entry.start, entry.end-2, entry.target, entry.depth, lasti)
	}
	return nil
}

func newDisassembly(code *Code) (*disassembly, error) {
	table, err := parseExceptionTable(code.ExceptionTable)
	if err != nil {
		return nil, err
	}
	view := &disassembly{code: code, labels: map[int]bool{}, exceptionTable: table, offsetWidth: 4}
	for _, entry := range table {
		if entry.start < entry.end {
			view.labels[entry.target] = true
		}
	}
	if err := view.findLines(); err != nil {
		return nil, err
	}
	if last := len(code.Code) - 2; last >= 10000 {
		view.offsetWidth = len(strconv.Itoa(last))
	}
	return view, scanCode(code.Code, func(raw rawInstruction) error {
		if info := &opcodes[raw.op]; info.Jump != NoJump {
			view.labels[jumpTarget(info, raw.offset, raw.arg)] = true
		}
		return nil
	})
}

// findLines is dis.findlinestarts, and the width of the column of line numbers.
func (v *disassembly) findLines() error {
	runs, err := parseLocations(v.code.LineTable, v.code.FirstLine)
	if err != nil {
		return err
	}
	v.lineStarts = map[int]int{}
	offset, previous, greatest := 0, 0, 0
	for _, run := range runs {
		line := run.position.Line
		if line >= 0 && (line != previous || !v.showLines) {
			v.lineStarts[offset] = line
			previous = line
			greatest = max(greatest, line)
			v.showLines = true
		}
		offset += 2 * run.units
	}
	if v.showLines {
		v.lineWidth = max(3, len(strconv.Itoa(greatest)))
	}
	return nil
}

func (d *disassembler) instruction(view *disassembly, raw rawInstruction) error {
	var line strings.Builder
	start, startsLine := view.lineStarts[raw.offset]
	if startsLine && raw.offset > 0 {
		d.out.WriteByte('\n')
	}
	switch {
	case startsLine:
		fmt.Fprintf(&line, "%*d ", view.lineWidth, start)
	case view.showLines:
		fmt.Fprintf(&line, "%*s ", view.lineWidth, "")
	}
	mark := "  "
	if view.labels[raw.offset] {
		mark = ">>"
	}
	fmt.Fprintf(&line, "    %s %*d %-20s", mark, view.offsetWidth, raw.offset, raw.op)
	if raw.op.HasArgument() {
		fmt.Fprintf(&line, " %5d", raw.arg)
		text, err := d.argument(view.code, raw)
		if err != nil {
			return err
		}
		if text != "" {
			fmt.Fprintf(&line, " (%s)", text)
		}
	}
	d.out.WriteString(strings.TrimRight(line.String(), " "))
	return d.out.WriteByte('\n')
}

// argument says in words what an instruction's argument means; "" where the number says it all.
func (d *disassembler) argument(code *Code, raw rawInstruction) (string, error) {
	info := &opcodes[raw.op]
	switch info.Argument {
	case ArgumentConstant:
		constant, err := element(code.Consts, raw.arg, raw)
		if err != nil {
			return "", err
		}
		return d.names.object(constant)
	case ArgumentName:
		return element(code.Names, raw.arg, raw)
	case ArgumentGlobalName:
		name, err := element(code.Names, raw.arg>>1, raw)
		if raw.arg&1 != 0 && name != "" {
			name = "NULL + " + name
		}
		return name, err
	case ArgumentLocal, ArgumentVariable:
		return element(code.LocalsPlusNames, raw.arg, raw)
	case ArgumentJump:
		return fmt.Sprintf("to %d", jumpTarget(info, raw.offset, raw.arg)), nil
	case ArgumentComparison:
		return element(ComparisonOperators(), raw.arg, raw)
	case ArgumentOperator:
		return element(BinaryOperators(), raw.arg, raw)
	case ArgumentConversion:
		return conversionText(raw.arg), nil
	case ArgumentFunctionParts:
		return functionPartsText(raw.arg), nil
	}
	return "", nil
}

func element[T any](items []T, index int, raw rawInstruction) (T, error) {
	if index < 0 || index >= len(items) {
		var none T
		return none, fmt.Errorf("%s at offset %d names item %d of %d", raw.op, raw.offset, index, len(items))
	}
	return items[index], nil
}

func conversionText(arg int) string {
	texts := [...]string{"", "str", "repr", "ascii", "with format", "str, with format", "repr, with format", "ascii, with format"}
	return texts[arg&7]
}

func functionPartsText(arg int) string {
	var parts []string
	for bit, part := range [...]string{"defaults", "kwdefaults", "annotations", "closure"} {
		if arg>>bit&1 != 0 {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
