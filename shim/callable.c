/* The callable that replaces a compiled function: binds, compares guards, runs the matching entry's code; asks the host
 * when no entry fits. */
#include "shim.h"

#include <structmember.h>
#include <string.h>

typedef struct EntryFunction {
    PyObject *entry;
    PyObject *function; /* of the entry's code, with the original's globals and closure */
} EntryFunction;

typedef struct CompiledFunction {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyFunctionObject *function;
    CodeRecord *record;
    PyObject *miss;
    PyObject *code; /* the function's when it was compiled; strong */
    PyObject *attributes;
    PyObject *weak_references;
    Parameters parameters;
    bool plain_parameters; /* positional only: no star, no keyword-only */
    bool continues;        /* code goes on here behind a break, and calls it last */
    EntryFunction *functions;
    Py_ssize_t function_count;
} CompiledFunction;

/* The call of a continuation, made once the code that calls it last has returned: so a loop with breaks takes no stack,
 * no frame behind a break keeps objects alive, and tracebacks show each frame once. */
typedef struct Onward {
    PyObject_VAR_HEAD
    CompiledFunction *compiled;
    PyObject *args[]; /* ours, until they are given to the function that runs */
} Onward;

/* One call on its way. `values` holds the bound parameters and then room for captures. */
typedef struct Call {
    CompiledFunction *compiled;
    PyObject *const *args;
    size_t count_flags;
    PyObject *keyword_names;
    PyObject **values;
    Py_ssize_t room; /* for captures */
    GlobalState state;
    PyObject *(*run)(void *); /* with `frame`: what the original is where its frame exists already */
    void *frame;
    Onward *onward; /* whose arguments these are, NULL where they are the caller's */
} Call;

/* ---- calls behind breaks ---- */

static PyObject *onward_new(CompiledFunction *compiled, PyObject *const *args, Py_ssize_t count) {
    Onward *onward = PyObject_NewVar(Onward, &OnwardType, count);
    if (!onward)
        return NULL;
    onward->compiled = (CompiledFunction *)Py_NewRef(compiled);
    for (Py_ssize_t i = 0; i < count; i++)
        onward->args[i] = Py_NewRef(args[i]);
    return (PyObject *)onward;
}

static void onward_dealloc(PyObject *self) {
    Onward *onward = (Onward *)self;
    for (Py_ssize_t i = 0; i < Py_SIZE(onward); i++)
        Py_DECREF(onward->args[i]);
    Py_DECREF(onward->compiled);
    PyObject_Free(self);
}

PyTypeObject OnwardType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.Onward",
    .tp_doc = "The call of a continuation, which is made when the code before a break has returned.",
    .tp_basicsize = offsetof(Onward, args),
    .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = onward_dealloc,
};

/* Calls a function with values of which those from `first` on are ours, and gives these away: its frame then holds the
 * only references, as that of a call by Python code does. It takes its own before anything else can happen. */
static PyObject *call_giving(PyObject *function, PyObject *const *values, Py_ssize_t count, Py_ssize_t first) {
    for (Py_ssize_t i = first; i < count; i++)
        values[i]->ob_refcnt--;
    return _PyFunction_Vectorcall(function, values, (size_t)count, NULL);
}

/* The first of the values of a call that are ours. */
static Py_ssize_t take_arguments(const Call *call, Py_ssize_t parameters) {
    if (!call->onward)
        return parameters;
    Py_SET_SIZE(call->onward, 0);
    return 0;
}

/* Code that puts frames together again is nobody's: tracebacks leave it out. */
static void forget_own_frame(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyTracebackObject *outermost = (PyTracebackObject *)traceback;
    if (outermost) {
        PyCodeObject *code = PyFrame_GetCode(outermost->tb_frame);
        if (!PyUnicode_CompareWithASCIIString(code->co_filename, "<fusee>"))
            Py_XSETREF(traceback, Py_XNewRef((PyObject *)outermost->tb_next));
        Py_DECREF(code);
    }
    PyErr_Restore(type, value, traceback);
}

