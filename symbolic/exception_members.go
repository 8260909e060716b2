package symbolic

// Builtin exceptions keep some attributes in their C structure rather than in the instance dict: their arguments, the links to other
// exceptions, and the members below.

// exceptionMembers lists the members of the builtin exceptions that have any, in the order of CPython's structures.
var exceptionMembers = []struct {
	class string
	names []string
}{
	{"StopIteration", []string{"value"}},
	{"SystemExit", []string{"code"}},
	{"ImportError", []string{"msg", "name", "path"}},
	{"NameError", []string{"name"}},
	{"AttributeError", []string{"name", "obj"}},
	{"SyntaxError", []string{"msg", "filename", "lineno", "offset", "text", "end_lineno", "end_offset", "print_file_and_line"}},
	{"OSError", []string{"errno", "strerror", "filename", "filename2"}},
	{"UnicodeEncodeError", []string{"encoding", "object", "start", "end", "reason"}},
	{"UnicodeDecodeError", []string{"encoding", "object", "start", "end", "reason"}},
	{"UnicodeTranslateError", []string{"encoding", "object", "start", "end", "reason"}},
	{"BaseExceptionGroup", []string{"message", "exceptions"}},
}

// memberNames lists the members of an exception of a class.
func memberNames(class *Class) []string {
	for _, row := range exceptionMembers {
		if class.isSubclassOf(row.class) {
			return row.names
		}
	}
	return nil
}

// newException makes an exception as BaseException.__new__ and the __init__ of a builtin exception do.
func (in *Interpreter) newException(class *Class, arguments Arguments) (*Instance, error) {
	exception := &Instance{class: class, fields: newFieldTable(true), exception: &exceptionState{arguments: arguments.Positional}}
	return exception, in.initException(exception, arguments)
}

// initException is the __init__ of the builtin exceptions.
func (in *Interpreter) initException(v *Instance, arguments Arguments) error {
	in.activity++
	state := v.exception
	state.bare = false
	state.arguments = append([]Value{}, arguments.Positional...)
	state.members = map[string]Value{}
	if err := in.keywordMembers(v, arguments.Keywords); err != nil {
		return err
	}
	return in.positionalMembers(v, arguments.Positional)
}

// keywordMembers takes the keywords that three of the builtin exceptions accept.
func (in *Interpreter) keywordMembers(v *Instance, keywords []KeywordArgument) error {
	accepts := v.class.isSubclassOf("AttributeError") || v.class.isSubclassOf("NameError") || v.class.isSubclassOf("ImportError")
	for _, keyword := range keywords {
		if !accepts {
			return in.raise("TypeError", v.class.baseName()+"() takes no keyword arguments")
		}
		if keyword.Name == "msg" || indexOf(memberNames(v.class), keyword.Name) < 0 {
			return unsupported(reasonException, "%s with the keyword %s", v.class.name, keyword.Name)
		}
		v.exception.members[keyword.Name] = keyword.Value
		v.exception.writeMember(keyword.Name)
	}
	return nil
}

func (in *Interpreter) positionalMembers(v *Instance, values []Value) error {
	members := v.exception.members
	switch {
	case v.class.isSubclassOf("StopIteration"):
		if len(values) > 0 {
			members["value"] = values[0]
		}
	case v.class.isSubclassOf("SystemExit"):
		if len(values) == 1 {
			members["code"] = values[0]
		} else if len(values) > 1 {
			members["code"] = &Tuple{items: values}
		}
	case v.class.isSubclassOf("ImportError"):
		if len(values) == 1 {
			members["msg"] = values[0]
		}
	case v.class.isSubclassOf("SyntaxError"):
		return in.syntaxErrorMembers(v, values)
	case v.class.isSubclassOf("OSError"):
		return in.osErrorMembers(v, values)
	case v.class.isSubclassOf("UnicodeError") && memberNames(v.class) != nil:
		return in.unicodeErrorMembers(v, values)
	case v.class.isSubclassOf("BaseExceptionGroup"):
		return in.groupMembers(v, values)
	}
	return nil
}

// syntaxErrorMembers spreads SyntaxError(message, (filename, lineno, offset, text[, end_lineno, end_offset])).
func (in *Interpreter) syntaxErrorMembers(v *Instance, values []Value) error {
	if len(values) > 0 {
		v.exception.members["msg"] = values[0]
	}
	if len(values) != 2 {
		return nil
	}
	place, err := in.listOf(values[1])
	if err != nil {
		return err
	}
	if len(place) != 4 && len(place) != 6 {
		return unsupported(reasonException, "SyntaxError with a place of %d items", len(place))
	}
	names := memberNames(v.class)[1:]
	for k, item := range place {
		v.exception.members[names[k]] = item
	}
	return nil
}

