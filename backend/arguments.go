package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
)

// call appends a step that calls an aten operator with arguments in the order of its schema.
func (p *plan) call(op *operation) error {
	node := op.node
	c := &caller{plan: p}
	arguments, err := c.arguments(node)
	if err != nil {
		return err
	}
	name, overload, err := splitTarget(node.Target)
	if err != nil {
		return err
	}
	results := &bytecode.List{}
	for _, output := range op.outputs {
		slot := -1 // not computed, not read, or an argument, whose own slot serves
		if output != nil && (output.output || output.overwritten != nil || len(output.uses) > 0) {
			slot = p.newSlot(output)
			c.slots = append(c.slots, slot)
		}
		results.Items = append(results.Items, int64(slot))
	}
	p.add(fmt.Sprintf("%s → slots %v", node, results.Items), c.slots, "aten", name, overload, arguments, results)
	for _, output := range op.outputs {
		if err := p.layOut(op, output); err != nil {
			return err
		}
	}
	return nil
}

// choosesKernel is the operator for which torch decides call by call between kernels that lay out their results differently.
const choosesKernel = "aten.scaled_dot_product_attention.default"

// layOut has the shim compare the strides of a new result with those that its row of the table claims, which were tested against eager on the CPU
// only.
func (p *plan) layOut(op *operation, output *tensor) error {
	slot, made := p.slotOf[output]
	tested := output == nil || output.meta.Device.Type == "cpu" && op.node.Target != choosesKernel
	if tested || !made || output.meta.Dim() < 2 || len(op.node.Mutates) > 0 || op.isView() {
		return nil
	}
	strides, err := p.sizes(output.meta.Strides)
	if err != nil {
		return err
	}
	p.add(fmt.Sprintf("slot %d lies as %v", slot, output.meta.Strides), []int{slot}, "layout", int64(slot), strides)
	return nil
}

// isView says whether the operator gives another view of its argument, whose layout the table computes as torch does.
func (op *operation) isView() bool {
	return slices.ContainsFunc(op.node.Outputs, func(o graph.OutputInfo) bool { return o.Relation.Kind != graph.RelationNew })
}

// splitTarget takes "aten.add.Tensor" apart into "add" and "Tensor"; names of other libraries keep their namespace, as in "torchvision::nms".
func splitTarget(target string) (name, overload string, err error) {
	parts := strings.Split(target, ".")
	if len(parts) != 3 {
		return "", "", errors.Newf("%s is no operator of torch", target)
	}
	if parts[0] == "aten" {
		return parts[1], parts[2], nil
	}
	return parts[0] + "::" + parts[1], parts[2], nil
}

// caller collects the slots a call reads.
type caller struct {
	plan  *plan
	slots []int
}

// arguments tags the values of a node. With a schema at hand the parameter's kind decides, otherwise the value's.
func (c *caller) arguments(node *graph.Node) (*bytecode.List, error) {
	list := &bytecode.List{}
	op, known := node.Operator()
	if !known {
		if len(node.Keywords) > 0 {
			return nil, errors.Newf("the order of %s's keyword arguments is unknown", node.Target)
		}
		for _, value := range node.Args {
			tagged, err := c.untyped(value)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, tagged)
		}
		return list, nil
	}
	values, err := op.Bind(node.Args, node.Keywords)
	if err != nil {
		return nil, err
	}
	for index := range values {
		tagged, err := c.typed(values[index], &op.Schema.Parameters[index])
		if err != nil {
			return nil, errors.Wrapf(err, "argument %s", op.Schema.Parameters[index].Name)
		}
		list.Items = append(list.Items, tagged)
	}
	return list, nil
}

// untyped tags a value by its own type.
func (c *caller) untyped(value graph.Value) (bytecode.Object, error) {
	kind := graph.KindInt
	list, isList := value.(graph.List)
	sample := value
	if isList && len(list.Items) > 0 {
		sample = list.Items[0]
	}
	switch v := sample.(type) {
	case *graph.Output:
		kind = graph.KindTensor
	case *graph.Input:
		kind = map[graph.InputKind]graph.ParameterKind{graph.Tensor: graph.KindTensor, graph.Int: graph.KindInt, graph.Float: graph.KindFloat}[v.Kind]
	case bool:
		kind = graph.KindBool
	case float64:
		kind = graph.KindFloat
	case complex128:
		kind = graph.KindScalar
	case string:
		kind = graph.KindString
	case graph.DType:
		kind = graph.KindDType
	case graph.Device:
		kind = graph.KindDevice
	case graph.Layout:
		kind = graph.KindLayout
	case graph.MemoryFormat:
		kind = graph.KindMemoryFormat
	}
	return c.typed(value, &graph.Parameter{Kind: kind, List: isList, OptionalItems: isList && kind == graph.KindTensor})
}

