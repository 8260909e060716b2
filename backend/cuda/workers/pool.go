// Package workers compiles CUDA C in several processes, since NVRTC does much of its work under a lock of its process. A worker is
// told what to compile through its standard input. Whatever goes wrong with one, its programs are compiled by the process that asked.
package workers

import (
	"cmp"
	"os/exec"
	"slices"
	"sync"
	"time"

	"fusee/backend/cuda/nvrtc"
)

// Config says how many workers there are and how long they live.
type Config struct {
	Command  func() *exec.Cmd // makes the command of one worker, which calls Serve
	Workers  int              // processes beside the own one; none where it is 0
	Threads  int              // programs that each process, the own one too, compiles at once
	Patience time.Duration    // a worker that takes longer for one program is ended
	Idle     time.Duration    // workers that nobody used for so long are ended
}

// Pool is a set of workers. Its methods may be called from many goroutines.
type Pool struct {
	config Config
	lock   sync.Mutex
	// workers lists those started; one that ended stays in it until all are stopped, and so is not started again at once.
	workers []*worker
	users   int // calls of CompileAll that are going on
	idle    *time.Timer
}

// New makes a pool without starting a worker.
func New(config Config) *Pool { return &Pool{config: config} }

// Start starts the workers unless they run, without waiting for them to be ready. Where one cannot be started, there are fewer.
func (p *Pool) Start() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.workers != nil || p.config.Workers <= 0 {
		return
	}
	p.workers = []*worker{}
	for range p.config.Workers {
		if started, err := startWorker(p.config.Command(), p.config.Patience); err == nil {
			p.workers = append(p.workers, started)
		}
	}
	p.await()
}

// await has the workers ended once they were idle for long enough. The lock is held.
func (p *Pool) await() {
	if p.idle != nil {
		p.idle.Stop()
	}
	p.idle = time.AfterFunc(p.config.Idle, func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		if p.users == 0 {
			p.stop()
		}
	})
}

// Stop ends all workers now. Programs that they are at are compiled by the process that asked.
func (p *Pool) Stop() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.stop()
}

func (p *Pool) stop() {
	for _, w := range p.workers {
		w.end()
	}
	p.workers = nil
}

// enter gives the workers that run, which are not idle until leave is called.
func (p *Pool) enter() []*worker {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.users++
	return slices.Clone(p.workers)
}

func (p *Pool) leave() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.users--
	if p.workers != nil {
		p.await()
	}
}

// CompileAll compiles all programs and returns one result for each in the same order. Every process takes the longest program left as
// soon as it has room. own compiles in this process: its share, and what a worker failed at, so that every error is one of own's.
func (p *Pool) CompileAll(programs []nvrtc.Program, own Compile) []nvrtc.Result {
	workers := p.enter()
	defer p.leave()
	b := &batch{programs: programs, results: make([]nvrtc.Result, len(programs)), own: own, queue: longestFirst(programs), drained: make(chan struct{})}
	ownThreads := p.config.Threads
	if len(workers) == 0 {
		ownThreads = len(programs)
	}
	for range ownThreads {
		b.group.Go(b.compileHere)
	}
	for _, w := range workers {
		for range p.config.Threads {
			b.group.Go(func() { b.compileThere(w) })
		}
	}
	b.group.Wait()
	return b.results
}

// longestFirst gives the programs' indices; what takes long must not come last, when the other processes have nothing left to do.
func longestFirst(programs []nvrtc.Program) <-chan int {
	order := make([]int, len(programs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(programs[b].Source), len(programs[a].Source)) })
	queue := make(chan int, len(order))
	for _, i := range order {
		queue <- i
	}
	close(queue)
	return queue
}

// batch is one call of CompileAll.
type batch struct {
	programs []nvrtc.Program
	results  []nvrtc.Result
	own      Compile
	queue    <-chan int
	drained  chan struct{} // closed once the queue is empty
	draining sync.Once
	group    sync.WaitGroup
}

func (b *batch) compileHere() {
	for i := range b.queue {
		b.ownResult(i)
	}
	b.draining.Do(func() { close(b.drained) })
}

func (b *batch) ownResult(i int) { b.results[i].Image, b.results[i].Err = b.own(b.programs[i]) }

// compileThere has a worker compile, from when it is ready until it ends or nothing is left.
func (b *batch) compileThere(w *worker) {
	select {
	case <-w.ready:
	case <-w.ended:
		return
	case <-b.drained:
		return
	}
	for i := range b.queue {
		image, err := w.compile(b.programs[i])
		if err != nil {
			b.ownResult(i)
		} else {
			b.results[i].Image = image
		}
		select {
		case <-w.ended:
			return
		default:
		}
	}
}