// osErrorMembers spreads OSError(errno, strerror[, filename[, winerror[, filename2]]]).
func (in *Interpreter) osErrorMembers(v *Instance, values []Value) error {
	if len(values) < 2 || len(values) > 5 {
		return nil
	}
	members := v.exception.members
	members["errno"], members["strerror"] = values[0], values[1]
	if len(values) > 2 {
		members["filename"] = values[2]
		v.exception.arguments = values[:2]
	}
	if len(values) > 4 {
		members["filename2"] = values[4]
	}
	if v.class.name == "OSError" {
		// CPython picks a subclass by the number; the host knows which.
		class, err := in.classOfEvaluated(v.class, v.exception.arguments)
		if err != nil {
			return err
		}
		v.class = class
	}
	return nil
}

// classOfEvaluated is the class of what the host makes of a class called on constants.
func (in *Interpreter) classOfEvaluated(class *Class, values []Value) (*Class, error) {
	made, _, err := in.evaluateClass(class, Arguments{Positional: values})
	if err != nil {
		return nil, err
	}
	return in.classOf(made)
}

// unicodeErrorMembers lets the host check the five arguments.
func (in *Interpreter) unicodeErrorMembers(v *Instance, values []Value) error {
	builtin := v.class
	for _, row := range exceptionMembers {
		if v.class.isSubclassOf(row.class) {
			builtin = in.builtinClass(row.class)
		}
	}
	if _, err := in.classOfEvaluated(builtin, values); err != nil {
		return err
	}
	names := memberNames(v.class)
	if v.class.isSubclassOf("UnicodeTranslateError") {
		names = names[1:]
	}
	for k, value := range values {
		v.exception.members[names[k]] = value
	}
	return nil
}

// builtinException tells exceptions of the interpreter's own classes, whose attributes no class of the program hides.
func builtinException(class *Class) bool { return class.made == nil && !userClass(class.name) }

// exceptionAttribute reads the attributes that every exception has; nil when it is none of them.
func (v *Instance) exceptionAttribute(in *Interpreter, name string) (Value, error) {
	state := v.exception
	switch name {
	case "args":
		return &Tuple{items: append([]Value(nil), state.arguments...)}, nil
	case "__cause__":
		return orNone(state.cause), nil
	case "__context__":
		return orNone(state.context), nil
	case "__suppress_context__":
		return boolean(state.suppressContext), nil
	case "__traceback__":
		return orNone(state.traceback), nil
	case "with_traceback", "add_note":
		return &Builtin{name: "BaseException." + name, self: v}, nil
	}
	if indexOf(memberNames(v.class), name) >= 0 {
		return orNone(state.members[name]), nil
	}
	if state.arguments == nil && v.object != nil {
		return nil, unsupported(reasonAttribute, "exception.%s", name)
	}
	return nil, nil
}

// ownsExceptionAttribute tells whether a class of the program defines a name that builtin exceptions have.
func (in *Interpreter) ownsExceptionAttribute(class *Class, name string) (bool, error) {
	if builtinException(class) {
		return false, nil
	}
	_, owner, err := in.classLookup(class, name)
	return owner != nil && !builtinException(owner), err
}

func (v *Instance) setExceptionAttribute(in *Interpreter, name string, value Value) (bool, error) {
	state := v.exception
	switch name {
	case "__cause__", "__context__", "__traceback__":
		return true, in.linkException(v, name, value)
	case "__suppress_context__":
		if value == nil {
			return true, in.raise("TypeError", "can't delete numeric/char attribute")
		}
		in.activity++
		truth, err := in.truth(value)
		state.suppressContext = truth
		return true, err
	case "args":
		if value == nil {
			return true, in.raise("TypeError", "args may not be deleted")
		}
		in.activity++
		items, err := in.listOf(value)
		state.arguments = append([]Value{}, items...)
		return true, err
	}
	if indexOf(memberNames(v.class), name) < 0 {
		return false, nil
	}
	if v.class.isSubclassOf("BaseExceptionGroup") {
		return true, in.raise("AttributeError", "readonly attribute")
	}
	in.activity++
	state.members[name] = value
	state.writeMember(name)
	return true, nil
}

func (s *exceptionState) writeMember(name string) {
	if indexOf(s.written, name) < 0 {
		s.written = append(s.written, name)
	}
}

