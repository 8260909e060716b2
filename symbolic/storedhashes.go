package symbolic

import "fusee/bytecode"

// Python asks the methods of a key for its hash once, when it is stored. The capture has followed them, so that rewritten code stores keys under
// the hashes that they gave, and their effects do not come twice.

// knownHash is the hash that a key's own method gave; nil where the key hashes without code of the program.
func knownHash(key any) Value {
	if custom, ok := key.(*customHash); ok {
		if number, ok := custom.number.(int64); ok {
			return integer(number)
		}
	}
	return nil
}

// hashStored is the key of an item of an existing table, which has its hash stored: a method that does more than compute it is not to be called.
func (in *Interpreter) hashStored(key Value) (any, error) {
	before := in.activity
	hashed, err := in.hashKey(key)
	if err == nil && in.activity != before {
		err = unsupported(reasonHash, "%s, whose __hash__ does more than compute it", key.typeName())
	}
	return hashed, err
}

// hashedEntry is what the helpers that store by hash take: key, hash or None, value.
func hashedEntry(key, hash, value Value) Value {
	return &Tuple{items: []Value{key, orNone(hash), value}}
}

// hashed lists the entries of a dict with their hashes; nil where none has a method of its own that gave one.
func (d *Dict) hashed() *Tuple {
	hashes := map[*dictEntry]Value{}
	for key, entry := range d.index {
		if hash := knownHash(key); hash != nil {
			hashes[entry] = hash
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	entries := &Tuple{}
	for _, entry := range d.entries {
		if !entry.deleted {
			entries.items = append(entries.items, hashedEntry(entry.key, hashes[entry], entry.value))
		}
	}
	return entries
}

// hashed lists items of a set as the keys of a dict; nil where none has a method of its own that gave a hash.
func (s *Set) hashed(order []Value) *Tuple {
	hashes := map[Value]Value{}
	for key, position := range s.index {
		if hash := knownHash(key); hash != nil && position < len(s.items) {
			hashes[s.items[position]] = hash
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	entries := &Tuple{}
	for _, item := range order {
		entries.items = append(entries.items, hashedEntry(item, hashes[item], none()))
	}
	return entries
}

// makeDict pushes a new dict of the entries of another one.
func (cg *generator) makeDict(v *Dict) error {
	if entries := v.hashed(); entries != nil {
		return cg.helper("dict_by_hashes", entries)
	}
	count := 0
	if err := cg.loadEntries(v, func() { count++ }); err != nil {
		return err
	}
	cg.emit(bytecode.BuildMap, count)
	return nil
}

// loadEntries pushes the key and the value of each entry that is there, and does next behind them.
func (cg *generator) loadEntries(v *Dict, next func()) error {
	for _, entry := range v.entries {
		if entry.deleted {
			continue
		}
		if err := cg.loadAll(entry.key, entry.value); err != nil {
			return err
		}
		next()
	}
	return nil
}
