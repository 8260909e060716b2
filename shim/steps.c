/* What rewritten code uses besides compiled functions: the marked tuple that carries a frame's state to a continuation,
 * and functions over code that runs as it is. */
#include "guard.h"
#include "shim.h"

#include <string.h>

#include <opcode.h>

PyTypeObject StateType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.State",
    .tp_doc = "A tuple that only rewritten code makes: the locals and stack of a frame at a graph break.",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TUPLE_SUBCLASS,
    .tp_base = &PyTuple_Type,
};

/* pack(*values) -> State */
static PyObject *pack(PyObject *Py_UNUSED(self), PyObject *const *values, Py_ssize_t count) {
    PyTupleObject *state = (PyTupleObject *)StateType.tp_alloc(&StateType, count);
    if (!state)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        state->ob_item[i] = Py_NewRef(values[i]);
    return (PyObject *)state;
}

static PyObject *is_state(PyObject *Py_UNUSED(self), PyObject *value) {
    return PyBool_FromLong(Py_IS_TYPE(value, &StateType));
}

/* A frame without a closure would read one that does not exist. */
int copies_free_variables(PyCodeObject *code) {
    PyObject *bytes = PyCode_GetCode(code);
    if (!bytes)
        return -1;
    int found = 0;
    const char *text = PyBytes_AS_STRING(bytes);
    for (Py_ssize_t i = 0; i + 1 < PyBytes_GET_SIZE(bytes); i += 2)
        found |= (unsigned char)text[i] == COPY_FREE_VARS;
    Py_DECREF(bytes);
    return found;
}

/* make_step(code, globals) -> function without a closure */
static PyObject *make_step(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyCode_Check(args[0]) || !PyDict_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "make_step(code, globals)");
    int copies = copies_free_variables((PyCodeObject *)args[0]);
    if (copies < 0)
        return NULL;
    if (copies)
        return PyErr_Format(PyExc_ValueError, "%R copies free variables from a closure, which a step does not have",
                            args[0]);
    return leave_code_alone(args[0]) ? NULL : PyFunction_New(args[0], args[1]);
}

/* A hash that was given; -1 and an exception where it is none. */
static Py_hash_t given_hash(PyObject *number) {
    Py_hash_t hash = PyLong_AsSsize_t(number);
    if (hash == -1 && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "no hash is -1");
    return hash;
}

/* store(dict, key, hash, value) */
static PyObject *store(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !PyDict_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "store(dict, key, hash, value)");
    Py_hash_t hash = given_hash(args[2]);
    if (hash == -1)
        return NULL;
    return _PyDict_SetItem_KnownHash(args[0], args[1], args[3], hash) ? NULL : Py_NewRef(Py_None);
}

/* discard(dict, key, hash) */
static PyObject *discard(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !PyDict_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "discard(dict, key, hash)");
    Py_hash_t hash = given_hash(args[2]);
    if (hash == -1)
        return NULL;
    if (_PyDict_DelItem_KnownHash(args[0], args[1], hash)) {
        if (!PyErr_ExceptionMatches(PyExc_KeyError))
            return NULL;
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

/* set_enabled(enabled) -> previous setting of this thread */
static PyObject *set_enabled(PyObject *Py_UNUSED(self), PyObject *value) {
    int enabled = PyObject_IsTrue(value);
    if (enabled < 0)
        return NULL;
    int before = !this_thread.disabled;
    this_thread.disabled = !enabled;
    return PyBool_FromLong(before);
}

static PyObject *is_enabled(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused)) {
    return PyBool_FromLong(!this_thread.disabled);
}

/* key_set(tensor) -> int */
static PyObject *key_set(PyObject *Py_UNUSED(self), PyObject *tensor) {
    uint64_t keys;
    if (!torch.ready || !PyType_IsSubtype(Py_TYPE(tensor), torch.object.tensor_type))
        return PyErr_Format(PyExc_TypeError, "key_set(tensor), after calibrate(torch)");
    return key_set_of(tensor, &keys) ? NULL : PyLong_FromUnsignedLongLong(keys);
}

