package bytecode

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// opcodeGolden is the output of testdata/dump_opcodes.py.
type opcodeGolden struct {
	Arguments   []int
	Comparisons []string
	Operators   []string
	Opcodes     []struct {
		Number      int
		Name        string
		Caches      int
		HasArgument bool `json:"has_argument"`
		Kind        string
		Effects     []int
		JumpEffects []int `json:"jump_effects"`
	}
}

func readOpcodeGolden(t *testing.T) opcodeGolden {
	t.Helper()
	content, err := os.ReadFile("testdata/opcodes.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden opcodeGolden
	if err := json.Unmarshal(content, &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

// kindsInPython names the list of Lib/opcode.py that holds the opcodes of an argument kind.
func kindsInPython() map[ArgumentKind]string {
	return map[ArgumentKind]string{
		ArgumentConstant: "constant", ArgumentKeywordNames: "constant", ArgumentName: "name", ArgumentGlobalName: "name",
		ArgumentJump: "jump", ArgumentLocal: "local", ArgumentVariable: "variable", ArgumentComparison: "comparison",
	}
}

func TestOpcodesAgreeWithCPython(t *testing.T) {
	golden := readOpcodeGolden(t)
	kinds := kindsInPython()
	known := map[int]bool{}
	for _, row := range golden.Opcodes {
		known[row.Number] = true
		info := Opcode(row.Number).Info()
		if info.Name != row.Name || info.Caches != row.Caches || Opcode(row.Number).HasArgument() != row.HasArgument {
			t.Errorf("opcode %d is %+v, want %+v", row.Number, info, row)
		}
		if kinds[info.Argument] != row.Kind || (info.Argument != ArgumentNone) != row.HasArgument {
			t.Errorf("%s has argument kind %d, want %q", row.Name, info.Argument, row.Kind)
		}
		if (info.Jump != NoJump) != (row.Kind == "jump") || (info.Jump == BackwardJump) != strings.Contains(row.Name, "BACKWARD") {
			t.Errorf("%s has jump kind %d", row.Name, info.Jump)
		}
		if found, ok := OpcodeByName(row.Name); !ok || found != Opcode(row.Number) {
			t.Errorf("the name %s leads to opcode %d", row.Name, found)
		}
	}
	for number := range 256 {
		if Opcode(number).Defined() != known[number] {
			t.Errorf("opcode %d: defined is %t", number, !known[number])
		}
	}
	if !slices.Equal(ComparisonOperators(), golden.Comparisons) || !slices.Equal(BinaryOperators(), golden.Operators) {
		t.Error("operators differ")
	}
}

func TestStackEffectsAgreeWithCPython(t *testing.T) {
	golden := readOpcodeGolden(t)
	for _, row := range golden.Opcodes {
		for i := range row.Effects {
			arg := 0
			if row.HasArgument {
				arg = golden.Arguments[i]
			}
			falling, err := StackEffect(Opcode(row.Number), arg, false)
			if err != nil || falling != row.Effects[i] {
				t.Errorf("StackEffect(%s, %d, false) = %d, %v, want %d", row.Name, arg, falling, err, row.Effects[i])
			}
			jumping, err := StackEffect(Opcode(row.Number), arg, true)
			if err != nil || jumping != row.JumpEffects[i] {
				t.Errorf("StackEffect(%s, %d, true) = %d, %v, want %d", row.Name, arg, jumping, err, row.JumpEffects[i])
			}
		}
	}
	if _, err := StackEffect(3, 0, false); err == nil {
		t.Error("an opcode that does not exist has a stack effect")
	}
}

// TestGoldenOpcodesAreCurrent compares the checked-in table with the CPython at hand.
func TestGoldenOpcodesAreCurrent(t *testing.T) {
	output, err := exec.Command(findPython(t), "testdata/dump_opcodes.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/opcodes.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(output, golden) {
		t.Error("testdata/opcodes.json is not what testdata/dump_opcodes.py prints")
	}
}

// pictureSize counts the items on one side of a stack picture.
func pictureSize(side string) int {
	if side = strings.TrimSpace(side); side == "" {
		return 0
	}
	return strings.Count(side, ",") + 1
}

// TestStackPictures checks that each picture shows the effect that the table states, where the effect is fixed.
func TestStackPictures(t *testing.T) {
	for number := range opcodes {
		info := &opcodes[number]
		if info.Name == "" || info.rule != nil || info.perArgument != 0 || Opcode(number) == Cache || Opcode(number) == ExtendedArg {
			continue
		}
		picture, _, _ := strings.Cut(info.Stack, ";")
		before, after, found := strings.Cut(picture, "--")
		if !found {
			if Opcode(number) != Swap && Opcode(number) != Copy {
				t.Errorf("%s has no stack picture: %q", info.Name, info.Stack)
			}
			continue
		}
		if change := pictureSize(after) - pictureSize(before); change != info.effect {
			t.Errorf("%s shows %q, which changes the depth by %d, not %d", info.Name, info.Stack, change, info.effect)
		}
	}
}

func TestOppositeJumps(t *testing.T) {
	for number := range opcodes {
		info := &opcodes[number]
		if info.opposite == Cache {
			continue
		}
		opposite := info.opposite.Info()
		if info.Jump == NoJump || opposite.Jump == NoJump || info.Jump == opposite.Jump || info.jumpEffect != opposite.jumpEffect ||
			info.EndsBlock != opposite.EndsBlock || info.effect != opposite.effect {
			t.Errorf("%s is not the opposite of %s", opposite.Name, info.Name)
		}
	}
}
