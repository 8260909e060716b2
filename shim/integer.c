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

typedef struct OperationRow {
    const char *name;
    char operation;
    Py_ssize_t operands;
} OperationRow;

static const OperationRow operation_rows[] = {
    {"+", '+', 2},    {"-", '-', 2},   {"*", '*', 2},    {"//", '/', 2},   {"%", '%', 2},
    {"max", '>', 2},  {"min", '<', 2}, {"slot", 's', 1}, {"size", 'd', 2}, {"stride", 't', 2},
};

static const OperationRow *find_operation(PyObject *source) {
    PyObject *name = PyTuple_GET_SIZE(source) ? PyTuple_GET_ITEM(source, 0) : NULL;
    for (size_t i = 0; name && PyUnicode_Check(name) && i < sizeof operation_rows / sizeof operation_rows[0]; i++)
        if (!PyUnicode_CompareWithASCIIString(name, operation_rows[i].name) &&
            PyTuple_GET_SIZE(source) == operation_rows[i].operands + 1)
            return &operation_rows[i];
    PyErr_Format(PyExc_ValueError, "%R is not an integer expression of a plan", source);
    return NULL;
}

static int parse_limited(PyObject *source, SlotUse *uses, int depth, Integer *result);

static int parse_operands(PyObject *source, SlotUse *uses, int depth, Expression *expression) {
    PyObject *first = PyTuple_GET_ITEM(source, 1);
    switch (expression->operation) {
    case 's':
        return parse_slot_number(first, &expression->slot) || use_slot(uses, expression->slot, SLOT_SCALAR) ? -1 : 0;
    case 'd':
    case 't':
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
    const OperationRow *row = find_operation(source);
    Expression *expression = row ? PyMem_Calloc(1, sizeof *expression) : NULL;
    if (!expression) {
        if (row)
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

static int overflow(void) {
    PyErr_SetString(PyExc_OverflowError, "a size of a compiled graph does not fit 64 bits");
    return -1;
}

static int floor_divide(int64_t left, int64_t right, int64_t *value) {
    if (right == 0) {
        PyErr_SetString(PyExc_ZeroDivisionError, "integer division or modulo by zero");
        return -1;
    }
    if (left == INT64_MIN && right == -1)
        return overflow();
    int64_t quotient = left / right;
    *value = quotient - (left % right != 0 && (left < 0) != (right < 0));
    return 0;
}

static int arithmetic(char operation, int64_t left, int64_t right, int64_t *value) {
    switch (operation) {
    case '+':
        return __builtin_add_overflow(left, right, value) ? overflow() : 0;
    case '-':
        return __builtin_sub_overflow(left, right, value) ? overflow() : 0;
    case '*':
        return __builtin_mul_overflow(left, right, value) ? overflow() : 0;
    case '>':
        *value = left > right ? left : right;
        return 0;
    case '<':
        *value = left < right ? left : right;
        return 0;
    case '%':
        if (floor_divide(left, right, value))
            return -1;
        *value = left - *value * right;
        return 0;
    default:
        return floor_divide(left, right, value);
    }
}

int integer_value(const Integer *integer, Slot *slots, int64_t *value) {
    const Expression *expression = integer->expression;
    int64_t left, right;
    if (!expression) {
        *value = integer->value;
        return 0;
    }
    if (expression->operation == 's') {
        *value = slots[expression->slot].scalar;
        return 0;
    }
    if (integer_value(&expression->left, slots, &left))
        return -1;
    if (expression->operation == 'd')
        return slot_size(&slots[expression->slot], left, value);
    if (expression->operation == 't')
        return slot_stride(&slots[expression->slot], left, value);
    if (integer_value(&expression->right, slots, &right))
        return -1;
    return arithmetic(expression->operation, left, right, value);
}

int integer_list_values(const Integer *integers, Py_ssize_t count, Slot *slots, int64_t *values) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (integer_value(&integers[i], slots, &values[i]))
            return -1;
    return 0;
}
