/* Calls an operator through torch's C interface to the dispatcher. Every argument becomes a 64-bit StableIValue: numbers
 * directly, tensors, lists, strings and optionals as pointers that the call takes over. */
#include "aten.h"

#include <string.h>

enum { MOST_VALUES = 32, TYPE_LENGTH = 6 };

struct StableCall {
    char *name, *overload; /* "aten::relu", "" */
    Py_ssize_t argument_count, return_count;
    char types[MOST_VALUES][TYPE_LENGTH]; /* codes of the schema's arguments */
    bool returns_list;
};

/* ---- the schema ---- */

typedef struct KindRow {
    const char *kind;
    char code;
} KindRow;

static const KindRow kind_rows[] = {
    {"TensorType", CODE_TENSOR},       {"IntType", CODE_INTEGER},         {"SymIntType", CODE_INTEGER},
    {"FloatType", CODE_FLOAT},         {"BoolType", CODE_BOOL},           {"ScalarTypeType", CODE_DTYPE},
    {"LayoutType", CODE_LAYOUT},       {"MemoryFormatType", CODE_MEMORY_FORMAT}, {"DeviceObjType", CODE_DEVICE},
    {"StringType", CODE_STRING},       {"OptionalType", CODE_OPTIONAL},   {"ListType", CODE_LIST},
};

static char code_of_kind(const char *kind) {
    for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++)
        if (!strcmp(kind, kind_rows[i].kind))
            return kind_rows[i].code;
    return CODE_OTHER;
}

/* Writes the codes of a JIT type, outermost first: "OLi" is an optional list of ints. */
static int read_type(PyObject *type, char *codes) {
    PyObject *current = Py_NewRef(type);
    int length = 0;
    while (current && length < TYPE_LENGTH - 1) {
        PyObject *kind = PyObject_CallMethod(current, "kind", NULL);
        const char *text = kind ? PyUnicode_AsUTF8(kind) : NULL;
        codes[length] = text ? code_of_kind(text) : CODE_OTHER;
        Py_XDECREF(kind);
        if (!text)
            Py_CLEAR(current);
        else if (codes[length] != CODE_OPTIONAL && codes[length] != CODE_LIST)
            break;
        else
            Py_SETREF(current, PyObject_CallMethod(current, "getElementType", NULL));
        length++;
    }
    codes[current && length < TYPE_LENGTH - 1 ? length + 1 : TYPE_LENGTH - 1] = 0;
    Py_XDECREF(current);
    return current ? 0 : -1;
}

static int read_types(PyObject *schema, const char *attribute, char (*types)[TYPE_LENGTH], Py_ssize_t *count) {
    PyObject *list = PyObject_GetAttrString(schema, attribute);
    *count = list ? PySequence_Size(list) : -1;
    int status = *count < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; !status && i < *count && i < MOST_VALUES; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        PyObject *type = item ? PyObject_GetAttrString(item, "real_type") : NULL;
        status = type ? read_type(type, types[i]) : -1;
        Py_XDECREF(item);
        Py_XDECREF(type);
    }
    Py_XDECREF(list);
    return status;
}

static int is_mutable(PyObject *schema) {
    PyObject *value = PyObject_GetAttrString(schema, "is_mutable");
    int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth;
}

/* ---- whether an argument can be carried ---- */

static int64_t float_bits(double number) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Items of a list of floats or bools, converted once. */
static bool keep_numbers(Argument *argument, char code) {
    if (argument->kind != ARGUMENT_OBJECT || !PyList_Check(argument->object))
        return false;
    Py_ssize_t count = PyList_GET_SIZE(argument->object);
    PyMem_Free(argument->numbers);
    argument->numbers = PyMem_Calloc((size_t)count + 1, sizeof *argument->numbers);
    argument->count = count;
    for (Py_ssize_t i = 0; argument->numbers && i < count; i++) {
        PyObject *item = PyList_GET_ITEM(argument->object, i);
        if (code == CODE_BOOL ? !PyBool_Check(item) : !PyFloat_Check(item))
            return false;
        argument->numbers[i] = code == CODE_BOOL ? item == Py_True : float_bits(PyFloat_AS_DOUBLE(item));
    }
    return argument->numbers != NULL;
}

static bool carries_list(Argument *argument, const char *element) {
    switch (*element) {
    case CODE_TENSOR:
        return argument->kind == ARGUMENT_TENSORS && !argument->has_optional;
    case CODE_OPTIONAL:
        return argument->kind == ARGUMENT_TENSORS && element[1] == CODE_TENSOR;
    case CODE_INTEGER:
        return argument->kind == ARGUMENT_INTEGERS;
    case CODE_FLOAT:
    case CODE_BOOL:
        return keep_numbers(argument, *element);
    default:
        return false;
    }
}

