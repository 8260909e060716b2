package symbolic

import (
	"slices"

	"fusee/bytecode"
)

// immutableObject tells classes of library objects that never change, so that reading them once is enough.
func immutableObject(class string) bool {
	switch class {
	case "re.Pattern", "re.Match":
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
	wired, keywords, ok := in.wireArguments(arguments)
	if !ok {
		return nil, false, nil
	}
	outcome, err := in.session.Evaluate(int64(f.object.id), wired, keywords)
	if err != nil {
		return nil, true, err
	}
	value, err := in.outcomeValue(outcome)
	return value, true, err
}

// wireArguments writes the arguments of a call as references; ok is false when one depends on what the capture made.
func (in *Interpreter) wireArguments(arguments Arguments) (positional, keywords []bytecode.Object, ok bool) {
	positional = make([]bytecode.Object, len(arguments.Positional))
	for i, argument := range arguments.Positional {
		wire, ok := in.wire(argument)
		if !ok {
			return nil, nil, false
		}
		positional[i] = wire
	}
	for _, keyword := range arguments.Keywords {
		wire, ok := in.wire(keyword.Value)
		if !ok {
			return nil, nil, false
		}
		keywords = append(keywords, bytecode.Tuple{keyword.Name, wire})
	}
	return positional, keywords, true
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
