package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/bytecode"
	"fusee/cmd/fusee/internal/python"
	"fusee/internal/slice"
)

const (
	pycHeaderSize = 16         // magic number, flags, and either time and size or a hash of the source
	pycMagic      = 0x0A0D0DA7 // 3495 and "\r\n": CPython 3.11
	wrongVersion  = 3          // exit status of compileScript under another Python
	maxPycSize    = 1 << 30    // no code comes near
	compileHint   = "compiling source takes CPython 3.11: name one with --python, or pass a .pyc file"
)

// compileScript compiles the file that the command line names as `python -m dis` does. It marshals the code object and,
// because marshal sorts them, the items of every frozenset in it in the order in which dis would print them.
const compileScript = `import marshal, sys
def orders(constant):
    if isinstance(constant, frozenset):
        yield tuple(constant)
    for inner in getattr(constant, "co_consts", constant if isinstance(constant, (tuple, frozenset)) else ()):
        yield from orders(inner)
if sys.version_info[:2] != (3, 11) or sys.implementation.name != "cpython":
    sys.exit(3)
with open(sys.argv[1], "rb") as file:
    code = compile(file.read(), sys.argv[1], "exec", dont_inherit=True)
sys.stdout.buffer.write(marshal.dumps((code, tuple(orders(code)))))
`

// disassembly holds the flags of `fusee dis`.
type disassembly struct {
	python string
	json   bool
}

func newDisCommand() *cobra.Command {
	var d disassembly
	command := &cobra.Command{
		Use:   "dis [flags] FILE.py|FILE.pyc",
		Short: "Disassemble a Python file as CPython 3.11's dis does",
		Long: "Prints the instructions of a file and of every function in it, as `python -m dis` of CPython 3.11 prints them.\n" +
			"Source files are compiled by a CPython 3.11; compiled files need none.",
		Example: "  fusee dis model.py\n  fusee dis --json __pycache__/model.cpython-311.pyc",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return d.run(command.OutOrStdout(), command.ErrOrStderr(), arguments[0])
		},
	}
	command.Flags().StringVar(&d.python, "python", "", "the CPython 3.11 that compiles source files (default: the first one found)")
	command.Flags().BoolVar(&d.json, "json", false, "print offsets, names and arguments as JSON")
	return command
}

func (d *disassembly) run(out, problems io.Writer, file string) error {
	code, err := d.read(file, problems)
	if err != nil {
		return err
	}
	return errors.Wrapf(d.write(out, code), "%s", file)
}

func (d *disassembly) write(out io.Writer, code *bytecode.Code) error {
	if d.json {
		return writeInstructions(out, code)
	}
	return bytecode.Disassemble(out, code)
}

// read returns the code object of a source file or a compiled file.
func (d *disassembly) read(file string, problems io.Writer) (*bytecode.Code, error) {
	if strings.HasSuffix(file, ".pyc") {
		data, err := readPyc(file)
		if err != nil {
			return nil, err
		}
		return unmarshalPyc(data, file)
	}
	if _, err := os.Stat(file); err != nil {
		return nil, errors.WithHint(errors.Wrap(err, "cannot read the file"), "pass a .py file or a .pyc file")
	}
	data, err := d.compile(file, problems)
	if err != nil {
		return nil, err
	}
	return unmarshalCompiled(data)
}

func unmarshalPyc(data []byte, file string) (*bytecode.Code, error) {
	object, err := bytecode.Unmarshal(data)
	if err != nil {
		return nil, errors.WithHint(errors.Wrapf(err, "%s", file), "the file is damaged; compile its source again")
	}
	code, ok := object.(*bytecode.Code)
	if !ok {
		return nil, errors.WithHint(errors.Newf("%s holds no code object", file), "pass a .py file or a .pyc file")
	}
	bytecode.OrderSets(code)
	return code, nil
}