static bool carries(Argument *argument, const char *type) {
    switch (*type) {
    case CODE_OPTIONAL:
        return (argument->kind == ARGUMENT_OBJECT && argument->object == Py_None) || carries(argument, type + 1);
    case CODE_LIST:
        return carries_list(argument, type + 1);
    case CODE_TENSOR:
        return argument->kind == ARGUMENT_TENSOR;
    case CODE_INTEGER:
        return argument->kind == ARGUMENT_INTEGER;
    case CODE_FLOAT:
        return argument->kind == ARGUMENT_INTEGER || argument->kind == ARGUMENT_FLOAT || (argument->kind == ARGUMENT_OBJECT && argument->code == CODE_FLOAT);
    default:
        return *type != CODE_OTHER && argument->kind == ARGUMENT_OBJECT && argument->code == *type;
    }
}

static bool has_interface(void) {
    const TorchSymbols *symbol = &torch.symbol;
    bool optionals = (symbol->new_optional && symbol->delete_optional) ||
                     (symbol->operator_new && symbol->operator_delete);
    return symbol->call_dispatcher && symbol->new_list && symbol->list_append && symbol->list_get &&
           symbol->list_size && symbol->delete_list && symbol->new_string && symbol->delete_string && optionals;
}

static char *join(const char *first, const char *second) {
    size_t length = strlen(first) + strlen(second) + 1;
    char *text = PyMem_Malloc(length);
    if (text)
        snprintf(text, length, "%s%s", first, second);
    else
        PyErr_NoMemory();
    return text;
}

/* 1: supported; 0: not; -1: exception. */
static int read_schema(StableCall *call, PyObject *schema, Argument *arguments, Py_ssize_t output_count) {
    char returns[MOST_VALUES][TYPE_LENGTH];
    Py_ssize_t argument_count;
    int mutable = is_mutable(schema);
    if (mutable < 0 || read_types(schema, "arguments", call->types, &argument_count) ||
        read_types(schema, "returns", returns, &call->return_count))
        return -1;
    if (mutable || argument_count != call->argument_count || argument_count > MOST_VALUES ||
        call->return_count > MOST_VALUES)
        return 0;
    for (Py_ssize_t i = 0; i < argument_count; i++)
        if (!carries(&arguments[i], call->types[i]))
            return 0;
    call->returns_list = call->return_count == 1 && !strcmp(returns[0], "Lt");
    for (Py_ssize_t i = 0; i < call->return_count; i++)
        if (!call->returns_list && strcmp(returns[i], "t"))
            return 0;
    return call->returns_list || call->return_count == output_count;
}

int stable_call_new(PyObject *overload, const char *name, const char *overload_name, Argument *arguments,
                    Py_ssize_t argument_count, Py_ssize_t output_count, StableCall **result) {
    *result = NULL;
    if (!has_interface())
        return 0;
    PyObject *schema = PyObject_GetAttrString(overload, "_schema");
    StableCall *call = schema ? PyMem_Calloc(1, sizeof *call) : NULL;
    if (!call) {
        Py_XDECREF(schema);
        return schema ? (PyErr_NoMemory(), -1) : -1;
    }
    call->argument_count = argument_count;
    int supported = read_schema(call, schema, arguments, output_count);
    Py_DECREF(schema);
    if (supported > 0) {
        call->name = join("aten::", name);
        call->overload = join(strcmp(overload_name, "default") ? overload_name : "", "");
        supported = call->name && call->overload ? 1 : -1;
    }
    if (supported > 0)
        *result = call;
    else
        stable_call_free(call);
    return supported < 0 ? -1 : 0;
}

void stable_call_free(StableCall *call) {
    if (!call)
        return;
    PyMem_Free(call->name);
    PyMem_Free(call->overload);
    PyMem_Free(call);
}

/* ---- values ---- */

static int torch_failed(void) {
    return set_torch_error("torch could not make an argument of an operator");
}

static void release(StableValue value, const char *type);

static void release_list(StableList list, const char *element) {
    size_t count = 0;
    torch.symbol.list_size(list, &count);
    for (size_t i = 0; i < count; i++) {
        StableValue item;
        if (!torch.symbol.list_get(list, i, &item))
            release(item, element);
    }
    torch.symbol.delete_list(list);
}

static void delete_optional(StableValue *place) {
    if (torch.symbol.new_optional)
        torch.symbol.delete_optional(place);
    else
        torch.symbol.operator_delete(place);
}

/* Frees a value that no call has taken over. */
static void release(StableValue value, const char *type) {
    void *pointer = (void *)(uintptr_t)value;
    if (*type == CODE_TENSOR) {
        torch.symbol.delete_tensor(pointer);
    } else if (*type == CODE_LIST) {
        release_list(pointer, type + 1);
    } else if (*type == CODE_STRING) {
        torch.symbol.delete_string(pointer);
    } else if (*type == CODE_OPTIONAL && pointer) {
        release(*(StableValue *)pointer, type + 1);
        delete_optional(pointer);
    }
}

static int make_tensor(Slot *slot, StableValue *value) {
    TensorHandle handle;
    if (torch.symbol.new_handle(slot->handle, &handle))
        return torch_failed();
    *value = (StableValue)(uintptr_t)handle;
    return 0;
}

