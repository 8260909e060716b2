package trace

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/internal/slice"
)

// ObjectID names a live object of the host during one compilation.
type ObjectID int64

// Reference is an ObjectID or a Constant.
type Reference any

// Constant is a value that crossed by value: None, bool, int, float, complex, str, bytes or Ellipsis.
type Constant struct{ Value bytecode.Object }

// Description is what the host said about one live object; Payload is as in docs/contracts.md, section 2.
type Description struct {
	ID      ObjectID
	Kind    string
	TypeID  ObjectID
	Payload bytecode.Object
}

// HostError says that the host could not answer; the compilation is given up.
type HostError struct{ Text string }

func (e *HostError) Error() string { return "the Python side could not answer: " + e.Text }

// Session is one compilation's conversation: the objects described so far, and the questions.
type Session struct {
	transport Transport
	objects   map[ObjectID]*Description
	lookups   typeLookups
	reads     map[nameRead]Reference // what module_get and dict_get found under a name; nil where it is absent
	questions int
}

// nameRead is a question for what a module or dict holds under a name.
type nameRead struct {
	question string
	id       ObjectID
	name     string
}

// NewSession starts a conversation; descriptions come with the request.
func NewSession(transport Transport, descriptions bytecode.Object) (*Session, error) {
	session := &Session{transport: transport, objects: map[ObjectID]*Description{}, lookups: newTypeLookups(), reads: map[nameRead]Reference{}}
	return session, session.learn(descriptions)
}

// Questions counts the questions asked so far.
func (s *Session) Questions() int { return s.questions }

// learn records the descriptions that came with an answer.
func (s *Session) learn(object bytecode.Object) error {
	descriptions, err := slice.TryMap(Items(object), parseDescription)
	for _, described := range descriptions {
		s.objects[described.ID] = described
	}
	return err
}

func parseDescription(object bytecode.Object) (*Description, error) {
	fields, ok := object.(bytecode.Tuple)
	if !ok || len(fields) != 4 {
		return nil, errors.New("a description has not four fields")
	}
	id, isID := fields[0].(int64)
	kind, isKind := fields[1].(string)
	typeID, isType := fields[2].(int64)
	if !isID || !isKind || !isType {
		return nil, errors.New("a description's fields have wrong types")
	}
	return &Description{ObjectID(id), kind, ObjectID(typeID), fields[3]}, nil
}

// ask sends one question and returns the first part of the answer, having learned the second.
func (s *Session) ask(question string, arguments ...bytecode.Object) (bytecode.Object, error) {
	s.questions++
	message := append(Message{"ask", question}, arguments...)
	if err := s.transport.Send(message); err != nil {
		return nil, err
	}
	reply, err := s.transport.Receive()
	if err != nil {
		return nil, errors.Wrap(err, "no answer from the Python side")
	}
	switch {
	case reply[0] == "error" && len(reply) == 2:
		text, _ := reply[1].(string)
		return nil, &HostError{text}
	case reply[0] != "answer" || len(reply) != 2:
		return nil, errors.Newf("unexpected message %v instead of an answer", reply[0])
	}
	pair, ok := reply[1].(bytecode.Tuple)
	if !ok || len(pair) != 2 {
		return nil, errors.Newf("the answer to %s is not a pair", question)
	}
	return pair[0], s.learn(pair[1])
}

// Object returns an object's description, asking for it if the object was only mentioned so far.
func (s *Session) Object(id ObjectID) (*Description, error) {
	if found := s.objects[id]; found != nil {
		return found, nil
	}
	if _, err := s.ask("describe", &bytecode.List{Items: []bytecode.Object{int64(id)}}); err != nil {
		return nil, err
	}
	if found := s.objects[id]; found != nil {
		return found, nil
	}
	return nil, errors.Newf("the host did not describe object %d", id)
}

// Known returns what the host has said about an object so far, nil where it said nothing.
func (s *Session) Known(id ObjectID) *Description { return s.objects[id] }

// FunctionWith returns the first described function that has an object as its globals or among its closure's cells, nil without one.
func (s *Session) FunctionWith(id ObjectID) *Description {
	var first *Description
	for _, described := range s.objects {
		if described.Kind != "function" || first != nil && first.ID < described.ID {
			continue
		}
		if Field(described.Payload, "globals") == int64(id) || slices.Contains(Items(Field(described.Payload, "closure")), bytecode.Object(int64(id))) {
			first = described
		}
	}
	return first
}

// ModuleGet reads an attribute of a module; nil when absent.
func (s *Session) ModuleGet(id ObjectID, name string) (Reference, error) {
	return s.named(nameRead{"module_get", id, name})
}

// DictGet reads one key of a dict; nil when absent.
func (s *Session) DictGet(id ObjectID, key bytecode.Object) (Reference, error) {
	if name, isName := key.(string); isName {
		return s.named(nameRead{"dict_get", id, name})
	}
	return s.optional("dict_get", int64(id), key)
}

// named asks once for each name: the host's objects stay as they are for as long as a capture takes.
func (s *Session) named(read nameRead) (Reference, error) {
	if found, done := s.reads[read]; done {
		return found, nil
	}
	found, err := s.optional(read.question, int64(read.id), read.name)
	if err == nil {
		s.reads[read] = found
	}
	return found, err
}

func (s *Session) optional(question string, arguments ...bytecode.Object) (Reference, error) {
	answer, err := s.ask(question, arguments...)
	if err != nil || answer == (bytecode.None) {
		return nil, err
	}
	return ParseReference(answer)
}

