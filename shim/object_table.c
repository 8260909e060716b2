/* Numbers for the live objects of one compile, and the queue of those that the compiler is to be told of. Descriptions
 * of plain containers and of plain instances, of which a tree of modules has thousands, are written here; a method of the
 * Python class writes all others (docs/contracts.md, section 2). */
#include "shim.h"

#include <string.h>
#include <structmember.h>

/* Numbers by address: linear probing, at most half full; a key of NULL is free. */
typedef struct AddressMap {
    const void **keys;
    int32_t *numbers;
    size_t capacity, count; /* capacity is a power of two, or 0 */
} AddressMap;

typedef struct Waiting {
    int32_t number, depth;
} Waiting;

typedef struct ObjectTable {
    PyObject_HEAD
    PyObject *objects; /* list, by number; the first is None. It keeps the objects alive, so that addresses stay theirs */
    PyObject *plain;   /* dict: class -> (kind, least depth, depth that one uses up, names of what is only mentioned) */
    PyObject *ordered; /* collections.OrderedDict */
    AddressMap numbers, owners;
    Py_ssize_t *places; /* by number: one more than the place in the queue; 0: not described */
    Py_ssize_t places_size;
    Waiting *queue;
    Py_ssize_t first, end, queue_size;
} ObjectTable;

enum { LONGEST = 16384, FIRST_CAPACITY = 256 };

