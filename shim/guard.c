/* Runs a guard program. Lookups in dicts remember the dict's version and what they found, so an unchanged dict costs one
 * comparison and no hashing. */
#include "guard.h"

#include <string.h>

typedef struct Found {
    PyObject *value;
    bool is_new; /* the reference */
} Found;

static Found borrowed(PyObject *value) {
    return (Found){value, false};
}

bool attribute_runs_no_code(const GuardNode *node, PyObject *parent) {
    PyTypeObject *type = Py_TYPE(parent);
    if (node->plain_on_modules && PyModule_CheckExact(parent))
        return dict_lookup_runs_no_code(PyModule_GetDict(parent), node->operand);
    if (PyType_CheckExact(parent)) {
        PyObject *found = _PyType_Lookup((PyTypeObject *)parent, node->operand);
        return found && !(Py_TYPE(found)->tp_flags & Py_TPFLAGS_HEAPTYPE); /* nor has it a __get__ in Python */
    }
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        return false;
    PyObject *member = _PyType_Lookup(type, node->operand);
    if (type == &PyMethod_Type) /* its own attributes come before those of its function */
        return member != NULL;
    if (type->tp_getattro != PyObject_GenericGetAttr)
        return false;
    return type->tp_dictoffset == 0 || (member && PyDescr_IsData(member)); /* which comes before the instance's own */
}

/* Whether a lookup that is not remembered must be left to a run that may run code. */
static bool must_not_look_up(const GuardRun *run, const GuardNode *node, PyObject *parent) {
    if (!run->runs_no_code)
        return false;
    if (node->accessor == ACCESS_GLOBAL)
        return !dict_lookup_runs_no_code(run->function->func_globals, node->operand);
    if (node->accessor == ACCESS_KEY)
        return PyDict_Check(parent) && !dict_lookup_runs_no_code(parent, node->operand);
    return node->accessor == ACCESS_ATTRIBUTE && !attribute_runs_no_code(node, parent);
}

static PyObject *dict_lookup(PyObject *dict, PyObject *key) {
    PyObject *value = PyDict_GetItemWithError(dict, key);
    if (!value)
        PyErr_Clear();
    return value;
}

static inline bool has_version(PyObject *object, uint64_t version) {
    return PyDict_Check(object) && dict_version(object) == version;
}

static Found access_key(GuardNode *node, PyObject *dict) {
    Py_INCREF(dict); /* comparing keys can run code */
    PyObject *value = dict_lookup(dict, node->operand);
    node->cached = value;
    node->version = value ? dict_version(dict) : 0;
    Py_DECREF(dict);
    return borrowed(value);
}

static Found access_global(GuardNode *node, const PyFunctionObject *function) {
    PyObject *globals = function->func_globals, *builtins = function->func_builtins;
    PyObject *value = dict_lookup(globals, node->operand);
    node->second_version = 0;
    if (!value && PyDict_Check(builtins)) {
        value = dict_lookup(builtins, node->operand);
        node->second_version = dict_version(builtins);
    }
    node->cached = value;
    node->version = value ? dict_version(globals) : 0;
    return borrowed(value);
}

static void hold(GuardRun *run, PyObject *value) {
    run->held[run->held_count++] = value;
}

/* Before Python code runs, which may drop the containers that the borrowed values live in. A value that was a new
 * reference is held twice then, for which `held` has room. */
static void hold_all(GuardRun *run) {
    for (Py_ssize_t i = 0; i < run->value_count && !run->holds_all; i++)
        hold(run, Py_NewRef(run->values[i]));
    run->holds_all = true;
}

static Found access_attribute(GuardRun *run, GuardNode *node, PyObject *parent) {
    if (node->plain_on_modules && PyModule_CheckExact(parent)) {
        Found found = access_key(node, PyModule_GetDict(parent));
        if (found.value)
            return found;
    }
    if (!run->runs_no_code)
        hold_all(run);
    PyObject *value = PyObject_GetAttr(parent, node->operand);
    if (!value)
        PyErr_Clear();
    return (Found){value, true};
}

static Found access_item_at(GuardNode *node, PyObject *dict) {
    node->cached = dict_item_at(dict, node->index);
    node->version = node->cached ? dict_version(dict) : 0;
    return borrowed(node->cached);
}

