package symbolic

import (
	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/trace"
)

// execute runs one instruction; done tells that value leaves the frame. This switch is the interpreter's one table of opcode
// handlers: an opcode is modelled here or breaks with a reason.
func (in *Interpreter) execute(f *Frame, i *bytecode.Instruction) (value Value, done bool, err error) {
	switch i.Opcode {
	// The stack.
	case bytecode.Nop, bytecode.Resume, bytecode.Precall, bytecode.Cache, bytecode.ExtendedArg:
	case bytecode.PopTop:
		err = in.popTop(f)
	case bytecode.PushNull:
		f.push(null{})
	case bytecode.Swap:
		top := len(f.stack) - 1
		f.stack[top], f.stack[top+1-i.Arg] = f.stack[top+1-i.Arg], f.stack[top]
	case bytecode.Copy:
		f.push(f.peek(i.Arg))

	// Variables.
	case bytecode.LoadConst:
		f.push(in.constant(f.code.Consts[i.Arg]))
	case bytecode.LoadFast, bytecode.LoadClosure:
		err = in.loadFast(f, i.Arg)
	case bytecode.StoreFast:
		err = in.storeFast(f, i.Arg)
	case bytecode.DeleteFast:
		err = in.deleteFast(f, i.Arg)
	case bytecode.MakeCell:
		f.locals[i.Arg] = &Cell{content: f.locals[i.Arg]}
	case bytecode.CopyFreeVars:
		err = in.copyFreeVars(f, i.Arg)
	case bytecode.LoadDeref, bytecode.LoadClassderef:
		err = in.loadDeref(f, i)
	case bytecode.StoreDeref:
		err = in.storeDeref(f, i.Arg)
	case bytecode.DeleteDeref:
		err = in.deleteDeref(f, i.Arg)
	case bytecode.LoadGlobal:
		err = in.loadGlobal(f, i.Arg)
	case bytecode.StoreGlobal:
		err = f.function.globals.setItem(in, text(f.code.Names[i.Arg]), f.pop())
	case bytecode.DeleteGlobal:
		err = in.deleteGlobal(f, f.code.Names[i.Arg])
	case bytecode.SetupAnnotations:
		err = in.setupAnnotations(f)
	case bytecode.LoadName:
		err = in.loadName(f, f.code.Names[i.Arg])
	case bytecode.StoreName:
		err = in.storeName(f, f.code.Names[i.Arg])
	case bytecode.DeleteName:
		err = in.deleteName(f, f.code.Names[i.Arg])

	// Attributes and items.
	case bytecode.LoadAttr:
		err = in.loadAttribute(f, f.code.Names[i.Arg], false)
	case bytecode.LoadMethod:
		err = in.loadAttribute(f, f.code.Names[i.Arg], true)
	case bytecode.StoreAttr:
		owner := f.pop()
		in.tail = &adapter{discard: true}
		err = in.setAttribute(owner, f.code.Names[i.Arg], f.pop())
	case bytecode.DeleteAttr:
		in.tail = &adapter{discard: true}
		err = in.setAttribute(f.pop(), f.code.Names[i.Arg], nil)
	case bytecode.BinarySubscr:
		err = in.binarySubscript(f)
	case bytecode.StoreSubscr:
		key, owner := f.pop(), f.pop()
		in.tail = &adapter{discard: true}
		err = in.setItem(owner, key, f.pop())
	case bytecode.DeleteSubscr:
		key := f.pop()
		in.tail = &adapter{discard: true}
		err = in.setItem(f.pop(), key, nil)

	// Operators.
	case bytecode.UnaryPositive, bytecode.UnaryNegative, bytecode.UnaryInvert:
		err = in.pushResult(f)(in.unary(i.Opcode, f.pop()))
	case bytecode.UnaryNot:
		err = in.unaryNot(f)
	case bytecode.BinaryOp:
		right, left := f.pop(), f.pop()
		err = in.pushResult(f)(in.binary(binaryOperators[i.Arg], left, right))
	case bytecode.CompareOp:
		right, left := f.pop(), f.pop()
		err = in.pushResult(f)(in.compare(comparisons[i.Arg], left, right))
	case bytecode.IsOp:
		err = in.isOperator(f, i.Arg)
	case bytecode.ContainsOp:
		err = in.containsOperator(f, i.Arg)

	// Building containers and text.
	case bytecode.BuildTuple:
		f.push(&Tuple{items: f.popMany(i.Arg)})
	case bytecode.BuildList:
		f.push(newList(f.popMany(i.Arg)))
	case bytecode.BuildSet:
		err = in.pushResult(f)(in.newSet(f.popMany(i.Arg), false))
	case bytecode.BuildMap:
		err = in.buildMap(f, i.Arg)
	case bytecode.BuildConstKeyMap:
		err = in.buildConstKeyMap(f, i.Arg)
	case bytecode.BuildSlice:
		err = in.buildSlice(f, i.Arg)
	case bytecode.BuildString:
		err = in.buildString(f, i.Arg)
	case bytecode.FormatValue:
		err = in.formatValue(f, i.Arg)
	case bytecode.ListAppend:
		err = in.listAppendInstruction(f, i.Arg)
	case bytecode.SetAdd:
		err = in.setUpdate(f, i.Arg, true)
	case bytecode.MapAdd:
		item, key := f.pop(), f.pop()
		err = in.setItem(f.peek(i.Arg), key, item)
	case bytecode.ListExtend:
		err = in.listExtend(f, i.Arg)
	case bytecode.SetUpdate:
		err = in.setUpdate(f, i.Arg, false)
	case bytecode.DictUpdate, bytecode.DictMerge:
		err = in.dictUpdate(f, i)
	case bytecode.ListToTuple:
		err = in.listToTuple(f)
	case bytecode.UnpackSequence:
		err = in.unpackSequence(f, i.Arg)
	case bytecode.UnpackEx:
		err = in.unpackEx(f, i.Arg)

	// Jumps and iteration.
	case bytecode.JumpForward, bytecode.JumpBackward, bytecode.JumpBackwardNoInterrupt:
		f.jump(i)
	case bytecode.PopJumpForwardIfFalse, bytecode.PopJumpBackwardIfFalse:
		err = in.popJump(f, i, false)
	case bytecode.PopJumpForwardIfTrue, bytecode.PopJumpBackwardIfTrue:
		err = in.popJump(f, i, true)
	case bytecode.PopJumpForwardIfNone, bytecode.PopJumpBackwardIfNone:
		err = in.popJumpNone(f, i, true)
	case bytecode.PopJumpForwardIfNotNone, bytecode.PopJumpBackwardIfNotNone:
		err = in.popJumpNone(f, i, false)
	case bytecode.JumpIfTrueOrPop:
		err = in.jumpOrPop(f, i, true)
	case bytecode.JumpIfFalseOrPop:
		err = in.jumpOrPop(f, i, false)
	case bytecode.GetIter:
		err = in.getIter(f)
	case bytecode.ForIter:
		err = in.forIter(f, i)
	case bytecode.GetYieldFromIter:
		err = in.getYieldFromIter(f)
	case bytecode.Send:
		err = in.send(f, i)
	case bytecode.GetLen:
		err = in.getLen(f)

	// Calls and functions.
	case bytecode.KwNames:
		err = f.setKeywords(i.Arg)
	case bytecode.Call:
		err = in.callInstruction(f, i.Arg)
	case bytecode.CallFunctionEx:
		err = in.callFunctionEx(f, i.Arg)
	case bytecode.MakeFunction:
		err = in.makeFunction(f, i.Arg)
	case bytecode.LoadBuildClass:
		f.push(&Builtin{name: "builtins.__build_class__"})
	case bytecode.ReturnGenerator:
		return in.makeGenerator(f)
	case bytecode.ReturnValue:
		return f.pop(), true, nil
	case bytecode.YieldValue:
		f.yielded = true
		return f.pop(), true, nil
	case bytecode.ImportName, bytecode.ImportFrom:
		err = in.importInstruction(f, i)

	// Exceptions and context managers.
	case bytecode.LoadAssertionError:
		f.push(in.builtinClass("AssertionError"))
	case bytecode.RaiseVarargs:
		err = in.raiseVarargs(f, i.Arg)
	case bytecode.Reraise:
		err = in.reraise(f, i.Arg)
	case bytecode.PushExcInfo:
		in.pushExceptionInfo(f)
	case bytecode.PopExcept:
		err = in.popExcept(f)
	case bytecode.CheckExcMatch:
		err = in.checkExceptionMatch(f)
	case bytecode.CheckEgMatch:
		err = in.checkGroupMatch(f)
	case bytecode.PrepReraiseStar:
		err = in.prepareReraise(f)
	case bytecode.BeforeWith:
		err = in.beforeWith(f)
	case bytecode.WithExceptStart:
		err = in.withExceptStart(f)

	// Pattern matching.
	case bytecode.MatchMapping, bytecode.MatchSequence:
		err = in.matchKind(f, i.Opcode == bytecode.MatchMapping)
	case bytecode.MatchKeys:
		err = in.matchKeys(f)
	case bytecode.MatchClass:
		err = in.matchClass(f, i.Arg)

	case bytecode.ImportStar, bytecode.PrintExpr,
		bytecode.GetAwaitable, bytecode.GetAiter, bytecode.GetAnext, bytecode.BeforeAsyncWith, bytecode.EndAsyncFor, bytecode.AsyncGenWrap:
		err = unsupported(reasonInstruction, "%s", i.Opcode)
	default:
		err = errors.Newf("opcode %d is not one of CPython 3.11", i.Opcode)
	}
	return nil, false, err
}

