package graph

import (
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/errors"

	"fusee/internal/slice"
)

// Kind sorts operators by what a backend does with them.
type Kind uint8

// Kinds of operators.
const (
	KindPointwise Kind = iota // every output element depends on one element of each input
	KindView                  // no work: another description of the same memory
	KindReduction             // folds dimensions
	KindScan                  // cumulative along one dimension
	KindMatrix                // matrix products and convolutions
	KindNormalise             // softmax and normalisation over dimensions
	KindIndex                 // moves elements by index
	KindShape                 // moves elements by position (cat, pad, flip)
	KindFactory               // makes a tensor from numbers
	KindCopy                  // copies or casts
	KindRandom                // draws random numbers
	KindLibrary               // anything else
)

var kindNames = [...]string{"pointwise", "view", "reduction", "scan", "matrix", "normalise", "index", "shape", "factory", "copy",
	"random", "library"}

// String names the kind.
func (k Kind) String() string { return kindNames[k] }

// trait is a set of properties of an operator.
type trait uint32

const (
	intToFloat        trait = 1 << iota // integer operands compute in the default float type
	boolResult                          // the result is bool
	realResult                          // complex operands give their real type
	selfType                            // the type of the first tensor counts, no promotion
	oneType                             // tensors of different types are rejected
	noInPlace                           // there is no NAME_ operator
	noGradient                          // the result never requires gradients
	mixedDevices                        // 0-d CPU tensors may meet tensors of another device
	randomOp                            // draws from the random generator
	contiguousOnly                      // the result is always row-major
	likeSelf                            // the result is allocated like the first tensor, before the iteration
	unsettledGradient                   // torch versions disagree on whether results require gradients
	belowAutograd                       // called by differentiated graphs; what autograd makes of it is not known here
	takesUndefined                      // None may stand for any tensor, though the schema does not say so
)

// rule infers the outputs of an operator whose arguments are bound.
type rule func(*inference) error

// Op is one row of the operator table. Accepts holds the element-type classes the operator takes (b bool, i integers, h float16
// and bfloat16, f float32 and float64, c complex); empty means any. Body is the scalar expression of a pointwise operator;
// empty when there is no formula and the operator runs as a library call.
type Op struct {
	Schema  *Schema
	Kind    Kind
	Accepts string
	InPlace bool // NAME_ of a functional operator: the result is the first argument

	body   body
	traits trait
	rule   rule
}

// row is the written form of one or, with its in-place variant, two operators.
type row struct {
	schema  string
	kind    Kind
	accepts string
	body    body
	traits  trait
	rule    rule
}

// opTable holds the operators by base name, in the order of the table. Schemas are parsed when a name is first asked for: a
// capture needs few of them, and parsing all takes milliseconds.
type opTable map[string]func() []*Op

var ops = sync.OnceValue(buildOpTable)

func buildOpTable() opTable {
	rowsByName := map[string][]row{}
	for _, rows := range [][]row{
		unaryRows(), binaryRows(), conditionalRows(), activationRows(), specialRows(), backwardRows(), viewRows(), reductionRows(),
		matrixRows(), convolutionRows(), normalisationRows(), indexRows(), shapeRows(), factoryRows(), copyRows(), lossRows(),
		poolingRows(), randomRows(), trainingRows(), attentionRows(), recurrentRows(),
	} {
		for _, r := range rows {
			name := r.schema[:strings.IndexAny(r.schema, ".(")]
			rowsByName[name] = append(rowsByName[name], r)
		}
	}
	table := opTable{}
	for name, rows := range rowsByName {
		table[name] = sync.OnceValue(func() []*Op { return parseRows(rows) })
	}
	for name, rows := range rowsByName {
		if variants := inPlaceRows(rows); len(variants) > 0 {
			table[name+"_"] = sync.OnceValue(func() []*Op { return parseInPlaceRows(variants) })
		}
	}
	return table
}

func inPlaceRows(rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.kind != KindPointwise || r.traits&noInPlace != 0 })
}

func parseRows(rows []row) []*Op { return slice.Map(rows, parseRow) }

func parseRow(r row) *Op {
	schema, err := ParseSchema(r.schema)
	if err != nil {
		panic(err) // a typing mistake in the table, found by the first test
	}
	return &Op{Schema: schema, Kind: r.kind, Accepts: r.accepts, body: r.body, traits: r.traits, rule: r.rule}
}

func parseInPlaceRows(rows []row) []*Op {
	parsed := parseRows(rows)
	for i, op := range parsed {
		parsed[i] = op.inPlace()
	}
	return parsed
}

// named lists the overloads of a base name.
func (t opTable) named(name string) []*Op {
	if parsed, ok := t[name]; ok {
		return parsed()
	}
	return nil
}

// inPlaceOverload names the overload of NAME_, which differs from NAME's for a few.
func inPlaceOverload(s *Schema) string {
	switch s.Name + "." + s.Overload {
	case "pow.Tensor_Tensor", "floor_divide.default":
		return "Tensor"
	case "pow.Tensor_Scalar":
		return "Scalar"
	}
	return s.Overload
}

// inPlace derives NAME_ from NAME.
func (op *Op) inPlace() *Op {
	schema := *op.Schema
	schema.Name += "_"
	schema.Parameters = slices.Clone(schema.Parameters)
	schema.Parameters[0].Mutated = true
	schema.Overload = inPlaceOverload(op.Schema)
	variant := *op
	variant.Schema = &schema
	variant.InPlace = true
	return &variant
}

