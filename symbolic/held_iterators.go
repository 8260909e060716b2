package symbolic

import (
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/trace"
)

// heldIterator is an iterator that was there before the call, such as that of a loop in which a break lies. What the capture takes of it is
// taken by the rewritten code too.
type heldIterator struct {
	object *existing
	walker iterator // gives what the capture takes
	kind   string
	taken  int // items, and the end where it was reached
	ended  bool
}

func (v *heldIterator) typeName() string { return v.kind }

func (v *heldIterator) next(in *Interpreter) (Value, error) {
	if v.ended {
		return nil, nil
	}
	item, err := v.walker.next(in)
	if _, raises := err.(*Raised); raises {
		return nil, unsupported(reasonIteration, "%s that raises", v.kind) // as would taking as much of it behind the call
	}
	v.taken++
	v.ended = item == nil && err == nil
	in.recordAdvance(v)
	return item, err
}

// recordAdvance puts what is taken of an iterator behind the changes so far: a list may have grown meanwhile.
func (in *Interpreter) recordAdvance(v *heldIterator) {
	in.activity++
	in.outside++
	in.effects = slices.DeleteFunc(in.effects, func(known effect) bool {
		e, ok := known.(*iteratorEffect)
		return ok && e.iterator == v
	})
	in.effects = append(in.effects, &iteratorEffect{v})
}

// iteratorEffect takes from an existing iterator what the capture took.
type iteratorEffect struct{ iterator *heldIterator }

func (e *iteratorEffect) apply(cg *generator) error {
	return cg.callHelper("advance_iterator", e.iterator, integer(int64(e.iterator.taken)))
}

// describedIterator models a builtin iterator from where it stands, and guards that. One that was seen to stand elsewhere at a later call, as
// that of a loop with a break in each round does, is left to Python.
func (in *Interpreter) describedIterator(d *trace.Description, object *existing) (Value, error) {
	parts := trace.Items(d.Payload)
	if len(parts) != 3 {
		return &Opaque{object, "iterator"}, nil
	}
	kind, _ := parts[0].(string)
	if object.source == nil {
		object.source = in.objectSource(d.ID)
	}
	progress := object.source.Child("progress", nil)
	if in.request.Options.Dynamic.Numbers[progress.Key()] {
		return &Opaque{object, kind}, nil
	}
	walker, err := in.walkerOf(kind, parts[1], parts[2], object)
	if err != nil || walker == nil {
		return &Opaque{object, kind}, err
	}
	progress.Require(in.reason(), "equals", parts[2])
	return &heldIterator{object: object, walker: walker, kind: kind}, nil
}

// walkerOf is an iterator like the existing one that the capture may walk; nil where there is none.
func (in *Interpreter) walkerOf(kind string, walked, progress bytecode.Object, object *existing) (iterator, error) {
	position, ok := progress.(int64)
	if kind == "range_iterator" {
		return in.restOfRange(object)
	}
	value, err := in.child(walked, object.source, "viewed", nil)
	if err != nil {
		return nil, err
	}
	if value, err = in.real(value); err != nil {
		return nil, err
	}
	switch kind {
	case "enumerate":
		return in.walkerOver(kind, value, Arguments{Positional: []Value{&Constant{progress}}})
	case "zip":
		return in.walkerOver(kind, value, Arguments{Keywords: []KeywordArgument{{"strict", &Constant{progress}}}})
	}
	if !ok {
		return nil, nil
	}
	return in.walkerFrom(value, kind, int(position))
}

// walkerFrom walks over a list, a tuple or a dict from a position on, which is negative where the dict grew or shrank before; over dicts that the
// capture has changed, Python must.
func (in *Interpreter) walkerFrom(walked Value, kind string, position int) (iterator, error) {
	switch v := walked.(type) {
	case *List:
		return &sequenceIterator{list: v, next_: position, kind: kind}, nil
	case *Tuple:
		return &sequenceIterator{items: v.items, next_: position, kind: kind}, nil
	case *Dict:
		entries, err := v.live(in)
		if err != nil || in.hasChanged(v) {
			return nil, err
		}
		keys := entryKeys(entries)
		view := strings.TrimSuffix(strings.TrimPrefix(kind, "dict_"), "iterator") + "s"
		return &dictIterator{dict: v, origin: v, kind: view, keys: keys, position: max(position, 0), stale: position < 0, born: in.frame.step}, err
	}
	return nil, nil
}

// hasChanged tells dicts that the capture has written to.
func (in *Interpreter) hasChanged(d *Dict) bool {
	return slices.ContainsFunc(in.effects, func(known effect) bool {
		e, ok := known.(*dictEffect)
		return ok && e.dict == d
	})
}

// restOfRange walks over the numbers that an existing iterator over a range has yet to give.
func (in *Interpreter) restOfRange(object *existing) (iterator, error) {
	rest, err := in.given("fusee._helpers.rest_of_range", object)
	if err != nil {
		return nil, err
	}
	bounds := make([]int64, 0, 3)
	items, _ := constantObject(rest)
	parts, _ := items.(bytecode.Tuple)
	for _, part := range parts {
		if n, ok := part.(int64); ok {
			bounds = append(bounds, n)
		}
	}
	if len(bounds) != 3 {
		return nil, nil
	}
	value, err := (&Range{bounds[0], bounds[1], bounds[2]}).iterator()
	walker, _ := value.(iterator)
	return walker, err
}

// walkerOver is an enumerate or a zip, with further arguments, over what existing iterators have left: what is taken of it is taken of them by Python.
func (in *Interpreter) walkerOver(kind string, walked Value, further Arguments) (iterator, error) {
	inner := []Value{walked}
	if kind == "zip" {
		tuple, ok := walked.(*Tuple)
		if !ok {
			return nil, nil
		}
		inner = slices.Clone(tuple.items)
	}
	for i := range inner {
		real, err := in.real(inner[i])
		if err != nil {
			return nil, err
		}
		held, ok := real.(*heldIterator)
		if !ok {
			return nil, nil
		}
		inner[i] = held.walker
	}
	further.Positional = append(inner, further.Positional...)
	value, _, err := in.constructIterator(kind, further)
	walker, _ := value.(iterator)
	return walker, err
}
