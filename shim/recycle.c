/* Small outputs on the CPU are used again once nothing else holds them, which saves making a tensor and its Python
 * object: about 350 of the 450 ns that a new output costs.
 *
 * "Nothing else holds it" means more than the reference count of the Python object: every word of the tensor, of its
 * storage and its version must be as it was when the output was made, so that views, saved tensors, in-place changes,
 * hooks, attributes and weak references all keep an output from being used again. What a caller can still notice is that
 * an output it dropped may live until the next calls. */
#include "recycle.h"

#include <string.h>

typedef struct RecycleLayout {
    bool known;
    Py_ssize_t storage, counter; /* pointers inside a TensorImpl */
    Py_ssize_t version; /* a 32-bit number inside the version counter */
    uint64_t sole_tensor, sole_storage; /* second words of a TensorImpl and a StorageImpl that have one owner */
} RecycleLayout;

static RecycleLayout layout;

enum { MOST_TENSOR_BYTES = 256, MOST_STORAGE_BYTES = 128, COUNTER_BYTES = 24 };

typedef struct Snapshot {
    PyObject *object; /* strong; NULL: empty */
    uint64_t included, excluded; /* dispatch keys it was made under */
    uint32_t version;
    Py_ssize_t tensor_length, storage_length;
    unsigned char tensor[MOST_TENSOR_BYTES];
    unsigned char storage[MOST_STORAGE_BYTES];
} Snapshot;

enum { KEPT = 2 }; /* a caller often holds the last output while it asks for the next */

struct Recycler {
    Snapshot kept[KEPT];
    int next;
};

/* ---- where to look ---- */

static PyObject *run_probe(const char *source, PyObject *argument) {
    PyObject *names = PyDict_New();
    PyObject *done = names ? PyRun_String(source, Py_file_input, names, names) : NULL;
    PyObject *result = done ? PyObject_CallOneArg(PyDict_GetItemString(names, "probe"), argument) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(names);
    return result;
}

static const char *implementation_of(PyObject *tensor) {
    return *(const char **)handle_of(tensor);
}

static uint64_t word_at(const void *base, Py_ssize_t offset) {
    uint64_t word;
    memcpy(&word, (const char *)base + offset, sizeof word);
    return word;
}

/* The only word that a tensor shares with its detached copy but not with another tensor, and that is `expected` unless
 * that is 0; `skip` is left out. */
static Py_ssize_t shared_word(const char *tensor, const char *copy, const char *other, uint64_t expected,
                              Py_ssize_t skip) {
    Py_ssize_t found = -1, length = implementation_bytes(tensor);
    for (Py_ssize_t offset = 8; offset + 8 <= length; offset += 8) {
        uint64_t word = word_at(tensor, offset);
        if (offset == skip || word == 0 || word != word_at(copy, offset) || word == word_at(other, offset) ||
            (expected && word != expected))
            continue;
        if (found >= 0)
            return -1;
        found = offset;
    }
    return found;
}

/* Where the counter's number is: the only 32 bits that an in-place operation raises by one. */
static Py_ssize_t find_version(const char *counter, PyObject *tensor) {
    unsigned char before[COUNTER_BYTES];
    Py_ssize_t found = -1;
    if (implementation_bytes(counter) < COUNTER_BYTES)
        return -1;
    memcpy(before, counter, sizeof before);
    PyObject *result = PyObject_CallMethod(tensor, "zero_", NULL);
    Py_XDECREF(result);
    for (Py_ssize_t offset = 8; result && offset + 4 <= COUNTER_BYTES; offset += 4) {
        uint32_t first, second;
        memcpy(&first, before + offset, sizeof first);
        memcpy(&second, counter + offset, sizeof second);
        if (second == first)
            continue;
        if (found >= 0 || second != first + 1)
            return -1;
        found = offset;
    }
    return found;
}

static int find_in_probes(PyObject *probes, RecycleLayout *result) {
    PyObject *tensor = PyTuple_GET_ITEM(probes, 0);
    const char *first = implementation_of(tensor), *copy = implementation_of(PyTuple_GET_ITEM(probes, 1)),
               *other = implementation_of(PyTuple_GET_ITEM(probes, 2));
    uint64_t storage = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(probes, 3));
    if (PyErr_Occurred())
        return -1;
    result->storage = shared_word(first, copy, other, storage, -1);
    result->counter = result->storage > 0 ? shared_word(first, copy, other, 0, result->storage) : -1;
    if (result->counter < 0)
        return 0;
    result->version = find_version((const char *)(uintptr_t)word_at(first, result->counter), tensor);
    result->sole_tensor = word_at(other, 8);
    result->sole_storage = word_at((const void *)(uintptr_t)word_at(other, result->storage), 8);
    result->known = result->version > 0;
    return PyErr_Occurred() ? -1 : 0;
}

