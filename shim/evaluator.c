/* Capture of every Python function that is called, for tests: a frame evaluator (PEP 523) that runs the entries of a
 * function's code in place of the frame that was made for the call. While it is not installed it costs nothing. */
#define Py_BUILD_CORE 1
#include "shim.h"

#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"

/* What is known of a code object: kept in its extra slot. */
typedef struct CodeChoice {
    PyObject *record;        /* the CodeRecord, NULL for code that runs as it is */
    const PyObject *globals; /* those of the functions that the record is for; compared, never read */
} CodeChoice;

typedef struct Evaluator {
    PyObject *choose, *miss; /* NULL until installed */
    Py_ssize_t index;        /* of the extra slot, -1 until asked for */
} Evaluator;

static Evaluator evaluator = {.index = -1};

/* CPython also calls it for code of which only somebody else keeps something, Dynamo for one. */
static void free_choice(void *choice) {
    if (!choice)
        return;
    Py_XDECREF(((CodeChoice *)choice)->record);
    PyMem_Free(choice);
}

static int ask_for_slot(void) {
    if (evaluator.index < 0)
        evaluator.index = _PyEval_RequestCodeExtraIndex(free_choice);
    return evaluator.index < 0 ? -1 : 0;
}

/* Steals the record. */
static CodeChoice *set_choice(PyObject *code, PyObject *record, const PyObject *globals) {
    CodeChoice *choice = PyMem_Malloc(sizeof *choice);
    if (choice) {
        *choice = (CodeChoice){record, globals};
        if (!_PyCode_SetExtra(code, evaluator.index, choice))
            return choice;
        PyMem_Free(choice);
    }
    Py_XDECREF(record);
    return NULL;
}

int leave_code_alone(PyObject *code) {
    if (ask_for_slot()) {
        PyErr_Clear(); /* so nothing can be installed either */
        return 0;
    }
    return set_choice(code, NULL, NULL) ? 0 : -1;
}

/* Asks the host once for each code object. NULL without an exception where the answer cannot be kept. */
static const CodeChoice *choice_for(PyFunctionObject *function) {
    void *known = NULL;
    if (_PyCode_GetExtra(function->func_code, evaluator.index, &known))
        return NULL;
    if (known)
        return known;
    ThreadState *thread = &this_thread;
    thread->asking++;
    PyObject *record = PyObject_CallOneArg(evaluator.choose, (PyObject *)function);
    thread->asking--;
    if (!record || !Py_IS_TYPE(record, &CodeRecordType)) {
        Py_CLEAR(record);
        PyErr_Clear();
    }
    return set_choice(function->func_code, record, function->func_globals);
}

static bool may_capture(const PyThreadState *thread, const _PyInterpreterFrame *frame) {
    const int function = CO_OPTIMIZED | CO_NEWLOCALS, later = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    int flags = frame->f_code->co_flags;
    return (flags & function) == function && !(flags & later) && !frame->f_locals && !thread->cframe->use_tracing &&
           !this_thread.asking && !this_thread.disabled && !_Py_IsFinalizing() && PyFunction_Check(frame->f_func) &&
           frame->f_func->func_code == (PyObject *)frame->f_code;
}

static PyObject *run_frame(void *frame) {
    return _PyEval_EvalFrameDefault(PyThreadState_Get(), frame, 0);
}

static PyObject *evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throws) {
    if (throws || frame->prev_instr != _PyCode_CODE(frame->f_code) - 1 || !may_capture(thread, frame) ||
        PyErr_Occurred())
        return _PyEval_EvalFrameDefault(thread, frame, throws);
    const CodeChoice *choice = choice_for(frame->f_func);
    if (!choice || !choice->record || choice->globals != frame->f_func->func_globals)
        return _PyEval_EvalFrameDefault(thread, frame, throws);
    PyObject *compiled = PyObject_CallFunctionObjArgs((PyObject *)&CompiledFunctionType, (PyObject *)frame->f_func,
                                                      choice->record, evaluator.miss, NULL);
    if (!compiled) {
        PyErr_Clear();
        return _PyEval_EvalFrameDefault(thread, frame, throws);
    }
    PyObject *result = call_in_place(compiled, frame->localsplus, run_frame, frame);
    Py_DECREF(compiled);
    return result;
}

bool left_to_tracer(void) {
    return evaluator.choose && PyThreadState_Get()->cframe->use_tracing;
}

/* capture_all(choose, miss) */
PyObject *capture_all(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyCallable_Check(args[0]) || !PyCallable_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "capture_all(choose, miss)");
    if (ask_for_slot())
        return NULL;
    Py_XSETREF(evaluator.choose, Py_NewRef(args[0]));
    Py_XSETREF(evaluator.miss, Py_NewRef(args[1]));
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
    Py_RETURN_NONE;
}