// typed tags a value as the parameter wants it.
func (c *caller) typed(value graph.Value, parameter *graph.Parameter) (bytecode.Object, error) {
	if value == nil {
		return bytecode.Tuple{"none"}, nil
	}
	if list, ok := value.(graph.List); ok {
		return c.list(list, parameter)
	}
	switch parameter.Kind {
	case graph.KindTensor:
		if _, isTensor := graph.MetaOf(value); !isTensor {
			return c.number("scalar", value) // ATen wraps a Python number in a tensor
		}
		slot, err := c.tensor(value)
		return bytecode.Tuple{"t", int64(slot)}, err
	case graph.KindInt:
		return c.number("int", value)
	case graph.KindFloat:
		return c.number("float", value)
	case graph.KindScalar:
		return c.number("scalar", value)
	case graph.KindGenerator:
		return bytecode.Tuple{"generator", bytecode.None}, nil
	}
	return constantArgument(value)
}

// constantArgument tags values that never depend on the call.
func constantArgument(value graph.Value) (bytecode.Object, error) {
	switch v := value.(type) {
	case bool:
		return bytecode.Tuple{"bool", v}, nil
	case string:
		return bytecode.Tuple{"str", v}, nil
	case graph.DType:
		return bytecode.Tuple{"dtype", int64(v.ScalarType())}, nil
	case graph.Device:
		number, index := deviceNumber(v)
		return bytecode.Tuple{"device", number, index}, nil
	case graph.Layout:
		return enumerated("layout", string(v), []string{"strided", "sparse_coo", "sparse_csr", "_mkldnn"})
	case graph.MemoryFormat:
		return enumerated("memory_format", string(v), []string{"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"})
	}
	return nil, errors.Newf("%s cannot be passed to an operator", graph.FormatValue(value))
}

// enumerated tags a name with its number in c10's enumeration.
func enumerated(tag, name string, names []string) (bytecode.Object, error) {
	for number, candidate := range names {
		if candidate == name {
			return bytecode.Tuple{tag, int64(number)}, nil
		}
	}
	return nil, errors.Newf("no %s is called %s", tag, name)
}

// tensor returns a tensor's slot and notes its use.
func (c *caller) tensor(value graph.Value) (int, error) {
	key, _ := keyOf(value)
	found := c.plan.compilation.program.values[key]
	if found.tensor == nil {
		return 0, errors.Newf("%s is no tensor", graph.FormatValue(value))
	}
	slot, err := c.plan.slot(found.tensor)
	c.slots = append(c.slots, slot)
	return slot, err
}

// number tags an int, float, bool or complex number, or one known at run time.
func (c *caller) number(tag string, value graph.Value) (bytecode.Object, error) {
	switch v := value.(type) {
	case bool, int64, float64, complex128:
		return bytecode.Tuple{tag, v}, nil
	case graph.Size:
		object, err := c.plan.size(v)
		return bytecode.Tuple{tag, object}, err
	case *graph.Input:
		if v.Kind == graph.Float {
			return bytecode.Tuple{tag, bytecode.Tuple{"float_slot", int64(v.Index)}}, nil
		}
		return bytecode.Tuple{tag, bytecode.Tuple{"slot", int64(v.Index)}}, nil
	}
	return nil, errors.Newf("%s is no number", graph.FormatValue(value))
}

func (c *caller) list(list graph.List, parameter *graph.Parameter) (bytecode.Object, error) {
	if parameter.Kind == graph.KindTensor {
		return c.tensors(list, parameter.OptionalItems)
	}
	tag, ok := map[graph.ParameterKind]string{graph.KindInt: "ints", graph.KindFloat: "floats", graph.KindBool: "bools"}[parameter.Kind]
	if !ok {
		return nil, errors.New("a list of such values cannot be passed to an operator")
	}
	items := &bytecode.List{}
	for _, item := range list.Items {
		tagged, err := c.number(tag, item)
		if err != nil {
			return nil, err
		}
		items.Items = append(items.Items, tagged.(bytecode.Tuple)[1])
	}
	return bytecode.Tuple{tag, items}, nil
}

func (c *caller) tensors(list graph.List, optional bool) (bytecode.Object, error) {
	items := &bytecode.List{}
	for _, item := range list.Items {
		slot := -1
		if item != nil {
			var err error
			if slot, err = c.tensor(item); err != nil {
				return nil, err
			}
		}
		items.Items = append(items.Items, int64(slot))
	}
	if optional {
		return bytecode.Tuple{"optional_tensors", items}, nil
	}
	return bytecode.Tuple{"tensors", items}, nil
}