static int wrap_optional(StableValue inner, const char *type, StableValue *value) {
    StableValue *place = NULL;
    if (!torch.symbol.new_optional)
        place = torch.symbol.operator_new(sizeof *place);
    else if (torch.symbol.new_optional(&place))
        place = NULL;
    if (!place) {
        release(inner, type);
        return torch_failed();
    }
    *place = inner;
    *value = (StableValue)(uintptr_t)place;
    return 0;
}

static int make_string(const Argument *argument, StableValue *value) {
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(argument->object, &length);
    void *handle;
    if (!text)
        return -1;
    if (torch.symbol.new_string(text, (size_t)length, &handle))
        return torch_failed();
    *value = (StableValue)(uintptr_t)handle;
    return 0;
}

static int make_item(const Argument *argument, Py_ssize_t index, Slot *slots, const char *type, StableValue *value) {
    int64_t number;
    StableValue inner = 0;
    switch (*type) {
    case CODE_OPTIONAL:
        *value = 0;
        if (argument->slots[index] < 0)
            return 0;
        return make_tensor(&slots[argument->slots[index]], &inner) ? -1 : wrap_optional(inner, type + 1, value);
    case CODE_TENSOR:
        return make_tensor(&slots[argument->slots[index]], value);
    case CODE_INTEGER:
        if (integer_value(&argument->integers[index], slots, &number))
            return -1;
        *value = (StableValue)number;
        return 0;
    default:
        *value = (StableValue)argument->numbers[index];
        return 0;
    }
}

static int make_list(const Argument *argument, Slot *slots, const char *element, StableValue *value) {
    StableList list;
    if (torch.symbol.new_list((size_t)argument->count, &list))
        return torch_failed();
    for (Py_ssize_t i = 0; i < argument->count; i++) {
        StableValue item;
        int status = make_item(argument, i, slots, element, &item);
        if (!status && torch.symbol.list_append(list, item)) {
            release(item, element);
            status = torch_failed();
        }
        if (status) {
            release_list(list, element);
            return -1;
        }
    }
    *value = (StableValue)(uintptr_t)list;
    return 0;
}

static int make_number(const Argument *argument, Slot *slots, char code, StableValue *value) {
    int64_t number = argument->number;
    if (argument->kind == ARGUMENT_INTEGER) {
        if (integer_value(argument->integers, slots, &number))
            return -1;
        if (code == CODE_FLOAT)
            number = float_bits((double)number);
    } else if (argument->kind == ARGUMENT_FLOAT)
        number = slots[argument->slots[0]].scalar;
    *value = (StableValue)number;
    return 0;
}

static int make_value(const Argument *argument, Slot *slots, const char *type, StableValue *value) {
    StableValue inner = 0;
    switch (*type) {
    case CODE_OPTIONAL:
        *value = 0;
        if (argument->kind == ARGUMENT_OBJECT && argument->object == Py_None)
            return 0;
        return make_value(argument, slots, type + 1, &inner) ? -1 : wrap_optional(inner, type + 1, value);
    case CODE_LIST:
        return make_list(argument, slots, type + 1, value);
    case CODE_TENSOR:
        return make_tensor(&slots[argument->slots[0]], value);
    case CODE_STRING:
        return make_string(argument, value);
    default:
        return make_number(argument, slots, *type, value);
    }
}

static int make_values(const StableCall *call, const Argument *arguments, Slot *slots, StableValue *values) {
    for (Py_ssize_t i = 0; i < call->argument_count; i++)
        if (make_value(&arguments[i], slots, call->types[i], &values[i])) {
            while (i-- > 0)
                release(values[i], call->types[i]);
            return -1;
        }
    return 0;
}

/* ---- results ---- */

static void store(StableValue value, Slot *slots, Py_ssize_t output) {
    if (output >= 0)
        slot_adopt_handle(&slots[output], (TensorHandle)(uintptr_t)value);
    else
        torch.symbol.delete_tensor((TensorHandle)(uintptr_t)value);
}

static int store_list(StableList list, Slot *slots, const Py_ssize_t *outputs, Py_ssize_t output_count) {
    size_t count = 0;
    torch.symbol.list_size(list, &count);
    if (count != (size_t)output_count) {
        release_list(list, "t");
        PyErr_Format(PyExc_RuntimeError, "an operator returned %zu tensors, the plan expects %zd", count, output_count);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        StableValue item;
        if (!torch.symbol.list_get(list, i, &item))
            store(item, slots, outputs[i]);
    }
    torch.symbol.delete_list(list);
    return 0;
}

int stable_call_run(const StableCall *call, const Argument *arguments, Slot *slots, const Py_ssize_t *outputs,
                    Py_ssize_t output_count) {
    StableValue values[MOST_VALUES];
    int32_t failed;
    if (make_values(call, arguments, slots, values))
        return -1;
    Py_BEGIN_ALLOW_THREADS
    failed = torch.symbol.call_dispatcher(call->name, call->overload, values);
    Py_END_ALLOW_THREADS
    if (failed)
        return 1;
    if (call->returns_list)
        return store_list((StableList)(uintptr_t)values[0], slots, outputs, output_count);
    for (Py_ssize_t i = 0; i < call->return_count; i++)
        store(values[i], slots, outputs[i]);
    return 0;
}
