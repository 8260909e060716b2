package trace

import "fusee/bytecode"

// Lookup is the raw attribute that a type's MRO holds under a name.
type Lookup struct {
	Owner ObjectID // the class whose __dict__ holds it
	Value Reference
}

type lookupKey struct {
	class ObjectID
	name  string
}

// typeLookups keeps what was found along the MROs of types. Each class's description tells its names, so that which class holds an
// attribute is known without a question, and the attribute itself is asked for once, whichever of the subclasses it is read from.
type typeLookups struct {
	found map[lookupKey]*Lookup // by the type that was asked about; nil where the attribute is absent
	held  map[lookupKey]*Lookup // by the class that holds the attribute
	names map[ObjectID]map[string]struct{}
}

func newTypeLookups() typeLookups {
	return typeLookups{map[lookupKey]*Lookup{}, map[lookupKey]*Lookup{}, map[ObjectID]map[string]struct{}{}}
}

func (l *typeLookups) keep(key lookupKey, found *Lookup) {
	l.found[key] = found
	if found != nil {
		l.held[lookupKey{found.Owner, key.name}] = found
	}
}

// TypeLookup finds a name along a type's MRO without running descriptors; nil when absent.
func (s *Session) TypeLookup(typeID ObjectID, name string) (*Lookup, error) {
	key := lookupKey{typeID, name}
	if found, done := s.lookups.found[key]; done {
		return found, nil
	}
	found, err := s.lookAlong(key)
	if err != nil {
		return nil, err
	}
	s.lookups.keep(key, found)
	return found, nil
}

// lookAlong answers from the descriptions and from earlier answers, or else asks.
func (s *Session) lookAlong(key lookupKey) (*Lookup, error) {
	if owner, known := s.holder(key); known && owner == 0 {
		return nil, nil
	} else if found := s.lookups.held[lookupKey{owner, key.name}]; known && found != nil {
		return found, nil
	}
	answer, err := s.ask("type_lookup", int64(key.class), key.name)
	if err != nil {
		return nil, err
	}
	pair, ok := answer.(bytecode.Tuple)
	if !ok || len(pair) != 2 {
		return nil, nil
	}
	owner, _ := pair[0].(int64)
	reference, err := ParseReference(pair[1])
	return &Lookup{ObjectID(owner), reference}, err
}

// holder is the first class along a type's MRO that has the name, 0 where none has; known is false where a class up to there is not described.
func (s *Session) holder(key lookupKey) (owner ObjectID, known bool) {
	order, ok := s.order(key.class)
	for _, item := range order {
		class, _ := item.(int64)
		names := s.namesOf(ObjectID(class))
		if names == nil {
			return 0, false
		}
		if _, holds := names[key.name]; holds {
			return ObjectID(class), true
		}
	}
	return 0, ok
}

// order is a described type's MRO, itself first.
func (s *Session) order(class ObjectID) ([]bytecode.Object, bool) {
	described := s.objects[class]
	if described == nil || described.Kind != "type" {
		return nil, false
	}
	order := Items(Field(described.Payload, "mro"))
	return order, len(order) > 0
}

// namesOf is the set of names in a described class's own __dict__; nil where the host has not told them.
func (s *Session) namesOf(class ObjectID) map[string]struct{} {
	if known := s.lookups.names[class]; known != nil {
		return known
	}
	described := s.objects[class]
	if described == nil || described.Kind != "type" {
		return nil
	}
	list, ok := Field(described.Payload, "names").(*bytecode.List)
	if !ok {
		return nil
	}
	names := make(map[string]struct{}, len(list.Items))
	for _, item := range list.Items {
		if name, ok := item.(string); ok {
			names[name] = struct{}{}
		}
	}
	s.lookups.names[class] = names
	return names
}