// LookUp finds an operator by its target, such as "aten.add.Tensor".
func LookUp(target string) (*Op, bool) {
	if name, own := strings.CutPrefix(target, ownModule); own {
		return slice.Find(ops().named(ownName+name), func(*Op) bool { return true })
	}
	parts := strings.Split(target, ".")
	if len(parts) != 3 || parts[0] != "aten" {
		return nil, false
	}
	return slice.Find(ops().named(parts[1]), func(op *Op) bool { return op.Schema.Overload == parts[2] })
}

// Targets lists every operator of the table, sorted.
func Targets() []string {
	var targets []string
	for _, parsed := range ops() {
		targets = append(targets, slice.Map(parsed(), func(op *Op) string { return op.Schema.Target() })...)
	}
	slices.Sort(targets)
	return targets
}

// String is the operator's target.
func (op *Op) String() string { return op.Schema.Target() }

// hasBody says whether a formula describes the operator.
func (op *Op) hasBody() bool { return op.body.text != "" || op.body.choose != nil }

// FillsRandomly tells operators that overwrite their first argument with random numbers.
func (op *Op) FillsRandomly() bool {
	return op.traits&(randomOp|noGradient) == randomOp|noGradient && len(op.Schema.Parameters) > 0 && op.Schema.Parameters[0].Mutated
}

// StopsGradients tells operators whose results never require gradients, whatever they read.
func (op *Op) StopsGradients() bool { return op.traits&noGradient != 0 }

// Bind fits arguments to the schema and fills in defaults: one value per parameter.
func (op *Op) Bind(args []Value, keywords []Keyword) ([]Value, error) {
	parameters := op.Schema.Parameters
	values := make([]Value, len(parameters))
	given := make([]bool, len(parameters))
	for i, v := range args {
		if i >= len(parameters) || parameters[i].KeywordOnly {
			return nil, errors.Newf("%s takes fewer than %d positional arguments", op, len(args))
		}
		values[i], given[i] = v, true
	}
	for _, k := range keywords {
		i := op.Schema.Position(k.Name)
		if i < 0 || given[i] {
			return nil, errors.Newf("%s: keyword %s is unknown or given twice", op, k.Name)
		}
		values[i], given[i] = k.Value, true
	}
	for i := range parameters {
		if op.mayBeUndefined(&parameters[i], values[i], given[i]) {
			continue
		}
		if err := parameters[i].complete(&values[i], given[i], op.Kind == KindPointwise || op.Kind == KindCopy); err != nil {
			return nil, errors.Wrapf(err, "%s", op)
		}
	}
	return values, nil
}

// mayBeUndefined says whether an argument is None in the place of a tensor, where the operator takes that.
func (op *Op) mayBeUndefined(p *Parameter, v Value, given bool) bool {
	return given && v == nil && p.Kind == KindTensor && op.traits&takesUndefined != 0
}

// complete puts in the default of an absent value and checks a present one; numbers says whether Python numbers may stand for
// tensors.
func (p *Parameter) complete(v *Value, given, numbers bool) error {
	if !given {
		if !p.HasDefault {
			return errors.Newf("lacks argument %s", p.Name)
		}
		*v = p.Default
		return nil
	}
	converted, ok := p.convert(*v, numbers)
	if !ok {
		return errors.Newf("argument %s cannot be %s", p.Name, FormatValue(*v))
	}
	*v = converted
	return nil
}

// normalForm splits bound values into positional arguments and the keyword-only ones that differ from their defaults.
func (op *Op) normalForm(values []Value) ([]Value, []Keyword) {
	var args []Value
	var keywords []Keyword
	for i, p := range op.Schema.Parameters {
		switch {
		case !p.KeywordOnly:
			args = append(args, values[i])
		case !p.HasDefault || FormatValue(values[i]) != FormatValue(p.Default):
			keywords = append(keywords, Keyword{p.Name, values[i]})
		}
	}
	return args, keywords
}

// Operator is the table's row for an aten-level node, or one without rules for an operator that is known by its schema only.
func (n *Node) Operator() (*Op, bool) {
	if op, ok := LookUp(n.Target); ok {
		return op, true
	}
	if n.Schema == nil {
		return nil, false
	}
	return &Op{Schema: n.Schema, Kind: KindLibrary}, true
}

// Argument gives the value of a parameter of an aten-level node, its default when the node does not mention it; false when the
// target or the parameter is unknown.
func (n *Node) Argument(name string) (Value, bool) {
	op, values := n.Bound()
	if op == nil || op.Schema.Position(name) < 0 {
		return nil, false
	}
	return values[op.Schema.Position(name)], true
}

func (n *Node) checkSchema() error {
	op, ok := LookUp(n.Target)
	if !ok {
		if strings.Count(n.Target, ".") < 2 {
			return errors.Newf("aten target %q lacks an overload", n.Target)
		}
		return nil
	}
	_, err := op.Bind(n.Args, n.Keywords)
	return err
}

// Bound gives the operator of an aten node and its arguments, one for each parameter of the schema; nil where the tables lack the operator or the
// arguments do not fit it.
func (n *Node) Bound() (*Op, []Value) {
	if op, ok := LookUp(n.Target); ok {
		if values, err := op.Bind(n.Args, n.Keywords); err == nil {
			return op, values
		}
	}
	return nil, nil
}
