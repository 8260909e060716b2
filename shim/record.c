/* Entries (a guard program and the code it guards) and the record that all function objects of one code object share. */
#include "shim.h"

#include <string.h>
#include <structmember.h>

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"guards", "code", "report", NULL};
    PyObject *guards, *code, *report = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!|O:Entry", names, &GuardProgramType, &guards, &PyCode_Type,
                                     &code, &report))
        return NULL;
    PyCodeObject *body = (PyCodeObject *)code;
    if (body->co_flags & (CO_VARARGS | CO_VARKEYWORDS) || body->co_kwonlyargcount)
        return PyErr_Format(PyExc_ValueError, "the code of an entry must take positional parameters only");
    if (body->co_argcount < guard_program_captures((GuardProgram *)guards))
        return PyErr_Format(PyExc_ValueError, "the code of an entry takes fewer parameters than its guards capture");
    Entry *entry = leave_code_alone(code) ? NULL : (Entry *)type->tp_alloc(type, 0);
    if (!entry)
        return NULL;
    entry->guards = (GuardProgram *)Py_NewRef(guards);
    entry->code = (PyCodeObject *)Py_NewRef(code);
    entry->report = Py_NewRef(report);
    return (PyObject *)entry;
}

/* The code that an object is or, being a function, runs, where nothing else holds either; NULL otherwise. */
static PyObject *code_within(PyObject *object) {
    if (Py_REFCNT(object) != 1)
        return NULL;
    PyObject *code = PyFunction_Check(object) ? PyFunction_GET_CODE(object) : object;
    return PyCode_Check(code) && Py_REFCNT(code) == 1 ? code : NULL;
}

int visit_constants(PyObject *code, visitproc visit, void *arg) {
    PyObject *constants = ((PyCodeObject *)code)->co_consts;
    Py_VISIT(constants);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *nested = code_within(PyTuple_GET_ITEM(constants, i));
        int stop = nested ? visit_constants(nested, visit, arg) : 0;
        if (stop)
            return stop;
    }
    return 0;
}

/* Rewritten code holds objects of the program and its own continuations, which lead back to the entry. */
static int entry_traverse(PyObject *self, visitproc visit, void *arg) {
    Entry *entry = (Entry *)self;
    Py_VISIT(entry->guards);
    Py_VISIT(entry->code);
    Py_VISIT(entry->report);
    bool alone = Py_REFCNT(entry->code) == 1 + entry->functions; /* no call runs it, for one */
    return alone ? visit_constants((PyObject *)entry->code, visit, arg) : 0;
}

/* What a call relies on goes only with the entry itself; the guards break cycles through what they hold. */
static int entry_clear(PyObject *self) {
    Py_CLEAR(((Entry *)self)->report);
    return 0;
}

static void entry_dealloc(PyObject *self) {
    Entry *entry = (Entry *)self;
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    Py_XDECREF(entry->guards);
    Py_XDECREF(entry->code);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *entry_state(PyObject *self, void *Py_UNUSED(closure)) {
    Entry *entry = (Entry *)self;
    return entry->has_state ? global_state_tuple(&entry->state) : Py_NewRef(Py_None);
}

static PyMemberDef entry_members[] = {
    {"guards", T_OBJECT, offsetof(Entry, guards), READONLY, "The GuardProgram."},
    {"code", T_OBJECT, offsetof(Entry, code), READONLY, "The code object that runs when the guards hold."},
    {"report", T_OBJECT, offsetof(Entry, report), READONLY, "What the host keeps for explanations."},
    {"hits", T_ULONGLONG, offsetof(Entry, hits), READONLY, "Calls that this entry served."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef entry_getset[] = {
    {"state", entry_state, NULL, "Global state the entry holds in; None before it joined a record.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject EntryType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.Entry",
    .tp_doc = "Entry(guards, code, report=None): one compiled version of a code object.",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = entry_new,
    .tp_dealloc = entry_dealloc,
    .tp_traverse = entry_traverse,
    .tp_clear = entry_clear,
    .tp_members = entry_members,
    .tp_getset = entry_getset,
};

/* ---- CodeRecord ---- */

static PyObject *record_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"data", NULL};
    PyObject *data = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:CodeRecord", names, &data))
        return NULL;
    CodeRecord *record = (CodeRecord *)type->tp_alloc(type, 0);
    if (!record)
        return NULL;
    record->data = Py_NewRef(data);
    record->entries = PyTuple_New(0);
    if (!record->entries)
        Py_CLEAR(record);
    return (PyObject *)record;
}

static int record_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((CodeRecord *)self)->entries);
    Py_VISIT(((CodeRecord *)self)->data);
    return 0;
}

static int record_clear(PyObject *self) {
    CodeRecord *record = (CodeRecord *)self;
    PyObject *none = PyTuple_New(0); /* a call may still look through them */
    if (none)
        Py_XSETREF(record->entries, none);
    Py_CLEAR(record->data);
    return 0;
}

static void record_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    if (((CodeRecord *)self)->weak_references)
        PyObject_ClearWeakRefs(self);
    Py_CLEAR(((CodeRecord *)self)->entries);
    Py_CLEAR(((CodeRecord *)self)->data);
    Py_TYPE(self)->tp_free(self);
}