/* Whether a frame is the outermost of those that a graph's error came from; it is told once. */
static bool begins_graph_error(PyFrameObject *frame) {
    PyObject *globals = PyFrame_GetGlobals(frame);
    bool begins = PyDict_GetItemString(globals, "<fusee>") && !PyDict_DelItemString(globals, "<fusee>");
    Py_DECREF(globals);
    return begins;
}

/* Where Python ran a graph that raised, the frames that the failing operation was made in, which the host put into the
 * traceback, stand for the frame that called the graph. */
static void forget_graph_call(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyTracebackObject *entry = (PyTracebackObject *)traceback;
    while (entry && !begins_graph_error(entry->tb_frame))
        entry = entry->tb_next;
    if (entry)
        Py_XSETREF(traceback, Py_NewRef((PyObject *)entry));
    PyErr_Restore(type, value, traceback);
}

static PyObject *run_original(const CompiledFunction *compiled, PyObject *const *args, size_t count_flags,
                              PyObject *keyword_names) {
    return PyObject_Vectorcall((PyObject *)compiled->function, args, count_flags, keyword_names);
}

static PyObject *original(const Call *call) {
    if (call->frame)
        return call->run(call->frame);
    if (call->onward) {
        Py_ssize_t count = Py_SIZE(call->onward);
        return call_giving((PyObject *)call->compiled->function, call->onward->args, count, take_arguments(call, count));
    }
    return run_original(call->compiled, call->args, call->count_flags, call->keyword_names);
}

PyObject *original_function(PyObject *function) {
    if (Py_IS_TYPE(function, &CompiledFunctionType))
        return (PyObject *)((CompiledFunction *)function)->function;
    if (PyFunction_Check(function))
        return function;
    return PyErr_Format(PyExc_TypeError, "expected a function, not %R", function);
}

/* ---- functions of entries ---- */

/* The new function must not copy more from the closure than there is. */
static int closure_fits(PyCodeObject *code, const PyFunctionObject *function) {
    if (function->func_closure)
        return code->co_nfreevars <= PyTuple_GET_SIZE(function->func_closure);
    int copies = code->co_nfreevars ? copies_free_variables(code) : 0;
    return copies < 0 ? -1 : !copies;
}

static PyObject *make_function(const CompiledFunction *compiled, const Entry *entry) {
    PyFunctionObject *source = compiled->function;
    Py_ssize_t parameters = compiled->parameters.count + guard_program_captures(entry->guards);
    if (entry->code->co_argcount != parameters)
        return PyErr_Format(PyExc_RuntimeError, "the code of an entry for %R takes %d parameters instead of %zd", source,
                            entry->code->co_argcount, parameters);
    int fits = closure_fits(entry->code, source);
    if (fits < 0)
        return NULL;
    if (!fits)
        return PyErr_Format(PyExc_RuntimeError, "the code of an entry for %R has other free variables", source);
    PyObject *function = PyFunction_New((PyObject *)entry->code, source->func_globals);
    if (function)
        Py_XSETREF(((PyFunctionObject *)function)->func_closure, Py_XNewRef(source->func_closure));
    return function;
}

static void drop_function(EntryFunction dropped) {
    ((Entry *)dropped.entry)->functions--;
    Py_DECREF(dropped.function);
    Py_DECREF(dropped.entry);
}

static void drop_functions(CompiledFunction *compiled) {
    EntryFunction *functions = compiled->functions;
    Py_ssize_t count = compiled->function_count;
    compiled->functions = NULL;
    compiled->function_count = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        drop_function(functions[i]);
    }
    PyMem_Free(functions);
}

static bool record_holds(const CodeRecord *record, const PyObject *entry) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(record->entries); i++)
        if (PyTuple_GET_ITEM(record->entries, i) == entry)
            return true;
    return false;
}

/* Entries that left the record take their kernels' memory with them only when their functions go too. Dropping a
 * reference can run code that changes the array, so the array is settled first. */