// Outcome is what a question that ran Python code came to.
type Outcome struct {
	Value Reference // nil when it raised
	// Structure replaces Value for TensorCall.
	Structure bytecode.Object
	Expansion bytecode.Object
	// Decisions are what ShapedCall decided about sizes that change.
	Decisions []bytecode.Object
	// Raised is the exception's class and arguments.
	Raised    ObjectID
	Arguments []Reference
	// Unsupported tells why the host could not do it.
	Unsupported string
}

// GetAttribute asks for a full getattr on an object whose getattr runs no user code.
func (s *Session) GetAttribute(id ObjectID, name string) (*Outcome, error) {
	return s.outcome("getattr", int64(id), name)
}

// Evaluate runs a pure function on constants and library values. callable, arguments and keywords are references in wire form.
func (s *Session) Evaluate(callable bytecode.Object, arguments []bytecode.Object, keywords []bytecode.Object) (*Outcome, error) {
	return s.outcome("evaluate", callable, &bytecode.List{Items: arguments}, &bytecode.List{Items: keywords})
}

// Modes are those of torch that a function runs in; nil where they are as at the start of the compile.
type Modes struct {
	Autocast  bytecode.Object
	Gradients bytecode.Object // a bool
}

// TensorCall runs a torch function on fake tensors; see docs/contracts.md, section 3.
func (s *Session) TensorCall(target bytecode.Object, arguments, keywords []bytecode.Object, modes Modes) (*Outcome, error) {
	question := []bytecode.Object{target, &bytecode.List{Items: arguments}, &bytecode.List{Items: keywords}}
	switch {
	case modes.Autocast != nil && modes.Gradients != nil:
		question = append(question, modes.Autocast, modes.Gradients)
	case modes.Autocast != nil:
		question = append(question, modes.Autocast)
	case modes.Gradients != nil:
		question = append(question, bytecode.None, modes.Gradients)
	}
	return s.outcome("tensor_call", question...)
}

// ShapedCall is TensorCall for sizes that change: of each symbol its name, its value in this call and a lower bound.
func (s *Session) ShapedCall(symbols []bytecode.Object, target bytecode.Object, arguments, keywords []bytecode.Object, modes Modes) (*Outcome, error) {
	question := []bytecode.Object{&bytecode.List{Items: symbols}, target, &bytecode.List{Items: arguments}, &bytecode.List{Items: keywords}}
	for _, mode := range []bytecode.Object{modes.Autocast, modes.Gradients} {
		if mode == nil {
			mode = bytecode.None
		}
		question = append(question, mode)
	}
	return s.outcome("shaped_call", question...)
}

// HashEqual compares two objects where no user code runs.
func (s *Session) HashEqual(a, b bytecode.Object) (bool, error) {
	answer, err := s.ask("hash_equal", a, b)
	equal, _ := answer.(bool)
	return equal, err
}

// SourceLine reads a line of a user's file, "" when it cannot be had.
func (s *Session) SourceLine(file string, line int) (string, error) {
	answer, err := s.ask("source_line", file, int64(line))
	text, _ := answer.(string)
	return text, err
}

func (s *Session) outcome(question string, arguments ...bytecode.Object) (*Outcome, error) {
	answer, err := s.ask(question, arguments...)
	if err != nil {
		return nil, err
	}
	fields, ok := answer.(bytecode.Tuple)
	if !ok || len(fields) < 2 {
		return nil, errors.Newf("the answer to %s is malformed", question)
	}
	switch fields[0] {
	case "value":
		return parseValue(question, fields)
	case "raise":
		return parseRaise(fields)
	case "unsupported":
		why, _ := fields[1].(string)
		return &Outcome{Unsupported: why}, nil
	}
	return nil, errors.Newf("the answer to %s is %v", question, fields[0])
}

func parseValue(question string, fields bytecode.Tuple) (*Outcome, error) {
	if question == "tensor_call" || question == "shaped_call" {
		outcome := &Outcome{Structure: fields[1]}
		if len(fields) > 2 {
			outcome.Expansion = fields[2]
		}
		if len(fields) > 3 {
			outcome.Decisions = Items(fields[3])
		}
		return outcome, nil
	}
	value, err := ParseReference(fields[1])
	return &Outcome{Value: value}, err
}

func parseRaise(fields bytecode.Tuple) (*Outcome, error) {
	id, ok := fields[1].(int64)
	if !ok || len(fields) < 3 {
		return nil, errors.New("a raised exception is malformed")
	}
	arguments, err := slice.TryMap(Items(fields[2]), ParseReference)
	return &Outcome{Raised: ObjectID(id), Arguments: arguments}, err
}

// ParseReference reads a reference from its wire form.
func ParseReference(object bytecode.Object) (Reference, error) {
	switch value := object.(type) {
	case int64:
		return ObjectID(value), nil
	case bytecode.Tuple:
		if len(value) == 1 {
			return Constant{value[0]}, nil
		}
	}
	return nil, errors.Newf("%v is not a reference", object)
}

// WireReference writes a reference in its wire form.
func WireReference(reference Reference) bytecode.Object {
	if constant, ok := reference.(Constant); ok {
		return bytecode.Tuple{constant.Value}
	}
	return int64(reference.(ObjectID))
}

// Items returns the items of a list, tuple or set; nil for anything else.
func Items(object bytecode.Object) []bytecode.Object {
	switch value := object.(type) {
	case *bytecode.List:
		return value.Items
	case bytecode.Tuple:
		return value
	case *bytecode.Set:
		return value.Items
	}
	return nil
}

// Field returns the value under a string key of a dict; nil when absent.
func Field(object bytecode.Object, name string) bytecode.Object {
	dict, ok := object.(*bytecode.Dict)
	if !ok {
		return nil
	}
	value, _ := dict.Get(name)
	return value
}

// Text returns the string under a key of a dict, "" when absent.
func Text(object bytecode.Object, name string) string {
	text, _ := Field(object, name).(string)
	return text
}
