/* Turns the tuple tree of contracts section 6 into arrays. */
#include "guard.h"

#include <string.h>

typedef struct NameRow {
    const char *name;
    int kind;
    int operands; /* after the name */
} NameRow;

static const NameRow accessor_rows[] = {
    {"arg", ACCESS_ARGUMENT, 1},   {"function", ACCESS_FUNCTION, 0}, {"global", ACCESS_GLOBAL, 1},
    {"handled", ACCESS_HANDLED, 0},
    {"cell", ACCESS_CELL, 1},      {"object", ACCESS_OBJECT, 1},     {"attr", ACCESS_ATTRIBUTE, 1},
    {"field", ACCESS_FIELD, 1},    {"dict", ACCESS_DICT, 0},         {"key", ACCESS_KEY, 1},
    {"item", ACCESS_ITEM, 1},      {"items_at", ACCESS_ITEM_AT, 1},  {"type", ACCESS_TYPE, 0},
    {"contents", ACCESS_CONTENTS, 0}, {"viewed", ACCESS_VIEWED, 0},
    {"progress", ACCESS_PROGRESS, 0},
    {"subclasses", ACCESS_SUBCLASSES, 0}, {NULL, 0, 0},
};

static const NameRow check_rows[] = {
    {"type", CHECK_TYPE, 1},         {"is", CHECK_IS, 1},         {"equals", CHECK_EQUALS, 1},
    {"len", CHECK_LENGTH, 1},        {"keys", CHECK_KEYS, 1},     {"absent", CHECK_ABSENT, 1},
    {"members", CHECK_MEMBERS, 1},   {"contains", CHECK_CONTAINS, 1}, {"lacks", CHECK_LACKS, 1},
    {"member", CHECK_MEMBER, 1},     {"no_member", CHECK_NO_MEMBER, 1},
    {"no_field", CHECK_NO_FIELD, 1}, {"no_attr", CHECK_NO_ATTRIBUTE, 1}, {"tensor", CHECK_TENSOR, 2},
    {"same", CHECK_SAME, 1},         {"distinct", CHECK_DISTINCT, 1},    {"range", CHECK_RANGE, 2},
    {"float", CHECK_FLOAT, 0},       {"holds", CHECK_HOLDS, 3},   {"found", CHECK_FOUND, 0},
    {"predicate", CHECK_PREDICATE, 1}, {"apart", CHECK_APART, 1},
    {NULL, 0, 0},
};

static const NameRow *find_row(const NameRow *rows, PyObject *source, const char *what) {
    if (!PyTuple_Check(source) || PyTuple_GET_SIZE(source) < 1 || !PyUnicode_Check(PyTuple_GET_ITEM(source, 0))) {
        PyErr_Format(PyExc_TypeError, "a guard's %s must be a tuple that starts with a name, not %R", what, source);
        return NULL;
    }
    for (const NameRow *row = rows; row->name; row++)
        if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(source, 0), row->name)) {
            if (PyTuple_GET_SIZE(source) == row->operands + 1)
                return row;
            PyErr_Format(PyExc_ValueError, "guard %s %R takes %d operands", what, source, row->operands);
            return NULL;
        }
    PyErr_Format(PyExc_ValueError, "unknown guard %s %R", what, source);
    return NULL;
}

