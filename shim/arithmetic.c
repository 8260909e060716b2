#include "arithmetic.h"

const OperationRow *find_operation(const OperationRow *rows, size_t count, PyObject *source) {
    PyObject *name = PyTuple_GET_SIZE(source) ? PyTuple_GET_ITEM(source, 0) : NULL;
    for (size_t i = 0; name && PyUnicode_Check(name) && i < count; i++)
        if (!PyUnicode_CompareWithASCIIString(name, rows[i].name) && PyTuple_GET_SIZE(source) == rows[i].operands + 1)
            return &rows[i];
    return NULL;
}

static ArithmeticStatus overflow_if(bool overflowed) {
    return overflowed ? ARITHMETIC_OVERFLOW : ARITHMETIC_DONE;
}

static ArithmeticStatus floor_divide(int64_t left, int64_t right, int64_t *quotient) {
    if (right == 0)
        return ARITHMETIC_DIVISION_BY_ZERO;
    if (left == INT64_MIN && right == -1)
        return ARITHMETIC_OVERFLOW;
    *quotient = left / right - (left % right != 0 && (left < 0) != (right < 0));
    return ARITHMETIC_DONE;
}

static ArithmeticStatus modulo(int64_t left, int64_t right, int64_t *remainder) {
    int64_t quotient = 0;
    ArithmeticStatus status = floor_divide(left, right, &quotient);
    if (status == ARITHMETIC_DONE)
        *remainder = left - quotient * right;
    return status;
}

ArithmeticStatus compute_integer(Operation operation, int64_t left, int64_t right, int64_t *result) {
    switch (operation) {
    case OPERATION_ADD:
        return overflow_if(__builtin_add_overflow(left, right, result));
    case OPERATION_SUBTRACT:
        return overflow_if(__builtin_sub_overflow(left, right, result));
    case OPERATION_MULTIPLY:
        return overflow_if(__builtin_mul_overflow(left, right, result));
    case OPERATION_FLOOR_DIVIDE:
        return floor_divide(left, right, result);
    case OPERATION_MODULO:
        return modulo(left, right, result);
    case OPERATION_MAXIMUM:
        *result = left > right ? left : right;
        return ARITHMETIC_DONE;
    default:
        *result = left < right ? left : right;
        return ARITHMETIC_DONE;
    }
}
