/* The compact form of a guard program, shared by the builder and the runner. */
#ifndef FUSEE_GUARD_H
#define FUSEE_GUARD_H

#include "tensor_check.h"

typedef enum Accessor {
    ACCESS_ARGUMENT,
    ACCESS_FUNCTION,
    ACCESS_HANDLED,
    ACCESS_GLOBAL,
    ACCESS_CELL,
    ACCESS_OBJECT,
    ACCESS_ATTRIBUTE,
    ACCESS_FIELD,
    ACCESS_DICT,
    ACCESS_KEY,
    ACCESS_ITEM,
    ACCESS_ITEM_AT,
    ACCESS_TYPE,
    ACCESS_CONTENTS,
    ACCESS_VIEWED,
    ACCESS_PROGRESS,
    ACCESS_SUBCLASSES,
} Accessor;

typedef enum CheckKind {
    CHECK_TYPE,
    CHECK_IS,
    CHECK_EQUALS,
    CHECK_LENGTH,
    CHECK_KEYS,
    CHECK_MEMBERS,
    CHECK_CONTAINS, /* a set holds a constant */
    CHECK_LACKS,
    CHECK_MEMBER, /* one of the value and a captured one is a set, which holds the other */
    CHECK_NO_MEMBER,
    CHECK_ABSENT,
    CHECK_NO_FIELD,
    CHECK_NO_ATTRIBUTE,
    CHECK_TENSOR,
    CHECK_SAME,
    CHECK_DISTINCT,
    CHECK_APART, /* the value and some captured ones are different objects, any two of them */
    CHECK_RANGE,
    CHECK_FLOAT,
    CHECK_HOLDS,
    CHECK_PREDICATE, /* what a Python callable says of the value */
    CHECK_FOUND,
} CheckKind;

typedef enum Comparison { COMPARE_EQUAL, COMPARE_UNEQUAL, COMPARE_LESS, COMPARE_LESS_EQUAL } Comparison;

typedef struct NumberExpression NumberExpression;

typedef struct GuardCheck {
    CheckKind kind;
    Comparison comparison;
    NumberExpression *left, *right; /* of a comparison of numbers */
    Py_ssize_t number; /* in the depth-first walk of the tree */
    PyObject *operand; /* strong, unless it is mortal */
    bool mortal; /* of guard_objects.c; the operand is NULL once it is gone */
    TensorCheck *tensor;
    int64_t low, high; /* of a range; of a length and of captures only `low` */
    uint64_t version; /* of the dict that last passed; 0: none */
    int32_t hint;
} GuardCheck;

typedef struct GuardNode {
    Accessor accessor;
    int32_t parent; /* index of a node before this one, -1 for a root */
    int32_t capture; /* -1: not captured */
    int32_t hint;
    bool plain_on_modules; /* no attribute of the module type hides a module's own attribute of this name */
    Py_ssize_t index;
    PyObject *operand; /* name, key or object; strong, unless it is mortal */
    bool mortal; /* of guard_objects.c; the operand is NULL once it is gone */
    uint64_t version; /* of the dict that gave `cached`; 0: nothing cached */
    uint64_t second_version; /* of the builtins, when a global was found there */
    PyObject *cached; /* borrowed: alive as long as the dict has that version */
    Py_ssize_t first_check, settled_checks, end_check; /* the settled ones need only the value's identity */
    Py_ssize_t number; /* of the first check at or below this node */
} GuardNode;

/* A parameter with one check, that on its tensor: run first and without the general machinery. */
typedef struct TensorArgument {
    Py_ssize_t index;
    TensorCheck *check; /* belongs to its GuardCheck */
} TensorArgument;

typedef struct WatchList WatchList;
typedef struct MortalObject MortalObject;

/* The captures that a check names, an array in a bytes object. */
static inline const Py_ssize_t *captures_of(PyObject *operand) {
    return (const Py_ssize_t *)(const void *)PyBytes_AS_STRING(operand);
}

static inline Py_ssize_t captures_count(PyObject *operand) {
    return PyBytes_GET_SIZE(operand) / (Py_ssize_t)sizeof(Py_ssize_t);
}

struct GuardProgram {
    PyObject_HEAD
    GuardNode *nodes;
    GuardCheck *checks;
    TensorArgument *tensors;
    Py_ssize_t node_count, check_count, captures, tensor_count;
    Py_ssize_t first_node; /* the nodes before it are all in `tensors` */
    bool cleared; /* by the garbage collector; holds for nothing any more */
    bool settles; /* this run takes the key sets of the tensors that it finds */
    int32_t runs; /* that are going on */
    bool dead; /* an object that it compares with is gone; holds for nothing any more */
    MortalObject *mortals;
    Py_ssize_t mortal_count;
    PyObject *link; /* from the references in `mortals` to the program; NULL without any */
    PyObject **space; /* of the last run, for the next; NULL while one uses it */
    WatchList *watches; /* NULL until the program has held once, or where it can have none */
    int32_t runs_until_watched; /* full runs that must come before the watches are made again */
    int32_t patience; /* what `runs_until_watched` starts from; doubles each time that watches were made in vain */
};

/* The state of one run of a program. */
typedef struct GuardRun {
    GuardProgram *program;
    PyFunctionObject *function;
    PyObject *const *bound;
    Py_ssize_t bound_count;
    PyObject **values; /* by node; borrowed unless held */
    PyObject **held; /* new references to drop at the end */
    Py_ssize_t held_count;
    Py_ssize_t value_count;
    bool holds_all; /* Python code may have run: every value on the way is held */
    bool runs_no_code; /* what could run Python code fails instead */
    PyObject **captures; /* borrowed until the run succeeds */
    GuardFailure *failure;
} GuardRun;

PyObject *sequence_item(PyObject *sequence, Py_ssize_t index); /* of a list or tuple; borrowed or NULL */
PyObject *free_variable(const PyFunctionObject *function, Py_ssize_t index); /* borrowed or NULL */
bool attribute_runs_no_code(const GuardNode *node, PyObject *parent); /* nor does a module's __getattr__ count */
bool constants_equal(PyObject *expected, PyObject *found);
bool guard_node_holds(GuardRun *run, Py_ssize_t index);
bool guard_check_holds(GuardRun *run, GuardCheck *check, PyObject *value);

bool watches_hold(GuardRun *run);
void watches_made(GuardRun *run);
void watches_free(GuardProgram *program);

/* ---- set_lookup.c ---- */

/* 1 where a set or frozenset holds the item, 0 where it does not, -1 where only code of the program could tell. No exception. */
int set_holds(PyObject *set, PyObject *item);

/* ---- guard_objects.c: objects that may go while the program compares with them ---- */

/* Puts the object into `operand`, borrowed where `mortal` comes out true. -1 with an exception set where that fails. */
int guard_object_keep(GuardProgram *program, PyObject *object, PyObject **operand, bool *mortal);
void guard_objects_release(GuardProgram *program);
void guard_objects_free(GuardProgram *program);

/* ---- guard_number.c: numbers that a guard computes ---- */

NumberExpression *number_expression_parse(PyObject *source);
void number_expression_free(NumberExpression *expression);
Py_ssize_t number_expression_last_capture(const NumberExpression *expression); /* -1: none */
int parse_comparison(PyObject *name, Comparison *comparison);
/* `own` is the value that the check is on. Never leaves an exception; what cannot be computed does not hold. */
bool numbers_compare(Comparison comparison, const NumberExpression *left, const NumberExpression *right,
                     PyObject *const *captures, PyObject *own);

#endif
