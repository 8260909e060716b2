/* Steps that call an operator of ATen. Three ways, chosen when the plan is made:
 *
 * - "dispatcher": torch's C interface to the dispatcher (aten_dispatch.c), about 1.2 us for a small relu. When it fails,
 *   the overload is called again, which raises exactly what eager raises; so only for operators that change nothing.
 * - "binding": the function that eager code calls, for a few operators whose arguments the C interface cannot carry
 *   (numbers of either kind) or which change an argument; about 1.3 us.
 * - "overload": torch.ops.aten.NAME.OVERLOAD, which takes everything, about 4.5 us; also what other libraries define. */
#include "aten.h"

#include <string.h>

struct AtenCall {
    PyObject *overload; /* torch.ops.NAMESPACE.NAME.OVERLOAD */
    PyObject *operation; /* the C++ function inside it, or the function of the binding */
    bool binding;
    StableCall *stable; /* NULL unless called through the dispatcher */
    Argument *arguments;
    Py_ssize_t argument_count, positional_count;
    PyObject *keyword_names; /* of the arguments after the positional ones; NULL if none */
    Py_ssize_t *outputs;
    Py_ssize_t output_count;
};

/* ---- construction ---- */

static int parse_slots(PyObject *source, SlotUse *uses, bool optional, Argument *argument) {
    PyObject *list = PySequence_Fast(source, "an operator needs a list of slots here");
    if (!list)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    argument->slots = PyMem_Calloc((size_t)count + 1, sizeof *argument->slots);
    argument->count = count;
    int status = argument->slots ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; !status && i < count; i++) {
        status = parse_slot_number(PySequence_Fast_GET_ITEM(list, i), &argument->slots[i]);
        if (!status && !(optional && argument->slots[i] == -1))
            status = use_slot(uses, argument->slots[i], SLOT_TENSOR);
    }
    Py_DECREF(list);
    return status;
}

static int parse_tensor(PyObject *source, SlotUse *uses, Argument *argument) {
    argument->kind = ARGUMENT_TENSOR;
    argument->slots = PyMem_Calloc(1, sizeof *argument->slots);
    argument->count = 1;
    if (!argument->slots) {
        PyErr_NoMemory();
        return -1;
    }
    return parse_slot_number(source, argument->slots) || use_slot(uses, *argument->slots, SLOT_TENSOR) ? -1 : 0;
}

static int parse_integer(PyObject *source, SlotUse *uses, Argument *argument) {
    argument->integers = PyMem_Calloc(1, sizeof *argument->integers);
    argument->count = argument->integers ? 1 : 0;
    if (argument->integers)
        return integer_parse(source, uses, argument->integers);
    PyErr_NoMemory();
    return -1;
}

static int fixed(Argument *argument, char code, PyObject *object, int64_t number) {
    argument->kind = ARGUMENT_OBJECT;
    argument->code = code;
    argument->object = object;
    argument->number = number;
    return object ? 0 : -1;
}

/* By the numbers of c10::Layout and c10::MemoryFormat. */
static const char *const layout_names[] = {"strided", "sparse_coo", "sparse_csr", "_mkldnn"};
static const char *const memory_format_names[] = {"contiguous_format", "preserve_format", "channels_last",
                                                  "channels_last_3d"};

static int parse_named(PyObject *number, const char *const *names, char code, Argument *argument) {
    Py_ssize_t index = PyLong_AsSsize_t(number);
    if (index >= 0 && index < 4)
        return fixed(argument, code, PyObject_GetAttrString(torch.object.module, names[index]), index);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%R is not a number that torch gives a meaning here", number);
    return -1;
}

static int parse_dtype(PyObject *number, Argument *argument) {
    long value = PyLong_AsLong(number);
    if (value == -1 && PyErr_Occurred())
        return -1;
    return fixed(argument, CODE_DTYPE, Py_XNewRef(scalar_type_object((int32_t)value)), value);
}

