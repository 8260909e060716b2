package backend

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
)

// inputPrefix starts the names of made-up symbols that stand for scalar inputs without a size of their own.
const inputPrefix = "input "

func inputSymbol(slot int) string { return inputPrefix + strconv.Itoa(slot) }

// sizes turns sizes into a list of integers or integer expressions of the plan.
func (p *plan) sizes(sizes []graph.Size) (*bytecode.List, error) {
	objects, err := slice.TryMap(sizes, p.size)
	return &bytecode.List{Items: objects}, err
}

func (p *plan) size(size graph.Size) (bytecode.Object, error) {
	if size.Expr == nil {
		return size.Hint, nil
	}
	return p.expression(size.Expr)
}

func (p *plan) expression(e *graph.Expr) (bytecode.Object, error) {
	switch e.Op {
	case graph.ExprConstant:
		return e.Value, nil
	case graph.ExprSymbol:
		return p.symbol(e.Name)
	}
	name := map[graph.ExprOp]string{graph.ExprAdd: "+", graph.ExprMultiply: "*", graph.ExprFloorDivide: "//", graph.ExprModulo: "%",
		graph.ExprMaximum: "max", graph.ExprMinimum: "min"}[e.Op]
	result, err := p.expression(e.Args[0])
	for _, arg := range e.Args[1:] {
		var right bytecode.Object
		if err == nil {
			right, err = p.expression(arg)
		}
		result = bytecode.Tuple{name, result, right}
	}
	return result, err
}

// symbol reads a run-time number from where the symbol's source says.
func (p *plan) symbol(name string) (bytecode.Object, error) {
	if number, ok := strings.CutPrefix(name, inputPrefix); ok {
		slot, err := strconv.ParseInt(number, 10, 64)
		return bytecode.Tuple{"slot", slot}, err
	}
	if item, ok := p.compilation.program.items.named(name); ok {
		slot, err := p.slot(item.state)
		return bytecode.Tuple{"item", int64(slot), item.number}, err
	}
	for _, symbol := range p.compilation.graph.Shapes.Symbols() {
		source := symbol.Source
		switch {
		case symbol.Name != name:
			continue
		case source.Input < 0:
			return nil, errors.Newf("no input of the graph gives %s", name)
		case source.Stride:
			return bytecode.Tuple{"stride", int64(source.Input), int64(source.Dim)}, nil
		case source.Dim < 0:
			return bytecode.Tuple{"slot", int64(source.Input)}, nil
		}
		return bytecode.Tuple{"size", int64(source.Input), int64(source.Dim)}, nil
	}
	return nil, errors.Newf("the graph has no symbol %s", name)
}
