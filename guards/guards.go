// Package guards holds what a capture assumed: a tree of sources (where a value was read from), the checks made on each, and the
// values the rewritten code wants handed over. The tree becomes the guard program that the shim runs before each call.
//
// The wire form is described in docs/contracts.md, section 6.
package guards

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fusee/bytecode"
	"fusee/internal/slice"
)

// Accessor tells how a source's value is reached from its parent's.
type Accessor struct {
	Kind     string          // as in the contract: arg, global, cell, object, attr, field, dict, key, item, items_at, type, contents, function
	Argument bytecode.Object // index, name, constant key or object id; nil where the kind takes none
}

// Position is the user's line that made the capture depend on something.
type Position struct {
	File string
	Line int
}

// Check is one condition on a source's value.
type Check struct {
	Kind      string
	Arguments []bytecode.Object
	Reason    Position

	comparison *comparison // of a check "holds"
}

// Source is a node of the tree: a place that a value can be read from again at the next call.
type Source struct {
	Parent   *Source
	Accessor Accessor
	Checks   []Check
	// Capture is the index among the captured values, -1 when the value is not wanted.
	Capture  int
	children []*Source
	program  *Program
	found    *Position // the capture depends on the source being there, whatever its value
}

// Program is the tree under construction.
type Program struct {
	roots       []*Source
	index       map[place]*Source // every source, so that a container of many items is not searched for each of them
	captures    []*Source
	relations   []relation
	groups      []group
	comparisons []*comparison
}

// relation is a check between two sources' values: "same" or "distinct" objects, or "member" or "no_member" of a set.
type relation struct {
	kind          string
	first, second *Source
	reason        Position
}

// group are sources that have to give different objects, any two of them.
type group struct {
	members []*Source
	reason  Position
}

// place is where a source hangs in the tree: no two sources have the same.
type place struct {
	parent   *Source
	kind     string
	argument any
}

// NewProgram returns an empty guard program.
func NewProgram() *Program { return &Program{index: map[place]*Source{}} }

// Root returns the source without a parent for an accessor; the same source for the same accessor.
func (p *Program) Root(accessor Accessor) *Source {
	return findOrAdd(&p.roots, nil, accessor, p)
}

// Child returns the source reached from s; the same source for the same accessor.
func (s *Source) Child(kind string, argument bytecode.Object) *Source {
	return findOrAdd(&s.children, s, Accessor{kind, argument}, s.program)
}

func findOrAdd(list *[]*Source, parent *Source, accessor Accessor, program *Program) *Source {
	at := place{parent, accessor.Kind, identity(accessor.Argument)}
	if known := program.index[at]; known != nil {
		return known
	}
	source := &Source{Parent: parent, Accessor: accessor, Capture: -1, program: program}
	*list = append(*list, source)
	program.index[at] = source
	return source
}

// Key names the source by its path, for comparison with paths of another compilation.
func (s *Source) Key() string {
	if s.Parent == nil {
		return s.Accessor.key()
	}
	return s.Parent.Key() + " " + s.Accessor.key()
}

// PathKey is the key of the source with these accessors, the root's first.
func PathKey(path []Accessor) string {
	keys := make([]string, len(path))
	for i, accessor := range path {
		keys[i] = accessor.key()
	}
	return strings.Join(keys, " ")
}

func (a Accessor) key() string { return fmt.Sprintf("%s(%T %#v)", a.Kind, a.Argument, a.Argument) }

// IsArgument tells parameters and what is found in containers that are parameters.
func (s *Source) IsArgument() bool {
	for s.Parent != nil {
		if s.Accessor.Kind != "item" && s.Accessor.Kind != "key" && s.Accessor.Kind != "items_at" {
			return false
		}
		s = s.Parent
	}
	return s.Accessor.Kind == "arg"
}

// printed is the text of a constant that Go does not compare as Python's type and bits would have it: a container, or a float, of which -0.0
// is not 0.0.
type printed string

// identity is equal for accessor arguments and check operands that are the same constant.
func identity(constant bytecode.Object) any {
	switch constant.(type) {
	case int64, string, bool:
		return constant
	}
	return printed(fmt.Sprintf("%T%#v", constant, constant))
}

func sameConstant(a, b bytecode.Object) bool { return identity(a) == identity(b) }

func sameConstants(a, b []bytecode.Object) bool { return slices.EqualFunc(a, b, sameConstant) }

// Require adds a check, once.
func (s *Source) Require(reason Position, kind string, arguments ...bytecode.Object) {
	for _, known := range s.Checks {
		if known.Kind == kind && sameConstants(known.Arguments, arguments) {
			return
		}
	}
	s.Checks = append(s.Checks, Check{Kind: kind, Arguments: arguments, Reason: reason})
}