static int parse_device_argument(PyObject *source, Argument *argument) {
    int type, index;
    if (!PyArg_ParseTuple(source, "Oii:device argument", &(PyObject *){NULL}, &type, &index))
        return -1;
    int64_t packed = (int64_t)(((uint64_t)(uint32_t)type << 32) | (uint32_t)index);
    return fixed(argument, CODE_DEVICE, device_object(type, index), packed);
}

static bool is_named(PyObject *name, const char *expected) {
    return PyUnicode_CompareWithASCIIString(name, expected) == 0;
}

static int parse_float(PyObject *value, Argument *argument) {
    double number = PyFloat_AsDouble(value);
    int64_t bits;
    if (number == -1 && PyErr_Occurred())
        return -1;
    memcpy(&bits, &number, sizeof bits);
    return fixed(argument, CODE_FLOAT, PyFloat_FromDouble(number), bits);
}

static int parse_bool(PyObject *value, Argument *argument) {
    int truth = PyObject_IsTrue(value);
    return truth < 0 ? -1 : fixed(argument, CODE_BOOL, PyBool_FromLong(truth), truth);
}

/* ("float_slot", i): a float that the graph was called with. */
static int parse_float_slot(PyObject *value, SlotUse *uses, Argument *argument) {
    argument->kind = ARGUMENT_FLOAT;
    argument->slots = PyMem_Calloc(1, sizeof *argument->slots);
    if (!argument->slots) {
        PyErr_NoMemory();
        return -1;
    }
    return parse_slot_number(PyTuple_GET_ITEM(value, 1), argument->slots) || use_slot(uses, *argument->slots, SLOT_SCALAR) ? -1 : 0;
}

static bool is_float_slot(PyObject *value) {
    return PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2 && PyUnicode_Check(PyTuple_GET_ITEM(value, 0)) &&
           is_named(PyTuple_GET_ITEM(value, 0), "float_slot");
}

static int parse_scalar(PyObject *value, SlotUse *uses, Argument *argument) {
    if (PyFloat_Check(value))
        return parse_float(value, argument);
    if (PyBool_Check(value))
        return parse_bool(value, argument);
    if (is_float_slot(value))
        return parse_float_slot(value, uses, argument);
    if (!PyLong_Check(value) && !PyTuple_Check(value))
        return fixed(argument, CODE_OTHER, Py_NewRef(value), 0);
    argument->kind = ARGUMENT_INTEGER;
    return parse_integer(value, uses, argument);
}

typedef int (*ParseValue)(PyObject *value, SlotUse *uses, Argument *argument);

static int parse_tensor_list(PyObject *value, SlotUse *uses, Argument *argument) {
    argument->kind = ARGUMENT_TENSORS;
    return parse_slots(value, uses, false, argument);
}

static int parse_optional_tensors(PyObject *value, SlotUse *uses, Argument *argument) {
    argument->kind = ARGUMENT_TENSORS;
    argument->has_optional = true;
    return parse_slots(value, uses, true, argument);
}

static int parse_integers(PyObject *value, SlotUse *uses, Argument *argument) {
    argument->kind = ARGUMENT_INTEGERS;
    return integer_list_parse(value, uses, &argument->integers, &argument->count);
}

static int parse_object(PyObject *value, SlotUse *Py_UNUSED(uses), Argument *argument) {
    return fixed(argument, CODE_OTHER, PyList_Check(value) ? PySequence_List(value) : Py_NewRef(value), 0);
}

static int parse_text(PyObject *value, SlotUse *Py_UNUSED(uses), Argument *argument) {
    if (PyUnicode_Check(value))
        return fixed(argument, CODE_STRING, Py_NewRef(value), 0);
    PyErr_Format(PyExc_TypeError, "%R is not a str", value);
    return -1;
}

static int parse_float_value(PyObject *value, SlotUse *uses, Argument *argument) {
    return is_float_slot(value) ? parse_float_slot(value, uses, argument) : parse_float(value, argument);
}

