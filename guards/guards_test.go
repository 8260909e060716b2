package guards

import (
	"math"
	"strings"
	"testing"

	"fusee/bytecode"
)

var here = Position{File: "a.py", Line: 3}

func names(a Accessor) string {
	if a.Kind == "arg" {
		return "xyz"[a.Argument.(int64):][:1]
	}
	if a.Kind == "global" {
		return a.Argument.(string)
	}
	return "<" + a.Kind + ">"
}

func argument(p *Program, i int64) *Source { return p.Root(Accessor{Kind: "arg", Argument: i}) }

func wireText(t *testing.T, p *Program) string {
	t.Helper()
	text, err := bytecode.Repr(p.Wire())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTreeHasTheFormOfTheContract(t *testing.T) {
	p := NewProgram()
	x := argument(p, 0)
	x.Require(here, "type", bytecode.Tuple{"object", int64(7)})
	x.Child("attr", "weight").Require(here, "is", bytecode.None)
	if index := x.Child("item", int64(2)).Wanted(); index != 0 {
		t.Errorf("capture %d", index)
	}
	want := "((('arg', 0), (('type', ('object', 7)),), -1, (" +
		"(('attr', 'weight'), (('is', None),), -1, ()), (('item', 2), (), 0, ()))),)"
	if got := wireText(t, p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSourcesAndChecksAreKeptOnce(t *testing.T) {
	p := NewProgram()
	for range 3 {
		source := argument(p, 1).Child("key", "a")
		source.Require(here, "len", int64(2))
		source.Wanted()
	}
	if p.Captures() != 1 || len(p.Describe(names)) != 1 {
		t.Errorf("%d captures, %d checks", p.Captures(), len(p.Describe(names)))
	}
}

// TestEqualInPythonIsNotTheSame tells apart keys and operands that compare equal in Python but are others.
func TestEqualInPythonIsNotTheSame(t *testing.T) {
	alike := []bytecode.Object{int64(0), false, 0.0, math.Copysign(0, -1), "0", bytecode.Bytes("0"), complex(0, 0)}
	p := NewProgram()
	sources := map[*Source]bool{}
	for _, key := range alike {
		sources[argument(p, 0).Child("key", key)] = true
	}
	if len(sources) != len(alike) {
		t.Errorf("%d sources of %d keys", len(sources), len(alike))
	}
	if again := argument(p, 0).Child("key", math.NaN()); again != argument(p, 0).Child("key", math.NaN()) {
		t.Error("a NaN is looked for twice")
	}
}

func TestSourcesThatNothingDependsOnAreLeftOut(t *testing.T) {
	p := NewProgram()
	argument(p, 0).Child("attr", "a").Child("attr", "b")
	argument(p, 1).Child("attr", "c").Require(here, "is", true)
	want := "((('arg', 1), (), -1, ((('attr', 'c'), (('is', True),), -1, ()),)),)"
	if got := wireText(t, p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if wireText(t, NewProgram()) != "()" {
		t.Error("an empty program has roots")
	}
}

// TestNumbersOfChecksFollowTheWireForm counts the checks of the wire form depth first, as the shim numbers them.
func TestNumbersOfChecksFollowTheWireForm(t *testing.T) {
	p := NewProgram()
	y := argument(p, 1)
	deep := argument(p, 0).Child("attr", "a").Child("item", int64(0))
	deep.Require(here, "equals", int64(1))
	y.Require(here, "equals", int64(2))
	argument(p, 0).Require(here, "equals", int64(3))
	argument(p, 0).Child("attr", "b").Require(here, "equals", int64(4))
	var operands []bytecode.Object
	var walk func(sources bytecode.Tuple)
	walk = func(sources bytecode.Tuple) {
		for _, item := range sources {
			source := item.(bytecode.Tuple)
			for _, check := range source[1].(bytecode.Tuple) {
				operands = append(operands, check.(bytecode.Tuple)[1])
			}
			walk(source[3].(bytecode.Tuple))
		}
	}
	walk(p.Wire().(bytecode.Tuple))
	described := p.Describe(names)
	if len(described) != len(operands) {
		t.Fatalf("%d described, %d on the wire", len(described), len(operands))
	}
	for i, check := range described {
		if check.Number != i || !strings.HasSuffix(check.Text, "== "+ConstantText(operands[i])) || check.Reason != here {
			t.Errorf("check %d is %+v, on the wire %v", i, check, operands[i])
		}
	}
}

func TestRelationsCheckWhatIsReadLater(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		p := NewProgram()
		x, y := argument(p, 0), argument(p, 1)
		if swapped {
			p.Relate(here, "distinct", y, x)
			p.Relate(here, "distinct", y, x)
		} else {
			p.Relate(here, "distinct", x, y)
		}
		wired := p.Wire().(bytecode.Tuple)
		first, second := wired[0].(bytecode.Tuple), wired[1].(bytecode.Tuple)
		if len(first[1].(bytecode.Tuple)) != 0 || len(second[1].(bytecode.Tuple)) != 1 {
			t.Fatalf("swapped %v: %v", swapped, wired)
		}
		check := second[1].(bytecode.Tuple)[0].(bytecode.Tuple)
		if check[0] != "distinct" || check[1] != first[2] {
			t.Errorf("swapped %v: %v does not name capture %v", swapped, check, first[2])
		}
	}
}

func TestGroupsAreCheckedWhereTheLastIsRead(t *testing.T) {
	p := NewProgram()
	x, y, z := argument(p, 0), argument(p, 1), argument(p, 2)
	p.KeepApart(here, []*Source{z, x, y})
	wired := p.Wire().(bytecode.Tuple)
	checks := wired[2].(bytecode.Tuple)[1].(bytecode.Tuple)
	want := bytecode.Tuple{"apart", bytecode.Tuple{int64(x.Capture), int64(y.Capture)}}
	if len(checks) != 1 || ConstantText(checks[0]) != ConstantText(want) {
		t.Errorf("%v, not %v", checks, want)
	}
}

func TestPathsReadAsPython(t *testing.T) {
	p := NewProgram()
	x := argument(p, 0)
	for want, source := range map[string]*Source{
		"x":                       x,
		"x.weight":                x.Child("attr", "weight"),
		"x.scale":                 x.Child("field", "scale"),
		"x.__dict__['it\\'s']":    x.Child("dict", nil).Child("key", "it's"),
		"x[-1]":                   x.Child("item", int64(-1)),
		"x[(1, 'a')]":             x.Child("key", bytecode.Tuple{int64(1), "a"}),
		"x[(None,)]":              x.Child("key", bytecode.Tuple{bytecode.None}),
		"list(x.values())[3]":     x.Child("items_at", int64(3)),
		"type(x)":                 x.Child("type", nil),
		"x.mapping":               x.Child("viewed", nil),
		"progress of x":           x.Child("progress", nil),
		"x.f.cell_contents":       x.Child("attr", "f").Child("contents", nil),
		"SCALE":                   p.Root(Accessor{Kind: "global", Argument: "SCALE"}),
		"<function>.__defaults__": p.Root(Accessor{Kind: "function"}).Child("attr", "__defaults__"),
	} {
		if got := source.Path(names); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestChecksReadAsPython(t *testing.T) {
	for want, check := range map[string]Check{
		"type(x) is <object>":       {Kind: "type", Arguments: []bytecode.Object{bytecode.Tuple{"object", int64(4)}}},
		"x is ...":                  {Kind: "is", Arguments: []bytecode.Object{bytecode.Ellipsis}},
		"x == b\"a\"":               {Kind: "equals", Arguments: []bytecode.Object{bytecode.Bytes("a")}},
		"len(x) == 2":               {Kind: "len", Arguments: []bytecode.Object{int64(2)}},
		"list(x) == ['a', 1]":       {Kind: "keys", Arguments: []bytecode.Object{&bytecode.List{Items: []bytecode.Object{"a", int64(1)}}}},
		"x == {1, <object 2>}":      {Kind: "members", Arguments: []bytecode.Object{&bytecode.List{Items: []bytecode.Object{bytecode.Tuple{int64(1)}, bytecode.Tuple{"object", int64(2)}}}}},
		"'a' not in x":              {Kind: "absent", Arguments: []bytecode.Object{"a"}},
		"not hasattr(x, 'forward')": {Kind: "no_field", Arguments: []bytecode.Object{"forward"}},
	} {
		p := NewProgram()
		argument(p, 0).Require(here, check.Kind, check.Arguments...)
		if got := p.Describe(names)[0].Text; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestComparisonOfNumbers(t *testing.T) {
	p := NewProgram()
	x, y := argument(p, 0), argument(p, 1)
	x.Require(here, "range", bytecode.None, bytecode.None)
	limit := &Number{Operation: "constant", Constant: int64(5)}
	value := &Number{Operation: "value", Source: x}
	size := &Number{Operation: "size", Source: y, Dimension: 1}
	p.Compare(here, "<=", limit, value)
	p.Compare(here, "<", &Number{Operation: "+", Args: []*Number{value, &Number{Operation: "*", Args: []*Number{limit, value}}}}, size)
	p.Compare(here, "==", limit, limit)
	if p.Captures() != 2 {
		t.Errorf("%d captures, want those of the comparison of two sources", p.Captures())
	}
	want := "((('arg', 0), (('range', None, None), ('holds', '<=', 5, ('value', -1))), 0, ()), " +
		"(('arg', 1), (('holds', '<', ('+', ('value', 0), ('*', 5, ('value', 0))), ('size', -1, 1)),), 1, ()))"
	if got := wireText(t, p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var texts []string
	for _, check := range p.Describe(names) {
		texts = append(texts, check.Text)
	}
	if got := strings.Join(texts, "; "); got != "type(x) is int; x >= 5; x + (5 * x) < y.size(1)" {
		t.Errorf("got %s", got)
	}
}
