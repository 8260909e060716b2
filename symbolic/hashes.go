package symbolic

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/internal/slice"
)

// customHash is the key of an object whose class has a __hash__ or __eq__ of its own: it meets others by number and comparison.
type customHash struct {
	value  Value
	number bytecode.Object
}

// hashKey is the key under which equal dict keys meet.
func (in *Interpreter) hashKey(key Value) (any, error) {
	key, err := in.real(key)
	if err != nil {
		return nil, err
	}
	switch v := key.(type) {
	case *Constant:
		if hashed := constantKey(v.Value); hashed != nil {
			return hashed, nil
		}
		return v, nil
	case *Tuple:
		return in.hashItems("tuple", v.items, false)
	case *LibraryValue:
		return v.kind + " " + v.text, nil
	case *Class:
		if v.made != nil {
			return v, nil
		}
		if !strings.Contains(v.name, ".") {
			return "class " + v.name, nil // a builtin class, which may be known by its name alone
		}
		if v.id == 0 {
			if v, err = in.namedClass(v.name); err != nil {
				return nil, err
			}
		}
		return fmt.Sprintf("class %d", v.id), nil
	case *Function:
		in.pinFunction(v)
		return v, nil
	case *Tensor, *PythonModule, *Generator, *Cell, *codeValue, *tracebackValue:
		return v, nil
	case *Builtin:
		if v.self == nil {
			return "builtin " + v.name, nil
		}
	case *identityNumber:
		return in.identityHash(v.of)
	case *Method:
		if _, ok := v.self.(*Instance); ok {
			return v, unsupported(reasonHash, "%s", key.typeName())
		}
	case *Instance:
		return in.hashInstance(v)
	case *Set:
		if v.frozen {
			return in.hashItems("frozenset", v.items, true)
		}
		return nil, in.raise("TypeError", "unhashable type: 'set'")
	case *List, *Dict, *Deque, *fieldsDict, *SliceValue, *byteArray:
		return nil, in.raise("TypeError", "unhashable type: '"+key.typeName()+"'")
	}
	return nil, unsupported(reasonHash, "%s", key.typeName())
}

// identityKey is what id() of a value goes by: the value itself, or the type and key of one that is equal wherever it is identical.
type identityKey struct {
	kind string
	of   any
}

func (in *Interpreter) identityHash(value Value) (any, error) {
	switch v := value.(type) {
	case *fieldsDict:
		return identityKey{"fields", v.owner}, nil
	case *List, *Dict, *Deque, *Set, *Tuple, *Instance, *SliceValue, *byteArray:
		return identityKey{"object", v}, nil
	}
	key, err := in.hashKey(value)
	return identityKey{value.typeName(), key}, err
}

// hashItems is the key of a container by those of its items.
func (in *Interpreter) hashItems(kind string, items []Value, sorted bool) (any, error) {
	keys, err := slice.TryMap(items, in.hashKey)
	if err != nil {
		return nil, err
	}
	if kind == "tuple" && slices.ContainsFunc(keys, isCustomHash) {
		return in.hashTuple(items, keys)
	}
	return joinedKeys(kind, keys, sorted)
}

func isCustomHash(key any) bool {
	_, custom := key.(*customHash)
	return custom
}

// hashTuple is the key of a tuple that has items with a __hash__ of their own: it meets others by number and comparison too.
func (in *Interpreter) hashTuple(items []Value, keys []any) (any, error) {
	numbers := make([]int64, len(items))
	for i, item := range items {
		number, err := in.numberUnder(item, keys[i])
		if err != nil {
			return nil, err
		}
		known, isInt := number.(int64)
		if !isInt || in.copied != nil {
			return nil, unsupported(reasonHash, "a tuple of %s", item.typeName())
		}
		numbers[i] = known
	}
	return &customHash{&Tuple{items: items}, tupleHash(numbers)}, nil
}

// numberUnder is the hash of an item whose key is known.
func (in *Interpreter) numberUnder(item Value, key any) (bytecode.Object, error) {
	if custom, ok := key.(*customHash); ok {
		return custom.number, nil
	}
	return in.itemHash(item)
}

// tupleHash is a tuple's hash by those of its items: tuplehash of CPython's Objects/tupleobject.c, a variant of xxHash.
func tupleHash(items []int64) int64 {
	const prime1, prime2, prime5 = 11400714785074694791, 14029467366897019727, 2870177450012600261
	accumulated := uint64(prime5)
	for _, item := range items {
		accumulated = bits.RotateLeft64(accumulated+uint64(item)*prime2, 31) * prime1
	}
	accumulated += uint64(len(items)) ^ (prime5 ^ 3527539)
	if accumulated == math.MaxUint64 {
		return 1546275796 // -1 tells of an error
	}
	return int64(accumulated)
}

