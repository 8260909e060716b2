package graph

import "testing"

// TestForeach calls operators for one tensor in the place of functions over lists.
func TestForeach(t *testing.T) {
	g := NewGraph("lists")
	shapes := g.Shapes
	tensor := func(name string, sizes ...int64) Value {
		return g.AddTensor(name, Meta{DType: Float32, Device: Device{Type: "cpu"}, Sizes: Statics(sizes...), Strides: shapes.contiguousStrides(Statics(sizes...)), Flags: FlagLeaf})
	}
	first, second := List{Items: []Value{tensor("a", 2), tensor("b", 3)}}, List{Items: []Value{tensor("c", 2), tensor("d", 3)}}
	cases := []struct {
		target  string
		args    []Value
		want    string
		mutates int
	}{
		{"torch._foreach_add_", []Value{first, second}, "aten.add_.Tensor", 2},
		{"torch._foreach_mul", []Value{first, 2.0}, "aten.mul.Tensor", 0},
		{"torch._foreach_maximum_", []Value{first, int64(0)}, "aten.clamp_min_.default", 2},
		{"torch._foreach_addcdiv_", []Value{first, second, second, 0.5}, "aten.addcdiv_.default", 2},
		{"torch._foreach_norm", []Value{first, int64(2)}, "aten.linalg_vector_norm.default", 0},
	}
	for _, c := range cases {
		node, err := g.Call(c.target, c.args, nil, State{})
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		list, _ := node.Result.(List)
		if len(node.Expansion) != 2 || node.Expansion[1].Target != c.want || len(node.Mutates) != c.mutates || len(list.Items) != 2 || list.Tuple != (c.mutates == 0) {
			t.Errorf("%s became %v", c.target, node.Expansion)
		}
	}
	if _, err := g.Call("torch._foreach_add_", []Value{first, List{Items: []Value{tensor("e", 2)}}}, nil, State{}); err == nil {
		t.Error("lists of other lengths were taken")
	}
}
