package graph

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
)

// ParameterKind is the type of a schema parameter.
type ParameterKind uint8

// Kinds of parameters.
const (
	KindTensor ParameterKind = iota
	KindScalar
	KindInt
	KindFloat
	KindBool
	KindString
	KindDType
	KindLayout
	KindDevice
	KindMemoryFormat
	KindGenerator
)

// parameterKind reads a type name of the schema notation.
func parameterKind(name string) (ParameterKind, bool) {
	kind, ok := map[string]ParameterKind{
		"Tensor": KindTensor, "Scalar": KindScalar, "int": KindInt, "SymInt": KindInt, "float": KindFloat, "bool": KindBool,
		"str": KindString, "ScalarType": KindDType, "Layout": KindLayout, "Device": KindDevice,
		"MemoryFormat": KindMemoryFormat, "Generator": KindGenerator,
	}[name]
	return kind, ok
}

// Parameter is one parameter of an operator. List parameters with Length > 0 also take a single element, repeated Length
// times. OptionalItems marks lists whose elements may be None.
type Parameter struct {
	Name          string
	Kind          ParameterKind
	List          bool
	Length        int
	Optional      bool
	OptionalItems bool
	KeywordOnly   bool
	HasDefault    bool
	Default       Value
	Mutated       bool // annotated (a!)
	Aliased       bool // annotated (a)
}

// Schema is the signature of an aten operator: Name is "add", Overload "Tensor" or "default".
type Schema struct {
	Name, Overload string
	Parameters     []Parameter
	Returns        string
}

// Operators of our own, which draw random numbers: rows whose names begin with ownName stand for functions of a module of python/fusee.
const (
	ownName   = "_fusee_"
	ownModule = "fusee._random."
)

// Target is the operator's full name, "aten.add.Tensor".
func (s *Schema) Target() string {
	if name, own := strings.CutPrefix(s.Name, ownName); own {
		return ownModule + name
	}
	return "aten." + s.Name + "." + s.Overload
}

// isOperator tells targets that rows of the operator table have, or could have.
func isOperator(target string) bool {
	return strings.HasPrefix(target, "aten.") || strings.HasPrefix(target, ownModule)
}

// Position finds a parameter by name; −1 when absent.
func (s *Schema) Position(name string) int {
	for i := range s.Parameters {
		if s.Parameters[i].Name == name {
			return i
		}
	}
	return -1
}

// ParseSchema reads PyTorch's schema notation, "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
func ParseSchema(text string) (*Schema, error) {
	head, returns, ok := strings.Cut(text, ") -> ")
	name, parameters, opened := strings.Cut(head, "(")
	if !ok || !opened {
		return nil, errors.Newf("schema %q lacks parentheses or a result", text)
	}
	schema := &Schema{Name: name, Overload: "default", Returns: returns}
	if base, overload, found := strings.Cut(name, "."); found {
		schema.Name, schema.Overload = base, overload
	}
	keywordOnly := false
	for _, part := range splitTopLevel(parameters) {
		if part == "*" {
			keywordOnly = true
			continue
		}
		parameter, err := parseParameter(part)
		if err != nil {
			return nil, errors.Wrapf(err, "schema %q", text)
		}
		parameter.KeywordOnly = keywordOnly
		schema.Parameters = append(schema.Parameters, parameter)
	}
	return schema, nil
}

// splitTopLevel splits at commas outside brackets.
func splitTopLevel(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, r := range text {
		switch r {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(text[start:i]))
				start = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}

func parseParameter(text string) (Parameter, error) {
	var p Parameter
	declaration, defaultText, hasDefault := strings.Cut(text, "=")
	space := strings.LastIndexByte(declaration, ' ')
	if space < 0 {
		return p, errors.Newf("parameter %q has no name", text)
	}
	p.Name = declaration[space+1:]
	if err := p.parseType(declaration[:space]); err != nil {
		return p, err
	}
	if hasDefault {
		p.HasDefault = true
		p.Default = p.parseDefault(defaultText)
	}
	return p, nil
}

func (p *Parameter) parseType(text string) error {
	if open := strings.IndexByte(text, '('); open >= 0 {
		end := strings.IndexByte(text, ')')
		annotation := text[open : end+1]
		p.Mutated = strings.Contains(annotation, "!")
		p.Aliased = !p.Mutated
		text = text[:open] + text[end+1:]
	}
	text, p.Optional = strings.CutSuffix(text, "?")
	if open := strings.IndexByte(text, '['); open >= 0 {
		p.List = true
		p.Length, _ = strconv.Atoi(strings.TrimSuffix(text[open+1:], "]"))
		text, p.OptionalItems = strings.CutSuffix(text[:open], "?")
	}
	kind, ok := parameterKind(text)
	if !ok {
		return errors.Newf("unknown type %q", text)
	}
	p.Kind = kind
	return nil
}

// parseDefault reads None, True, False, numbers, "text", [lists], and the enumerations' numbers.
func (p *Parameter) parseDefault(text string) Value {
	switch {
	case text == "None":
		return nil
	case text == "True" || text == "False":
		return text == "True"
	case strings.HasPrefix(text, "["):
		return p.parseListDefault(strings.Trim(text, "[]"))
	case strings.HasPrefix(text, `"`):
		return strings.Trim(text, `"`)
	case p.Kind == KindMemoryFormat:
		return ContiguousFormat
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return p.numberDefault(n)
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

func (p *Parameter) numberDefault(n int64) Value {
	if p.List {
		items := make([]Value, max(p.Length, 1))
		for i := range items {
			items[i] = n
		}
		return List{Items: items}
	}
	switch p.Kind {
	case KindFloat:
		return float64(n)
	case KindDType:
		d, _ := DTypeOfScalarType(int(n))
		return d
	}
	return n
}

func (p *Parameter) parseListDefault(text string) Value {
	items := []Value{}
	for _, part := range splitTopLevel(text) {
		n, _ := strconv.ParseInt(part, 10, 64)
		items = append(items, n)
	}
	return List{Items: items}
}
