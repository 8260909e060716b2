package bytecode

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// VisitSets calls visit for every set within an object, and the object itself, in the order in which its repr and those of
// the code objects in it show them. A set that is shared is visited each time.
func VisitSets(object Object, visit func(*Set)) {
	switch value := object.(type) {
	case *Set:
		visit(value)
		visitSetsOf(value.Items, visit)
	case Tuple:
		visitSetsOf(value, visit)
	case *List:
		visitSetsOf(value.Items, visit)
	case *Dict:
		visitSetsOf(value.Keys, visit)
		visitSetsOf(value.Values, visit)
	case *Code:
		visitSetsOf(value.Consts, visit)
	}
}

func visitSetsOf(items []Object, visit func(*Set)) {
	for _, item := range items {
		VisitSets(item, visit)
	}
}

// OrderSets puts the items of every set within an object in the order in which CPython iterates over the set after reading
// it from its marshalled form: the order of its hash table. Hashes are those of PYTHONHASHSEED=0; for numbers and tuples
// of them the seed makes no difference. Sets of items whose hash is an address, as None's, stay as they are.
func OrderSets(object Object) {
	ordered := map[*Set]bool{}
	VisitSets(object, func(set *Set) {
		if !ordered[set] {
			ordered[set] = true
			set.Items = iterationOrder(set.Items)
		}
	})
}

const (
	hashBits    = 61 // numbers hash modulo 2**61 - 1
	hashModulus = 1<<hashBits - 1
	hashInf     = 314159
	hashImag    = 1000003 // multiplies the imaginary part's hash
)

// hashOf returns hash(object), and whether it is determined by the value alone.
func hashOf(object Object) (uint64, bool) {
	switch value := object.(type) {
	case bool:
		if value {
			return 1, true
		}
		return 0, true
	case int64:
		return hashInt(big.NewInt(value)), true
	case *big.Int:
		return hashInt(value), true
	case float64:
		return hashFloat(value), !math.IsNaN(value)
	case complex128:
		known := !math.IsNaN(real(value)) && !math.IsNaN(imag(value))
		return notMinusOne(hashFloat(real(value)) + hashImag*hashFloat(imag(value))), known
	case string:
		return hashText(storedText(value)), true
	case Bytes:
		return hashText([]byte(value)), true
	case Tuple:
		return hashTuple(value)
	}
	return 0, false
}

// NumberHash is hash(object) of a number or of a tuple of numbers, and whether it is one of them: their hashes are the same in each process.
func NumberHash(object Object) (uint64, bool) {
	switch value := object.(type) {
	case bool, int64, *big.Int, float64, complex128:
		return hashOf(value)
	case Tuple:
		for _, item := range value {
			if _, known := NumberHash(item); !known {
				return 0, false
			}
		}
		return hashTuple(value)
	}
	return 0, false
}

// notMinusOne keeps -1 free, which CPython returns for errors.
func notMinusOne(hash uint64) uint64 {
	if hash == math.MaxUint64 {
		return hash - 1
	}
	return hash
}

func hashInt(value *big.Int) uint64 {
	remainder := new(big.Int).Rem(value, big.NewInt(hashModulus))
	return notMinusOne(uint64(remainder.Int64()))
}

// hashFloat is _Py_HashDouble: the value modulo 2**61 - 1, as a fraction's hash is.
func hashFloat(value float64) uint64 {
	switch {
	case math.IsInf(value, 1):
		return hashInf
	case math.IsInf(value, -1):
		return math.MaxUint64 - hashInf + 1
	case math.IsNaN(value):
		return 0
	}
	fraction, exponent := math.Frexp(math.Abs(value))
	var hash uint64
	for fraction != 0 {
		hash = rotateHash(hash, 28)
		fraction *= 1 << 28
		exponent -= 28
		part := uint64(fraction)
		fraction -= float64(part)
		if hash += part; hash >= hashModulus {
			hash -= hashModulus
		}
	}
	hash = rotateHash(hash, ((exponent%hashBits)+hashBits)%hashBits)
	if value < 0 {
		hash = -hash
	}
	return notMinusOne(hash)
}

// rotateHash multiplies by a power of two modulo 2**61 - 1.
func rotateHash(hash uint64, count int) uint64 {
	return hash<<count&hashModulus | hash>>(hashBits-count)
}