// linkException sets the cause, the context or the traceback, with CPython's checks.
func (in *Interpreter) linkException(v *Instance, name string, value Value) error {
	kind := name[2 : len(name)-2]
	if value == nil {
		if kind == "traceback" {
			return in.raise("TypeError", "__traceback__ may not be deleted")
		}
		return in.raise("TypeError", name+" may not be deleted")
	}
	value, err := in.real(value)
	if err != nil {
		return err
	}
	if isNone(value) {
		value = nil
	}
	in.activity++
	state := v.exception
	if kind == "traceback" {
		if _, ok := value.(*tracebackValue); !ok && value != nil {
			return in.raise("TypeError", "__traceback__ must be a traceback or None")
		}
		state.traceback = value
		return nil
	}
	if linked, ok := value.(*Instance); value != nil && (!ok || !linked.class.isSubclassOf("BaseException")) {
		return in.raise("TypeError", "exception "+kind+" must be None or derive from BaseException")
	}
	if kind == "cause" {
		state.cause, state.suppressContext = value, true
	} else {
		state.context = value
	}
	return nil
}

// exceptionMethod runs the methods of BaseException; handled is false for others.
func (in *Interpreter) exceptionMethod(v *Instance, method string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	switch method {
	case "__init__":
		return none(), true, in.initException(v, arguments)
	case "__str__":
		return in.exceptionText(v)
	case "__repr__":
		return in.exceptionRepresentation(v)
	case "with_traceback":
		if len(values) == 1 {
			return v, true, in.linkException(v, "__traceback__", values[0])
		}
	case "add_note":
		if len(values) == 1 {
			return none(), true, in.addNote(v, values[0])
		}
	}
	if v.class.isSubclassOf("BaseExceptionGroup") {
		return in.groupMethod(v, method, values)
	}
	return nil, false, nil
}

// addNote appends to the list __notes__, an ordinary attribute.
func (in *Interpreter) addNote(v *Instance, note Value) error {
	note, err := in.real(note)
	if err != nil {
		return err
	}
	if _, ok := stringOf(note); !ok {
		return in.raise("TypeError", "note must be a str, not '"+shortName(note.typeName())+"'")
	}
	notes, err := in.optionalAttribute(v, "__notes__")
	if err != nil {
		return err
	}
	if notes == nil {
		notes = newList(nil)
		if err := in.setAttribute(v, "__notes__", notes); err != nil {
			return err
		}
	}
	list, ok := notes.(*List)
	if !ok {
		return in.raise("TypeError", "Cannot add note: __notes__ is not a list")
	}
	in.listAppend(list, note)
	return nil
}

// exceptionText is the __str__ of builtin exceptions.
func (in *Interpreter) exceptionText(v *Instance) (Value, bool, error) {
	if v.exception == nil {
		return nil, true, unsupported(reasonFormatting, "%s", v.class.name)
	}
	arguments := v.exception.arguments
	switch {
	case v.class.isSubclassOf("KeyError") && len(arguments) == 1:
		return modelled(in.represent(arguments[0]))
	case v.class.isSubclassOf("BaseExceptionGroup"):
		return in.groupText(v)
	case v.class.isSubclassOf("OSError") || v.class.isSubclassOf("SyntaxError") || v.class.isSubclassOf("UnicodeError") && memberNames(v.class) != nil:
		return in.evaluatedText(v)
	case v.class.isSubclassOf("ImportError") && v.exception.members["msg"] != nil:
		return modelled(in.stringify(v.exception.members["msg"]))
	}
	switch len(arguments) {
	case 0:
		return text(""), true, nil
	case 1:
		return modelled(in.stringify(arguments[0]))
	}
	return modelled(in.represent(&Tuple{items: arguments}))
}

// evaluatedText lets the host write the text of an exception made of constants, whose members are as they were made.
func (in *Interpreter) evaluatedText(v *Instance) (Value, bool, error) {
	if len(v.exception.written) > 0 || v.exception.members["filename"] != nil {
		return nil, true, unsupported(reasonFormatting, "%s", v.class.name)
	}
	made, _, err := in.evaluateClass(v.class, Arguments{Positional: v.exception.arguments})
	if err != nil {
		return nil, true, err
	}
	opaque, ok := objectWireOf(made)
	if !ok {
		return nil, true, unsupported(reasonFormatting, "%s", v.class.name)
	}
	return in.evaluatedWire("builtins.str", opaque)
}

// exceptionRepresentation is BaseException.__repr__.
func (in *Interpreter) exceptionRepresentation(v *Instance) (Value, bool, error) {
	if v.exception == nil {
		return nil, true, unsupported(reasonFormatting, "%s", v.class.name)
	}
	if arguments := v.exception.arguments; len(arguments) == 1 {
		written, err := in.representation(arguments[0])
		return text(v.class.baseName() + "(" + written + ")"), true, err
	}
	written, err := in.representation(&Tuple{items: v.exception.arguments})
	return text(v.class.baseName() + written), true, err
}
