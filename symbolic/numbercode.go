package symbolic

import (
	"fusee/bytecode"
	"fusee/graph"
)

// Numbers that Python needs are computed at the start of the rewritten code, before the graph runs and before every side effect: where one of
// them raises, the function runs as it was written.

// loadNumber pushes a number.
func (cg *generator) loadNumber(n *Number) {
	switch {
	case n.kind == "value":
		cg.loadSource(n.source)
	case cg.in.constantOf(n) != nil:
		cg.loadConst(n.hint)
	default:
		cg.loadSlot(cg.numberSlot(n))
	}
}

// numberSlot is the variable that holds a computed number; its operands come before it.
func (cg *generator) numberSlot(n *Number) *slot {
	if known := cg.numbers[n]; known != nil {
		return known
	}
	switch {
	case n.computed != nil:
		for _, operand := range n.computed.operands {
			cg.prepareNumber(operand)
		}
	case n.kind == "":
		for _, name := range n.size.Expr.Symbols() {
			cg.prepareNumber(cg.in.symbols[name])
		}
	}
	cg.numbers[n] = cg.temp()
	cg.numberOrder = append(cg.numberOrder, n)
	return cg.numbers[n]
}

func (cg *generator) prepareNumber(value Value) {
	if n, ok := value.(*Number); ok && n.kind != "value" && cg.in.constantOf(n) == nil {
		cg.numberSlot(n)
	}
}

// writeNumbers computes the numbers that the code uses.
func (cg *generator) writeNumbers() error {
	for _, n := range cg.numberOrder {
		if err := cg.computeNumber(n); err != nil {
			return err
		}
		cg.storeSlot(cg.numbers[n])
	}
	return nil
}

func (cg *generator) computeNumber(n *Number) error {
	switch {
	case n.tensor != nil:
		cg.emit(bytecode.PushNull, 0)
		if err := cg.load(n.tensor); err != nil {
			return err
		}
		cg.emitName(bytecode.LoadAttr, n.kind)
		cg.loadConst(int64(n.dimension))
		cg.call(1)
	case n.computed == nil:
		cg.loadExpression(n.size.Expr)
	case n.computed.name != "":
		return cg.construct(n.computed.name, n.computed.operands...)
	default:
		for _, operand := range n.computed.operands {
			if err := cg.load(operand); err != nil {
				return err
			}
		}
		cg.emit(bytecode.BinaryOp, n.computed.operator)
	}
	return nil
}

// loadExpression computes an expression over symbols.
func (cg *generator) loadExpression(e *graph.Expr) {
	switch e.Op {
	case graph.ExprConstant:
		cg.loadConst(e.Value)
		return
	case graph.ExprSymbol:
		cg.loadNumber(cg.in.symbols[e.Name])
		return
	}
	extremum := e.Op == graph.ExprMaximum || e.Op == graph.ExprMinimum
	if extremum {
		cg.emit(bytecode.PushNull, 0)
		cg.placeholder("name", "builtins."+expressionOperators[e.Op])
	}
	for k, arg := range e.Args {
		cg.loadExpression(arg)
		if k > 0 && !extremum {
			cg.emit(bytecode.BinaryOp, operatorNumber(expressionFunctions[e.Op]))
		}
	}
	if extremum {
		cg.call(len(e.Args))
	}
}

var expressionFunctions = map[graph.ExprOp]string{graph.ExprAdd: "add", graph.ExprMultiply: "mul", graph.ExprFloorDivide: "floordiv", graph.ExprModulo: "mod"}

// placeSymbols tells where the graph finds the symbols that it mentions: in a tensor input's sizes and strides, else in an int input of its own.
func (in *Interpreter) placeSymbols() {
	for _, symbol := range in.graph.UsedSymbols() {
		number := in.symbols[symbol.Name]
		if number.tensor != nil {
			if input, ok := number.tensor.value.(*graph.Input); ok {
				in.graph.Shapes.SetSource(symbol.Name, graph.SymbolSource{Input: input.Index, Dim: number.dimension, Stride: number.kind == "stride"})
				continue
			}
		}
		input := in.graph.AddInt(symbol.Name, number.size)
		in.arguments = append(in.arguments, number)
		in.graph.Shapes.SetSource(symbol.Name, graph.SymbolSource{Input: input.Index, Dim: -1})
	}
}
