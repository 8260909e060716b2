package graph

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"fusee/internal/slice"
)

// forwarding is a Python function that checks its arguments and calls one operator: its parameters with their Python defaults,
// and the operator's positional arguments in terms of them. Parameters the operator does not get must have their defaults. A
// parameter named reduction is a word in Python and a number in the operator.
type forwarding struct {
	function, parameters, target, arguments string
}

func forwardingTable() []forwarding {
	const averaging = " size_average=None reduce=None reduction='mean'"
	return []forwarding{
		{"softmax", "input dim=None _stacklevel=3 dtype=None", "aten.softmax.int", "input dim dtype"},
		{"log_softmax", "input dim=None _stacklevel=3 dtype=None", "aten.log_softmax.int", "input dim dtype"},
		{"layer_norm", "input normalized_shape weight=None bias=None eps=1e-05", "aten.layer_norm.default", "input normalized_shape weight bias eps"},
		{"group_norm", "input num_groups weight=None bias=None eps=1e-05", "aten.group_norm.default", "input num_groups weight bias eps"},
		{"rms_norm", "input normalized_shape weight=None eps=None", "aten.rms_norm.default", "input normalized_shape weight eps"},
		{"batch_norm", "input running_mean running_var weight=None bias=None training=False momentum=0.1 eps=1e-05", "aten.batch_norm.default", "input weight bias running_mean running_var training momentum eps True"},
		{"cross_entropy", "input target weight=None size_average=None ignore_index=-100 reduce=None reduction='mean' label_smoothing=0.0", "aten.cross_entropy_loss.default", "input target weight reduction ignore_index label_smoothing"},
		{"nll_loss", "input target weight=None size_average=None ignore_index=-100 reduce=None reduction='mean'", "aten.nll_loss_nd.default", "input target weight reduction ignore_index"},
		{"mse_loss", "input target" + averaging + " weight=None", "aten.mse_loss.default", "input target reduction"},
		{"l1_loss", "input target" + averaging + " weight=None", "aten.l1_loss.default", "input target reduction"},
		{"smooth_l1_loss", "input target" + averaging + " beta=1.0", "aten.smooth_l1_loss.default", "input target reduction beta"},
		{"huber_loss", "input target reduction='mean' delta=1.0 weight=None", "aten.huber_loss.default", "input target reduction delta"},
		{"soft_margin_loss", "input target" + averaging, "aten.soft_margin_loss.default", "input target reduction"},
		{"binary_cross_entropy", "input target weight=None" + averaging, "aten.binary_cross_entropy.default", "input target weight reduction"},
		{"binary_cross_entropy_with_logits", "input target weight=None" + averaging + " pos_weight=None", "aten.binary_cross_entropy_with_logits.default", "input target weight pos_weight reduction"},
		{"max_pool2d", "input kernel_size stride=None padding=0 dilation=1 ceil_mode=False return_indices=False", "aten.max_pool2d.default", "input kernel_size stride padding dilation ceil_mode"},
		{"adaptive_avg_pool2d", "input output_size", "aten.adaptive_avg_pool2d.default", "input output_size"},
		{"glu", "input dim=-1", "aten.glu.default", "input dim"},
		{"sigmoid", "input", "aten.sigmoid.default", "input"},
		{"tanh", "input", "aten.tanh.default", "input"},
	}
}

func (f forwarding) call(c *caller) (Value, error) {
	bound, err := c.bindDefaults(f.parameters)
	if err != nil {
		return nil, err
	}
	used := strings.Fields(f.arguments)
	if !c.unusedAbsent(f.parameters, bound, used) {
		return nil, unknown(c.target + " with an argument the operator does not take")
	}
	op, ok := LookUp(f.target)
	if !ok {
		return nil, unknown(f.target)
	}
	args := make([]Value, len(used))
	for i, name := range used {
		v, known := bound[name]
		switch {
		case !known:
			v = literal(name)
		case name == "reduction":
			if v, ok = reductionNumber(v); !ok {
				return nil, unknown("reduction")
			}
		case v == nil && !op.Schema.Parameters[i].Optional:
			v = op.Schema.Parameters[i].Default
		}
		args[i] = v
	}
	return c.call(f.target, args...)
}

// bindDefaults binds the call to a parameter list such as "input dim=-1 dtype=None" and fills in the defaults.
func (c *caller) bindDefaults(parameters string) (map[string]Value, error) {
	var names []string
	for _, p := range strings.Fields(parameters) {
		name, _, _ := strings.Cut(p, "=")
		names = append(names, name)
	}
	bound, err := c.arguments(names...)
	if err != nil {
		return nil, err
	}
	for _, p := range strings.Fields(parameters) {
		name, text, hasDefault := strings.Cut(p, "=")
		if _, given := bound[name]; given {
			continue
		}
		if !hasDefault {
			return nil, unknown(c.target + " lacks " + name)
		}
		bound[name] = literal(text)
	}
	return bound, nil
}