static int parse_bool_value(PyObject *value, SlotUse *Py_UNUSED(uses), Argument *argument) {
    return parse_bool(value, argument);
}

static int parse_dtype_value(PyObject *value, SlotUse *Py_UNUSED(uses), Argument *argument) {
    return parse_dtype(value, argument);
}

static int parse_layout_value(PyObject *value, SlotUse *Py_UNUSED(uses), Argument *argument) {
    return parse_named(value, layout_names, CODE_LAYOUT, argument);
}

static int parse_memory_format_value(PyObject *value, SlotUse *Py_UNUSED(uses), Argument *argument) {
    return parse_named(value, memory_format_names, CODE_MEMORY_FORMAT, argument);
}

typedef struct TagRow {
    const char *tag;
    ParseValue parse;
} TagRow;

static const TagRow tag_rows[] = {
    {"t", parse_tensor},
    {"tensors", parse_tensor_list},
    {"optional_tensors", parse_optional_tensors},
    {"int", parse_scalar},
    {"scalar", parse_scalar},
    {"ints", parse_integers},
    {"float", parse_float_value},
    {"bool", parse_bool_value},
    {"str", parse_text},
    {"dtype", parse_dtype_value},
    {"layout", parse_layout_value},
    {"memory_format", parse_memory_format_value},
    {"floats", parse_object},
    {"bools", parse_object},
    {"generator", parse_object},
};

static int parse_tagged(PyObject *source, SlotUse *uses, Argument *argument) {
    PyObject *tag = PyTuple_GET_ITEM(source, 0);
    if (is_named(tag, "none"))
        return fixed(argument, CODE_OTHER, Py_NewRef(Py_None), 0);
    if (is_named(tag, "device"))
        return parse_device_argument(source, argument);
    for (size_t i = 0; PyTuple_GET_SIZE(source) == 2 && i < sizeof tag_rows / sizeof tag_rows[0]; i++)
        if (is_named(tag, tag_rows[i].tag))
            return tag_rows[i].parse(PyTuple_GET_ITEM(source, 1), uses, argument);
    PyErr_Format(PyExc_ValueError, "%R is not an argument of an operator", source);
    return -1;
}

static int parse_argument(PyObject *source, SlotUse *uses, Argument *argument) {
    if (!PyTuple_Check(source) || PyTuple_GET_SIZE(source) < 1 || !PyUnicode_Check(PyTuple_GET_ITEM(source, 0))) {
        PyErr_Format(PyExc_TypeError, "an argument of an operator must be a tuple that starts with a name, not %R",
                     source);
        return -1;
    }
    return parse_tagged(source, uses, argument);
}

static int parse_arguments(AtenCall *call, PyObject *source, SlotUse *uses) {
    PyObject *list = PySequence_Fast(source, "the arguments of an operator must be a list");
    if (!list)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    call->arguments = PyMem_Calloc((size_t)count + 1, sizeof *call->arguments);
    int status = call->arguments ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; !status && i < count; i++) {
        call->argument_count = i + 1;
        status = parse_argument(PySequence_Fast_GET_ITEM(list, i), uses, &call->arguments[i]);
    }
    Py_DECREF(list);
    return status;
}

static int parse_outputs(AtenCall *call, PyObject *source, SlotUse *uses) {
    PyObject *list = PySequence_Fast(source, "the outputs of an operator must be a list of slots");
    if (!list)
        return -1;
    call->output_count = PySequence_Fast_GET_SIZE(list);
    call->outputs = PyMem_Calloc((size_t)call->output_count + 1, sizeof *call->outputs);
    int status = call->outputs ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; !status && i < call->output_count; i++) {
        status = parse_slot_number(PySequence_Fast_GET_ITEM(list, i), &call->outputs[i]);
        if (!status && call->outputs[i] != -1) /* -1: nobody wants it */
            status = define_slot(uses, call->outputs[i]);
    }
    Py_DECREF(list);
    return status;
}

