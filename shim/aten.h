/* An operator's arguments in a plan, shared by the ways of calling it. */
#ifndef FUSEE_ATEN_H
#define FUSEE_ATEN_H

#include "shim.h"

typedef enum ArgumentKind {
    ARGUMENT_TENSOR,
    ARGUMENT_TENSORS,
    ARGUMENT_INTEGER,
    ARGUMENT_INTEGERS,
    ARGUMENT_FLOAT, /* of a scalar slot */
    ARGUMENT_OBJECT, /* fixed when the plan is made */
} ArgumentKind;

/* Kinds of single values, in arguments and in schemas. */
enum {
    CODE_TENSOR = 't',
    CODE_INTEGER = 'i',
    CODE_FLOAT = 'f',
    CODE_BOOL = 'b',
    CODE_DTYPE = 'd',
    CODE_LAYOUT = 'l',
    CODE_MEMORY_FORMAT = 'm',
    CODE_DEVICE = 'v',
    CODE_STRING = 's',
    CODE_OTHER = 'x',
    CODE_OPTIONAL = 'O', /* before the code of what it holds */
    CODE_LIST = 'L',
};

typedef struct Argument {
    ArgumentKind kind;
    char code; /* of an object */
    bool has_optional; /* tensors of which some may be None */
    Py_ssize_t *slots; /* of tensors, -1: None; or of the float */
    Integer *integers;
    Py_ssize_t count;
    PyObject *object;
    int64_t number; /* the object as torch's C interface takes it */
    int64_t *numbers; /* the items of a list of floats or bools, likewise */
} Argument;

typedef struct StableCall StableCall;

/* Stores NULL, without an exception, when the C interface cannot carry the operator's arguments and results. */
int stable_call_new(PyObject *overload, const char *name, const char *overload_name, Argument *arguments,
                    Py_ssize_t argument_count, Py_ssize_t output_count, StableCall **result);
void stable_call_free(StableCall *call);
/* 0: done; 1: torch reports a failure, no exception; -1: exception. */
int stable_call_run(const StableCall *call, const Argument *arguments, Slot *slots, const Py_ssize_t *outputs,
                    Py_ssize_t output_count);

#endif
