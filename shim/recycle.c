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

enum { CHANGES = 3 }; /* in-place operations on one of the probes */

static uint32_t number_at(const void *base, Py_ssize_t offset) {
    uint32_t number;
    memcpy(&number, (const char *)base + offset, sizeof number);
    return number;
}

/* Where a counter keeps its number: the only 32 bits that are 0 in one and CHANGES in the other. */
static Py_ssize_t find_version(const void *unchanged, const void *changed) {
    Py_ssize_t found = -1;
    if (implementation_bytes(unchanged) < COUNTER_BYTES || implementation_bytes(changed) < COUNTER_BYTES)
        return -1;
    for (Py_ssize_t offset = 8; offset + 4 <= COUNTER_BYTES; offset += 4) {
        if (number_at(unchanged, offset) != 0 || number_at(changed, offset) != CHANGES)
            continue;
        if (found >= 0)
            return -1;
        found = offset;
    }
    return found;
}

static const void *pointer_at(const void *base, Py_ssize_t offset) {
    return (const void *)(uintptr_t)word_at(base, offset);
}

static int find_in_probes(PyObject *probes, RecycleLayout *result) {
    const char *tensors[4];
    for (int i = 0; i < 4; i++)
        tensors[i] = implementation_of(PyTuple_GET_ITEM(probes, i));
    uint64_t storage = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(probes, 4));
    if (PyErr_Occurred())
        return -1;
    result->storage = shared_word(tensors[0], tensors[1], tensors[2], storage, -1);
    result->counter = result->storage > 0 ? shared_word(tensors[0], tensors[1], tensors[2], 0, result->storage) : -1;
    if (result->counter < 0)
        return 0;
    result->version = find_version(pointer_at(tensors[0], result->counter), pointer_at(tensors[3], result->counter));
    result->sole_tensor = word_at(tensors[2], 8);
    result->sole_storage = word_at(pointer_at(tensors[2], result->storage), 8);
    result->known = result->version > 0;
    return 0;
}

int recycle_calibrate(void) {
    static const char source[] =
        "def probe(torch):\n"
        "    tensor, changed = torch.empty(4), torch.empty(4).zero_().zero_().zero_()\n"
        "    return tensor, tensor.detach(), torch.empty(4), changed, tensor.untyped_storage()._cdata\n";
    layout = (RecycleLayout){0};
    if (!torch.direct)
        return 0;
    PyObject *probes = run_probe(source);
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
    return pointer_at(implementation, layout.storage);
}

/* A tensor made in inference mode has no version counter. */
static bool has_version(const char *implementation) {
    return word_at(implementation, layout.counter) != 0;
}

static uint32_t version_of(const char *implementation) {
    return number_at(pointer_at(implementation, layout.counter), layout.version);
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
