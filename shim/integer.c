/* Integers of a launch plan: constants, or expressions over scalar inputs and tensor sizes. Arithmetic is on 64 bits and
 * an overflow is an error, never a wrong size. */
#include "shim.h"

int parse_slot_number(PyObject *source, Py_ssize_t *slot) {
    *slot = PyLong_AsSsize_t(source);
    return *slot == -1 && PyErr_Occurred() ? -1 : 0;
}

static const char *const kind_names[] = {"empty", "an input", "a tensor", "a scalar"};

int use_slot(SlotUse *uses, Py_ssize_t slot, SlotKind as) {
    if (slot < 0 || slot >= uses->count) {
        PyErr_Format(PyExc_ValueError, "slot %zd of a plan with %zd slots", slot, uses->count);
        return -1;
    }
    SlotKind kind = uses->kinds[slot];
    if (kind == SLOT_UNKNOWN_INPUT)
        uses->kinds[slot] = as; /* the first use decides, every call is checked against it */
    else if (kind != as) {
        PyErr_Format(PyExc_ValueError, "slot %zd is %s where %s is needed", slot, kind_names[kind], kind_names[as]);
        return -1;
    }
    return 0;
}

int define_slot(SlotUse *uses, Py_ssize_t slot) {
    if (slot < 0 || slot >= uses->count) {
        PyErr_Format(PyExc_ValueError, "slot %zd of a plan with %zd slots", slot, uses->count);
        return -1;
    }
    if (uses->kinds[slot] != SLOT_EMPTY) {
        PyErr_Format(PyExc_ValueError, "slot %zd is made twice", slot);
        return -1;
    }
    uses->kinds[slot] = SLOT_TENSOR;
    return 0;
}

void integer_clear(Integer *integer) {
    if (!integer->expression)
        return;
    integer_clear(&integer->expression->left);
    integer_clear(&integer->expression->right);
    PyMem_Free(integer->expression);
    integer->expression = NULL;
}

static const OperationRow integer_rows[] = {
    {"slot", OPERATION_VALUE, 1},
    {"size", OPERATION_SIZE, 2},
    {"stride", OPERATION_STRIDE, 2},
    {"item", OPERATION_ITEM, 2},
    {"+", OPERATION_ADD, 2},
    {"-", OPERATION_SUBTRACT, 2},
    {"*", OPERATION_MULTIPLY, 2},
    {"//", OPERATION_FLOOR_DIVIDE, 2},
    {"%", OPERATION_MODULO, 2},
    {"max", OPERATION_MAXIMUM, 2},
    {"min", OPERATION_MINIMUM, 2},
};

static int parse_limited(PyObject *source, SlotUse *uses, int depth, Integer *result);

static int parse_operands(PyObject *source, SlotUse *uses, int depth, Expression *expression) {
    PyObject *first = PyTuple_GET_ITEM(source, 1);
    switch (expression->operation) {
    case OPERATION_VALUE:
        return parse_slot_number(first, &expression->slot) || use_slot(uses, expression->slot, SLOT_SCALAR) ? -1 : 0;
    case OPERATION_SIZE:
    case OPERATION_STRIDE:
    case OPERATION_ITEM:
        if (parse_slot_number(first, &expression->slot) || use_slot(uses, expression->slot, SLOT_TENSOR))
            return -1;
        return parse_limited(PyTuple_GET_ITEM(source, 2), uses, depth, &expression->left);
    default:
        if (parse_limited(first, uses, depth, &expression->left))
            return -1;
        return parse_limited(PyTuple_GET_ITEM(source, 2), uses, depth, &expression->right);
    }
}

