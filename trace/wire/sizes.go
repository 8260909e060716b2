package wire

import (
	"fusee/bytecode"
	"fusee/graph"
	"fusee/trace"
)

// expressionSigns are the operators of sizes in messages.
var expressionSigns = map[graph.ExprOp]string{
	graph.ExprAdd: "+", graph.ExprMultiply: "*", graph.ExprFloorDivide: "//", graph.ExprModulo: "%", graph.ExprMaximum: "max", graph.ExprMinimum: "min",
}

// WriteSize writes a size: a number, the name of a symbol, or an operator and its operands.
func WriteSize(size graph.Size) bytecode.Object {
	if size.Expr == nil {
		return size.Hint
	}
	return writeExpression(size.Expr)
}

func writeExpression(e *graph.Expr) bytecode.Object {
	switch e.Op {
	case graph.ExprConstant:
		return e.Value
	case graph.ExprSymbol:
		return e.Name
	}
	operands := &bytecode.List{}
	for _, operand := range e.Args {
		operands.Items = append(operands.Items, writeExpression(operand))
	}
	return bytecode.Tuple{expressionSigns[e.Op], operands}
}

// ParseSize reads what WriteSize writes; false for anything else, and for a symbol that the environment does not have.
func ParseSize(object bytecode.Object, shapes *graph.ShapeEnvironment) (graph.Size, bool) {
	switch value := object.(type) {
	case int64:
		return graph.Static(value), true
	case string:
		for _, symbol := range shapes.Symbols() {
			if symbol.Name == value {
				return shapes.SymbolSize(symbol), true
			}
		}
	case bytecode.Tuple:
		return parseExpression(value, shapes)
	}
	return graph.Size{}, false
}

func parseExpression(fields bytecode.Tuple, shapes *graph.ShapeEnvironment) (graph.Size, bool) {
	if len(fields) != 2 {
		return graph.Size{}, false
	}
	apply := sizeOperator(fields[0], shapes)
	operands := trace.Items(fields[1])
	if apply == nil || len(operands) == 0 {
		return graph.Size{}, false
	}
	total, ok := ParseSize(operands[0], shapes)
	for _, item := range operands[1:] {
		operand, known := ParseSize(item, shapes)
		divides := fields[0] == "//" || fields[0] == "%"
		if !ok || !known || divides && operand.Hint == 0 {
			return graph.Size{}, false
		}
		total = apply(total, operand)
	}
	return total, ok
}

func sizeOperator(sign bytecode.Object, shapes *graph.ShapeEnvironment) func(a, b graph.Size) graph.Size {
	switch sign {
	case "+":
		return shapes.Add
	case "*":
		return shapes.Multiply
	case "//":
		return shapes.FloorDivide
	case "%":
		return shapes.Modulo
	case "max":
		return shapes.Maximum
	case "min":
		return shapes.Minimum
	}
	return nil
}
