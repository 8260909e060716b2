package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
)

// step is one step of a plan with the slots it touches.
type step struct {
	object bytecode.Tuple
	slots  []int
	text   string
}

// plan is a launch plan under construction.
type plan struct {
	compilation *compilation
	slots       int
	slotOf      map[*tensor]int
	steps       []step
	kernels     []bytecode.Object
	kernelIndex map[string]int64
}

// makePlan lists the steps in order of groups, frees every slot after its last use, and returns the plan as an object of the contract.
func makePlan(c *compilation) error {
	p := &plan{compilation: c, slots: len(c.program.inputs), slotOf: map[*tensor]int{}, kernelIndex: map[string]int64{}}
	for index, input := range c.program.inputs {
		if input != nil {
			p.slotOf[input] = index
		}
	}
	for index, g := range c.groups {
		if err := p.group(g, c.kernels[index]); err != nil {
			return errors.Wrapf(err, "%s", g.members[0].name)
		}
	}
	p.countWrites()
	outputs, err := p.outputs()
	if err != nil {
		return err
	}
	p.free(outputs)
	if c.compiler.options.Check {
		if err := p.verify(outputs); err != nil {
			return err
		}
	}
	c.plan = p
	c.result.Plan = p.object(outputs)
	c.result.Apart = len(c.program.apart) > 0
	for _, step := range p.steps {
		c.result.Steps = append(c.result.Steps, step.text)
	}
	return nil
}

func (p *plan) group(g *group, k *kernel) error {
	if g.library && g.members[0].node.Target == graph.GeneratorStateTarget {
		return p.readGenerator(g.members[0])
	}
	if g.library {
		return p.call(g.members[0])
	}
	for _, root := range k.arguments {
		if g.stored[root] {
			if err := p.allocate(root); err != nil {
				return err
			}
		}
	}
	return p.launch(g, k)
}

// countWrites has autograd know of the inputs that kernels wrote. Library calls tell it themselves, and inference tensors have no versions.
func (p *plan) countWrites() {
	written := p.compilation.program.written()
	for slot, input := range p.compilation.program.inputs {
		if input != nil && written[input.root] && input.meta.Flags&graph.FlagInference == 0 {
			p.add(fmt.Sprintf("slot %d was written", slot), []int{slot}, "written", int64(slot))
		}
	}
}

// written holds the memory that operations write besides what they make.
func (p *program) written() map[*tensor]bool {
	written := map[*tensor]bool{}
	for _, op := range p.operations {
		for _, output := range op.outputs {
			if output != nil && output.into != nil {
				written[output.memory()] = true
			}
		}
	}
	return written
}

// newSlot gives the tensor the next slot.
func (p *plan) newSlot(t *tensor) int {
	p.slotOf[t] = p.slots
	p.slots++
	return p.slots - 1
}

func (p *plan) add(text string, slots []int, items ...bytecode.Object) {
	p.steps = append(p.steps, step{object: items, slots: slots, text: text})
}

// deviceNumber is c10::DeviceType's number and the device's index; the CPU's index is −1.
func deviceNumber(device graph.Device) (number, index int64) {
	switch device.Type {
	case "", "cpu":
		return 0, -1
	case "cuda":
		return 1, int64(device.Index)
	case "meta":
		return 14, int64(device.Index)
	}
	return -1, int64(device.Index)
}

func (p *plan) allocate(t *tensor) error {
	sizes, err := p.sizes(t.meta.Sizes)
	if err != nil {
		return err
	}
	strides, err := p.sizes(t.meta.Strides)
	if err != nil {
		return err
	}
	device, index := deviceNumber(t.meta.Device)
	slot := p.newSlot(t)
	text := fmt.Sprintf("slot %d = alloc %s", slot, t.meta)
	p.add(text, []int{slot}, "alloc", int64(slot), int64(t.meta.DType.ScalarType()), device, index, sizes, strides)
	return nil
}