/* How many nodes and checks the arrays must hold. */
static int count_tree(PyObject *trees, Py_ssize_t depth, Py_ssize_t *nodes, Py_ssize_t *checks) {
    if (depth > 500) {
        PyErr_SetString(PyExc_ValueError, "a guard tree is more than 500 levels deep");
        return -1;
    }
    if (!PyTuple_Check(trees) && !PyList_Check(trees)) {
        PyErr_Format(PyExc_TypeError, "guard trees must stand in a tuple or a list, not %R", trees);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(trees); i++) {
        PyObject *tree = PySequence_Fast_GET_ITEM(trees, i);
        if (!PyTuple_Check(tree) || PyTuple_GET_SIZE(tree) != 4) {
            PyErr_Format(PyExc_TypeError, "a guard tree is (accessor, checks, capture, children), not %R", tree);
            return -1;
        }
        PyObject *list = PyTuple_GET_ITEM(tree, 1);
        if (!PyTuple_Check(list) && !PyList_Check(list)) {
            PyErr_SetString(PyExc_TypeError, "the checks of a guard tree must be a tuple or a list");
            return -1;
        }
        *nodes += 1;
        *checks += PySequence_Fast_GET_SIZE(list);
        if (count_tree(PyTuple_GET_ITEM(tree, 3), depth + 1, nodes, checks))
            return -1;
    }
    return 0;
}

static PyObject *interned(PyObject *name) {
    if (!PyUnicode_CheckExact(name)) {
        PyErr_Format(PyExc_TypeError, "a name in a guard must be a str, not %R", name);
        return NULL;
    }
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    return name;
}

static int parse_index(PyObject *source, Py_ssize_t *index) {
    *index = PyLong_AsSsize_t(source);
    if (*index == -1 && PyErr_Occurred())
        return -1;
    if (*index < 0) {
        PyErr_SetString(PyExc_ValueError, "an index in a guard must not be negative");
        return -1;
    }
    return 0;
}

static int parse_accessor(GuardProgram *program, GuardNode *node, PyObject *source) {
    const NameRow *row = find_row(accessor_rows, source, "accessor");
    if (!row)
        return -1;
    node->accessor = (Accessor)row->kind;
    PyObject *operand = row->operands ? PyTuple_GET_ITEM(source, 1) : NULL;
    switch (node->accessor) {
    case ACCESS_ARGUMENT:
    case ACCESS_CELL:
    case ACCESS_ITEM:
    case ACCESS_ITEM_AT:
        return parse_index(operand, &node->index);
    case ACCESS_GLOBAL:
    case ACCESS_ATTRIBUTE:
    case ACCESS_FIELD:
        node->operand = interned(operand);
        node->plain_on_modules = node->operand && !_PyType_Lookup(&PyModule_Type, node->operand);
        return node->operand ? 0 : -1;
    case ACCESS_KEY:
        node->operand = Py_NewRef(operand);
        if (PyUnicode_CheckExact(operand))
            PyUnicode_InternInPlace(&node->operand);
        return PyObject_Hash(operand) == -1 ? -1 : 0;
    case ACCESS_OBJECT:
        return guard_object_keep(program, operand, &node->operand, &node->mortal);
    default:
        return 0;
    }
}

static int parse_bound(PyObject *source, int64_t open, int64_t *bound) {
    *bound = source == Py_None ? open : PyLong_AsLongLong(source);
    return *bound == -1 && PyErr_Occurred() ? -1 : 0;
}

/* A dict from each member to itself. */
static PyObject *parse_members(PyObject *source) {
    PyObject *members = PySequence_Tuple(source), *table = members ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; table && i < PyTuple_GET_SIZE(members); i++)
        if (PyDict_SetItem(table, PyTuple_GET_ITEM(members, i), PyTuple_GET_ITEM(members, i)))
            Py_CLEAR(table);
    Py_XDECREF(members);
    return table;
}

/* The captures of a check as an array in a bytes object. */
static PyObject *parse_captures(PyObject *captures) {
    PyObject *list = PySequence_Tuple(captures);
    Py_ssize_t count = list ? PyTuple_GET_SIZE(list) : 0;
    PyObject *array = list ? PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof count) : NULL;
    for (Py_ssize_t i = 0; array && i < count; i++)
        if (parse_index(PyTuple_GET_ITEM(list, i), (Py_ssize_t *)(void *)PyBytes_AS_STRING(array) + i))
            Py_CLEAR(array);
    Py_XDECREF(list);
    return array;
}

