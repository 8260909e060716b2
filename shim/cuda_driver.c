/* Kernels of compiled graphs on an NVIDIA GPU, through the driver that the machine has; no CUDA header or library is
 * needed to build this file. */
#include "shim.h"

#include <dlfcn.h>

typedef void *CudaContext;
typedef void *CudaModule;
typedef void *CudaFunction;

/* CUlaunchAttribute and CUlaunchConfig of the driver's interface, version 12 and later. */
typedef struct LaunchAttribute {
    int id;
    char padding[4];
    union {
        int flag;
        char room[64];
    } value;
} LaunchAttribute;

typedef struct LaunchConfiguration {
    unsigned blocks[3], threads[3], shared_bytes;
    void *stream;
    LaunchAttribute *attributes;
    unsigned attribute_count;
} LaunchConfiguration;

typedef struct Driver {
    void *library;
    int (*init)(unsigned);
    int (*error_name)(int, const char **);
    int (*error_text)(int, const char **);
    int (*version)(int *);
    int (*device)(int *, int);
    int (*retain_context)(CudaContext *, int);
    int (*current_context)(CudaContext *);
    int (*push_context)(CudaContext);
    int (*pop_context)(CudaContext *);
    int (*load_module)(CudaModule *, const void *);
    int (*unload_module)(CudaModule);
    int (*module_function)(CudaFunction *, CudaModule, const char *);
    int (*set_attribute)(CudaFunction, int, int);
    int (*launch)(CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
    int (*launch_with)(const LaunchConfiguration *, CudaFunction, void **, void **);
    bool launches_early; /* also while a stream is captured */
} Driver;

typedef struct DriverRow {
    const char *name;
    size_t field;
} DriverRow;

static const DriverRow driver_rows[] = {
    {"cuInit", offsetof(Driver, init)},
    {"cuGetErrorName", offsetof(Driver, error_name)},
    {"cuGetErrorString", offsetof(Driver, error_text)},
    {"cuDriverGetVersion", offsetof(Driver, version)},
    {"cuDeviceGet", offsetof(Driver, device)},
    {"cuDevicePrimaryCtxRetain", offsetof(Driver, retain_context)},
    {"cuCtxGetCurrent", offsetof(Driver, current_context)},
    {"cuCtxPushCurrent_v2", offsetof(Driver, push_context)},
    {"cuCtxPopCurrent_v2", offsetof(Driver, pop_context)},
    {"cuModuleLoadData", offsetof(Driver, load_module)},
    {"cuModuleUnload", offsetof(Driver, unload_module)},
    {"cuModuleGetFunction", offsetof(Driver, module_function)},
    {"cuFuncSetAttribute", offsetof(Driver, set_attribute)},
    {"cuLaunchKernel", offsetof(Driver, launch)},
    {"cuLaunchKernelEx", offsetof(Driver, launch_with)},
};

static Driver driver;

enum {
    MOST_DEVICES = 64,
    MAXIMUM_DYNAMIC_SHARED_BYTES = 8, /* CUfunction_attribute */
    PLAIN_SHARED_BYTES = 48 * 1024,
    PROGRAMMATIC_STREAM_SERIALIZATION = 6, /* CUlaunchAttributeID */
    CAPTURES_EARLY_LAUNCHES = 12030,       /* the first driver that does */
};

/* A kernel is loaded once per device, in the device's primary context, which is the one torch uses. */
typedef struct DeviceKernel {
    CudaContext context;
    CudaModule module;
    CudaFunction function;
} DeviceKernel;

struct CudaKernel {
    char *symbol;
    void *image;
    unsigned threads, shared_bytes;
    int64_t items;
    bool dependent; /* waits for the kernel before it by itself */
    DeviceKernel devices[MOST_DEVICES];
};

static int raise_driver_error(const char *what, int code) {
    const char *name = "unknown error", *text = "";
    if (driver.error_name)
        driver.error_name(code, &name);
    if (driver.error_text)
        driver.error_text(code, &text);
    PyErr_Format(PyExc_RuntimeError, "CUDA error in %s: %s (%d) %s", what, name, code, text);
    return -1;
}

static int open_driver(void) {
    if (driver.launch)
        return 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        PyErr_Format(PyExc_RuntimeError, "no CUDA driver: %s", dlerror());
        return -1;
    }
    Driver found = {.library = library};
    for (size_t i = 0; i < sizeof driver_rows / sizeof driver_rows[0]; i++) {
        void *address = dlsym(library, driver_rows[i].name);
        if (!address) {
            PyErr_Format(PyExc_RuntimeError, "the CUDA driver lacks %s", driver_rows[i].name);
            dlclose(library);
            return -1;
        }
        *(void **)((char *)&found + driver_rows[i].field) = address;
    }
    int code = found.init(0);
    driver.error_name = found.error_name;
    driver.error_text = found.error_text;
    if (code)
        return raise_driver_error("cuInit", code);
    int version = 0;
    found.launches_early = !found.version(&version) && version >= CAPTURES_EARLY_LAUNCHES;
    driver = found;
    return 0;
}

PyObject *cuda_describe(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    int version = 0;
    if (open_driver())
        return NULL;
    int code = driver.version(&version);
    if (code) {
        raise_driver_error("cuDriverGetVersion", code);
        return NULL;
    }
    return Py_BuildValue("{s:i,s:i}", "major", version / 1000, "minor", version % 1000 / 10);
}

static void *copy_bytes(const void *bytes, size_t length) {
    char *copy = PyMem_Malloc(length + 1);
    if (!copy)
        return PyErr_NoMemory();
    memcpy(copy, bytes, length);
    copy[length] = 0; /* PTX is text and must end */
    return copy;
}