func (c *caller) unusedAbsent(parameters string, bound map[string]Value, used []string) bool {
	for _, p := range strings.Fields(parameters) {
		name, text, _ := strings.Cut(p, "=")
		if !slices.Contains(used, name) && FormatValue(bound[name]) != FormatValue(literal(text)) {
			return false
		}
	}
	return true
}

// below ends the chain with an operator whose first operand is another value.
func (s *chain) below(target string, first Value) (Value, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.caller.call(target, first, s.value)
}

// literal reads None, True, False, a number or a quoted word.
func literal(text string) Value {
	switch text {
	case "None":
		return nil
	case "True", "False":
		return text == "True"
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return strings.Trim(text, "'")
}

// reductionNumber is the enumeration behind the word.
func reductionNumber(v Value) (Value, bool) {
	word, _ := v.(string)
	number, ok := map[string]int64{"none": 0, "mean": 1, "sum": 2}[word]
	return number, ok
}

// moduleFunctions covers Python functions of torch.nn.functional and torch, which hosts keep whole, and builtins whose Python
// signature has more than the operator's.
func moduleFunctions() map[string]function {
	const prefix = "torch.nn.functional."
	table := map[string]function{
		prefix + "dropout": functionalDropout, prefix + "embedding": functionalEmbedding, prefix + "pad": pad, prefix + "normalize": normalize,
		prefix + "softsign": softsign, prefix + "tanhshrink": tanhshrink, prefix + "softmin": softmin,
		"pad": pad, "tensor": tensorOfNumber, "one_hot": oneHot, "isreal": refuse, "norm": norm, "meshgrid": meshgrid,
		"hstack": stackAlong(1), "vstack": stackAlong(0), "row_stack": stackAlong(0), "fliplr": flipAlong(1), "flipud": flipAlong(0), "tile": tile,
	}
	for _, f := range forwardingTable() {
		table[prefix+f.function] = f.call
	}
	for name, parameters := range map[string]string{
		"relu": "", "silu": "", "mish": "", "relu6": "", "selu": "", "hardsigmoid": "", "hardswish": "", "elu": "alpha ", "celu": "alpha ",
		"leaky_relu": "negative_slope ", "hardtanh": "min_val max_val ", "threshold": "threshold value ",
	} {
		table[prefix+name] = functionalActivation(name, strings.Fields(parameters+"inplace")...)
	}
	return table
}

// functionalActivation forwards to the operator, in place when the last parameter asks for it.
func functionalActivation(name string, parameters ...string) function {
	names := append([]string{"input"}, parameters...)
	return func(c *caller) (Value, error) {
		bound, err := c.arguments(names...)
		if err != nil {
			return nil, err
		}
		target := name
		switch inPlace := bound["inplace"]; inPlace {
		case nil, false:
		case true:
			target += "_"
		default:
			return nil, unknown("inplace is no bool")
		}
		delete(bound, "inplace")
		var keywords []Keyword
		for _, parameter := range parameters {
			if v, given := bound[parameter]; given {
				keywords = append(keywords, Keyword{parameter, v})
			}
		}
		return c.overloadedWith(target, false, []Value{bound["input"]}, keywords)
	}
}

func functionalDropout(c *caller) (Value, error) {
	bound, err := c.bindDefaults("input p=0.5 training=True inplace=False")
	if err != nil {
		return nil, err
	}
	target := map[bool]string{false: "aten.dropout.default", true: "aten.dropout_.default"}[bound["inplace"] == true]
	return c.call(target, bound["input"], bound["p"], bound["training"])
}

func functionalEmbedding(c *caller) (Value, error) {
	bound, err := c.bindDefaults("input weight padding_idx=None max_norm=None norm_type=2.0 scale_grad_by_freq=False sparse=False")
	if err != nil || bound["max_norm"] != nil {
		return nil, unknown("embedding that renormalises")
	}
	padding := Value(int64(-1))
	if n, ok := bound["padding_idx"].(int64); ok {
		rows := meta(bound["weight"])
		if rows.Dim() == 0 {
			return nil, unknown("embedding weight")
		}
		padding = n
		if n < 0 {
			padding = SizeValue(c.graph.Shapes.Add(Static(n), rows.Sizes[0]))
		}
	}
	return c.call("aten.embedding.default", bound["weight"], bound["input"], padding, bound["scale_grad_by_freq"], bound["sparse"])
}

// chain calls operators one after the other, each on the result of the one before; it stops at the first error.
type chain struct {
	caller *caller
	value  Value
	err    error
}

func (s *chain) then(target string, more ...Value) *chain {
	if s.err == nil {
		s.value, s.err = s.caller.call(target, append([]Value{s.value}, more...)...)
	}
	return s
}

// normalize is input / max(norm, eps).
func normalize(c *caller) (Value, error) {
	bound, err := c.bindDefaults("input p=2.0 dim=1 eps=1e-12 out=None")
	if err != nil || bound["out"] != nil || meta(bound["input"]).DType == NoDType {
		return nil, unknown("normalize arguments")
	}
	s := &chain{caller: c, value: bound["input"]}
	s.then("aten.linalg_vector_norm.default", bound["p"], bound["dim"], true).then("aten.clamp_min.default", bound["eps"])
	return s.then("aten.expand.default", sizeValues(meta(bound["input"]).Sizes)).below("aten.div.Tensor", bound["input"])
}

// softsign is input / (|input| + 1).
func softsign(c *caller) (Value, error) {
	v, _, err := c.one()
	s := &chain{caller: c, value: v, err: err}
	return s.then("aten.abs.default").then("aten.add.Tensor", int64(1)).below("aten.div.Tensor", v)
}

// tanhshrink is input − tanh(input).
func tanhshrink(c *caller) (Value, error) {
	v, _, err := c.one()
	s := &chain{caller: c, value: v, err: err}
	return s.then("aten.tanh.default").below("aten.sub.Tensor", v)
}

// softmin is the softmax of −input.
func softmin(c *caller) (Value, error) {
	bound, err := c.bindDefaults("input dim=None _stacklevel=3 dtype=None")
	if err != nil || bound["dim"] == nil {
		return nil, unknown("softmin without dim")
	}
	s := (&chain{caller: c, value: bound["input"]}).then("aten.neg.default").then("aten.softmax.int", bound["dim"], bound["dtype"])
	return s.value, s.err
}

// norm is torch.norm: the vector norm unless the nuclear one is asked for.
func norm(c *caller) (Value, error) {
	bound, err := c.bindDefaults("input p='fro' dim=None keepdim=False out=None dtype=None")
	if err != nil || bound["out"] != nil {
		return nil, unknown("norm arguments")
	}
	order := bound["p"]
	if order == nil || order == "fro" {
		order = int64(2)
	}
	op, _ := LookUp("aten.linalg_vector_norm.default")
	return c.emitBound(op, []Value{bound["input"], order, bound["dim"], bound["keepdim"]}, []Keyword{{"dtype", bound["dtype"]}})
}

// pad covers constant padding.
func pad(c *caller) (Value, error) {
	bound, err := c.bindDefaults("input pad mode='constant' value=None")
	if err != nil || bound["mode"] != "constant" {
		return nil, unknown("pad mode")
	}
	return c.call("aten.constant_pad_nd.default", bound["input"], bound["pad"], cmp.Or[Value](bound["value"], int64(0)))
}

// oneHot marks each index by a 1 among zeros along a new last dimension (aten/src/ATen/native/Onehot.cpp of PyTorch). How many classes there are has
// to be said: else the greatest index decides.
func oneHot(c *caller) (Value, error) {
	bound, err := c.bindDefaults("self num_classes=-1")
	if err != nil {
		return nil, err
	}
	index, isTensor := MetaOf(bound["self"])
	classes, known := bound["num_classes"].(int64)
	if !isTensor || index.DType != Int64 || !known || classes <= 0 {
		return nil, unknown("one_hot without a number of classes, or of another type than int64")
	}
	size := List{Items: append(slice.Map(index.Sizes, func(s Size) Value { return s }), classes)}
	zeros, err := c.newTensor("aten.zeros.default", Int64, index.Device, size)
	if err != nil {
		return nil, err
	}
	column, err := c.call("aten.unsqueeze.default", bound["self"], int64(-1))
	if err != nil {
		return nil, err
	}
	return c.call("aten.scatter.value", zeros, int64(-1), column, int64(1))
}

// tensorOfNumber is torch.tensor of one Python number or a list of them.
func tensorOfNumber(c *caller) (Value, error) {
	bound, err := c.bindDefaults("data dtype=None device=None requires_grad=False")
	if err != nil || bound["requires_grad"] != false {
		return nil, unknown("tensor arguments")
	}
	list, isList := bound["data"].(List)
	switch {
	case !isList:
		list.Items = []Value{bound["data"]}
	case len(list.Items) == 0:
		return c.emptyTensor(bound["dtype"], bound["device"])
	}
	d, ok := c.literalType(list.Items, bound["dtype"])
	switch {
	case !ok:
		return nil, unknown("tensor of something that is no number")
	case isList:
		return c.literal(list.Items, d, bound["device"])
	}
	return c.scalarTensor(bound["data"], d, bound["device"])
}

// emptyTensor is torch.tensor([]): one dimension without elements.
func (c *caller) emptyTensor(dtype, device Value) (Value, error) {
	return c.newTensor("aten.zeros.default", dtype, device, List{Items: []Value{int64(0)}})
}

// scalarTensor makes a 0-d tensor of a number.
func (c *caller) scalarTensor(number Value, d DType, device Value) (Value, error) {
	return c.newTensor("aten.scalar_tensor.default", d, device, number)
}

// newTensor calls an operator that makes a tensor of a type on a device; nil for eager's defaults.
func (c *caller) newTensor(target string, dtype, device Value, args ...Value) (Value, error) {
	op, _ := LookUp(target)
	return c.emitBound(op, args, []Keyword{{"dtype", dtype}, {"device", device}})
}

// tensorList reads a list of tensors, given as one list or as the arguments themselves.
func (c *caller) tensorList() ([]Value, bool) {
	items := c.args
	if len(items) == 1 {
		if list, ok := items[0].(List); ok {
			items = list.Items
		}
	}
	for _, v := range items {
		if _, ok := MetaOf(v); !ok {
			return nil, false
		}
	}
	return items, len(items) > 0
}

// meshgrid with indexing="ij": each vector as a view along its own dimension, expanded.
func meshgrid(c *caller) (Value, error) {
	for _, k := range c.keywords {
		if k.Name != "indexing" || k.Value != "ij" {
			return nil, unknown("meshgrid indexing")
		}
	}
	vectors, ok := c.tensorList()
	shape := make([]Size, len(vectors))
	for i, v := range vectors {
		if m := meta(v); ok && m.Dim() == 1 && m.DType == meta(vectors[0]).DType {
			shape[i] = m.Sizes[0]
		} else {
			ok = false
		}
	}
	if !ok || len(c.keywords) == 0 {
		return nil, unknown("meshgrid arguments")
	}
	grids := make([]Value, len(vectors))
	for i, v := range vectors {
		along := make([]Value, len(vectors))
		for d := range along {
			along[d] = int64(1)
		}
		along[i] = SizeValue(shape[i])
		s := (&chain{caller: c, value: v}).then("aten.view.default", List{Items: along}).then("aten.expand.default", sizeValues(shape))
		if s.err != nil {
			return nil, s.err
		}
		grids[i] = s.value
	}
	return List{Items: grids, Tuple: true}, nil
}

// stackAlong is hstack (dim 1) and vstack (dim 0) of tensors with at least one dimension.
func stackAlong(dim int64) function {
	return func(c *caller) (Value, error) {
		tensors, ok := c.tensorList()
		if _, isList := c.firstArgument().(List); !ok || !isList || len(c.keywords) > 0 {
			return nil, unknown(c.target + " arguments")
		}
		vectors := meta(tensors[0]).Dim() == 1
		parts := make([]Value, len(tensors))
		for i, v := range tensors {
			parts[i] = v
			if meta(v).Dim() == 0 || vectors != (meta(v).Dim() == 1) {
				return nil, unknown(c.target + " of 0-d tensors or different dimensions")
			}
			if vectors && dim == 0 {
				var err error
				if parts[i], err = c.call("aten.unsqueeze.default", v, int64(0)); err != nil {
					return nil, err
				}
			}
		}
		if vectors {
			return c.call("aten.cat.default", List{Items: parts}, int64(0))
		}
		return c.call("aten.cat.default", List{Items: parts}, dim)
	}
}

func (c *caller) firstArgument() Value {
	if len(c.args) == 0 {
		return nil
	}
	return c.args[0]
}

// flipAlong is fliplr and flipud.
func flipAlong(dim int64) function {
	return func(c *caller) (Value, error) {
		v, m, err := c.one()
		if err != nil || int64(m.Dim()) <= dim {
			return nil, unknown(c.target + " arguments")
		}
		return c.call("aten.flip.default", v, List{Items: []Value{dim}})
	}
}

// tile is repeat with missing leading repeats taken as 1.
func tile(c *caller) (Value, error) {
	v, repeats, err := c.sizesAfterSelf("dims")
	if err != nil {
		return nil, err
	}
	missing := max(meta(v).Dim()-len(repeats), 0)
	repeats = slices.Concat(slices.Repeat(Statics(1), missing), repeats)
	return c.call("aten.repeat.default", v, sizeValues(repeats))
}
