package symbolic

import (
	"github.com/cockroachdb/errors"

	"fusee/bytecode"
)

// Generator is a generator object whose frame waits between its items.
type Generator struct {
	frame    *Frame
	started  bool
	finished bool
	running  bool
	returned Value
	born     int // the step that made it
}

func (g *Generator) typeName() string { return "generator" }

// makeGenerator is RETURN_GENERATOR: the frame so far becomes a generator object, which is the call's result.
func (in *Interpreter) makeGenerator(f *Frame) (Value, bool, error) {
	if f.code.Flags&(bytecode.FlagCoroutine|bytecode.FlagAsyncGenerator) != 0 {
		return nil, false, unsupported(reasonGenerator, "%s is asynchronous", f.code.Name)
	}
	if f.back == nil {
		return nil, false, unsupported(reasonGenerator, "%s is a generator function", f.code.Name)
	}
	waiting := *f
	waiting.resumable, waiting.adapter = false, nil
	waiting.stack = []Value{none()} // what the POP_TOP after RETURN_GENERATOR takes
	generator := &Generator{frame: &waiting, born: f.back.step}
	in.generators = append(in.generators, generator)
	waiting.generator = generator
	return generator, true, nil
}

// buildGenerator makes a generator that waits where this one does. Its code is a copy of the user's that begins by setting up variables
// and stack, and then yields once more from the yield where the generator waits, so that what is sent, thrown or closed arrives there.
func (cg *generator) buildGenerator(g *Generator) error {
	f := g.frame
	if g.finished || g.running {
		return &cannotRebuild{g.born, "a generator"}
	}
	if err := cg.in.keepGenerators([]*Frame{f}); err != nil {
		return err
	}
	r := &rewriter{in: cg.in, frames: []*Frame{cg.top}, parts: cg.parts}
	code, err := r.generatorCode(g)
	if err != nil {
		return err
	}
	index := len(cg.parts.steps)
	cg.parts.steps = append(cg.parts.steps, Code{code, f.code.Name, r.globalsOf(f)})
	var arguments []*slot
	for _, value := range g.state() {
		if err := cg.load(value); err != nil {
			return err
		}
		held := cg.temp()
		cg.storeSlot(held)
		arguments = append(arguments, held)
	}
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("step", int64(index))
	for _, held := range r.resumeOrder(f, arguments) {
		cg.loadSlot(held)
	}
	cg.call(len(arguments))
	if g.started {
		cg.advance()
	}
	return nil
}

// advance takes the first item of the generator on the stack, which stays there.
func (cg *generator) advance() {
	made := cg.temp()
	cg.storeSlot(made)
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("name", "builtins.next")
	cg.loadSlot(made)
	cg.call(1)
	cg.emit(bytecode.PopTop, 0)
	cg.loadSlot(made)
}

// state lists the values that the waiting frame needs: variables, then stack.
func (g *Generator) state() []Value {
	var values []Value
	for _, index := range bound(g.frame) {
		values = append(values, g.frame.locals[index])
	}
	for _, value := range g.stack() {
		if physical(value) {
			values = append(values, handedOver(value))
		}
	}
	return values
}

// stack is the waiting frame's stack where its code goes on: one that has begun goes on at its yield, which takes a value.
func (g *Generator) stack() []Value {
	if !g.started {
		return g.frame.stack
	}
	return append(append([]Value{}, g.frame.stack...), none())
}

// generatorCode writes the code of a generator that is set up by its first step, or that has not begun.
func (r *rewriter) generatorCode(g *Generator) (*bytecode.Code, error) {
	f := g.frame
	b := newBuilder(f.code, f.info)
	b.kept = bytecode.FlagGenerator
	begin := func() {
		b.emit(bytecode.ReturnGenerator, 0)
		b.emit(bytecode.PopTop, 0)
		b.emit(bytecode.Resume, 0)
	}
	target := f.current
	if !g.started {
		target = r.following(f)
	}
	return r.writeResume(b, f, target, g.stack(), begin)
}

// dropsQuietly tells whether nothing happens where GeneratorExit is raised at the yield at which a frame waits: there is no handler, or those
// there are only compare it with classes of builtin exceptions that it is none of.
func (in *Interpreter) dropsQuietly(f *Frame) (bool, error) {
	at := f.info.index[f.current]
	for handler := f.handlerFor(at); handler != nil; handler = f.handlerFor(at) {
		next, err := in.passesHandler(f, f.info.index[handler.Target])
		if err != nil || next < 0 {
			return false, err
		}
		at = next
	}
	return true, nil
}