static void prune_functions(CompiledFunction *compiled) {
    EntryFunction *functions = compiled->functions;
    Py_ssize_t kept = 0, count = compiled->function_count;
    EntryFunction *dropped = PyMem_Malloc((size_t)(count + 1) * sizeof *dropped);
    Py_ssize_t dropped_count = 0;
    for (Py_ssize_t i = 0; dropped && i < count; i++) {
        if (record_holds(compiled->record, functions[i].entry))
            functions[kept++] = functions[i];
        else
            dropped[dropped_count++] = functions[i];
    }
    compiled->function_count = dropped ? kept : count;
    for (Py_ssize_t i = 0; i < dropped_count; i++)
        drop_function(dropped[i]);
    PyMem_Free(dropped);
}

/* Borrowed. */
static PyObject *remember_function(CompiledFunction *compiled, Entry *entry) {
    PyObject *function = make_function(compiled, entry);
    if (!function)
        return NULL;
    prune_functions(compiled);
    Py_ssize_t count = compiled->function_count;
    EntryFunction *larger = PyMem_Realloc(compiled->functions, (size_t)(count + 1) * sizeof *larger);
    if (!larger) {
        Py_DECREF(function);
        return PyErr_NoMemory();
    }
    larger[count] = (EntryFunction){Py_NewRef(entry), function};
    entry->functions++;
    compiled->functions = larger;
    compiled->function_count = count + 1;
    return function;
}

/* Borrowed. */
static inline PyObject *entry_function(CompiledFunction *compiled, Entry *entry) {
    for (Py_ssize_t i = 0; i < compiled->function_count; i++)
        if (compiled->functions[i].entry == (PyObject *)entry)
            return compiled->functions[i].function;
    return remember_function(compiled, entry);
}

/* ---- hits ---- */

/* Runs the entry's code on the bound parameters and the captures behind them, which it gives away. */
static PyObject *run_entry(Call *call, Entry *entry) {
    CompiledFunction *compiled = call->compiled;
    Py_ssize_t parameters = compiled->parameters.count, captures = guard_program_captures(entry->guards);
    PyObject *function = entry_function(compiled, entry), *result = NULL;
    if (!function) {
        for (Py_ssize_t i = 0; i < captures; i++)
            Py_DECREF(call->values[parameters + i]);
        return NULL;
    }
    entry->hits++;
    compiled->record->hits++;
    Py_INCREF(function);
    result = call_giving(function, call->values, parameters + captures, take_arguments(call, parameters));
    Py_DECREF(function);
    return result;
}

static inline bool entry_holds(Call *call, Entry *entry) {
    if (!global_state_equal(&entry->state, &call->state))
        return false;
    if (entry->under_modes && modes_are_active()) {
        PyErr_Clear(); /* modes that cannot be asked are left alone */
        return false;
    }
    if (guard_program_captures(entry->guards) > call->room)
        return false;
    Py_ssize_t parameters = call->compiled->parameters.count;
    return guard_program_run(entry->guards, (PyObject *)call->compiled->function, call->values, parameters,
                             call->values + parameters, NULL);
}

/* A new reference to the entry that fits, its captures stored behind the parameters; NULL without an exception if none
 * does. */
static Entry *find_entry(Call *call) {
    CodeRecord *record = call->compiled->record;
    PyObject *entries = Py_NewRef(record->entries);
    Entry *found = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries) && !found; i++) {
        Entry *entry = (Entry *)PyTuple_GET_ITEM(entries, i);
        if (!entry_holds(call, entry))
            continue;
        found = (Entry *)Py_NewRef(entry);
        if (i > 0 && record_move_to_front(record, entries, i))
            PyErr_Clear(); /* only the order suffers */
    }
    Py_DECREF(entries);
    return found;
}

/* ---- misses ---- */

static PyObject *bound_tuple(const Call *call) {
    Py_ssize_t count = call->compiled->parameters.count;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(call->values[i]));
    return tuple;
}

static PyObject *positional_tuple(const Call *call) {
    Py_ssize_t count = PyVectorcall_NARGS(call->count_flags);
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(call->args[i]));
    return tuple;
}

