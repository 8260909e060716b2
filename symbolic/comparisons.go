package symbolic

import (
	"math"
	"math/cmplx"
	"slices"
)

// comparisonRow names one rich comparison and its reflection.
type comparisonRow struct{ function, method, reflected, sign string }

// comparisons is indexed by COMPARE_OP's argument.
var comparisons = []comparisonRow{
	{"lt", "__lt__", "__gt__", "<"}, {"le", "__le__", "__ge__", "<="}, {"eq", "__eq__", "__eq__", "=="},
	{"ne", "__ne__", "__ne__", "!="}, {"gt", "__gt__", "__lt__", ">"}, {"ge", "__ge__", "__le__", ">="},
}

// compare is PyObject_RichCompare.
func (in *Interpreter) compare(row comparisonRow, left, right Value) (Value, error) {
	operands, err := in.lookAll([]Value{left, right})
	if err != nil {
		return nil, err
	}
	left, right = operands[0], operands[1]
	if chosen := isChosenNumber(left, right); chosen != nil {
		return nil, chosen.toldApart()
	}
	if value, handled, err := in.arrayOperator(row.function, false, left, right); handled || err != nil {
		return value, err
	}
	if equal, done, err := in.equalIdentities(left, right); done && (row.function == "eq" || row.function == "ne") || err != nil {
		return boolean(equal == (row.function == "eq")), err
	}
	if holdsArray(left) || holdsArray(right) {
		return nil, unsupported(reasonComparison, "%s %s %s", left.typeName(), row.function, right.typeName())
	}
	if left, right, err = in.numbersOfIdentities(left, right); err != nil {
		return nil, err
	}
	if (isNumber(left) || isNumber(right)) && !isTensor(left) && !isTensor(right) && !hasMethods(left) && !hasMethods(right) {
		if value, err := in.numberCompare(row, left, right); value != nil || err != nil {
			return value, err
		}
		if operands, err = in.realAll(operands); err != nil {
			return nil, err
		}
		left, right = operands[0], operands[1]
	}
	if isTensor(left) || isTensor(right) {
		return in.compareTensors(row, left, right)
	}
	if byMethod, err := in.comparedByMethod(left, right); err != nil {
		return nil, err
	} else if byMethod {
		return in.methodCompare(row, left, right)
	}
	a, okLeft := left.(*Constant)
	b, okRight := right.(*Constant)
	if okLeft && okRight {
		if folded, ok := foldCompare(row.function, a.Value, b.Value); ok {
			return boolean(folded), nil
		}
	}
	if row.function == "eq" || row.function == "ne" {
		equal, err := in.equal(left, right)
		return boolean(equal == (row.function == "eq")), err
	}
	return in.compareSequences(row, left, right)
}

// compareTensors compares two values one of which is a tensor, whose == and != answer for None without looking at elements.
func (in *Interpreter) compareTensors(row comparisonRow, left, right Value) (Value, error) {
	if hasMethods(left) || hasMethods(right) {
		return in.methodCompare(row, left, right)
	}
	if differs := row.function == "ne"; (isNone(left) || isNone(right)) && (differs || row.function == "eq") {
		return boolean(differs), nil
	}
	return in.torchCall("operator."+row.function, Arguments{Positional: []Value{left, right}})
}

// comparedByMethod tells operands one of which has methods of its own, or is a class whose metaclass says what it is equal to.
func (in *Interpreter) comparedByMethod(operands ...Value) (bool, error) {
	for _, operand := range operands {
		if hasMethods(operand) {
			return true, nil
		}
		if own, err := in.ownEquality(operand); own || err != nil {
			return own, err
		}
	}
	return false, nil
}

// ownEquality tells classes whose metaclass, and dicts of a library's class (a Counter), that have an equality written in Python.
func (in *Interpreter) ownEquality(operand Value) (bool, error) {
	switch v := operand.(type) {
	case *Class:
		meta, err := in.metaclassOf(v)
		if err != nil {
			return false, err
		}
		_, owner, err := in.classLookup(meta, "__eq__")
		return owner != nil && userClass(owner.name), err
	case *Dict:
		if v.class != nil {
			return in.equalityInPython(v.class)
		}
	}
	return false, nil
}

func (in *Interpreter) equalityInPython(class *Class) (bool, error) {
	found, _, err := in.classLookup(class, "__eq__")
	if found == nil || err != nil {
		return false, err
	}
	return in.isPythonFunction(found)
}