// passesHandler follows GeneratorExit through an except clause from its first instruction to the one that raises it again; -1 where
// anything else may happen.
func (in *Interpreter) passesHandler(f *Frame, at int) (int, error) {
	for {
		instruction := f.info.listing.Instructions[at]
		at++
		switch instruction.Opcode {
		case bytecode.PushExcInfo, bytecode.BuildTuple, bytecode.CheckExcMatch, bytecode.Copy, bytecode.PopExcept:
		case bytecode.LoadGlobal:
			value, err := in.globalName(f, f.code.Names[instruction.Arg>>1])
			if err != nil {
				return -1, err
			}
			if value, err = in.real(value); err != nil {
				return -1, err
			}
			class, ok := value.(*Class)
			if !ok || !builtinException(class) || !class.isSubclassOf("Exception") {
				return -1, nil
			}
		case bytecode.PopJumpForwardIfFalse:
			at = f.info.index[instruction.Jump]
		case bytecode.Reraise:
			return at - 1, nil
		default:
			return -1, nil
		}
	}
}

// abandoned finds a generator that stands inside a try statement or a with block at the end of the capture: what runs there when Python
// drops it is left to Python, which makes the generator itself then. Those that Python was given go on there.
func (in *Interpreter) abandoned(given map[Value]*slot) error {
	for _, g := range in.generators {
		if given[g] != nil || !g.started || g.finished || g.running {
			continue
		}
		quiet, err := in.dropsQuietly(g.frame)
		if err != nil {
			return err
		}
		if !quiet {
			return &restart{step: g.born, reason: &Unsupported{reasonGenerator, g.frame.code.Name + " is left unfinished"}}
		}
	}
	return nil
}

func (g *Generator) next(in *Interpreter) (Value, error) { return g.resume(in, nil, nil) }

// resume runs the frame to its next yield; nil at the end. sent is pushed as the value of the yield, thrown is raised there.
func (g *Generator) resume(in *Interpreter, sent Value, thrown *Raised) (Value, error) {
	in.activity++
	if g.running {
		return nil, in.raise("ValueError", "generator already executing")
	}
	if g.finished {
		g.returned = nil // only the first StopIteration carries it
		if thrown != nil {
			return nil, thrown
		}
		return nil, nil
	}
	switch {
	case thrown == nil && g.started:
		g.frame.push(orNone(sent))
	case thrown != nil:
		value, goes, err := g.throwInto(in, thrown)
		if err != nil {
			g.finished = true
			return nil, err
		}
		if !goes {
			return value, nil
		}
	}
	return g.walk(in)
}

// walk runs the frame on to its next yield.
func (g *Generator) walk(in *Interpreter) (Value, error) {
	g.started, g.running = true, true
	g.frame.yielded = false
	value, err := in.run(g.frame)
	g.running = false
	if err != nil {
		g.finished = true
		if isRaised(err, "StopIteration") {
			stop := err.(*Raised)
			failure := in.raise("RuntimeError", "generator raised StopIteration").(*Raised)
			failure.Exception.exception.cause, failure.Exception.exception.context = stop.Exception, stop.Exception
			failure.Exception.exception.suppressContext = true
			return nil, failure
		}
		return nil, err
	}
	if g.frame.yielded {
		return value, nil
	}
	g.finished, g.returned = true, value
	return nil, nil
}

// thrown is an exception on its way into a generator: only what the generator handles becomes its context.
func (in *Interpreter) thrown(exception *Instance) *Raised {
	if exception.exception.raisedAt == 0 {
		exception.exception.raisedAt = in.frame.step
	}
	if exception.exception.traceback == nil {
		exception.exception.traceback = in.traceback(exception)
	}
	return &Raised{exception, in.frame.step}
}