static size_t map_place(const AddressMap *map, const void *key) {
    size_t mask = map->capacity - 1, place = (size_t)(((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (map->keys[place] && map->keys[place] != key)
        place = (place + 1) & mask;
    return place;
}

/* 0: not there. */
static int32_t map_get(const AddressMap *map, const void *key) {
    if (!map->capacity)
        return 0;
    size_t place = map_place(map, key);
    return map->keys[place] ? map->numbers[place] : 0;
}

static void map_free(AddressMap *map) {
    PyMem_Free(map->keys);
    PyMem_Free(map->numbers);
    memset(map, 0, sizeof *map);
}

static int map_grow(AddressMap *map) {
    AddressMap larger = {.capacity = map->capacity ? 2 * map->capacity : FIRST_CAPACITY, .count = map->count};
    larger.keys = PyMem_Calloc(larger.capacity, sizeof *larger.keys);
    larger.numbers = PyMem_Calloc(larger.capacity, sizeof *larger.numbers);
    if (!larger.keys || !larger.numbers) {
        map_free(&larger);
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < map->capacity; i++)
        if (map->keys[i]) {
            size_t place = map_place(&larger, map->keys[i]);
            larger.keys[place] = map->keys[i];
            larger.numbers[place] = map->numbers[i];
        }
    map_free(map);
    *map = larger;
    return 0;
}

static int map_set(AddressMap *map, const void *key, int32_t number) {
    if (2 * (map->count + 1) > map->capacity && map_grow(map))
        return -1;
    size_t place = map_place(map, key);
    map->count += !map->keys[place];
    map->keys[place] = key;
    map->numbers[place] = number;
    return 0;
}

/* The number of an object, new or known; -1 and an exception. */
static int32_t identify(ObjectTable *table, PyObject *object) {
    int32_t known = map_get(&table->numbers, object);
    if (known)
        return known;
    Py_ssize_t number = PyList_GET_SIZE(table->objects);
    if (number >= INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "too many objects");
        return -1;
    }
    if (map_set(&table->numbers, object, (int32_t)number) || PyList_Append(table->objects, object))
        return -1;
    return (int32_t)number;
}

static bool is_constant(PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    return value == Py_None || value == Py_Ellipsis || type == &PyUnicode_Type || type == &PyLong_Type ||
           type == &PyBool_Type || type == &PyFloat_Type || type == &PyBytes_Type || type == &PyComplex_Type;
}

/* The place of a number in the queue, in memory that reaches so far; NULL and an exception. */
static Py_ssize_t *place_of(ObjectTable *table, int32_t number) {
    if (number >= table->places_size) {
        Py_ssize_t size = 2 * ((Py_ssize_t)number + FIRST_CAPACITY);
        Py_ssize_t *larger = PyMem_Realloc(table->places, (size_t)size * sizeof *larger);
        if (!larger) {
            PyErr_NoMemory();
            return NULL;
        }
        memset(larger + table->places_size, 0, (size_t)(size - table->places_size) * sizeof *larger);
        table->places = larger;
        table->places_size = size;
    }
    return &table->places[number];
}

/* One that still waits gets the levels of whoever leaves it most: a module's attributes may be mentioned first by a
 * wrapper that copied them. */
static void deepen(ObjectTable *table, Py_ssize_t place, int32_t number, long depth) {
    if (place >= table->first && place < table->end && table->queue[place].number == number &&
        table->queue[place].depth < depth)
        table->queue[place].depth = (int32_t)depth;
}

static int append_waiting(ObjectTable *table, Waiting waiting) {
    if (table->end == table->queue_size) {
        Py_ssize_t size = table->queue_size ? 2 * table->queue_size : FIRST_CAPACITY;
        Waiting *larger = PyMem_Realloc(table->queue, (size_t)size * sizeof *larger);
        if (!larger) {
            PyErr_NoMemory();
            return -1;
        }
        table->queue = larger;
        table->queue_size = size;
    }
    table->queue[table->end++] = waiting;
    return 0;
}

/* Queues an object that was not described, if levels of depth are left. */
static int enqueue(ObjectTable *table, int32_t number, long depth) {
    if (depth <= 0)
        return 0;
    Py_ssize_t *place = place_of(table, number);
    if (!place)
        return -1;
    if (*place) {
        deepen(table, *place - 1, number, depth);
        return 0;
    }
    *place = table->end + 1;
    return append_waiting(table, (Waiting){number, (int32_t)depth});
}

/* A new reference of the wire: a number, or a tuple that holds the constant; NULL and an exception. */
static PyObject *mention(ObjectTable *table, PyObject *value, long depth) {
    if (is_constant(value))
        return PyTuple_Pack(1, value);
    int32_t number = identify(table, value);
    return number < 0 || enqueue(table, number, depth) ? NULL : PyLong_FromLong(number);
}

/* The list of the mentions of an array of objects. */
static PyObject *mention_array(ObjectTable *table, PyObject *const *items, Py_ssize_t count, long depth) {
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *mentioned = mention(table, items[i], depth);
        if (mentioned)
            PyList_SET_ITEM(list, i, mentioned);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* Appends (first, second) and takes both references; -1 and an exception, also where one of them is NULL. */
static int append_pair(PyObject *list, PyObject *first, PyObject *second) {
    PyObject *pair = first && second ? PyTuple_Pack(2, first, second) : NULL;
    int status = pair ? PyList_Append(list, pair) : -1;
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(pair);
    return status;
}

/* Pairs of mentions of keys and values; None for a namespace of globals or one that is too long. */
static PyObject *dict_payload(ObjectTable *table, PyObject *dict, long depth) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (PyDict_GET_SIZE(dict) > LONGEST ||
        (PyDict_GetItemString(dict, "__name__") && PyDict_GetItemString(dict, "__builtins__")))
        return Py_NewRef(Py_None);
    PyObject *list = PyList_New(0);
    while (list && PyDict_Next(dict, &position, &key, &value)) {
        PyObject *first = mention(table, key, depth);
        if (append_pair(list, first, first ? mention(table, value, depth) : NULL))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *sequence_payload(ObjectTable *table, PyObject *sequence, long depth) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    if (count > LONGEST)
        return Py_NewRef(Py_None);
    return mention_array(table, PySequence_Fast_ITEMS(sequence), count, depth);
}

/* Names and mentions of attributes; what the names in `only_mentioned` hold is not described. */
static PyObject *named_payload(ObjectTable *table, PyObject *names, long depth, PyObject *only_mentioned) {
    PyObject *name, *value, *list = PyList_New(0);
    Py_ssize_t position = 0;
    while (list && PyDict_Next(names, &position, &name, &value)) {
        if (!PyUnicode_CheckExact(name))
            continue;
        int stub = PySet_Contains(only_mentioned, name);
        PyObject *mentioned = stub < 0 ? NULL : mention(table, value, stub ? 0 : depth);
        if (append_pair(list, Py_NewRef(name), mentioned))
            Py_CLEAR(list);
    }
    return list;
}

static int note_owner(ObjectTable *table, PyObject *dict, PyObject *object) {
    int32_t number = identify(table, object);
    return number < 0 ? -1 : map_set(&table->owners, dict, number);
}

/* An instance that is nothing but its attributes. */
static PyObject *instance_payload(ObjectTable *table, PyObject *object, long depth, PyObject *only_mentioned) {
    PyObject *attributes = instance_dict(object);
    if (attributes && !PyDict_CheckExact(attributes))
        Py_CLEAR(attributes);
    PyObject *named = attributes ? named_payload(table, attributes, depth, only_mentioned) : Py_NewRef(Py_None);
    PyObject *payload = named ? Py_BuildValue("{s:N,s:[]}", "dict", named, "slots") : NULL;
    if (payload && attributes) {
        int32_t own = map_get(&table->numbers, attributes);
        PyObject *number = own ? PyLong_FromLong(own) : NULL;
        if (note_owner(table, attributes, object) || (own && (!number || PyDict_SetItemString(payload, "fields", number))))
            Py_CLEAR(payload);
        Py_XDECREF(number);
    }
    Py_XDECREF(attributes);
    return payload;
}

/* (number, kind, number of the class, payload), which takes the reference to the payload, after which the class is
 * mentioned. */
static PyObject *description(ObjectTable *table, int32_t number, PyObject *kind, long depth, PyObject *payload) {
    PyObject *object = PyList_GET_ITEM(table->objects, number);
    PyObject *class_number = payload ? mention(table, (PyObject *)Py_TYPE(object), depth) : NULL;
    PyObject *made = class_number ? Py_BuildValue("(iOOO)", (int)number, kind, class_number, payload) : NULL;
    Py_XDECREF(class_number);
    Py_XDECREF(payload);
    return made;
}

static PyObject *simple_description(ObjectTable *table, int32_t number, const char *kind, long depth,
                                    PyObject *payload) {
    PyObject *name = PyUnicode_InternFromString(kind);
    PyObject *made = name ? description(table, number, name, depth, payload) : NULL;
    if (!name)
        Py_XDECREF(payload);
    Py_XDECREF(name);
    return made;
}

/* A dict that holds the attributes of an object that was described, or one by itself. */
static PyObject *describe_dict(ObjectTable *table, int32_t number, PyObject *dict, long depth) {
    int32_t owner = map_get(&table->owners, dict);
    if (!owner)
        return simple_description(table, number, "dict", depth - 1, dict_payload(table, dict, depth - 1));
    int32_t class_number = identify(table, (PyObject *)&PyDict_Type);
    return class_number < 0 ? NULL : Py_BuildValue("(isii)", (int)number, "fields", (int)class_number, (int)owner);
}

static PyObject *describe_plain(ObjectTable *table, int32_t number, PyObject *object, long depth, PyObject *row) {
    PyObject *kind = PyTuple_GET_ITEM(row, 0);
    long least = PyLong_AsLong(PyTuple_GET_ITEM(row, 1)), left = depth - PyLong_AsLong(PyTuple_GET_ITEM(row, 2));
    if (PyErr_Occurred())
        return NULL;
    PyObject *payload = instance_payload(table, object, left > least ? left : least, PyTuple_GET_ITEM(row, 3));
    return description(table, number, kind, left, payload);
}

/* Described here, or by the method `describe_one` of the Python class. */
static PyObject *describe(ObjectTable *table, int32_t number, long depth) {
    PyObject *object = PyList_GET_ITEM(table->objects, number);
    PyTypeObject *type = Py_TYPE(object);
    if (type == &PyDict_Type)
        return describe_dict(table, number, object, depth);
    if ((PyObject *)type == table->ordered && !PyDict_GET_SIZE(object))
        return simple_description(table, number, "dict", depth - 1, PyList_New(0));
    if (type == &PyTuple_Type || type == &PyList_Type)
        return simple_description(table, number, type == &PyTuple_Type ? "tuple" : "list", depth - 1,
                                  sequence_payload(table, object, depth - 1));
    PyObject *row = PyDict_GetItemWithError(table->plain, (PyObject *)type);
    if (row)
        return describe_plain(table, number, object, depth, row);
    return PyErr_Occurred() ? NULL : PyObject_CallMethod((PyObject *)table, "describe_one", "il", (int)number, depth);
}

/* The (number, depth) of those that wait, which count as not described again. */
static PyObject *take_rest(ObjectTable *table) {
    PyObject *rest = PyList_New(0);
    for (Py_ssize_t i = table->first; rest && i < table->end; i++) {
        Waiting waiting = table->queue[i];
        table->places[waiting.number] = 0;
        if (append_pair(rest, PyLong_FromLong(waiting.number), PyLong_FromLong(waiting.depth)))
            Py_CLEAR(rest);
    }
    table->first = table->end = 0;
    return rest;
}

static PyObject *table_write_queued(PyObject *self, PyObject *argument) {
    ObjectTable *table = (ObjectTable *)self;
    Py_ssize_t budget = PyLong_AsSsize_t(argument);
    PyObject *found = PyErr_Occurred() ? NULL : PyList_New(0);
    while (found && table->first < table->end && PyList_GET_SIZE(found) < budget) {
        Waiting next = table->queue[table->first++];
        bool there = next.number < PyList_GET_SIZE(table->objects); /* unless Python emptied the list meanwhile */
        PyObject *made = there ? describe(table, next.number, next.depth) : NULL;
        if (!there)
            PyErr_SetString(PyExc_LookupError, "the objects were released");
        if (!made || PyList_Append(found, made))
            Py_CLEAR(found);
        Py_XDECREF(made);
    }
    PyObject *rest = found ? take_rest(table) : NULL;
    PyObject *result = rest ? PyTuple_Pack(2, found, rest) : NULL;
    Py_XDECREF(found);
    Py_XDECREF(rest);
    return result;
}

static PyObject *table_identify(PyObject *self, PyObject *value) {
    int32_t number = identify((ObjectTable *)self, value);
    return number < 0 ? NULL : PyLong_FromLong(number);
}

static PyObject *table_reference(PyObject *self, PyObject *value) {
    return mention((ObjectTable *)self, value, 0);
}

static PyObject *table_mention(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    long depth = count == 2 ? PyLong_AsLong(args[1]) : -1;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "mention takes a value and a depth");
    return depth == -1 && PyErr_Occurred() ? NULL : mention((ObjectTable *)self, args[0], depth);
}

static PyObject *table_mention_all(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    long depth = count == 2 ? PyLong_AsLong(args[1]) : -1;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "mention_all takes values and a depth");
    PyObject *values = depth == -1 && PyErr_Occurred() ? NULL : PySequence_Fast(args[0], "values must be iterable");
    if (!values)
        return NULL;
    PyObject *list = mention_array((ObjectTable *)self, PySequence_Fast_ITEMS(values), PySequence_Fast_GET_SIZE(values), depth);
    Py_DECREF(values);
    return list;
}

static PyObject *table_enqueue(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    ObjectTable *table = (ObjectTable *)self;
    long number = count == 2 ? PyLong_AsLong(args[0]) : -1, depth = count == 2 ? PyLong_AsLong(args[1]) : -1;
    if (PyErr_Occurred())
        return NULL;
    if (count != 2 || number <= 0 || number >= PyList_GET_SIZE(table->objects))
        return PyErr_Format(PyExc_LookupError, "there is no object %ld", number);
    return enqueue(table, (int32_t)number, depth) ? NULL : Py_NewRef(Py_None);
}

static PyObject *table_forget_description(PyObject *self, PyObject *argument) {
    ObjectTable *table = (ObjectTable *)self;
    long number = PyLong_AsLong(argument);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    if (number > 0 && number < table->places_size)
        table->places[number] = 0;
    Py_RETURN_NONE;
}

static PyObject *table_own(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    ObjectTable *table = (ObjectTable *)self;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "own takes a dict and an object");
    if (note_owner(table, args[0], args[1]))
        return NULL;
    int32_t number = map_get(&table->numbers, args[0]);
    return number ? PyLong_FromLong(number) : Py_NewRef(Py_None);
}

