/* Finds the fields of a TensorImpl that guards compare, by looking for what torch's own functions return. A field that is
 * not found, or found in two places, leaves the layout unknown; then those functions are called on every check. */
#include "shim.h"

#include <string.h>

enum { PROBE_COUNT = 6 };

/* Tensors with 0 to 5 dimensions and telling dtypes; the second requires a gradient. */
static PyObject *make_probes(void) {
    static const char source[] = "def probe(torch):\n"
                                 "    dtypes = (torch.uint8, torch.float64, torch.bool, torch.bfloat16, torch.int16)\n"
                                 "    plain = [torch.empty(tuple(range(2, 2 + n)), dtype=dtype, device='meta')\n"
                                 "             for n, dtype in enumerate(dtypes)]\n"
                                 "    plain[1].requires_grad_()\n"
                                 "    return *plain, torch.empty(2, 3, 4, 5, 6, device='meta')\n";
    return run_probe(source);
}

typedef struct Probe {
    TensorHandle handle;
    const char *implementation;
    Py_ssize_t length; /* of the implementation */
    int64_t dimensions, *sizes, *strides;
    int32_t dtype;
} Probe;

static bool read_probe(PyObject *tensor, Probe *probe) {
    const TorchSymbols *symbol = &torch.symbol;
    probe->handle = handle_of(tensor);
    probe->implementation = *(const char **)probe->handle;
    probe->length = implementation_bytes(probe->implementation);
    return !symbol->dimensions(probe->handle, &probe->dimensions) && !symbol->sizes(probe->handle, &probe->sizes) &&
           !symbol->strides(probe->handle, &probe->strides) && !symbol->dtype(probe->handle, &probe->dtype);
}

typedef bool (*Matches)(const Probe *probe, const char *place, int index);

static bool holds_dimensions(const Probe *probe, const char *place, int Py_UNUSED(index)) {
    return *(const int64_t *)place == probe->dimensions;
}

static bool holds_dtype(const Probe *probe, const char *place, int Py_UNUSED(index)) {
    return *(const uint16_t *)place == probe->dtype;
}

/* Of all probes only the second has something to keep for autograd. */
static bool holds_autograd(const Probe *Py_UNUSED(probe), const char *place, int index) {
    return (*(const uint64_t *)place != 0) == (index == 1);
}

/* The only offset, a multiple of `step`, where every probe has what `matches` looks for; -1 otherwise. */
static Py_ssize_t find_offset(const Probe *probes, Py_ssize_t step, Matches matches) {
    Py_ssize_t found = -1;
    for (Py_ssize_t offset = 8; offset + 8 <= probes[0].length; offset += step) {
        bool all = true;
        for (int i = 0; i < PROBE_COUNT && all; i++)
            all = matches(&probes[i], probes[i].implementation + offset, i);
        if (all && found >= 0)
            return -1;
        found = all ? offset : found;
    }
    return found;
}

/* The same offset of an inner pointer in every probe, or -1. */
static Py_ssize_t inner_offset(const Probe *probes, bool strides) {
    Py_ssize_t found = -1;
    for (int i = 0; i < PROBE_COUNT; i++) {
        const int64_t *pointer = strides ? probes[i].strides : probes[i].sizes;
        Py_ssize_t offset = (const char *)pointer - probes[i].implementation;
        if (offset < 8 || offset + 8 * INLINE_DIMENSIONS > probes[i].length || (found >= 0 && offset != found))
            return -1;
        found = offset;
    }
    return found;
}

int find_tensor_layout(TensorLayout *layout) {
    PyObject *tensors = make_probes();
    Probe probes[PROBE_COUNT];
    if (!tensors)
        return -1;
    bool readable = PyTuple_Check(tensors) && PyTuple_GET_SIZE(tensors) == PROBE_COUNT;
    for (int i = 0; i < PROBE_COUNT && readable; i++)
        readable = read_probe(PyTuple_GET_ITEM(tensors, i), &probes[i]);
    if (readable) {
        layout->dimensions = find_offset(probes, 8, holds_dimensions);
        layout->dtype = find_offset(probes, 2, holds_dtype);
        layout->autograd = find_offset(probes, 8, holds_autograd);
        layout->sizes = inner_offset(probes, false);
        layout->strides = inner_offset(probes, true);
        layout->known = layout->dimensions > 0 && layout->dtype > 0 && layout->autograd > 0 && layout->sizes > 0 &&
                        layout->strides > 0;
    }
    Py_DECREF(tensors);
    return 0;
}