// launch appends a kernel step, unless the kernel has no points.
func (p *plan) launch(g *group, k *kernel) error {
	if isStatic(k.work, 0) {
		return nil
	}
	var slots []int
	list := &bytecode.List{}
	for _, root := range k.arguments {
		slot, ok := p.slotOf[root]
		if !ok {
			return errors.Newf("%s is read before it is made", root.name)
		}
		slots = append(slots, slot)
		list.Items = append(list.Items, int64(slot))
	}
	integers, err := p.sizes(k.integers)
	if err != nil {
		return err
	}
	if k.loop.Parts != nil {
		k.work = batchedWork(k.loop.Parts, max(p.compilation.images[k.loop.Name].Items, 1))
	}
	work, err := p.size(k.work)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("kernel %s(%s) over %s", k.loop.Name, joinSlots(slots), k.work)
	for _, size := range k.integers {
		if item, ok := p.compilation.program.items.of(size); ok {
			slots = append(slots, p.slotOf[item.state])
		}
	}
	p.add(text, slots, "kernel", p.kernel(g, k), list, integers, work)
	return nil
}

func joinSlots(slots []int) string {
	texts := make([]string, len(slots))
	for index, slot := range slots {
		texts[index] = fmt.Sprint(slot)
	}
	return strings.Join(texts, ", ")
}

// kernel returns the kernel's number in the plan.
func (p *plan) kernel(g *group, k *kernel) int64 {
	index, known := p.kernelIndex[k.loop.Name]
	if !known {
		index = int64(len(p.kernels))
		p.kernelIndex[k.loop.Name] = index
		p.kernels = append(p.kernels, wiredKernel(g.device, k.loop.Name, p.compilation.images[k.loop.Name]))
	}
	return index
}

// wiredKernel writes a kernel as docs/contracts.md, section 7.
func wiredKernel(device graph.Device, name string, image Image) bytecode.Tuple {
	if device.Type == "cuda" {
		return bytecode.Tuple{"cuda", name, bytecode.Bytes(image.Code), image.Block, image.Items, image.Shared, image.Dependent}
	}
	return bytecode.Tuple{"cpu", name, bytecode.Bytes(image.Code)}
}

// slot returns where a tensor is, making a view of its root where it has no slot yet.
func (p *plan) slot(t *tensor) (int, error) {
	if slot, ok := p.slotOf[t]; ok {
		return slot, nil
	}
	if slot, ok := p.slotOf[t.memory()]; ok && t.into != nil {
		return slot, nil
	}
	if t.untracked != nil && t.output {
		op := &operation{kind: library, node: t.untracked, outputs: []*tensor{t}}
		err := p.call(op)
		return p.slotOf[t], err
	}
	base, ok := p.slotOf[t.memory()]
	if !ok || t.root == t {
		return 0, errors.Newf("%s is read before it is made", t.name)
	}
	sizes, err := p.sizes(t.meta.Sizes)
	if err != nil {
		return 0, err
	}
	strides, err := p.sizes(t.meta.Strides)
	if err != nil {
		return 0, err
	}
	offset, err := p.size(p.compilation.graph.Shapes.Subtract(t.meta.Offset, t.root.meta.Offset))
	if err != nil {
		return 0, err
	}
	slot := p.newSlot(t)
	text := fmt.Sprintf("slot %d = view of slot %d as %s", slot, base, t.meta)
	p.add(text, []int{slot, base}, "view", int64(slot), int64(base), sizes, strides, offset)
	return slot, nil
}

func (p *plan) outputs() ([]int, error) {
	return slice.TryMap(p.compilation.program.outputs, p.outputSlot)
}

func (p *plan) outputSlot(output operand) (int, error) {
	if output.scalar != nil {
		return output.scalar.slot, nil
	}
	return p.slot(output.tensor)
}