static int parse_check_operands(GuardProgram *program, GuardCheck *check, PyObject *source) {
    PyObject *operand = PyTuple_GET_SIZE(source) > 1 ? PyTuple_GET_ITEM(source, 1) : NULL;
    Py_ssize_t index = 0;
    switch (check->kind) {
    case CHECK_NO_FIELD:
    case CHECK_NO_ATTRIBUTE:
        check->operand = interned(operand);
        return check->operand ? 0 : -1;
    case CHECK_LENGTH:
    case CHECK_MEMBER:
    case CHECK_NO_MEMBER:
    case CHECK_SAME:
    case CHECK_DISTINCT:
        if (parse_index(operand, &index))
            return -1;
        check->low = index;
        return 0;
    case CHECK_RANGE:
        return parse_bound(operand, INT64_MIN, &check->low) ||
                       parse_bound(PyTuple_GET_ITEM(source, 2), INT64_MAX, &check->high)
                   ? -1
                   : 0;
    case CHECK_HOLDS:
        if (parse_comparison(operand, &check->comparison))
            return -1;
        check->left = number_expression_parse(PyTuple_GET_ITEM(source, 2));
        check->right = check->left ? number_expression_parse(PyTuple_GET_ITEM(source, 3)) : NULL;
        return check->right ? 0 : -1;
    case CHECK_TENSOR:
        check->tensor = tensor_check_new(operand, PyTuple_GET_ITEM(source, 2));
        return check->tensor ? 0 : -1;
    case CHECK_KEYS:
        check->operand = PySequence_Tuple(operand);
        return check->operand ? 0 : -1;
    case CHECK_MEMBERS:
        check->operand = parse_members(operand);
        return check->operand ? 0 : -1;
    case CHECK_APART:
        check->operand = parse_captures(operand);
        return check->operand ? 0 : -1;
    case CHECK_ABSENT:
        check->operand = Py_NewRef(operand);
        return PyObject_Hash(operand) == -1 ? -1 : 0;
    case CHECK_TYPE:
    case CHECK_IS:
        return guard_object_keep(program, operand, &check->operand, &check->mortal);
    default:
        check->operand = Py_XNewRef(operand);
        return 0;
    }
}

/* A settled check gives the same answer whenever the value is the same object, so a cached lookup may skip it. */
static bool is_settled(const GuardCheck *check) {
    return check->kind == CHECK_IS || check->kind == CHECK_EQUALS;
}

static int parse_checks(GuardProgram *program, GuardNode *node, PyObject *list) {
    node->first_check = node->settled_checks = node->end_check = program->check_count;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *source = PySequence_Fast_GET_ITEM(list, i);
        const NameRow *row = find_row(check_rows, source, "check");
        if (!row)
            return -1;
        GuardCheck check = {.kind = (CheckKind)row->kind, .number = program->check_count};
        int status = parse_check_operands(program, &check, source);
        program->checks[program->check_count++] = check;
        if (status)
            return -1;
    }
    node->end_check = program->check_count;
    for (Py_ssize_t i = node->first_check; i < node->end_check; i++)
        if (is_settled(&program->checks[i])) {
            GuardCheck check = program->checks[i];
            memmove(&program->checks[node->settled_checks + 1], &program->checks[node->settled_checks],
                    (size_t)(i - node->settled_checks) * sizeof check);
            program->checks[node->settled_checks++] = check;
        }
    return 0;
}

static bool needs_parent(Accessor accessor) {
    switch (accessor) {
    case ACCESS_ARGUMENT:
    case ACCESS_FUNCTION:
    case ACCESS_HANDLED:
    case ACCESS_GLOBAL:
    case ACCESS_CELL:
    case ACCESS_OBJECT:
        return false;
    default:
        return true;
    }
}

static int parse_trees(GuardProgram *program, PyObject *trees, int32_t parent);

