package graph

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// function turns a Python-level call into aten nodes and gives the result as Python sees it.
type function func(*caller) (Value, error)

// namespaces are the prefixes under which torch's generated bindings put functions of the same name.
func namespaces() []string {
	return []string{"torch._C._nn.", "torch._C._special.", "torch._C._linalg.", "torch._C._VariableFunctions.", "torch._VF.",
		"torch.functional.", "Tensor.", "torch."}
}

// functionAliases maps names that torch defines as other names of the same operator. In-place variants follow from them.
var functionAliases = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "absolute": "abs",
		"negative": "neg", "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "clip": "clamp",
		"fix": "trunc", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "arccosh": "acosh",
		"arcsinh": "asinh", "arctanh": "atanh", "concat": "cat", "concatenate": "cat", "swapaxes": "transpose",
		"swapdims": "transpose", "moveaxis": "movedim", "special_erf": "erf", "special_erfc": "erfc", "special_exp2": "exp2",
		"special_expit": "sigmoid", "special_expm1": "expm1", "special_log1p": "log1p", "special_round": "round",
		"special_sinc": "sinc", "special_gammaln": "lgamma", "special_digamma": "digamma", "special_psi": "digamma",
		"special_erfinv": "erfinv", "special_i0": "i0", "special_logit": "logit", "special_xlogy": "xlogy",
		"special_logsumexp": "logsumexp", "special_polygamma": "polygamma", "special_multigammaln": "mvlgamma",
		"special_gammainc": "igamma", "special_gammaincc": "igammac", "special_softmax": "softmax",
		"special_log_softmax": "log_softmax", "ger": "outer",
		"broadcast_to": "expand", "__invert__": "bitwise_not",
		"__neg__": "neg", "__abs__": "abs", "__matmul__": "matmul",
	}
})

// dispatch finds the function behind the target.
func (c *caller) dispatch() (Value, error) {
	if isOperator(c.target) {
		return c.dispatchAten()
	}
	if f, ok := functions()[c.target]; ok {
		return f(c)
	}
	for _, prefix := range namespaces() {
		if name, ok := strings.CutPrefix(c.target, prefix); ok && !strings.Contains(name, ".") {
			return c.dispatchName(name, prefix == "Tensor.")
		}
	}
	return nil, unknown(c.target)
}

func (c *caller) dispatchAten() (Value, error) {
	op, ok := LookUp(c.target)
	if !ok {
		return nil, unknown(c.target)
	}
	return c.emitBound(op, c.args, c.keywords)
}

func (c *caller) dispatchName(name string, method bool) (Value, error) {
	if method {
		if len(c.args) == 0 {
			return nil, unknown("method without self")
		}
		if _, ok := MetaOf(c.args[0]); !ok {
			return nil, unknown("method of something that is no tensor")
		}
	}
	if f, ok := functions()[name]; ok {
		return f(c)
	}
	if operator, ok := strings.CutPrefix(name, foreachPrefix); ok && !method {
		return c.foreach(operator)
	}
	return c.overloaded(canonicalName(name), method)
}

// canonicalName resolves aliases, of in-place names too.
func canonicalName(name string) string {
	aliases := functionAliases()
	if base, inPlace := strings.CutSuffix(name, "_"); inPlace && aliases[base] != "" {
		return cmp.Or(aliases[name], aliases[base]+"_")
	}
	return cmp.Or(aliases[name], name)
}

// overloaded tries the operator's overloads in the order of the table, as torch's parser does.
func (c *caller) overloaded(name string, method bool) (Value, error) {
	return c.overloadedWith(name, method, c.args, c.keywords)
}

func (c *caller) overloadedWith(name string, method bool, args []Value, keywords []Keyword) (Value, error) {
	op, values := overload(name, method, args, keywords)
	if op == nil {
		return nil, unknown(c.target + ": no overload fits")
	}
	c.resultType = structseq(op)
	return c.emit(op, values)
}

// structseq names the Python type of results that the schema gives names to: "(Tensor values, Tensor indices)".
func structseq(op *Op) string {
	if strings.HasPrefix(op.Schema.Returns, "(Tensor ") {
		return "torch.return_types." + op.Schema.Name
	}
	return ""
}

// functions holds what is more than a change of name, by full target or by name.
var functions = sync.OnceValue(func() map[string]function {
	table := map[string]function{}
	for _, part := range []map[string]function{operatorFunctions(), methodFunctions(), viewFunctions(), moduleFunctions(), scaledFunctions()} {
		for name, f := range part {
			table[name] = f
		}
	}
	return table
})

// arguments binds the call by Python's rules to parameter names, given as "input", "dim=0" and so on; absent optional
// parameters are missing from the map.
func (c *caller) arguments(names ...string) (map[string]Value, error) {
	bound := map[string]Value{}
	if len(c.args) > len(names) {
		return nil, unknown(c.target + ": too many arguments")
	}
	for i, v := range c.args {
		bound[names[i]] = v
	}
	for _, k := range c.keywords {
		if err := bindKeyword(bound, names, k); err != nil {
			return nil, err
		}
	}
	return bound, nil
}

func bindKeyword(bound map[string]Value, names []string, k Keyword) error {
	if _, twice := bound[k.Name]; twice || !slices.Contains(names, k.Name) {
		return unknown("keyword that is unexpected or given twice: " + k.Name)
	}
	bound[k.Name] = k.Value
	return nil
}
