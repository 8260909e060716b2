package loop

// Builder appends stages and instructions to a kernel. It checks nothing; Verify does.
type Builder struct {
	Kernel *Kernel
	next   Value
}

// NewBuilder starts a kernel of the given name over the outer sizes.
func NewBuilder(name string, outer ...Int) *Builder {
	return &Builder{Kernel: &Kernel{Name: name, Outer: outer}}
}

// Buffer declares a pointer argument aligned to its element and returns its number.
func (b *Builder) Buffer(name string, typ Type, mode Mode) int {
	b.Kernel.Buffers = append(b.Kernel.Buffers, Buffer{Name: name, Type: typ, Mode: mode, Alignment: typ.Bytes()})
	return len(b.Kernel.Buffers) - 1
}

// Scalar declares a scalar argument and returns its number.
func (b *Builder) Scalar() int {
	b.Kernel.Scalars++
	return b.Kernel.Scalars - 1
}

// Stage opens the next stage with the given inner sizes.
func (b *Builder) Stage(inner ...Int) {
	b.Kernel.Stages = append(b.Kernel.Stages, Stage{Inner: inner, First: b.next})
}

// Append adds an instruction to the open stage and returns its value.
func (b *Builder) Append(instruction Instruction) Value {
	stage := &b.Kernel.Stages[len(b.Kernel.Stages)-1]
	stage.Body = append(stage.Body, instruction)
	b.next++
	return b.next - 1
}

// Load reads an element. Strides run over the outer and then the inner indices.
func (b *Builder) Load(buffer int, offset Int, strides ...Int) Value {
	access := &Access{Buffer: buffer, Offset: offset, Strides: strides}
	return b.Append(Instruction{Op: OpLoad, Type: b.Kernel.Buffers[buffer].Type, Access: access})
}

// Gather reads an element at computed indices, one I64 for each of indirect, where the Bool condition holds; elsewhere it gives 0.
func (b *Builder) Gather(buffer int, offset Int, strides []Int, condition Value, indices []Value, indirect []Indirect) Value {
	access := &Access{Buffer: buffer, Offset: offset, Strides: strides, Indirect: indirect}
	args := append([]Value{condition}, indices...)
	return b.Append(Instruction{Op: OpLoad, Type: b.Kernel.Buffers[buffer].Type, Args: args, Access: access})
}

// Store writes an element.
func (b *Builder) Store(value Value, buffer int, offset Int, strides ...Int) {
	access := &Access{Buffer: buffer, Offset: offset, Strides: strides}
	b.Append(Instruction{Op: OpStore, Type: b.Kernel.Buffers[buffer].Type, Args: []Value{value}, Access: access})
}

// Constant makes a constant of type typ.
func (b *Builder) Constant(typ Type, bits Bits) Value {
	return b.Append(Instruction{Op: OpConstant, Type: typ, Bits: bits})
}

// Cast converts a value.
func (b *Builder) Cast(typ Type, value Value) Value {
	return b.Append(Instruction{Op: OpCast, Type: typ, Args: []Value{value}})
}

// Do appends an operation on values with a result of type typ.
func (b *Builder) Do(op Op, typ Type, args ...Value) Value {
	return b.Append(Instruction{Op: op, Type: typ, Args: args})
}

// Reduce combines value over the open stage's inner points.
func (b *Builder) Reduce(reduction Reduction, typ Type, value Value) Value {
	return b.Append(Instruction{Op: OpReduce, Type: typ, Args: []Value{value}, Reduction: reduction})
}