func (in *Interpreter) isPythonFunction(method Value) (bool, error) {
	_, inPython, err := as[*Function](in.real(method))
	return inPython, err
}

func (in *Interpreter) methodCompare(row comparisonRow, left, right Value) (Value, error) {
	leftClass, rightClass, err := in.operandClasses(left, right)
	if err != nil {
		return nil, err
	}
	type side struct {
		class       *Class
		method      string
		self, other Value
	}
	sides := []side{{leftClass, row.method, left, right}, {rightClass, row.reflected, right, left}}
	if rightClass != leftClass && rightClass.inherits(leftClass) {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for _, s := range sides {
		value, done, err := in.compareMethod(s.class, s.method, s.self, s.other)
		if done || err != nil {
			return value, err
		}
	}
	if row.function == "eq" || row.function == "ne" {
		same, err := in.identical(left, right)
		return boolean(same == (row.function == "eq")), err
	}
	return nil, in.raise("TypeError", "'"+row.sign+"' not supported between instances of '"+shortName(leftClass.name)+"' and '"+shortName(rightClass.name)+"'")
}

// compareMethod runs one comparison method; object's own ones compare identities, and __ne__ inverts __eq__.
func (in *Interpreter) compareMethod(class *Class, method string, self, other Value) (Value, bool, error) {
	found, _, err := in.classLookup(class, method)
	if err != nil || found == nil {
		return nil, false, err
	}
	if found, err = in.real(found); err != nil {
		return nil, false, err
	}
	if builtin, ok := found.(*Builtin); ok {
		if err := in.checkReceiver(builtin, self); err != nil {
			return nil, false, err
		}
		if builtin.name != "object."+method {
			return in.compareBuiltinBase(builtin, method, self, other)
		}
		if method != "__ne__" {
			return nil, false, nil
		}
		equal, done, err := in.compareMethod(class, "__eq__", self, other)
		if err != nil || !done {
			return nil, false, err
		}
		truth, err := in.truth(equal)
		return boolean(!truth), true, err
	}
	value, err := in.tryMethod(class, method, self, other)
	return value, value != nil, err
}

// compareBuiltinBase compares instances of subclasses of builtin types (an IntEnum, a str subclass) by their base values.
func (in *Interpreter) compareBuiltinBase(builtin *Builtin, method string, self, other Value) (Value, bool, error) {
	a, b := baseValue(self), baseValue(other)
	if a == nil {
		return nil, false, unsupported(reasonComparison, "%s", builtin.name)
	}
	first, second, dicts := bothDicts(a, b)
	if equality := method == "__eq__"; dicts && (equality || method == "__ne__") {
		equal, err := in.equalDicts(first, second)
		return boolean(equal == equality), err == nil, err
	}
	if b == nil || !comparableKinds(a, b) {
		return nil, false, nil // NotImplemented
	}
	for _, row := range comparisons {
		if row.method == method {
			value, err := in.compare(row, a, b)
			return value, err == nil, err
		}
	}
	return nil, false, unsupported(reasonComparison, "%s", builtin.name)
}

func bothDicts(a, b Value) (*Dict, *Dict, bool) {
	first, isDict := a.(*Dict)
	second, are := b.(*Dict)
	return first, second, isDict && are
}

// comparableKinds tells values that a builtin type's own comparison accepts: it answers NotImplemented for others.
func comparableKinds(a, b Value) bool {
	first, second := a.typeName(), b.typeName()
	numeric := map[string]bool{"bool": true, "int": true, "float": true, "complex": true}
	setLike := map[string]bool{"set": true, "frozenset": true}
	return first == second || numeric[first] && numeric[second] || setLike[first] && setLike[second]
}

// baseValue is the builtin value of a constant or of an instance of a subclass of a builtin; nil otherwise.
func baseValue(value Value) Value {
	switch v := value.(type) {
	case *Constant:
		return v
	case *Instance:
		return v.base
	case *Tuple:
		return &Tuple{items: v.items}
	case *List, *Dict, *Set, *Deque:
		return v
	}
	return nil
}

// equal is == for values whose equality runs no user code at the top; items of containers may still be instances.
func (in *Interpreter) equal(left, right Value) (bool, error) {
	operands, err := in.realAll([]Value{left, right})
	if err != nil {
		return false, err
	}
	left, right = operands[0], operands[1]
	if left == right && !isTensor(left) && !isNaN(left) {
		return true, nil
	}
	if equal, done, err := in.equalIdentities(left, right); done || err != nil {
		return equal, err
	}
	for _, side := range []*Value{&left, &right} {
		if fields, ok := (*side).(*fieldsDict); ok {
			snapshot, err := fields.snapshot(in)
			if err != nil {
				return false, err
			}
			*side = snapshot
		}
	}
	if equal, done, err := in.equalBytes(left, right); done || err != nil {
		return equal, err
	}
	if holdsArray(left) || holdsArray(right) || isChosenNumber(left, right) != nil {
		return false, unsupported(reasonComparison, "%s == %s", left.typeName(), right.typeName())
	}
	if classes, err := in.comparedByMethod(withOwnClass(left, right)...); err != nil {
		return false, err
	} else if classes {
		return in.equalByMethod(left, right)
	}
	switch a := left.(type) {
	case *Constant:
		if b, ok := right.(*Constant); ok {
			return in.equalConstants(a, b)
		}
		if _, ok := right.(*Instance); !ok {
			return false, nil
		}
	case *Tuple:
		if b, ok := right.(*Tuple); ok {
			return in.equalItems(a.items, b.items)
		}
		return in.differs(right)
	case *List:
		if b, ok := right.(*List); ok {
			return in.equalLists(a, b)
		}
		return in.differs(right)
	case *Deque:
		if b, ok := right.(*Deque); ok {
			return in.equalItems(a.items, b.items)
		}
		return in.differs(right)
	case *Dict:
		if b, ok := right.(*Dict); ok {
			return in.equalDicts(a, b)
		}
		return in.differs(right)
	case *Set, *dictView:
		if value, done, err := in.compareSetLike(comparisons[2], a, right); done || err != nil {
			if err != nil {
				return false, err
			}
			return in.truth(value)
		}
		return in.differs(right)
	case *LibraryValue:
		return in.equalLibrary(a, right)
	case *Builtin:
		if b, ok := right.(*Builtin); ok && a.self != nil && b.self != nil && a.name == b.name {
			return in.identical(a.self, b.self)
		}
		return in.identical(left, right)
	case *Class, *Function, *PythonModule:
		return in.identical(left, right)
	case *Range:
		if b, ok := right.(*Range); ok {
			return a.equal(b), nil
		}
		return in.differs(right)
	case *Method:
		if b, ok := right.(*Method); ok {
			return in.equalMethods(a, b)
		}
		return in.differs(right)
	}
	if hasMethods(left) || hasMethods(right) {
		return in.equalByMethod(left, right)
	}
	return false, unsupported(reasonComparison, "%s == %s", left.typeName(), right.typeName())
}

func (in *Interpreter) equalByMethod(left, right Value) (bool, error) {
	value, err := in.methodCompare(comparisons[2], left, right)
	if err != nil {
		return false, err
	}
	return in.truth(value)
}

// withOwnClass are those of the values that are classes, or dicts of a class of their own.
func withOwnClass(values ...Value) []Value {
	return slices.DeleteFunc(values, func(value Value) bool {
		_, isClass := value.(*Class)
		dict, isDict := value.(*Dict)
		return !isClass && (!isDict || dict.class == nil)
	})
}

// equalMethods compares bound methods: their objects by identity, their functions by equality.
func (in *Interpreter) equalMethods(a, b *Method) (bool, error) {
	same, err := in.identical(a.self, b.self)
	if err != nil || !same {
		return false, err
	}
	return in.equal(a.function, b.function)
}

// isNaN tells the floats that differ from themselves, and complex numbers with such a part.
func isNaN(value Value) bool {
	number, real := constantAs[float64](value)
	pair, isComplex := constantAs[complex128](value)
	return real && math.IsNaN(number) || isComplex && cmplx.IsNaN(pair)
}

// differs says unequal for a value of another builtin type, and leaves values with methods of their own to them.
func (in *Interpreter) differs(right Value) (bool, error) {
	switch right.(type) {
	case *Constant, *Tuple, *List, *Dict, *dictView, *Set, *Deque, *Class, *Function, *LibraryValue, *Range, *Method, *Builtin, *PythonModule, *byteArray:
		return false, nil
	}
	return false, unsupported(reasonComparison, "%s", right.typeName())
}

func (in *Interpreter) equalConstants(a, b *Constant) (bool, error) {
	if equal, ok := foldCompare("eq", a.Value, b.Value); ok {
		return equal, nil
	}
	value, ok, err := in.evaluateConstant("operator.eq", a, b)
	if err != nil || !ok {
		return false, err
	}
	return in.truth(value)
}

func (in *Interpreter) equalItems(a, b []Value) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		same, err := in.sameOrEqual(a[i], b[i])
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// sameOrEqual is PyObject_RichCompareBool with ==: identity first.
func (in *Interpreter) sameOrEqual(a, b Value) (bool, error) {
	operands, err := in.lookAll([]Value{a, b})
	if err != nil {
		return false, err
	}
	if operands[0] == operands[1] {
		return true, nil
	}
	if isTensor(operands[0]) || isTensor(operands[1]) || isNumber(operands[0]) || isNumber(operands[1]) {
		value, err := in.compare(comparisons[2], operands[0], operands[1])
		if err != nil {
			return false, err
		}
		return in.truth(value)
	}
	return in.equal(operands[0], operands[1])
}

func (in *Interpreter) equalLists(a, b *List) (bool, error) {
	first, err := a.contents(in)
	if err != nil {
		return false, err
	}
	second, err := b.contents(in)
	if err != nil {
		return false, err
	}
	return in.equalItems(first, second)
}

func (in *Interpreter) equalDicts(a, b *Dict) (bool, error) {
	first, err := a.live(in)
	if err != nil {
		return false, err
	}
	second, err := b.live(in)
	if err != nil || len(first) != len(second) {
		return false, err
	}
	ordered := a.ordered() && b.ordered()
	for i, entry := range first {
		if ordered {
			if same, err := in.sameOrEqual(entry.key, second[i].key); err != nil || !same {
				return false, err
			}
		}
		other, err := b.lookup(in, entry.key)
		if err != nil || other == nil {
			return false, err
		}
		same, err := in.sameOrEqual(entry.value, other)
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (in *Interpreter) equalLibrary(a *LibraryValue, right Value) (bool, error) {
	if b, ok := right.(*LibraryValue); ok {
		return a.kind == b.kind && a.text == b.text, nil
	}
	if other, isText := stringOf(right); isText && a.kind == "device" {
		return false, unsupported(reasonComparison, "device == %q", other)
	}
	return in.differs(right)
}

// compareSequences orders tuples and lists item by item.
func (in *Interpreter) compareSequences(row comparisonRow, left, right Value) (Value, error) {
	var a, b []Value
	var err error
	switch l := left.(type) {
	case *Tuple:
		if r, ok := right.(*Tuple); ok {
			a, b = l.items, r.items
		}
	case *List:
		if r, ok := right.(*List); ok {
			if a, err = l.contents(in); err == nil {
				b, err = r.contents(in)
			}
		}
	case *Deque:
		if r, ok := right.(*Deque); ok {
			a, b = append([]Value{}, l.items...), append([]Value{}, r.items...)
		}
	case *Set, *dictView:
		if value, done, err := in.compareSetLike(row, left, right); done || err != nil {
			return value, err
		}
	}
	if err != nil {
		return nil, err
	}
	if a == nil && b == nil {
		if value, ok, err := in.evaluateConstant("operator."+row.function, left, right); ok || err != nil {
			return value, err
		}
		if unordered(left) && unordered(right) || left.typeName() != right.typeName() && (unordered(left) || unordered(right)) {
			return nil, in.raise("TypeError", "'"+row.sign+"' not supported between instances of '"+shortName(left.typeName())+"' and '"+shortName(right.typeName())+"'")
		}
		return nil, unsupported(reasonComparison, "%s %s %s", left.typeName(), row.sign, right.typeName())
	}
	for i := 0; i < len(a) && i < len(b); i++ {
		same, err := in.sameOrEqual(a[i], b[i])
		if err != nil {
			return nil, err
		}
		if !same {
			return in.compare(row, a[i], b[i])
		}
	}
	return in.compare(row, integer(int64(len(a))), integer(int64(len(b))))
}

// unordered tells values of builtin types that have no order among themselves.
func unordered(value Value) bool {
	switch value.(type) {
	case *Range, *Dict, *Function, *PythonModule, *Generator:
		return true
	}
	return false
}
