package symbolic

import (
	"strings"

	"fusee/internal/slice"
)

// remake tells how Python makes what is left of an iterator: a builtin, or a helper, and its arguments.
type remake func() (kind, name string, arguments []Value)

// stepper computes an iterator's next item; nil at the end.
type stepper func(in *Interpreter) (Value, error)

// argumentOr is an argument that need not be given.
func argumentOr(values []Value, position int, absent Value) Value {
	if position < len(values) {
		return values[position]
	}
	return absent
}

// bindNamed sorts arguments to parameters that may be given by position or by name; nil where one is not given, and ok is false where the
// arguments do not fit.
func bindNamed(arguments Arguments, names ...string) (values []Value, ok bool) {
	values = make([]Value, len(names))
	if len(arguments.Positional) > len(names) {
		return values, false
	}
	copy(values, arguments.Positional)
	for _, keyword := range arguments.Keywords {
		k := indexOf(names, keyword.Name)
		if k < 0 || values[k] != nil {
			return values, false
		}
		values[k] = keyword.Value
	}
	return values, true
}

// constructItertools makes an iterator of the module itertools.
func (in *Interpreter) constructItertools(name string, arguments Arguments) (Value, bool, error) {
	makers := map[string]func(Arguments) (stepper, remake, error){
		"count": in.countIterator, "repeat": in.repeatIterator, "cycle": in.cycleIterator, "accumulate": in.accumulateIterator, "chain": in.chainIterator,
		"compress": in.compressIterator, "dropwhile": in.dropWhileIterator, "takewhile": in.takeWhileIterator, "filterfalse": in.filterFalseIterator,
		"starmap": in.starMapIterator, "islice": in.sliceIterator, "pairwise": in.pairwiseIterator, "zip_longest": in.zipLongestIterator,
		"product": in.productIterator, "permutations": in.permutationsIterator, "combinations": in.combinationsIterator,
		"combinations_with_replacement": in.repeatedCombinationsIterator, "groupby": in.groupIterator,
	}
	maker := makers[strings.TrimPrefix(name, "itertools.")]
	if maker == nil {
		return nil, false, nil
	}
	step, again, err := maker(arguments)
	if err != nil {
		return nil, true, err
	}
	return &goIterator{kind: name, step: step, again: again, born: in.frame.step}, true, nil
}

func wrongArguments(name string) error {
	return unsupported(reasonBuiltinCall, "itertools.%s with these arguments", name)
}

// walkers calls iter() on each value.
func (in *Interpreter) walkers(values []Value) ([]Value, error) {
	return slice.TryMap(values, in.iterate)
}

func (in *Interpreter) countIterator(arguments Arguments) (stepper, remake, error) {
	values, ok := bindNamed(arguments, "start", "step")
	for k, standard := range []int64{0, 1} {
		if values[k] == nil {
			values[k] = integer(standard)
		}
		real, err := in.real(values[k])
		if err != nil {
			return nil, nil, err
		}
		number, isConstant := real.(*Constant)
		if !ok || !isConstant || kindClass(number.Value) != 0 {
			return nil, nil, wrongArguments("count")
		}
		values[k] = real
	}
	step := func(in *Interpreter) (Value, error) {
		current := values[0]
		following, err := in.binary(binaryOperators[0], current, values[1])
		values[0] = following
		return current, err
	}
	return step, func() (string, string, []Value) { return "name", "itertools.count", values }, nil
}

func (in *Interpreter) repeatIterator(arguments Arguments) (stepper, remake, error) {
	values, ok := bindNamed(arguments, "object", "times")
	if !ok || values[0] == nil {
		return nil, nil, wrongArguments("repeat")
	}
	if values[1] == nil {
		step := func(*Interpreter) (Value, error) { return values[0], nil }
		return step, func() (string, string, []Value) { return "name", "itertools.repeat", values[:1] }, nil
	}
	left, err := in.intArgument(values[1])
	if err != nil {
		return nil, nil, err
	}
	step := func(*Interpreter) (Value, error) {
		if left <= 0 {
			return nil, nil
		}
		left--
		return values[0], nil
	}
	return step, func() (string, string, []Value) { return "name", "itertools.repeat", []Value{values[0], integer(left)} }, nil
}