// hashTuple is tuplehash of CPython's Objects/tupleobject.c, after xxHash.
func hashTuple(items Tuple) (uint64, bool) {
	const (
		prime1 = 11400714785074694791
		prime2 = 14029467366897019727
		prime5 = 2870177450012600261
	)
	accumulator := uint64(prime5)
	for _, item := range items {
		lane, known := hashOf(item)
		if !known {
			return 0, false
		}
		accumulator += lane * prime2
		accumulator = bits.RotateLeft64(accumulator, 31) * prime1
	}
	accumulator += uint64(len(items)) ^ (prime5 ^ 3527539)
	if accumulator == math.MaxUint64 {
		return 1546275796, true
	}
	return accumulator, true
}

// storedText is a str as CPython stores it and hashes it: one, two or four bytes a character, by the widest.
func storedText(text string) []byte {
	var characters []rune
	var widest rune
	for len(text) > 0 {
		r, size := decodeWTF8(text)
		characters = append(characters, r)
		widest = max(widest, r)
		text = text[size:]
	}
	var stored []byte
	for _, r := range characters {
		switch {
		case widest <= 0xFF:
			stored = append(stored, byte(r))
		case widest <= 0xFFFF:
			stored = binary.LittleEndian.AppendUint16(stored, uint16(r))
		default:
			stored = binary.LittleEndian.AppendUint32(stored, uint32(r))
		}
	}
	return stored
}

// hashText is SipHash-1-3 with a zero key (siphash13 in CPython's Python/pyhash.c).
func hashText(text []byte) uint64 {
	if len(text) == 0 {
		return 0
	}
	state := sipState{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573}
	last := uint64(len(text)) << 56
	for ; len(text) >= 8; text = text[8:] {
		state.absorb(binary.LittleEndian.Uint64(text))
	}
	for i, part := range text {
		last |= uint64(part) << (8 * i)
	}
	state.absorb(last)
	state[2] ^= 0xFF
	for range 3 {
		state.round()
	}
	return notMinusOne(state[0] ^ state[1] ^ state[2] ^ state[3])
}

type sipState [4]uint64

func (s *sipState) absorb(block uint64) {
	s[3] ^= block
	s.round()
	s[0] ^= block
}

func (s *sipState) round() {
	s[0] += s[1]
	s[1] = bits.RotateLeft64(s[1], 13) ^ s[0]
	s[0] = bits.RotateLeft64(s[0], 32)
	s[2] += s[3]
	s[3] = bits.RotateLeft64(s[3], 16) ^ s[2]
	s[0] += s[3]
	s[3] = bits.RotateLeft64(s[3], 21) ^ s[0]
	s[2] += s[1]
	s[1] = bits.RotateLeft64(s[1], 17) ^ s[2]
	s[2] = bits.RotateLeft64(s[2], 32)
}

// hashTable follows the open addressing of CPython's Objects/setobject.c.
type hashTable struct {
	slots []*hashSlot
	used  int
}

type hashSlot struct {
	item Object
	hash uint64
}

const linearProbes = 9

// iterationOrder returns a set's items, which are distinct, in the order in which CPython would iterate over them after inserting
// them in the order given; items whose hash is an address make the given order as good as any.
func iterationOrder(items []Object) []Object {
	table := hashTable{slots: make([]*hashSlot, 8)}
	for _, item := range items {
		hash, known := hashOf(item)
		if !known {
			return items
		}
		table.insert(&hashSlot{item, hash})
		table.used++
		if table.used*5 >= (len(table.slots)-1)*3 {
			table.grow()
		}
	}
	ordered := make([]Object, 0, len(items))
	for _, slot := range table.slots {
		if slot != nil {
			ordered = append(ordered, slot.item)
		}
	}
	return ordered
}

func (t *hashTable) insert(slot *hashSlot) {
	mask := uint64(len(t.slots) - 1)
	perturb := slot.hash
	for i := slot.hash & mask; ; {
		probes := uint64(0)
		if i+linearProbes <= mask {
			probes = linearProbes
		}
		for candidate := i; candidate <= i+probes; candidate++ {
			if t.slots[candidate] == nil {
				t.slots[candidate] = slot
				return
			}
		}
		perturb >>= 5
		i = (i*5 + 1 + perturb) & mask
	}
}

func (t *hashTable) grow() {
	wanted := t.used * 4
	if t.used > 50000 {
		wanted = t.used * 2
	}
	size := 8
	for size <= wanted {
		size *= 2
	}
	old := t.slots
	t.slots = make([]*hashSlot, size)
	for _, slot := range old {
		if slot != nil {
			t.insert(slot)
		}
	}
}