static int parse_tree(GuardProgram *program, PyObject *tree, int32_t parent) {
    int32_t index = (int32_t)program->node_count;
    GuardNode *node = &program->nodes[program->node_count++];
    *node = (GuardNode){.parent = parent, .capture = -1, .number = program->check_count};
    if (parse_accessor(program, node, PyTuple_GET_ITEM(tree, 0)) || parse_checks(program, node, PyTuple_GET_ITEM(tree, 1)))
        return -1;
    if (parent < 0 && needs_parent(node->accessor)) {
        PyErr_Format(PyExc_ValueError, "guard accessor %R needs a parent", PyTuple_GET_ITEM(tree, 0));
        return -1;
    }
    long capture = PyLong_AsLong(PyTuple_GET_ITEM(tree, 2));
    if (capture == -1 && PyErr_Occurred())
        return -1;
    if (capture < -1 || capture >= program->captures) {
        PyErr_Format(PyExc_ValueError, "capture %ld of a guard program with %zd captures", capture, program->captures);
        return -1;
    }
    node->capture = (int32_t)capture;
    return parse_trees(program, PyTuple_GET_ITEM(tree, 3), index);
}

static int parse_trees(GuardProgram *program, PyObject *trees, int32_t parent) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(trees); i++)
        if (parse_tree(program, PySequence_Fast_GET_ITEM(trees, i), parent))
            return -1;
    return 0;
}

static int count_capture(const GuardNode *node, unsigned char *seen) {
    if (node->capture < 0)
        return 0;
    if (!seen[node->capture]++)
        return 0;
    PyErr_Format(PyExc_ValueError, "capture %d is given twice", (int)node->capture);
    return -1;
}

/* The last capture that a check compares with; -1 for none. */
static Py_ssize_t last_capture(const GuardCheck *check) {
    if (check->kind == CHECK_SAME || check->kind == CHECK_DISTINCT || check->kind == CHECK_MEMBER || check->kind == CHECK_NO_MEMBER)
        return check->low;
    if (check->kind != CHECK_HOLDS)
        return -1;
    Py_ssize_t left = number_expression_last_capture(check->left), right = number_expression_last_capture(check->right);
    return left > right ? left : right;
}

static bool comes_later(const GuardProgram *program, Py_ssize_t capture, const unsigned char *seen) {
    return capture >= program->captures || !seen[capture];
}

static bool compares_ahead(const GuardProgram *program, const GuardCheck *check, const unsigned char *seen) {
    Py_ssize_t capture = last_capture(check);
    bool ahead = capture >= 0 && comes_later(program, capture, seen);
    for (Py_ssize_t i = 0; check->kind == CHECK_APART && !ahead && i < captures_count(check->operand); i++)
        ahead = comes_later(program, captures_of(check->operand)[i], seen);
    return ahead;
}

/* Comparisons with captures may only look back. */
static int verify_look_back(const GuardProgram *program, const GuardNode *node, const unsigned char *seen) {
    for (Py_ssize_t i = node->first_check; i < node->end_check; i++) {
        if (compares_ahead(program, &program->checks[i], seen)) {
            PyErr_SetString(PyExc_ValueError, "a guard compares with a capture that comes later");
            return -1;
        }
    }
    return 0;
}

/* Every capture is given exactly once. */
static int verify_captures(const GuardProgram *program) {
    unsigned char *seen = PyMem_Calloc((size_t)program->captures + 1, 1);
    if (!seen) {
        PyErr_NoMemory();
        return -1;
    }
    int status = 0;
    for (Py_ssize_t i = 0; !status && i < program->node_count; i++) {
        status = verify_look_back(program, &program->nodes[i], seen);
        if (!status)
            status = count_capture(&program->nodes[i], seen);
    }
    for (Py_ssize_t i = 0; !status && i < program->captures; i++)
        if (!seen[i]) {
            PyErr_Format(PyExc_ValueError, "no guard gives capture %zd", i);
            status = -1;
        }
    PyMem_Free(seen);
    return status;
}

