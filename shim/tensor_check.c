/* The guard on one tensor: cheapest and most telling comparisons first. The dispatch key set rules out conjugate,
 * negative, sparse, quantized and functorch tensors when the captured tensor was none of them. */
#include "tensor_check.h"

#include <string.h>

static int read_sizes(PyObject *source, int64_t *sizes, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(source, i);
        sizes[i] = item == Py_None ? ANY_SIZE : PyLong_AsLongLong(item);
        if (sizes[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static int parse_sizes(TensorCheck *check, PyObject *sizes, PyObject *strides) {
    if (sizes == Py_None) {
        check->dimensions = -1;
        return 0;
    }
    PyObject *first = PySequence_Fast(sizes, "sizes of a tensor check must be a sequence");
    PyObject *second = first ? PySequence_Fast(strides == Py_None ? sizes : strides, "strides must be a sequence") : NULL;
    int status = -1;
    if (second && PySequence_Fast_GET_SIZE(first) != PySequence_Fast_GET_SIZE(second)) {
        PyErr_SetString(PyExc_ValueError, "a tensor check has different numbers of sizes and strides");
    } else if (second) {
        check->dimensions = PySequence_Fast_GET_SIZE(first);
        check->sizes = PyMem_Calloc((size_t)check->dimensions * 2 + 1, sizeof(int64_t));
        check->strides = check->sizes ? check->sizes + check->dimensions : NULL;
        status = check->sizes ? read_sizes(first, check->sizes, check->dimensions) : -1;
        if (!status)
            status = read_sizes(second, check->strides, check->dimensions);
        for (Py_ssize_t i = 0; !status && strides == Py_None && i < check->dimensions; i++)
            check->strides[i] = ANY_SIZE;
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    return status;
}

/* "cuda:1" -> type 1, index 1; "cpu" -> type 0 and no index. */
static int parse_device(TensorCheck *check, const char *device) {
    char name[32];
    size_t length = strcspn(device, ":");
    snprintf(name, sizeof name, "%.*s", (int)length, device);
    check->device_index = device[length] ? (int32_t)strtol(device + length + 1, NULL, 10) : -1;
    return device_type_number(name, &check->device_type);
}

static int parse_metadata(TensorCheck *check, PyObject *metadata) {
    const char *dtype, *device;
    PyObject *sizes, *strides, *offset, *requires_grad, *flags, *key_set = NULL;
    if (!PyArg_ParseTuple(metadata, "ssOOOOO|O:tensor check", &dtype, &device, &sizes, &strides, &offset,
                          &requires_grad, &flags, &key_set))
        return -1;
    int grad = PyObject_IsTrue(requires_grad);
    if (grad < 0 || scalar_type_number(dtype, &check->dtype) || parse_device(check, device) ||
        parse_sizes(check, sizes, strides))
        return -1;
    check->requires_grad = grad;
    check->asks_device = check->device_index >= 0 && check->device_type != 0;
    check->dtype_object = Py_XNewRef(scalar_type_object(check->dtype));
    check->device_name = PyUnicode_FromString(device);
    check->has_key_set = key_set && key_set != Py_None;
    if (check->has_key_set)
        check->key_set = PyLong_AsUnsignedLongLong(key_set);
    else
        check->asks_device = true;
    return PyErr_Occurred() ? -1 : 0;
}

TensorCheck *tensor_check_new(PyObject *type, PyObject *metadata) {
    if (!torch.ready) {
        PyErr_SetString(PyExc_RuntimeError, "calibrate(torch) must come before the first tensor check");
        return NULL;
    }
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, torch.object.tensor_type) ||
        !PyTuple_Check(metadata)) {
        PyErr_SetString(PyExc_TypeError, "a tensor check takes a type of tensors and a metadata tuple");
        return NULL;
    }
    TensorCheck *check = PyMem_Calloc(1, sizeof *check);
    if (!check)
        return (TensorCheck *)PyErr_NoMemory();
    check->type = (PyTypeObject *)Py_NewRef(type);
    if (parse_metadata(check, metadata)) {
        tensor_check_free(check);
        return NULL;
    }
    return check;
}

/* The key set of the tensor that was captured, unless the check has one. One that cannot be read matches no tensor. */
void tensor_check_take_key_set(TensorCheck *check, PyObject *value) {
    if (check->has_key_set || Py_TYPE(value) != check->type)
        return;
    if (key_set_of(value, &check->key_set)) {
        PyErr_Clear();
        check->key_set = 0;
    }
    check->has_key_set = true;
    check->asks_device = check->device_index >= 0 && check->device_type != 0;
}

void tensor_check_free(TensorCheck *check) {
    if (!check)
        return;
    Py_XDECREF(check->type);
    Py_XDECREF(check->dtype_object);
    Py_XDECREF(check->device_name);
    PyMem_Free(check->sizes);
    PyMem_Free(check);
}

/* What the inline check in the header leaves to torch's functions. */
bool tensor_check_by_calls(const TensorCheck *check, const char *implementation, TensorHandle handle) {
    int32_t dtype;
    return torch.symbol.requires_grad(implementation) == check->requires_grad && !torch.symbol.dtype(handle, &dtype) &&
           dtype == check->dtype && tensor_device_holds(check, handle) && tensor_shape_holds(check, handle);
}

bool tensor_shape_holds(const TensorCheck *check, TensorHandle handle) {
    int64_t dimensions, *sizes, *strides;
    if (check->dimensions < 0)
        return true;
    return !torch.symbol.dimensions(handle, &dimensions) && dimensions == check->dimensions &&
           !torch.symbol.sizes(handle, &sizes) && sizes_hold(check->sizes, sizes, dimensions) &&
           !torch.symbol.strides(handle, &strides) && sizes_hold(check->strides, strides, dimensions);
}

bool tensor_device_holds(const TensorCheck *check, TensorHandle handle) {
    int32_t type, index;
    if (!check->has_key_set && (torch.symbol.device_type(handle, &type) || type != check->device_type))
        return false; /* otherwise the key set has said so */
    return check->device_index < 0 || check->device_type == 0 ||
           (!torch.symbol.device_index(handle, &index) && index == check->device_index);
}

static bool attribute_is(PyObject *tensor, const char *name, PyObject *expected) {
    PyObject *value = PyObject_GetAttrString(tensor, name);
    bool same = value == expected;
    Py_XDECREF(value);
    return same;
}

static bool device_holds_portable(const TensorCheck *check, PyObject *tensor) {
    PyObject *device = PyObject_GetAttrString(tensor, "device");
    PyObject *name = device ? PyObject_Str(device) : NULL;
    bool same = name && PyUnicode_Compare(name, check->device_name) == 0;
    Py_XDECREF(device);
    Py_XDECREF(name);
    return same;
}

static bool sequence_holds(PyObject *found, const int64_t *expected, int64_t count) {
    bool holds = found && PyTuple_Check(found) && PyTuple_GET_SIZE(found) == count;
    for (int64_t i = 0; holds && i < count; i++)
        holds = expected[i] == ANY_SIZE || PyLong_AsLongLong(PyTuple_GET_ITEM(found, i)) == expected[i];
    Py_XDECREF(found);
    return holds;
}

static bool shape_holds_portable(const TensorCheck *check, PyObject *tensor) {
    if (check->dimensions < 0)
        return true;
    return sequence_holds(PyObject_GetAttrString(tensor, "shape"), check->sizes, check->dimensions) &&
           sequence_holds(PyObject_CallMethod(tensor, "stride", NULL), check->strides, check->dimensions);
}

static bool holds_portable(const TensorCheck *check, PyObject *tensor) {
    uint64_t keys;
    if (check->has_key_set && (key_set_of(tensor, &keys) || keys != check->key_set))
        return false;
    return attribute_is(tensor, "requires_grad", check->requires_grad ? Py_True : Py_False) &&
           attribute_is(tensor, "dtype", check->dtype_object) && device_holds_portable(check, tensor) &&
           shape_holds_portable(check, tensor);
}

bool tensor_check_portable(const TensorCheck *check, PyObject *value) {
    bool holds = holds_portable(check, value);
    PyErr_Clear();
    return holds;
}