/* Running calls keep the tuple they look through, so a change makes a new one. */
static void set_entries(CodeRecord *record, PyObject *entries) {
    Py_ssize_t most = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); i++) {
        Py_ssize_t captures = guard_program_captures(((Entry *)PyTuple_GET_ITEM(entries, i))->guards);
        most = captures > most ? captures : most;
    }
    record->most_captures = most;
    Py_SETREF(record->entries, entries);
}

/* A new tuple of `entries` without item `skipped` (-1: none), after `first` if it is given. */
static PyObject *rebuilt(PyObject *entries, PyObject *first, Py_ssize_t skipped) {
    Py_ssize_t count = PyTuple_GET_SIZE(entries), next = 0;
    PyObject *result = PyTuple_New(count - (skipped >= 0) + (first != NULL));
    if (!result)
        return NULL;
    if (first)
        PyTuple_SET_ITEM(result, next++, Py_NewRef(first));
    for (Py_ssize_t i = 0; i < count; i++)
        if (i != skipped)
            PyTuple_SET_ITEM(result, next++, Py_NewRef(PyTuple_GET_ITEM(entries, i)));
    return result;
}

static Py_ssize_t find_entry(PyObject *entries, PyObject *entry) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); i++)
        if (PyTuple_GET_ITEM(entries, i) == entry)
            return i;
    return -1;
}

int record_add(CodeRecord *record, Entry *entry) {
    if (find_entry(record->entries, (PyObject *)entry) >= 0)
        return 0;
    PyObject *entries = rebuilt(record->entries, (PyObject *)entry, -1);
    if (!entries)
        return -1;
    set_entries(record, entries);
    return 0;
}

/* `entries` is the tuple the caller looked through, held by it; nothing happens if the record has another by now. */
int record_move_to_front(CodeRecord *record, PyObject *entries, Py_ssize_t index) {
    if (record->entries != entries)
        return 0;
    PyObject *first = PyTuple_GET_ITEM(entries, index);
    if (Py_REFCNT(entries) == 2) { /* the record's and the caller's: nobody can see the change half done */
        PyObject **items = PySequence_Fast_ITEMS(entries);
        memmove(items + 1, items, (size_t)index * sizeof *items);
        items[0] = first;
        return 0;
    }
    PyObject *moved = rebuilt(entries, first, index);
    if (!moved)
        return -1;
    set_entries(record, moved);
    return 0;
}

static PyObject *record_remove(PyObject *self, PyObject *entry) {
    CodeRecord *record = (CodeRecord *)self;
    Py_ssize_t index = find_entry(record->entries, entry);
    if (index < 0)
        Py_RETURN_FALSE;
    PyObject *entries = rebuilt(record->entries, NULL, index);
    if (!entries)
        return NULL;
    set_entries(record, entries);
    Py_RETURN_TRUE;
}

static PyObject *record_clear_entries(PyObject *self, PyObject *Py_UNUSED(unused)) {
    PyObject *entries = PyTuple_New(0);
    if (!entries)
        return NULL;
    set_entries((CodeRecord *)self, entries);
    Py_RETURN_NONE;
}

enum { RECORD_STATES = 4 };
static const char *const state_names[RECORD_STATES] = {"active", "full", "plain", "disabled"};

static PyObject *record_state(PyObject *self, void *Py_UNUSED(closure)) {
    return PyUnicode_InternFromString(state_names[((CodeRecord *)self)->state]);
}

static int record_set_state(PyObject *self, PyObject *value, void *Py_UNUSED(closure)) {
    for (int i = 0; value && PyUnicode_Check(value) && i < RECORD_STATES; i++)
        if (!PyUnicode_CompareWithASCIIString(value, state_names[i])) {
            ((CodeRecord *)self)->state = (RecordState)i;
            return 0;
        }
    PyErr_SetString(PyExc_ValueError, "the state of a record is \"active\", \"full\", \"plain\" or \"disabled\"");
    return -1;
}

static PyMemberDef record_members[] = {
    {"entries", T_OBJECT, offsetof(CodeRecord, entries), READONLY, "Tuple of entries, most recently hit first."},
    {"data", T_OBJECT, offsetof(CodeRecord, data), 0, "Belongs to the host."},
    {"hits", T_ULONGLONG, offsetof(CodeRecord, hits), READONLY, "Calls served by an entry."},
    {"misses", T_ULONGLONG, offsetof(CodeRecord, misses), READONLY, "Calls that asked the host for an entry."},
    {"rejected", T_ULONGLONG, offsetof(CodeRecord, rejected), READONLY,
     "Entries from the host whose guards failed on the very call they were made for."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef record_getset[] = {
    {"state", record_state, record_set_state, "\"active\"; \"full\": a miss runs the original; \"plain\" or \"disabled\": every call does.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef record_methods[] = {
    {"remove", record_remove, METH_O, "remove(entry) -> bool: forget one entry; calls that run it finish."},
    {"clear", record_clear_entries, METH_NOARGS, "clear(): forget all entries."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject CodeRecordType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.CodeRecord",
    .tp_doc = "CodeRecord(data=None): entries and counters shared by all functions of one code object.",
    .tp_basicsize = sizeof(CodeRecord),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = record_new,
    .tp_dealloc = record_dealloc,
    .tp_traverse = record_traverse,
    .tp_clear = record_clear,
    .tp_members = record_members,
    .tp_getset = record_getset,
    .tp_methods = record_methods,
    .tp_weaklistoffset = offsetof(CodeRecord, weak_references),
};