CudaKernel *cuda_kernel_new(const char *symbol, const void *image, size_t length, unsigned threads, int64_t items,
                            unsigned shared_bytes, bool dependent) {
    if (threads == 0 || threads > 1024 || items <= 0) {
        PyErr_SetString(PyExc_ValueError, "a CUDA kernel needs 1 to 1024 threads and at least one item per block");
        return NULL;
    }
    CudaKernel *kernel = PyMem_Calloc(1, sizeof *kernel);
    if (!kernel)
        return (CudaKernel *)PyErr_NoMemory();
    kernel->symbol = copy_bytes(symbol, strlen(symbol));
    kernel->image = copy_bytes(image, length);
    kernel->threads = threads;
    kernel->items = items;
    kernel->shared_bytes = shared_bytes;
    kernel->dependent = dependent;
    if (kernel->symbol && kernel->image)
        return kernel;
    cuda_kernel_free(kernel);
    return NULL;
}

static void unload(DeviceKernel *loaded) {
    CudaContext ignored;
    if (!loaded->module || driver.push_context(loaded->context))
        return; /* the driver may be shutting down */
    driver.unload_module(loaded->module);
    driver.pop_context(&ignored);
}

void cuda_kernel_free(CudaKernel *kernel) {
    if (!kernel)
        return;
    for (int i = 0; i < MOST_DEVICES; i++)
        unload(&kernel->devices[i]);
    PyMem_Free(kernel->symbol);
    PyMem_Free(kernel->image);
    PyMem_Free(kernel);
}

static int load_function(const CudaKernel *kernel, DeviceKernel *loaded) {
    int code = driver.load_module(&loaded->module, kernel->image);
    if (code)
        return raise_driver_error("cuModuleLoadData", code);
    code = driver.module_function(&loaded->function, loaded->module, kernel->symbol);
    if (code)
        return raise_driver_error("cuModuleGetFunction", code);
    if (kernel->shared_bytes <= PLAIN_SHARED_BYTES)
        return 0;
    code = driver.set_attribute(loaded->function, MAXIMUM_DYNAMIC_SHARED_BYTES, (int)kernel->shared_bytes);
    return code ? raise_driver_error("cuFuncSetAttribute", code) : 0;
}

static int load_on_device(const CudaKernel *kernel, int32_t index, DeviceKernel *loaded) {
    int device, code = driver.device(&device, index);
    DeviceKernel fresh = {NULL, NULL, NULL};
    CudaContext ignored;
    if (code)
        return raise_driver_error("cuDeviceGet", code);
    code = driver.retain_context(&fresh.context, device); /* torch keeps it for the life of the process anyway */
    if (code)
        return raise_driver_error("cuDevicePrimaryCtxRetain", code);
    code = driver.push_context(fresh.context);
    if (code)
        return raise_driver_error("cuCtxPushCurrent", code);
    int status = load_function(kernel, &fresh);
    if (status && fresh.module)
        driver.unload_module(fresh.module);
    driver.pop_context(&ignored);
    if (!status)
        *loaded = fresh;
    return status;
}

static int launch_on(const CudaKernel *kernel, const DeviceKernel *loaded, int32_t device, void **arguments,
                     unsigned blocks) {
    void *stream = NULL;
    if (torch.symbol.cuda_stream(device, &stream))
        return set_torch_error("the current CUDA stream is unknown");
    LaunchAttribute early = {.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value = {.flag = 1}};
    LaunchConfiguration configuration = {.blocks = {blocks, 1, 1},
                                         .threads = {kernel->threads, 1, 1},
                                         .shared_bytes = kernel->shared_bytes,
                                         .stream = stream,
                                         .attributes = &early,
                                         .attribute_count = 1};
    int code = kernel->dependent && driver.launches_early
                   ? driver.launch_with(&configuration, loaded->function, arguments, NULL)
                   : driver.launch(loaded->function, blocks, 1, 1, kernel->threads, 1, 1, kernel->shared_bytes, stream,
                                   arguments, NULL);
    return code ? raise_driver_error("cuLaunchKernel", code) : 0;
}

/* The thread may have no context yet, or that of another device. */
static int launch_in_context(const CudaKernel *kernel, const DeviceKernel *loaded, int32_t device, void **arguments,
                             unsigned blocks) {
    CudaContext current = NULL, ignored;
    if (!driver.current_context(&current) && current == loaded->context)
        return launch_on(kernel, loaded, device, arguments, blocks);
    int code = driver.push_context(loaded->context);
    if (code)
        return raise_driver_error("cuCtxPushCurrent", code);
    int status = launch_on(kernel, loaded, device, arguments, blocks);
    driver.pop_context(&ignored);
    return status;
}

int cuda_kernel_launch(CudaKernel *kernel, int32_t device, void **arguments, int64_t work) {
    if (work <= 0)
        return 0;
    int64_t blocks = work / kernel->items + (work % kernel->items != 0);
    if (device < 0 || device >= MOST_DEVICES || blocks > INT32_MAX) {
        PyErr_Format(PyExc_RuntimeError, "a kernel over %lld items on CUDA device %d cannot be launched",
                     (long long)work, (int)device);
        return -1;
    }
    if (open_driver())
        return -1;
    if (!torch.symbol.cuda_stream) {
        PyErr_SetString(PyExc_RuntimeError, "this torch does not export aoti_torch_get_current_cuda_stream");
        return -1;
    }
    DeviceKernel *loaded = &kernel->devices[device];
    if (!loaded->function && load_on_device(kernel, device, loaded))
        return -1;
    return launch_in_context(kernel, loaded, device, arguments, (unsigned)blocks);
}