func (in *Interpreter) cycleIterator(arguments Arguments) (stepper, remake, error) {
	walkers, err := in.positionalWalkers("cycle", arguments, 1)
	if err != nil {
		return nil, nil, err
	}
	saved, ended, position := []Value{}, false, 0
	step := func(in *Interpreter) (Value, error) {
		if !ended {
			item, err := in.advance(walkers[0])
			if err != nil || item != nil {
				saved = append(saved, item)
				return item, err
			}
			ended = true
		}
		if len(saved) == 0 {
			return nil, nil
		}
		position++
		return saved[(position-1)%len(saved)], nil
	}
	again := func() (string, string, []Value) {
		if !ended {
			return "helper", "make_cycle", []Value{walkers[0], newList(saved), boolean(false)}
		}
		rest := saved
		if len(saved) > 0 {
			rest = saved[position%len(saved):]
		}
		return "helper", "make_cycle", []Value{&sequenceIterator{items: rest, kind: "list_iterator"}, newList(saved), boolean(true)}
	}
	return step, again, nil
}

// positionalWalkers calls iter() on the arguments of a function that takes exactly so many, by position.
func (in *Interpreter) positionalWalkers(name string, arguments Arguments, count int) ([]Value, error) {
	if len(arguments.Positional) != count || len(arguments.Keywords) > 0 {
		return nil, wrongArguments(name)
	}
	return in.walkers(arguments.Positional)
}

func (in *Interpreter) accumulateIterator(arguments Arguments) (stepper, remake, error) {
	values, ok := bindNamed(arguments, "iterable", "func", "initial")
	if !ok || values[0] == nil || len(arguments.Positional) > 2 {
		return nil, nil, wrongArguments("accumulate")
	}
	walker, err := in.iterate(values[0])
	if err != nil {
		return nil, nil, err
	}
	options, err := in.realAll([]Value{orNone(values[1]), orNone(values[2])})
	if err != nil {
		return nil, nil, err
	}
	function, initial := options[0], options[1]
	var total Value
	step := func(in *Interpreter) (Value, error) {
		if total == nil && !isNone(initial) {
			total = initial
			return total, nil
		}
		item, err := in.advance(walker)
		switch {
		case err != nil || item == nil:
			return nil, err
		case total == nil:
			total = item
		case isNone(function):
			total, err = in.binary(binaryOperators[0], total, item)
		default:
			total, err = in.call(function, Arguments{Positional: []Value{total, item}})
		}
		return total, err
	}
	again := func() (string, string, []Value) {
		return "helper", "make_accumulate", []Value{walker, function, initial, orNone(total), boolean(total != nil)}
	}
	return step, again, nil
}

func (in *Interpreter) chainIterator(arguments Arguments) (stepper, remake, error) {
	if len(arguments.Keywords) > 0 {
		return nil, nil, wrongArguments("chain")
	}
	step, again := chained(&sequenceIterator{items: arguments.Positional, kind: "tuple_iterator"})
	return step, again, nil
}

// chained walks the iterables that a walker gives, one after the other.
func chained(rest Value) (stepper, remake) {
	var active Value
	step := func(in *Interpreter) (Value, error) {
		for {
			if active != nil {
				if item, err := in.advance(active); err != nil || item != nil {
					return item, err
				}
				active = nil
			}
			following, err := in.advance(rest)
			if err != nil || following == nil {
				return nil, err
			}
			if active, err = in.iterate(following); err != nil {
				return nil, err
			}
		}
	}
	return step, func() (string, string, []Value) { return "helper", "make_chain", []Value{orNone(active), rest} }
}

// chainFromIterable is itertools.chain.from_iterable.
func (in *Interpreter) chainFromIterable(arguments Arguments) (Value, error) {
	walkers, err := in.positionalWalkers("chain.from_iterable", arguments, 1)
	if err != nil {
		return nil, err
	}
	step, again := chained(walkers[0])
	return &goIterator{kind: "itertools.chain", step: step, again: again, born: in.frame.step}, nil
}