/* Schema arguments marked keyword-only must be passed by name. */
static int read_schema(AtenCall *call) {
    PyObject *schema = PyObject_GetAttrString(call->overload, "_schema");
    PyObject *arguments = schema ? PyObject_GetAttrString(schema, "arguments") : NULL;
    PyObject *names = arguments ? PyList_New(0) : NULL;
    Py_ssize_t count = names ? PySequence_Size(arguments) : -1;
    int status = names && count >= 0 ? 0 : -1;
    if (!status && count < call->argument_count) {
        PyErr_Format(PyExc_ValueError, "%R takes %zd arguments, the plan gives %zd", call->overload, count,
                     call->argument_count);
        status = -1;
    }
    call->positional_count = count = call->argument_count; /* the rest keep their defaults */
    for (Py_ssize_t i = 0; !status && i < count; i++) {
        PyObject *argument = PySequence_GetItem(arguments, i);
        PyObject *by_name = argument ? PyObject_GetAttrString(argument, "kwarg_only") : NULL;
        PyObject *name = by_name == Py_True ? PyObject_GetAttrString(argument, "name") : NULL;
        if (name && call->positional_count == count)
            call->positional_count = i;
        status = !by_name || (by_name == Py_True && !name) || (name && PyList_Append(names, name)) ? -1 : 0;
        Py_XDECREF(argument);
        Py_XDECREF(by_name);
        Py_XDECREF(name);
    }
    if (!status && PyList_GET_SIZE(names))
        status = (call->keyword_names = PyList_AsTuple(names)) ? 0 : -1;
    Py_XDECREF(schema);
    Py_XDECREF(arguments);
    Py_XDECREF(names);
    return status;
}

/* Operators of other libraries carry their namespace, as in "torchvision::nms". */
static bool is_foreign(const char *name) {
    return strstr(name, "::") != NULL;
}

/* torch.ops.NAMESPACE.NAME */
static PyObject *find_foreign(const char *name) {
    const char *colons = strstr(name, "::");
    PyObject *namespace_name = PyUnicode_FromStringAndSize(name, colons - name);
    PyObject *operators = namespace_name ? PyObject_GetAttrString(torch.object.module, "ops") : NULL;
    PyObject *library = operators ? PyObject_GetAttr(operators, namespace_name) : NULL;
    PyObject *found = library ? PyObject_GetAttrString(library, colons + 2) : NULL;
    Py_XDECREF(namespace_name);
    Py_XDECREF(operators);
    Py_XDECREF(library);
    return found;
}

static PyObject *find_overload(const char *name, const char *overload) {
    PyObject *packet = is_foreign(name) ? find_foreign(name) : PyObject_GetAttrString(torch.object.aten, name);
    PyObject *found = packet ? PyObject_GetAttrString(packet, *overload ? overload : "default") : NULL;
    Py_XDECREF(packet);
    return found;
}

typedef struct BindingRow {
    const char *name, *overload;
    const char *path; /* below torch */
} BindingRow;

/* Only operators whose eager binding takes the schema's arguments in the schema's order, and resolves to this overload
 * whenever they are given. */
static const BindingRow binding_rows[] = {
    {"add", "Tensor", "_C._VariableFunctions.add"},        {"sub", "Tensor", "_C._VariableFunctions.sub"},
    {"addmm", "default", "_C._VariableFunctions.addmm"},   {"baddbmm", "default", "_C._VariableFunctions.baddbmm"},
    {"addmv", "default", "_C._VariableFunctions.addmv"},   {"addcmul", "default", "_C._VariableFunctions.addcmul"},
    {"addcdiv", "default", "_C._VariableFunctions.addcdiv"}, {"lerp", "Scalar", "_C._VariableFunctions.lerp"},
    {"pow", "Tensor_Scalar", "_C._VariableFunctions.pow"}, {"clamp", "default", "_C._VariableFunctions.clamp"},
    {"copy_", "default", "_C.TensorBase.copy_"},           {"add_", "Tensor", "_C.TensorBase.add_"},
    {"mul_", "Tensor", "_C.TensorBase.mul_"},              {"zero_", "default", "_C.TensorBase.zero_"},
};

