package symbolic

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"fusee/bytecode"
)

// handledOpcodes reads the names of the cases of the one switch over opcodes.
func handledOpcodes(t *testing.T) map[string]int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "instructions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]int{}
	ast.Inspect(file, func(node ast.Node) bool {
		clause, ok := node.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, expression := range clause.List {
			if selector, ok := expression.(*ast.SelectorExpr); ok {
				cases[strings.ToUpper(selector.Sel.Name)]++
			}
		}
		return true
	})
	return cases
}

func TestEveryOpcodeIsHandledOnce(t *testing.T) {
	cases := handledOpcodes(t)
	for op := 0; op < 256; op++ {
		opcode := bytecode.Opcode(op)
		if !opcode.Defined() {
			continue
		}
		if count := cases[strings.ReplaceAll(opcode.String(), "_", "")]; count != 1 {
			t.Errorf("%s stands in %d cases of execute", opcode, count)
		}
	}
}

func TestPopCountsFitStackEffects(t *testing.T) {
	for op := 0; op < 256; op++ {
		opcode := bytecode.Opcode(op)
		if !opcode.Defined() || endsFlow(opcode) || opcode == bytecode.Call || opcode == bytecode.Precall {
			continue
		}
		for _, arg := range []int{0, 1, 2, 3} {
			for _, jump := range []bool{false, true} {
				effect, err := bytecode.StackEffect(opcode, arg, jump)
				if err != nil || opcode == bytecode.BuildSlice && arg < 2 {
					continue
				}
				if pushes := effect + popCount(opcode, arg, jump); pushes < 0 {
					t.Errorf("%s %d pops %d, but its effect on the stack is %d", opcode, arg, popCount(opcode, arg, jump), effect)
				}
			}
		}
	}
}
