package wire

import (
	"io"
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/trace"
)

// silent is a host that answers nothing.
type silent struct{}

func (silent) Send(trace.Message) error        { return nil }
func (silent) Receive() (trace.Message, error) { return nil, io.EOF }

func list(items ...bytecode.Object) *bytecode.List { return &bytecode.List{Items: items} }

func metaOf(dtype string, sizes ...bytecode.Object) bytecode.Tuple {
	strides := make(bytecode.Tuple, len(sizes))
	next := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = next
		next *= sizes[i].(int64)
	}
	return bytecode.Tuple{dtype, "cpu", bytecode.Tuple(sizes), strides, int64(0), false, int64(0)}
}

// reader reads nodes over one float32 input of two by three elements; object 1 is torch.float64.
func reader(t *testing.T) (*Nodes, *graph.Graph) {
	t.Helper()
	session, err := trace.NewSession(silent{}, list(bytecode.Tuple{int64(1), "dtype", int64(0), "float64"}, bytecode.Tuple{int64(2), "opaque", int64(0), "x"}))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := ParseMeta(metaOf("float32", int64(2), int64(3)))
	if err != nil {
		t.Fatal(err)
	}
	g := graph.NewGraph("graph")
	return NewNodes(session, g, []graph.Value{g.AddTensor("x", meta)}, false), g
}

func node(target, schema string, args *bytecode.List, keywords *bytecode.Dict, outputs ...bytecode.Object) bytecode.Tuple {
	return bytecode.Tuple{"node", target, args, keywords, list(outputs...), bytecode.Tuple{schema, false}}
}

func none() *bytecode.Dict { return &bytecode.Dict{} }

var input = bytecode.Tuple{"i", int64(0)}

func TestMetadataComesBackAsItWas(t *testing.T) {
	for _, wired := range []bytecode.Tuple{
		metaOf("float32", int64(2), int64(3)), metaOf("bool"), {"bfloat16", "cuda:1", bytecode.Tuple{int64(4)}, bytecode.Tuple{int64(2)}, int64(5), true, int64(66)},
	} {
		meta, err := ParseMeta(wired)
		if err != nil {
			t.Fatal(err)
		}
		if place, want, got := trace.Difference(wired, WriteMeta(&meta)); place != "" {
			t.Errorf("%s: %s, then %s", place, want, got)
		}
	}
}

func TestMalformedMetadata(t *testing.T) {
	change := func(at int, value bytecode.Object) bytecode.Object {
		fields := append(bytecode.Tuple{}, metaOf("float32", int64(2))...)
		fields[at] = value
		return fields
	}
	for _, object := range []bytecode.Object{
		bytecode.None, bytecode.Tuple{}, change(0, "float9"), change(0, int64(1)), change(1, "cuda:x"), change(1, "cuda:-1"), change(2, bytecode.Tuple{int64(-2)}), change(2, bytecode.Tuple{"a"}),
		change(3, bytecode.Tuple{}), change(4, int64(-1)), change(4, "a"),
	} {
		if meta, err := ParseMeta(object); err == nil {
			t.Errorf("%v is read as %v", object, meta)
		}
	}
}

func TestNodesOfTheTable(t *testing.T) {
	r, g := reader(t)
	_, err := r.Append(list(
		node("aten.mul.Tensor", "", list(input, bytecode.Tuple{2.0}), none(), metaOf("float32", int64(2), int64(3))),
		node("aten._to_copy.default", "", list(bytecode.Tuple{"n", int64(0)}), dictOf("dtype", int64(1)), metaOf("float64", int64(2), int64(3))),
	))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Verify(); err != nil {
		t.Error(err)
	}
	if got := g.Nodes[1].Outputs[0].Meta.DType; got != graph.Float64 {
		t.Errorf("result of type %s", got)
	}
}

func dictOf(name string, value bytecode.Object) *bytecode.Dict {
	d := none()
	d.Set(name, value)
	return d
}

// TestOperatorsOutsideTheTable are known by their schemas alone: order of arguments, what they change and share.
func TestOperatorsOutsideTheTable(t *testing.T) {
	meta := metaOf("float32", int64(2), int64(3))
	for _, row := range []struct {
		schema   string
		relation graph.RelationKind
		mutates  int
	}{
		{"aten::other(Tensor self, int n=3, *, bool flag=True) -> Tensor", graph.RelationNew, 0},
		{"aten::other(Tensor(a) self, int n=3) -> Tensor(a)", graph.RelationView, 0},
		{"aten::other(Tensor(a!) self, int n=3) -> Tensor(a!)", graph.RelationSame, 1},
		{"aten::other(Tensor(a!) self, int n=3) -> Tensor", graph.RelationNew, 1},
	} {
		r, g := reader(t)
		if _, err := r.Append(list(node("aten.other.default", row.schema, list(input), none(), meta))); err != nil {
			t.Fatalf("%s: %v", row.schema, err)
		}
		made := g.Nodes[0]
		if made.Outputs[0].Relation.Kind != row.relation || len(made.Mutates) != row.mutates || made.Args[1] != int64(3) {
			t.Errorf("%s: %s, relation %d, mutates %v", row.schema, made, made.Outputs[0].Relation.Kind, made.Mutates)
		}
		if _, known := made.Operator(); !known {
			t.Errorf("%s: no operator", row.schema)
		}
	}
}

