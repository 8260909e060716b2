package graph

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"fusee/internal/slice"
)

// This file binds Python arguments to operator schemas as torch's argument parser does (torch/csrc/utils/python_arg_parser.cpp).

// numbersAsTensors says whether the Tensor parameters of an operator also take Python numbers.
func numbersAsTensors(name string) bool {
	switch strings.TrimSuffix(name, "_") {
	case "add", "sub", "mul", "div", "floor_divide", "true_divide", "copy":
		return true
	}
	return false
}

// keywordAlias maps numpy's names, which torch accepts too, to torch's.
func keywordAlias(name string) string {
	aliases := map[string]string{"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "a": "input", "x2": "other"}
	return cmp.Or(aliases[name], name)
}

// convert fits a value to the parameter; numbers says whether a Python number may stand for a tensor.
func (p *Parameter) convert(v Value, numbers bool) (Value, bool) {
	if v == nil {
		return nil, p.Optional
	}
	if p.List {
		return p.convertList(v, numbers)
	}
	return p.convertItem(v, numbers)
}

func (p *Parameter) convertList(v Value, numbers bool) (Value, bool) {
	list, ok := v.(List)
	if !ok {
		if p.Length == 0 {
			return nil, false
		}
		item, ok := p.convertItem(v, numbers)
		return List{Items: slices.Repeat([]Value{item}, p.Length)}, ok
	}
	items := make([]Value, len(list.Items))
	for i, item := range list.Items {
		if item == nil && p.OptionalItems {
			continue
		}
		if items[i], ok = p.convertItem(item, numbers); !ok {
			return nil, false
		}
	}
	return List{Items: items}, true
}

func (p *Parameter) convertItem(v Value, numbers bool) (Value, bool) {
	switch p.Kind {
	case KindTensor:
		if _, ok := MetaOf(v); ok {
			return v, true
		}
		return v, numbers && isScalar(v)
	case KindScalar:
		return v, isScalar(v)
	case KindInt:
		_, ok := SizeOf(v)
		return v, ok
	case KindFloat:
		return convertFloat(v)
	case KindDevice:
		return convertDevice(v)
	}
	return v, p.Kind == kindOf(v)
}

func isScalar(v Value) bool {
	_, ok := numberType(v)
	return ok
}

func convertFloat(v Value) (Value, bool) {
	if f, ok := floatOf(v); ok {
		return f, true
	}
	input, ok := v.(*Input)
	return v, ok && input.Kind == Float
}

// convertDevice also takes names; "cuda" without an index means the current device, which is not known here.
func convertDevice(v Value) (Value, bool) {
	switch v := v.(type) {
	case Device:
		return v, v.Type != "" && v.Index >= 0
	case string:
		kind, index, _ := strings.Cut(v, ":")
		n, err := strconv.Atoi(index)
		if kind == "cpu" && index == "" {
			return Device{Type: "cpu"}, true
		}
		return Device{Type: kind, Index: n}, err == nil
	}
	return nil, false
}

// kindOf is the parameter kind that takes values of v's type as they are; KindGenerator stands for none.
func kindOf(v Value) ParameterKind {
	switch v.(type) {
	case bool:
		return KindBool
	case string:
		return KindString
	case DType:
		return KindDType
	case Layout:
		return KindLayout
	case MemoryFormat:
		return KindMemoryFormat
	}
	return KindGenerator
}

// bindPython fits Python arguments to one overload. Methods get self first; functions call it "input".
func (op *Op) bindPython(args []Value, keywords []Keyword, method bool) ([]Value, bool) {
	parameters := op.Schema.Parameters
	values := make([]Value, len(parameters))
	given := make([]bool, len(parameters))
	args = op.gatherVarargs(args, method)
	for i, v := range args {
		if i >= len(parameters) || parameters[i].KeywordOnly {
			return nil, false
		}
		values[i], given[i] = v, true
	}
	for _, k := range keywords {
		i := op.pythonPosition(k.Name, method)
		switch {
		case i < 0 && k.ignorable():
		case i < 0 || given[i]:
			return nil, false
		default:
			values[i], given[i] = k.Value, true
		}
	}
	return values, op.convertPython(values, given)
}

// ignorable says whether the keyword exists in Python only and its value asks for nothing.
func (k Keyword) ignorable() bool {
	switch k.Name {
	case "out":
		return k.Value == nil
	case "requires_grad":
		return k.Value == false
	}
	return false
}

func (op *Op) convertPython(values []Value, given []bool) bool {
	numbers := numbersAsTensors(op.Schema.Name)
	for i := range op.Schema.Parameters {
		p := &op.Schema.Parameters[i]
		if op.mayBeUndefined(p, values[i], given[i]) {
			continue
		}
		if !given[i] {
			if !p.HasDefault {
				return false
			}
			values[i] = p.Default
			continue
		}
		converted, ok := p.convert(values[i], numbers)
		if !ok {
			return false
		}
		values[i] = converted
	}
	return true
}

// pythonPosition finds the parameter behind a keyword.
func (op *Op) pythonPosition(name string, method bool) int {
	if i := op.exactPosition(name, method); i >= 0 {
		return i
	}
	return op.exactPosition(keywordAlias(name), method)
}

func (op *Op) exactPosition(name string, method bool) int {
	if name == "self" {
		return -1
	}
	if name == "input" && !method && op.Schema.Position("input") < 0 {
		name = "self"
	}
	return op.Schema.Position(name)
}

// gatherVarargs turns f(2, 3) into f([2, 3]) for operators whose only positional parameter, besides a method's self, is a list
// of integers.
func (op *Op) gatherVarargs(args []Value, method bool) []Value {
	first := 0
	if method {
		first = 1
	}
	positional := slice.Filter(op.Schema.Parameters, func(p Parameter) bool { return !p.KeywordOnly })
	if len(positional) != first+1 || len(args) <= first {
		return args
	}
	p := op.Schema.Parameters[first]
	if _, isList := args[first].(List); isList || !p.List || p.Kind != KindInt || p.Length == 1 && len(args) == first+1 {
		return args
	}
	gathered := List{Items: slices.Clone(args[first:])}
	return append(slices.Clone(args[:first]), gathered)
}
