package symbolic

import (
	"math"
	"strings"

	"fusee/bytecode"
	"fusee/internal/slice"
	"fusee/trace"
)

// operatorRow names one binary operator: its function in the module operator, its special methods, and its sign.
type operatorRow struct {
	function, method, reflected, sign string
	inplace                           *inplaceRow
}

type inplaceRow struct{ function, method string }

// binaryOperators is indexed by BINARY_OP's argument (CPython 3.11, opcode.h, NB_*).
var binaryOperators = makeBinaryOperators()

func makeBinaryOperators() []operatorRow {
	names := []struct{ function, method, sign string }{
		{"add", "add", "+"}, {"and_", "and", "&"}, {"floordiv", "floordiv", "//"}, {"lshift", "lshift", "<<"}, {"matmul", "matmul", "@"},
		{"mul", "mul", "*"}, {"mod", "mod", "%"}, {"or_", "or", "|"}, {"pow", "pow", "**"}, {"rshift", "rshift", ">>"}, {"sub", "sub", "-"},
		{"truediv", "truediv", "/"}, {"xor", "xor", "^"},
	}
	rows := make([]operatorRow, 0, 2*len(names))
	for _, n := range names {
		rows = append(rows, operatorRow{n.function, "__" + n.method + "__", "__r" + n.method + "__", n.sign, nil})
	}
	for _, n := range names {
		inplace := &inplaceRow{"i" + n.method, "__i" + n.method + "__"}
		rows = append(rows, operatorRow{n.function, "__" + n.method + "__", "__r" + n.method + "__", n.sign + "=", inplace})
	}
	return rows
}

// target is the function that Python computes an operator between constants with: in place it does the same with values that never change, but
// its errors say so.
func (row operatorRow) target(left Value) string {
	return row.name(!row.changes(left))
}

// name is that of the operator's function in the module operator, or of the one in place where that is asked for and there.
func (row operatorRow) name(inPlace bool) string {
	if inPlace && row.inplace != nil {
		return "operator." + row.inplace.function
	}
	return "operator." + row.function
}

// changes says whether an operator in place may change its left operand.
func (row operatorRow) changes(left Value) bool {
	switch left := left.(type) {
	case *Constant, *Tuple:
		return false
	case *Set:
		return !left.frozen
	case *List:
		return row.function == "add" || row.function == "mul"
	}
	return true
}

// operatorOf is the row of a function of the module operator, not in place.
func operatorOf(function string) operatorRow {
	for _, row := range binaryOperators {
		if row.function == function {
			return row
		}
	}
	return operatorRow{}
}

// binary is PyNumber_Add and its kin: the left operand's method, then the right one's reflected method.
func (in *Interpreter) binary(row operatorRow, left, right Value) (Value, error) {
	operands, err := in.lookAll([]Value{left, right})
	if err != nil {
		return nil, err
	}
	left, right = operands[0], operands[1]
	if value, done := in.computeAddress(row, left, right); done {
		return value, nil
	}
	if left, right, err = in.numbersOfIdentities(left, right); err != nil {
		return nil, err
	}
	if value, handled, err := in.arrayOperator(row.function, row.inplace != nil, left, right); handled || err != nil {
		return value, err
	}
	if value, handled, err := in.chosenBinary(row, left, right); handled || err != nil {
		return value, err
	}
	if value, handled, err := in.scalarBinary(row, left, right); handled || err != nil {
		return value, err
	}
	if isTensor(left) || isTensor(right) {
		return in.tensorBinary(row, left, right)
	}
	if (isNumber(left) || isNumber(right)) && !hasMethods(left) && !hasMethods(right) {
		if value, err := in.numberBinary(row, left, right); value != nil || err != nil {
			return value, err
		}
		if operands, err = in.realAll(operands); err != nil {
			return nil, err
		}
		left, right = operands[0], operands[1]
	}
	if value, done, err := in.builtinBinary(row, left, right); done || err != nil {
		return value, err
	}
	if hasMethods(left) || hasMethods(right) {
		return in.methodBinary(row, left, right)
	}
	if value, ok, err := in.evaluateConstant(row.target(left), left, right); ok || err != nil {
		return value, err
	}
	return nil, unsupported(reasonOperator, "%s %s %s", left.typeName(), row.sign, right.typeName())
}