/* lookup(set, item) -> bool or None */
static PyObject *lookup(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count) {
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "lookup(set, item)");
    int holds = set_holds(args[0], args[1]);
    return holds < 0 ? Py_NewRef(Py_None) : PyBool_FromLong(holds);
}

/* addresses(values, numbers) -> bytes */
static PyObject *addresses(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count) {
    if (!torch.ready || count != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "addresses(values, numbers), two tuples, after calibrate(torch)");
    Py_ssize_t wanted = PyTuple_GET_SIZE(args[1]);
    PyObject *result = PyBytes_FromStringAndSize(NULL, wanted * (Py_ssize_t)sizeof(void *));
    for (Py_ssize_t i = 0; result && i < wanted; i++) {
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[1], i));
        PyObject *value = number >= 0 && number < PyTuple_GET_SIZE(args[0]) ? PyTuple_GET_ITEM(args[0], number) : NULL;
        Slot slot;
        void *pointer = NULL;
        if (value && PyType_IsSubtype(Py_TYPE(value), torch.object.tensor_type)) {
            slot_adopt_object(&slot, value, false);
            if (slot_data(&slot, &pointer))
                Py_CLEAR(result);
        } else {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "value %zd is no tensor", number);
            Py_CLEAR(result);
        }
        if (result)
            memcpy(PyBytes_AS_STRING(result) + i * (Py_ssize_t)sizeof pointer, &pointer, sizeof pointer);
    }
    return result;
}

static PyObject *current_state(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused)) {
    GlobalState state;
    if (!torch.ready)
        return PyErr_Format(PyExc_RuntimeError, "calibrate(torch) must come first");
    return global_state_read(&state) ? NULL : global_state_tuple(&state);
}

PyMethodDef step_methods[] = {
    {"pack", (PyCFunction)(void (*)(void))pack, METH_FASTCALL, "pack(*values): a State that holds them."},
    {"is_state", is_state, METH_O, "is_state(value): whether value was made by pack()."},
    {"make_step", (PyCFunction)(void (*)(void))make_step, METH_FASTCALL,
     "make_step(code, globals): a function without a closure, even if the code has free variables."},
    {"store", (PyCFunction)(void (*)(void))store, METH_FASTCALL,
     "store(dict, key, hash, value): store under a key without asking it for its hash."},
    {"discard", (PyCFunction)(void (*)(void))discard, METH_FASTCALL,
     "discard(dict, key, hash): delete a key, if it is there, without asking it for its hash."},
    {"capture_all", (PyCFunction)(void (*)(void))capture_all, METH_FASTCALL,
     "capture_all(choose, miss): run every function as compiled for whose code choose(function) gives a CodeRecord."},
    {"set_enabled", set_enabled, METH_O,
     "set_enabled(enabled): whether compiled functions of this thread look for entries; returns the former setting."},
    {"is_enabled", is_enabled, METH_NOARGS, "is_enabled(): the setting of this thread."},
    {"bind_guards", (PyCFunction)(void (*)(void))bind_guards, METH_FASTCALL,
     "bind_guards(trees, objects, predicates): the trees with live objects for ids, and (path, check) of each check that "
     "is on a number or a tensor."},
    {"key_set", key_set, METH_O, "key_set(tensor): its dispatch key set as an int."},
    {"lookup", (PyCFunction)(void (*)(void))lookup, METH_FASTCALL,
     "lookup(set, item): whether the set holds it; None where only code of the program could tell."},
    {"addresses", (PyCFunction)(void (*)(void))addresses, METH_FASTCALL,
     "addresses(values, numbers): where the elements of the numbered tensors begin, eight bytes each."},
    {"global_state", current_state, METH_NOARGS, "global_state(): the state that entries are compared with."},
    {"cuda_driver", cuda_describe, METH_NOARGS, "cuda_driver(): what was found of the CUDA driver."},
    {"calibrate", (PyCFunction)(void (*)(void))calibrate, METH_FASTCALL | METH_KEYWORDS,
     "calibrate(torch, *, portable=False): find torch's symbols and the layout of tensors; returns what was found."},
    {NULL, NULL, 0, NULL},
};
