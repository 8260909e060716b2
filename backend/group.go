package backend

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/graph"
)

// group is a set of operations that become one kernel. Its index space is space; the dimensions with inner set are loops inside each outer
// point, along which its reductions run.
type group struct {
	members  []*operation // in reverse program order
	mappings map[*operation]mapping
	space    []graph.Size
	inner    []bool
	segment  int
	device   graph.Device
	library  bool // a single library call
	stored   map[*tensor]bool
	after    map[*group]bool // groups that use what this one makes
	order    int
	split    bool // the last of space counts parts of the inner points
}

// hasInner reports whether the group has reductions.
func (g *group) hasInner() bool {
	for _, inner := range g.inner {
		if inner {
			return true
		}
	}
	return false
}

// reaches reports whether other must run after g.
func (g *group) reaches(other *group, seen map[*group]bool) bool {
	if g == other {
		return true
	}
	if seen[g] {
		return false
	}
	seen[g] = true
	for next := range g.after {
		if next.reaches(other, seen) {
			return true
		}
	}
	return false
}

// fuse gives every operation a group. It walks the program backwards, so that when an operation is placed all its uses are known: one whose uses
// all lie in one group, at indices that group can compute, is computed there and never stored.
func fuse(c *compilation) error {
	f := &fusion{shapes: c.program.graph.Shapes}
	operations := c.program.operations
	for index := len(operations) - 1; index >= 0; index-- {
		if c.compiler.options.Unfused {
			f.start(operations[index])
		} else {
			f.place(operations[index])
		}
	}
	c.groups = f.groups
	if c.compiler.options.Check {
		return f.verifyStores()
	}
	return nil
}

type fusion struct {
	shapes *graph.ShapeEnvironment
	groups []*group
}

func (f *fusion) place(op *operation) {
	if op.kind == library || op.barrier || op.apart {
		f.start(op)
		return
	}
	users := f.candidates(op)
	for _, g := range users {
		m, ok := f.placement(op, g)
		if ok && g.runsInside(m) && endsRows(op) {
			continue // it goes with the rows that it reads, which many threads compute, and leaves one number of each
		}
		if ok && g.repeats(m) > replicatedRows && readsSeveral(op) {
			continue // reading its operands again and again costs more than a kernel
		}
		if ok && f.join(op, g, m) {
			return
		}
	}
	for _, g := range f.siblings(op) {
		if slices.Contains(users, g) {
			continue // it reads the result at other indices, which takes memory
		}
		if m, ok := f.alongside(op, g); ok && f.join(op, g, m) {
			return
		}
	}
	f.start(op)
}

// runsInside reports whether the mapping uses an inner dimension of the group.
func (g *group) runsInside(m mapping) bool {
	return slices.ContainsFunc(m, func(dimension int) bool { return dimension >= 0 && g.inner[dimension] })
}

// repeats returns how many points of a group with reductions need each value of an operation with the mapping.
func (g *group) repeats(m mapping) int64 {
	result := int64(1)
	if !g.hasInner() {
		return result
	}
	for dimension, size := range g.space {
		if !slices.Contains(m, dimension) {
			result *= size.Hint
		}
	}
	return result
}

// readsSeveral reports whether a formula reads more than one tensor of more than one element.
func readsSeveral(op *operation) bool {
	count := 0
	for _, operand := range op.operands {
		if operand.tensor != nil && len(significant(operand.tensor.meta.Sizes)) > 0 {
			count++
		}
	}
	return count > 1
}

// endsRows reports whether a formula has one value for each result of a reduction that it needs.
func endsRows(op *operation) bool {
	return op.kind == pointwise && !spreadsReduction(op) && op.needs(alongRows, func(producer *operation) bool { return producer.kind == reduction })
}