func (in *Interpreter) compressIterator(arguments Arguments) (stepper, remake, error) {
	values, ok := bindNamed(arguments, "data", "selectors")
	if !ok || values[0] == nil || values[1] == nil {
		return nil, nil, wrongArguments("compress")
	}
	walkers, err := in.walkers(values)
	if err != nil {
		return nil, nil, err
	}
	step := func(in *Interpreter) (Value, error) {
		for {
			item, err := in.advance(walkers[0])
			if err != nil || item == nil {
				return nil, err
			}
			selector, err := in.advance(walkers[1])
			if err != nil || selector == nil {
				return nil, err
			}
			if keep, err := in.truth(selector); err != nil || keep {
				return item, err
			}
		}
	}
	return step, func() (string, string, []Value) { return "name", "itertools.compress", walkers }, nil
}

// predicated reads the arguments (predicate, iterable).
func (in *Interpreter) predicated(name string, arguments Arguments) (function, walker Value, err error) {
	if len(arguments.Positional) != 2 || len(arguments.Keywords) > 0 {
		return nil, nil, wrongArguments(name)
	}
	walker, err = in.iterate(arguments.Positional[1])
	return arguments.Positional[0], walker, err
}

// holds calls a predicate.
func (in *Interpreter) holds(predicate, item Value) (bool, error) {
	result, err := in.call(predicate, Arguments{Positional: []Value{item}})
	if err != nil {
		return false, err
	}
	return in.truth(result)
}

func (in *Interpreter) dropWhileIterator(arguments Arguments) (stepper, remake, error) {
	predicate, walker, err := in.predicated("dropwhile", arguments)
	started := false
	step := func(in *Interpreter) (Value, error) {
		for {
			item, err := in.advance(walker)
			if err != nil || item == nil || started {
				return item, err
			}
			drop, err := in.holds(predicate, item)
			if err != nil || !drop {
				started = err == nil
				return item, err
			}
		}
	}
	again := func() (string, string, []Value) {
		return "helper", "make_while", []Value{in.builtinClass("itertools.dropwhile"), predicate, walker, boolean(started)}
	}
	return step, again, err
}

func (in *Interpreter) takeWhileIterator(arguments Arguments) (stepper, remake, error) {
	predicate, walker, err := in.predicated("takewhile", arguments)
	stopped := false
	step := func(in *Interpreter) (Value, error) {
		if stopped {
			return nil, nil
		}
		item, err := in.advance(walker)
		if err != nil || item == nil {
			return nil, err
		}
		take, err := in.holds(predicate, item)
		if err != nil || take {
			return item, err
		}
		stopped = true
		return nil, nil
	}
	again := func() (string, string, []Value) {
		return "helper", "make_while", []Value{in.builtinClass("itertools.takewhile"), predicate, walker, boolean(stopped)}
	}
	return step, again, err
}

func (in *Interpreter) filterFalseIterator(arguments Arguments) (stepper, remake, error) {
	predicate, walker, err := in.predicated("filterfalse", arguments)
	step := func(in *Interpreter) (Value, error) {
		for {
			item, err := in.advance(walker)
			if err != nil || item == nil {
				return nil, err
			}
			if drop, err := in.filterKeeps(predicate, item); err != nil || !drop {
				return item, err
			}
		}
	}
	return step, func() (string, string, []Value) { return "name", "itertools.filterfalse", []Value{predicate, walker} }, err
}

func (in *Interpreter) starMapIterator(arguments Arguments) (stepper, remake, error) {
	function, walker, err := in.predicated("starmap", arguments)
	step := func(in *Interpreter) (Value, error) {
		item, err := in.advance(walker)
		if err != nil || item == nil {
			return nil, err
		}
		items, err := in.iterableItems(item)
		if err != nil {
			return nil, err
		}
		return in.call(function, Arguments{Positional: items})
	}
	return step, func() (string, string, []Value) { return "name", "itertools.starmap", []Value{function, walker} }, err
}

// slicedIterator is the state of an islice: how many items were read, which one comes next, and where it ends (-1: never).
type slicedIterator struct {
	walker                    Value
	read, following, stop, by int64
	ended                     bool
}