static int choose_binding(AtenCall *call, const char *name, const char *overload) {
    for (size_t i = 0; i < sizeof binding_rows / sizeof binding_rows[0]; i++) {
        const BindingRow *row = &binding_rows[i];
        if (strcmp(row->name, name) || strcmp(row->overload, *overload ? overload : "default"))
            continue;
        PyObject *function = attribute_path(torch.object.module, row->path);
        if (!function)
            return -1;
        Py_SETREF(call->operation, function);
        call->binding = true;
        return 0;
    }
    return 0;
}

/* oneDNN's layers of LSTM give what their backward reads, the last result, only where gradients are recorded. */
static int choose_recorded_layer(AtenCall *call, const char *name) {
    if (strcmp(name, "mkldnn_rnn_layer") || call->outputs[call->output_count - 1] == -1)
        return 0;
    PyObject *module = PyImport_ImportModule("fusee._gradients");
    PyObject *function = module ? PyObject_GetAttrString(module, "recorded_layer") : NULL;
    Py_XDECREF(module);
    if (!function)
        return -1;
    Py_SETREF(call->operation, function);
    return 1;
}

/* What another library's operator does when it is called again after it failed is not known. */
static int choose_way(AtenCall *call, const char *name, const char *overload) {
    int recorded = is_foreign(name) ? 1 : choose_recorded_layer(call, name);
    if (recorded)
        return recorded < 0 ? -1 : 0;
    if (torch.direct &&
        stable_call_new(call->overload, name, overload, call->arguments, call->argument_count, call->output_count,
                        &call->stable))
        return -1;
    return call->stable ? 0 : choose_binding(call, name, overload);
}

/* step: ("aten", name, overload, arguments, outputs) */
AtenCall *aten_call_new(PyObject *step, SlotUse *uses) {
    const char *name, *overload;
    PyObject *arguments, *outputs;
    if (!PyArg_ParseTuple(step, "OssOO:aten step", &(PyObject *){NULL}, &name, &overload, &arguments, &outputs))
        return NULL;
    AtenCall *call = PyMem_Calloc(1, sizeof *call);
    if (!call)
        return (AtenCall *)PyErr_NoMemory();
    call->overload = find_overload(name, overload);
    call->operation = call->overload ? PyObject_GetAttrString(call->overload, "_op") : NULL;
    if (call->operation && !parse_arguments(call, arguments, uses) && !parse_outputs(call, outputs, uses) &&
        !read_schema(call) && !choose_way(call, name, overload))
        return call;
    aten_call_free(call);
    return NULL;
}

void aten_call_free(AtenCall *call) {
    if (!call)
        return;
    for (Py_ssize_t i = 0; i < call->argument_count; i++) {
        integer_list_free(call->arguments[i].integers, call->arguments[i].count);
        PyMem_Free(call->arguments[i].slots);
        PyMem_Free(call->arguments[i].numbers);
        Py_XDECREF(call->arguments[i].object);
    }
    stable_call_free(call->stable);
    PyMem_Free(call->arguments);
    PyMem_Free(call->outputs);
    Py_XDECREF(call->keyword_names);
    Py_XDECREF(call->operation);
    Py_XDECREF(call->overload);
    PyMem_Free(call);
}

/* ---- running ---- */

static PyObject *tensor_or_none(Slot *slots, Py_ssize_t slot) {
    return Py_XNewRef(slot < 0 ? Py_None : slot_object(&slots[slot]));
}

