package loop

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the static number, or "$n" for scalar argument n.
func (i Int) String() string {
	if argument, ok := i.Argument(); ok {
		return "$" + strconv.Itoa(argument)
	}
	return strconv.FormatInt(i.static, 10)
}

// String prints the kernel for people and for golden files. Two kernels with equal text are the same kernel.
func (k *Kernel) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "kernel %s scalars %d%s {\n", k.Name, k.Scalars, marked(k.First, " first"))
	for index, buffer := range k.Buffers {
		fmt.Fprintf(&text, "  buffer %d: %s%s %s align %d %s\n", index, marked(buffer.Constant, "constant "), buffer.Mode, buffer.Type, buffer.Alignment, buffer.Name)
	}
	fmt.Fprintf(&text, "  outer [%s]\n", joinInts(k.Outer))
	if k.Parts != nil {
		fmt.Fprintf(&text, "  parts %d\n", k.Parts)
	}
	if k.Span != nil {
		fmt.Fprintf(&text, "  span $%d: pieces of %s along i%d, %s in all\n", k.Scalars, k.Span.Size, k.Span.Dimension, k.Span.Total)
	}
	for index := range k.Stages {
		k.printStage(&text, &k.Stages[index])
	}
	text.WriteString("}\n")
	return text.String()
}

func marked(is bool, mark string) string {
	if is {
		return mark
	}
	return ""
}

func (k *Kernel) printStage(text *strings.Builder, stage *Stage) {
	fmt.Fprintf(text, "  stage [%s] {\n", joinInts(stage.Inner))
	for index := range stage.Body {
		text.WriteString("    " + formatInstruction(stage.First+Value(index), &stage.Body[index], len(k.Outer)) + "\n")
	}
	text.WriteString("  }\n")
}

func formatInstruction(value Value, in *Instruction, outer int) string {
	if in.Op == OpStore {
		return "store " + in.Type.String() + " " + formatAccess(in.Access, outer) + formatArgs(in.Args)
	}
	name := in.Op.String()
	if in.Short {
		name = "short_" + name
	}
	return formatValue(value) + " = " + name + " " + in.Type.String() + formatDetail(in, outer) + formatArgs(in.Args)
}

// formatDetail prints what an instruction has beside its arguments.
func formatDetail(in *Instruction, outer int) string {
	switch in.Op {
	case OpConstant:
		return " " + formatConstant(in.Type, in.Bits)
	case OpArgument:
		return " $" + strconv.Itoa(in.Index)
	case OpIndex:
		return " " + indexName(in.Index, outer)
	case OpLoad:
		return " " + formatAccess(in.Access, outer)
	case OpReduce:
		return " " + in.Reduction.String()
	}
	return ""
}

func formatConstant(typ Type, bits Bits) string {
	switch {
	case typ.Is(ClassFloat | ClassStorage):
		return strconv.FormatFloat(bits.Float(), 'g', -1, 64)
	case typ == U64:
		return strconv.FormatUint(uint64(bits), 10)
	}
	return strconv.FormatInt(bits.Int(), 10)
}

// indexName names outer indices i0, i1… and inner ones j0, j1….
func indexName(dimension, outer int) string {
	if dimension < outer {
		return "i" + strconv.Itoa(dimension)
	}
	return "j" + strconv.Itoa(dimension-outer)
}

func formatAccess(access *Access, outer int) string {
	var terms []string
	if !access.Offset.Is(0) {
		terms = append(terms, access.Offset.String())
	}
	for dimension, stride := range access.Strides {
		switch {
		case stride.Is(0):
		case stride.Is(1):
			terms = append(terms, indexName(dimension, outer))
		default:
			terms = append(terms, stride.String()+"*"+indexName(dimension, outer))
		}
	}
	for number, indirect := range access.Indirect {
		terms = append(terms, fmt.Sprintf("%s*index%d<%s", indirect.Stride, number, indirect.Size))
	}
	if len(terms) == 0 {
		terms = []string{"0"}
	}
	return "b" + strconv.Itoa(access.Buffer) + "[" + strings.Join(terms, " + ") + "]"
}

func formatValue(value Value) string { return "%" + strconv.Itoa(int(value)) }

func formatArgs(args []Value) string {
	var text strings.Builder
	for _, arg := range args {
		text.WriteString(" " + formatValue(arg))
	}
	return text.String()
}

func joinInts(values []Int) string {
	texts := make([]string, len(values))
	for index, value := range values {
		texts[index] = value.String()
	}
	return strings.Join(texts, ", ")
}