// joinedKeys is one key of the keys of a container's items.
func joinedKeys(kind string, keys []any, sorted bool) (any, error) {
	parts := make([]string, len(keys))
	for i, part := range keys {
		switch p := part.(type) {
		case *customHash:
			return nil, unsupported(reasonHash, "%s of %s", kind, p.value.typeName())
		case string, int64, float64, bool, complex128:
			parts[i] = fmt.Sprintf("(%T %v)", part, part)
		case bytecode.NoneType, bytecode.EllipsisType, notImplemented:
			parts[i] = fmt.Sprintf("(%T)", part)
		case identityKey:
			return nil, unsupported(reasonHash, "%s of results of id()", kind)
		default:
			parts[i] = fmt.Sprintf("(%T %p)", part, part)
		}
	}
	if sorted {
		slices.Sort(parts)
	}
	return kind + strings.Join(parts, " "), nil
}

// hashInstance hashes by identity where the class keeps object's own methods, by base value for subclasses of builtins, and by what the
// class's own __hash__ returns otherwise.
func (in *Interpreter) hashInstance(v *Instance) (any, error) {
	if v.class.isSubclassOf("enum.Enum") && v.object != nil && v.base == nil {
		return fmt.Sprintf("object %d", v.object.id), nil
	}
	identity := true
	for _, name := range []string{"__hash__", "__eq__"} {
		found, owner, err := in.classLookup(v.class, name)
		if err != nil {
			return nil, err
		}
		if name == "__hash__" && (found == nil || isNone(found)) {
			return nil, in.raise("TypeError", "unhashable type: '"+v.class.baseName()+"'")
		}
		if name == "__hash__" && owner != nil && builtinException(owner) && v.base == nil {
			continue // a library's own hash goes with its __eq__
		}
		if owner == nil || owner.name != "object" && owner.name != "torch.nn.modules.module.Module" && owner.name != "BaseException" {
			if v.base != nil && owner != nil && owner.made == nil && !userClass(owner.name) {
				if name == "__hash__" {
					identity = false
					continue
				}
				return in.hashKey(v.base)
			}
			return in.customHashOf(v)
		}
	}
	if !identity {
		return in.hashKey(v.base)
	}
	return v, nil
}

func (in *Interpreter) customHashOf(v *Instance) (any, error) {
	if known := in.copied[v]; known != nil {
		return known, nil
	}
	number, err := in.hashNumber(v)
	if err != nil {
		return nil, err
	}
	return &customHash{v, number}, nil
}

// hashNumber is hash() of an instance whose class defines it, where the number is known.
func (in *Interpreter) hashNumber(v *Instance) (bytecode.Object, error) {
	result, err := in.hashByMethod(v)
	if constant, ok := result.(*Constant); ok && err == nil {
		return constant.Value, nil
	}
	return result, err // an address, which nothing but the object itself is sure to meet
}

// hashByMethod is hash() of an instance by its class's own __hash__.
func (in *Interpreter) hashByMethod(v *Instance) (Value, error) {
	method, err := in.specialMethod(v.class, "__hash__", v)
	if err != nil {
		return nil, err
	}
	if method == nil || isNone(method) {
		return nil, in.raise("TypeError", "unhashable type: '"+v.class.baseName()+"'")
	}
	if builtin, ok := method.(*Builtin); ok && (builtin.name == "object.__hash__" || v.base == nil) {
		return nil, unsupported(reasonHash, "%s", v.class.name)
	}
	result, err := in.call(method, Arguments{})
	if err != nil {
		return nil, err
	}
	if result, err = in.real(result); err != nil {
		return nil, err
	}
	if instance, ok := result.(*Instance); ok && instance.base != nil {
		result = instance.base
	}
	if isAddress(result) {
		return result, nil
	}
	constant, ok := result.(*Constant)
	if !ok || constantTypeName(constant.Value) != "int" && constantTypeName(constant.Value) != "bool" {
		return nil, in.raise("TypeError", "__hash__ method should return an integer")
	}
	// What __hash__ returns is the hash itself where it fits, which hash() of that int need not be.
	if n, ok := constant.Value.(int64); ok && n != -1 {
		return constant, nil
	}
	number, err := in.hashOfConstant(constant)
	return &Constant{number}, err
}

// hashOfConstant is the host's hash, which holds in this process, as the compiled function does.
func (in *Interpreter) hashOfConstant(constant *Constant) (bytecode.Object, error) {
	if n, ok := constant.Value.(int64); ok && n >= 0 && n < 1<<61-1 {
		return n, nil
	}
	hashed, err := in.evaluated("builtins.hash", constant)
	if err != nil {
		return nil, err
	}
	return hashed.(*Constant).Value, nil
}