// free inserts a step after the last use of every slot that is no output, and no input either unless the plan is handed its inputs to keep.
func (p *plan) free(outputs []int) {
	inputs := p.keptInputs()
	seen := map[int]bool{}
	var steps []step
	for index := len(p.steps) - 1; index >= 0; index-- {
		slots := slices.Clone(p.steps[index].slots)
		slices.Sort(slots)
		for _, slot := range slices.Backward(slices.Compact(slots)) {
			if slot < inputs || seen[slot] || slices.Contains(outputs, slot) {
				continue
			}
			seen[slot] = true
			steps = append(steps, step{bytecode.Tuple{"free", int64(slot)}, nil, fmt.Sprintf("free slot %d", slot)})
		}
		steps = append(steps, p.steps[index])
	}
	slices.Reverse(steps)
	p.steps = steps
}

// keptInputs counts the first slots that stay as long as the plan runs: sizes that change may be read from any input up to the end.
func (p *plan) keptInputs() int {
	reads := func(symbol graph.Symbol) bool { return symbol.Source.Dim >= 0 }
	if p.compilation.compiler.options.Consumes && !slices.ContainsFunc(p.compilation.graph.UsedSymbols(), reads) {
		return 0
	}
	return len(p.compilation.program.inputs)
}

// verify checks that every step touches slots that are there, and that those that are not returned are freed. The error names the step.
func (p *plan) verify(outputs []int) error {
	there := map[int]bool{}
	for slot := range p.compilation.program.inputs {
		there[slot] = true
	}
	for _, step := range p.steps {
		if step.object[0] == bytecode.Object("free") {
			delete(there, int(step.object[1].(int64)))
			continue
		}
		for position, slot := range step.slots {
			makes := step.object[0] == bytecode.Object("aten") || step.object[0] != bytecode.Object("kernel") && position == 0
			if !there[slot] && !makes {
				return errors.Newf("slot %d is not there: %s", slot, step.text)
			}
			there[slot] = true
		}
	}
	for _, slot := range outputs {
		if !there[slot] {
			return errors.Newf("slot %d is returned, but freed", slot)
		}
	}
	for slot := range there {
		if slot >= len(p.compilation.program.inputs) && !slices.Contains(outputs, slot) {
			return errors.Newf("slot %d is never freed", slot)
		}
	}
	return nil
}

// object assembles the dictionary of the contract.
func (p *plan) object(outputs []int) bytecode.Object {
	steps, kernels, slots := &bytecode.List{}, &bytecode.List{Items: p.kernels}, &bytecode.List{}
	for _, step := range p.steps {
		steps.Items = append(steps.Items, step.object)
	}
	for _, slot := range outputs {
		slots.Items = append(slots.Items, int64(slot))
	}
	result := &bytecode.Dict{}
	result.Set("inputs", int64(len(p.compilation.program.inputs)))
	result.Set("slots", int64(p.slots))
	result.Set("outputs", slots)
	result.Set("steps", steps)
	result.Set("kernels", kernels)
	if slices.ContainsFunc(p.compilation.graph.Inputs, wantsGradient) {
		result.Set("no_grad", true)
	}
	if len(p.compilation.program.apart) > 0 {
		result.Set("apart", p.apart())
	}
	return result
}

// wantsGradient finds inputs on whose account operators would record what they do, though no result of a plan requires gradients: the program
// turned grad mode off around them.
func wantsGradient(input *graph.Input) bool { return input.Meta.RequiresGrad }

// apart lists all inputs that are tensors, with the bytes of an element, the number of dimensions, and whether one is written without a barrier.
func (p *plan) apart() *bytecode.List {
	result := &bytecode.List{}
	for slot, input := range p.compilation.program.inputs {
		if input != nil {
			written := slices.Contains(p.compilation.program.apart, input)
			result.Items = append(result.Items, bytecode.Tuple{int64(slot), int64(input.meta.DType.Bytes()), int64(input.meta.Dim()), written})
		}
	}
	return result
}
