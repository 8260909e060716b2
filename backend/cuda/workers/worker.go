package workers

import (
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"fusee/backend/cuda/nvrtc"
)

// worker is one child process, as its parent sees it.
type worker struct {
	process  *exec.Cmd
	patience time.Duration
	stdin    io.WriteCloser
	requests serialWriter
	ready    chan struct{} // closed once it can compile
	ended    chan struct{} // closed once it has ended
	ending   sync.Once

	lock    sync.Mutex
	last    uint64                // number of the latest request
	waiting map[uint64]chan reply // nil once it answers no more
}

// startWorker starts a process, which has its standard input and output for messages and nothing else of this one's. It ends when
// its input does, so also when this process is killed.
func startWorker(process *exec.Cmd, patience time.Duration) (*worker, error) {
	stdin, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	w := &worker{
		process: process, patience: patience, stdin: stdin, requests: serialWriter{out: stdin},
		ready: make(chan struct{}), ended: make(chan struct{}), waiting: map[uint64]chan reply{},
	}
	go w.listen(stdout)
	return w, nil
}

// listen hands out replies until the worker ends or says what it must not.
func (w *worker) listen(stdout io.Reader) {
	var hello greeting
	if err := readFrame(stdout, &hello); err == nil && hello.Protocol == protocol {
		close(w.ready)
		for w.deliver(stdout) {
		}
	}
	w.end()
	w.lock.Lock()
	for _, place := range w.waiting {
		close(place)
	}
	w.waiting = nil
	w.lock.Unlock()
	_ = w.process.Wait() // it was killed
	close(w.ended)
}

// deliver hands out one reply, and reports whether there was one that somebody waits for.
func (w *worker) deliver(stdout io.Reader) bool {
	var answer reply
	if readFrame(stdout, &answer) != nil {
		return false
	}
	place, expected := w.take(answer.Number)
	if expected {
		place <- answer
	}
	return expected
}

func (w *worker) take(number uint64) (chan reply, bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	place, found := w.waiting[number]
	delete(w.waiting, number)
	return place, found
}

// expect makes a place for a reply; it is closed where none will come.
func (w *worker) expect() (uint64, chan reply) {
	w.lock.Lock()
	defer w.lock.Unlock()
	place := make(chan reply, 1)
	w.last++
	if w.waiting == nil {
		close(place)
	} else {
		w.waiting[w.last] = place
	}
	return w.last, place
}

// compile has the worker compile a program. An error says only that the worker did not; one that takes longer than its patience is ended.
func (w *worker) compile(program nvrtc.Program) ([]byte, error) {
	defer time.AfterFunc(w.patience, w.end).Stop()
	number, place := w.expect()
	asked := request{Number: number, Name: program.Name, Architecture: program.Architecture, Source: []byte(program.Source), NoCache: program.NoCache}
	if err := w.requests.say(asked); err != nil {
		w.end()
	}
	answer, came := <-place
	switch {
	case !came:
		return nil, errors.New("a worker ended")
	case answer.Failed || len(answer.Image) == 0:
		return nil, errors.New("a worker compiled nothing")
	}
	return answer.Image, nil
}

// end kills the process; listen then sees its output end.
func (w *worker) end() {
	w.ending.Do(func() {
		_ = w.process.Process.Kill() // it may have ended by itself
		_ = w.stdin.Close()
	})
}