// TestOperatorsThatChangeSeveral are such as an optimizer's step over lists of tensors.
func TestOperatorsThatChangeSeveral(t *testing.T) {
	for schema, arguments := range map[string]*bytecode.List{
		"aten::other(Tensor(a!)[] self, Tensor(b!)[] steps, float lr) -> ()": list(bytecode.Tuple{"list", list(input)}, bytecode.Tuple{"list", list(input)}, bytecode.Tuple{0.5}),
		"aten::other(Tensor(a!) a, Tensor(b!) b) -> ()":                      list(input, input),
	} {
		r, g := reader(t)
		if _, err := r.Append(list(node("aten.other.default", schema, arguments, none()))); err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		if made := g.Nodes[0]; len(made.Mutates) != 2 || len(made.Outputs) != 0 {
			t.Errorf("%s: %s changes %v", schema, made, made.Mutates)
		}
	}
}

func TestWhatCannotBeLowered(t *testing.T) {
	meta := metaOf("float32", int64(2), int64(3))
	complexMeta := append(bytecode.Tuple{"float32"}, meta[1:]...)
	complexMeta[6] = int64(graph.FlagNotPlain)
	for name, item := range map[string]bytecode.Object{
		"two tensors changed and returned": node("aten.other.default", "aten::other(Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))", list(input, input), none(), meta, meta),
		"an unknown type":                  node("aten.other.default", "aten::other(Tensor a, Dimname b) -> Tensor", list(input, bytecode.Tuple{"N"}), none(), meta),
		"an object":                        node("aten.mul.Tensor", "", list(input, int64(2)), none(), meta),
		"another shape":                    node("aten.mul.Tensor", "", list(input, bytecode.Tuple{2.0}), none(), metaOf("float32", int64(6))),
		"another type":                     node("aten.mul.Tensor", "", list(input, bytecode.Tuple{2.0}), none(), metaOf("float64", int64(2), int64(3))),
		"not plain":                        node("aten.mul.Tensor", "", list(input, bytecode.Tuple{2.0}), none(), complexMeta),
		"missing argument":                 node("aten.other.default", "aten::other(Tensor a, Tensor b) -> Tensor", list(input), none(), meta),
	} {
		r, _ := reader(t)
		if _, err := r.Append(list(item)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMalformedNodes(t *testing.T) {
	meta := metaOf("float32", int64(2), int64(3))
	for name, item := range map[string]bytecode.Object{
		"no tuple":        int64(1),
		"five fields":     bytecode.Tuple{"node", "aten.mul.Tensor", list(), none(), list()},
		"a target":        bytecode.Tuple{"node", int64(1), list(), none(), list(), bytecode.None},
		"keywords":        bytecode.Tuple{"node", "aten.mul.Tensor", list(), list(), list(), bytecode.None},
		"a keyword":       node("aten.mul.Tensor", "", list(input), dictWith(int64(1), input), meta),
		"an input":        node("aten.mul.Tensor", "", list(bytecode.Tuple{"i", int64(1)}), none(), meta),
		"itself":          node("aten.mul.Tensor", "", list(bytecode.Tuple{"n", int64(0)}), none(), meta),
		"a negative node": node("aten.mul.Tensor", "", list(bytecode.Tuple{"n", int64(-1)}), none(), meta),
		"a path":          node("aten.mul.Tensor", "", list(bytecode.Tuple{"n", int64(0), int64(1), int64(2)}), none(), meta),
		"an argument":     node("aten.mul.Tensor", "", list(bytecode.Tuple{"what", int64(1)}), none(), meta),
		"no schema":       bytecode.Tuple{"node", "aten.other.default", list(input), none(), list(meta), bytecode.None},
		"another schema":  node("aten.other.default", "aten::something(Tensor a) -> Tensor", list(input), none(), meta),
		"a stub":          node("aten.mul.Tensor", "", list(input, int64(99)), none(), meta),
	} {
		r, _ := reader(t)
		if _, err := r.Append(list(item)); err == nil || errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func dictWith(key, value bytecode.Object) *bytecode.Dict {
	return &bytecode.Dict{Keys: []bytecode.Object{key}, Values: []bytecode.Object{value}}
}
