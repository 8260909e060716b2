/* The short form of a guard program that has held: a list of pointers to look at again.
 *
 * A dict whose version tag has not changed holds the same objects, so the values that hang below it are known without a
 * lookup, and what is left of a module tree is one comparison per object, dict and tensor. The watches stand in the order
 * of the tree: each pointer is followed only after the watches of the containers that keep its object alive have held.
 * For the same reason no watch runs Python code. An object may have died and another one be at its address, so identity
 * settles nothing but what concerns identity; constants that were compared by value are held. Where a watch fails, the
 * whole program runs. */
#include "guard.h"

#include <string.h>

typedef enum WatchKind {
    WATCH_NODES, /* these nodes of the program run as they are */
    WATCH_ARGUMENT, /* the bound argument is still `object` */
    WATCH_FREE_VARIABLE,
    WATCH_GLOBALS, /* the function's globals are still `other`, and unchanged */
    WATCH_VALUE, /* only the type of `object` */
    WATCH_FIELDS, /* `object` still has the instance dict `other`, unchanged */
    WATCH_INLINE, /* the field at `index` among the inline values of `object` is still `other` */
    WATCH_DICT, /* `object` is unchanged */
    WATCH_ITEM, /* the item at `index` of the list or tuple `object` is still `other` */
    WATCH_CELL, /* the cell `object` still holds `other` */
    WATCH_TENSOR,
    WATCH_CHECK, /* a check that the value's identity does not settle */
} WatchKind;

typedef struct Watch {
    WatchKind kind;
    int32_t capture; /* that `object` goes to, -1: none */
    int32_t first_fact, end_fact;
    PyObject *object; /* borrowed, like all pointers here: an earlier watch has shown that it lives */
    PyTypeObject *type; /* of `object`; NULL: not looked at */
    PyObject *other;
    void *slot; /* where `object` keeps its instance dict or its inline values */
    union {
        uint64_t version;
        TensorCheck *tensor;
        GuardCheck *check;
        Py_ssize_t index;
        Py_ssize_t end_node; /* of WATCH_NODES, which starts at `first_fact`, below the node `end_fact`, whose value is `object` */
    };
} Watch;

typedef enum FactKind { FACT_VALUE, FACT_ABSENT, FACT_ITEM_AT, FACT_LENGTH, FACT_KEYS } FactKind;

/* What the program asked of a dict. When the dict's version changes, its facts alone are looked up again. */
typedef struct Fact {
    FactKind kind;
    PyObject *key;
    PyObject *value;
    Py_ssize_t index;
    GuardCheck *check;
} Fact;

struct WatchList {
    Watch *watches;
    Fact *facts;
    PyObject **constants; /* strong; of types that refer to nothing else */
    Py_ssize_t watch_count, watch_room, fact_count, fact_room, constant_count, constant_room;
};

/* ---- running ---- */

static bool fact_holds(GuardRun *run, const Fact *fact, PyObject *dict) {
    switch (fact->kind) {
    case FACT_VALUE:
    case FACT_ABSENT:
        return dict_lookup_runs_no_code(dict, fact->key) && PyDict_GetItemWithError(dict, fact->key) == fact->value &&
               !PyErr_Occurred();
    case FACT_ITEM_AT:
        return dict_item_at(dict, fact->index) == fact->value;
    case FACT_LENGTH:
        return PyDict_GET_SIZE(dict) == fact->index;
    case FACT_KEYS:
        return guard_check_holds(run, fact->check, dict);
    }
    return false;
}

static bool is_unchanged(GuardRun *run, Watch *watch, PyObject *dict) {
    if (dict_version(dict) == watch->version)
        return true;
    const WatchList *list = run->program->watches;
    for (Py_ssize_t i = watch->first_fact; i < watch->end_fact; i++)
        if (!fact_holds(run, &list->facts[i], dict))
            return false;
    watch->version = dict_version(dict);
    return true;
}

static bool nodes_hold(GuardRun *run, const Watch *watch) {
    if (watch->object)
        run->values[watch->end_fact] = watch->object;
    for (Py_ssize_t i = watch->first_fact; i < watch->end_node; i++)
        if (!guard_node_holds(run, i))
            return false;
    return true;
}

