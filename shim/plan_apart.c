/* Whether the inputs that a launch plan writes share memory with others (contracts section 7, "apart"). */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

static int parse_input(PyObject *source, SlotUse *uses, ApartInput *input) {
    long long item_bytes, dimensions;
    PyObject *slot;
    int written;
    if (!PyArg_ParseTuple(source, "OLLp:an input that is apart", &slot, &item_bytes, &dimensions, &written) ||
        parse_slot_number(slot, &input->slot) || use_slot(uses, input->slot, SLOT_TENSOR))
        return -1;
    if (dimensions < 0 || dimensions > MOST_DIMENSIONS || item_bytes < 1) {
        PyErr_SetString(PyExc_ValueError, "an input that is apart has bad sizes");
        return -1;
    }
    input->item_bytes = item_bytes;
    input->dimensions = (Py_ssize_t)dimensions;
    input->written = written;
    return 0;
}

int plan_parse_apart(LaunchPlan *plan, PyObject *source, SlotUse *uses) {
    PyObject *list = PySequence_Fast(source, "the inputs of a launch plan that are apart must be a list");
    if (!list)
        return -1;
    plan->apart_count = PySequence_Fast_GET_SIZE(list);
    plan->apart = PyMem_Calloc((size_t)plan->apart_count + 1, sizeof *plan->apart);
    plan->proven = PyMem_Calloc((size_t)plan->apart_count + 1, sizeof *plan->proven);
    int status = plan->apart && plan->proven ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; !status && i < plan->apart_count; i++)
        status = parse_input(PySequence_Fast_GET_ITEM(list, i), uses, &plan->apart[i]);
    Py_DECREF(list);
    return status;
}

/* An input without elements has an empty range. */
static int find_range(const ApartInput *input, Slot *slot, AddressRange *range) {
    void *data;
    int64_t last = 0;
    if (slot_data(slot, &data))
        return -1;
    range->begin = range->end = (uintptr_t)data;
    range->written = input->written;
    for (Py_ssize_t i = 0; i < input->dimensions; i++) {
        int64_t size, stride;
        if (slot_size(slot, i, &size) || slot_stride(slot, i, &stride))
            return -1;
        if (size == 0)
            return 0;
        last += (size - 1) * stride;
    }
    range->end += (uintptr_t)((last + 1) * input->item_bytes);
    return 0;
}

static int compare_ranges(const void *left, const void *right) {
    const AddressRange *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Sorted by where they begin, a range meets one before it if it begins before the furthest end so far. */
static bool no_written_range_meets(AddressRange *ranges, Py_ssize_t count) {
    uintptr_t end = 0, written_end = 0;
    qsort(ranges, (size_t)count, sizeof *ranges, compare_ranges);
    for (Py_ssize_t i = 0; i < count; i++) {
        const AddressRange *range = &ranges[i];
        if (range->begin == range->end)
            continue;
        if (range->begin < (range->written ? end : written_end))
            return false;
        end = range->end > end ? range->end : end;
        if (range->written && range->end > written_end)
            written_end = range->end;
    }
    return true;
}

/* `ranges` has room for all ranges twice: as the plan lists them, and sorted. */
static int ranges_are_apart(LaunchPlan *plan, Slot *slots, AddressRange *ranges) {
    Py_ssize_t count = plan->apart_count;
    size_t size = (size_t)count * sizeof *ranges;
    memset(ranges, 0, size); /* the padding too, as it is compared */
    for (Py_ssize_t i = 0; i < count; i++)
        if (find_range(&plan->apart[i], &slots[plan->apart[i].slot], &ranges[i]))
            return -1;
    if (!memcmp(plan->proven, ranges, size))
        return 1;
    memcpy(ranges + count, ranges, size);
    if (!no_written_range_meets(ranges + count, count))
        return 0;
    memcpy(plan->proven, ranges, size);
    return 1;
}

enum { STACK_RANGES = 64 };

/* The ranges are the call's own: Python code may run while they are found, and with it another call of the plan. */
int plan_inputs_are_apart(LaunchPlan *plan, Slot *slots) {
    AddressRange stack[STACK_RANGES * 2], *ranges = stack;
    if (plan->apart_count > STACK_RANGES &&
        !(ranges = PyMem_Malloc((size_t)plan->apart_count * 2 * sizeof *ranges))) {
        PyErr_NoMemory();
        return -1;
    }
    int apart = ranges_are_apart(plan, slots, ranges);
    if (ranges != stack)
        PyMem_Free(ranges);
    return apart;
}
