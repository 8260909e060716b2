package trace

import (
	"io"
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
)

// scripted answers with the messages of a list and keeps the questions.
type scripted struct {
	replies   []Message
	questions []Message
}

func (s *scripted) Send(message Message) error {
	s.questions = append(s.questions, message)
	return nil
}

func (s *scripted) Receive() (Message, error) {
	if len(s.replies) == 0 {
		return nil, io.EOF
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply, nil
}

func answer(value bytecode.Object, descriptions ...bytecode.Object) Message {
	return Message{"answer", bytecode.Tuple{value, &bytecode.List{Items: descriptions}}}
}

func session(t *testing.T, replies ...Message) (*Session, *scripted) {
	t.Helper()
	transport := &scripted{replies: replies}
	s, err := NewSession(transport, &bytecode.List{Items: []bytecode.Object{bytecode.Tuple{int64(1), "type", int64(0), dict("name", "int")}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, transport
}

func TestObjectsAreAskedForOnce(t *testing.T) {
	s, transport := session(t, answer(bytecode.None, bytecode.Tuple{int64(5), "module", int64(1), dict("name", "math")}))
	for range 2 {
		known, err := s.Object(1)
		if err != nil || known.Kind != "type" {
			t.Fatal(known, err)
		}
		asked, err := s.Object(5)
		if err != nil || asked.TypeID != 1 || Text(asked.Payload, "name") != "math" {
			t.Fatal(asked, err)
		}
	}
	if len(transport.questions) != 1 || s.Questions() != 1 {
		t.Errorf("%d questions", len(transport.questions))
	}
}

func TestLookupsAreKept(t *testing.T) {
	s, transport := session(t, answer(bytecode.Tuple{int64(1), bytecode.Tuple{int64(7)}}), answer(bytecode.None))
	for range 2 {
		found, err := s.TypeLookup(1, "real")
		if err != nil || found.Owner != 1 || found.Value != (Constant{int64(7)}) {
			t.Fatal(found, err)
		}
		if absent, err := s.TypeLookup(1, "imaginary"); absent != nil || err != nil {
			t.Fatal(absent, err)
		}
	}
	if len(transport.questions) != 2 {
		t.Errorf("%d questions", len(transport.questions))
	}
}

// TestLookupsFollowFromNames: absent names are not asked for, and an attribute of a base once for all that derive from it.
func TestLookupsFollowFromNames(t *testing.T) {
	names := func(names ...bytecode.Object) bytecode.Object { return &bytecode.List{Items: names} }
	described := func(id int64, own bytecode.Object, order ...bytecode.Object) bytecode.Object {
		payload := dict("mro", &bytecode.List{Items: order})
		payload.Set("names", own)
		return bytecode.Tuple{id, "type", int64(9), payload}
	}
	s, transport := session(t, answer(bytecode.None, described(2, names("call"), int64(2)), described(3, names(), int64(3), int64(2)), described(4, names("own"), int64(4), int64(2)),
		described(5, names(), int64(5), int64(99))),
		answer(bytecode.Tuple{int64(2), bytecode.Tuple{int64(7)}}), answer(bytecode.None))
	if _, err := s.Object(2); err != nil {
		t.Fatal(err)
	}
	for _, class := range []ObjectID{3, 4, 2, 3} {
		if found, err := s.TypeLookup(class, "call"); err != nil || found == nil || found.Owner != 2 || found.Value != (Constant{int64(7)}) {
			t.Error(class, found, err)
		}
		if found, err := s.TypeLookup(class, "absent"); found != nil || err != nil {
			t.Error(class, found, err)
		}
	}
	if s.Questions() != 2 {
		t.Errorf("%d questions, not the description and one lookup: %v", s.Questions(), transport.questions)
	}
	if _, err := s.TypeLookup(5, "call"); err != nil || s.Questions() != 3 {
		t.Error("a base that is not described was not asked about: ", err)
	}
}

func TestOutcomes(t *testing.T) {
	raised := bytecode.Tuple{"raise", int64(1), &bytecode.List{Items: []bytecode.Object{bytecode.Tuple{"no"}}}}
	s, _ := session(t, answer(bytecode.Tuple{"value", int64(1)}), answer(raised), answer(bytecode.Tuple{"unsupported", "why"}),
		answer(bytecode.Tuple{"value", bytecode.Tuple{"T"}, dict("nodes", int64(0))}))
	value, err := s.GetAttribute(1, "a")
	if err != nil || value.Value != ObjectID(1) {
		t.Error(value, err)
	}
	exception, err := s.Evaluate(int64(1), nil, nil)
	if err != nil || exception.Value != nil || exception.Raised != 1 || exception.Arguments[0] != (Constant{"no"}) {
		t.Error(exception, err)
	}
	unsupported, err := s.TensorCall("torch.relu", nil, nil, Modes{})
	if err != nil || unsupported.Unsupported != "why" {
		t.Error(unsupported, err)
	}
	tensor, err := s.TensorCall("torch.relu", nil, nil, Modes{})
	if err != nil || tensor.Structure == nil || Field(tensor.Expansion, "nodes") != int64(0) {
		t.Error(tensor, err)
	}
}

func TestNamesAreReadOnce(t *testing.T) {
	s, transport := session(t, answer(int64(7)), answer(bytecode.None), answer(int64(8)))
	for range 2 {
		if found, err := s.DictGet(1, "a"); found != ObjectID(7) || err != nil {
			t.Fatal(found, err)
		}
		if found, err := s.ModuleGet(1, "a"); found != nil || err != nil {
			t.Fatal(found, err)
		}
	}
	if found, err := s.DictGet(1, bytecode.Tuple{"a"}); found != ObjectID(8) || err != nil {
		t.Fatal(found, err)
	}
	if len(transport.questions) != 3 {
		t.Error(transport.questions)
	}
}

func TestTheHostMayGiveUp(t *testing.T) {
	s, _ := session(t, Message{"error", "no such object"})
	_, err := s.ModuleGet(1, "x")
	var failure *HostError
	if !errors.As(err, &failure) || failure.Text != "no such object" {
		t.Error(err)
	}
	if _, err := s.ModuleGet(1, "x"); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestMalformedAnswers asks every question and answers each with every kind of nonsense: an error, or a plain answer, but no panic.
func TestMalformedAnswers(t *testing.T) {
	nonsense := []bytecode.Object{
		bytecode.None, int64(-1), "text", 1.5, bytecode.Tuple{}, bytecode.Tuple{"value"}, bytecode.Tuple{"raise", "x", int64(1)}, bytecode.Tuple{"raise", int64(1)},
		bytecode.Tuple{"raise", int64(1), bytecode.Tuple{bytecode.Tuple{}}}, bytecode.Tuple{"value", "x"}, bytecode.Tuple{"other", int64(1)}, bytecode.Tuple{int64(1), int64(2), int64(3)},
		bytecode.Tuple{"x", "y"}, &bytecode.List{}, dict("a", int64(1)), &bytecode.Set{}, &bytecode.Code{},
	}
	questions := map[string]func(*Session) error{
		"describe":    func(s *Session) error { _, err := s.Object(99); return err },
		"type_lookup": func(s *Session) error { _, err := s.TypeLookup(1, "a"); return err },
		"module_get":  func(s *Session) error { _, err := s.ModuleGet(1, "a"); return err },
		"dict_get":    func(s *Session) error { _, err := s.DictGet(1, "a"); return err },
		"getattr":     func(s *Session) error { _, err := s.GetAttribute(1, "a"); return err },
		"evaluate":    func(s *Session) error { _, err := s.Evaluate(int64(1), nil, nil); return err },
		"shaped_call": func(s *Session) error { _, err := s.ShapedCall(nil, "torch.relu", nil, nil, Modes{}); return err },
		"tensor_call": func(s *Session) error { _, err := s.TensorCall("torch.relu", nil, nil, Modes{}); return err },
		"hash_equal":  func(s *Session) error { _, err := s.HashEqual(int64(1), int64(2)); return err },
		"source_line": func(s *Session) error { _, err := s.SourceLine("a.py", 1); return err },
	}
	for name, ask := range questions {
		for _, value := range nonsense {
			s, _ := session(t, answer(value))
			if err := ask(s); err == nil && (name == "describe" || name == "getattr" || name == "evaluate") {
				t.Errorf("%s accepts %v", name, value)
			}
			for _, reply := range []Message{{"answer"}, {"answer", value}, {"error"}, {"compile", value}, answer(value, value)} {
				s, _ := session(t, reply)
				if err := ask(s); err == nil && len(reply) != 2 {
					t.Errorf("%s accepts %v", name, reply)
				}
			}
		}
	}
}

func TestMalformedDescriptions(t *testing.T) {
	for _, item := range []bytecode.Object{
		int64(1), bytecode.Tuple{int64(1), "type", int64(0)}, bytecode.Tuple{"1", "type", int64(0), bytecode.None}, bytecode.Tuple{int64(1), int64(2), int64(0), bytecode.None},
		bytecode.Tuple{int64(1), "type", bytecode.None, bytecode.None},
	} {
		if _, err := NewSession(&scripted{}, &bytecode.List{Items: []bytecode.Object{item}}); err == nil {
			t.Errorf("%v is accepted", item)
		}
	}
}

func TestReferencesKeepTheirForm(t *testing.T) {
	for _, wire := range []bytecode.Object{int64(3), bytecode.Tuple{"text"}, bytecode.Tuple{bytecode.None}, bytecode.Tuple{1.5}} {
		reference, err := ParseReference(wire)
		if err != nil {
			t.Fatal(err)
		}
		if place, _, _ := Difference(wire, WireReference(reference)); place != "" {
			t.Errorf("%v comes back as %v", wire, WireReference(reference))
		}
	}
	for _, wire := range []bytecode.Object{"text", bytecode.Tuple{}, bytecode.Tuple{int64(1), int64(2)}, bytecode.None, 1.5} {
		if reference, err := ParseReference(wire); err == nil {
			t.Errorf("%v is read as %v", wire, reference)
		}
	}
}
