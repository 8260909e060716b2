package symbolic

import (
	"slices"
	"strings"
)

// exceptionParents lists CPython's hierarchy of builtin exceptions: a class, and those that derive from it directly.
var exceptionParents = [][2]string{
	{"BaseException", "BaseExceptionGroup Exception GeneratorExit KeyboardInterrupt SystemExit"},
	{"Exception", `ArithmeticError AssertionError AttributeError BufferError EOFError ImportError LookupError MemoryError NameError OSError ReferenceError
		RuntimeError StopAsyncIteration StopIteration SyntaxError SystemError TypeError ValueError Warning ExceptionGroup`},
	{"ArithmeticError", "FloatingPointError OverflowError ZeroDivisionError"},
	{"Warning", `BytesWarning DeprecationWarning EncodingWarning FutureWarning ImportWarning PendingDeprecationWarning ResourceWarning RuntimeWarning
		SyntaxWarning UnicodeWarning UserWarning`},
	{"OSError", `BlockingIOError ChildProcessError ConnectionError FileExistsError FileNotFoundError InterruptedError IsADirectoryError NotADirectoryError
		PermissionError ProcessLookupError TimeoutError`},
	{"SyntaxError", "IndentationError"},
	{"LookupError", "IndexError KeyError"},
	{"ImportError", "ModuleNotFoundError"},
	{"RuntimeError", "NotImplementedError RecursionError"},
	{"NameError", "UnboundLocalError"},
	{"ValueError", "UnicodeError"},
	{"ConnectionError", "BrokenPipeError ConnectionAbortedError ConnectionRefusedError ConnectionResetError"},
	{"IndentationError", "TabError"},
	{"UnicodeError", "UnicodeDecodeError UnicodeEncodeError UnicodeTranslateError"},
}

// builtinBases lists the names along the method resolution order of a builtin class that is known by its name alone.
func builtinBases(name string) []string {
	order := []string{name}
	for at := name; at != ""; {
		parent := exceptionParent(at)
		if parent != "" {
			order = append(order, parent)
		}
		at = parent
	}
	if name == "ExceptionGroup" {
		order = []string{name, "BaseExceptionGroup", "Exception", "BaseException"}
	}
	return append(order, "object")
}

func exceptionParent(name string) string {
	for _, row := range exceptionParents {
		if slices.Contains(strings.Fields(row[1]), name) {
			return row[0]
		}
	}
	return ""
}
