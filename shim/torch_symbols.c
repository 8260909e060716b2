/* Finds torch's C interface by name and learns where a tensor keeps its handle and its dispatch keys. */
#include "recycle.h"

#include <dlfcn.h>
#include <malloc.h>
#include <string.h>

Torch torch;

enum Library { LIBRARY_CPU, LIBRARY_CORE, LIBRARY_PYTHON, LIBRARY_CUDA, LIBRARY_COUNT };

static const char *const library_names[LIBRARY_COUNT] = {"libtorch_cpu.so", "libc10.so", "libtorch_python.so",
                                                         "libtorch_cuda.so"};

typedef struct SymbolRow {
    const char *name;
    size_t field;
    enum Library library;
    bool required; /* the direct path cannot do without it */
} SymbolRow;

#define ROW(field, name, library, required) {name, offsetof(TorchSymbols, field), library, required}

/* A field may have several rows: the first name that exists is taken. */
static const SymbolRow symbol_rows[] = {
    ROW(empty_strided, "aoti_torch_empty_strided", LIBRARY_CPU, true),
    ROW(delete_tensor, "aoti_torch_delete_tensor_object", LIBRARY_CPU, true),
    ROW(new_handle, "aoti_torch_new_tensor_handle", LIBRARY_CPU, true),
    ROW(reinterpret_tensor, "aoti_torch__reinterpret_tensor", LIBRARY_CPU, true),
    ROW(data_pointer, "aoti_torch_get_data_ptr", LIBRARY_CPU, true),
    ROW(sizes, "aoti_torch_get_sizes", LIBRARY_CPU, true),
    ROW(strides, "aoti_torch_get_strides", LIBRARY_CPU, true),
    ROW(dtype, "aoti_torch_get_dtype", LIBRARY_CPU, true),
    ROW(device_type, "aoti_torch_get_device_type", LIBRARY_CPU, true),
    ROW(device_index, "aoti_torch_get_device_index", LIBRARY_CPU, true),
    ROW(dimensions, "aoti_torch_get_dim", LIBRARY_CPU, true),
    ROW(element_count, "aoti_torch_get_numel", LIBRARY_CPU, true),
    ROW(grad_mode, "_ZN3c108GradMode10is_enabledEv", LIBRARY_CORE, false),
    ROW(grad_mode, "aoti_torch_grad_mode_is_enabled", LIBRARY_CPU, true),
    ROW(set_grad_mode, "aoti_torch_grad_mode_set_enabled", LIBRARY_CPU, true),
    ROW(call_dispatcher, "aoti_torch_call_dispatcher", LIBRARY_CPU, false),
    ROW(new_list, "torch_new_list_reserve_size", LIBRARY_CPU, false),
    ROW(list_append, "torch_list_push_back", LIBRARY_CPU, false),
    ROW(list_get, "torch_list_get_item", LIBRARY_CPU, false),
    ROW(list_size, "torch_list_size", LIBRARY_CPU, false),
    ROW(delete_list, "torch_delete_list", LIBRARY_CPU, false),
    ROW(new_string, "torch_new_string_handle", LIBRARY_CPU, false),
    ROW(delete_string, "torch_delete_string", LIBRARY_CPU, false),
    ROW(new_optional, "torch_new_stable_ivalue", LIBRARY_CPU, false),
    ROW(delete_optional, "torch_delete_stable_ivalue", LIBRARY_CPU, false),
    ROW(operator_new, "_Znwm", LIBRARY_CPU, false),
    ROW(operator_delete, "_ZdlPv", LIBRARY_CPU, false),
    ROW(parallel_for, "torch_parallel_for", LIBRARY_CPU, false),
    ROW(error_text, "torch_exception_get_what_without_backtrace", LIBRARY_CPU, false),
    ROW(function_mode_count, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", LIBRARY_CPU, true),
    ROW(function_disabled, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", LIBRARY_CPU, true),
    ROW(autograd_state, "_ZN3c1013AutogradState13get_tls_stateEv", LIBRARY_CORE, false),
    ROW(function_state, "_ZN2at4impl22PythonTorchFunctionTLS9get_stateEv", LIBRARY_CPU, false),
    ROW(global_context, "_ZN2at13globalContextEv", LIBRARY_CPU, true),
    ROW(deterministic, "_ZNK2at7Context23deterministicAlgorithmsEv", LIBRARY_CPU, true),
    ROW(deterministic_warn_only, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv", LIBRARY_CPU, true),
    ROW(anomaly_mode, "_ZN5torch8autograd11AnomalyMode8_enabledE", LIBRARY_CPU, true),
    ROW(autocast_dtype, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", LIBRARY_CPU, true),
    ROW(requires_grad, "_ZNK3c1010TensorImpl13requires_gradEv", LIBRARY_CORE, true),
    ROW(bump_version, "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE", LIBRARY_CPU, false),
    ROW(default_dtype, "_ZN3c1031get_default_dtype_as_scalartypeEv", LIBRARY_CORE, true),
    ROW(wrap, "_Z16THPVariable_WrapON2at10TensorBaseE", LIBRARY_PYTHON, true),
    ROW(cuda_stream, "aoti_torch_get_current_cuda_stream", LIBRARY_CUDA, false),
};

static const char dispatch_key_symbol[] = "_ZN3c104impl26raw_local_dispatch_key_setE";

#define ROW_COUNT (sizeof symbol_rows / sizeof symbol_rows[0])

static const char *const scalar_type_names[] = {
    "uint8",   "int8",          "int16",           "int32",       "int64",           "float16",  "float32",
    "float64", "complex32",     "complex64",       "complex128",  "bool",            "bfloat16", "float8_e5m2",
    "uint16",  "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint32",      "uint64",
};

#define SCALAR_TYPE_COUNT (sizeof scalar_type_names / sizeof scalar_type_names[0])

static PyObject *scalar_type_objects[SCALAR_TYPE_COUNT];
static int32_t scalar_type_numbers[SCALAR_TYPE_COUNT];

static void *library_symbol(void *const *libraries, enum Library library, const char *name) {
    return dlsym(libraries[library] ? libraries[library] : RTLD_DEFAULT, name);
}

/* Returns the name of a required symbol that is missing, or NULL. */
static const char *resolve_symbols(void *const *libraries, PyObject *found) {
    const char *missing = NULL;
    memset(&torch.symbol, 0, sizeof torch.symbol);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const SymbolRow *row = &symbol_rows[i];
        void **field = (void **)((char *)&torch.symbol + row->field);
        void *address = library_symbol(libraries, row->library, row->name);
        PyDict_SetItemString(found, row->name, address ? Py_True : Py_False);
        if (!*field)
            *field = address;
        if (!*field && row->required)
            missing = row->name;
    }
    torch.core_library = libraries[LIBRARY_CORE] ? libraries[LIBRARY_CORE] : RTLD_DEFAULT;
    return dlsym(torch.core_library, dispatch_key_symbol) ? missing : dispatch_key_symbol;
}

static void open_libraries(void **libraries) {
    for (int i = 0; i < LIBRARY_COUNT; i++)
        libraries[i] = dlopen(library_names[i], RTLD_NOLOAD | RTLD_LAZY);
}

static int resolve_scalar_types(PyObject *module, void *cpu_library) {
    char name[64];
    for (size_t i = 0; i < SCALAR_TYPE_COUNT; i++) {
        snprintf(name, sizeof name, "aoti_torch_dtype_%s", scalar_type_names[i]);
        int32_t (*number)(void) = (int32_t (*)(void))dlsym(cpu_library ? cpu_library : RTLD_DEFAULT, name);
        PyObject *object = PyObject_GetAttrString(module, scalar_type_names[i]);
        if (!object)
            PyErr_Clear();
        scalar_type_numbers[i] = number && object ? number() : -1;
        Py_XSETREF(scalar_type_objects[i], object);
    }
    return 0;
}

int scalar_type_number(const char *name, int32_t *number) {
    for (size_t i = 0; i < SCALAR_TYPE_COUNT; i++)
        if (!strcmp(name, scalar_type_names[i]) && scalar_type_numbers[i] >= 0) {
            *number = scalar_type_numbers[i];
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "no dtype \"%s\" in this version of torch", name);
    return -1;
}

PyObject *scalar_type_object(int32_t number) {
    for (size_t i = 0; i < SCALAR_TYPE_COUNT; i++)
        if (scalar_type_numbers[i] == number && scalar_type_objects[i])
            return scalar_type_objects[i];
    PyErr_Format(PyExc_ValueError, "no dtype has ScalarType number %d in this version of torch", (int)number);
    return NULL;
}

/* Numbers of torch's DeviceType; they are part of its serialization format and do not change. */
static const char *const device_type_names[] = {"cpu", "cuda"};

int device_type_number(const char *name, int32_t *number) {
    for (int32_t i = 0; i < 2; i++)
        if (!strcmp(name, device_type_names[i])) {
            *number = i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "device type \"%s\" is not supported", name);
    return -1;
}

PyObject *device_object(int32_t type, int32_t index) {
    if (type != 0 && type != 1)
        return PyErr_Format(PyExc_ValueError, "device type number %d is not supported", (int)type);
    if (type == 0 || index < 0)
        return PyObject_CallFunction(torch.object.device, "s", device_type_names[type]);
    return PyObject_CallFunction(torch.object.device, "si", device_type_names[type], (int)index);
}

/* The only word of `tensors` that holds each one's implementation pointer, or -1. */
static Py_ssize_t find_handle_offset(PyObject *const *tensors, const uint64_t *implementations, int count) {
    Py_ssize_t found = -1, size = Py_TYPE(tensors[0])->tp_basicsize;
    for (Py_ssize_t offset = sizeof(PyObject); offset + 8 <= size; offset += 8) {
        int matches = 0;
        for (int i = 0; i < count; i++)
            matches += *(uint64_t *)((char *)tensors[i] + offset) == implementations[i];
        if (matches != count)
            continue;
        if (found >= 0)
            return -1;
        found = offset;
    }
    return found;
}

/* A TensorImpl is an allocation of its own, so the allocator knows where it ends. */
Py_ssize_t implementation_bytes(const void *implementation) {
    size_t usable = malloc_usable_size((void *)(uintptr_t)implementation);
    return usable < 256 ? (Py_ssize_t)usable : 256;
}

static Py_ssize_t find_key_set_offset(const uint64_t *implementations, const uint64_t *key_sets, int count) {
    Py_ssize_t found = -1, length = implementation_bytes((const void *)(uintptr_t)implementations[0]);
    for (Py_ssize_t offset = 0; offset + 8 <= length; offset += 8) {
        int matches = 0;
        for (int i = 0; i < count; i++)
            matches += *(uint64_t *)(implementations[i] + (uint64_t)offset) == key_sets[i];
        if (matches != count)
            continue;
        if (found >= 0)
            return -1;
        found = offset;
    }
    return found;
}

static int read_unsigned(PyObject *object, uint64_t *value) {
    if (!object)
        return -1;
    *value = PyLong_AsUnsignedLongLong(object);
    Py_DECREF(object);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *key_set_object(PyObject *tensor) {
    PyObject *keys = PyObject_CallOneArg(torch.object.dispatch_keys, tensor);
    PyObject *raw = keys ? PyObject_CallMethod(keys, "raw_repr", NULL) : NULL;
    Py_XDECREF(keys);
    return raw;
}

int key_set_of(PyObject *tensor, uint64_t *key_set) {
    if (!torch.direct)
        return read_unsigned(key_set_object(tensor), key_set);
    *key_set = *(uint64_t *)(*(char **)handle_of(tensor) + torch.key_set_offset);
    return 0;
}

/* Whatever state the first compilation finds the thread in, the probes must be ordinary tensors. */
static const char probe_wrapper[] =
    "def run(torch):\n"
    "    with torch.inference_mode(False), torch.enable_grad(), torch._C.DisableTorchFunction(), \\\n"
    "            torch._C._DisableTorchDispatch():\n"
    "        return probe(torch)\n";

PyObject *run_probe(const char *source) {
    PyObject *names = PyDict_New();
    PyObject *first = names ? PyRun_String(source, Py_file_input, names, names) : NULL;
    PyObject *second = first ? PyRun_String(probe_wrapper, Py_file_input, names, names) : NULL;
    PyObject *result = second ? PyObject_CallOneArg(PyDict_GetItemString(names, "run"), torch.object.module) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(names);
    return result;
}

enum { PROBE_COUNT = 3 };

/* Tensors that differ in everything we look for, so that a chance match is told from the real place. */
static int make_probes(PyObject **probes) {
    static const char source[] = "def probe(torch):\n"
                                 "    return (torch.empty(4), torch.empty(3, device='meta'),\n"
                                 "            torch.empty(5, device='meta', requires_grad=True))\n";
    PyObject *tuple = run_probe(source);
    for (int i = 0; tuple && i < PROBE_COUNT; i++)
        probes[i] = Py_NewRef(PyTuple_GET_ITEM(tuple, i));
    Py_XDECREF(tuple);
    return tuple ? 0 : -1;
}

/* Returns why the direct path cannot be taken, or NULL; -1 in *status with an exception if torch misbehaves. */
static const char *scan_tensors(PyObject *const *probes, int *status) {
    uint64_t implementations[PROBE_COUNT], key_sets[PROBE_COUNT];
    for (int i = 0; i < PROBE_COUNT; i++)
        if (read_unsigned(PyObject_GetAttrString(probes[i], "_cdata"), &implementations[i]) ||
            read_unsigned(key_set_object(probes[i]), &key_sets[i])) {
            *status = -1;
            return "a tensor without _cdata or dispatch keys";
        }
    torch.handle_offset = find_handle_offset(probes, implementations, PROBE_COUNT);
    if (torch.handle_offset < 0)
        return "the handle inside a tensor was not found, or not only once";
    torch.key_set_offset = find_key_set_offset(implementations, key_sets, PROBE_COUNT);
    return torch.key_set_offset < 0 ? "the key set inside a tensor was not found, or not only once" : NULL;
}

static bool grad_is_read_right(PyObject *tensor) {
    PyObject *expected = PyObject_GetAttrString(tensor, "requires_grad");
    bool found = torch.symbol.requires_grad(*(void **)handle_of(tensor));
    Py_XDECREF(expected);
    return expected == (found ? Py_True : Py_False);
}

static bool size_is_read_right(PyObject *tensor) {
    int64_t dimensions = -1, *sizes = NULL;
    return !torch.symbol.dimensions(handle_of(tensor), &dimensions) && dimensions == 1 &&
           !torch.symbol.sizes(handle_of(tensor), &sizes) && sizes[0] == PyObject_Size(tensor);
}

/* The direct readers must agree with what Python says of the probes before they are trusted. */
static const char *verify_direct(PyObject *const *probes) {
    for (int i = 0; i < PROBE_COUNT; i++) {
        if (!grad_is_read_right(probes[i]))
            return "requires_grad read directly is wrong";
        if (!size_is_read_right(probes[i]))
            return "sizes read directly are wrong";
    }
    return PyErr_Occurred() ? "a tensor without requires_grad or a size" : NULL;
}

PyObject *attribute_path(PyObject *object, const char *path) {
    PyObject *result = Py_NewRef(object);
    char part[64];
    while (result && *path) {
        size_t length = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        Py_SETREF(result, PyObject_GetAttrString(result, part));
        path += length + (path[length] == '.');
    }
    return result;
}

typedef struct ObjectRow {
    const char *path;
    PyObject **place;
} ObjectRow;

static int fetch_objects(PyObject *module) {
    TorchObjects *object = &torch.object;
    const ObjectRow rows[] = {
        {"", &object->module},
        {"Tensor", (PyObject **)&object->tensor_type},
        {"nn.Parameter", (PyObject **)&object->parameter_type},
        {"_C._dispatch_keys", &object->dispatch_keys},
        {"empty_strided", &object->empty_strided},
        {"as_strided", &object->as_strided},
        {"device", &object->device},
        {"ops.aten", &object->aten},
        {"_C._dispatch_tls_local_include_set", &object->state_functions[0]},
        {"_C._dispatch_tls_local_exclude_set", &object->state_functions[1]},
        {"get_default_dtype", &object->state_functions[2]},
        {"is_grad_enabled", &object->state_functions[3]},
        {"_C._get_deterministic_algorithms", &object->state_functions[4]},
        {"_C._is_torch_function_all_disabled", &object->state_functions[5]},
        {"_C._len_torch_function_stack", &object->state_functions[6]},
        {"_C._get_deterministic_algorithms_warn_only", &object->state_functions[7]},
        {"is_anomaly_enabled", &object->state_functions[8]},
        {"_C._get_function_stack_at", &object->function_mode_at},
        {"overrides.BaseTorchFunctionMode.__torch_function__", &object->calls_the_function},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        PyObject *value = attribute_path(module, rows[i].path);
        if (!value)
            return -1;
        Py_XSETREF(*rows[i].place, value);
    }
    return 0;
}

/* NULL: the direct path works. */
static const char *try_direct(const char *missing, int *status) {
    PyObject *probes[PROBE_COUNT] = {NULL};
    const char *why = missing;
    if (make_probes(probes))
        *status = -1;
    else if (!why && !(why = scan_tensors(probes, status)))
        why = verify_direct(probes);
    if (PyErr_Occurred())
        *status = -1;
    for (int i = 0; i < PROBE_COUNT; i++)
        Py_XDECREF(probes[i]);
    return why;
}

static PyObject *describe(const char *why, PyObject *symbols) {
    return Py_BuildValue("{s:s,s:s,s:n,s:n,s:O,s:O,s:O,s:O,s:N,s:O}", "mode", torch.direct ? "direct" : "portable", "why",
                         why ? why : "", "handle_offset", torch.handle_offset, "key_set_offset", torch.key_set_offset,
                         "tensor_layout", torch.tensor_layout.known ? Py_True : Py_False, "grad_mode_layout",
                         torch.state_layout.grad_known ? Py_True : Py_False, "function_mode_layout",
                         torch.state_layout.function_known ? Py_True : Py_False, "recycles_outputs",
                         recycle_is_possible() ? Py_True : Py_False, "torch", PyObject_GetAttrString(torch.object.module, "__version__"), "symbols", symbols);
}

/* calibrate(torch, *, portable=False) -> dict */
PyObject *calibrate(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count, PyObject *keyword_names) {
    Py_ssize_t keywords = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
    if (count != 1 || keywords > 1 ||
        (keywords && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keyword_names, 0), "portable"))) {
        PyErr_SetString(PyExc_TypeError, "calibrate(torch, *, portable=False)");
        return NULL;
    }
    int portable = keywords ? PyObject_IsTrue(args[1]) : 0, status = 0;
    PyObject *symbols = PyDict_New();
    if (portable < 0 || !symbols || fetch_objects(args[0])) {
        Py_XDECREF(symbols);
        return NULL;
    }
    void *libraries[LIBRARY_COUNT];
    open_libraries(libraries);
    resolve_scalar_types(args[0], libraries[LIBRARY_CPU]);
    torch.direct = false;
    torch.handle_offset = torch.key_set_offset = -1;
    const char *missing = resolve_symbols(libraries, symbols);
    const char *why = portable ? "asked for" : try_direct(missing, &status);
    torch.direct = !why && !status;
    torch.context = torch.direct ? torch.symbol.global_context() : NULL;
    torch.tensor_layout = (TensorLayout){0};
    torch.state_layout = (StateLayout){0};
    if (torch.direct && (find_tensor_layout(&torch.tensor_layout) || find_state_layout(&torch.state_layout)))
        status = -1;
    if (recycle_calibrate())
        status = -1;
    torch.ready = !status;
    PyObject *result = status ? NULL : describe(why, symbols);
    Py_DECREF(symbols);
    return result;
}
