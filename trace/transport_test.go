package trace

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
)

func dict(pairs ...any) *bytecode.Dict {
	d := &bytecode.Dict{}
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i], pairs[i+1])
	}
	return d
}

// tape records messages; those that start with "ask", "ready", "done" or "failed" are the compiler's.
func tape(t testing.TB, messages ...Message) []byte {
	t.Helper()
	data := []byte(Magic)
	for _, message := range messages {
		fromHost := !strings.Contains("ask ready done failed", message[0].(string))
		var err error
		if data, err = AppendRecorded(data, fromHost, message); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

func player(t testing.TB, messages ...Message) *Player {
	t.Helper()
	p, err := NewPlayer(tape(t, messages...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMessagesCrossAConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	here, there := NewConnection(ours), NewConnection(theirs)
	sent := Message{"answer", bytecode.Tuple{dict("a", int64(1), "b", bytecode.None), &bytecode.List{Items: []bytecode.Object{1.5, "é", bytecode.Bytes("\x00")}}}}
	go func() {
		_ = here.Send(sent)
		_ = ours.Close()
	}()
	got, err := there.Receive()
	if err != nil {
		t.Fatal(err)
	}
	if place, want, found := Difference(sent, got); place != "" {
		t.Errorf("%s: sent %s, got %s", place, want, found)
	}
	if _, err := there.Receive(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	if err := there.Send(Message{"done", bytecode.None}); err == nil {
		t.Error("sending to a closed connection succeeds")
	}
}

// stream reads from fixed bytes.
type stream struct{ io.Reader }

func (stream) Write(p []byte) (int, error) { return len(p), nil }

func TestBadFramesAreErrors(t *testing.T) {
	frame := func(object bytecode.Object) []byte {
		body, err := bytecode.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	whole := frame(bytecode.Tuple{"answer", "text"})
	for name, data := range map[string][]byte{
		"cut in the length": whole[:3], "cut in the body": whole[:len(whole)-1], "a huge length": {0xff, 0xff, 0xff, 0xff, 1},
		"a large length": {0, 0, 0, 0x3f, 1, 2}, "no tuple": frame("text"), "an empty tuple": frame(bytecode.Tuple{}),
		"no kind": frame(bytecode.Tuple{int64(1)}), "no marshal": {1, 0, 0, 0, 0xfe}, "nothing": {0, 0, 0, 0},
	} {
		if message, err := NewConnection(stream{bytes.NewReader(data)}).Receive(); err == nil || err == io.EOF {
			t.Errorf("%s: %v, %v", name, message, err)
		}
	}
}

func TestPlayerAnswersInOrder(t *testing.T) {
	p := player(t, Message{"hello", int64(1)}, Message{"ask", "a"}, Message{"answer", int64(2)}, Message{"done", dict()})
	if message, err := p.Receive(); err != nil || message[0] != "hello" {
		t.Fatal(message, err)
	}
	if err := p.Send(Message{"ask", "a"}); err != nil {
		t.Fatal(err)
	}
	if message, err := p.Receive(); err != nil || message[1] != int64(2) {
		t.Fatal(message, err)
	}
	if err := p.Send(Message{"done", dict()}); err != nil || !p.Complete() {
		t.Fatal(err)
	}
	if _, err := p.Receive(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func TestPlayerKeepsTheFirstMismatch(t *testing.T) {
	p := player(t, Message{"ask", "describe", int64(1)}, Message{"answer", int64(2)}, Message{"done", dict()})
	first := p.Send(Message{"ask", "describe", int64(7)})
	var mismatch *Mismatch
	if !errors.As(first, &mismatch) || mismatch.Message != 1 || mismatch.Place != "[2]" || mismatch.Want != "1" || mismatch.Got != "7" {
		t.Fatalf("%#v", first)
	}
	if _, err := p.Receive(); err != first {
		t.Errorf("then %v", err)
	}
	if err := p.Send(Message{"done", dict()}); err != first {
		t.Errorf("then %v", err)
	}
}

func TestPlayerWantsTheCompilerToSpeakWhenItDid(t *testing.T) {
	p := player(t, Message{"ask", "a"}, Message{"answer", int64(1)})
	if _, err := p.Receive(); err == nil || err == io.EOF {
		t.Errorf("a question that is not asked: %v", err)
	}
	p = player(t, Message{"answer", int64(1)})
	if err := p.Send(Message{"ask", "a"}); err == nil {
		t.Error("a question where the host spoke")
	}
}

func TestTimesOfReportsDoNotCount(t *testing.T) {
	result := func(text string, times bytecode.Object) Message {
		return Message{"done", dict("code", text, "report", dict("format", int64(1), "times", times))}
	}
	if err := player(t, result("a", dict("capture", int64(3)))).Send(result("a", dict("capture", int64(99), "lower", int64(1)))); err != nil {
		t.Error(err)
	}
	warned := Message{"done", dict("code", "a", "report", dict("format", int64(1)), "warnings", bytecode.Tuple{"no LLVM"})}
	if err := player(t, warned).Send(result("a", dict())); err != nil {
		t.Error(err)
	}
	if player(t, result("a", dict())).Send(result("b", dict())) == nil {
		t.Error("another result passes")
	}
	if player(t, Message{"done", dict("times", int64(1))}).Send(Message{"done", dict("times", int64(2))}) == nil {
		t.Error("times outside a report are ignored")
	}
}

func TestLenientPlayerAnswersByQuestion(t *testing.T) {
	p := player(t, Message{"ask", "a"}, Message{"answer", int64(1)}, Message{"ask", "b"}, Message{"answer", int64(2)}, Message{"done", int64(1)})
	p.Lenient = true
	for question, want := range map[string]int64{"b": 2, "a": 1} {
		if err := p.Send(Message{"ask", question}); err != nil {
			t.Fatal(err)
		}
		if message, err := p.Receive(); err != nil || message[1] != want {
			t.Errorf("%s: %v, %v", question, message, err)
		}
	}
	if err := p.Send(Message{"done", int64(7)}); err != nil {
		t.Error(err)
	}
	if !p.Departed() {
		t.Error("another order is called the same")
	}
	if p.Send(Message{"ask", "c"}) != nil {
		t.Error("after the end of a trace anything may be said")
	}
	p = player(t, Message{"ask", "a"}, Message{"answer", int64(1)})
	p.Lenient = true
	if p.Send(Message{"ask", "c"}) == nil {
		t.Error("a question that was never answered passes")
	}
}

func TestBadTracesHaveHints(t *testing.T) {
	good := tape(t, Message{"hello", dict()}, Message{"ready", dict()})
	for name, data := range map[string][]byte{
		"empty": nil, "text": []byte("import torch"), "another format": []byte("FUSEETR2"), "direction": append(bytes.Clone(good), '?'),
		"cut": good[:len(good)-2], "body": append(bytes.Clone(good), '>', 1, 0, 0, 0, '?'),
	} {
		if _, err := NewPlayer(data); err == nil || len(errors.GetAllHints(err)) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := NewPlayer([]byte(Magic)); err != nil || p.Complete() {
		t.Errorf("a trace without messages: %v", err)
	}
}

func TestDifferenceFindsTheFirstPlace(t *testing.T) {
	code := func(text string) *bytecode.Code {
		return &bytecode.Code{Code: []byte(text), Consts: []bytecode.Object{text}}
	}
	list := func(items ...bytecode.Object) *bytecode.List { return &bytecode.List{Items: items} }
	for _, row := range []struct {
		want, got bytecode.Object
		place     string
	}{
		{int64(1), int64(1), ""}, {int64(1), 1.0, "value"}, {0.0, math.Copysign(0, -1), "value"}, {list(int64(1), "a"), list(int64(1), "b"), "[1]"},
		{list(int64(1)), list(int64(1), "b"), "value"}, {dict("a", list("x")), dict("a", list("y")), "['a'][0]"},
		{dict("a", int64(1)), dict("b", int64(1)), "value"}, {code("ab"), code("ac"), ".co_code"}, {bytecode.Tuple{true}, bytecode.Tuple{int64(1)}, "[0]"},
	} {
		if place, _, _ := Difference(row.want, row.got); place != row.place {
			t.Errorf("%v and %v differ at %q, want %q", row.want, row.got, place, row.place)
		}
	}
}

// FuzzPlayer reads hostile files: an error or messages, nothing else, and what it accepts it writes back the same.
func FuzzPlayer(f *testing.F) {
	f.Add([]byte(Magic))
	f.Add(tape(f, Message{"hello", dict("python", "3.11.7")}, Message{"ready", dict()}, Message{"compile", dict("descriptions", &bytecode.List{})}))
	f.Add(append([]byte(Magic), '<', 0xff, 0xff, 0xff, 0x3f))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := NewPlayer(data)
		if err != nil {
			return
		}
		for i := range p.frames {
			p.next = i
			message, err := decodeMessage(p.frames[i].body)
			if err != nil {
				t.Fatal(err)
			}
			if p.frames[i].fromHost {
				continue
			}
			if err := p.Send(message); err != nil {
				t.Fatalf("message %d differs from itself: %v", i, err)
			}
		}
	})
}