static int parse_limited(PyObject *source, SlotUse *uses, int depth, Integer *result) {
    if (depth == 0) {
        PyErr_SetString(PyExc_ValueError, "an integer expression of a plan is too deep");
        return -1;
    }
    if (!PyTuple_Check(source)) {
        result->value = PyLong_AsLongLong(source);
        return result->value == -1 && PyErr_Occurred() ? -1 : 0;
    }
    const OperationRow *row = find_operation(integer_rows, sizeof integer_rows / sizeof integer_rows[0], source);
    if (!row) {
        PyErr_Format(PyExc_ValueError, "%R is not an integer expression of a plan", source);
        return -1;
    }
    Expression *expression = PyMem_Calloc(1, sizeof *expression);
    if (!expression) {
        PyErr_NoMemory();
        return -1;
    }
    expression->operation = row->operation;
    result->expression = expression;
    return parse_operands(source, uses, depth - 1, expression);
}

int integer_parse(PyObject *source, SlotUse *uses, Integer *result) {
    *result = (Integer){NULL, 0};
    if (!parse_limited(source, uses, 64, result))
        return 0;
    integer_clear(result);
    return -1;
}

void integer_list_free(Integer *integers, Py_ssize_t count) {
    for (Py_ssize_t i = 0; integers && i < count; i++)
        integer_clear(&integers[i]);
    PyMem_Free(integers);
}

int integer_list_parse(PyObject *source, SlotUse *uses, Integer **result, Py_ssize_t *count) {
    PyObject *list = PySequence_Fast(source, "a plan needs a list of integers here");
    if (!list)
        return -1;
    Py_ssize_t length = PySequence_Fast_GET_SIZE(list), done = 0;
    Integer *integers = PyMem_Calloc((size_t)length + 1, sizeof *integers);
    if (!integers)
        PyErr_NoMemory();
    while (integers && done < length && !integer_parse(PySequence_Fast_GET_ITEM(list, done), uses, &integers[done]))
        done++;
    Py_DECREF(list);
    if (integers && done == length) {
        *result = integers;
        *count = length;
        return 0;
    }
    integer_list_free(integers, done);
    return -1;
}

static int raise_unless_done(ArithmeticStatus status) {
    if (status == ARITHMETIC_OVERFLOW)
        PyErr_SetString(PyExc_OverflowError, "a size of a compiled graph does not fit 64 bits");
    if (status == ARITHMETIC_DIVISION_BY_ZERO)
        PyErr_SetString(PyExc_ZeroDivisionError, "integer division or modulo by zero");
    return status == ARITHMETIC_DONE ? 0 : -1;
}

/* Element number `index` of a row-major tensor of int64. */
static int element_value(Slot *slot, int64_t index, int64_t *value) {
    int64_t count;
    int32_t device;
    void *data;
    if (slot_element_count(slot, &count) || slot_device_index(slot, &device) || slot_data(slot, &data))
        return -1;
    if (device >= 0 || index < 0 || index >= count) {
        PyErr_Format(PyExc_IndexError, "a plan reads element %lld of a tensor that has %lld in memory of the CPU",
                     (long long)index, device < 0 ? (long long)count : 0LL);
        return -1;
    }
    *value = ((const int64_t *)data)[index];
    return 0;
}

int integer_value(const Integer *integer, Slot *slots, int64_t *value) {
    const Expression *expression = integer->expression;
    int64_t left, right;
    if (!expression) {
        *value = integer->value;
        return 0;
    }
    if (expression->operation == OPERATION_VALUE) {
        *value = slots[expression->slot].scalar;
        return 0;
    }
    if (integer_value(&expression->left, slots, &left))
        return -1;
    if (expression->operation == OPERATION_SIZE)
        return slot_size(&slots[expression->slot], left, value);
    if (expression->operation == OPERATION_STRIDE)
        return slot_stride(&slots[expression->slot], left, value);
    if (expression->operation == OPERATION_ITEM)
        return element_value(&slots[expression->slot], left, value);
    if (integer_value(&expression->right, slots, &right))
        return -1;
    return raise_unless_done(compute_integer(expression->operation, left, right, value));
}

int integer_list_values(const Integer *integers, Py_ssize_t count, Slot *slots, int64_t *values) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (integer_value(&integers[i], slots, &values[i]))
            return -1;
    return 0;
}
