/* Puts the live objects in the place of their ids in the guard trees of a compile (docs/contracts.md, section 6). What
 * mentions no object is taken as it is. */
#include "shim.h"

enum { DEEPEST = 500 };

typedef struct Binding {
    PyObject *objects;    /* list, by id */
    PyObject *predicates; /* dict: what makes the callable of a check that Python makes, by the check's name */
    PyObject *noted;      /* list of (path, check) */
    PyObject *path[DEEPEST]; /* borrowed: the accessors from the root to the node that is bound */
} Binding;

static bool is_named(PyObject *source, const char *name) {
    return PyTuple_CheckExact(source) && PyTuple_GET_SIZE(source) > 0 && PyUnicode_Check(PyTuple_GET_ITEM(source, 0)) &&
           PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(source, 0), name) == 0;
}

static bool is_reference(PyObject *part) {
    return PyTuple_CheckExact(part) && PyTuple_GET_SIZE(part) == 2 && is_named(part, "object");
}

/* The object of ("object", id). */
static PyObject *live_object(const Binding *binding, PyObject *reference) {
    PyObject *id = PyTuple_GET_ITEM(reference, 1);
    Py_ssize_t number = PyLong_CheckExact(id) ? PyLong_AsSsize_t(id) : -1;
    if (number > 0 && number < PyList_GET_SIZE(binding->objects))
        return Py_NewRef(PyList_GET_ITEM(binding->objects, number));
    PyErr_Clear();
    return PyErr_Format(PyExc_LookupError, "there is no object %R", id);
}

typedef PyObject *(*Convert)(Binding *binding, PyObject *item, Py_ssize_t depth);

/* A tuple of what each item becomes. */
static PyObject *each(Binding *binding, PyObject *source, Py_ssize_t depth, Convert convert) {
    PyObject *items = PySequence_Tuple(source), *live = items ? PyTuple_New(PyTuple_GET_SIZE(items)) : NULL;
    for (Py_ssize_t i = 0; live && i < PyTuple_GET_SIZE(live); i++) {
        PyObject *item = convert(binding, PyTuple_GET_ITEM(items, i), depth);
        if (item)
            PyTuple_SET_ITEM(live, i, item);
        else
            Py_CLEAR(live);
    }
    Py_XDECREF(items);
    return live;
}

/* An operand; keys of a dict stand in a list and may be live objects too. */
static PyObject *live_part(Binding *binding, PyObject *part, Py_ssize_t depth) {
    if (is_reference(part))
        return live_object(binding, part);
    if (!PyList_CheckExact(part))
        return Py_NewRef(part);
    PyObject *items = each(binding, part, depth, live_part), *list = items ? PySequence_List(items) : NULL;
    Py_XDECREF(items);
    return list;
}

static bool may_hold_references(PyObject *parts) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++)
        if (PyTuple_CheckExact(PyTuple_GET_ITEM(parts, i)) || PyList_CheckExact(PyTuple_GET_ITEM(parts, i)))
            return true;
    return false;
}

/* An accessor or a check with live operands. */
static PyObject *live_parts(Binding *binding, PyObject *parts) {
    return may_hold_references(parts) ? each(binding, parts, 0, live_part) : Py_NewRef(parts);
}

static PyObject *live_accessor(Binding *binding, PyObject *accessor) {
    if (!is_reference(accessor))
        return live_parts(binding, accessor);
    PyObject *object = live_object(binding, accessor);
    return object ? Py_BuildValue("(ON)", PyTuple_GET_ITEM(accessor, 0), object) : NULL;
}

static PyObject *live_member(Binding *binding, PyObject *part, Py_ssize_t Py_UNUSED(depth)) {
    return is_reference(part) ? live_object(binding, part) : PySequence_GetItem(part, 0);
}

/* ("members", [...]) with the bare values: constants come as tuples of one. */
static PyObject *live_members(Binding *binding, PyObject *check) {
    PyObject *bare = each(binding, PyTuple_GET_ITEM(check, 1), 0, live_member);
    return bare ? Py_BuildValue("(ON)", PyTuple_GET_ITEM(check, 0), bare) : NULL;
}

/* ("contains", constant) and the like: the constant comes in a tuple of its own. */
static PyObject *live_constant(PyObject *check) {
    PyObject *constant = PySequence_GetItem(PyTuple_GET_ITEM(check, 1), 0);
    return constant ? Py_BuildValue("(ON)", PyTuple_GET_ITEM(check, 0), constant) : NULL;
}

