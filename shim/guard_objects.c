/* Objects that a guard program compares with and does not keep alive: a class of the program, a function, an instance. Once
 * one of them is gone nothing can be it again, so the program holds for nothing any more, and no later object at the same
 * address is taken for it. */
#include "guard.h"

struct MortalObject {
    PyObject *reference; /* strong; a weakref.ref to `object`, which calls object_died */
    PyObject *object; /* borrowed */
};

/* Types that are part of the interpreter or of an extension never go, and modules and their functions hardly do. */
static bool is_mortal(PyObject *object) {
    if (PyType_Check(object))
        return ((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) && !PyModule_Check(object) && !PyCFunction_Check(object);
}

static void forget_object(GuardProgram *program, PyObject *object) {
    for (Py_ssize_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].mortal && program->nodes[i].operand == object)
            program->nodes[i].operand = NULL;
    for (Py_ssize_t i = 0; i < program->check_count; i++)
        if (program->checks[i].mortal && program->checks[i].operand == object)
            program->checks[i].operand = NULL;
}

/* Lets go of what a dead program alone may keep alive, unless a run of it is going on, which does so at its end. */
void guard_objects_release(GuardProgram *program) {
    if (!program->dead || program->runs)
        return;
    for (Py_ssize_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].accessor == ACCESS_OBJECT && !program->nodes[i].mortal)
            Py_CLEAR(program->nodes[i].operand);
    for (Py_ssize_t i = 0; i < program->check_count; i++)
        if ((program->checks[i].kind == CHECK_IS || program->checks[i].kind == CHECK_TYPE) && !program->checks[i].mortal)
            Py_CLEAR(program->checks[i].operand);
}

/* Called with the dead reference. `link` is a capsule whose context is the program, or NULL once that is gone. */
static PyObject *object_died(PyObject *link, PyObject *reference) {
    GuardProgram *program = PyCapsule_GetContext(link);
    if (!program) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    program->dead = true;
    for (Py_ssize_t i = 0; i < program->mortal_count; i++)
        if (program->mortals[i].reference == reference)
            forget_object(program, program->mortals[i].object);
    guard_objects_release(program);
    Py_RETURN_NONE;
}

static PyMethodDef death_method = {"object_died", object_died, METH_O, NULL};

/* What the references call, made for the first of them. A new reference. */
static PyObject *death_callback(GuardProgram *program) {
    static char nothing; /* a capsule must point somewhere */
    if (!program->link) {
        program->link = PyCapsule_New(&nothing, NULL, NULL);
        if (program->link && PyCapsule_SetContext(program->link, program))
            Py_CLEAR(program->link);
    }
    return program->link ? PyCFunction_New(&death_method, program->link) : NULL;
}

static int add_mortal(GuardProgram *program, PyObject *object) {
    for (Py_ssize_t i = 0; i < program->mortal_count; i++)
        if (program->mortals[i].object == object)
            return 0;
    MortalObject *larger = PyMem_Realloc(program->mortals, (size_t)(program->mortal_count + 1) * sizeof *larger);
    if (!larger) {
        PyErr_NoMemory();
        return -1;
    }
    program->mortals = larger;
    PyObject *callback = death_callback(program);
    PyObject *reference = callback ? PyWeakref_NewRef(object, callback) : NULL;
    Py_XDECREF(callback);
    if (!reference)
        return -1;
    program->mortals[program->mortal_count++] = (MortalObject){reference, object};
    return 0;
}

int guard_object_keep(GuardProgram *program, PyObject *object, PyObject **operand, bool *mortal) {
    *mortal = is_mortal(object);
    *operand = *mortal ? object : Py_NewRef(object);
    return *mortal ? add_mortal(program, object) : 0;
}

void guard_objects_free(GuardProgram *program) {
    if (program->link)
        PyCapsule_SetContext(program->link, NULL);
    Py_CLEAR(program->link);
    Py_ssize_t count = program->mortal_count;
    program->mortal_count = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(program->mortals[i].reference);
    PyMem_Free(program->mortals);
    program->mortals = NULL;
}
