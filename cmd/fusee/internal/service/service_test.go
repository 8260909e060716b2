package service

import (
	"io"
	"strings"
	"testing"

	"fusee/bytecode"
	"fusee/trace"
)

// host sends messages one after the other and keeps what the compiler says.
type host struct {
	messages []trace.Message
	said     []trace.Message
}

func (h *host) Receive() (trace.Message, error) {
	if len(h.messages) == 0 {
		return nil, io.EOF
	}
	next := h.messages[0]
	h.messages = h.messages[1:]
	return next, nil
}

func (h *host) Send(message trace.Message) error {
	h.said = append(h.said, message)
	return nil
}

func dict(pairs ...any) *bytecode.Dict {
	d := &bytecode.Dict{}
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i], pairs[i+1])
	}
	return d
}

// converse runs a service over messages and returns what it said.
func converse(t *testing.T, messages ...trace.Message) []trace.Message {
	t.Helper()
	h := &host{messages: messages}
	if err := New("1.2", h).Run(); err != nil {
		t.Fatal(err)
	}
	return h.said
}

var hello = trace.Message{"hello", dict("cache_dir", "", "llvm", "")}

func TestGreeting(t *testing.T) {
	ready := converse(t, hello)[0]
	if ready[0] != "ready" || trace.Text(ready[1], "version") != "1.2" || trace.Field(ready[1], "protocol") != int64(Protocol) {
		t.Errorf("%v", ready)
	}
}

// TestNonsenseIsAnsweredWithAFailure sends requests that no host makes: each is answered, and the next one is too.
func TestNonsenseIsAnsweredWithAFailure(t *testing.T) {
	empty := &bytecode.List{}
	requests := []trace.Message{
		{"compile"}, {"compile", bytecode.None}, {"compile", dict()}, {"compile", dict("function", "f")}, {"compile", dict("function", int64(1), "descriptions", int64(3))},
		{"compile", dict("function", int64(1), "parameters", bytecode.Tuple{"x"})},
		{"compile", dict("function", int64(1), "descriptions", &bytecode.List{Items: []bytecode.Object{bytecode.Tuple{int64(1), "function", int64(0), dict()}}})},
		{"compile", dict("function", int64(1), "descriptions", &bytecode.List{Items: []bytecode.Object{bytecode.Tuple{int64(1), "tensor", int64(0), bytecode.None}}})},
		{"lower", dict("graphs", &bytecode.List{Items: []bytecode.Object{int64(1)}}, "descriptions", bytecode.Tuple{int64(1)})},
		{"lower", dict("graphs", &bytecode.List{Items: []bytecode.Object{dict("inputs", bytecode.Tuple{int64(1)})}})},
		{"lower", dict("graphs", &bytecode.List{Items: []bytecode.Object{dict("nodes", bytecode.Tuple{int64(1)})}})},
		{"lower", dict("graphs", &bytecode.List{Items: []bytecode.Object{dict("outputs", bytecode.Tuple{bytecode.Tuple{"i", int64(0)}})}})},
		{"dance", empty}, {"answer", bytecode.Tuple{bytecode.None, empty}},
	}
	said := converse(t, append([]trace.Message{hello}, requests...)...)
	var failures []trace.Message
	for _, message := range said[1:] {
		switch message[0] {
		case "failed":
			failures = append(failures, message)
		case "ask": // the host is gone by then
		default:
			t.Errorf("%v", message)
		}
	}
	for _, failure := range failures {
		if text := trace.Text(failure[1], "message"); text == "" || strings.Contains(text, "internal error") {
			t.Errorf("%q", text)
		}
	}
	if len(failures) == 0 {
		t.Error("nothing failed")
	}
}

func TestRequestsBeforeHelloFail(t *testing.T) {
	for _, kind := range []string{"compile", "lower"} {
		said := converse(t, trace.Message{kind, dict()})
		if len(said) != 1 || said[0][0] != "failed" || !strings.Contains(trace.Text(said[0][1], "message"), "before hello") {
			t.Errorf("%v", said)
		}
	}
}

// TestGraphsWithoutEmittersAreLibraryCalls lowers where neither LLVM nor NVRTC is: operators are called one by one.
func TestGraphsWithoutEmittersAreLibraryCalls(t *testing.T) {
	meta := bytecode.Tuple{"float32", "cpu", bytecode.Tuple{int64(4)}, bytecode.Tuple{int64(1)}, int64(0), false, int64(0)}
	list := func(items ...bytecode.Object) *bytecode.List { return &bytecode.List{Items: items} }
	node := bytecode.Tuple{"relu", "aten.relu.default", list(bytecode.Tuple{"i", int64(0)}), dict(), list(meta), bytecode.Tuple{"aten::relu(Tensor self) -> Tensor", false}}
	graph := dict("name", "graph", "inputs", list(bytecode.Tuple{"x", meta}), "nodes", list(node), "outputs", list(bytecode.Tuple{"n", int64(0)}))
	said := converse(t, hello, trace.Message{"lower", dict("graphs", list(graph), "descriptions", list(), "state", dict(), "settings", dict())})
	if len(said) != 2 || said[1][0] != "done" {
		t.Fatalf("%v", said)
	}
	lowered := trace.Items(trace.Field(said[1][1], "graphs"))[0]
	if calls := libraryCalls(trace.Field(lowered, "plan")); trace.Text(lowered, "runs") != "plan" || len(calls) != 1 || calls[0] != "aten.relu.default" {
		t.Errorf("%s, %v", trace.Text(lowered, "runs"), calls)
	}
}
