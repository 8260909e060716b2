/* Comparisons of numbers in a guard: ints of 64 bits and floats, read from values and from sizes and strides of tensors. The
 * arithmetic is Python's; what does not fit (an overflow, a division by zero) makes the guard fail. */
#include "guard.h"

typedef enum Operation {
    NUMBER_CONSTANT,
    NUMBER_VALUE,
    NUMBER_SIZE,
    NUMBER_STRIDE,
    NUMBER_ADD,
    NUMBER_SUBTRACT,
    NUMBER_MULTIPLY,
    NUMBER_FLOOR_DIVIDE,
    NUMBER_MODULO,
    NUMBER_DIVIDE,
    NUMBER_MAXIMUM,
    NUMBER_MINIMUM,
} Operation;

typedef struct Number {
    bool is_float;
    int64_t integer;
    double real;
} Number;

struct NumberExpression {
    Operation operation;
    Number constant;
    Py_ssize_t capture; /* -1: the value that the check is on */
    Py_ssize_t dimension;
    NumberExpression *left, *right;
};

typedef struct OperationRow {
    const char *name;
    Operation operation;
    Py_ssize_t operands;
} OperationRow;

static const OperationRow operation_rows[] = {
    {"value", NUMBER_VALUE, 1},   {"size", NUMBER_SIZE, 2},          {"stride", NUMBER_STRIDE, 2}, {"+", NUMBER_ADD, 2},
    {"-", NUMBER_SUBTRACT, 2},    {"*", NUMBER_MULTIPLY, 2},         {"//", NUMBER_FLOOR_DIVIDE, 2},
    {"%", NUMBER_MODULO, 2},      {"/", NUMBER_DIVIDE, 2},           {"max", NUMBER_MAXIMUM, 2},   {"min", NUMBER_MINIMUM, 2},
};

static const OperationRow *find_operation(PyObject *source) {
    PyObject *name = PyTuple_GET_SIZE(source) ? PyTuple_GET_ITEM(source, 0) : NULL;
    for (size_t i = 0; name && PyUnicode_Check(name) && i < sizeof operation_rows / sizeof operation_rows[0]; i++)
        if (!PyUnicode_CompareWithASCIIString(name, operation_rows[i].name) &&
            PyTuple_GET_SIZE(source) == operation_rows[i].operands + 1)
            return &operation_rows[i];
    PyErr_Format(PyExc_ValueError, "%R is not a number of a guard", source);
    return NULL;
}

static int parse_constant(PyObject *source, Number *number) {
    number->is_float = PyFloat_CheckExact(source);
    if (number->is_float)
        number->real = PyFloat_AS_DOUBLE(source);
    else
        number->integer = PyLong_AsLongLong(source);
    return PyErr_Occurred() ? -1 : 0;
}

static NumberExpression *parse_limited(PyObject *source, int depth);

static int parse_operands(PyObject *source, int depth, NumberExpression *expression) {
    PyObject *first = PyTuple_GET_ITEM(source, 1), *second = PyTuple_GET_SIZE(source) > 2 ? PyTuple_GET_ITEM(source, 2) : NULL;
    if (expression->operation < NUMBER_ADD) {
        expression->capture = PyLong_AsSsize_t(first);
        expression->dimension = second ? PyLong_AsSsize_t(second) : 0;
        if (!PyErr_Occurred() && (expression->capture < -1 || expression->dimension < 0))
            PyErr_Format(PyExc_ValueError, "%R is not a number of a guard", source);
        return PyErr_Occurred() ? -1 : 0;
    }
    expression->left = parse_limited(first, depth);
    expression->right = expression->left ? parse_limited(second, depth) : NULL;
    return expression->right ? 0 : -1;
}

static NumberExpression *parse_limited(PyObject *source, int depth) {
    const OperationRow *row = NULL;
    if (depth == 0) {
        PyErr_SetString(PyExc_ValueError, "a number of a guard is too deep");
        return NULL;
    }
    if (PyTuple_Check(source) && !(row = find_operation(source)))
        return NULL;
    NumberExpression *expression = PyMem_Calloc(1, sizeof *expression);
    if (!expression)
        return (NumberExpression *)PyErr_NoMemory();
    expression->operation = row ? row->operation : NUMBER_CONSTANT;
    if (row ? parse_operands(source, depth - 1, expression) : parse_constant(source, &expression->constant)) {
        number_expression_free(expression);
        return NULL;
    }
    return expression;
}

NumberExpression *number_expression_parse(PyObject *source) {
    return parse_limited(source, 200);
}

void number_expression_free(NumberExpression *expression) {
    if (!expression)
        return;
    number_expression_free(expression->left);
    number_expression_free(expression->right);
    PyMem_Free(expression);
}

Py_ssize_t number_expression_last_capture(const NumberExpression *expression) {
    if (expression->operation == NUMBER_CONSTANT)
        return -1;
    if (expression->operation < NUMBER_ADD)
        return expression->capture;
    Py_ssize_t left = number_expression_last_capture(expression->left);
    Py_ssize_t right = number_expression_last_capture(expression->right);
    return left > right ? left : right;
}

