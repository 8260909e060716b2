package loop

import (
	"cmp"

	"github.com/cockroachdb/errors"
)

// Verify checks everything that the package comment promises of a kernel, so that an emitter need not. The error names
// the kernel and the instruction.
func (k *Kernel) Verify() error {
	verifier := &verifier{kernel: k, visible: map[Value]Type{}}
	if err := verifier.run(); err != nil {
		return errors.WithDetail(errors.Wrapf(err, "kernel %s", k.Name), k.String())
	}
	return nil
}

type verifier struct {
	kernel  *Kernel
	visible map[Value]Type // values that may be used here
	stage   *Stage
	next    Value
}

func (v *verifier) run() error {
	if err := v.header(); err != nil {
		return err
	}
	for index := range v.kernel.Stages {
		v.stage = &v.kernel.Stages[index]
		if err := v.runStage(); err != nil {
			return errors.Wrapf(err, "stage %d", index)
		}
	}
	return nil
}

func (v *verifier) header() error {
	if !identifier(v.kernel.Name) {
		return errors.Newf("name %q is no C identifier", v.kernel.Name)
	}
	for index, buffer := range v.kernel.Buffers {
		alignment := buffer.Alignment
		if buffer.Type.Bytes() == 0 || alignment < buffer.Type.Bytes() || alignment&(alignment-1) != 0 {
			return errors.Newf("buffer %d: type %s with alignment %d", index, buffer.Type, alignment)
		}
	}
	if err := cmp.Or(v.span(), v.parts()); err != nil {
		return err
	}
	return v.ints(v.kernel.Outer)
}

// parts checks that a kernel in parts has one dimension at most, whose positions it does not ask for.
func (v *verifier) parts() error {
	if v.kernel.Parts == nil {
		return nil
	}
	if len(v.kernel.Outer) > 1 || !v.kernel.Pointwise() || v.kernel.Span != nil {
		return errors.Newf("parts of a kernel over %d dimensions", len(v.kernel.Outer))
	}
	for _, stage := range v.kernel.Stages {
		for _, in := range stage.Body {
			if in.Op == OpIndex {
				return errors.New("a position in a kernel in parts")
			}
		}
	}
	return nil
}

func (v *verifier) span() error {
	span := v.kernel.Span
	if span == nil {
		return nil
	}
	if span.Dimension < 0 || span.Dimension >= len(v.kernel.Outer) {
		return errors.Newf("pieces along dimension %d of %d", span.Dimension, len(v.kernel.Outer))
	}
	return v.ints([]Int{span.Size, span.Total})
}

// inner checks the sizes of inner dimensions, which alone may be the length of a piece.
func (v *verifier) inner(sizes []Int) error {
	for _, size := range sizes {
		if argument, ok := size.Argument(); ok && v.kernel.Span != nil && argument == v.kernel.Scalars {
			continue
		}
		if err := v.ints([]Int{size}); err != nil {
			return err
		}
	}
	return nil
}

func identifier(name string) bool {
	for index, letter := range name {
		isLetter := letter == '_' || letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z'
		if !isLetter && (index == 0 || letter < '0' || letter > '9') {
			return false
		}
	}
	return name != ""
}

func (v *verifier) ints(values []Int) error {
	for _, value := range values {
		if argument, ok := value.Argument(); ok && argument >= v.kernel.Scalars {
			return errors.Newf("scalar argument %d of %d", argument, v.kernel.Scalars)
		}
	}
	return nil
}

func (v *verifier) runStage() error {
	if err := v.inner(v.stage.Inner); err != nil {
		return err
	}
	if v.stage.First != v.next {
		return errors.Newf("first value is %d, not %d", v.stage.First, v.next)
	}
	var reductions []Value
	for index := range v.stage.Body {
		in := &v.stage.Body[index]
		if err := v.instruction(in); err != nil {
			return errors.Wrapf(err, "value %d (%s)", v.next, in.Op)
		}
		switch in.Op {
		case OpReduce:
			reductions = append(reductions, v.next)
		case OpStore:
		default:
			v.visible[v.next] = in.Type
		}
		v.next++
	}
	v.leaveStage(reductions)
	return nil
}

// leaveStage hides what only the stage's inner points could see and shows its reductions.
func (v *verifier) leaveStage(reductions []Value) {
	if len(v.stage.Inner) > 0 {
		for value := v.stage.First; value < v.next; value++ {
			delete(v.visible, value)
		}
	}
	for _, value := range reductions {
		v.visible[value] = v.kernel.Instruction(value).Type
	}
}