static inline bool watch_holds(GuardRun *run, Watch *watch) {
    switch (watch->kind) {
    case WATCH_NODES:
        return nodes_hold(run, watch);
    case WATCH_ARGUMENT:
        return watch->index < run->bound_count && run->bound[watch->index] == watch->object;
    case WATCH_FREE_VARIABLE:
        return free_variable(run->function, watch->index) == watch->object;
    case WATCH_GLOBALS:
        return run->function->func_globals == watch->other && is_unchanged(run, watch, watch->other);
    case WATCH_VALUE:
        return true;
    case WATCH_FIELDS:
        return *(PyObject **)watch->slot == watch->other && is_unchanged(run, watch, watch->other);
    case WATCH_INLINE:
        return instance_inline_value(watch->object, watch->index) == watch->other;
    case WATCH_DICT:
        return is_unchanged(run, watch, watch->object);
    case WATCH_ITEM:
        return sequence_item(watch->object, watch->index) == watch->other;
    case WATCH_CELL:
        return PyCell_GET(watch->object) == watch->other;
    case WATCH_TENSOR:
        return tensor_check_holds(watch->tensor, watch->object);
    case WATCH_CHECK:
        return guard_check_holds(run, watch->check, watch->object);
    }
    return false;
}

bool watches_hold(GuardRun *run) {
    WatchList *list = run->program->watches;
    for (Watch *watch = list->watches, *end = watch + list->watch_count; watch < end; watch++) {
        if (watch->type && Py_TYPE(watch->object) != watch->type)
            return false;
        if (!watch_holds(run, watch))
            return false;
        if (watch->capture >= 0)
            run->captures[watch->capture] = watch->object;
    }
    if (run->program->patience > 1)
        run->program->patience--;
    return true;
}

/* ---- making ---- */

static void *room_for_one(void *array, Py_ssize_t count, Py_ssize_t *room, size_t size) {
    if (count < *room)
        return array;
    Py_ssize_t wanted = *room ? *room * 2 : 16;
    void *larger = PyMem_Realloc(array, (size_t)wanted * size);
    if (larger)
        *room = wanted;
    return larger;
}

static bool add_watch(WatchList *list, Watch watch) {
    void *array = room_for_one(list->watches, list->watch_count, &list->watch_room, sizeof watch);
    if (!array)
        return false;
    list->watches = array;
    list->watches[list->watch_count++] = watch;
    return true;
}

static bool add_fact(WatchList *list, Fact fact) {
    void *array = room_for_one(list->facts, list->fact_count, &list->fact_room, sizeof fact);
    if (!array)
        return false;
    list->facts = array;
    list->facts[list->fact_count++] = fact;
    return true;
}

static bool keep_constant(WatchList *list, PyObject *value) {
    void *array = room_for_one(list->constants, list->constant_count, &list->constant_room, sizeof value);
    if (!array)
        return false;
    list->constants = array;
    list->constants[list->constant_count++] = Py_NewRef(value);
    return true;
}

typedef struct Subject {
    GuardRun *run;
    WatchList *list;
    Py_ssize_t index, end; /* of the node, and behind the last node below it */
    const GuardNode *node;
    PyObject *value;
    PyTypeObject *type; /* that the program requires, or that can't go away; NULL: unknown */
    PyObject *dict; /* its instance dict, NULL where it has none or keeps its fields inline */
} Subject;

static Py_ssize_t end_of_tree(const GuardProgram *program, Py_ssize_t index) {
    Py_ssize_t end = index + 1;
    while (end < program->node_count && program->nodes[end].parent >= index)
        end++;
    return end;
}

/* A type that is only borrowed may be gone and another one be at its address: it must be one that the program keeps. */
static PyTypeObject *required_type(const GuardProgram *program, const GuardNode *node, PyObject *value) {
    for (Py_ssize_t i = node->first_check; i < node->end_check; i++)
        if (program->checks[i].kind == CHECK_TYPE)
            return Py_TYPE(value);
    return Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE ? NULL : Py_TYPE(value);
}

static Subject subject_at(GuardRun *run, WatchList *list, Py_ssize_t index, Py_ssize_t end) {
    GuardProgram *program = run->program;
    const GuardNode *node = &program->nodes[index];
    PyObject *value = run->values[index];
    PyObject **slot = instance_dict_slot(value);
    return (Subject){.run = run, .list = list, .index = index, .end = end, .node = node, .value = value,
                     .type = required_type(program, node, value),
                     .dict = slot && *slot && PyDict_Check(*slot) ? *slot : NULL};
}