func isTensor(value Value) bool {
	_, ok := value.(*Tensor)
	return ok
}

func isNumber(value Value) bool {
	_, ok := value.(*Number)
	return ok
}

// hasMethods tells values whose operators are methods written in Python.
func hasMethods(value Value) bool {
	if tuple, ok := value.(*Tuple); ok {
		return tuple.class != nil && userClass(tuple.class.name)
	}
	_, instance := value.(*Instance)
	return instance
}

func (in *Interpreter) tensorBinary(row operatorRow, left, right Value) (Value, error) {
	if hasMethods(left) || hasMethods(right) {
		return in.methodBinary(row, left, right)
	}
	return in.torchCall(row.name(isTensor(left)), Arguments{Positional: []Value{left, right}})
}

// builtinBinary handles constants and builtin containers; done is false where neither operand's type knows the operator.
func (in *Interpreter) builtinBinary(row operatorRow, left, right Value) (Value, bool, error) {
	a, okLeft := left.(*Constant)
	b, okRight := right.(*Constant)
	if okLeft && okRight {
		if folded := foldBinary(row.function, a.Value, b.Value); folded != nil {
			return &Constant{folded}, true, nil
		}
		value, ok, err := in.evaluateConstant(row.target(left), left, right)
		return value, ok, err
	}
	switch row.function {
	case "add":
		return in.concatenate(row, left, right)
	case "mul":
		return in.repeat(row, left, right)
	case "or_", "and_", "sub", "xor":
		return in.setOrDictOperator(row, left, right)
	}
	return nil, false, nil
}

func (in *Interpreter) concatenate(row operatorRow, left, right Value) (Value, bool, error) {
	if row.inplace != nil && hasMethods(right) {
		if value, err := in.reflected(row, left, right); value != nil || err != nil {
			return value, true, err
		}
	}
	switch a := left.(type) {
	case *Deque:
		return in.dequeConcatenate(row, a, right)
	case *List:
		if row.inplace != nil {
			return a, true, in.extendList(a, right)
		}
		if b, ok := right.(*List); ok {
			first, err := a.contents(in)
			if err != nil {
				return nil, true, err
			}
			second, err := b.contents(in)
			return newList(append(append([]Value{}, first...), second...)), true, err
		}
	case *Tuple:
		if b, ok := right.(*Tuple); ok && !hasMethods(a) && !hasMethods(b) {
			return &Tuple{items: append(append([]Value{}, a.items...), b.items...), class: sizeClass(a, b)}, true, nil
		}
	}
	return nil, false, nil
}

// reflected is what the right operand's reflected method gives, nil where it gives nothing: it goes before a sequence's own in-place form.
func (in *Interpreter) reflected(row operatorRow, left, right Value) (Value, error) {
	class, err := in.classOf(right)
	if err != nil {
		return nil, err
	}
	switch left.(type) {
	case *List, *Deque:
		return in.tryMethod(class, row.reflected, right, left)
	}
	return nil, nil
}

// sizeClass keeps torch.Size through concatenation, as torch.Size.__add__ does.
func sizeClass(a, b *Tuple) *Class {
	if a.class != nil && a.class.name == "torch.Size" {
		return a.class
	}
	if b.class != nil && b.class.name == "torch.Size" {
		return b.class
	}
	return nil
}

// maxSequence is the number of pointers that CPython can count the bytes of; maxUnrolled what capture takes apart.
const (
	maxSequence = math.MaxInt64 / 8
	maxUnrolled = 1_000_000
)