// pushResult pushes a result unless there was an error.
func (in *Interpreter) pushResult(f *Frame) func(Value, error) error {
	return func(value Value, err error) error {
		if err == nil {
			f.push(value)
		}
		return err
	}
}

func (in *Interpreter) constant(object bytecode.Object) Value {
	switch value := object.(type) {
	case bytecode.Tuple:
		if len(value) == 3 && value[0] == "$fusee" {
			return in.liveConstant(value)
		}
		items := make([]Value, len(value))
		for i, item := range value {
			items[i] = in.constant(item)
		}
		return &Tuple{items: items}
	case *bytecode.Set:
		return in.constantSet(value)
	case *bytecode.Code:
		return &codeValue{code: value}
	}
	return &Constant{object}
}

// constantSet is a frozen set among the constants of code, of which only the order is known, not how it came about.
func (in *Interpreter) constantSet(constant *bytecode.Set) Value {
	items := make([]Value, len(constant.Items))
	plain := true
	for i, item := range constant.Items {
		items[i] = in.constant(item)
		_, known := constantObject(items[i])
		plain = plain && known
	}
	value, _ := in.newSet(items, true)
	set := value.(*Set)
	set.mixed = true
	if plain {
		set.code = constant
	}
	if set.table != nil && !set.table.spacious() {
		set.table = nil
	}
	return set
}