static PyObject *table_release(PyObject *self, PyObject *Py_UNUSED(ignored)) {
    ObjectTable *table = (ObjectTable *)self;
    map_free(&table->numbers);
    map_free(&table->owners);
    table->first = table->end = 0;
    return PyList_SetSlice(table->objects, 0, PY_SSIZE_T_MAX, NULL) ? NULL : Py_NewRef(Py_None);
}

static PyObject *table_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(keywords)) {
    ObjectTable *table = (ObjectTable *)type->tp_alloc(type, 0);
    PyObject *collections = table ? PyImport_ImportModule("collections") : NULL;
    if (!collections) {
        Py_XDECREF(table);
        return NULL;
    }
    table->ordered = PyObject_GetAttrString(collections, "OrderedDict");
    table->plain = PyDict_New();
    table->objects = PyList_New(1);
    Py_DECREF(collections);
    if (table->objects)
        PyList_SET_ITEM(table->objects, 0, Py_NewRef(Py_None));
    if (!table->ordered || !table->plain || !table->objects)
        Py_CLEAR(table);
    return (PyObject *)table;
}

static int table_traverse(PyObject *self, visitproc visit, void *arg) {
    ObjectTable *table = (ObjectTable *)self;
    Py_VISIT(table->objects);
    Py_VISIT(table->plain);
    Py_VISIT(table->ordered);
    return 0;
}

