package workers

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/errors"
)

// A frame is the length of its body and the body's CRC-32, both 4 bytes in little-endian order, and then the body: JSON.
const (
	headLength  = 8
	largestBody = 64 << 20 // bytes; an image has a few thousand
	protocol    = "fusee compile-cuda 1"
)

// greeting is what a worker says first, once it can compile.
type greeting struct{ Protocol string }

// request asks a worker for one program.
type request struct {
	Number             uint64
	Name, Architecture string
	Source             []byte
	NoCache            bool
}

// reply answers the request of the same number. A worker does not say why a program failed: whoever asked finds out by compiling it.
type reply struct {
	Number uint64
	Image  []byte
	Failed bool
}

// writeFrame writes one message with a single write.
func writeFrame(out io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, headLength+len(body)), uint32(len(body)))
	frame = binary.LittleEndian.AppendUint32(frame, crc32.ChecksumIEEE(body))
	_, err = out.Write(append(frame, body...))
	return err
}

// readFrame reads one message into the value that message points to; io.EOF where the stream ended before it.
func readFrame(in io.Reader, message any) error {
	var head [headLength]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > largestBody {
		return errors.Newf("a message of %d bytes was announced", length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(in, body); err != nil {
		return errors.Wrap(err, "a message is cut short")
	}
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(head[4:]) {
		return errors.New("a message was damaged on the way")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return decoder.Decode(message)
}