// alongRows gives what makes an operand, where that has one value for each of the operation's and is a reduction or a formula of rows itself.
func alongRows(op *operation, o operand) *operation {
	if o.tensor == nil || o.gather != nil || !sameSizes(significant(o.tensor.meta.Sizes), significant(op.outputs[0].meta.Sizes)) {
		return nil
	}
	if !sameSizes(significant(o.tensor.meta.Sizes), significant(o.tensor.root.meta.Sizes)) {
		return nil // it reads the results in another shape, for which their kernel has no place
	}
	producer := o.tensor.root.producer
	if producer == nil || len(significant(op.outputs[0].meta.Sizes)) == 0 {
		return nil
	}
	if producer.kind == reduction || producer.kind == pointwise && !spreadsReduction(producer) {
		return producer
	}
	return nil
}

// needs searches what an operation is made of, by way of the producers that next gives for operands, each of them once.
func (op *operation) needs(next func(*operation, operand) *operation, found func(*operation) bool) bool {
	seen := map[*operation]bool{}
	var search func(*operation) bool
	search = func(op *operation) bool {
		return slices.ContainsFunc(op.operands, func(o operand) bool {
			producer := next(op, o)
			if producer == nil || seen[producer] {
				return false
			}
			seen[producer] = true
			return found(producer) || search(producer)
		})
	}
	return search(op)
}

// spreadsReduction reports whether a formula reads one result of a reduction for many of its own values, as what centres a row by its mean does: it
// follows that reduction, wherever its other operands come from.
func spreadsReduction(op *operation) bool {
	return slices.ContainsFunc(op.operands, func(operand operand) bool {
		if operand.tensor == nil || operand.tensor.root.producer == nil || len(significant(operand.tensor.root.meta.Sizes)) >= len(significant(op.outputs[0].meta.Sizes)) {
			return false
		}
		producer := operand.tensor.root.producer
		return producer.kind == reduction || slices.ContainsFunc(producer.operands, madeByReduction)
	})
}

func madeByReduction(o operand) bool {
	return o.tensor != nil && o.tensor.root.producer != nil && o.tensor.root.producer.kind == reduction
}

// siblingReach bounds how many groups back an operation looks for one that reads the same memory.
const siblingReach = 16

// siblings lists groups that read one of the operation's operands in full, so that joining them saves reading it again.
func (f *fusion) siblings(op *operation) []*group {
	var result []*group
	for _, g := range slices.Backward(f.groups[max(0, len(f.groups)-siblingReach):]) {
		if !g.library && g.segment == op.segment && g.device == op.device() && sharesOperand(op, g) {
			result = append(result, g)
		}
	}
	return result
}

func sharesOperand(op *operation, g *group) bool {
	read := op.elements()
	return slices.ContainsFunc(g.members, func(member *operation) bool {
		return slices.ContainsFunc(member.elements(), func(other *tensor) bool {
			return slices.ContainsFunc(read, func(t *tensor) bool { return t.root == other.root && sameSizes(t.meta.Sizes, other.meta.Sizes) })
		})
	})
}

// elements lists what an operation reads at all its points; for a reduction also what formulas without a kernel yet read for it.
func (op *operation) elements() []*tensor {
	var result []*tensor
	for _, operand := range op.operands {
		t := operand.tensor
		if t == nil || !sameSizes(t.meta.Sizes, op.inputSpace()) {
			continue
		}
		result = append(result, t)
		if made := t.producer; op.kind == reduction && made != nil && made.kind == pointwise && made.group == nil {
			for _, inner := range made.operands {
				if inner.tensor != nil && sameSizes(inner.tensor.meta.Sizes, t.meta.Sizes) {
					result = append(result, inner.tensor)
				}
			}
		}
	}
	return result
}

// alongside places an operation in a group that does not use its result: its index space must be the group's, dimension for dimension.
func (f *fusion) alongside(op *operation, g *group) (mapping, bool) {
	space, inner := op.ownSpace()
	if sameSizes(space, g.space) && (op.kind == pointwise && f.readsAlike(op, g) || slices.Equal(inner, g.inner)) {
		return identity(op.outputs[0].meta.Sizes), true
	}
	if op.kind != reduction || !sameSizes(op.inputSpace(), g.space) {
		return nil, false
	}
	keep := op.keeps()
	var result mapping
	for dimension, reduced := range op.reduced {
		switch {
		case reduced && keep || !reduced && isStatic(g.space[dimension], 1):
			result = append(result, -1)
		case !reduced:
			result = append(result, dimension)
		}
	}
	return result, true
}