/* ("predicate", callable) for a check that Python makes; steals the check. */
static PyObject *predicate(PyObject *make, PyObject *check) {
    PyObject *operands = PyTuple_GetSlice(check, 1, PyTuple_GET_SIZE(check));
    PyObject *callable = operands ? PyObject_CallObject(make, operands) : NULL;
    Py_XDECREF(operands);
    Py_DECREF(check);
    return callable ? Py_BuildValue("(sN)", "predicate", callable) : NULL;
}

static PyObject *live_check(Binding *binding, PyObject *check) {
    if (!PyTuple_CheckExact(check) || PyTuple_GET_SIZE(check) < 1)
        return PyErr_Format(PyExc_TypeError, "a guard's check must be a tuple that starts with a name, not %R", check);
    if (PyTuple_GET_SIZE(check) == 2 && is_named(check, "members"))
        return live_members(binding, check);
    if (PyTuple_GET_SIZE(check) == 2 && (is_named(check, "contains") || is_named(check, "lacks")))
        return live_constant(check);
    PyObject *found = live_parts(binding, check);
    PyObject *make = found ? PyDict_GetItemWithError(binding->predicates, PyTuple_GET_ITEM(found, 0)) : NULL;
    if (make)
        return predicate(make, found);
    if (PyErr_Occurred())
        Py_CLEAR(found);
    return found;
}

/* Whether a check is on something that may be another number or size at a later call. */
static bool is_noted(PyObject *check) {
    if (PyTuple_GET_SIZE(check) == 2 && is_named(check, "equals")) {
        PyObject *constant = PyTuple_GET_ITEM(check, 1);
        return PyLong_CheckExact(constant) || PyFloat_CheckExact(constant);
    }
    return is_named(check, "tensor");
}

static int note(const Binding *binding, Py_ssize_t depth, PyObject *check) {
    PyObject *path = PyTuple_New(depth + 1);
    for (Py_ssize_t i = 0; path && i <= depth; i++)
        PyTuple_SET_ITEM(path, i, Py_NewRef(binding->path[i]));
    PyObject *pair = path ? Py_BuildValue("(NO)", path, check) : NULL;
    int status = pair ? PyList_Append(binding->noted, pair) : -1;
    Py_XDECREF(pair);
    return status;
}

static PyObject *noted_check(Binding *binding, PyObject *source, Py_ssize_t depth) {
    PyObject *check = live_check(binding, source);
    if (check && is_noted(check) && note(binding, depth, check))
        Py_CLEAR(check);
    return check;
}

static PyObject *live_trees(Binding *binding, PyObject *source, Py_ssize_t depth);

static PyObject *live_tree(Binding *binding, PyObject *tree, Py_ssize_t depth) {
    if (!PyTuple_CheckExact(tree) || PyTuple_GET_SIZE(tree) != 4 || !PyTuple_CheckExact(PyTuple_GET_ITEM(tree, 0)))
        return PyErr_Format(PyExc_TypeError, "a guard tree is (accessor, checks, capture, children), not %R", tree);
    PyObject *accessor = live_accessor(binding, PyTuple_GET_ITEM(tree, 0));
    binding->path[depth] = accessor;
    PyObject *checks = accessor ? each(binding, PyTuple_GET_ITEM(tree, 1), depth, noted_check) : NULL;
    PyObject *children = checks ? live_trees(binding, PyTuple_GET_ITEM(tree, 3), depth + 1) : NULL;
    PyObject *live = children ? PyTuple_Pack(4, accessor, checks, PyTuple_GET_ITEM(tree, 2), children) : NULL;
    Py_XDECREF(accessor);
    Py_XDECREF(checks);
    Py_XDECREF(children);
    return live;
}

static PyObject *live_trees(Binding *binding, PyObject *source, Py_ssize_t depth) {
    if (depth < DEEPEST)
        return each(binding, source, depth, live_tree);
    Py_ssize_t count = PySequence_Size(source);
    if (count > 0)
        PyErr_SetString(PyExc_ValueError, "a guard tree is too deep");
    return count ? NULL : PyTuple_New(0);
}

/* bind_guards(trees, objects, predicates) -> (trees, noted) */
PyObject *bind_guards(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !PyList_CheckExact(args[1]) || !PyDict_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "bind_guards(trees, list of objects, dict of predicates)");
    Binding binding = {.objects = args[1], .predicates = args[2], .noted = PyList_New(0)};
    PyObject *live = binding.noted ? live_trees(&binding, args[0], 0) : NULL;
    PyObject *result = live ? PyTuple_Pack(2, live, binding.noted) : NULL;
    Py_XDECREF(live);
    Py_XDECREF(binding.noted);
    return result;
}
