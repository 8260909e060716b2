/* Binds the arguments of a call to a function's parameters in the order of its local variables, as CPython's own
 * initialize_locals does. A call that does not fit is left to the original function, which raises the right TypeError. */
#include "shim.h"

void parameters_of(const PyCodeObject *code, Parameters *parameters) {
    *parameters = (Parameters){.positional_only = code->co_posonlyargcount, .positional = code->co_argcount,
                               .keyword_only = code->co_kwonlyargcount,
                               .takes_tuple = (code->co_flags & CO_VARARGS) != 0,
                               .takes_dict = (code->co_flags & CO_VARKEYWORDS) != 0};
    parameters->count = (Py_ssize_t)parameters->positional + parameters->keyword_only + parameters->takes_tuple +
                        parameters->takes_dict;
}

typedef struct Binding {
    const Parameters *parameters;
    PyObject *names; /* of the parameters first */
    PyObject **bound;
    PyObject *extra_keywords; /* the ** dict, NULL if the function takes none */
} Binding;

/* Index of the parameter that takes this keyword, or -1. Keywords are nearly always interned. */
static Py_ssize_t find_parameter(const Binding *binding, PyObject *keyword) {
    Py_ssize_t end = (Py_ssize_t)binding->parameters->positional + binding->parameters->keyword_only;
    Py_ssize_t start = binding->parameters->positional_only;
    for (Py_ssize_t i = start; i < end; i++)
        if (PyTuple_GET_ITEM(binding->names, i) == keyword)
            return i;
    for (Py_ssize_t i = start; i < end; i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(binding->names, i), keyword) == 0)
            return i;
    return -1;
}

static int bind_keyword(Binding *binding, PyObject *keyword, PyObject *value) {
    if (!PyUnicode_Check(keyword))
        return 1;
    Py_ssize_t index = find_parameter(binding, keyword);
    if (index < 0)
        return binding->extra_keywords ? PyDict_SetItem(binding->extra_keywords, keyword, value) : 1;
    if (binding->bound[index])
        return 1; /* given twice */
    binding->bound[index] = Py_NewRef(value);
    return 0;
}

static int bind_positional(Binding *binding, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t positional = binding->parameters->positional;
    Py_ssize_t direct = count < positional ? count : positional;
    for (Py_ssize_t i = 0; i < direct; i++)
        binding->bound[i] = Py_NewRef(args[i]);
    if (!binding->parameters->takes_tuple)
        return count > positional;
    PyObject *rest = PyTuple_New(count - direct);
    if (!rest)
        return -1;
    for (Py_ssize_t i = direct; i < count; i++)
        PyTuple_SET_ITEM(rest, i - direct, Py_NewRef(args[i]));
    binding->bound[positional + binding->parameters->keyword_only] = rest;
    return 0;
}

static int bind_defaults(Binding *binding, PyObject *defaults) {
    Py_ssize_t positional = binding->parameters->positional;
    Py_ssize_t count = defaults ? PyTuple_GET_SIZE(defaults) : 0;
    for (Py_ssize_t i = 0; i < positional; i++) {
        Py_ssize_t index = i - (positional - count);
        if (binding->bound[i])
            continue;
        if (index < 0 || index >= count)
            return 1;
        binding->bound[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, index));
    }
    return 0;
}

static int bind_keyword_defaults(Binding *binding, PyObject *defaults) {
    Py_ssize_t start = binding->parameters->positional, end = start + binding->parameters->keyword_only;
    for (Py_ssize_t i = start; i < end; i++) {
        if (binding->bound[i])
            continue;
        PyObject *value = defaults ? PyDict_GetItemWithError(defaults, PyTuple_GET_ITEM(binding->names, i)) : NULL;
        if (!value)
            return PyErr_Occurred() ? -1 : 1;
        binding->bound[i] = Py_NewRef(value);
    }
    return 0;
}

static int bind_all(Binding *binding, PyFunctionObject *function, PyObject *const *args, Py_ssize_t count,
                    PyObject *keyword_names) {
    int status = bind_positional(binding, args, count);
    Py_ssize_t keywords = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
    for (Py_ssize_t i = 0; !status && i < keywords; i++)
        status = bind_keyword(binding, PyTuple_GET_ITEM(keyword_names, i), args[count + i]);
    if (!status)
        status = bind_defaults(binding, function->func_defaults);
    return status ? status : bind_keyword_defaults(binding, function->func_kwdefaults);
}

int bind_arguments(PyFunctionObject *function, const Parameters *parameters, PyObject *const *args, Py_ssize_t count,
                   PyObject *keyword_names, PyObject **bound) {
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    Binding binding = {.parameters = parameters, .names = code->co_localsplusnames, .bound = bound};
    for (Py_ssize_t i = 0; i < parameters->count; i++)
        bound[i] = NULL;
    if (parameters->takes_dict) {
        binding.extra_keywords = bound[parameters->count - 1] = PyDict_New();
        if (!binding.extra_keywords)
            return -1;
    }
    int status = bind_all(&binding, function, args, count, keyword_names);
    for (Py_ssize_t i = 0; status && i < parameters->count; i++)
        Py_CLEAR(bound[i]);
    return status;
}