PyObject *sequence_item(PyObject *sequence, Py_ssize_t index) {
    if (!PyTuple_Check(sequence) && !PyList_Check(sequence))
        return NULL;
    return index < PySequence_Fast_GET_SIZE(sequence) ? PySequence_Fast_GET_ITEM(sequence, index) : NULL;
}

/* A deque's own type is no heap type, so its name cannot be that of a class written in Python. */
static bool is_deque(PyObject *value) {
    return !(Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !strcmp(Py_TYPE(value)->tp_name, "collections.deque");
}

static Found access_item(PyObject *sequence, Py_ssize_t index) {
    if (!is_deque(sequence))
        return borrowed(sequence_item(sequence, index));
    PyObject *item = PySequence_GetItem(sequence, index);
    if (!item)
        PyErr_Clear();
    return (Found){item, true};
}

static bool is_dict_iterator(PyObject *value) {
    return Py_IS_TYPE(value, &PyDictIterKey_Type) || Py_IS_TYPE(value, &PyDictIterValue_Type) ||
           Py_IS_TYPE(value, &PyDictIterItem_Type);
}

/* An iterator whose first reference is what it walks over. */
static bool is_walker(PyObject *value) {
    return is_dict_iterator(value) || Py_IS_TYPE(value, &PyListIter_Type) || Py_IS_TYPE(value, &PyTupleIter_Type) ||
           Py_IS_TYPE(value, &PyEnum_Type) || Py_IS_TYPE(value, &PyZip_Type);
}

static int take_first(PyObject *referent, void *first) {
    *(PyObject **)first = referent;
    return 1; /* ends the walk */
}

/* The dict below a view, or what an iterator walks over: NULL once it has come to the end. */
static PyObject *viewed(PyObject *value) {
    if (PyDictKeys_Check(value) || PyDictValues_Check(value) || PyDictItems_Check(value))
        return (PyObject *)((_PyDictViewObject *)value)->dv_dict;
    PyObject *first = NULL;
    if (is_walker(value))
        Py_TYPE(value)->tp_traverse(value, take_first, &first);
    if (first && is_dict_iterator(value) && !PyDict_Check(first))
        return NULL; /* one over items keeps the tuple that it gives when it has let go of the dict */
    return first;
}

/* The position in a list or tuple, the number that an enumerate gives next, or whether a zip is strict. */
static PyObject *reduced_progress(PyObject *iterator) {
    PyObject *reduced = PyObject_CallMethod(iterator, "__reduce__", NULL), *progress = NULL;
    if (reduced && Py_IS_TYPE(iterator, &PyZip_Type))
        progress = PyBool_FromLong(PyTuple_GET_SIZE(reduced) > 2);
    else if (reduced && Py_IS_TYPE(iterator, &PyEnum_Type))
        progress = Py_XNewRef(sequence_item(PyTuple_GET_ITEM(reduced, 1), 1));
    else if (reduced)
        progress = Py_XNewRef(sequence_item(reduced, 2));
    Py_XDECREF(reduced);
    return progress;
}

/* Whether an iterator over a dict raises at the next step as the dict grew or shrank; asked where nothing seems to be left. */
static bool is_stale(PyObject *iterator) {
    PyObject *reduced = PyObject_CallMethod(iterator, "__reduce__", NULL);
    Py_XDECREF(reduced);
    return !reduced;
}

/* The position in a dict, -1 where it grew or shrank meanwhile, or how many numbers are left of a range. */
static PyObject *hinted_progress(PyObject *iterator) {
    PyObject *dict = viewed(iterator), *left = PyObject_CallMethod(iterator, "__length_hint__", NULL);
    if (!left || !dict)
        return left;
    Py_ssize_t rest = PyLong_AsSsize_t(left);
    Py_DECREF(left);
    if (rest == 0 && is_stale(iterator)) {
        PyErr_Clear();
        return PyLong_FromLong(-1);
    }
    return PyLong_FromSsize_t(PyDict_GET_SIZE(dict) - rest);
}

/* How far an iterator is; a new reference, or NULL for what is none and at the end. */
static PyObject *progress(PyObject *iterator) {
    PyObject *found = NULL;
    if (is_dict_iterator(iterator) ? viewed(iterator) != NULL : Py_IS_TYPE(iterator, &PyRangeIter_Type))
        found = hinted_progress(iterator);
    else if (is_walker(iterator))
        found = reduced_progress(iterator);
    if (!found)
        PyErr_Clear();
    return found;
}

/* A new list, or NULL for what is no class. */
static PyObject *subclasses(PyObject *cls) {
    PyObject *list = PyType_Check(cls) ? PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", cls) : NULL;
    if (!list)
        PyErr_Clear();
    return list;
}

PyObject *free_variable(const PyFunctionObject *function, Py_ssize_t index) {
    PyObject *cell = function->func_closure ? sequence_item(function->func_closure, index) : NULL;
    return cell && PyCell_Check(cell) ? PyCell_GET(cell) : NULL;
}

/* What sys.exc_info() would show in the function: nothing of it is handled by the function itself yet. */
static Found handled_exception(void) {
    PyObject *exception = PyErr_GetHandledException();
    return exception ? (Found){exception, true} : borrowed(Py_None);
}

static Found fetch(GuardRun *run, GuardNode *node) {
    PyObject *parent = node->parent >= 0 ? run->values[node->parent] : NULL;
    if (must_not_look_up(run, node, parent))
        return borrowed(NULL);
    switch (node->accessor) {
    case ACCESS_ARGUMENT:
        return borrowed(node->index < run->bound_count ? run->bound[node->index] : NULL);
    case ACCESS_FUNCTION:
        return borrowed((PyObject *)run->function);
    case ACCESS_HANDLED:
        return handled_exception();
    case ACCESS_GLOBAL:
        return access_global(node, run->function);
    case ACCESS_CELL:
        return borrowed(free_variable(run->function, node->index));
    case ACCESS_OBJECT:
        return borrowed(node->operand);
    case ACCESS_ATTRIBUTE:
        return access_attribute(run, node, parent);
    case ACCESS_FIELD:
        return borrowed(instance_field(parent, node->operand, &node->hint));
    case ACCESS_DICT:
        return (Found){instance_dict(parent), true};
    case ACCESS_KEY:
        return PyDict_Check(parent) ? access_key(node, parent) : borrowed(NULL);
    case ACCESS_ITEM:
        return access_item(parent, node->index);
    case ACCESS_ITEM_AT:
        return PyDict_Check(parent) ? access_item_at(node, parent) : borrowed(NULL);
    case ACCESS_TYPE:
        return borrowed((PyObject *)Py_TYPE(parent));
    case ACCESS_CONTENTS:
        return borrowed(PyCell_Check(parent) ? PyCell_GET(parent) : NULL);
    case ACCESS_VIEWED:
        return borrowed(viewed(parent));
    case ACCESS_PROGRESS:
        return (Found){progress(parent), true};
    case ACCESS_SUBCLASSES:
        return (Found){subclasses(parent), true};
    }
    return borrowed(NULL);
}

static bool tuples_equal(PyObject *expected, PyObject *found) {
    Py_ssize_t count = PyTuple_GET_SIZE(expected);
    if (count != PyTuple_GET_SIZE(found))
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!constants_equal(PyTuple_GET_ITEM(expected, i), PyTuple_GET_ITEM(found, i)))
            return false;
    return true;
}

