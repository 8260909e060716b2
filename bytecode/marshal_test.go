package bytecode

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// runPython runs a script of testdata with a fixed hash seed, so that sets have one order.
func runPython(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(findPython(t), arguments...)
	command.Env = append(os.Environ(), "PYTHONHASHSEED=0")
	command.Stdin = strings.NewReader(input)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(output), "\n")
}

func fromHex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestUnmarshalReadsWhatCPythonWrites compares the repr of what was read with CPython's, in every version of marshal.
func TestUnmarshalReadsWhatCPythonWrites(t *testing.T) {
	var written []string
	var wanted []string
	for _, line := range strings.Split(runPython(t, "", "testdata/marshal_samples.py", "write"), "\n") {
		fields := strings.Split(line, "\t")
		data, repr := fromHex(t, fields[1]), string(fromHex(t, fields[2]))
		object, err := Unmarshal(data)
		if err != nil {
			t.Errorf("version %s of %s: %v", fields[0], repr, err)
			continue
		}
		again, err := Marshal(object)
		if err != nil {
			t.Errorf("%s: %v", repr, err)
			continue
		}
		written, wanted = append(written, hex.EncodeToString(again)), append(wanted, fields[2])
		OrderSets(object)
		if got, err := Repr(object); err != nil || got != repr {
			t.Errorf("version %s of %s reads as %s, %v", fields[0], repr, got, err)
		}
		checkTree(t, data)
	}
	if len(wanted) < 2500 {
		t.Errorf("only %d samples", len(wanted))
	}
	got := strings.Split(runPython(t, strings.Join(written, "\n"), "testdata/marshal_samples.py", "read"), "\n")
	if !slices.Equal(got, wanted) {
		t.Error("CPython reads other objects than were written")
	}
}

// checkTree checks that reading and writing a tree is the identity.
func checkTree(t *testing.T, data []byte) {
	t.Helper()
	tree, err := ReadTree(data)
	if err != nil {
		t.Errorf("ReadTree(%x): %v", data, err)
		return
	}
	written, err := tree.Write()
	if err != nil || !bytes.Equal(written, data) {
		t.Errorf("tree of %x writes %x, %v", data, written, err)
	}
}

// nested returns count opening bytes of one-item containers around None.
func nested(opening string, count int) string { return strings.Repeat(opening, count) + "N" }

func TestUnmarshalRefusesHostileInput(t *testing.T) {
	cases := map[string]string{
		"empty":                        "",
		"unknown type code":            "?",
		"null":                         "0",
		"null item":                    "(\x01\x00\x00\x000",
		"trailing byte":                "NN",
		"truncated int":                "i\x01\x00",
		"truncated float":              "g1234567",
		"truncated text":               "z\x05abc",
		"huge tuple":                   "(\xff\xff\xff\x7f",
		"huge list":                    "[\xff\xff\xff\x7fNNN",
		"huge text":                    "u\xff\xff\xff\x7f",
		"huge int":                     "l\xff\xff\xff\x7f",
		"smallest length of an int":    "l\x00\x00\x00\x80",
		"negative length":              "s\xff\xff\xff\xff",
		"digit out of range":           "l\x01\x00\x00\x00\x00\x80",
		"unnormalized int":             "l\x02\x00\x00\x00\x01\x00\x00\x00",
		"text that is not UTF-8":       "u\x01\x00\x00\x00\xff",
		"float with a space":           "f\x04 1.5",
		"float with an underscore":     "f\x031_0",
		"hexadecimal float":            "f\x050x1p1",
		"reference to nothing":         "r\x00\x00\x00\x00",
		"negative reference":           ")\x02\xfaaAr\xff\xff\xff\xff",
		"tuple that contains itself":   "\xa9\x01r\x00\x00\x00\x00",
		"list that contains itself":    "\xdb\x01\x00\x00\x00r\x00\x00\x00\x00",
		"tuples too deep":              nested(")\x01", 2001),
		"dicts too deep":               strings.Repeat("{N", 2001),
		"tuples that promise too much": strings.Repeat("(\x40\x00\x00\x00", 40),
		"code without fields":          "c",
		"code of the wrong types":      "c" + strings.Repeat("\x00", 20) + strings.Repeat("N", 8) + "\x00\x00\x00\x00NN",
	}
	for name, input := range cases {
		object, err := Unmarshal([]byte(input))
		var marshalError *MarshalError
		if !errors.As(err, &marshalError) {
			t.Errorf("%s: read %v, %v", name, object, err)
		}
	}
}

// TestUnmarshalRefusesExplodingReferences reads tuples of which each holds the previous one twice.
func TestUnmarshalRefusesExplodingReferences(t *testing.T) {
	input := []byte{typeTuple, 41, 0, 0, 0, typeBytes | flagRef, 0, 0, 0, 0}
	for level := range byte(40) {
		input = append(input, typeSmallTuple|flagRef, 2, typeRef, level, 0, 0, 0, typeRef, level, 0, 0, 0)
	}
	if _, err := Unmarshal(input); err == nil {
		t.Error("2**40 items were accepted")
	}
	checkTree(t, input)
}

func TestDeepestObject(t *testing.T) {
	input := []byte(nested(")\x01", 1999))
	object, err := Unmarshal(input)
	if err != nil {
		t.Fatal(err)
	}
	if written, err := Marshal(object); err != nil || !bytes.Equal(written, input) {
		t.Errorf("writes %d bytes, %v", len(written), err)
	}
	checkTree(t, input)
	runPython(t, hex.EncodeToString(input), "testdata/marshal_samples.py", "read")
}

func TestMarshalRefusesWhatIsNoObject(t *testing.T) {
	cyclic := &List{}
	cyclic.Items = []Object{cyclic}
	for name, object := range map[string]Object{
		"nil": nil, "Go slice": []int{1}, "cyclic list": cyclic, "invalid text": "\xff", "cut surrogate": "\xed\xa0",
		"uneven dict": &Dict{Keys: []Object{None}}, "huge int": new(big.Int).Lsh(big.NewInt(1), 1<<27),
	} {
		if _, err := Marshal(object); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

func TestTreeKeepsCyclesAndForms(t *testing.T) {
	for _, input := range []string{
		"\xdb\x01\x00\x00\x00r\x00\x00\x00\x00", "\xda\x01a", "\xc1\x01\x00\x00\x00a", "{NN0", "{N0", "I12345678", "x\x011\x012",
	} {
		checkTree(t, []byte(input))
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	data := benchmarkMessage(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Unmarshal(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	object, err := Unmarshal(benchmarkMessage(b))
	if err != nil {
		b.Fatal(err)
	}
	buffer := make([]byte, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		data, err := AppendMarshal(buffer[:0], object)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(data)))
	}
}

// benchmarkMessage is like an answer that describes a hundred tensors.
func benchmarkMessage(b *testing.B) []byte {
	b.Helper()
	var descriptions []Object
	for i := range int64(100) {
		metadata := Tuple{"float32", "cpu", Tuple{i, int64(64)}, Tuple{int64(64), int64(1)}, int64(0), false, int64(2)}
		descriptions = append(descriptions, Tuple{i, "tensor", int64(7), Tuple{metadata, i, int64(0), &List{}}})
	}
	data, err := Marshal(Tuple{"answer", Tuple{None, &List{Items: descriptions}}})
	if err != nil {
		b.Fatal(err)
	}
	return data
}
