package symbolic

// selection walks index tuples in the order of CPython's itertools; each index picks an item of its pool.
type selection struct {
	pools   [][]Value
	indices []int
	started bool
	ended   bool
	advance func() bool // moves indices on; false at the end
}

func (s *selection) step(*Interpreter) (Value, error) {
	if s.started && !s.ended {
		s.ended = !s.advance()
	}
	s.started = true
	if s.ended {
		return nil, nil
	}
	row := &Tuple{items: make([]Value, len(s.pools))}
	for k, pool := range s.pools {
		row.items[k] = pool[s.indices[k]]
	}
	return row, nil
}

// iterator makes the iterator; Python makes it again from its arguments and takes as many items as were taken.
func (in *Interpreter) selectionIterator(s *selection, class string, arguments ...Value) (stepper, remake, error) {
	taken := int64(0)
	step := func(in *Interpreter) (Value, error) {
		item, err := s.step(in)
		if item != nil {
			taken++
		}
		return item, err
	}
	again := func() (string, string, []Value) {
		return "helper", "make_advanced", []Value{in.builtinClass("itertools." + class), &Tuple{items: arguments}, integer(taken)}
	}
	return step, again, nil
}

func (in *Interpreter) productIterator(arguments Arguments) (stepper, remake, error) {
	options, ok := bindNamed(Arguments{Keywords: arguments.Keywords}, "repeat")
	if !ok {
		return nil, nil, wrongArguments("product")
	}
	repeat := int64(1)
	if options[0] != nil {
		var err error
		if repeat, err = in.intArgument(options[0]); err != nil || repeat < 0 || repeat > 1000 {
			return nil, nil, wrongArguments("product")
		}
	}
	var given [][]Value
	for _, argument := range arguments.Positional {
		items, err := in.iterableItems(argument)
		if err != nil {
			return nil, nil, err
		}
		given = append(given, append([]Value{}, items...))
	}
	s := &selection{}
	var pools []Value
	for ; repeat > 0; repeat-- {
		for _, pool := range given {
			s.pools = append(s.pools, pool)
			pools = append(pools, &Tuple{items: pool})
			s.ended = s.ended || len(pool) == 0
		}
	}
	s.indices = make([]int, len(s.pools))
	s.advance = func() bool {
		for k := len(s.indices) - 1; k >= 0; k-- {
			if s.indices[k]++; s.indices[k] < len(s.pools[k]) {
				return true
			}
			s.indices[k] = 0
		}
		return false
	}
	return in.selectionIterator(s, "product", pools...)
}

// chosen reads (iterable, r) and prepares a selection of r items of one pool; r is the pool's length where it may be left out.
func (in *Interpreter) chosen(name string, arguments Arguments, optional bool) (*selection, []Value, int, error) {
	values, ok := bindNamed(arguments, "iterable", "r")
	if !ok || values[0] == nil || values[1] == nil && !optional {
		return nil, nil, 0, wrongArguments(name)
	}
	pool, err := in.iterableItems(values[0])
	if err != nil {
		return nil, nil, 0, err
	}
	pool = append([]Value{}, pool...)
	count := int64(len(pool))
	size, err := in.real(orNone(values[1]))
	if err != nil {
		return nil, nil, 0, err
	}
	if !isNone(size) {
		if count, err = in.intArgument(size); err != nil || count < 0 || count > 1000 {
			return nil, nil, 0, wrongArguments(name)
		}
	}
	s := &selection{indices: make([]int, count)}
	for range s.indices {
		s.pools = append(s.pools, pool)
	}
	return s, []Value{&Tuple{items: pool}, integer(count)}, len(pool), nil
}

func (in *Interpreter) combinationsIterator(arguments Arguments) (stepper, remake, error) {
	s, remade, n, err := in.chosen("combinations", arguments, false)
	if err != nil {
		return nil, nil, err
	}
	s.ended = len(s.indices) > n
	for k := range s.indices {
		s.indices[k] = k
	}
	s.advance = func() bool { return nextCombination(s.indices, n) }
	return in.selectionIterator(s, "combinations", remade...)
}

// nextCombination moves increasing indices below n on in lexicographic order.
func nextCombination(indices []int, n int) bool {
	r := len(indices)
	for k := r - 1; k >= 0; k-- {
		if indices[k] == k+n-r {
			continue
		}
		indices[k]++
		for j := k + 1; j < r; j++ {
			indices[j] = indices[j-1] + 1
		}
		return true
	}
	return false
}

func (in *Interpreter) repeatedCombinationsIterator(arguments Arguments) (stepper, remake, error) {
	s, remade, n, err := in.chosen("combinations_with_replacement", arguments, false)
	if err != nil {
		return nil, nil, err
	}
	s.ended = n == 0 && len(s.indices) > 0
	s.advance = func() bool {
		for k := len(s.indices) - 1; k >= 0; k-- {
			if s.indices[k] == n-1 {
				continue
			}
			following := s.indices[k] + 1
			for j := k; j < len(s.indices); j++ {
				s.indices[j] = following
			}
			return true
		}
		return false
	}
	return in.selectionIterator(s, "combinations_with_replacement", remade...)
}

func (in *Interpreter) permutationsIterator(arguments Arguments) (stepper, remake, error) {
	s, remade, n, err := in.chosen("permutations", arguments, true)
	if err != nil {
		return nil, nil, err
	}
	r := len(s.indices)
	s.ended = r > n
	order, cycles := make([]int, n), make([]int, min(r, n))
	for k := range order {
		order[k] = k
	}
	for k := range cycles {
		cycles[k] = n - k
	}
	copy(s.indices, order)
	s.advance = func() bool {
		moved := nextPermutation(order, cycles)
		copy(s.indices, order)
		return moved
	}
	return in.selectionIterator(s, "permutations", remade...)
}

// nextPermutation moves the first len(cycles) of the indices on, in the order of itertools.permutations.
func nextPermutation(order, cycles []int) bool {
	n := len(order)
	for k := len(cycles) - 1; k >= 0; k-- {
		cycles[k]--
		if cycles[k] > 0 {
			other := n - cycles[k]
			order[k], order[other] = order[other], order[k]
			return true
		}
		first := order[k]
		copy(order[k:], order[k+1:])
		order[n-1] = first
		cycles[k] = n - k
	}
	return false
}
