/* Comparisons of numbers in a guard: ints of 64 bits and floats, read from values and from sizes and strides of tensors. The
 * arithmetic is Python's; what does not fit (an overflow, a division by zero) makes the guard fail. */
#include "guard.h"

typedef struct Number {
    bool is_float;
    int64_t integer;
    double real;
} Number;

struct NumberExpression {
    bool is_constant;
    Number constant;
    Operation operation;
    Py_ssize_t capture; /* -1: the value that the check is on */
    Py_ssize_t dimension;
    NumberExpression *left, *right;
};

static const OperationRow number_rows[] = {
    {"value", OPERATION_VALUE, 1},
    {"size", OPERATION_SIZE, 2},
    {"stride", OPERATION_STRIDE, 2},
    {"+", OPERATION_ADD, 2},
    {"-", OPERATION_SUBTRACT, 2},
    {"*", OPERATION_MULTIPLY, 2},
    {"//", OPERATION_FLOOR_DIVIDE, 2},
    {"%", OPERATION_MODULO, 2},
    {"/", OPERATION_DIVIDE, 2},
    {"max", OPERATION_MAXIMUM, 2},
    {"min", OPERATION_MINIMUM, 2},
};

static int not_a_number(PyObject *source) {
    PyErr_Format(PyExc_ValueError, "%R is not a number of a guard", source);
    return -1;
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
    if (expression->operation < OPERATION_ADD) {
        expression->capture = PyLong_AsSsize_t(first);
        expression->dimension = second ? PyLong_AsSsize_t(second) : 0;
        if (PyErr_Occurred())
            return -1;
        return expression->capture < -1 || expression->dimension < 0 ? not_a_number(source) : 0;
    }
    expression->left = parse_limited(first, depth);
    expression->right = expression->left ? parse_limited(second, depth) : NULL;
    return expression->right ? 0 : -1;
}

static int parse_operation(PyObject *source, int depth, NumberExpression *expression) {
    const OperationRow *row = find_operation(number_rows, sizeof number_rows / sizeof number_rows[0], source);
    if (!row)
        return not_a_number(source);
    expression->operation = row->operation;
    return parse_operands(source, depth, expression);
}

static NumberExpression *parse_limited(PyObject *source, int depth) {
    if (depth == 0) {
        PyErr_SetString(PyExc_ValueError, "a number of a guard is too deep");
        return NULL;
    }
    NumberExpression *expression = PyMem_Calloc(1, sizeof *expression);
    if (!expression)
        return (NumberExpression *)PyErr_NoMemory();
    expression->is_constant = !PyTuple_Check(source);
    if (expression->is_constant ? parse_constant(source, &expression->constant)
                                : parse_operation(source, depth - 1, expression)) {
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
    if (expression->is_constant)
        return -1;
    if (expression->operation < OPERATION_ADD)
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
    int status = expression->operation == OPERATION_SIZE ? slot_size(&slot, expression->dimension, &number->integer)
                                                      : slot_stride(&slot, expression->dimension, &number->integer);
    if (status)
        PyErr_Clear();
    return !status;
}

static double real_of(Number number) {
    return number.is_float ? number.real : (double)number.integer;
}

/* An int that is no double may round in ways that C does not promise. */
static bool is_exact(Number number) {
    const double beyond = 9223372036854775808.0; /* 2^63, which no int64_t is */
    return number.is_float || (real_of(number) < beyond && (int64_t)real_of(number) == number.integer);
}

static bool compute_real(Operation operation, double left, double right, double *result) {
    switch (operation) {
    case OPERATION_ADD:
        *result = left + right;
        return true;
    case OPERATION_SUBTRACT:
        *result = left - right;
        return true;
    case OPERATION_MULTIPLY:
        *result = left * right;
        return true;
    case OPERATION_DIVIDE:
        *result = left / right;
        return right != 0;
    default:
        return false;
    }
}

static bool evaluate(const NumberExpression *expression, PyObject *const *captures, PyObject *own, Number *number) {
    Number left, right;
    Operation operation = expression->operation;
    if (expression->is_constant) {
        *number = expression->constant;
        return true;
    }
    *number = (Number){0};
    if (operation < OPERATION_ADD) {
        PyObject *value = expression->capture < 0 ? own : captures[expression->capture];
        return operation == OPERATION_VALUE ? read_value(value, number) : read_dimension(expression, value, number);
    }
    if (!evaluate(expression->left, captures, own, &left) || !evaluate(expression->right, captures, own, &right))
        return false;
    if (operation != OPERATION_DIVIDE && !left.is_float && !right.is_float)
        return compute_integer(operation, left.integer, right.integer, &number->integer) == ARITHMETIC_DONE;
    number->is_float = true;
    return is_exact(left) && is_exact(right) && compute_real(operation, real_of(left), real_of(right), &number->real);
}

static bool order_holds(Comparison comparison, bool less, bool equal) {
    switch (comparison) {
    case COMPARE_EQUAL:
        return equal;
    case COMPARE_UNEQUAL:
        return !equal;
    case COMPARE_LESS:
        return less;
    default:
        return less || equal;
    }
}

bool numbers_compare(Comparison comparison, const NumberExpression *left, const NumberExpression *right,
                     PyObject *const *captures, PyObject *own) {
    Number a, b;
    if (!evaluate(left, captures, own, &a) || !evaluate(right, captures, own, &b))
        return false;
    if (!a.is_float && !b.is_float)
        return order_holds(comparison, a.integer < b.integer, a.integer == b.integer);
    return is_exact(a) && is_exact(b) && order_holds(comparison, real_of(a) < real_of(b), real_of(a) == real_of(b));
}