func (in *Interpreter) sliceIterator(arguments Arguments) (stepper, remake, error) {
	values := arguments.Positional
	if len(values) < 2 || len(values) > 4 || len(arguments.Keywords) > 0 {
		return nil, nil, wrongArguments("islice")
	}
	bounds := []int64{0, -1, 1}
	given := values[1:]
	if len(given) == 1 {
		given = []Value{none(), given[0]}
	}
	for k, value := range given {
		real, err := in.real(value)
		if err != nil {
			return nil, nil, err
		}
		if isNone(real) {
			continue
		}
		if bounds[k], err = in.intArgument(real); err != nil {
			return nil, nil, err
		}
		if bounds[k] < 0 || k == 2 && bounds[k] == 0 {
			return nil, nil, wrongArguments("islice")
		}
	}
	walker, err := in.iterate(values[0])
	s := &slicedIterator{walker: walker, following: bounds[0], stop: bounds[1], by: bounds[2]}
	return s.step, s.again, err
}

// step follows islice_next of CPython 3.11.
func (s *slicedIterator) step(in *Interpreter) (Value, error) {
	for !s.ended {
		if s.read >= s.following && s.stop >= 0 && s.read >= s.stop {
			break
		}
		item, err := in.advance(s.walker)
		if err != nil {
			return nil, err
		}
		if item == nil {
			break
		}
		s.read++
		if s.read > s.following {
			s.following += s.by
			if s.stop >= 0 {
				s.following = min(s.following, s.stop)
			}
			return item, nil
		}
	}
	s.ended = true
	return nil, nil
}

func (s *slicedIterator) again() (string, string, []Value) {
	if s.ended {
		return "name", "itertools.islice", []Value{&Tuple{}, integer(0)}
	}
	stop := Value(none())
	if s.stop >= 0 {
		stop = integer(s.stop - s.read)
	}
	return "name", "itertools.islice", []Value{s.walker, integer(s.following - s.read), stop, integer(s.by)}
}

func (in *Interpreter) pairwiseIterator(arguments Arguments) (stepper, remake, error) {
	walkers, err := in.positionalWalkers("pairwise", arguments, 1)
	if err != nil {
		return nil, nil, err
	}
	var old Value
	ended := false
	step := func(in *Interpreter) (Value, error) {
		items := []Value{old, nil}
		for k := range items {
			if items[k] != nil || ended {
				continue
			}
			item, err := in.advance(walkers[0])
			if err != nil {
				return nil, err
			}
			items[k], ended = item, item == nil
		}
		if ended {
			return nil, nil
		}
		old = items[1]
		return &Tuple{items: items}, nil
	}
	again := func() (string, string, []Value) {
		switch {
		case ended:
			return "name", "itertools.pairwise", []Value{&Tuple{}}
		case old == nil:
			return "name", "itertools.pairwise", walkers
		}
		return "helper", "make_pairwise", []Value{old, walkers[0]}
	}
	return step, again, nil
}

func (in *Interpreter) zipLongestIterator(arguments Arguments) (stepper, remake, error) {
	options, ok := bindNamed(Arguments{Keywords: arguments.Keywords}, "fillvalue")
	if !ok {
		return nil, nil, wrongArguments("zip_longest")
	}
	fill := orNone(options[0])
	walkers, err := in.walkers(arguments.Positional)
	left := len(walkers)
	ended := make([]bool, len(walkers))
	step := func(in *Interpreter) (Value, error) {
		if left == 0 {
			return nil, nil
		}
		row := &Tuple{}
		for k, walker := range walkers {
			var item Value
			if !ended[k] {
				if item, err = in.advance(walker); err != nil {
					left = 0
					return nil, err
				}
			}
			if item == nil {
				if !ended[k] {
					ended[k], left = true, left-1
				}
				if left == 0 {
					return nil, nil
				}
				item = fill
			}
			row.items = append(row.items, item)
		}
		return row, nil
	}
	again := func() (string, string, []Value) {
		rest := make([]Value, len(walkers))
		for k, walker := range walkers {
			rest[k] = walker
			if ended[k] || left == 0 {
				rest[k] = &Tuple{}
			}
		}
		return "helper", "make_zip_longest", []Value{&Tuple{items: rest}, fill}
	}
	return step, again, err
}