// unmarshalCompiled reads what compileScript prints.
func unmarshalCompiled(data []byte) (*bytecode.Code, error) {
	object, err := bytecode.Unmarshal(data)
	if err != nil {
		return nil, err
	}
	pair, _ := object.(bytecode.Tuple)
	if len(pair) != 2 {
		return nil, errors.New("Python printed something else than a code object")
	}
	code, isCode := pair[0].(*bytecode.Code)
	orders, isTuple := pair[1].(bytecode.Tuple)
	if !isCode || !isTuple {
		return nil, errors.New("Python printed something else than a code object")
	}
	bytecode.VisitSets(code, func(set *bytecode.Set) {
		if len(orders) > 0 {
			if items, ok := orders[0].(bytecode.Tuple); ok {
				set.Items = items
			}
			orders = orders[1:]
		}
	})
	return code, nil
}

func readPyc(file string) ([]byte, error) {
	stream, err := os.Open(file)
	if err != nil {
		return nil, errors.WithHint(errors.Wrap(err, "cannot read the file"), "pass a .py file or a .pyc file")
	}
	defer func() { _ = stream.Close() }()
	data, err := io.ReadAll(io.LimitReader(stream, maxPycSize))
	if err != nil {
		return nil, errors.WithHint(errors.Wrap(err, "cannot read the file"), "check that it is a file and not a folder")
	}
	if len(data) < pycHeaderSize || binary.LittleEndian.Uint32(data) != pycMagic {
		err := errors.Newf("%s was not written by CPython 3.11", file)
		return nil, errors.WithHint(err, "compile its source again with CPython 3.11: python3.11 -m py_compile FILE.py")
	}
	return data[pycHeaderSize:], nil
}

// compile has CPython compile a source file. What CPython says about the source goes to problems.
func (d *disassembly) compile(file string, problems io.Writer) ([]byte, error) {
	interpreter, err := python.Find(d.python)
	if err != nil {
		return nil, err
	}
	interpreters := []string{interpreter}
	if d.python == "" {
		interpreters = append(interpreters, "python3.11")
	}
	for _, interpreter := range interpreters {
		data, err := runCompile(interpreter, file, problems)
		var failure *exec.ExitError
		switch {
		case err == nil:
			return data, nil
		case errors.As(err, &failure) && failure.ExitCode() != wrongVersion:
			return nil, errors.WithHint(errors.Newf("%s does not compile", file), "the messages of CPython are above")
		}
	}
	return nil, errors.WithHint(errors.Newf("%s is not a CPython 3.11", interpreter), compileHint)
}

func runCompile(interpreter, file string, problems io.Writer) ([]byte, error) {
	var output bytes.Buffer
	command := exec.Command(interpreter, "-S", "-c", compileScript, file)
	command.Stdout, command.Stderr = &output, problems
	err := command.Run()
	return output.Bytes(), err
}

// listedCode and listedInstruction are the JSON form of a disassembly.
type listedCode struct {
	QualName     string              `json:"qualname"`
	Instructions []listedInstruction `json:"instructions"`
}

type listedInstruction struct {
	Offset int    `json:"offset"`
	Name   string `json:"opname"`
	Arg    *int   `json:"arg"` // null for opcodes without argument
}

func writeInstructions(out io.Writer, code *bytecode.Code) error {
	codes, err := listCodes(code)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(map[string]any{"codes": codes})
}

// listCodes lists a code object and those inside it; with an error, those that could be listed.
func listCodes(code *bytecode.Code) (codes []listedCode, err error) {
	err = bytecode.WalkCodes(code, func(inner *bytecode.Code) error {
		list, err := bytecode.ListInstructions(inner)
		codes = append(codes, listedCode{inner.QualName, slice.Map(list, namedInstruction)})
		return err
	})
	return codes, err
}

func namedInstruction(listed bytecode.ListedInstruction) listedInstruction {
	named := listedInstruction{Offset: listed.Offset, Name: listed.Opcode.String()}
	if listed.Opcode.HasArgument() {
		named.Arg = &listed.Arg
	}
	return named
}