// Found requires that the source can be read at all, which any other check of it or of what hangs below it implies.
func (s *Source) Found(reason Position) {
	if s.found == nil {
		s.found = &reason
	}
}

// Relate requires that two sources keep giving the same object ("same") or different ones ("distinct"), or that one of them gives a set which
// holds what the other gives ("member") or lacks it ("no_member").
func (p *Program) Relate(reason Position, kind string, first, second *Source) {
	if slices.ContainsFunc(p.relations, func(known relation) bool { return known.kind == kind && known.first == first && known.second == second }) {
		return
	}
	first.Wanted()
	second.Wanted()
	p.relations = append(p.relations, relation{kind, first, second, reason})
}

// KeepApart requires that sources keep giving different objects, any two of them.
func (p *Program) KeepApart(reason Position, members []*Source) {
	for _, member := range members {
		member.Wanted()
	}
	p.groups = append(p.groups, group{members, reason})
}

// settle turns what was required of several sources, or of their being there, into checks.
func (p *Program) settle() {
	p.settleRelations()
	settleFound(p.roots)
}

func settleFound(sources []*Source) {
	for _, source := range sources {
		settleFound(source.children)
		if source.found != nil && !source.needed() {
			source.Require(*source.found, "found")
		}
	}
}

// settleRelations puts each relation and comparison on whichever source the shim reads last.
func (p *Program) settleRelations() {
	if len(p.relations) == 0 && len(p.comparisons) == 0 && len(p.groups) == 0 {
		return
	}
	order := map[*Source]int{}
	var walk func(sources []*Source)
	walk = func(sources []*Source) {
		for _, source := range sources {
			order[source] = len(order)
			walk(source.children)
		}
	}
	walk(p.roots)
	for _, r := range p.relations {
		early, late := r.first, r.second
		if order[late] < order[early] {
			early, late = late, early
		}
		late.Require(r.reason, r.kind, int64(early.Capture))
	}
	for _, c := range p.comparisons {
		c.settle(order)
	}
	for _, g := range p.groups {
		g.settle(order)
	}
	p.relations, p.comparisons, p.groups = nil, nil, nil
}

// settle puts the check on the source that the shim reads last.
func (g group) settle(order map[*Source]int) {
	late := slices.MaxFunc(g.members, func(a, b *Source) int { return order[a] - order[b] })
	others := bytecode.Tuple{}
	for _, member := range g.members {
		if member != late {
			others = append(others, int64(member.Capture))
		}
	}
	late.Require(g.reason, "apart", others)
}

// Wanted marks the source's value to be handed over and returns its index among the captured values.
func (s *Source) Wanted() int {
	if s.Capture < 0 {
		s.Capture = len(s.program.captures)
		s.program.captures = append(s.program.captures, s)
	}
	return s.Capture
}

// Captures counts the values the program hands over.
func (p *Program) Captures() int { return len(p.captures) }

// Wire returns the tree in the form of the contract. Sources that nothing depends on are left out.
func (p *Program) Wire() bytecode.Object {
	p.settle()
	return wireAll(p.roots)
}

func wireAll(sources []*Source) bytecode.Tuple {
	return slice.Map(slice.Filter(sources, (*Source).needed), (*Source).wire)
}

func (s *Source) needed() bool {
	return len(s.Checks) > 0 || s.Capture >= 0 || slices.ContainsFunc(s.children, (*Source).needed)
}

func (s *Source) wire() bytecode.Object {
	accessor := bytecode.Tuple{s.Accessor.Kind}
	if s.Accessor.Argument != nil {
		accessor = append(accessor, s.Accessor.Argument)
	}
	checks := slice.Map(s.Checks, func(check Check) bytecode.Object { return append(bytecode.Tuple{check.Kind}, check.Arguments...) })
	return bytecode.Tuple{accessor, bytecode.Tuple(checks), int64(s.Capture), wireAll(s.children)}
}

// Described is one check for people: its number in the program, the source in Python's words, and the line that caused it.
type Described struct {
	Number int
	Text   string
	Reason Position
}

// Describe lists the checks in the order in which the program numbers them. name gives the words for roots, and for live objects as
// accessors of kind "object".
func (p *Program) Describe(name func(Accessor) string) []Described {
	p.settle()
	var list []Described
	var walk func(sources []*Source, above string)
	walk = func(sources []*Source, above string) {
		for _, source := range sources {
			if !source.needed() {
				continue
			}
			path := source.pathBelow(above, name)
			for _, check := range source.Checks {
				text := checkText(path, check, name)
				if check.comparison != nil {
					text = check.comparison.text(name)
				}
				list = append(list, Described{len(list), text, check.Reason})
			}
			walk(source.children, path)
		}
	}
	walk(p.roots, "")
	return list
}