int parse_comparison(PyObject *name, Comparison *comparison) {
    static const char *const signs[] = {"==", "!=", "<", "<="};
    for (int i = 0; PyUnicode_Check(name) && i < 4; i++)
        if (!PyUnicode_CompareWithASCIIString(name, signs[i])) {
            *comparison = (Comparison)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "%R is not a comparison of a guard", name);
    return -1;
}

/* ---- running ---- */

static bool read_value(PyObject *value, Number *number) {
    int overflow = 0;
    number->is_float = PyFloat_CheckExact(value);
    if (number->is_float) {
        number->real = PyFloat_AS_DOUBLE(value);
        return true;
    }
    if (!PyLong_CheckExact(value))
        return false;
    number->integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static bool read_dimension(const NumberExpression *expression, PyObject *value, Number *number) {
    if (!PyObject_TypeCheck(value, torch.object.tensor_type))
        return false;
    Slot slot = {0};
    slot_adopt_object(&slot, value, false);
    int status = expression->operation == NUMBER_SIZE ? slot_size(&slot, expression->dimension, &number->integer)
                                                      : slot_stride(&slot, expression->dimension, &number->integer);
    if (status)
        PyErr_Clear();
    return !status;
}

static double real_of(Number number) {
    return number.is_float ? number.real : (double)number.integer;
}

/* An int beyond 2^53 may round in ways that C does not promise. */
static bool is_exact(Number number) {
    const int64_t most = (int64_t)1 << 53;
    return number.is_float || (-most <= number.integer && number.integer <= most);
}

static bool floor_divide(int64_t left, int64_t right, int64_t *quotient) {
    if (right == 0 || (left == INT64_MIN && right == -1))
        return false;
    *quotient = left / right - (left % right != 0 && (left < 0) != (right < 0));
    return true;
}

static bool compute_integer(Operation operation, int64_t left, int64_t right, int64_t *result) {
    switch (operation) {
    case NUMBER_ADD:
        return !__builtin_add_overflow(left, right, result);
    case NUMBER_SUBTRACT:
        return !__builtin_sub_overflow(left, right, result);
    case NUMBER_MULTIPLY:
        return !__builtin_mul_overflow(left, right, result);
    case NUMBER_FLOOR_DIVIDE:
        return floor_divide(left, right, result);
    case NUMBER_MODULO:
        if (!floor_divide(left, right, result))
            return false;
        *result = left - *result * right;
        return true;
    case NUMBER_MAXIMUM:
        *result = left > right ? left : right;
        return true;
    default:
        *result = left < right ? left : right;
        return true;
    }
}

static bool compute_real(Operation operation, double left, double right, double *result) {
    switch (operation) {
    case NUMBER_ADD:
        *result = left + right;
        return true;
    case NUMBER_SUBTRACT:
        *result = left - right;
        return true;
    case NUMBER_MULTIPLY:
        *result = left * right;
        return true;
    case NUMBER_DIVIDE:
        *result = left / right;
        return right != 0;
    default:
        return false;
    }
}

static bool evaluate(const NumberExpression *expression, PyObject *const *captures, PyObject *own, Number *number) {
    Number left, right;
    Operation operation = expression->operation;
    if (operation == NUMBER_CONSTANT) {
        *number = expression->constant;
        return true;
    }
    *number = (Number){0};
    if (operation < NUMBER_ADD) {
        PyObject *value = expression->capture < 0 ? own : captures[expression->capture];
        return operation == NUMBER_VALUE ? read_value(value, number) : read_dimension(expression, value, number);
    }
    if (!evaluate(expression->left, captures, own, &left) || !evaluate(expression->right, captures, own, &right))
        return false;
    if (operation != NUMBER_DIVIDE && !left.is_float && !right.is_float)
        return compute_integer(operation, left.integer, right.integer, &number->integer);
    number->is_float = true;
    return is_exact(left) && is_exact(right) && compute_real(operation, real_of(left), real_of(right), &number->real);
}

static bool compare_integers(Comparison comparison, int64_t left, int64_t right) {
    switch (comparison) {
    case COMPARE_EQUAL:
        return left == right;
    case COMPARE_UNEQUAL:
        return left != right;
    case COMPARE_LESS:
        return left < right;
    default:
        return left <= right;
    }
}

static bool compare_reals(Comparison comparison, double left, double right) {
    switch (comparison) {
    case COMPARE_EQUAL:
        return left == right;
    case COMPARE_UNEQUAL:
        return left != right;
    case COMPARE_LESS:
        return left < right;
    default:
        return left <= right;
    }
}

bool numbers_compare(Comparison comparison, const NumberExpression *left, const NumberExpression *right,
                     PyObject *const *captures, PyObject *own) {
    Number a, b;
    if (!evaluate(left, captures, own, &a) || !evaluate(right, captures, own, &b))
        return false;
    if (!a.is_float && !b.is_float)
        return compare_integers(comparison, a.integer, b.integer);
    return is_exact(a) && is_exact(b) && compare_reals(comparison, real_of(a), real_of(b));
}