// throwInto raises an exception at the yield where the generator waits, or in the generator below that it yields from; goes tells that
// the frame is to run on, otherwise value is what the one below yielded.
func (g *Generator) throwInto(in *Interpreter, thrown *Raised) (value Value, goes bool, err error) {
	if !g.started {
		return nil, false, thrown
	}
	if below := g.below(); below != nil {
		value, ended, err := g.throwBelow(in, below, thrown)
		var raised *Raised
		switch {
		case ended:
			return nil, true, nil
		case err == nil && value != nil:
			return value, false, nil
		case errors.As(err, &raised):
			thrown = raised
		case err != nil:
			return nil, false, err
		}
	}
	if n := len(g.frame.handling); n > 0 {
		in.chain(thrown.Exception, g.frame.handling[n-1])
	}
	return nil, true, in.handle(g.frame, thrown)
}

// below is the iterator that a generator yields from; nil where it waits at a yield of its own.
func (g *Generator) below() Value {
	list := g.frame.info.listing.Instructions
	if next := g.frame.next; next < len(list) && list[next].Opcode == bytecode.Resume && list[next].Arg >= 2 {
		return g.frame.peek(1)
	}
	return nil
}

// throwBelow hands an exception on to the iterator that the generator yields from. ended tells that the iterator came to its end and the
// frame goes on behind it; no value and no error, that the exception is raised in the generator itself.
func (g *Generator) throwBelow(in *Interpreter, below Value, thrown *Raised) (value Value, ended bool, err error) {
	if isRaised(thrown, "GeneratorExit") {
		return nil, false, in.closeBelow(below)
	}
	g.running = true
	defer func() { g.running = false }()
	if generator, ok := below.(*Generator); ok {
		value, err = in.stopAtEnd(generator, func() (Value, error) { return generator.resume(in, nil, thrown) })
	} else {
		method, lookupErr := in.optionalAttribute(below, "throw")
		if lookupErr != nil || method == nil {
			return nil, false, lookupErr
		}
		value, err = in.call(method, Arguments{Positional: []Value{thrown.Exception}})
	}
	if !isRaised(err, "StopIteration") {
		return value, false, err
	}
	stop := err.(*Raised).Exception
	g.frame.pop()
	g.frame.push(orNone(stop.exception.members["value"]))
	send := g.frame.info.listing.Instructions[g.frame.next-2]
	g.frame.jump(send)
	return nil, true, nil
}

// closeBelow closes the iterator that a generator yields from, where it can be closed.
func (in *Interpreter) closeBelow(below Value) error {
	if generator, ok := below.(*Generator); ok {
		return generator.close(in)
	}
	method, err := in.optionalAttribute(below, "close")
	if err != nil || method == nil {
		return err
	}
	_, err = in.call(method, Arguments{})
	return err
}

func (g *Generator) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "send", "throw", "close", "__next__", "__iter__":
		return &Builtin{name: "generator." + name, self: g}, nil
	}
	return nil, unsupported(reasonAttribute, "generator.%s", name)
}

// callMethod runs send, throw and close.
func (g *Generator) callMethod(in *Interpreter, name string, arguments Arguments) (Value, error) {
	switch name {
	case "__iter__":
		return g, nil
	case "__next__":
		return in.stopAtEnd(g, func() (Value, error) { return g.resume(in, nil, nil) })
	case "send":
		value, err := in.real(arguments.Positional[0])
		if err != nil {
			return nil, err
		}
		if !g.started && !isNone(value) {
			return nil, in.raise("TypeError", "can't send non-None value to a just-started generator")
		}
		return in.stopAtEnd(g, func() (Value, error) { return g.resume(in, value, nil) })
	case "throw":
		raised, err := in.throwing(arguments.Positional)
		if err != nil {
			return nil, err
		}
		return in.stopAtEnd(g, func() (Value, error) { return g.resume(in, nil, raised) })
	case "close":
		return none(), g.close(in)
	}
	return nil, unsupported(reasonAttribute, "generator.%s", name)
}

// throwing is the exception that throw() raises in the generator: where none can be made of a class, the error of that.
func (in *Interpreter) throwing(values []Value) (*Raised, error) {
	exception, err := in.thrownException(values)
	if err == nil {
		return in.thrown(exception), nil
	}
	var failed *Raised
	if !errors.As(err, &failed) || len(values) > 2 {
		return nil, err
	}
	first, lookErr := in.real(values[0])
	if class, ok := first.(*Class); lookErr == nil && ok && class.isSubclassOf("BaseException") {
		return failed, nil
	}
	return nil, err
}

