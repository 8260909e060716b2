/* Python's whole-number arithmetic in 64 bits, as guards and launch plans need it, and the names that their expressions have. */
#ifndef FUSEE_ARITHMETIC_H
#define FUSEE_ARITHMETIC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum Operation {
    OPERATION_VALUE, /* a captured value, or a scalar slot */
    OPERATION_SIZE,  /* of a tensor's dimension, as is the next */
    OPERATION_STRIDE,
    OPERATION_ITEM, /* an element of a tensor of whole numbers in memory of the CPU */
    OPERATION_ADD, /* from here on: of two numbers */
    OPERATION_SUBTRACT,
    OPERATION_MULTIPLY,
    OPERATION_FLOOR_DIVIDE,
    OPERATION_MODULO,
    OPERATION_DIVIDE,
    OPERATION_MAXIMUM,
    OPERATION_MINIMUM,
} Operation;

typedef struct OperationRow {
    const char *name;
    Operation operation;
    Py_ssize_t operands;
} OperationRow;

typedef enum ArithmeticStatus { ARITHMETIC_DONE, ARITHMETIC_OVERFLOW, ARITHMETIC_DIVISION_BY_ZERO } ArithmeticStatus;

/* The row of `rows` that the tuple `source` names with as many operands as it has, or NULL without an exception. */
const OperationRow *find_operation(const OperationRow *rows, size_t count, PyObject *source);

/* Floor division and remainder are Python's. There is no OPERATION_DIVIDE of two whole numbers. */
ArithmeticStatus compute_integer(Operation operation, int64_t left, int64_t right, int64_t *result);

#endif
