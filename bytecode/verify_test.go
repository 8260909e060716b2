package bytecode

import "testing"

func TestVerifyRejectsWhatWouldReadOutside(t *testing.T) {
	resume, result := &Instruction{Opcode: Resume}, &Instruction{Opcode: ReturnValue}
	constant := &Instruction{Opcode: LoadConst}
	for name, edited := range map[string][]*Instruction{
		"constant":   {resume, {Opcode: LoadConst, Arg: 1}, result},
		"name":       {resume, {Opcode: LoadGlobal, Arg: 2}, result},
		"local":      {resume, {Opcode: LoadFast, Arg: 7}, result},
		"operator":   {resume, constant, {Opcode: LoadConst}, {Opcode: BinaryOp, Arg: 200}, result},
		"comparison": {resume, constant, {Opcode: LoadConst}, {Opcode: CompareOp, Arg: 6}, result},
		"underflow":  {resume, {Opcode: PopTop}, constant, result},
		"copy":       {resume, constant, {Opcode: Copy, Arg: 2}, result},
		"call":       {resume, constant, {Opcode: Call, Arg: 0}, result},
		"arguments":  {resume, constant, {Opcode: LoadConst}, {Opcode: Precall}, {Opcode: Call, Arg: 9}, result},
		"end":        {resume, constant},
	} {
		listing := &Listing{Code: &Code{Consts: []Object{None}, Names: []string{"a"}}, Instructions: edited}
		if listing.Verify() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