static Watch watch_of(const Subject *subject, WatchKind kind) {
    return (Watch){.kind = kind, .capture = -1, .object = subject->value, .type = subject->type};
}

/* The facts that the node's checks of one kind ask of a dict. */
static bool add_facts_of_checks(const Subject *subject, CheckKind asked, FactKind kind) {
    for (Py_ssize_t i = subject->node->first_check; i < subject->node->end_check; i++) {
        GuardCheck *check = &subject->run->program->checks[i];
        Fact fact = {.kind = kind, .key = check->operand, .index = check->low, .check = check};
        if (check->kind == asked && !add_fact(subject->list, fact))
            return false;
    }
    return true;
}

/* The facts that the lookups of the nodes right below with one accessor ask of a dict. */
static bool add_facts_of_children(const Subject *subject, Accessor accessor, FactKind kind) {
    for (Py_ssize_t i = subject->index + 1; i < subject->end; i++) {
        const GuardNode *child = &subject->run->program->nodes[i];
        Fact fact = {.kind = kind, .key = child->operand, .value = subject->run->values[i], .index = child->index};
        if (child->parent == subject->index && child->accessor == accessor && !add_fact(subject->list, fact))
            return false;
    }
    return true;
}

static bool has_child(const Subject *subject, Accessor accessor) {
    for (Py_ssize_t i = subject->index + 1; i < subject->end; i++) {
        const GuardNode *child = &subject->run->program->nodes[i];
        if (child->parent == subject->index && child->accessor == accessor)
            return true;
    }
    return false;
}

static bool add_dict_watch(const Subject *subject, Watch watch, PyObject *dict, Py_ssize_t first_fact) {
    watch.first_fact = (int32_t)first_fact;
    watch.end_fact = (int32_t)subject->list->fact_count;
    watch.version = dict_version(dict);
    return add_watch(subject->list, watch);
}

/* One watch on the value's own instance dict, if the program reads fields that are in it. */
static bool watch_fields(const Subject *subject) {
    WatchList *list = subject->list;
    Py_ssize_t first = list->fact_count;
    if (!subject->dict)
        return !has_child(subject, ACCESS_DICT);
    if (!add_facts_of_children(subject, ACCESS_FIELD, FACT_VALUE) ||
        !add_facts_of_checks(subject, CHECK_NO_FIELD, FACT_ABSENT))
        return false;
    if (list->fact_count == first && !has_child(subject, ACCESS_DICT))
        return true;
    if (!subject->type)
        return false;
    Watch watch = watch_of(subject, WATCH_FIELDS);
    watch.other = subject->dict;
    watch.slot = instance_dict_slot(subject->value);
    return add_dict_watch(subject, watch, subject->dict, first);
}

/* One watch on the value as a dict, if the program reads its items. */
static bool watch_items(const Subject *subject) {
    WatchList *list = subject->list;
    Py_ssize_t first = list->fact_count;
    if (!PyDict_Check(subject->value))
        return true;
    if (!add_facts_of_children(subject, ACCESS_KEY, FACT_VALUE) ||
        !add_facts_of_children(subject, ACCESS_ITEM_AT, FACT_ITEM_AT) ||
        !add_facts_of_checks(subject, CHECK_ABSENT, FACT_ABSENT) ||
        !add_facts_of_checks(subject, CHECK_KEYS, FACT_KEYS) ||
        !add_facts_of_checks(subject, CHECK_LENGTH, FACT_LENGTH))
        return false;
    if (list->fact_count == first)
        return true;
    return subject->type && add_dict_watch(subject, watch_of(subject, WATCH_DICT), subject->value, first);
}