static bool is_tensor_argument(const GuardProgram *program, const GuardNode *node) {
    return node->accessor == ACCESS_ARGUMENT && node->capture < 0 && node->end_check == node->first_check + 1 &&
           program->checks[node->first_check].kind == CHECK_TENSOR;
}

/* The leading nodes that are nothing but a tensor argument. One that has children is not a leading node's end, since
 * its children follow it; they find its value only if it went the general way. */
static int collect_tensor_arguments(GuardProgram *program) {
    Py_ssize_t count = 0;
    while (count < program->node_count && is_tensor_argument(program, &program->nodes[count]) &&
           (count + 1 == program->node_count || program->nodes[count + 1].parent < 0))
        count++;
    program->tensors = PyMem_Calloc((size_t)count + 1, sizeof *program->tensors);
    if (!program->tensors) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        program->tensors[i] =
            (TensorArgument){program->nodes[i].index, program->checks[program->nodes[i].first_check].tensor};
    program->tensor_count = program->first_node = count;
    return 0;
}

static int build(GuardProgram *program, PyObject *trees) {
    Py_ssize_t nodes = 0, checks = 0;
    if (count_tree(trees, 0, &nodes, &checks))
        return -1;
    if (nodes >= INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many guards");
        return -1;
    }
    program->nodes = PyMem_Calloc((size_t)nodes + 1, sizeof *program->nodes);
    program->checks = PyMem_Calloc((size_t)checks + 1, sizeof *program->checks);
    if (!program->nodes || !program->checks) {
        PyErr_NoMemory();
        return -1;
    }
    return parse_trees(program, trees, -1) || verify_captures(program) || collect_tensor_arguments(program) ? -1 : 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"tree", "captures", NULL};
    PyObject *trees;
    Py_ssize_t captures;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "On:GuardProgram", names, &trees, &captures))
        return NULL;
    if (captures < 0 || captures > 1 << 20)
        return PyErr_Format(PyExc_ValueError, "%zd captures", captures);
    GuardProgram *program = (GuardProgram *)type->tp_alloc(type, 0);
    if (!program)
        return NULL;
    program->captures = captures;
    if (build(program, trees))
        Py_CLEAR(program);
    return (PyObject *)program;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg) {
    GuardProgram *program = (GuardProgram *)self;
    for (Py_ssize_t i = 0; i < program->node_count; i++)
        if (!program->nodes[i].mortal)
            Py_VISIT(program->nodes[i].operand);
    for (Py_ssize_t i = 0; i < program->check_count; i++) {
        if (!program->checks[i].mortal)
            Py_VISIT(program->checks[i].operand);
        if (program->checks[i].tensor)
            Py_VISIT(program->checks[i].tensor->type);
    }
    return 0;
}

static int program_clear(PyObject *self) {
    GuardProgram *program = (GuardProgram *)self;
    Py_ssize_t nodes = program->node_count, checks = program->check_count;
    program->node_count = program->check_count = program->tensor_count = 0;
    program->first_node = 1; /* so that a run comes to look at `cleared` */
    program->cleared = true;
    watches_free(program);
    guard_objects_free(program);
    for (Py_ssize_t i = 0; i < nodes; i++)
        if (!program->nodes[i].mortal)
            Py_CLEAR(program->nodes[i].operand);
    for (Py_ssize_t i = 0; i < checks; i++) {
        if (!program->checks[i].mortal)
            Py_CLEAR(program->checks[i].operand);
        tensor_check_free(program->checks[i].tensor);
        number_expression_free(program->checks[i].left);
        number_expression_free(program->checks[i].right);
    }
    return 0;
}

static void program_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    program_clear(self);
    PyMem_Free(((GuardProgram *)self)->nodes);
    PyMem_Free(((GuardProgram *)self)->space);
    PyMem_Free(((GuardProgram *)self)->checks);
    PyMem_Free(((GuardProgram *)self)->tensors);
    Py_TYPE(self)->tp_free(self);
}