// liveConstant is a constant of rewritten code that stands for a live object.
func (in *Interpreter) liveConstant(placeholder bytecode.Tuple) Value {
	id, _ := placeholder[2].(int64)
	return in.sourceless(trace.ObjectID(id))
}

func (in *Interpreter) loadFast(f *Frame, index int) error {
	value := f.locals[index]
	if value == nil {
		name := f.code.LocalsPlusNames[index]
		return in.raise("UnboundLocalError", "cannot access local variable '"+name+"' where it is not associated with a value")
	}
	f.push(value)
	return nil
}

func (in *Interpreter) deleteFast(f *Frame, index int) error {
	name := f.code.LocalsPlusNames[index]
	if f.locals[index] == nil {
		return in.raise("UnboundLocalError", "cannot access local variable '"+name+"' where it is not associated with a value")
	}
	if !ownName(name) { // a continuation's hand their values on
		if err := in.loses(f.locals[index], name); err != nil {
			return err
		}
	}
	in.release(f.locals[index])
	f.locals[index] = nil
	return nil
}

func (in *Interpreter) copyFreeVars(f *Frame, count int) error {
	if len(f.function.closure) != count {
		return errors.New("the closure does not fit the code")
	}
	copy(f.locals[len(f.locals)-count:], valuesOf(f.function.closure))
	return nil
}

func (in *Interpreter) loadDeref(f *Frame, i *bytecode.Instruction) error {
	cell, err := in.cellAt(f, i.Arg)
	if err != nil {
		return err
	}
	name := f.code.LocalsPlusNames[i.Arg]
	if i.Opcode == bytecode.LoadClassderef && f.namespace != nil {
		if found, err := f.namespace.lookup(in, text(name)); err != nil || found != nil {
			return in.pushResult(f)(found, err)
		}
	}
	if cell.content == nil {
		return in.raiseUnbound(f, i.Arg)
	}
	f.push(cell.content)
	return nil
}

func (in *Interpreter) raiseUnbound(f *Frame, index int) error {
	name := f.code.LocalsPlusNames[index]
	if f.code.LocalsPlusKinds[index]&0x80 != 0 {
		return in.raise("NameError", "cannot access free variable '"+name+"' where it is not associated with a value in enclosing scope")
	}
	return in.raise("UnboundLocalError", "cannot access local variable '"+name+"' where it is not associated with a value")
}

func (in *Interpreter) deleteDeref(f *Frame, index int) error {
	cell, err := in.cellAt(f, index)
	if err != nil {
		return err
	}
	if cell.content == nil {
		return in.raiseUnbound(f, index)
	}
	in.storeCell(cell, nil)
	return nil
}

