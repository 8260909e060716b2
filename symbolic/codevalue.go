package symbolic

import "fusee/bytecode"

// codeValue is a code object: one on its way to MAKE_FUNCTION, or that of a function.
type codeValue struct {
	code   *bytecode.Code
	object *existing
}

func (v *codeValue) typeName() string { return "code" }

// getAttribute reads an attribute of a code object.
func (v *codeValue) getAttribute(_ *Interpreter, name string) (Value, error) {
	code := v.code
	texts := map[string]string{"co_name": code.Name, "co_qualname": code.QualName, "co_filename": code.FileName}
	if value, ok := texts[name]; ok {
		return text(value), nil
	}
	numbers := map[string]int{"co_argcount": code.ArgCount, "co_posonlyargcount": code.PosOnlyArgCount, "co_kwonlyargcount": code.KwOnlyArgCount,
		"co_firstlineno": code.FirstLine, "co_flags": int(code.Flags), "co_nlocals": code.NLocals()}
	if value, ok := numbers[name]; ok {
		return integer(int64(value)), nil
	}
	kinds := map[string]byte{"co_varnames": bytecode.KindLocal, "co_cellvars": bytecode.KindCell, "co_freevars": bytecode.KindFree}
	if kind, ok := kinds[name]; ok {
		names := &Tuple{}
		for k, variable := range code.LocalsPlusNames {
			if code.LocalsPlusKinds[k]&kind != 0 {
				names.items = append(names.items, text(variable))
			}
		}
		return names, nil
	}
	return nil, unsupported(reasonAttribute, "code.%s", name)
}