// itemHash is an item's hash where it can be told; nil for objects that hash by identity, whose number nothing else has.
func (in *Interpreter) itemHash(item Value) (bytecode.Object, error) {
	item, err := in.real(item)
	if err != nil {
		return nil, err
	}
	switch v := item.(type) {
	case *Constant:
		return in.hashOfConstant(v)
	case *Instance:
		hashed, err := in.hashInstance(v)
		if err != nil {
			return nil, err
		}
		if custom, ok := hashed.(*customHash); ok {
			return custom.number, nil
		}
		if v.base != nil {
			return in.itemHash(v.base)
		}
		return nil, nil
	case *Tuple:
		return in.tupleNumber(v)
	case *Set:
		return nil, unsupported(reasonHash, "%s among keys with a __hash__ of their own", item.typeName())
	}
	return nil, nil
}

// tupleNumber is a tuple's hash where it follows from constants and from methods.
func (in *Interpreter) tupleNumber(v *Tuple) (bytecode.Object, error) {
	if _, ok := constantObject(v); ok {
		hashed, err := in.evaluated("builtins.hash", v)
		if err != nil {
			return nil, err
		}
		number, _ := constantObject(hashed)
		return number, nil
	}
	hashed, err := in.hashKey(v)
	if err != nil {
		return nil, err
	}
	if custom, ok := hashed.(*customHash); ok {
		return custom.number, nil
	}
	return nil, unsupported(reasonHash, "%s among keys with a __hash__ of their own", v.typeName())
}

// storedHashes are the hashes that a table keeps of its items: CPython asks an object for its hash once for each table.
func storedHashes[T any](index map[any]T) map[*Instance]*customHash {
	stored := map[*Instance]*customHash{}
	for key := range index {
		if custom, ok := key.(*customHash); ok {
			if instance, ok := custom.value.(*Instance); ok {
				stored[instance] = custom
			}
		}
	}
	return stored
}

// copying lets what follows take over the stored hashes of a table, as copies of sets and dicts do; the returned function ends that.
func (in *Interpreter) copying(stored map[*Instance]*customHash) func() {
	before := in.copied
	in.copied = stored
	return func() { in.copied = before }
}

// findEqual looks an item up among others by hash and comparison, as a table does in which some objects compare by methods of their own.
func (in *Interpreter) findEqual(items []Value, item Value, custom *customHash, stored map[*Instance]*customHash) (int, error) {
	number := bytecode.Object(nil)
	var err error
	if custom != nil {
		number = custom.number
	} else if number, err = in.itemHash(item); err != nil {
		return 0, err
	}
	wanted, err := in.real(item)
	if err != nil {
		return 0, err
	}
	for i, candidate := range items {
		if candidate, err = in.real(candidate); err != nil {
			return 0, err
		}
		if candidate == wanted {
			return i, nil
		}
		other, err := in.storedHash(candidate, stored)
		if err != nil {
			return 0, err
		}
		if hashesByAddress(number) || hashesByAddress(other) {
			return 0, unsupported(reasonHash, "%s, whose hash follows from an address", candidate.typeName())
		}
		if number == nil || other == nil || number != other {
			continue
		}
		if same, err := in.sameOrEqual(candidate, wanted); err != nil || same {
			return i, err
		}
	}
	return -1, nil
}

// hashesByAddress tells numbers that a __hash__ computed from id().
func hashesByAddress(number bytecode.Object) bool {
	value, ok := number.(Value)
	return ok && isAddress(value)
}

func (in *Interpreter) storedHash(item Value, stored map[*Instance]*customHash) (bytecode.Object, error) {
	if instance, ok := item.(*Instance); ok && stored[instance] != nil {
		return stored[instance].number, nil
	}
	return in.itemHash(item)
}

// hashCall is builtins.hash.
func (in *Interpreter) hashCall(value Value) (Value, bool, error) {
	defer in.copying(nil)()
	value, err := in.real(value)
	if err != nil {
		return nil, true, err
	}
	if isAddress(value) {
		return value, true, nil // an address is less than the modulus of hashes
	}
	if instance, ok := value.(*Instance); ok {
		if hook, _, err := in.classLookup(instance.class, "__hash__"); err != nil || isFunction(hook) {
			if err != nil {
				return nil, true, err
			}
			return modelled(in.hashByMethod(instance))
		}
	}
	hashed, err := in.hashKey(value)
	if err != nil {
		return nil, true, err
	}
	if custom, ok := hashed.(*customHash); ok {
		if address, ok := custom.number.(Value); ok {
			return address, true, nil
		}
		return &Constant{custom.number}, true, nil
	}
	if instance, ok := value.(*Instance); ok && instance.base != nil && instance.object == nil {
		value = instance.base
	}
	if set, ok := value.(*Set); ok && !set.frozen {
		return nil, true, in.raise("TypeError", "unhashable type: 'set'")
	}
	switch value.(type) {
	case *Constant, *Tuple, *Set, *Range:
		result, ok, err := in.evaluateConstant("builtins.hash", value)
		if ok || err != nil {
			return result, true, err
		}
	}
	return nil, true, unsupported(reasonHash, "%s", value.typeName())
}

func isFunction(value Value) bool {
	_, ok := value.(*Function)
	return ok
}