func (v *verifier) instruction(in *Instruction) error {
	if in.Op == OpInvalid || in.Op >= opCount || in.Type == Invalid || in.Type >= typeCount {
		return errors.Newf("operation %d of type %d", in.Op, in.Type)
	}
	info := in.Op.info()
	if info.arguments >= 0 && len(in.Args) != info.arguments {
		return errors.Newf("%d arguments instead of %d", len(in.Args), info.arguments)
	}
	types := make([]Type, len(in.Args))
	for index, arg := range in.Args {
		typ, ok := v.visible[arg]
		if !ok {
			return errors.Newf("argument %%%d is not visible here", arg)
		}
		types[index] = typ
	}
	if in.Short && (!in.Op.HasShortForm() || in.Type != F32) {
		return errors.Newf("no short form for %s", in.Type)
	}
	if in.Op.Elementwise() {
		return elementwise(in, types)
	}
	return v.special(in, types)
}

func elementwise(in *Instruction, types []Type) error {
	for _, typ := range types {
		if typ != types[0] || !typ.Is(in.Op.Domain()) {
			return errors.Newf("arguments of types %v", types)
		}
	}
	want := types[0]
	if in.Op.Predicate() {
		want = Bool
	}
	if in.Type != want {
		return errors.Newf("result type %s instead of %s", in.Type, want)
	}
	return nil
}

func (v *verifier) special(in *Instruction, types []Type) error {
	switch in.Op {
	case OpArgument:
		return require(in.Index >= 0 && in.Index < v.kernel.Scalars && (in.Type == I64 || in.Type == F64), "argument %d", in.Index)
	case OpIndex:
		return require(in.Index >= 0 && in.Index < v.rank() && in.Type == I64, "dimension %d of %d", in.Index, v.rank())
	case OpLoad:
		return v.access(in, types, Write)
	case OpStore:
		if len(types) == 0 || types[0] != in.Type {
			return errors.Newf("stores %v as %s", types, in.Type)
		}
		return v.access(in, types[1:], Read)
	case OpBitcast:
		return require(types[0].Bytes() == in.Type.Bytes(), "from %s to %s", types[0], in.Type)
	case OpSelect:
		return require(types[0] == Bool && types[1] == in.Type && types[2] == in.Type, "of %v", types)
	case OpReduce:
		return v.reduce(in, types[0])
	}
	return nil
}

func require(condition bool, format string, args ...any) error {
	if condition {
		return nil
	}
	return errors.Newf(format, args...)
}

func (v *verifier) rank() int { return len(v.kernel.Outer) + len(v.stage.Inner) }

// access checks a load's or store's place; mask holds the types of the optional condition and of indices.
func (v *verifier) access(in *Instruction, mask []Type, forbidden Mode) error {
	access := in.Access
	if access == nil || access.Buffer < 0 || access.Buffer >= len(v.kernel.Buffers) {
		return errors.New("no such buffer")
	}
	buffer := v.kernel.Buffers[access.Buffer]
	if buffer.Type != in.Type || buffer.Mode == forbidden {
		return errors.Newf("%s access to a %s %s buffer", in.Type, buffer.Mode, buffer.Type)
	}
	if len(access.Strides) != v.rank() {
		return errors.Newf("%d strides in %d dimensions", len(access.Strides), v.rank())
	}
	if err := condition(access, mask); err != nil {
		return err
	}
	if len(access.Indirect) > 0 && in.Op != OpLoad {
		return errors.New("stores at a computed index")
	}
	numbers := append([]Int{access.Offset}, access.Strides...)
	for _, indirect := range access.Indirect {
		numbers = append(numbers, indirect.Stride, indirect.Size)
	}
	return v.ints(numbers)
}

// condition checks the types of the arguments that say whether and where to access memory.
func condition(access *Access, types []Type) error {
	switch indices := len(access.Indirect); {
	case indices == 0 && len(types) == 0:
	case len(types) != 1+indices || types[0] != Bool:
		return errors.Newf("condition and %d indices of types %v", indices, types)
	default:
		for _, typ := range types[1:] {
			if typ != I64 {
				return errors.Newf("index of type %s", typ)
			}
		}
	}
	return nil
}

func (v *verifier) reduce(in *Instruction, argument Type) error {
	if len(v.stage.Inner) == 0 {
		return errors.New("reduction outside an inner loop")
	}
	switch {
	case in.Reduction == NoReduction || in.Reduction >= reductionCount:
		return errors.Newf("reduction %d", in.Reduction)
	case in.Reduction.Positional():
		return require(in.Type == I64 && argument.Is(ClassNumber|ClassBool), "of %s to %s", argument, in.Type)
	case in.Reduction == Any || in.Reduction == All:
		return require(in.Type == Bool && argument == Bool, "of %s to %s", argument, in.Type)
	case in.Reduction == Sum || in.Reduction == Product:
		return require(in.Type == argument && argument.Is(ClassNumber), "of %s to %s", argument, in.Type)
	}
	return require(in.Type == argument && argument.Is(ClassNumber|ClassBool), "of %s to %s", argument, in.Type)
}
