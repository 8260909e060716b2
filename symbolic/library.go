package symbolic

import (
	"slices"

	"fusee/bytecode"
)

// immutableObject tells classes of library objects that never change, so that reading them once is enough.
func immutableObject(class string) bool {
	switch class {
	case "re.Pattern", "re.Match", "inspect.Signature", "inspect.Parameter", "torch.finfo", "torch.iinfo":
		return true
	}
	return false
}

// pureLibraryFunction tells Python functions of the standard library whose result depends on their arguments alone; what they keep for
// themselves, such as a cache, no program can see.
func pureLibraryFunction(f *Function) bool {
	switch f.module {
	case "re":
		return slices.Contains([]string{"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "escape"}, f.qualname)
	}
	return false
}

// evaluatePython runs such a function in the host.
func (in *Interpreter) evaluatePython(f *Function, arguments Arguments) (Value, bool, error) {
	if f.object == nil {
		return nil, false, nil
	}
	wired, keywords, unknown := wireArguments(arguments, in.wire)
	if unknown != nil {
		return nil, false, nil
	}
	return modelled(in.askHost(int64(f.object.id), wired, keywords))
}

// localVariables is locals(): the names of a class body, or a new dict of the variables of a function that hold something.
func (in *Interpreter) localVariables() (Value, error) {
	f := in.frame
	if f.namespace != nil {
		return f.namespace, nil
	}
	variables := newDict()
	for k, name := range f.code.LocalsPlusNames {
		value := f.locals[k]
		if f.code.LocalsPlusKinds[k]&(bytecode.KindCell|bytecode.KindFree) != 0 && value != nil {
			cell, err := in.cellAt(f, k)
			if err != nil {
				return nil, err
			}
			value = cell.content
		}
		if value == nil || name == "" || name[0] == '.' && f.back == nil {
			continue
		}
		if err := variables.setItem(in, text(name), value); err != nil {
			return nil, err
		}
	}
	return variables, nil
}

// variablesByName is dir() or vars() without arguments: the sorted names of the variables, or what locals() gives.
func (in *Interpreter) variablesByName(function string) (Value, error) {
	variables, err := in.localVariables()
	if err != nil || function == "builtins.vars" {
		return variables, err
	}
	names, err := in.listOf(variables)
	if err != nil {
		return nil, err
	}
	sorted, _, err := in.builtinFunction("builtins.sorted", Arguments{Positional: []Value{newList(names)}})
	return sorted, err
}

// signatureOf is inspect.signature of an existing function, which the host finds out. What it tells goes with the function's identity.
func (in *Interpreter) signatureOf(f *Function) (Value, bool, error) {
	if f.object == nil || f.object.id == 0 || f.treat != "inline" {
		return nil, false, nil
	}
	in.pin(f.object)
	return modelled(in.askHost(nameWire("inspect.signature"), []bytecode.Object{int64(f.object.id)}, nil))
}

// proxied reads a mapping proxy of an object that never changes: it shows the same items for good.
func (in *Interpreter) proxied(value Value) (Value, error) {
	opaque, ok := value.(*Opaque)
	if !ok {
		return value, nil
	}
	class, err := in.classOfOpaque(opaque)
	if err != nil || class.name != "mappingproxy" {
		return value, err
	}
	outcome, err := in.session.Evaluate(nameWire("builtins.dict"), []bytecode.Object{int64(opaque.object.id)}, nil)
	if err != nil {
		return nil, err
	}
	copied, err := in.outcomeValue(outcome)
	if err != nil {
		return nil, err
	}
	dict, ok := copied.(*Dict)
	if !ok {
		return value, nil
	}
	return &mappingProxy{dict, in.frame.step}, nil
}