static PyObject *keyword_dict(const Call *call) {
    PyObject *dict = PyDict_New();
    Py_ssize_t count = call->keyword_names ? PyTuple_GET_SIZE(call->keyword_names) : 0;
    PyObject *const *values = call->args + PyVectorcall_NARGS(call->count_flags);
    for (Py_ssize_t i = 0; dict && i < count; i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(call->keyword_names, i), values[i]))
            Py_CLEAR(dict);
    return dict;
}

/* (entry, number of the failing check, value found); number -2 and the name of what differs for global state. */
static PyObject *entry_failure(Call *call, Entry *entry) {
    const char *difference = global_state_difference(&entry->state, &call->state);
    if (difference)
        return Py_BuildValue("(Ois)", entry, -2, difference);
    Py_ssize_t captures = guard_program_captures(entry->guards);
    PyObject **space = PyMem_Calloc((size_t)captures + 1, sizeof *space);
    if (!space)
        return PyErr_NoMemory();
    GuardFailure failure = {-1, NULL};
    bool holds = guard_program_run(entry->guards, (PyObject *)call->compiled->function, call->values,
                                   call->compiled->parameters.count, space, &failure);
    for (Py_ssize_t i = 0; holds && i < captures; i++)
        Py_DECREF(space[i]);
    PyMem_Free(space);
    PyObject *value = failure.value ? failure.value : Py_NewRef(Py_Ellipsis);
    return Py_BuildValue("(OnN)", entry, failure.number, value);
}

static PyObject *failures_tuple(Call *call) {
    PyObject *entries = Py_NewRef(call->compiled->record->entries);
    PyObject *tuple = PyTuple_New(PyTuple_GET_SIZE(entries));
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *failure = entry_failure(call, (Entry *)PyTuple_GET_ITEM(entries, i));
        if (failure)
            PyTuple_SET_ITEM(tuple, i, failure);
        else
            Py_CLEAR(tuple);
    }
    Py_DECREF(entries);
    return tuple;
}

/* What the host makes of a call that no entry fits: a new reference to an Entry or None. */
static PyObject *ask_host(Call *call) {
    PyObject *arguments[5] = {(PyObject *)call->compiled, bound_tuple(call), positional_tuple(call),
                              keyword_dict(call), NULL};
    arguments[4] = arguments[3] ? failures_tuple(call) : NULL;
    PyObject *result = NULL;
    this_thread.asking++;
    if (arguments[1] && arguments[2] && arguments[4])
        result = PyObject_Vectorcall(call->compiled->miss, arguments, 5, NULL);
    this_thread.asking--;
    for (int i = 1; i < 5; i++)
        Py_XDECREF(arguments[i]);
    return result;
}

static int grow_room(Call *call, Py_ssize_t captures, PyObject ***allocated) {
    if (captures <= call->room)
        return 0;
    Py_ssize_t parameters = call->compiled->parameters.count;
    PyObject **larger = PyMem_Malloc((size_t)(parameters + captures + 1) * sizeof *larger);
    if (!larger) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(larger, call->values, (size_t)parameters * sizeof *larger);
    call->values = *allocated = larger;
    call->room = captures;
    return 0;
}

static PyObject *run_new_entry(Call *call, Entry *entry) {
    CodeRecord *record = call->compiled->record;
    PyObject **allocated = NULL, *result = NULL;
    if (!entry->has_state) {
        int modes = dispatch_mode_count();
        if (modes < 0)
            return NULL;
        entry->state = call->state;
        entry->has_state = true;
        entry->under_modes = modes > 0;
    }
    if (record_add(record, entry) || grow_room(call, guard_program_captures(entry->guards), &allocated))
        return NULL;
    if (entry_holds(call, entry)) {
        result = run_entry(call, entry);
    } else {
        record->rejected++;
        result = original(call);
    }
    PyMem_Free(allocated);
    return result;
}

static PyObject *miss(Call *call) {
    int modes = modes_are_active();
    if (modes)
        return modes < 0 ? NULL : original(call);
    call->compiled->record->misses++;
    if (call->compiled->record->state == RECORD_FULL)
        return original(call);
    PyObject *answer = ask_host(call), *result = NULL;
    if (!answer)
        return NULL;
    if (Py_IS_TYPE(answer, &EntryType))
        result = run_new_entry(call, (Entry *)answer);
    else if (answer == Py_None)
        result = original(call);
    else
        PyErr_Format(PyExc_TypeError, "the host must return an Entry or None, not %R", answer);
    Py_DECREF(answer);
    return result;
}