func (in *Interpreter) repeat(row operatorRow, left, right Value) (Value, bool, error) {
	count, ok := constantInt(right)
	sequence := left
	if !ok {
		if count, ok = constantInt(left); !ok {
			return nil, false, nil
		}
		sequence = right
	}
	var items []Value
	var err error
	switch s := sequence.(type) {
	case *List:
		items, err = s.contents(in)
	case *Tuple:
		items = s.items
	default:
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	if tuple, ok := sequence.(*Tuple); ok && tuple.class == nil && count == 1 {
		return tuple, true, nil
	}
	if size := int64(len(items)); size > 0 && count > maxUnrolled/size {
		if count > maxSequence/size {
			return nil, true, in.raiseWith(in.builtinClass("MemoryError"))
		}
		return nil, true, unsupported(reasonLength, "a sequence of %d times %d items", count, size)
	}
	repeated := []Value{}
	for ; count > 0; count-- {
		repeated = append(repeated, items...)
	}
	if list, isList := sequence.(*List); isList {
		if row.inplace != nil && sequence == left {
			return list, true, in.replaceList(list, repeated)
		}
		return newList(repeated), true, nil
	}
	return &Tuple{items: repeated}, true, nil
}

func (in *Interpreter) setOrDictOperator(row operatorRow, left, right Value) (Value, bool, error) {
	if a, ok := left.(*Dict); ok && row.function == "or_" {
		b, ok := right.(*Dict)
		if !ok {
			return nil, false, nil
		}
		return modelled(in.mergeDicts(row, a, b))
	}
	return in.setLikeOperator(row, left, right)
}

// mergeDicts is | and |= of two dicts, of which one of a type with an operator of its own says what the result is, the left one first
// (defdict_or and odict_or of CPython); a Counter's operator, written in Python, compares counts.
func (in *Interpreter) mergeDicts(row operatorRow, left, right *Dict) (Value, error) {
	counts := libraryDictOf(left) == "collections.Counter"
	if counts && (row.inplace != nil || libraryDictOf(right) == "collections.Counter") {
		return nil, unsupported(reasonOperator, "Counter %s %s", row.sign, right.typeName())
	}
	if row.inplace != nil {
		return left, in.updateDict(left, right)
	}
	like := newDict()
	for _, side := range []*Dict{right, left} {
		if library := libraryDictOf(side); library != "" && library != "collections.Counter" {
			like = side
		}
	}
	merged := newDict()
	if err := in.takeDictClass(merged, like); err != nil {
		return nil, err
	}
	if err := in.updateDict(merged, left); err != nil {
		return nil, err
	}
	return merged, in.updateDict(merged, right)
}

func (in *Interpreter) operandClasses(left, right Value) (*Class, *Class, error) {
	leftClass, err := in.classOf(left)
	if err != nil {
		return nil, nil, err
	}
	rightClass, err := in.classOf(right)
	return leftClass, rightClass, err
}

// methodBinary is the dispatch over methods written in Python: a subclass's reflected method goes first.
func (in *Interpreter) methodBinary(row operatorRow, left, right Value) (Value, error) {
	leftClass, rightClass, err := in.operandClasses(left, right)
	if err != nil {
		return nil, err
	}
	if row.inplace != nil {
		if value, err := in.tryMethod(leftClass, row.inplace.method, left, right); value != nil || err != nil {
			return value, err
		}
	}
	reflectedFirst := rightClass != leftClass && rightClass.inherits(leftClass)
	if reflectedFirst {
		if reflectedFirst, err = in.overloaded(row.reflected, leftClass, rightClass); err != nil {
			return nil, err
		}
	}
	order := []func() (Value, error){
		func() (Value, error) { return in.tryMethod(leftClass, row.method, left, right) },
		func() (Value, error) {
			if rightClass == leftClass {
				return nil, nil
			}
			return in.tryMethod(rightClass, row.reflected, right, left)
		},
	}
	if reflectedFirst {
		order[0], order[1] = order[1], order[0]
	}
	for _, attempt := range order {
		if value, err := attempt(); value != nil || err != nil {
			return value, err
		}
	}
	return nil, in.raise("TypeError", "unsupported operand type(s) for "+row.sign+": '"+shortName(leftClass.name)+"' and '"+shortName(rightClass.name)+"'")
}

// overloaded tells whether a class defines a reflected method other than the one that a class of the program which it derives from has:
// method_is_overloaded of CPython's typeobject.c.
func (in *Interpreter) overloaded(method string, base, class *Class) (bool, error) {
	found, above, err := in.classLookup(base, method)
	if err != nil || above == nil {
		return err == nil, err
	}
	if inPython, err := in.isPythonFunction(found); err != nil || !inPython {
		return err == nil, err
	}
	_, own, err := in.classLookup(class, method)
	return own != nil && !sameClass(own, above), err
}

// tryMethod calls a special method; nil when it is absent or returns NotImplemented.
func (in *Interpreter) tryMethod(class *Class, name string, self Value, arguments ...Value) (Value, error) {
	method, err := in.specialMethod(class, name, self)
	if err != nil || method == nil {
		return nil, err
	}
	if isTensor(self) {
		return in.call(method, Arguments{Positional: arguments})
	}
	value, err := in.call(method, Arguments{Positional: arguments})
	if err != nil {
		return nil, err
	}
	if value, err = in.look(value); err != nil {
		return nil, err
	}
	if constant, ok := value.(*Constant); ok && constant.Value == (notImplemented{}) {
		return nil, nil
	}
	if library, ok := value.(*Opaque); ok && library.kind == "NotImplementedType" {
		return nil, nil
	}
	return value, nil
}

// identical is the `is` operator.
func (in *Interpreter) identical(left, right Value) (bool, error) {
	if a, ok := left.(*Lazy); ok {
		if b, ok := right.(*Lazy); ok && a == b {
			return true, nil
		}
	}
	for _, pair := range [][2]Value{{left, right}, {right, left}} {
		if isNone(pair[0]) {
			if object, err := in.isUntouchedObject(pair[1]); object || err != nil {
				return false, err
			}
		}
	}
	if known, same, err := in.identicalNumbers(left, right); known || err != nil {
		return same, err
	}
	operands, err := in.realAll([]Value{left, right})
	if err != nil {
		return false, err
	}
	left, right = operands[0], operands[1]
	a, okLeft := left.(*Constant)
	b, okRight := right.(*Constant)
	switch {
	case okLeft && okRight:
		return in.identicalConstants(a, b)
	case left == right:
		return true, nil
	case isNone(left) || isNone(right):
		return false, nil
	}
	if x, ok := left.(*Class); ok {
		y, ok := right.(*Class)
		return ok && sameClass(x, y), nil
	}
	if x, ok := left.(*Tuple); ok && x.class == nil && len(x.items) == 0 {
		if y, ok := right.(*Tuple); ok && y.class == nil && len(y.items) == 0 {
			return true, nil // CPython keeps one empty tuple
		}
	}
	if x, ok := left.(*LibraryValue); ok {
		if y, ok := right.(*LibraryValue); ok {
			if x.kind == "device" {
				return false, unsupported(reasonIdentity, "torch.device")
			}
			return x.kind == y.kind && x.text == y.text, nil
		}
	}
	if x, ok := left.(*Builtin); ok {
		if y, ok := right.(*Builtin); ok && x.self == nil && y.self == nil {
			return x.name == y.name, nil
		}
	}
	if in.isChosen(left, right) || isChosenNumber(left, right) != nil {
		return false, unsupported(reasonIdentity, "which of some tensors is the largest or least")
	}
	return false, in.guardDistinct(left, right)
}

// isUntouchedObject tells values that nothing has looked into and that are no constants, such as None: a guard on the type says so, and leaves
// open what the object holds.
func (in *Interpreter) isUntouchedObject(value Value) (bool, error) {
	lazy, ok := value.(*Lazy)
	if !ok || lazy.value != nil {
		return false, nil
	}
	id, isObject := lazy.reference.(trace.ObjectID)
	if !isObject {
		return false, nil
	}
	d, err := in.session.Object(id)
	if err != nil || d.TypeID == 0 {
		return false, err
	}
	if lazy.source != nil && lazy.source.Accessor.Kind != "object" {
		lazy.source.Require(in.reason(), "type", objectWire(d.TypeID))
	}
	return true, nil
}

// identicalNumbers answers `is` for a number and something that is none.
func (in *Interpreter) identicalNumbers(left, right Value) (known, same bool, err error) {
	operands, err := in.lookAll([]Value{left, right})
	if err != nil || !isNumber(operands[0]) && !isNumber(operands[1]) {
		return false, false, err
	}
	if operands[0] == operands[1] {
		return true, true, nil
	}
	_, first := operandOf(operands[0])
	_, second := operandOf(operands[1])
	return first == nil || second == nil, false, nil
}

// guardDistinct guards that two objects which live outside stay different ones.
func (in *Interpreter) guardDistinct(left, right Value) error {
	a, b := objectOf(left), objectOf(right)
	if a == nil || b == nil || a.source == nil || b.source == nil || a.source.Accessor.Kind == "object" && b.source.Accessor.Kind == "object" {
		return nil
	}
	in.program.Relate(in.reason(), "distinct", a.source, b.source)
	return nil
}

// singleton tells the constants of which Python has one object each.
func singleton(object bytecode.Object) bool {
	switch object.(type) {
	case bytecode.NoneType, bool, bytecode.EllipsisType, notImplemented:
		return true
	}
	return false
}

func (in *Interpreter) identicalConstants(a, b *Constant) (bool, error) {
	if singleton(a.Value) {
		return a.Value == b.Value, nil
	}
	if constantTypeName(a.Value) != constantTypeName(b.Value) {
		return false, nil
	}
	if a == b {
		return true, nil
	}
	if n, ok := a.Value.(int64); ok && n >= -5 && n <= 256 {
		return a.Value == b.Value, nil // CPython keeps one object for each small int
	}
	stop := &Unsupported{reasonIdentity, constantTypeName(a.Value)}
	if equal, known := foldCompare("eq", a.Value, b.Value); known && equal {
		// Code that loads both would load one object: what the program computed, Python has to.
		for _, c := range []*Constant{a, b} {
			if step := in.computed[c]; step > 0 {
				return false, &restart{step: step, reason: stop}
			}
		}
	}
	return false, stop
}

// noteComputed remembers which step computed the constant on top of the stack, of which there may be several objects.
func (in *Interpreter) noteComputed(frame *Frame) {
	if !computing[frame.current.Opcode] || len(frame.stack) == 0 {
		return
	}
	c, ok := frame.peek(1).(*Constant)
	if ok && !singleton(c.Value) && in.computed[c] == 0 {
		in.computed[c] = frame.step
	}
}

// computing are the instructions that push what they, or what they call, compute.
var computing = map[bytecode.Opcode]bool{
	bytecode.Call: true, bytecode.CallFunctionEx: true, bytecode.BinaryOp: true, bytecode.BinarySubscr: true, bytecode.FormatValue: true,
	bytecode.BuildString: true, bytecode.UnaryNegative: true, bytecode.UnaryPositive: true, bytecode.UnaryInvert: true,
}

// evaluateConstant asks the host to run a pure function over constants; ok is false when an operand cannot be sent.
func (in *Interpreter) evaluateConstant(name string, operands ...Value) (Value, bool, error) {
	wired, ok := slice.MapAll(operands, in.wire)
	if !ok {
		return nil, false, nil
	}
	return modelled(in.askHost(nameWire(name), wired, nil))
}

// wire writes a value as a reference that the host can rebuild; false when it depends on anything the capture computed or changed.
func (in *Interpreter) wire(value Value) (bytecode.Object, bool) {
	value, err := in.real(value)
	if err != nil {
		return nil, false
	}
	switch v := value.(type) {
	case *Constant:
		if _, special := v.Value.(notImplemented); special {
			return nameWire("builtins.NotImplemented"), true
		}
		return bytecode.Tuple{v.Value}, true
	case *Tuple:
		if v.class != nil {
			if v.object != nil && len(v.fields) == 0 {
				_, known := in.wireItems("tuple", v.items) // which guards them
				return int64(v.object.id), known
			}
			if v.class.name != "torch.Size" {
				return nil, false
			}
			return in.wireSize(v)
		}
		return in.wireItems("tuple", v.items)
	case *List:
		items, err := v.contents(in)
		if err != nil {
			return nil, false
		}
		return in.wireItems("list", items)
	case *Set:
		return in.wireItems(v.typeName(), v.items)
	case *Dict:
		return in.wireDict(v)
	case *SliceValue:
		return in.wireItems("slice", []Value{v.start, v.stop, v.step})
	case *Class:
		if v.made != nil || v.remake != nil {
			return nil, false // each call has a class of its own
		}
		if v.id == 0 {
			resolved, err := in.namedClass(v.name)
			if err != nil {
				return nil, false
			}
			return int64(resolved.id), true
		}
		return int64(v.id), true
	case *LibraryValue:
		if v.id == 0 {
			id, err := in.resolveLibrary(v)
			if err != nil {
				return nil, false
			}
			v.id = id
		}
		return int64(v.id), true
	case *Instance:
		if v.object != nil && strings.HasPrefix(v.class.name, "typing.") {
			in.pin(v.object)
			return int64(v.object.id), true
		}
		if v.hasHostBase() {
			return int64(v.object.id), true
		}
	case *Opaque:
		if v.kind == "types.GenericAlias" || v.kind == "types.UnionType" || strings.HasPrefix(v.kind, "numpy.dtype") {
			in.pin(v.object)
			return int64(v.object.id), true
		}
		if immutableObject(v.kind) {
			return int64(v.object.id), true
		}
	case *Builtin:
		if v.object != nil {
			return int64(v.object.id), true
		}
		if v.self == nil {
			return nameWire(v.name), true
		}
	}
	return nil, false
}

// pin guards that a live object stays the very one, as the capture depends on all of it.
func (in *Interpreter) pin(object *existing) {
	if object.source != nil && object.source.Accessor.Kind != "object" {
		object.source.Require(in.reason(), "is", objectWire(object.id))
	}
}

// wireSize has the host make a torch.Size, which prints and adds otherwise than a tuple.
func (in *Interpreter) wireSize(v *Tuple) (bytecode.Object, bool) {
	items, ok := in.wireItems("tuple", v.items)
	if !ok {
		return nil, false
	}
	id, err := in.madeByHost("torch.Size", items)
	return int64(id), err == nil && id != 0
}

func (in *Interpreter) wireItems(kind string, items []Value) (bytecode.Object, bool) {
	wired, ok := slice.MapAll(items, in.wire)
	if !ok {
		return nil, false
	}
	if kind == "slice" {
		return append(bytecode.Tuple{kind}, wired...), true
	}
	return bytecode.Tuple{kind, &bytecode.List{Items: wired}}, true
}

func (in *Interpreter) wireDict(v *Dict) (bytecode.Object, bool) {
	entries, err := v.live(in)
	if err != nil || v.class != nil {
		return nil, false
	}
	pairs := &bytecode.List{}
	for _, entry := range entries {
		key, okKey := in.wire(entry.key)
		value, okValue := in.wire(entry.value)
		if !okKey || !okValue {
			return nil, false
		}
		pairs.Items = append(pairs.Items, bytecode.Tuple{key, value})
	}
	return bytecode.Tuple{"dict", pairs}, true
}

// resolveLibrary finds the live object of a torch constant that the capture made from metadata (x.dtype of a new tensor).
func (in *Interpreter) resolveLibrary(v *LibraryValue) (trace.ObjectID, error) {
	absent := unsupported(reasonAttribute, "torch.%s", v.text)
	if v.kind != "device" {
		return in.findNamed("torch."+v.text, absent)
	}
	id, err := in.madeByHost("torch.device", bytecode.Tuple{v.text})
	if err == nil && id == 0 {
		err = absent
	}
	return id, err
}

var unaryNames = map[bytecode.Opcode][2]string{
	bytecode.UnaryPositive: {"pos", "__pos__"}, bytecode.UnaryNegative: {"neg", "__neg__"}, bytecode.UnaryInvert: {"invert", "__invert__"},
}

func (in *Interpreter) unary(op bytecode.Opcode, operand Value) (Value, error) {
	return in.unaryNamed(unaryNames[op], operand)
}

func (in *Interpreter) unaryNamed(names [2]string, operand Value) (Value, error) {
	number, err := in.numberOf(operand)
	if number != nil {
		if value, err := in.numberUnary(names[0], number); value != nil || err != nil {
			return value, err
		}
	}
	if err == nil {
		operand, err = in.real(operand)
	}
	if err != nil {
		return nil, err
	}
	switch v := operand.(type) {
	case *Array:
		return in.arrayCall("operator", names[0], Arguments{Positional: []Value{v}})
	case *Tensor:
		return in.torchCall("operator."+names[0], Arguments{Positional: []Value{v}})
	case *Instance:
		method, err := in.specialMethod(v.class, names[1], v)
		if err != nil {
			return nil, err
		}
		if method != nil {
			return in.tailCall(method, Arguments{})
		}
	case *Constant:
		if folded := foldUnary(names[0], v.Value); folded != nil {
			return &Constant{folded}, nil
		}
	}
	if value, ok, err := in.evaluateConstant("operator."+names[0], operand); ok || err != nil {
		return value, err
	}
	return nil, unsupported(reasonOperator, "%s %s", names[0], operand.typeName())
}