static bool watch_check(const Subject *subject, GuardCheck *check) {
    Watch watch = watch_of(subject, check->kind == CHECK_TENSOR ? WATCH_TENSOR : WATCH_CHECK);
    switch (check->kind) {
    case CHECK_TYPE: /* every watch has it */
    case CHECK_IS: /* the program keeps the object */
    case CHECK_FOUND:
    case CHECK_KEYS:
    case CHECK_ABSENT:
        return true;
    case CHECK_EQUALS:
        return keep_constant(subject->list, subject->value);
    case CHECK_NO_ATTRIBUTE:
    case CHECK_PREDICATE:
        return false;
    case CHECK_NO_FIELD:
        if (subject->dict)
            return true;
        break;
    case CHECK_LENGTH:
        if (PyDict_Check(subject->value))
            return true; /* among its facts */
        break;
    case CHECK_TENSOR:
        watch.tensor = check->tensor;
        watch.type = NULL; /* the check compares it */
        return add_watch(subject->list, watch);
    case CHECK_MEMBERS:
    case CHECK_CONTAINS:
    case CHECK_LACKS:
    case CHECK_MEMBER:
    case CHECK_NO_MEMBER:
    case CHECK_RANGE:
    case CHECK_FLOAT:
    case CHECK_HOLDS:
    case CHECK_SAME:
    case CHECK_DISTINCT:
    case CHECK_APART:
        break;
    }
    watch.check = check;
    return add_watch(subject->list, watch);
}

/* The object at this address can be no other one, since somebody keeps it. */
static bool has_settled_value(const Subject *subject) {
    for (Py_ssize_t i = subject->node->first_check; i < subject->node->end_check; i++) {
        CheckKind kind = subject->run->program->checks[i].kind;
        if (kind == CHECK_IS || kind == CHECK_EQUALS)
            return true;
    }
    return subject->node->accessor == ACCESS_OBJECT;
}

/* What must hold of the value, once it is known to be the same object. */
static bool watch_value(const Subject *subject) {
    WatchList *list = subject->list;
    const GuardNode *node = subject->node;
    Py_ssize_t first = list->watch_count;
    if (!watch_fields(subject) || !watch_items(subject))
        return false;
    for (Py_ssize_t i = node->first_check; i < node->end_check; i++)
        if (!watch_check(subject, &subject->run->program->checks[i]))
            return false;
    bool needs_one = node->capture >= 0 || (subject->type && !has_settled_value(subject));
    if (needs_one && list->watch_count == first && !add_watch(list, watch_of(subject, WATCH_VALUE)))
        return false;
    if (node->capture >= 0)
        list->watches[list->watch_count - 1].capture = node->capture;
    return true;
}

static bool watch_global(const Subject *subject) {
    PyObject *globals = subject->run->function->func_globals;
    Py_ssize_t first = subject->list->fact_count;
    if (subject->node->second_version) /* found among the builtins */
        return false;
    Fact fact = {.kind = FACT_VALUE, .key = subject->node->operand, .value = subject->value};
    Watch watch = {.kind = WATCH_GLOBALS, .capture = -1, .other = globals};
    return add_fact(subject->list, fact) && add_dict_watch(subject, watch, globals, first);
}

static bool watch_field(const Subject *subject, const Subject *parent) {
    if (parent->dict)
        return true; /* among the facts of its dict */
    Py_ssize_t index = instance_inline_index(parent->value, subject->node->operand);
    if (index < 0 || !parent->type)
        return false;
    Watch watch = watch_of(parent, WATCH_INLINE);
    watch.other = subject->value;
    watch.index = index;
    return add_watch(subject->list, watch);
}

static bool watch_item(const Subject *subject, const Subject *parent) {
    if (!PyTuple_Check(parent->value) && !PyList_Check(parent->value))
        return false; /* a deque */
    Watch watch = watch_of(parent, WATCH_ITEM);
    watch.other = subject->value;
    watch.index = subject->node->index;
    return parent->type && add_watch(subject->list, watch);
}

/* That the node still gives the same object. */
static bool watch_identity(const Subject *subject, const Subject *parent) {
    Watch watch = {.capture = -1, .object = subject->value, .index = subject->node->index};
    switch (subject->node->accessor) {
    case ACCESS_ARGUMENT:
        watch.kind = WATCH_ARGUMENT;
        return add_watch(subject->list, watch);
    case ACCESS_CELL:
        watch.kind = WATCH_FREE_VARIABLE;
        return add_watch(subject->list, watch);
    case ACCESS_GLOBAL:
        return watch_global(subject);
    case ACCESS_OBJECT:
        return true;
    case ACCESS_FIELD:
        return watch_field(subject, parent);
    case ACCESS_DICT:
        return parent->dict == subject->value;
    case ACCESS_KEY:
    case ACCESS_ITEM_AT:
        return true; /* among the facts of the dict */
    case ACCESS_ITEM:
        return watch_item(subject, parent);
    case ACCESS_CONTENTS:
        watch = watch_of(parent, WATCH_CELL);
        watch.other = subject->value;
        return parent->type && add_watch(subject->list, watch);
    case ACCESS_FUNCTION:
    case ACCESS_HANDLED:
    case ACCESS_ATTRIBUTE:
    case ACCESS_TYPE:
    case ACCESS_VIEWED:
    case ACCESS_PROGRESS:
    case ACCESS_SUBCLASSES:
        return false;
    }
    return false;
}