// readsAlike reports whether a formula that goes over the dimensions of a group reads some element where the group does at the same point. Dimensions may be of
// one size and yet others.
func (f *fusion) readsAlike(op *operation, g *group) bool {
	rank := len(g.space)
	return slices.ContainsFunc(op.elements(), func(t *tensor) bool {
		at := reading(f.shapes, t, op.inputSpace(), identity(op.outputs[0].meta.Sizes), rank)
		return slices.ContainsFunc(g.members, func(member *operation) bool {
			return slices.ContainsFunc(member.elements(), func(other *tensor) bool {
				return other.root == t.root && at.equal(reading(f.shapes, other, member.inputSpace(), member.inputMapping(g), rank))
			})
		})
	})
}

// consumers lists the operations that read an operation's outputs; reads of views count as reads of their roots.
func consumers(op *operation) []*operation {
	var result []*operation
	for _, output := range op.outputs {
		if output != nil {
			result = append(result, output.uses...)
		}
	}
	return result
}

// candidates lists the groups that use the operation's result, each once, in order of program.
func (f *fusion) candidates(op *operation) []*group {
	var result []*group
	seen := map[*group]bool{}
	for _, user := range consumers(op) {
		if g := user.group; g != nil && !seen[g] && !g.library && g.segment == op.segment && g.device == op.device() {
			seen[g] = true
			result = append(result, g)
		}
	}
	return result
}

func (op *operation) device() graph.Device {
	for _, output := range op.outputs {
		if output != nil {
			return output.meta.Device
		}
	}
	return graph.Device{}
}

// start opens a group for the operation alone.
func (f *fusion) start(op *operation) {
	g := &group{mappings: map[*operation]mapping{}, stored: map[*tensor]bool{}, after: map[*group]bool{}, segment: op.segment, device: op.device()}
	f.groups = append(f.groups, g)
	g.library = op.kind == library
	if !g.library {
		g.space, g.inner = op.ownSpace()
		f.add(op, g, identity(op.outputs[0].meta.Sizes))
	} else {
		f.add(op, g, nil)
	}
	for _, output := range op.outputs {
		if output != nil {
			g.stored[output] = true
		}
	}
}

// ownSpace is the index space of an operation by itself: its output's dimensions, then those it reduces.
func (op *operation) ownSpace() ([]graph.Size, []bool) {
	space := append([]graph.Size(nil), op.outputs[0].meta.Sizes...)
	inner := make([]bool, len(space))
	for _, size := range significant(op.reducedSizes()) {
		space, inner = append(space, size), append(inner, true)
	}
	return space, inner
}

func (f *fusion) add(op *operation, g *group, m mapping) {
	g.members = append(g.members, op)
	g.mappings[op] = m
	op.group = g
	for _, user := range followers(op) {
		if user.group != g && user.group != nil {
			g.after[user.group] = true
		}
	}
}

// memberLimit bounds a kernel's length, because compile time grows faster than it and registers run out.
const memberLimit = 96

// join puts the operation into the group, placed by m, when no cycle of groups arises and what must be stored can be.
func (f *fusion) join(op *operation, g *group, m mapping) bool {
	if len(g.members) >= memberLimit || f.cyclic(op, g) || !f.undisturbed(op, g, m) {
		return false
	}
	stored := f.mustStore(op, g)
	extension, ok := f.extension(op, g, m)
	if !ok || stored && !f.storable(op, g, m) {
		return false
	}
	for _, size := range extension {
		g.space, g.inner = append(g.space, size), append(g.inner, true)
	}
	if op.kind == reduction {
		f.markInner(op, g, m)
	}
	if stored {
		g.stored[op.outputs[0]] = true
	}
	f.add(op, g, m)
	return true
}

