package cuda

import (
	"strconv"
	"strings"

	"fusee/backend/loop"
	"fusee/internal/slice"
)

// firstDependent is the first architecture whose kernels can be there before the one ahead of them has ended.
const firstDependent = 90

// OptionsFor returns how to emit kernels for an architecture such as "sm_90".
func OptionsFor(architecture string) Options {
	number, err := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(architecture, "sm_"), "abcdefghijklmnopqrstuvwxyz"))
	return Options{DependentLaunch: err == nil && number >= firstDependent}
}

// awaitKernelBefore lets the kernel after this one begin, which will wait for the end of this one in its turn, and waits for the end of the one before.
func (e *emitter) awaitKernelBefore() {
	if !e.options.DependentLaunch {
		return
	}
	begin, wait := `asm volatile("griddepcontrol.launch_dependents;");`, `asm volatile("griddepcontrol.wait;" ::: "memory");`
	if e.nest.kernel.First {
		begin, wait = wait, begin // what the next one takes for constant may be written by the plan before this one
	}
	e.line("%s", begin)
	e.line("%s", wait)
}

// prefetchThreads is how many threads a GPU runs at a time, about: where all of a kernel's do, what they read is fetched into the L2 cache while the
// kernel before is still running. That is sound whoever writes it: the L2 cache is the one place where all see memory alike.
const prefetchThreads = 1 << 18

// prefetch fetches what each row reads for itself.
func (e *emitter) prefetch() {
	if !e.startsAtOnce() {
		return
	}
	for index := range e.nest.stages {
		s := &e.nest.stages[index]
		if loads := e.ownLoads(s); s.hasInner && !s.dynamic && len(loads) > 0 {
			e.eachRow(func() { e.prefetchStage(s, loads) })
		}
	}
}

func (e *emitter) prefetchStage(s *stage, loads []*instruction) {
	stride := e.schedule.group * e.schedule.vector
	e.line("#pragma unroll 4")
	header := "for (" + e.index() + " j = rank" + times(e.schedule.vector) + "; j < " + product(s.inner).C() + "; j += " + strconv.Itoa(stride) + ")"
	e.block(header, func() {
		e.coordinates("j", s.inner, len(e.nest.outer))
		for _, in := range loads {
			e.line(`asm volatile("prefetch.global.L2 [%%0];" :: "l"(%s));`, e.address(in))
		}
	})
}

// ownLoads lists a stage's plain loads of buffers that the kernel only reads, at places that depend on the row, but for those that are read ahead.
func (e *emitter) ownLoads(s *stage) []*instruction {
	n := e.nest
	return slice.Filter(s.accesses(), func(in *instruction) bool {
		_, early := e.ahead[in.value]
		plain := in.Op == loop.OpLoad && len(in.Access.Indirect) == 0 && n.kernel.Buffers[in.Access.Buffer].Mode == loop.Read
		return !early && plain && n.ofRow(in) && n.varies(in)
	})
}
