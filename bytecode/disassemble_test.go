package bytecode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nextBlock takes a block with its length before it off the front of data.
func nextBlock(t *testing.T, data *[]byte) []byte {
	t.Helper()
	length := binary.LittleEndian.Uint32(*data)
	block := (*data)[4 : 4+length]
	*data = (*data)[4+length:]
	return block
}

// lineComparison compares disassemblies, whose code objects have other addresses. The order of a frozenset depends on the
// order of its items in the source, which marshal loses.
type lineComparison struct {
	address, unordered *regexp.Regexp
}

func newLineComparison() lineComparison {
	return lineComparison{regexp.MustCompile(` at 0x[0-9a-f]+,`), regexp.MustCompile(`frozenset\(\{.*\}\)`)}
}

// normal brings a line to a form that is the same in both disassemblies.
func (c lineComparison) normal(line string) string {
	line = c.address.ReplaceAllString(line, " at 0x,")
	if !strings.Contains(line, "frozenset({") {
		return line
	}
	return c.unordered.ReplaceAllStringFunc(line, func(set string) string {
		letters := strings.Split(set, "")
		slices.Sort(letters)
		return strings.Join(letters, "")
	})
}

// differ returns the first lines that differ.
func (c lineComparison) differ(got, want string) (string, bool) {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if a, b := c.normal(gotLines[i]), c.normal(wantLines[i]); a != b {
			return fmt.Sprintf("line %d:\n%s\nand not\n%s", i+1, a, b), true
		}
	}
	return fmt.Sprintf("%d lines and not %d", len(gotLines), len(wantLines)), len(gotLines) != len(wantLines)
}

// TestDisassemblyAgreesWithCPython compares with dis.dis and dis.get_instructions on modules of the standard library.
func TestDisassemblyAgreesWithCPython(t *testing.T) {
	t.Parallel()
	data := []byte(runPython(t, "", "-W", "ignore", "testdata/dump_dis.py") + "\n")
	comparison := newLineComparison()
	modules := 0
	for ; len(data) > 0; modules++ {
		marshalled, wantText, wantList := nextBlock(t, &data), nextBlock(t, &data), nextBlock(t, &data)
		object, err := Unmarshal(marshalled)
		if err != nil {
			t.Fatal(err)
		}
		code := object.(*Code)
		var text bytes.Buffer
		if err := Disassemble(&text, code); err != nil {
			t.Errorf("%s: %v", code.FileName, err)
		}
		if difference, found := comparison.differ(text.String(), string(wantText)); found {
			t.Errorf("%s: %s", code.FileName, difference)
		}
		if difference, found := comparison.differ(listText(t, code), string(wantList)); found {
			t.Errorf("%s: %s", code.FileName, difference)
		}
	}
	if modules < 100 {
		t.Errorf("only %d modules were compared", modules)
	}
}

// listText writes instructions as testdata/dump_dis.py does.
func listText(t *testing.T, code *Code) string {
	t.Helper()
	var text strings.Builder
	err := WalkCodes(code, func(code *Code) error {
		fmt.Fprintln(&text, code.QualName)
		list, err := ListInstructions(code)
		for _, listed := range list {
			argument := "None"
			if listed.Opcode.HasArgument() {
				argument = fmt.Sprint(listed.Arg)
			}
			fmt.Fprintln(&text, listed.Offset, listed.Opcode, argument)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return text.String()
}

func TestDisassembleRefusesArgumentsThatNameNothing(t *testing.T) {
	for _, code := range [][]byte{
		{byte(LoadConst), 2}, {byte(LoadName), 1}, {byte(LoadGlobal), 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {byte(LoadFast), 1},
		{byte(LoadDeref), 9}, {byte(CompareOp), 6, 0, 0, 0, 0}, {byte(BinaryOp), 26, 0, 0}, {3, 0}, {byte(Nop)},
	} {
		var text bytes.Buffer
		if err := Disassemble(&text, plainCode(code...)); err == nil {
			t.Errorf("%x was disassembled as %s", code, text.String())
		}
	}
}

// TestPrintableCharacters compares isPrintable with str.isprintable for every character. When Go's tables grow beyond
// Unicode 15, the characters that it reports belong into assignedAfterUnicode14.
func TestPrintableCharacters(t *testing.T) {
	script := "import sys; sys.stdout.write(''.join('01'[chr(i).isprintable()] for i in range(sys.maxunicode + 1)))"
	wanted := runPython(t, "", "-c", script)
	if len(wanted) != 0x110000 {
		t.Fatalf("%d characters", len(wanted))
	}
	for r := range rune(0x110000) {
		if isPrintable(r) != (wanted[r] == '1') {
			t.Errorf("%U: printable is %t", r, isPrintable(r))
		}
	}
}