// placement finds the one mapping that all reads within the group agree on.
func (f *fusion) placement(op *operation, g *group) (mapping, bool) {
	var result mapping
	for _, user := range consumers(op) {
		if user.group != g {
			continue
		}
		for _, operand := range user.operands {
			if operand.tensor == nil || operand.tensor.root.producer != op {
				continue
			}
			m, ok := f.readMapping(user, operand.tensor, g)
			if !ok || operand.gather != nil || result != nil && !result.equal(m) {
				return nil, false
			}
			result = m
		}
	}
	return result, result != nil
}

// readMapping returns where in the kernel's index space user reads the elements of the operand's root.
func (f *fusion) readMapping(user *operation, operand *tensor, g *group) (mapping, bool) {
	access := reading(f.shapes, operand, user.inputSpace(), user.inputMapping(g), len(g.space))
	return invert(&operand.root.meta, access, g.space)
}

// inputSpace is the index space an operation reads its operands over: the output's, or a reduction's operand's.
func (op *operation) inputSpace() []graph.Size {
	if op.kind == reduction {
		return op.operands[0].tensor.meta.Sizes
	}
	return op.outputs[0].meta.Sizes
}

// inputMapping places inputSpace in the group's space: a reduction's dimensions run along the group's inner ones, in order.
func (op *operation) inputMapping(g *group) mapping {
	m := g.mappings[op]
	if op.kind != reduction {
		return m
	}
	var inner []int
	for dimension := range g.space {
		if g.inner[dimension] {
			inner = append(inner, dimension)
		}
	}
	keep := op.keeps()
	result, kept, next := make(mapping, len(op.reduced)), 0, 0
	for dimension, reduced := range op.reduced {
		switch {
		case reduced && isStatic(op.operands[0].tensor.meta.Sizes[dimension], 1):
			result[dimension] = -1
		case reduced:
			result[dimension] = inner[next]
			next++
		default:
			result[dimension] = m[kept]
		}
		if keep || !reduced {
			kept++
		}
	}
	return result
}

// keeps reports whether a reduction keeps the dimensions that it reduces, as one element each.
func (op *operation) keeps() bool {
	rank := len(op.outputs[0].meta.Sizes)
	if op.part {
		rank--
	}
	return rank == len(op.reduced)
}

// cyclic reports whether a group that uses the operation must run before g, in which case the operation cannot be made in g.
func (f *fusion) cyclic(op *operation, g *group) bool {
	for _, user := range followers(op) {
		if user.group != g && user.group.reaches(g, map[*group]bool{}) {
			return true
		}
	}
	return false
}

// mustStore reports whether somebody outside the group needs the result.
func (f *fusion) mustStore(op *operation, g *group) bool {
	return op.outputs[0].output || op.leavesMemory(g) || slices.ContainsFunc(consumers(op), func(user *operation) bool { return user.group != g })
}

// storable reports whether each element is computed at exactly one point of the kernel's outer space or of its whole space, and at one even where the
// dimensions that the operation does not have are empty.
func (f *fusion) storable(op *operation, g *group, m mapping) bool {
	if op.kind == reduction {
		return true // extension has made sure that all it leaves out is inner
	}
	all, outer, visited := true, true, true
	for dimension, size := range g.space {
		if isStatic(size, 1) || m.has(dimension) {
			continue
		}
		all = false
		outer = outer && g.inner[dimension]
		visited = visited && f.shapes.AtLeast(size, 1)
	}
	return all || outer && g.hasInner() && (visited || !g.runsInside(m))
}

// verifyStores checks that kernels compute every element of what they store. The error names the operation.
func (f *fusion) verifyStores() error {
	for _, g := range f.groups {
		for _, op := range g.members {
			if !g.library && g.stored[op.outputs[0]] && !f.storable(op, g, g.mappings[op]) {
				return errors.Newf("%s is stored by a kernel that does not compute each of its elements once", op.name)
			}
		}
	}
	return nil
}