/* Same type and same value; floats by their bits, so -0.0 differs from 0.0 and a NaN equals itself. No type is accepted
 * whose comparison could run code. */
bool constants_equal(PyObject *expected, PyObject *found) {
    if (expected == found)
        return true;
    PyTypeObject *type = Py_TYPE(expected);
    if (type != Py_TYPE(found))
        return false;
    if (type == &PyFloat_Type)
        return !memcmp(&((PyFloatObject *)expected)->ob_fval, &((PyFloatObject *)found)->ob_fval, sizeof(double));
    if (type == &PyComplex_Type)
        return !memcmp(&((PyComplexObject *)expected)->cval, &((PyComplexObject *)found)->cval, sizeof(Py_complex));
    if (type == &PyTuple_Type)
        return tuples_equal(expected, found);
    bool comparable = type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type;
    if (!comparable && (PyObject *)type != torch.object.device) /* a tensor makes another device each time it is asked */
        return false;
    return PyObject_RichCompareBool(expected, found, Py_EQ) == 1;
}

/* -1 for a type whose length would take a call of Python code. */
static Py_ssize_t plain_length(PyObject *value) {
    if (PyList_Check(value) || PyTuple_Check(value))
        return PySequence_Fast_GET_SIZE(value);
    if (PyDict_Check(value))
        return PyDict_GET_SIZE(value);
    if (PyAnySet_Check(value))
        return PySet_GET_SIZE(value);
    if (PyUnicode_Check(value))
        return PyUnicode_GET_LENGTH(value);
    if (Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE)
        return -1;
    Py_ssize_t length = PyObject_Size(value);
    if (length < 0)
        PyErr_Clear();
    return length;
}