static bool watch_node(GuardRun *run, WatchList *list, Py_ssize_t index) {
    int32_t parent = run->program->nodes[index].parent;
    Subject subject = subject_at(run, list, index, end_of_tree(run->program, index));
    Subject above = parent >= 0 ? subject_at(run, list, parent, 0) : subject;
    return watch_identity(&subject, &above) && watch_value(&subject);
}

/* Objects with fields and dicts tend to be the same at the next call; tensors, numbers and lists of them do not. */
static bool is_worth_watching(const GuardProgram *program, Py_ssize_t root, Py_ssize_t end) {
    if (program->nodes[root].accessor != ACCESS_ARGUMENT)
        return true;
    for (Py_ssize_t i = root + 1; i < end; i++)
        if (program->nodes[i].accessor == ACCESS_FIELD)
            return true;
    return false;
}

/* The nodes from `first` on run as they are; what they hang below is known by then. */
static bool run_nodes(GuardRun *run, WatchList *list, Py_ssize_t first, Py_ssize_t end) {
    int32_t parent = run->program->nodes[first].parent;
    return add_watch(list, (Watch){.kind = WATCH_NODES, .capture = -1, .first_fact = (int32_t)first, .end_node = end,
                                   .end_fact = parent, .object = parent >= 0 ? run->values[parent] : NULL});
}

static bool watch_tree(GuardRun *run, WatchList *list, Py_ssize_t root, Py_ssize_t end) {
    if (!is_worth_watching(run->program, root, end))
        return run_nodes(run, list, root, end);
    for (Py_ssize_t i = root; i < end; i++) {
        Py_ssize_t watches = list->watch_count, facts = list->fact_count;
        if (watch_node(run, list, i))
            continue;
        list->watch_count = watches;
        list->fact_count = facts;
        Py_ssize_t below = end_of_tree(run->program, i);
        if (!run_nodes(run, list, i, below))
            return false;
        i = below - 1;
    }
    return true;
}

static bool may_run_code(const GuardRun *run) {
    const GuardProgram *program = run->program;
    for (Py_ssize_t i = program->first_node; i < program->node_count; i++) {
        const GuardNode *node = &program->nodes[i];
        if (node->accessor == ACCESS_ATTRIBUTE && !attribute_runs_no_code(node, run->values[node->parent]))
            return true;
    }
    for (Py_ssize_t i = 0; i < program->check_count; i++)
        if (program->checks[i].kind == CHECK_NO_ATTRIBUTE || program->checks[i].kind == CHECK_PREDICATE)
            return true;
    return false;
}

enum { LONGEST_PATIENCE = 1 << 12, FEWEST_NODES = 4 };

/* After a run that held: its values are those to watch. Where watches keep failing, ever more runs pass between two
 * attempts, so that they cost little. */
void watches_made(GuardRun *run) {
    GuardProgram *program = run->program;
    if (program->runs_until_watched-- > 0 || program->node_count - program->first_node < FEWEST_NODES)
        return;
    program->patience = program->patience < LONGEST_PATIENCE ? program->patience * 2 + 1 : LONGEST_PATIENCE;
    program->runs_until_watched = program->patience;
    watches_free(program);
    WatchList *list = may_run_code(run) ? NULL : PyMem_Calloc(1, sizeof *list);
    if (!list)
        return;
    program->watches = list;
    for (Py_ssize_t i = program->first_node, end; i < program->node_count; i = end) {
        end = end_of_tree(program, i);
        if (watch_tree(run, list, i, end))
            continue;
        watches_free(program); /* no memory: the program runs without them */
        return;
    }
}

void watches_free(GuardProgram *program) {
    if (!program->watches)
        return;
    for (Py_ssize_t i = 0; i < program->watches->constant_count; i++)
        Py_DECREF(program->watches->constants[i]);
    PyMem_Free(program->watches->constants);
    PyMem_Free(program->watches->watches);
    PyMem_Free(program->watches->facts);
    PyMem_Free(program->watches);
    program->watches = NULL;
}