// thrownException is what throw(type, value, traceback) or throw(value) throws.
func (in *Interpreter) thrownException(values []Value) (*Instance, error) {
	if len(values) == 0 || len(values) > 3 {
		return nil, unsupported(reasonGenerator, "throw with %d arguments", len(values))
	}
	reals, err := in.realAll(values)
	if err != nil {
		return nil, err
	}
	if len(reals) == 3 {
		if _, ok := reals[2].(*tracebackValue); !ok && !isNone(reals[2]) {
			return nil, in.raise("TypeError", "throw() third argument must be a traceback object")
		}
	}
	class, isClass := reals[0].(*Class)
	if isClass && class.isSubclassOf("BaseException") && len(reals) > 1 && !isNone(reals[1]) {
		return in.normalised(class, reals[1])
	}
	if !isClass && len(reals) > 1 && !isNone(reals[1]) {
		return nil, in.raise("TypeError", "instance exception may not have a separate value")
	}
	if instance, ok := reals[0].(*Instance); !isClass && (!ok || !instance.class.isSubclassOf("BaseException")) || isClass && !class.isSubclassOf("BaseException") {
		kind, err := in.classOf(reals[0])
		if err != nil {
			return nil, err
		}
		return nil, in.raise("TypeError", "exceptions must be classes or instances deriving from BaseException, not "+kind.baseName())
	}
	return in.exceptionOf(reals[0])
}

// normalised makes the exception of a class and a value as PyErr_NormalizeException does.
func (in *Interpreter) normalised(class *Class, value Value) (*Instance, error) {
	if instance, ok := value.(*Instance); ok && instance.exception != nil && instance.class.inherits(class) {
		return instance, nil
	}
	arguments := []Value{value}
	if tuple, ok := value.(*Tuple); ok && tuple.class == nil {
		arguments = tuple.items
	}
	made, err := in.call(class, Arguments{Positional: arguments})
	if err != nil {
		return nil, err
	}
	return in.exceptionOf(made)
}

// stopAtEnd turns the end of a generator into StopIteration with its return value.
func (in *Interpreter) stopAtEnd(g *Generator, step func() (Value, error)) (Value, error) {
	value, err := step()
	if err != nil || value != nil {
		return value, err
	}
	return nil, in.raiseStop(g.returned)
}

func (in *Interpreter) raiseStop(returned Value) error {
	class := in.builtinClass("StopIteration")
	if returned == nil {
		return in.raiseWith(class)
	}
	real, err := in.real(returned)
	if err != nil {
		return err
	}
	if isNone(real) {
		return in.raiseWith(class)
	}
	return in.raiseWith(class, real)
}

func (g *Generator) close(in *Interpreter) error {
	if g.finished || !g.started {
		g.finished = true
		return nil
	}
	exit, err := in.newException(in.builtinClass("GeneratorExit"), Arguments{})
	if err != nil {
		return err
	}
	raised := in.thrown(exit)
	if below := g.below(); below != nil {
		failure := in.closeBelow(below)
		var thrown *Raised
		if errors.As(failure, &thrown) {
			raised = thrown
		} else if failure != nil {
			return failure
		}
	}
	value, err := g.resume(in, nil, raised)
	switch {
	case isRaised(err, "GeneratorExit"), isRaised(err, "StopIteration"):
		return nil
	case err != nil:
		return err
	case value != nil:
		return in.raise("RuntimeError", "generator ignored GeneratorExit")
	}
	return nil
}

func (in *Interpreter) getYieldFromIter(f *Frame) error {
	value, err := in.real(f.pop())
	if err != nil {
		return err
	}
	return in.pushResult(f)(in.iterate(value))
}

// send is SEND: the value on top goes to the receiver below it; at the receiver's end its return value replaces both.
func (in *Interpreter) send(f *Frame, i *bytecode.Instruction) error {
	sent, err := in.real(f.pop())
	if err != nil {
		return err
	}
	receiver := f.peek(1)
	var item, returned Value
	switch r := receiver.(type) {
	case *Generator:
		item, err = r.resume(in, sent, nil)
		returned = r.returned
	default:
		if !isNone(sent) {
			return unsupported(reasonGenerator, "send to %s", receiver.typeName())
		}
		item, err = in.advance(receiver)
	}
	if err != nil {
		return err
	}
	if item == nil {
		f.pop()
		f.push(orNone(returned))
		f.jump(i)
		return nil
	}
	f.push(item)
	return nil
}