/* ---- calls ---- */

static PyObject *dispatch(Call *call) {
    if (global_state_read(&call->state))
        return NULL;
    Entry *entry = find_entry(call);
    if (!entry)
        return miss(call);
    PyObject *result = run_entry(call, entry);
    Py_DECREF(entry);
    return result;
}

static PyObject *bind_and_dispatch(Call *call) {
    const CompiledFunction *compiled = call->compiled;
    Py_ssize_t count = PyVectorcall_NARGS(call->count_flags);
    int status = bind_arguments(compiled->function, &compiled->parameters, call->args, count, call->keyword_names,
                                call->values);
    if (status)
        return status < 0 ? NULL : original(call);
    Py_ssize_t parameters = compiled->parameters.count;
    PyObject **values = call->values, *result = dispatch(call);
    for (Py_ssize_t i = 0; i < parameters; i++)
        Py_DECREF(values[i]);
    return result;
}

static PyObject *call_with_values(Call *call) {
    const CompiledFunction *compiled = call->compiled;
    Py_ssize_t count = PyVectorcall_NARGS(call->count_flags);
    if (compiled->plain_parameters && count == compiled->parameters.count && !call->keyword_names) {
        for (Py_ssize_t i = 0; i < count; i++)
            call->values[i] = call->args[i];
        return dispatch(call);
    }
    return bind_and_dispatch(call);
}

enum { STACK_VALUES = 32 };

static PyObject *call_from_heap(Call *call, Py_ssize_t size) {
    PyObject **values = PyMem_Malloc((size_t)(size + 1) * sizeof *values);
    if (!values)
        return PyErr_NoMemory();
    call->values = values;
    PyObject *result = call_with_values(call);
    PyMem_Free(values);
    return result;
}

/* Calls of Python functions by Python code take no C stack, but calls through here do: a recursion that the interpreter
 * would allow must end in an exception before the stack does. */
static int enter_call(ThreadState *thread) {
    char here;
    if (!thread->stack_limit)
        thread->stack_limit = find_stack_limit();
    if (&here > thread->stack_limit)
        return 0;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded in a compiled function");
    return -1;
}

static bool runs_plain(const CompiledFunction *compiled, const ThreadState *thread) {
    return compiled->record->state > RECORD_FULL || thread->disabled || !torch.ready ||
           compiled->function->func_code != compiled->code || left_to_tracer();
}

static PyObject *call_with_room(Call *call) {
    PyObject *values[STACK_VALUES];
    const CompiledFunction *compiled = call->compiled;
    call->room = compiled->record->most_captures;
    call->values = values;
    Py_ssize_t size = compiled->parameters.count + call->room;
    return size <= STACK_VALUES ? call_with_values(call) : call_from_heap(call, size);
}

/* Makes the calls that breaks left to do. Steals the result of the code before them. */
static PyObject *go_on(PyObject *result, const ThreadState *thread) {
    while (result && Py_IS_TYPE(result, &OnwardType)) {
        Onward *onward = (Onward *)result;
        CompiledFunction *compiled = onward->compiled;
        Call call = {.compiled = compiled, .args = onward->args, .count_flags = (size_t)Py_SIZE(onward), .values = onward->args,
                     .onward = onward};
        result = runs_plain(compiled, thread) ? original(&call) : call_with_room(&call);
        if (!result) {
            forget_graph_call();
            forget_own_frame();
        }
        Py_DECREF(onward);
    }
    return result;
}

