package symbolic

import "slices"

// callEffect calls a helper or a function of a library with what it was called with, behind the graph: what watches the program and
// gives it nothing back needs no break.
type callEffect struct {
	function  string // its canonical name, or that of a helper where arguments of the capture's own go with it
	helper    bool
	arguments []Value
}

func (e *callEffect) apply(cg *generator) error {
	if e.helper {
		return cg.callHelper(e.function, e.arguments...)
	}
	return cg.discard(cg.construct(e.function, e.arguments...))
}

// warningState names the attributes of the module warnings that decide what becomes of a warning.
var warningState = []string{"filters", "showwarning", "_showwarnmsg", "_showwarnmsg_impl", "defaultaction", "onceregistry"}

// warnCall is warnings.warn: the warning is given behind the graph, for the line that asked for it. Where it may be an exception, or
// goes where the program has only just sent it, Python gives it at once.
func (in *Interpreter) warnCall(arguments Arguments) (Value, error) {
	values, ok := bindNamed(arguments, "message", "category", "stacklevel", "source")
	if !ok || values[0] == nil || values[3] != nil {
		return nil, unsupported(reasonOutput, "warnings.warn")
	}
	message, err := in.real(values[0])
	if err != nil {
		return nil, err
	}
	category, err := in.warningCategory(values[1])
	if err != nil {
		return nil, err
	}
	if _, isText := stringOf(message); !isText || category == nil {
		return nil, unsupported(reasonOutput, "warnings.warn")
	}
	place, err := in.warningPlace(values[2])
	if err != nil {
		return nil, err
	}
	if err := in.warningsGoOut(); err != nil {
		return nil, err
	}
	in.activity++
	in.outside++
	in.effects = append(in.effects, &callEffect{function: "warn_for", helper: true, arguments: append([]Value{message, category}, place...)})
	return none(), nil
}

// warningCategory is the class of a warning given as text; nil where it is none.
func (in *Interpreter) warningCategory(value Value) (Value, error) {
	category, err := in.real(orNone(value))
	if err != nil || isNone(category) {
		return in.builtinClass("UserWarning"), err
	}
	if class, ok := category.(*Class); ok && class.made == nil && class.isSubclassOf("Warning") {
		return class, nil
	}
	return nil, nil
}

// warningPlace is the file, line and globals that a warning is given for, going up the stack as warnings.warn does. The frame of a
// caller of the captured function is found when the warning is given: then the globals are None and the line says how far above that function it is.
func (in *Interpreter) warningPlace(level Value) ([]Value, error) {
	up := int64(1)
	if level != nil {
		real, err := in.real(level)
		if err != nil {
			return nil, err
		}
		number, ok := constantInt(real)
		if !ok {
			return nil, unsupported(reasonOutput, "warnings.warn")
		}
		up = max(number, 1)
	}
	frame := in.frame
	for ; frame != nil; frame = frame.back {
		if frame.code.FileName == continuationFile {
			continue
		}
		if up--; up == 0 {
			break
		}
	}
	if frame == nil {
		return []Value{none(), integer(up), none()}, nil
	}
	return []Value{text(frame.code.FileName), integer(int64(frame.line())), frame.function.globals}, nil
}

// warningsGoOut guards that no filter makes exceptions of warnings, and is a break where the capture changed what becomes of them.
func (in *Interpreter) warningsGoOut() error {
	module, err := in.namedModule("warnings")
	if err != nil {
		return err
	}
	namespace, err := module.namespace(in)
	if err != nil {
		return err
	}
	for _, entry := range namespace.entries {
		if name, _ := stringOf(entry.key); !entry.fromHost && slices.Contains(warningState, name) {
			return unsupported(reasonOutput, "warnings.warn after a change of warnings.%s", name)
		}
	}
	filters, err := in.getAttribute(module, "filters")
	if err != nil {
		return err
	}
	rows, err := in.listOf(filters)
	if err != nil {
		return err
	}
	for _, row := range rows {
		parts, err := in.listOf(row)
		if err != nil {
			return err
		}
		action, err := in.real(parts[0])
		if err != nil {
			return err
		}
		if name, ok := stringOf(action); !ok || name == "error" {
			return unsupported(reasonOutput, "warnings.warn where a filter makes exceptions of warnings")
		}
	}
	return nil
}