// cellAt is the cell in a variable; a continuation gets its cells as arguments.
func (in *Interpreter) cellAt(f *Frame, index int) (*Cell, error) {
	cell, ok, err := as[*Cell](in.real(f.locals[index]))
	if err == nil && !ok {
		err = errors.Newf("the variable %s holds no cell", f.code.LocalsPlusNames[index])
	}
	return cell, err
}

func (in *Interpreter) storeDeref(f *Frame, index int) error {
	cell, err := in.cellAt(f, index)
	if err == nil {
		in.storeCell(cell, f.pop())
	}
	return err
}

func (in *Interpreter) storeCell(cell *Cell, value Value) {
	cell.content = value
	in.changeOutside(cell.object, &cell.changed, &cellEffect{cell})
}

func (in *Interpreter) loadGlobal(f *Frame, arg int) error {
	if arg&1 != 0 {
		f.push(null{})
	}
	return in.pushResult(f)(in.globalName(f, f.code.Names[arg>>1]))
}

// globalName looks a name up in the frame's globals, then in builtins.
func (in *Interpreter) globalName(f *Frame, name string) (Value, error) {
	value, err := f.function.globals.lookup(in, text(name))
	if err != nil || value != nil {
		return value, err
	}
	value, err = in.builtinName(name)
	if err != nil || value != nil {
		return value, err
	}
	return nil, in.raiseNoName(name)
}

func (in *Interpreter) deleteGlobal(f *Frame, name string) error {
	value, err := f.function.globals.lookup(in, text(name))
	if err != nil {
		return err
	}
	if value == nil {
		return in.raiseNoName(name)
	}
	return f.function.globals.setItem(in, text(name), nil)
}

func (in *Interpreter) loadName(f *Frame, name string) error {
	if f.namespace != nil {
		value, err := f.namespace.lookup(in, text(name))
		if err != nil || value != nil {
			return in.pushResult(f)(value, err)
		}
	}
	return in.pushResult(f)(in.globalName(f, name))
}

func (in *Interpreter) storeName(f *Frame, name string) error {
	if f.namespace == nil {
		return f.function.globals.setItem(in, text(name), f.pop())
	}
	return f.namespace.setItem(in, text(name), f.pop())
}

func (in *Interpreter) deleteName(f *Frame, name string) error {
	if f.namespace == nil {
		return in.deleteGlobal(f, name)
	}
	return f.namespace.setItem(in, text(name), nil)
}

func (in *Interpreter) unaryNot(f *Frame) error {
	truth, err := in.truth(f.pop())
	if err == nil {
		f.push(boolean(!truth))
	}
	return err
}

func (in *Interpreter) isOperator(f *Frame, invert int) error {
	right, left := f.pop(), f.pop()
	same, err := in.identical(left, right)
	if err == nil {
		f.push(boolean(same != (invert == 1)))
	}
	return err
}

func (in *Interpreter) containsOperator(f *Frame, invert int) error {
	container, item := f.pop(), f.pop()
	found, err := in.contains(container, item)
	if err == nil {
		f.push(boolean(found != (invert == 1)))
	}
	return err
}

func (in *Interpreter) popJump(f *Frame, i *bytecode.Instruction, when bool) error {
	truth, err := in.truth(f.pop())
	if err == nil && truth == when {
		f.jump(i)
	}
	return err
}

func (in *Interpreter) popJumpNone(f *Frame, i *bytecode.Instruction, when bool) error {
	isNone, err := in.identical(f.pop(), none())
	if err == nil && isNone == when {
		f.jump(i)
	}
	return err
}

func (in *Interpreter) jumpOrPop(f *Frame, i *bytecode.Instruction, when bool) error {
	truth, err := in.truth(f.peek(1))
	if err != nil {
		return err
	}
	if truth == when {
		f.jump(i)
	} else {
		f.pop()
	}
	return nil
}

func (in *Interpreter) getIter(f *Frame) error {
	value, err := in.real(f.pop())
	if err != nil {
		return err
	}
	return in.pushResult(f)(in.iterate(value))
}

func (in *Interpreter) forIter(f *Frame, i *bytecode.Instruction) error {
	value, err := in.real(f.peek(1))
	if err != nil {
		return err
	}
	item, err := in.advance(value)
	if err != nil {
		return err
	}
	if item == nil {
		f.pop()
		f.jump(i)
		return nil
	}
	f.push(item)
	return nil
}

func (in *Interpreter) getLen(f *Frame) error {
	length, err := in.length(f.peek(1))
	if err == nil {
		f.push(integer(int64(length)))
	}
	return err
}