// Path writes the source as a Python expression; name gives the words for roots.
func (s *Source) Path(name func(Accessor) string) string {
	if s.Parent == nil {
		return name(s.Accessor)
	}
	return s.pathBelow(s.Parent.Path(name), name)
}

// pathBelow is Path where the parent's is known; a root has none.
func (s *Source) pathBelow(parent string, name func(Accessor) string) string {
	if s.Parent == nil {
		return name(s.Accessor)
	}
	switch s.Accessor.Kind {
	case "attr", "field":
		return parent + "." + nameText(s.Accessor.Argument)
	case "dict":
		return parent + ".__dict__"
	case "key", "item":
		return parent + "[" + ConstantText(s.Accessor.Argument) + "]"
	case "items_at":
		return fmt.Sprintf("list(%s.values())[%v]", parent, s.Accessor.Argument)
	case "type":
		return "type(" + parent + ")"
	case "contents":
		return parent + ".cell_contents"
	case "viewed":
		return parent + ".mapping"
	case "progress":
		return "progress of " + parent
	case "subclasses":
		return parent + ".__subclasses__()"
	}
	return parent + "." + s.Accessor.Kind
}

// nameText writes an attribute's name.
func nameText(argument bytecode.Object) string {
	if name, isName := argument.(string); isName {
		return name
	}
	return fmt.Sprint(argument)
}

func checkText(path string, check Check, name func(Accessor) string) string {
	operands := joinTexts(check.Arguments, name)
	switch check.Kind {
	case "type":
		return "type(" + path + ") is " + operands
	case "is":
		return path + " is " + operands
	case "equals":
		return path + " == " + operands
	case "len":
		return fmt.Sprintf("len(%s) == %s", path, operands)
	case "keys":
		return "list(" + path + ") == " + operands
	case "members":
		return fmt.Sprintf("%s == {%s}", path, membersText(check.Arguments[0]))
	case "contains":
		return fmt.Sprintf("%s in %s", memberText(check.Arguments[0]), path)
	case "lacks":
		return fmt.Sprintf("%s not in %s", memberText(check.Arguments[0]), path)
	case "absent":
		return operands + " not in " + path
	case "no_field", "no_attr":
		return "not hasattr(" + path + ", " + operands + ")"
	case "range":
		return rangeText(path, check.Arguments)
	case "float":
		return fmt.Sprintf("type(%s) is float", path)
	case "found":
		return path + " is there"
	case "tensor", "resolved":
		return path + " is a tensor like " + operands
	case "gives":
		return fmt.Sprintf("%s(%s) == %s", check.Arguments[0], path, ConstantText(check.Arguments[1]))
	case "flattened":
		return fmt.Sprintf("%s wraps what it did: %s", path, operands)
	}
	return fmt.Sprintf("%s(%s, %s)", check.Kind, path, operands)
}

// membersText lists the members of a set: constants stand in tuples of their own.
func membersText(object bytecode.Object) string {
	list, _ := object.(*bytecode.List)
	return strings.Join(slice.Map(list.Items, memberText), ", ")
}

func memberText(item bytecode.Object) string {
	if single, ok := item.(bytecode.Tuple); ok && len(single) == 1 {
		item = single[0]
	}
	return ConstantText(item)
}

// ConstantText writes a constant of the wire form as Python would; live objects by their number.
func ConstantText(object bytecode.Object) string {
	return constantText(object, func(a Accessor) string { return fmt.Sprintf("<object %v>", a.Argument) })
}

func constantText(object bytecode.Object, name func(Accessor) string) string {
	switch value := object.(type) {
	case bytecode.NoneType:
		return "None"
	case bool:
		if value {
			return "True"
		}
		return "False"
	case string:
		return "'" + strings.ReplaceAll(strings.ReplaceAll(value, `\`, `\\`), "'", `\'`) + "'"
	case bytecode.Bytes:
		return fmt.Sprintf("b%q", string(value))
	case bytecode.Tuple:
		return tupleText(value, name)
	case *bytecode.List:
		return "[" + joinTexts(value.Items, name) + "]"
	case bytecode.EllipsisType:
		return "..."
	case int64:
		return strconv.FormatInt(value, 10)
	}
	return fmt.Sprint(object)
}

func tupleText(value bytecode.Tuple, name func(Accessor) string) string {
	if len(value) == 2 && value[0] == "object" {
		return name(Accessor{Kind: "object", Argument: value[1]})
	}
	if len(value) == 1 {
		return "(" + constantText(value[0], name) + ",)"
	}
	return "(" + joinTexts(value, name) + ")"
}

func joinTexts(items []bytecode.Object, name func(Accessor) string) string {
	if len(items) == 1 {
		return constantText(items[0], name)
	}
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = constantText(item, name)
	}
	return strings.Join(words, ", ")
}
