/* Finds the bytes behind torch's per-thread switches by flipping each switch and looking at what changes. A switch whose
 * byte is not found for certain is read by calling torch. */
#include "shim.h"

#include <string.h>

enum { STATE_BYTES = 32 };

static int set_grad_mode(int enabled) {
    PyObject *function = PyObject_GetAttrString(torch.object.module, "_C");
    PyObject *result = function ? PyObject_CallMethod(function, "_set_grad_enabled", "i", enabled) : NULL;
    if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        result = PyObject_CallMethod(function, "_set_grad_enabled", "O", enabled ? Py_True : Py_False);
    }
    Py_XDECREF(function);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* The one bit that differs between the two snapshots and is set in `on`. */
static bool find_bit(const unsigned char *on, const unsigned char *off, StateLayout *layout) {
    int found = 0;
    for (Py_ssize_t i = 0; i < STATE_BYTES; i++) {
        unsigned char change = on[i] ^ off[i];
        if (!change)
            continue;
        layout->grad_byte = i;
        layout->grad_mask = change;
        found += (change & (change - 1)) == 0 && (on[i] & change) ? 1 : 2;
    }
    return found == 1;
}

static int find_grad_mode(StateLayout *layout) {
    unsigned char on[STATE_BYTES], off[STATE_BYTES];
    const unsigned char *state = torch.symbol.autograd_state();
    int before = torch.symbol.grad_mode();
    if (set_grad_mode(1))
        return -1;
    memcpy(on, state, sizeof on);
    if (set_grad_mode(0))
        return -1;
    memcpy(off, state, sizeof off);
    layout->grad_known = find_bit(on, off, layout);
    return set_grad_mode(before);
}

/* Runs with every torch function disabled and with one mode on the stack; `look` is called in each state. */
static int with_function_states(PyObject *look) {
    static const char source[] = "def visit(torch, look):\n"
                                 "    look(0)\n"
                                 "    with torch._C.DisableTorchFunction():\n"
                                 "        look(1)\n"
                                 "    with torch.overrides.BaseTorchFunctionMode():\n"
                                 "        look(2)\n";
    PyObject *names = PyDict_New();
    PyObject *done = names ? PyRun_String(source, Py_file_input, names, names) : NULL;
    PyObject *visit = done ? PyDict_GetItemString(names, "visit") : NULL;
    PyObject *result = visit ? PyObject_CallFunctionObjArgs(visit, torch.object.module, look, NULL) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(names);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

typedef struct FunctionSnapshots {
    unsigned char bytes[3][STATE_BYTES];
    int32_t disabled[3];
    int64_t modes[3];
} FunctionSnapshots;

static PyObject *take_snapshot(PyObject *capsule, PyObject *number) {
    FunctionSnapshots *snapshots = PyCapsule_GetPointer(capsule, NULL);
    long index = PyLong_AsLong(number);
    if (!snapshots || index < 0 || index > 2)
        return NULL;
    memcpy(snapshots->bytes[index], torch.symbol.function_state(), STATE_BYTES);
    snapshots->disabled[index] = torch.symbol.function_disabled();
    snapshots->modes[index] = torch.symbol.function_mode_count();
    Py_RETURN_NONE;
}

static PyMethodDef snapshot_method = {"take_snapshot", take_snapshot, METH_O, NULL};

static bool disabled_matches(const FunctionSnapshots *snapshots, Py_ssize_t offset) {
    for (int i = 0; i < 3; i++) {
        int32_t value;
        memcpy(&value, snapshots->bytes[i] + offset, sizeof value);
        if (value != snapshots->disabled[i])
            return false;
    }
    return true;
}

enum { SHARED_POINTER_BYTES = 16 };

/* The stack is a vector of shared pointers: its begin and end lie next to each other. */
static bool stack_matches(const FunctionSnapshots *snapshots, Py_ssize_t offset) {
    for (int i = 0; i < 3; i++) {
        uint64_t ends[2];
        memcpy(ends, snapshots->bytes[i] + offset, sizeof ends);
        if (ends[1] - ends[0] != (uint64_t)snapshots->modes[i] * SHARED_POINTER_BYTES)
            return false;
    }
    return true;
}

typedef bool (*SnapshotMatch)(const FunctionSnapshots *, Py_ssize_t);

static Py_ssize_t find_in_snapshots(const FunctionSnapshots *snapshots, Py_ssize_t step, Py_ssize_t size,
                                    SnapshotMatch matches) {
    Py_ssize_t found = -1;
    for (Py_ssize_t offset = 0; offset + size <= STATE_BYTES; offset += step) {
        if (!matches(snapshots, offset))
            continue;
        if (found >= 0)
            return -1;
        found = offset;
    }
    return found;
}

static int find_function_state(StateLayout *layout) {
    FunctionSnapshots snapshots = {0};
    PyObject *capsule = PyCapsule_New(&snapshots, NULL, NULL);
    PyObject *look = capsule ? PyCFunction_New(&snapshot_method, capsule) : NULL;
    int status = look ? with_function_states(look) : -1;
    Py_XDECREF(look);
    Py_XDECREF(capsule);
    if (status)
        return -1;
    layout->disabled = find_in_snapshots(&snapshots, 4, 4, disabled_matches);
    layout->stack = find_in_snapshots(&snapshots, 8, 16, stack_matches);
    layout->function_known = layout->disabled >= 0 && layout->stack >= 0 && snapshots.disabled[1] != 0 &&
                             snapshots.modes[2] == snapshots.modes[0] + 1;
    return 0;
}

int find_state_layout(StateLayout *layout) {
    if (torch.symbol.autograd_state && find_grad_mode(layout))
        return -1;
    return torch.symbol.function_state ? find_function_state(layout) : 0;
}