static PyObject *compiled_vectorcall(PyObject *self, PyObject *const *args, size_t count_flags,
                                     PyObject *keyword_names) {
    CompiledFunction *compiled = (CompiledFunction *)self;
    ThreadState *thread = &this_thread;
    if (enter_call(thread))
        return NULL;
    if (compiled->continues && !keyword_names)
        return onward_new(compiled, args, PyVectorcall_NARGS(count_flags));
    if (runs_plain(compiled, thread))
        return run_original(compiled, args, count_flags, keyword_names);
    Call call = {.compiled = compiled, .args = args, .count_flags = count_flags, .keyword_names = keyword_names};
    Py_INCREF(compiled); /* the call may drop the last outside reference */
    PyObject *first = call_with_room(&call);
    if (!first)
        forget_graph_call();
    PyObject *result = go_on(first, thread);
    Py_DECREF(compiled);
    return result;
}

PyObject *call_in_place(PyObject *self, PyObject *const *bound, PyObject *(*run)(void *), void *frame) {
    CompiledFunction *compiled = (CompiledFunction *)self;
    ThreadState *thread = &this_thread;
    Py_ssize_t count = compiled->parameters.count, captures = compiled->record->most_captures;
    if (enter_call(thread))
        return NULL;
    if (runs_plain(compiled, thread))
        return run(frame);
    PyObject *result = NULL, **values = PyMem_Malloc((size_t)(count + captures + 1) * sizeof *values);
    Call call = {.compiled = compiled, .args = bound, .count_flags = (size_t)count, .values = values,
                 .room = captures, .run = run, .frame = frame};
    if (!values)
        return PyErr_NoMemory();
    memcpy(values, bound, (size_t)count * sizeof *values);
    result = dispatch(&call);
    PyMem_Free(values);
    return go_on(result, thread);
}

/* find(bound) -> the entry whose guards hold now, or None; for a host that waited while another thread compiled */
static PyObject *compiled_find(PyObject *self, PyObject *bound) {
    CompiledFunction *compiled = (CompiledFunction *)self;
    Py_ssize_t parameters = compiled->parameters.count, room = compiled->record->most_captures;
    if (!PyTuple_Check(bound) || PyTuple_GET_SIZE(bound) != parameters)
        return PyErr_Format(PyExc_TypeError, "find(bound) takes the tuple that the host was given");
    PyObject **values = PyMem_Malloc((size_t)(parameters + room + 1) * sizeof *values);
    Call call = {.compiled = compiled, .values = values, .room = room};
    if (!values)
        return PyErr_NoMemory();
    memcpy(values, PySequence_Fast_ITEMS(bound), (size_t)parameters * sizeof *values);
    Entry *entry = global_state_read(&call.state) ? NULL : find_entry(&call);
    for (Py_ssize_t i = 0; entry && i < guard_program_captures(entry->guards); i++)
        Py_DECREF(values[parameters + i]);
    PyMem_Free(values);
    if (entry)
        return (PyObject *)entry;
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* ---- the object ---- */

static PyObject *compiled_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"function", "record", "miss", "continues", NULL};
    PyObject *function, *record, *miss_handler;
    int continues = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O|p:CompiledFunction", names, &PyFunction_Type, &function,
                                     &CodeRecordType, &record, &miss_handler, &continues))
        return NULL;
    CompiledFunction *compiled = (CompiledFunction *)type->tp_alloc(type, 0);
    if (!compiled)
        return NULL;
    compiled->vectorcall = compiled_vectorcall;
    compiled->function = (PyFunctionObject *)Py_NewRef(function);
    compiled->record = (CodeRecord *)Py_NewRef(record);
    compiled->miss = Py_NewRef(miss_handler);
    compiled->code = Py_NewRef(compiled->function->func_code);
    parameters_of((PyCodeObject *)compiled->code, &compiled->parameters);
    compiled->plain_parameters = compiled->parameters.count == compiled->parameters.positional;
    compiled->continues = continues;
    return (PyObject *)compiled;
}

static int compiled_traverse(PyObject *self, visitproc visit, void *arg) {
    CompiledFunction *compiled = (CompiledFunction *)self;
    Py_VISIT(compiled->function);
    Py_VISIT(compiled->record);
    Py_VISIT(compiled->miss);
    Py_VISIT(compiled->code);
    Py_VISIT(compiled->attributes);
    for (Py_ssize_t i = 0; i < compiled->function_count; i++) {
        Py_VISIT(compiled->functions[i].entry);
        Py_VISIT(compiled->functions[i].function);
    }
    bool alone = compiled->continues && Py_REFCNT(compiled->function) == 1 && Py_REFCNT(compiled->code) == 2;
    return alone ? visit_constants(compiled->code, visit, arg) : 0; /* a continuation's, which holds live objects */
}