// rowLimit and pointLimit keep reductions from taking parallelism away: a kernel with fewer outer points than pointLimit may only reduce
// over rows up to rowLimit elements, unless parts of a row can be reduced apart.
const (
	pointLimit = 4
	rowLimit   = 16384
)

// starves reports whether a reduction has too few results to keep a machine busy, and enough to combine for each that parts pay even where what needs
// the results must read all elements again.
func (op *operation) starves() bool {
	const manyParts = 16
	outer, inner := product(op.outputs[0].meta.Sizes), product(significant(op.reducedSizes()))
	if outer < pointLimit && inner > rowLimit {
		return true
	}
	return op.device().Type == "cuda" && !op.reduce.Positional() && cudaParts(outer, inner, op.alongColumns()) >= manyParts
}

// extension returns the inner dimensions that a reduction adds to the group; false when it does not fit.
func (f *fusion) extension(op *operation, g *group, m mapping) ([]graph.Size, bool) {
	if op.kind != reduction {
		return nil, true
	}
	reduced := significant(op.reducedSizes())
	rest := f.restOf(g, m)
	if op.starves() && (op.reduce.Positional() || f.usedInside(op, g, m)) {
		return nil, false
	}
	if len(rest) > 0 || g.hasInner() {
		return nil, sameSizes(significant(rest), reduced) && f.innerAgrees(g, m)
	}
	return reduced, true
}

// usedInside reports whether the group needs a reduction's result for each element, or for another reduction.
func (f *fusion) usedInside(op *operation, g *group, m mapping) bool {
	return slices.ContainsFunc(consumers(op), func(user *operation) bool {
		if user.group != g {
			return false
		}
		inside := slices.ContainsFunc(g.mappings[user], func(dimension int) bool {
			return dimension >= 0 && !m.has(dimension) && !isStatic(g.space[dimension], 1)
		})
		return user.kind == reduction || inside || f.usedInside(user, g, m)
	})
}

func (op *operation) reducedSizes() []graph.Size {
	if op.kind != reduction {
		return nil
	}
	return chosenSizes(op.operands[0].tensor.meta.Sizes, op.reduced)
}

// chosenSizes lists the sizes of the dimensions that are marked.
func chosenSizes(sizes []graph.Size, marked []bool) []graph.Size {
	var result []graph.Size
	for dimension, chosen := range marked {
		if chosen {
			result = append(result, sizes[dimension])
		}
	}
	return result
}

// significant drops sizes of 1.
func significant(sizes []graph.Size) []graph.Size {
	var result []graph.Size
	for _, size := range sizes {
		if !isStatic(size, 1) {
			result = append(result, size)
		}
	}
	return result
}

// restOf lists the sizes of the group's dimensions that the mapping leaves out, apart from single elements.
func (f *fusion) restOf(g *group, m mapping) []graph.Size {
	var result []graph.Size
	for dimension, size := range g.space {
		if !m.has(dimension) && !isStatic(size, 1) {
			result = append(result, size)
		}
	}
	return result
}

func (m mapping) has(dimension int) bool {
	for _, kernel := range m {
		if kernel == dimension {
			return true
		}
	}
	return false
}

// innerAgrees reports whether the dimensions a reduction leaves out are the group's inner ones, once it has any.
func (f *fusion) innerAgrees(g *group, m mapping) bool {
	if !g.hasInner() {
		return true
	}
	for dimension, size := range g.space {
		if !isStatic(size, 1) && g.inner[dimension] == m.has(dimension) {
			return false
		}
	}
	return true
}

// markInner makes the dimensions that a reduction runs along inner ones.
func (f *fusion) markInner(op *operation, g *group, m mapping) {
	if g.hasInner() {
		return
	}
	for dimension, size := range g.space {
		g.inner[dimension] = !m.has(dimension) && !isStatic(size, 1)
	}
}
