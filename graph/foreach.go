package graph

import "strings"

// Functions over lists of tensors (torch._foreach_add_ and so on) are what optimizers call. In a graph each is the operator for a single tensor, once for
// each item, so that what follows on one tensor is fused with it.

const foreachPrefix = "_foreach_"

// foreachTrailing names the parameter that the last positional argument of a function over lists is, where the operator for one tensor takes it by
// name only.
func foreachTrailing(name string) (position int, keyword string) {
	if strings.HasPrefix(name, "addcmul") || strings.HasPrefix(name, "addcdiv") {
		return 3, "value"
	}
	return -1, ""
}

// foreachOperator gives the operator for one tensor. The greater of a tensor and a number has a name of its own there.
func foreachOperator(name string, args []Value) string {
	base, inPlace := strings.CutSuffix(name, "_")
	switch base {
	case "norm":
		base = "linalg_vector_norm"
	case "maximum", "minimum":
		if len(args) > 1 && isScalar(args[1]) {
			base = map[string]string{"maximum": "clamp_min", "minimum": "clamp_max"}[base]
		} else if inPlace {
			return "" // torch has no such operator
		}
	}
	if inPlace {
		return base + "_"
	}
	return base
}

// foreach calls the operator for one tensor on each item of the lists.
func (c *caller) foreach(name string) (Value, error) {
	operator := foreachOperator(name, c.args)
	if operator == "" || len(c.args) == 0 {
		return nil, unknown(c.target)
	}
	list, ok := c.args[0].(List)
	if !ok || len(list.Items) == 0 {
		return nil, unknown(c.target + ": no list of tensors comes first")
	}
	results := List{Tuple: !strings.HasSuffix(name, "_")}
	for index := range list.Items {
		result, err := c.foreachItem(name, operator, index, len(list.Items))
		if err != nil {
			return nil, err
		}
		results.Items = append(results.Items, result)
	}
	return results, nil
}

// foreachItem calls the operator on the items at one index.
func (c *caller) foreachItem(name, operator string, index, count int) (Value, error) {
	inner := &caller{graph: c.graph, state: c.state, target: "torch." + operator, nodes: c.nodes}
	position, keyword := foreachTrailing(name)
	for k, argument := range c.args {
		item, err := inner.itemAt(argument, index, count)
		if err != nil {
			return nil, err
		}
		if k == position {
			inner.keywords = append(inner.keywords, Keyword{keyword, item})
		} else {
			inner.args = append(inner.args, item)
		}
	}
	inner.keywords = append(inner.keywords, c.keywords...)
	for _, k := range inner.keywords {
		if _, isList := k.Value.(List); isList {
			return nil, unknown(c.target + " with a list by name")
		}
	}
	result, err := inner.dispatch()
	c.nodes = inner.nodes
	return result, err
}

// itemAt is what a list holds for one tensor; anything else is the same for all. A tensor of one dimension holds a number for each.
func (c *caller) itemAt(argument Value, index, count int) (Value, error) {
	if list, ok := argument.(List); ok {
		if len(list.Items) != count {
			return nil, unknown("lists of other lengths")
		}
		return list.Items[index], nil
	}
	if m, ok := MetaOf(argument); ok && len(m.Sizes) == 1 {
		return c.call("aten.select.int", argument, int64(0), int64(index))
	}
	return argument, nil
}