// groups is the state of a groupby: the key and the item read last, and the group that was given last.
type groups struct {
	walker, key         Value
	currentKey, current Value
	wanted              Value // the key of the group given last
	group               *goIterator
}

func (in *Interpreter) groupIterator(arguments Arguments) (stepper, remake, error) {
	values, ok := bindNamed(arguments, "iterable", "key")
	if !ok || values[0] == nil {
		return nil, nil, wrongArguments("groupby")
	}
	walker, err := in.iterate(values[0])
	if err != nil {
		return nil, nil, err
	}
	key, err := in.real(orNone(values[1]))
	g := &groups{walker: walker, key: key}
	return g.step, nil, err
}

// read takes the next item and computes its key; false at the end.
func (g *groups) read(in *Interpreter) (bool, error) {
	item, err := in.advance(g.walker)
	if err != nil || item == nil {
		return false, err
	}
	key, err := in.rank(g.key, item)
	if err != nil {
		return false, err
	}
	g.currentKey, g.current = key, item
	return true, nil
}

func (g *groups) step(in *Interpreter) (Value, error) {
	g.group = nil
	for {
		if g.currentKey != nil {
			if g.wanted == nil {
				break
			}
			if same, err := in.sameOrEqual(g.wanted, g.currentKey); err != nil || !same {
				if err != nil {
					return nil, err
				}
				break
			}
		}
		if more, err := g.read(in); err != nil || !more {
			return nil, err
		}
	}
	g.wanted = g.currentKey
	group := &goIterator{kind: "itertools._grouper", born: in.frame.step}
	key := g.wanted
	group.step = func(in *Interpreter) (Value, error) { return g.member(in, group, key) }
	g.group = group
	return &Tuple{items: []Value{key, group}}, nil
}

// member is the next item of a group, as long as no other group was asked for.
func (g *groups) member(in *Interpreter, group *goIterator, key Value) (Value, error) {
	if g.group != group {
		return nil, nil
	}
	if g.current == nil {
		if more, err := g.read(in); err != nil || !more {
			return nil, err
		}
	}
	same, err := in.sameOrEqual(key, g.currentKey)
	if err != nil || !same {
		return nil, err
	}
	item := g.current
	g.current = nil
	return item, nil
}

// teeCall is itertools.tee: the iterators share what one of them read ahead.
func (in *Interpreter) teeCall(arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if len(values) < 1 || len(values) > 2 || len(arguments.Keywords) > 0 {
		return nil, true, wrongArguments("tee")
	}
	count := int64(2)
	var err error
	if len(values) == 2 {
		if count, err = in.intArgument(values[1]); err != nil {
			return nil, true, err
		}
	}
	walker, err := in.iterate(values[0])
	if err != nil {
		return nil, true, err
	}
	shared := &teeQueues{walker: walker, ahead: make([][]Value, max(count, 0))}
	branches := &Tuple{items: []Value{}}
	for k := range shared.ahead {
		step := func(in *Interpreter) (Value, error) { return shared.next(in, k) }
		branches.items = append(branches.items, &goIterator{kind: "itertools._tee", step: step, born: in.frame.step})
	}
	return branches, true, nil
}

// teeQueues is what the iterators that itertools.tee gives share.
type teeQueues struct {
	walker  Value
	ahead   [][]Value // the items that each of them has yet to give
	reading bool      // the walker's own code is running
}

// next is the step of one of the iterators.
func (t *teeQueues) next(in *Interpreter, branch int) (Value, error) {
	if len(t.ahead[branch]) == 0 {
		if t.reading {
			return nil, in.raise("RuntimeError", "cannot re-enter the tee iterator")
		}
		t.reading = true
		item, err := in.advance(t.walker)
		t.reading = false
		if err != nil || item == nil {
			return nil, err
		}
		for other := range t.ahead {
			t.ahead[other] = append(t.ahead[other], item)
		}
	}
	item := t.ahead[branch][0]
	t.ahead[branch] = t.ahead[branch][1:]
	return item, nil
}