static int table_clear(PyObject *self) {
    ObjectTable *table = (ObjectTable *)self;
    if (table->objects)
        PyList_SetSlice(table->objects, 0, PY_SSIZE_T_MAX, NULL);
    if (table->plain)
        PyDict_Clear(table->plain);
    map_free(&table->numbers);
    map_free(&table->owners);
    return 0;
}

static void table_dealloc(PyObject *self) {
    ObjectTable *table = (ObjectTable *)self;
    PyObject_GC_UnTrack(self);
    map_free(&table->numbers);
    map_free(&table->owners);
    PyMem_Free(table->places);
    PyMem_Free(table->queue);
    Py_CLEAR(table->objects);
    Py_CLEAR(table->plain);
    Py_CLEAR(table->ordered);
    Py_TYPE(self)->tp_free(self);
}

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef table_methods[] = {
    {"identify", table_identify, METH_O, "The id of a live object, new or known."},
    {"reference", table_reference, METH_O, "An id, or a tuple of the value itself if its exact type is that of a constant."},
    {"mention", FAST(table_mention), "mention(value, depth): a reference to what is described in its turn, if levels are left."},
    {"mention_all", FAST(table_mention_all), "mention_all(values, depth): the list of the references to them."},
    {"enqueue", FAST(table_enqueue), "enqueue(id, depth): describe an object that was not described, if levels are left."},
    {"forget_description", table_forget_description, METH_O, "Describe an object again when it is mentioned."},
    {"own", FAST(table_own), "own(dict, object): note whose attributes a dict holds; the dict's id where it has one."},
    {"write_queued", table_write_queued, METH_O,
     "write_queued(budget): descriptions of so many that wait, and the (id, depth) of those that there was no room for."},
    {"release", table_release, METH_NOARGS, "Let the objects go: the compile is over."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef table_members[] = {
    {"objects", T_OBJECT_EX, offsetof(ObjectTable, objects), READONLY, "The objects by id; the first is None."},
    {"plain", T_OBJECT_EX, offsetof(ObjectTable, plain), READONLY,
     "Classes whose instances are nothing but their attributes: (kind, least depth, depth that one uses up, frozenset of "
     "the names of what is only mentioned)."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject ObjectTableType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.ObjectTable",
    .tp_doc = "Ids of the live objects of one compile, and descriptions of the plain ones; a subclass describes the others.",
    .tp_basicsize = sizeof(ObjectTable),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = table_new,
    .tp_dealloc = table_dealloc,
    .tp_traverse = table_traverse,
    .tp_clear = table_clear,
    .tp_methods = table_methods,
    .tp_members = table_members,
};