static int compiled_clear(PyObject *self) {
    CompiledFunction *compiled = (CompiledFunction *)self;
    drop_functions(compiled);
    Py_CLEAR(compiled->attributes);
    return 0;
}

/* The members a call relies on go only here, so that a finalizer may still call the object. */
static void compiled_dealloc(PyObject *self) {
    CompiledFunction *compiled = (CompiledFunction *)self;
    PyObject_GC_UnTrack(self);
    if (compiled->weak_references)
        PyObject_ClearWeakRefs(self);
    compiled_clear(self);
    Py_XDECREF(compiled->function);
    Py_XDECREF(compiled->record);
    Py_XDECREF(compiled->miss);
    Py_XDECREF(compiled->code);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *compiled_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type)) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyObject *compiled_repr(PyObject *self) {
    return PyUnicode_FromFormat("<compiled %R>", ((CompiledFunction *)self)->function);
}

/* Pickled by its qualified name, and copied as itself, like a function. */
static PyObject *compiled_reduce(PyObject *self, PyObject *Py_UNUSED(unused)) {
    return Py_NewRef(((CompiledFunction *)self)->function->func_qualname);
}

static PyObject *compiled_copy(PyObject *self, PyObject *Py_UNUSED(unused)) {
    return Py_NewRef(self);
}

static PyObject *forward_attribute(PyObject *self, void *name) {
    return PyObject_GetAttrString((PyObject *)((CompiledFunction *)self)->function, name);
}

/* A new __code__ makes the function run plainly from then on. */
static int set_forwarded_attribute(PyObject *self, PyObject *value, void *name) {
    PyObject *function = (PyObject *)((CompiledFunction *)self)->function;
    return value ? PyObject_SetAttrString(function, name, value) : PyObject_DelAttrString(function, name);
}

static PyMemberDef compiled_members[] = {
    {"function", T_OBJECT, offsetof(CompiledFunction, function), READONLY, "The original function."},
    {"record", T_OBJECT, offsetof(CompiledFunction, record), READONLY, "The CodeRecord."},
    {"miss", T_OBJECT, offsetof(CompiledFunction, miss), READONLY, "What is called when no entry fits."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef compiled_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"__code__", forward_attribute, set_forwarded_attribute, NULL, "__code__"},
    {"__globals__", forward_attribute, NULL, NULL, "__globals__"},
    {"__closure__", forward_attribute, NULL, NULL, "__closure__"},
    {"__defaults__", forward_attribute, set_forwarded_attribute, NULL, "__defaults__"},
    {"__kwdefaults__", forward_attribute, set_forwarded_attribute, NULL, "__kwdefaults__"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef compiled_methods[] = {
    {"find", compiled_find, METH_O, "find(bound): the entry whose guards hold now, or None."},
    {"__reduce__", compiled_reduce, METH_NOARGS, NULL},
    {"__copy__", compiled_copy, METH_NOARGS, NULL},
    {"__deepcopy__", compiled_copy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject CompiledFunctionType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.CompiledFunction",
    .tp_doc = "CompiledFunction(function, record, miss, continues=False): calls the entry of the record whose guards hold.",
    .tp_basicsize = sizeof(CompiledFunction),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(CompiledFunction, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = compiled_new,
    .tp_dealloc = compiled_dealloc,
    .tp_traverse = compiled_traverse,
    .tp_clear = compiled_clear,
    .tp_repr = compiled_repr,
    .tp_descr_get = compiled_get,
    .tp_members = compiled_members,
    .tp_getset = compiled_getset,
    .tp_methods = compiled_methods,
    .tp_dictoffset = offsetof(CompiledFunction, attributes),
    .tp_weaklistoffset = offsetof(CompiledFunction, weak_references),
};