int recycle_calibrate(void) {
    static const char source[] = "def probe(torch):\n"
                                 "    tensor = torch.empty(4)\n"
                                 "    return tensor, tensor.detach(), torch.empty(4), tensor.untyped_storage()._cdata\n";
    layout = (RecycleLayout){0};
    if (!torch.direct)
        return 0;
    PyObject *probes = run_probe(source, torch.object.module);
    int status = probes ? find_in_probes(probes, &layout) : -1;
    Py_XDECREF(probes);
    return status;
}

bool recycle_is_possible(void) {
    return layout.known;
}

/* ---- snapshots ---- */

static Py_ssize_t at_most(Py_ssize_t value, Py_ssize_t limit) {
    return value < limit ? value : limit;
}

static const void *storage_of(const char *implementation) {
    return (const void *)(uintptr_t)word_at(implementation, layout.storage);
}

/* A tensor made in inference mode has no version counter. */
static bool has_version(const char *implementation) {
    return word_at(implementation, layout.counter) != 0;
}

static uint32_t version_of(const char *implementation) {
    uint32_t version;
    memcpy(&version, (const char *)(uintptr_t)word_at(implementation, layout.counter) + layout.version, sizeof version);
    return version;
}

/* No hooks and no weak references, which lie behind the handle, and no attributes. */
static bool is_bare(PyObject *tensor) {
    Py_ssize_t size = Py_TYPE(tensor)->tp_basicsize;
    for (Py_ssize_t offset = torch.handle_offset + 8; offset + 8 <= size; offset += 8)
        if (word_at(tensor, offset) != 0)
            return false;
    return Py_IS_TYPE(tensor, torch.object.tensor_type) && instance_is_bare(tensor);
}

static bool has_one_owner(const char *implementation) {
    return word_at(implementation, 8) == layout.sole_tensor && word_at(storage_of(implementation), 8) == layout.sole_storage;
}

static bool is_unchanged(const Snapshot *kept) {
    const char *implementation = implementation_of(kept->object);
    return !memcmp(implementation, kept->tensor, (size_t)kept->tensor_length) &&
           !memcmp(storage_of(implementation), kept->storage, (size_t)kept->storage_length) &&
           version_of(implementation) == kept->version && is_bare(kept->object);
}

static bool same_keys(const Snapshot *kept) {
    const uint64_t *keys = thread_dispatch_keys();
    return kept->included == keys[0] && kept->excluded == keys[1];
}

bool recycle_take(Recycler *recycler, Slot *slot) {
    for (int i = 0; i < KEPT; i++) {
        Snapshot *kept = &recycler->kept[i];
        if (!kept->object || Py_REFCNT(kept->object) != 1 || !same_keys(kept))
            continue;
        if (is_unchanged(kept)) {
            slot_adopt_object(slot, Py_NewRef(kept->object), true);
            return true;
        }
        Py_CLEAR(kept->object);
    }
    return false;
}

static bool is_kept(const Recycler *recycler, const PyObject *object) {
    for (int i = 0; i < KEPT; i++)
        if (recycler->kept[i].object == object)
            return true;
    return false;
}

void recycle_keep(Recycler *recycler, PyObject *object) {
    const char *implementation = implementation_of(object);
    if (is_kept(recycler, object) || !has_version(implementation) || !has_one_owner(implementation) || !is_bare(object))
        return;
    Snapshot *kept = &recycler->kept[recycler->next];
    recycler->next = (recycler->next + 1) % KEPT;
    const uint64_t *keys = thread_dispatch_keys();
    PyObject *dropped = kept->object;
    kept->object = Py_NewRef(object);
    kept->included = keys[0];
    kept->excluded = keys[1];
    kept->version = version_of(implementation);
    kept->tensor_length = at_most(implementation_bytes(implementation), MOST_TENSOR_BYTES);
    kept->storage_length = at_most(implementation_bytes(storage_of(implementation)), MOST_STORAGE_BYTES);
    memcpy(kept->tensor, implementation, (size_t)kept->tensor_length);
    memcpy(kept->storage, storage_of(implementation), (size_t)kept->storage_length);
    Py_XDECREF(dropped); /* last: it can run code */
}

Recycler *recycler_new(void) {
    Recycler *recycler = PyMem_Calloc(1, sizeof *recycler);
    return recycler ? recycler : (Recycler *)PyErr_NoMemory();
}

int recycler_traverse(const Recycler *recycler, visitproc visit, void *arg) {
    for (int i = 0; recycler && i < KEPT; i++)
        Py_VISIT(recycler->kept[i].object);
    return 0;
}

void recycler_clear(Recycler *recycler) {
    for (int i = 0; recycler && i < KEPT; i++)
        Py_CLEAR(recycler->kept[i].object);
}

void recycler_free(Recycler *recycler) {
    recycler_clear(recycler);
    PyMem_Free(recycler);
}
