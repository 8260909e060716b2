package workers

import (
	"io"
	"sync"

	"github.com/cockroachdb/errors"

	"fusee/backend/cuda/nvrtc"
)

// Compile makes the image of one program.
type Compile func(nvrtc.Program) ([]byte, error)

// Serve is a worker's side: it compiles what is asked for on in, all at once, and answers on out in the order in which programs
// are done. It returns nil as soon as in ends, whatever is still being compiled, since then nobody waits for it.
func Serve(in io.Reader, out io.Writer, compile Compile) error {
	replies := &serialWriter{out: out}
	if err := replies.say(greeting{protocol}); err != nil {
		return err
	}
	for {
		var asked request
		if err := readFrame(in, &asked); err == io.EOF {
			return nil
		} else if err != nil {
			return errors.Wrap(err, "cannot read what to compile")
		}
		// Where an answer cannot be written, in has ended too.
		go func() { _ = replies.say(answer(asked, compile)) }()
	}
}

func answer(asked request, compile Compile) reply {
	image, err := compile(nvrtc.Program{Name: asked.Name, Source: string(asked.Source), Architecture: asked.Architecture, NoCache: asked.NoCache})
	return reply{Number: asked.Number, Image: image, Failed: err != nil}
}

// serialWriter writes the messages of several goroutines one after the other.
type serialWriter struct {
	lock sync.Mutex
	out  io.Writer
}

func (w *serialWriter) say(message any) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	return writeFrame(w.out, message)
}
