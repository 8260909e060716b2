package trace

import (
	"bytes"
	"io"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
)

// recordHint says how traces are made.
const recordHint = "make a trace with FUSEE_RECORD=FOLDER or `with fusee.record(PATH):`"

// Player is a Transport that answers from a trace file and requires the compiler to ask and say what it did when the trace was made.
type Player struct {
	// Lenient answers a question that comes in another order than recorded, and accepts results that differ from the recorded ones.
	Lenient bool

	frames   []frame
	next     int
	departed bool
	mismatch error
}

type frame struct {
	fromHost bool
	body     []byte
}

// Mismatch says where a replay first departs from the recorded compilation.
type Mismatch struct {
	Message int    // number of the message in the trace, counted from 1
	Place   string // path to the first difference, such as done["graphs"][0]["text"]
	Want    string // what was recorded there
	Got     string
}

func (m *Mismatch) Error() string {
	return "replaying differs from the recorded compilation in message " + decimal(m.Message) + " at " + m.Place + ": recorded " + m.Want + ", now " + m.Got
}

// NewPlayer reads a whole trace file. The error has a hint for a file that is no trace, of another version, or damaged.
func NewPlayer(data []byte) (*Player, error) {
	if len(data) < len(Magic) || string(data[:len(Magic)-1]) != Magic[:len(Magic)-1] {
		return nil, errors.WithHint(errors.New("this is not a fusee trace"), recordHint)
	}
	if string(data[:len(Magic)]) != Magic {
		err := errors.Newf("this trace has format %q and this binary reads format %q", data[len(Magic)-1:len(Magic)], Magic[len(Magic)-1:])
		return nil, errors.WithHint(err, "replay it with the version of fusee that made it")
	}
	player := &Player{}
	reader := bytes.NewReader(data[len(Magic):])
	for reader.Len() > 0 {
		at := len(data) - reader.Len()
		next, err := readRecorded(reader)
		if err != nil {
			return nil, errors.WithHint(errors.Wrapf(err, "the trace is damaged at byte %d", at), "it was cut short or changed; record it again")
		}
		player.frames = append(player.frames, next)
	}
	return player, nil
}

func readRecorded(reader *bytes.Reader) (frame, error) {
	direction, err := reader.ReadByte()
	if err != nil {
		return frame{}, err
	}
	if direction != '>' && direction != '<' {
		return frame{}, errors.Newf("%#x stands where a direction should", direction)
	}
	body, err := readFrame(reader)
	if err != nil {
		return frame{}, errors.Wrap(err, "a message is incomplete")
	}
	_, err = decodeMessage(body)
	return frame{direction == '>', body}, err
}

// AppendRecorded adds a message to a trace that starts with Magic.
func AppendRecorded(data []byte, fromHost bool, message Message) ([]byte, error) {
	frame, err := encodeFrame(message)
	if err != nil {
		return nil, err
	}
	direction := byte('<')
	if fromHost {
		direction = '>'
	}
	return append(append(data, direction), frame...), nil
}

// Messages returns what the host said, or what the compiler said, in order.
func (p *Player) Messages(fromHost bool) []Message {
	var messages []Message
	for _, f := range p.frames {
		if message, err := decodeMessage(f.body); err == nil && f.fromHost == fromHost {
			messages = append(messages, message)
		}
	}
	return messages
}

// Complete tells whether the trace ends with what the compiler said last, as it does unless one side died.
func (p *Player) Complete() bool {
	return len(p.frames) > 0 && !p.frames[len(p.frames)-1].fromHost
}

// Departed tells whether a lenient player accepted something else than recorded.
func (p *Player) Departed() bool { return p.departed }

// Receive implements Transport; io.EOF at the end of the trace.
func (p *Player) Receive() (Message, error) {
	if p.mismatch != nil {
		return nil, p.mismatch
	}
	if p.next >= len(p.frames) {
		return nil, io.EOF
	}
	current := p.frames[p.next]
	if !current.fromHost {
		return nil, p.differs(current.body, nil)
	}
	p.next++
	return decodeMessage(current.body)
}

// Send implements Transport. The error is a *Mismatch when the message is not the recorded one; times of a report and warnings do not count.
func (p *Player) Send(message Message) error {
	if p.mismatch != nil {
		return p.mismatch
	}
	got, err := bytecode.Marshal(message)
	if err != nil {
		return errors.Wrap(err, "a message cannot be written")
	}
	if p.next >= len(p.frames) {
		return nil // a trace may end where the host died
	}
	want := p.frames[p.next]
	if !want.fromHost && equalHere(want.body, got) {
		p.next++
		return nil
	}
	if p.Lenient && p.seek(message, got) {
		return nil
	}
	return p.differs(want.body, got)
}

// seek moves to where the question was answered, or past the result in whose place another one came.
func (p *Player) seek(message Message, got []byte) bool {
	for at, f := range p.frames {
		isResult := at >= p.next && message[0] != "ask" && kindOf(f) == message[0]
		if !f.fromHost && (isResult || bytes.Equal(f.body, got)) {
			p.next, p.departed = at+1, true
			return true
		}
	}
	return false
}

func kindOf(f frame) bytecode.Object {
	message, err := decodeMessage(f.body)
	if err != nil {
		return nil
	}
	return message[0]
}

// differs keeps the first mismatch: everything after it follows from it.
func (p *Player) differs(want, got []byte) error {
	mismatch := &Mismatch{Message: p.next + 1, Place: "the whole message", Want: wholeMessage(want), Got: wholeMessage(got)}
	recorded, err := decodeMessage(want)
	if err == nil && got != nil {
		now, _ := decodeMessage(got)
		if place, a, b := Difference(withoutPlace(recorded), withoutPlace(now)); place != "" {
			mismatch.Place, mismatch.Want, mismatch.Got = place, a, b
		}
	}
	p.mismatch = errors.WithHint(mismatch, "the trace was made by another version of fusee, or the compiler is not deterministic")
	return p.mismatch
}

// equalHere compares two messages but for what depends on where and when a result was made (docs/contracts.md, section 1).
func equalHere(want, got []byte) bool {
	if bytes.Equal(want, got) {
		return true
	}
	a, err := canonical(want)
	if err != nil {
		return false
	}
	b, err := canonical(got)
	return err == nil && bytes.Equal(a, b)
}

func canonical(body []byte) ([]byte, error) {
	message, err := decodeMessage(body)
	if err != nil {
		return nil, err
	}
	return bytecode.Marshal(withoutPlace(message))
}

// withoutPlace copies a result's message without the times of its report, and without warnings about the machine.
func withoutPlace(message Message) Message {
	if len(message) != 2 || message[0] != "done" {
		return message
	}
	result, ok := without(message[1], "warnings").(*bytecode.Dict)
	if !ok {
		return message
	}
	for i, key := range result.Keys {
		if key == "report" {
			result.Values[i] = without(result.Values[i], "times")
		}
	}
	return Message{message[0], result}
}

// without copies a dict without a key.
func without(object bytecode.Object, name string) bytecode.Object {
	dict, ok := object.(*bytecode.Dict)
	if !ok {
		return object
	}
	changed := &bytecode.Dict{}
	for i, key := range dict.Keys {
		if key != name {
			changed.Set(key, dict.Values[i])
		}
	}
	return changed
}
