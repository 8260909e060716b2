/* CPython 3.11 keeps instance attributes either in a dict or inline, next to a table of keys shared by the class. These
 * readers look at both without creating the dict, which would slow the instance down for good. */
#define Py_BUILD_CORE 1
#include "shim.h"

#include "internal/pycore_dict.h"
#include "internal/pycore_object.h"

static PyObject *inline_value(PyTypeObject *type, PyDictValues *values, PyObject *name, int32_t *hint) {
    PyDictKeysObject *keys = ((PyHeapTypeObject *)type)->ht_cached_keys;
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    if (*hint < keys->dk_nentries && entries[*hint].me_key == name)
        return values->values[*hint];
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
        if (entries[i].me_key == name) {
            *hint = (int32_t)i;
            return values->values[i];
        }
    return NULL;
}

/* Where an object of a type without inline values keeps its dict; NULL if it has none. */
static PyObject **dict_slot(PyObject *object) {
    Py_ssize_t offset = Py_TYPE(object)->tp_dictoffset;
    if (offset == 0)
        return NULL;
    if (offset < 0) {
        Py_ssize_t items = Py_SIZE(object);
        size_t size = _PyObject_VAR_SIZE(Py_TYPE(object), items < 0 ? -items : items);
        offset += (Py_ssize_t)size;
    }
    return (PyObject **)((char *)object + offset);
}

PyObject **instance_dict_slot(PyObject *object) {
    if (PyType_Check(object))
        return &((PyTypeObject *)object)->tp_dict;
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT)
        return _PyObject_ManagedDictPointer(object);
    return dict_slot(object);
}

static PyObject *own_dict(PyObject *object) {
    PyObject **slot = instance_dict_slot(object);
    return slot ? *slot : NULL;
}

static PyDictValues *inline_values(PyObject *object) {
    return Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT ? *_PyObject_ValuesPointer(object) : NULL;
}

Py_ssize_t instance_inline_index(PyObject *object, PyObject *name) {
    PyDictValues *values = inline_values(object);
    int32_t index = 0;
    return values && inline_value(Py_TYPE(object), values, name, &index) ? index : -1;
}

PyObject *instance_inline_value(PyObject *object, Py_ssize_t index) {
    PyDictValues *values = inline_values(object);
    return values ? values->values[index] : NULL;
}

PyObject *dict_item_at(PyObject *dict, Py_ssize_t index) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value))
        if (index-- == 0)
            return value;
    return NULL;
}

bool dict_lookup_runs_no_code(PyObject *dict, PyObject *key) {
    return PyUnicode_CheckExact(key) && DK_IS_UNICODE(((PyDictObject *)dict)->ma_keys);
}

PyObject *instance_field(PyObject *object, PyObject *name, int32_t *hint) {
    PyTypeObject *type = Py_TYPE(object);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        PyDictValues *values = *_PyObject_ValuesPointer(object);
        if (values)
            return inline_value(type, values, name, hint);
    }
    PyObject *dict = own_dict(object);
    if (!dict || !PyDict_Check(dict))
        return NULL;
    PyObject *value = PyDict_GetItemWithError(dict, name);
    if (!value)
        PyErr_Clear();
    return value;
}

static bool values_are_empty(const PyTypeObject *type, const PyDictValues *values) {
    const PyDictKeysObject *keys = ((const PyHeapTypeObject *)type)->ht_cached_keys;
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
        if (values->values[i])
            return false;
    return true;
}

bool instance_is_bare(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT))
        return !own_dict(object);
    const PyDictValues *values = *_PyObject_ValuesPointer(object);
    return !own_dict(object) && (!values || values_are_empty(type, values));
}

PyObject *instance_dict(PyObject *object) {
    PyObject *dict = own_dict(object);
    if (dict)
        return Py_NewRef(dict);
    if (Py_TYPE(object)->tp_dictoffset == 0)
        return NULL;
    dict = PyObject_GenericGetDict(object, NULL);
    if (!dict)
        PyErr_Clear();
    return dict;
}