/* The captured values or the failure as Python objects; used by both methods below. */
static PyObject *run_for_python(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject **captures,
                                GuardFailure *failure, bool *holds) {
    if (count != 2 || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "expected a function and a tuple of bound arguments");
    PyObject *function = original_function(args[0]);
    if (!function)
        return NULL;
    *holds = guard_program_run((GuardProgram *)self, function, PySequence_Fast_ITEMS(args[1]),
                               PyTuple_GET_SIZE(args[1]), captures, failure);
    return Py_None;
}

static PyObject *captures_tuple(PyObject **captures, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (tuple)
            PyTuple_SET_ITEM(tuple, i, captures[i]);
        else
            Py_DECREF(captures[i]);
    }
    return tuple;
}

/* check(function, bound) -> tuple of captures, or None if a guard fails */
static PyObject *program_check(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t size = ((GuardProgram *)self)->captures;
    PyObject **captures = PyMem_Calloc((size_t)size + 1, sizeof *captures);
    if (!captures)
        return PyErr_NoMemory();
    bool holds = false;
    PyObject *result = run_for_python(self, args, count, captures, NULL, &holds);
    if (result)
        result = holds ? captures_tuple(captures, size) : Py_NewRef(Py_None);
    PyMem_Free(captures);
    return result;
}

/* explain(function, bound) -> (number of the first failing check or -1, value found or Ellipsis if there is none) */
static PyObject *program_explain(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t size = ((GuardProgram *)self)->captures;
    PyObject **captures = PyMem_Calloc((size_t)size + 1, sizeof *captures);
    if (!captures)
        return PyErr_NoMemory();
    bool holds = false;
    GuardFailure failure = {-1, NULL};
    PyObject *result = run_for_python(self, args, count, captures, &failure, &holds);
    for (Py_ssize_t i = 0; holds && i < size; i++)
        Py_DECREF(captures[i]);
    PyMem_Free(captures);
    if (result && holds)
        return Py_BuildValue("(nO)", (Py_ssize_t)-1, Py_None);
    if (result)
        return Py_BuildValue("(nN)", failure.number, failure.value ? failure.value : Py_NewRef(Py_Ellipsis));
    return NULL;
}

/* settle(function, bound): as explain, for the call that the program was made for */
static PyObject *program_settle(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    GuardProgram *program = (GuardProgram *)self;
    program->settles = true;
    PyObject *result = program_explain(self, args, count);
    program->settles = false;
    return result;
}

static PyObject *program_check_count(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSsize_t(((GuardProgram *)self)->check_count);
}

static PyObject *program_captures(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSsize_t(((GuardProgram *)self)->captures);
}

static PyObject *program_dead(PyObject *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(((GuardProgram *)self)->dead);
}

static PyMethodDef program_methods[] = {
    {"check", (PyCFunction)(void (*)(void))program_check, METH_FASTCALL,
     "check(function, bound): the tuple of captured values, or None if a guard fails."},
    {"explain", (PyCFunction)(void (*)(void))program_explain, METH_FASTCALL,
     "explain(function, bound): (number of the first failing check, value found); (-1, None) if all hold."},
    {"settle", (PyCFunction)(void (*)(void))program_settle, METH_FASTCALL,
     "settle(function, bound): as explain, and each tensor check without a dispatch key set takes that of its tensor."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef program_getset[] = {
    {"checks", program_check_count, NULL, "Number of checks.", NULL},
    {"captures", program_captures, NULL, "Number of captured values.", NULL},
    {"dead", program_dead, NULL, "Whether an object that a guard compares with is gone: no call can pass any more.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject GuardProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.GuardProgram",
    .tp_doc = "GuardProgram(tree, captures): compiled checks over a call's arguments and what it reads.",
    .tp_basicsize = sizeof(GuardProgram),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = program_new,
    .tp_dealloc = program_dealloc,
    .tp_traverse = program_traverse,
    .tp_clear = program_clear,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
};