static bool keys_hold(GuardCheck *check, PyObject *dict) {
    if (check->version && check->version == dict_version(dict))
        return true;
    Py_ssize_t position = 0, index = 0, count = PyTuple_GET_SIZE(check->operand);
    PyObject *key, *value;
    if (PyDict_GET_SIZE(dict) != count)
        return false;
    while (PyDict_Next(dict, &position, &key, &value))
        if (index >= count || !constants_equal(PyTuple_GET_ITEM(check->operand, index++), key))
            return false;
    check->version = dict_version(dict);
    return true;
}

/* Hashing and comparing it runs no Python code. */
static bool is_plain_member(PyObject *member) {
    PyTypeObject *type = Py_TYPE(member);
    if (type == &PyTuple_Type) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(member); i++)
            if (!is_plain_member(PyTuple_GET_ITEM(member, i)))
                return false;
        return true;
    }
    return type == &PyLong_Type || type == &PyBool_Type || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyFloat_Type ||
           type == &PyComplex_Type || type == &PyCFunction_Type || type->tp_hash == PyBaseObject_Type.tp_hash;
}

static bool members_hold(const GuardCheck *check, PyObject *set) {
    Py_ssize_t position = 0;
    PyObject *member;
    Py_hash_t hash;
    if (PySet_GET_SIZE(set) != PyDict_GET_SIZE(check->operand))
        return false;
    while (_PySet_NextEntry(set, &position, &member, &hash)) {
        PyObject *expected = is_plain_member(member) ? PyDict_GetItemWithError(check->operand, member) : NULL;
        if (!expected || !constants_equal(expected, member)) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* set_holds of whichever of the two is the set. */
static int holds_either(PyObject *value, PyObject *captured) {
    return PyAnySet_Check(value) ? set_holds(value, captured) : set_holds(captured, value);
}

static bool is_absent(GuardCheck *check, PyObject *dict) {
    if (check->version && check->version == dict_version(dict))
        return true;
    Py_INCREF(dict);
    bool absent = !PyDict_GetItemWithError(dict, check->operand) && !PyErr_Occurred();
    PyErr_Clear();
    check->version = absent ? dict_version(dict) : 0;
    Py_DECREF(dict);
    return absent;
}

static bool has_no_attribute(PyObject *value, PyObject *name) {
    PyObject *found = NULL;
    int status = _PyObject_LookupAttr(value, name, &found);
    Py_XDECREF(found);
    if (status < 0)
        PyErr_Clear();
    return status == 0;
}

static bool in_range(const GuardCheck *check, PyObject *value) {
    int overflow = 0;
    if (!PyLong_CheckExact(value))
        return false;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow && check->low <= number && number <= check->high;
}

/* An exception means that the value is not what the predicate knows. */
static bool predicate_holds(PyObject *predicate, PyObject *value) {
    PyObject *answer = PyObject_CallOneArg(predicate, value);
    int holds = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    PyErr_Clear();
    return holds > 0;
}

enum { MOST_ON_THE_STACK = 512 };

/* Puts an object into a table of open addresses; false where it is there already. */
static bool put_apart(PyObject **table, size_t mask, PyObject *object) {
    size_t at = ((uintptr_t)object >> 4) & mask;
    while (table[at]) {
        if (table[at] == object)
            return false;
        at = (at + 1) & mask;
    }
    table[at] = object;
    return true;
}

static bool are_apart_in(const GuardRun *run, PyObject *operand, PyObject *value, PyObject **table, size_t mask) {
    bool apart = put_apart(table, mask, value);
    for (Py_ssize_t i = 0; apart && i < captures_count(operand); i++)
        apart = put_apart(table, mask, run->captures[captures_of(operand)[i]]);
    return apart;
}

/* The value and the captured ones are different objects, any two of them. */
static bool are_apart(const GuardRun *run, PyObject *operand, PyObject *value) {
    PyObject *small[MOST_ON_THE_STACK], **table = small;
    size_t size = 4;
    while (size < 2 * ((size_t)captures_count(operand) + 1))
        size *= 2;
    if (size > MOST_ON_THE_STACK)
        table = PyMem_Malloc(size * sizeof *table);
    if (!table)
        return false;
    memset(table, 0, size * sizeof *table);
    bool apart = are_apart_in(run, operand, value, table, size - 1);
    if (table != small)
        PyMem_Free(table);
    return apart;
}

bool guard_check_holds(GuardRun *run, GuardCheck *check, PyObject *value) {
    switch (check->kind) {
    case CHECK_TYPE:
        return (PyObject *)Py_TYPE(value) == check->operand;
    case CHECK_IS:
        return value == check->operand;
    case CHECK_EQUALS:
        return constants_equal(check->operand, value);
    case CHECK_LENGTH:
        return plain_length(value) == check->low;
    case CHECK_KEYS:
        return PyDict_Check(value) && keys_hold(check, value);
    case CHECK_MEMBERS:
        return PyAnySet_CheckExact(value) && members_hold(check, value);
    case CHECK_ABSENT:
        return PyDict_Check(value) && !(run->runs_no_code && !dict_lookup_runs_no_code(value, check->operand)) &&
               is_absent(check, value);
    case CHECK_NO_FIELD:
        return !instance_field(value, check->operand, &check->hint);
    case CHECK_NO_ATTRIBUTE:
        hold_all(run);
        return has_no_attribute(value, check->operand);
    case CHECK_TENSOR:
        if (run->program->settles)
            tensor_check_take_key_set(check->tensor, value);
        return tensor_check_holds(check->tensor, value);
    case CHECK_CONTAINS:
    case CHECK_LACKS:
        return set_holds(value, check->operand) == (check->kind == CHECK_CONTAINS);
    case CHECK_MEMBER:
    case CHECK_NO_MEMBER:
        return holds_either(value, run->captures[check->low]) == (check->kind == CHECK_MEMBER);
    case CHECK_SAME:
        return value == run->captures[check->low];
    case CHECK_APART:
        return are_apart(run, check->operand, value);
    case CHECK_DISTINCT:
        return value != run->captures[check->low];
    case CHECK_RANGE:
        return in_range(check, value);
    case CHECK_FLOAT:
        return PyFloat_CheckExact(value);
    case CHECK_HOLDS:
        return numbers_compare(check->comparison, check->left, check->right, run->captures, value);
    case CHECK_PREDICATE:
        hold_all(run);
        return predicate_holds(check->operand, value);
    case CHECK_FOUND:
        return true; /* it was reached */
    }
    return false;
}

static void report(GuardRun *run, Py_ssize_t number, PyObject *value) {
    if (!run->failure)
        return;
    run->failure->number = number;
    run->failure->value = Py_XNewRef(value);
}

/* The dict whose version a node remembers; NULL if this time the value comes from elsewhere. */
static inline PyObject *dict_behind(const GuardRun *run, const GuardNode *node) {
    if (node->accessor == ACCESS_GLOBAL)
        return run->function->func_globals;
    PyObject *parent = run->values[node->parent];
    if (node->accessor == ACCESS_ATTRIBUTE)
        return PyModule_CheckExact(parent) ? PyModule_GetDict(parent) : NULL;
    return parent;
}

/* What an unchanged dict gave the last time; NULL if there is no such dict. Most nodes end here. */
static inline PyObject *remembered(const GuardRun *run, const GuardNode *node) {
    if (!node->version)
        return NULL;
    PyObject *dict = dict_behind(run, node);
    if (!dict || !has_version(dict, node->version))
        return NULL;
    if (node->second_version && !has_version(run->function->func_builtins, node->second_version))
        return NULL;
    return node->cached;
}

/* A remembered lookup has passed its settled checks only if the whole node passed them then. */
static void forget(GuardNode *node) {
    node->version = node->second_version = 0;
    node->cached = NULL;
}

bool guard_node_holds(GuardRun *run, Py_ssize_t index) {
    GuardProgram *program = run->program;
    GuardNode *node = &program->nodes[index];
    PyObject *known = remembered(run, node);
    Found found = known ? borrowed(known) : fetch(run, node);
    PyObject *value = found.value;
    if (!value) {
        report(run, node->number, NULL);
        return false;
    }
    run->values[index] = value;
    run->value_count = index + 1;
    if (found.is_new)
        hold(run, value);
    else if (run->holds_all)
        hold(run, Py_NewRef(value));
    for (Py_ssize_t i = known ? node->settled_checks : node->first_check; i < node->end_check; i++)
        if (!guard_check_holds(run, &program->checks[i], value)) {
            report(run, program->checks[i].number, value);
            forget(node);
            return false;
        }
    if (node->capture >= 0)
        run->captures[node->capture] = value;
    return true;
}

static inline bool tensor_arguments_hold(const GuardProgram *program, PyObject *const *bound, Py_ssize_t bound_count) {
    for (Py_ssize_t i = 0; i < program->tensor_count; i++) {
        const TensorArgument *tensor = &program->tensors[i];
        if (tensor->index >= bound_count || !tensor_check_holds(tensor->check, bound[tensor->index]))
            return false;
    }
    return true;
}

/* An explanation goes through every node, so that it finds the first check that fails. */
static bool run_nodes(GuardRun *run) {
    GuardProgram *program = run->program;
    for (Py_ssize_t i = run->failure ? 0 : program->first_node; i < program->node_count; i++) {
        if (run->failure)
            forget(&program->nodes[i]);
        if (!guard_node_holds(run, i))
            return false;
    }
    return true;
}

static void drop_held(GuardRun *run) {
    for (Py_ssize_t i = 0; i < run->held_count; i++)
        Py_DECREF(run->held[i]);
    run->held_count = 0;
}

static bool finish(GuardRun *run, bool holds) {
    for (Py_ssize_t i = 0; holds && i < run->program->captures; i++)
        Py_INCREF(run->captures[i]);
    drop_held(run);
    return holds;
}

/* The short form where there is one, else the whole program, which then gets a short form. */
static bool run_watched(GuardRun *run) {
    if (run->failure)
        return run_nodes(run);
    run->runs_no_code = true;
    if (run->program->watches && watches_hold(run))
        return true;
    run->runs_no_code = false;
    drop_held(run);
    run->value_count = run->program->first_node;
    bool holds = run_nodes(run);
    if (holds)
        watches_made(run);
    return holds;
}

enum { STACK_NODES = 48 };

/* Large programs keep their space between runs; a run inside another one, or on another thread, gets its own. */
static PyObject **take_space(GuardProgram *program) {
    PyObject **space = program->space;
    program->space = NULL;
    return space ? space : PyMem_Malloc((size_t)program->node_count * 3 * sizeof *space);
}

static void give_space(GuardProgram *program, PyObject **space) {
    PyMem_Free(program->space);
    program->space = space;
}

static bool run_general(GuardProgram *program, PyObject *function, PyObject *const *bound, Py_ssize_t bound_count,
                        PyObject **captures, GuardFailure *failure) {
    PyObject *stack[3 * STACK_NODES];
    PyObject **space = stack;
    if (program->cleared || program->dead)
        return false;
    if (program->node_count > STACK_NODES && !(space = take_space(program)))
        return false;
    GuardRun run = {.program = program, .function = (PyFunctionObject *)function, .bound = bound,
               .bound_count = bound_count, .values = space, .held = space + program->node_count,
               .captures = captures, .failure = failure, .value_count = failure ? 0 : program->first_node};
    for (Py_ssize_t i = 0; i < run.value_count; i++)
        space[i] = bound[program->tensors[i].index];
    Py_INCREF(program);
    program->runs++;
    bool holds = finish(&run, run_watched(&run));
    program->runs--;
    guard_objects_release(program);
    if (space != stack)
        give_space(program, space);
    Py_DECREF(program);
    return holds;
}

bool guard_program_run(GuardProgram *program, PyObject *function, PyObject *const *bound, Py_ssize_t bound_count,
                       PyObject **captures, GuardFailure *failure) {
    if (!failure) {
        if (!tensor_arguments_hold(program, bound, bound_count))
            return false;
        if (program->first_node == program->node_count)
            return true; /* nothing else, and so no captures */
    }
    return run_general(program, function, bound, bound_count, captures, failure);
}

Py_ssize_t guard_program_captures(const GuardProgram *program) {
    return program->captures;
}
