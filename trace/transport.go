// Package trace carries the questions of a capture and the answers of the host: live over a socket, recorded, or replayed from a file.
//
// The log of questions and answers is the trace, so a recorded compilation can be repeated with no Python process at all.
// The messages are described in docs/contracts.md, sections 1 to 3.
package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
)

// Magic starts every trace file.
const Magic = "FUSEETR1"

// maxMessage bounds one message, so that a damaged length cannot ask for all memory.
const maxMessage = 1 << 30

// Message is a tuple whose first item names what it is.
type Message = bytecode.Tuple

// Transport exchanges whole messages with a host.
type Transport interface {
	// Receive returns the next message from the host; io.EOF when the host closed the connection.
	Receive() (Message, error)
	// Send hands one message to the host.
	Send(Message) error
}

// Connection is a Transport over a byte stream. It is safe for one reader and one writer at a time.
type Connection struct {
	reader  *bufio.Reader
	writer  io.Writer
	sending sync.Mutex
}

// NewConnection wraps a stream in both directions.
func NewConnection(stream io.ReadWriter) *Connection {
	return &Connection{reader: bufio.NewReaderSize(stream, 1<<16), writer: stream}
}

// Receive implements Transport.
func (c *Connection) Receive() (Message, error) {
	body, err := readFrame(c.reader)
	if err != nil {
		return nil, err
	}
	return decodeMessage(body)
}

// Send implements Transport.
func (c *Connection) Send(message Message) error {
	frame, err := encodeFrame(message)
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	_, err = c.writer.Write(frame)
	return errors.Wrap(err, "the Python process went away")
}

func encodeFrame(message Message) ([]byte, error) {
	const header = 4
	frame, err := bytecode.AppendMarshal(make([]byte, header, 256), message)
	if err != nil {
		return nil, errors.Wrap(err, "a message cannot be written")
	}
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-header))
	return frame, nil
}

func readFrame(reader io.Reader) ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(reader, header[:]); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(header[:])
	if length > maxMessage {
		return nil, errors.Newf("a message claims %d bytes; the limit is %d", length, maxMessage)
	}
	// Read through a growing buffer: a false length then costs only what really arrives.
	var body bytes.Buffer
	if _, err := io.CopyN(&body, reader, int64(length)); err != nil {
		return nil, errors.Wrap(io.ErrUnexpectedEOF, "a message is cut short")
	}
	return body.Bytes(), nil
}

func decodeMessage(body []byte) (Message, error) {
	object, err := bytecode.Unmarshal(body)
	if err != nil {
		return nil, errors.Wrap(err, "a message cannot be read")
	}
	message, ok := object.(bytecode.Tuple)
	if !ok || len(message) == 0 {
		return nil, errors.New("a message is not a tuple")
	}
	if _, ok := message[0].(string); !ok {
		return nil, errors.New("a message does not start with its kind")
	}
	return message, nil
}
