/* Whether a set holds an object, told without running code of the program. */
#include "guard.h"

#define DEEPEST_NESTING 8

static bool has_methods_of(PyTypeObject *type, PyTypeObject *base) {
    return type->tp_hash == base->tp_hash && type->tp_richcompare == base->tp_richcompare;
}

static bool compares_by_identity(PyObject *value) {
    return Py_TYPE(value)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

/* Whether neither the value's hash nor a comparison with another plain value runs code of the program. */
static bool is_plain(PyObject *value, int depth) {
    PyTypeObject *type = Py_TYPE(value), *const bases[] = {&PyLong_Type, &PyUnicode_Type, &PyBytes_Type, &PyFloat_Type, &PyComplex_Type};
    if (has_methods_of(type, &PyBaseObject_Type) || type == &PyCFunction_Type)
        return true;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        if (PyType_IsSubtype(type, bases[i]))
            return has_methods_of(type, bases[i]);
    if (type != &PyTuple_Type || depth == DEEPEST_NESTING)
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
        if (!is_plain(PyTuple_GET_ITEM(value, i), depth + 1))
            return false;
    return true;
}

static bool holds_object(PyObject *set, PyObject *item) {
    Py_ssize_t position = 0;
    PyObject *member;
    Py_hash_t hash;
    while (_PySet_NextEntry(set, &position, &member, &hash))
        if (member == item)
            return true;
    return false;
}

/* 1 where the member is equal to the item, 0 where it is not, -1 where only the program's code could tell. */
static int equals_member(PyObject *member, Py_hash_t stored, PyObject *item, bool plain, Py_hash_t hash) {
    if ((plain && stored != hash) || (compares_by_identity(member) && compares_by_identity(item)))
        return 0;
    return plain && is_plain(member, 0) ? PyObject_RichCompareBool(member, item, Py_EQ) : -1;
}

int set_holds(PyObject *set, PyObject *item) {
    Py_ssize_t position = 0;
    PyObject *member;
    Py_hash_t stored;
    if (!PyAnySet_CheckExact(set) || PyAnySet_Check(item))
        return -1;
    if (holds_object(set, item))
        return 1;
    bool plain = is_plain(item, 0);
    Py_hash_t hash = plain ? PyObject_Hash(item) : 0;
    while (_PySet_NextEntry(set, &position, &member, &stored)) {
        int equal = equals_member(member, stored, item, plain, hash);
        if (equal)
            return equal;
    }
    return 0;
}
