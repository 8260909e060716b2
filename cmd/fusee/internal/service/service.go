// Package service is the compiler behind a connection: it answers compile and lower requests of one Python process.
package service

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/symbolic"
	"fusee/trace"
)

// Protocol is the version of the messages; both sides must agree.
const Protocol = 1

// Service holds what lasts from one compilation to the next.
type Service struct {
	version   string
	transport trace.Transport
	// newGenerators makes the code generators once hello has told what the host has.
	newGenerators func(hello bytecode.Object) codeGenerators
	generators    codeGenerators
	settings      bytecode.Object // of the process, from hello
	leastNorm     bool            // what graph.State says of the host's PyTorch
	// clock is read for the times of a report only, never for a result.
	clock func() time.Time
	// Observe, when set, sees each capture and its result; replaying shows them.
	Observe func(*Compilation)
	// observeFailure, when set, sees why a request failed.
	observeFailure func(error)
}

// Compilation is one compile or lower request on its way.
type Compilation struct {
	Capture *symbolic.Result // nil for a lower request
	Graphs  []*CompiledGraph
	Result  *bytecode.Dict
	Report  *bytecode.Dict // for people: what Result has of it is packed
	times   *bytecode.Dict
}

// New makes a service over a transport. version is that of the binary.
func New(version string, transport trace.Transport) *Service {
	s := &Service{version: version, transport: transport, clock: time.Now}
	s.UseWorkers("")
	return s
}

// UseWorkers has kernels for a GPU compiled by several processes, each a run of program with WorkerCommand; "" for none.
func (s *Service) UseWorkers(program string) {
	s.newGenerators = func(hello bytecode.Object) codeGenerators { return newEmitters(hello, program) }
}

// Run serves until the host closes the connection.
func (s *Service) Run() error {
	defer func() {
		if s.generators != nil {
			s.generators.close()
		}
	}()
	for {
		message, err := s.transport.Receive()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.transport.Send(s.reply(message)); err != nil {
			return err
		}
	}
}

func (s *Service) reply(message trace.Message) trace.Message {
	if len(message) != 2 {
		return failure(errors.New("a request has not two parts"))
	}
	switch message[0] {
	case "hello":
		return s.greet(message[1])
	case "compile":
		return s.guarded(func() (*bytecode.Dict, error) { return s.compile(message[1]) })
	case "lower":
		return s.guarded(func() (*bytecode.Dict, error) { return s.lower(message[1]) })
	}
	return failure(errors.Newf("request %v is not known", message[0]))
}

// guarded turns errors, and mistakes of the compiler that would end the process, into a message: the program goes on in plain Python.
func (s *Service) guarded(work func() (*bytecode.Dict, error)) (reply trace.Message) {
	defer func() {
		if mistake := recover(); mistake != nil {
			reply = s.failed(errors.Newf("internal error: %v", mistake))
		}
	}()
	result, err := work()
	if err != nil {
		return s.failed(err)
	}
	return trace.Message{"done", result}
}

func (s *Service) failed(err error) trace.Message {
	if s.observeFailure != nil {
		s.observeFailure(err)
	}
	return failure(err)
}

func failure(err error) trace.Message {
	details := &bytecode.Dict{}
	details.Set("message", err.Error())
	details.Set("hint", errors.FlattenHints(err))
	details.Set("details", fmt.Sprint(errors.FlattenDetails(err)))
	return trace.Message{"failed", details}
}

func (s *Service) greet(hello bytecode.Object) trace.Message {
	s.generators, s.settings = s.newGenerators(hello), trace.Field(hello, "settings")
	s.leastNorm = isAtLeast(trace.Text(hello, "torch"), 2, 15)
	name, vectorMath := s.generators.machine()
	return trace.Message{"ready", bytecode.NewDict("version", s.version, "protocol", int64(Protocol), "cpu", name, "vector_math", vectorMath)}
}

// isAtLeast compares a version, "2.15.0+cu132", with the first two numbers of another one.
func isAtLeast(version string, major, minor int) bool {
	var found [2]int
	if _, err := fmt.Sscanf(version, "%d.%d", &found[0], &found[1]); err != nil {
		return false
	}
	return found[0] > major || found[0] == major && found[1] >= minor
}

// compile captures a function and lowers its graph.
func (s *Service) compile(wire bytecode.Object) (*bytecode.Dict, error) {
	if s.generators == nil {
		return nil, errors.New("a compile request came before hello")
	}
	session, err := trace.NewSession(s.transport, trace.Field(wire, "descriptions"))
	if err != nil {
		return nil, err
	}
	request, err := parseRequest(wire)
	if err != nil {
		return nil, err
	}
	request.capture.State.LeastNorm = s.leastNorm
	if mentionsGPU(wire) {
		s.generators.foresee(request.architecture)
	}
	request.capture.Derive = func(g *graph.Graph) error { return s.derive(g, request) }
	compilation := &Compilation{times: &bytecode.Dict{}}
	started := s.clock()
	compilation.Capture, err = symbolic.Capture(session, request.capture)
	compilation.time("capture", s.clock().Sub(started))
	if err != nil {
		return nil, err
	}
	if background, _ := s.setting(request, "background").(bool); background {
		if err := s.transport.Send(trace.Message{"captured"}); err != nil {
			return nil, err
		}
	}
	if err := s.lowerCapture(compilation, request); err != nil {
		return nil, err
	}
	result := compilation.Capture.Wire()
	result.Set("graphs", wireGraphs(compilation.Graphs))
	if compilation.Report, err = s.report(session, compilation, request); err != nil {
		return nil, err
	}
	report, err := packed(compilation.Report)
	if err != nil {
		return nil, err
	}
	result.Set("report", report)
	s.addWarnings(result, compilation)
	compilation.Result = result
	if s.Observe != nil {
		s.Observe(compilation)
	}
	return result, nil
}

// addWarnings tells the user what went wrong beside a compilation, which itself did not fail.
func (s *Service) addWarnings(result *bytecode.Dict, c *Compilation) {
	list := &bytecode.List{}
	warn := func(texts []string) {
		for _, text := range texts {
			if !slices.Contains(list.Items, bytecode.Object(text)) {
				list.Items = append(list.Items, text)
			}
		}
	}
	warn(s.generators.takeWarnings())
	if c.Capture != nil {
		warn(c.Capture.Warnings)
	}
	for _, compiled := range c.Graphs {
		warn(compiled.warnings)
	}
	if len(list.Items) > 0 {
		result.Set("warnings", list)
	}
}

// setting is the value that the request gives a setting, else the process; nil where neither does.
func (s *Service) setting(request *request, name string) bytecode.Object {
	if value := trace.Field(request.settings, name); value != nil {
		return value
	}
	return trace.Field(s.settings, name)
}

func (c *Compilation) time(stage string, elapsed time.Duration) {
	c.times.Set(stage, elapsed.Microseconds())
}

// lowerCapture compiles the captured graph for the device its tensors are on.
func (s *Service) lowerCapture(c *Compilation, request *request) error {
	if c.Capture.Graph == nil {
		return nil
	}
	started := s.clock()
	compiled := s.compileGraph(c.Capture.Graph, request, c.Capture.PythonOnly)
	c.time("lower", s.clock().Sub(started))
	c.Graphs = append(c.Graphs, compiled)
	return nil
}
