/* The tensors of a running plan. Each operation exists twice: on handles through torch's C interface, and on Python
 * tensors for a torch whose layout or symbols were not recognised. */
#include "shim.h"

#include <string.h>

int set_torch_error(const char *what) {
    const char *text = torch.symbol.error_text ? torch.symbol.error_text() : NULL;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "%s", text && *text ? text : what);
    return -1;
}

static PyObject *size_tuple(const int64_t *sizes, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *size = PyLong_FromLongLong(sizes[i]);
        if (size)
            PyTuple_SET_ITEM(tuple, i, size);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* ---- by Python calls ---- */

static PyObject *allocate_object(int32_t scalar_type, int32_t device_type, int32_t device_index, Py_ssize_t dimensions,
                                 const int64_t *sizes, const int64_t *strides) {
    PyObject *dtype = scalar_type_object(scalar_type);
    PyObject *device = dtype ? device_object(device_type, device_index) : NULL;
    PyObject *arguments = device ? Py_BuildValue("(NN)", size_tuple(sizes, dimensions), size_tuple(strides, dimensions))
                                 : NULL;
    PyObject *keywords = arguments ? Py_BuildValue("{s:O,s:O}", "dtype", dtype, "device", device) : NULL;
    PyObject *result = keywords ? PyObject_Call(torch.object.empty_strided, arguments, keywords) : NULL;
    Py_XDECREF(device);
    Py_XDECREF(arguments);
    Py_XDECREF(keywords);
    return result;
}

static int object_integer(PyObject *result, int64_t *value);

static PyObject *view_object(PyObject *base, Py_ssize_t dimensions, const int64_t *sizes, const int64_t *strides,
                             int64_t offset) {
    int64_t start;
    if (object_integer(PyObject_CallMethod(base, "storage_offset", NULL), &start))
        return NULL;
    offset += start;
    return PyObject_CallFunction(torch.object.as_strided, "ONNL", base, size_tuple(sizes, dimensions),
                                 size_tuple(strides, dimensions), (long long)offset);
}

/* Result of a method or attribute as an int. */
static int object_integer(PyObject *result, int64_t *value) {
    *value = result ? PyLong_AsLongLong(result) : -1;
    Py_XDECREF(result);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
}

static int object_data(PyObject *tensor, void **pointer) {
    int64_t address;
    if (object_integer(PyObject_CallMethod(tensor, "data_ptr", NULL), &address))
        return -1;
    *pointer = (void *)(intptr_t)address;
    return 0;
}

static int object_device_index(PyObject *tensor, int32_t *index) {
    PyObject *device = PyObject_GetAttrString(tensor, "device");
    PyObject *number = device ? PyObject_GetAttrString(device, "index") : NULL;
    int64_t value = -1;
    int status = number && number != Py_None ? object_integer(Py_NewRef(number), &value) : number ? 0 : -1;
    Py_XDECREF(device);
    Py_XDECREF(number);
    *index = (int32_t)value;
    return status;
}

/* ---- either way ---- */

void slot_adopt_object(Slot *slot, PyObject *tensor, bool owned) {
    slot->object = tensor;
    slot->owned = owned;
    slot->handle = torch.direct ? handle_of(tensor) : NULL;
}

void slot_adopt_handle(Slot *slot, TensorHandle handle) {
    slot->object = NULL;
    slot->owned = true;
    slot->handle = handle;
}

static int adopt_new(Slot *slot, PyObject *tensor) {
    if (!tensor)
        return -1;
    slot_adopt_object(slot, tensor, true);
    return 0;
}

int slot_allocate(Slot *slot, int32_t scalar_type, int32_t device_type, int32_t device_index, Py_ssize_t dimensions,
                  const int64_t *sizes, const int64_t *strides) {
    if (!torch.direct)
        return adopt_new(slot, allocate_object(scalar_type, device_type, device_index, dimensions, sizes, strides));
    if (torch.symbol.empty_strided(dimensions, sizes, strides, scalar_type, device_type, device_index, &slot->handle))
        /* torch raises the exact exception, out of memory for one, when asked through Python */
        return adopt_new(slot, allocate_object(scalar_type, device_type, device_index, dimensions, sizes, strides));
    slot_adopt_handle(slot, slot->handle);
    return 0;
}

/* `offset` counts elements from the base's first one. A view that the caller gets to see must share its version counter with the base; an inner one need not. */
int slot_view(Slot *slot, Slot *base, Py_ssize_t dimensions, const int64_t *sizes, const int64_t *strides,
              int64_t offset, bool escapes) {
    if (torch.direct && !escapes) {
        if (torch.symbol.reinterpret_tensor(base->handle, dimensions, sizes, strides, offset, &slot->handle))
            return set_torch_error("a view could not be made");
        slot_adopt_handle(slot, slot->handle);
        return 0;
    }
    PyObject *object = slot_object(base);
    return object ? adopt_new(slot, view_object(object, dimensions, sizes, strides, offset)) : -1;
}

/* 1: the tensor has these strides, where a dimension has more than one element; 0: others; -1: an exception. */
static int slot_lies_so(Slot *slot, Py_ssize_t dimensions, const int64_t *strides) {
    int64_t size, stride, count;
    bool same = true;
    if (slot_element_count(slot, &count))
        return -1;
    for (Py_ssize_t i = 0; i < dimensions && count > 1; i++) {
        if (slot_size(slot, i, &size) || slot_stride(slot, i, &stride))
            return -1;
        same = same && (size == 1 || stride == strides[i]);
    }
    return same;
}

int slot_lay_out(Slot *slot, Py_ssize_t dimensions, const int64_t *strides) {
    int same = slot_lies_so(slot, dimensions, strides);
    if (same)
        return same < 0 ? -1 : 0;
    PyObject *found = slot_object(slot);
    PyObject *sizes = found ? PyObject_GetAttrString(found, "shape") : NULL;
    PyObject *fresh = sizes ? PyObject_CallMethod(found, "new_empty_strided", "ON", sizes, size_tuple(strides, dimensions))
                            : NULL;
    PyObject *filled = fresh ? PyObject_CallMethod(fresh, "copy_", "O", found) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(fresh);
    if (!filled)
        return -1;
    slot_clear(slot);
    slot_adopt_object(slot, filled, true);
    return 0;
}

PyObject *slot_object(Slot *slot) {
    if (slot->object)
        return slot->object;
    PyObject *object = torch.symbol.wrap(slot->handle); /* moves the tensor out of the handle */
    torch.symbol.delete_tensor(slot->handle);
    slot->handle = NULL;
    slot->owned = false;
    if (!object)
        return NULL;
    if (!PyObject_TypeCheck(object, torch.object.tensor_type)) {
        Py_DECREF(object);
        return PyErr_Format(PyExc_RuntimeError, "an operator gave no tensor where a compiled graph needs one");
    }
    slot_adopt_object(slot, object, true);
    return object;
}

int slot_written(Slot *slot) {
    if (slot->handle && torch.symbol.bump_version) {
        torch.symbol.bump_version(slot->handle);
        return 0;
    }
    PyObject *tensor = slot_object(slot);
    PyObject *module = tensor ? PyImport_ImportModule("torch.autograd.graph") : NULL;
    PyObject *result = module ? PyObject_CallMethod(module, "increment_version", "O", tensor) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

int slot_data(Slot *slot, void **pointer) {
    if (!torch.direct)
        return object_data(slot->object, pointer);
    return torch.symbol.data_pointer(slot->handle, pointer) ? set_torch_error("a tensor has no data") : 0;
}

static int check_dimension(int64_t dimension, int64_t dimensions) {
    if (dimension >= 0 && dimension < dimensions)
        return 0;
    PyErr_Format(PyExc_IndexError, "dimension %lld of a tensor with %lld", (long long)dimension, (long long)dimensions);
    return -1;
}

int slot_size(Slot *slot, int64_t dimension, int64_t *size) {
    if (!torch.direct)
        return object_integer(PyObject_CallMethod(slot->object, "size", "L", (long long)dimension), size);
    int64_t dimensions, *sizes;
    if (torch.symbol.dimensions(slot->handle, &dimensions) || torch.symbol.sizes(slot->handle, &sizes))
        return set_torch_error("a tensor has no sizes");
    if (check_dimension(dimension, dimensions))
        return -1;
    *size = sizes[dimension];
    return 0;
}

int slot_stride(Slot *slot, int64_t dimension, int64_t *stride) {
    if (!torch.direct)
        return object_integer(PyObject_CallMethod(slot->object, "stride", "L", (long long)dimension), stride);
    int64_t dimensions, *strides;
    if (torch.symbol.dimensions(slot->handle, &dimensions) || torch.symbol.strides(slot->handle, &strides))
        return set_torch_error("a tensor has no strides");
    if (check_dimension(dimension, dimensions))
        return -1;
    *stride = strides[dimension];
    return 0;
}

int slot_element_count(Slot *slot, int64_t *count) {
    if (!torch.direct)
        return object_integer(PyObject_CallMethod(slot->object, "numel", NULL), count);
    return torch.symbol.element_count(slot->handle, count) ? set_torch_error("a tensor has no sizes") : 0;
}

int slot_device_index(Slot *slot, int32_t *index) {
    if (!torch.direct)
        return object_device_index(slot->object, index);
    return torch.symbol.device_index(slot->handle, index) ? set_torch_error("a tensor has no device") : 0;
}

void slot_clear(Slot *slot) {
    Slot old = *slot;
    memset(slot, 0, sizeof *slot);
    if (!old.owned)
        return;
    if (old.object)
        Py_DECREF(old.object);
    else if (old.handle)
        torch.symbol.delete_tensor(old.handle);
}