static PyObject *tensor_list(const Argument *argument, Slot *slots) {
    PyObject *list = PyList_New(argument->count);
    for (Py_ssize_t i = 0; list && i < argument->count; i++) {
        PyObject *tensor = tensor_or_none(slots, argument->slots[i]);
        if (tensor)
            PyList_SET_ITEM(list, i, tensor);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *integer_object(const Integer *integer, Slot *slots) {
    int64_t value;
    return integer_value(integer, slots, &value) ? NULL : PyLong_FromLongLong(value);
}

static PyObject *integer_objects(const Argument *argument, Slot *slots) {
    PyObject *list = PyList_New(argument->count);
    for (Py_ssize_t i = 0; list && i < argument->count; i++) {
        PyObject *value = integer_object(&argument->integers[i], slots);
        if (value)
            PyList_SET_ITEM(list, i, value);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *float_object(const Slot *slot) {
    double number;
    memcpy(&number, &slot->scalar, sizeof number);
    return PyFloat_FromDouble(number);
}

static PyObject *argument_object(const Argument *argument, Slot *slots) {
    switch (argument->kind) {
    case ARGUMENT_TENSOR:
        return tensor_or_none(slots, argument->slots[0]);
    case ARGUMENT_TENSORS:
        return tensor_list(argument, slots);
    case ARGUMENT_INTEGER:
        return integer_object(argument->integers, slots);
    case ARGUMENT_INTEGERS:
        return integer_objects(argument, slots);
    case ARGUMENT_FLOAT:
        return float_object(&slots[argument->slots[0]]);
    case ARGUMENT_OBJECT:
        return Py_NewRef(argument->object);
    }
    return NULL;
}

static int store_output(Slot *slot, PyObject *value) {
    if (!PyObject_TypeCheck(value, torch.object.tensor_type)) {
        PyErr_Format(PyExc_TypeError, "an operator returned %R where the plan expects a tensor", value);
        return -1;
    }
    slot_adopt_object(slot, Py_NewRef(value), true);
    return 0;
}

/* The outputs of an operator: one tensor, or a tuple or list of them. */
static int store_outputs(const AtenCall *call, PyObject *result, Slot *slots) {
    if (call->output_count == 0)
        return 0;
    bool several = PyTuple_Check(result) || PyList_Check(result);
    Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(result) : 1;
    if (count != call->output_count) {
        PyErr_Format(PyExc_RuntimeError, "%R returned %zd values, the plan expects %zd", call->overload, count,
                     call->output_count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (call->outputs[i] >= 0 &&
            store_output(&slots[call->outputs[i]], several ? PySequence_Fast_GET_ITEM(result, i) : result))
            return -1;
    return 0;
}

enum { STACK_ARGUMENTS = 16 };

static int run_by_python(const AtenCall *call, Slot *slots) {
    PyObject *stack[STACK_ARGUMENTS] = {NULL};
    PyObject **values = stack, *result = NULL;
    Py_ssize_t count = call->argument_count, done = 0;
    if (count > STACK_ARGUMENTS && !(values = PyMem_Malloc((size_t)count * sizeof *values))) {
        PyErr_NoMemory();
        return -1;
    }
    while (done < count && (values[done] = argument_object(&call->arguments[done], slots)))
        done++;
    if (done == count)
        result = PyObject_Vectorcall(call->operation, values, (size_t)call->positional_count, call->keyword_names);
    for (Py_ssize_t i = 0; i < done; i++)
        Py_DECREF(values[i]);
    if (values != stack)
        PyMem_Free(values);
    int status = result ? store_outputs(call, result, slots) : -1;
    Py_XDECREF(result);
    return status;
}

/* An operator that fails through the dispatcher is called again for its exception. If that succeeds, the C interface
 * of this torch cannot carry the arguments after all. */
int aten_call_run(AtenCall *call, Slot *slots) {
    if (!call->stable)
        return run_by_python(call, slots);
    int status = stable_call_run(call->stable, call->arguments, slots, call->outputs, call->output_count);
    if (status <= 0)
        return status;
    status = run_by_python(call, slots);
    if (!status) {
        stable_call_free(call->stable);
        call->stable = NULL;
    }
    return status;
}

PyObject *aten_call_describe(const AtenCall *call) {
    const char *way = call->stable ? "dispatcher" : call->binding ? "binding" : "overload";
    return Py_BuildValue("(sNs)", "aten", PyObject_Str(call->overload), way);
}
