/* The part of torch's state that decides what an operation does: grad mode, dispatch keys, function modes, default
 * dtype, deterministic algorithms, autocast. A compiled entry holds only in the state it was made in. */
#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

_Thread_local ThreadState this_thread;

enum { STACK_RESERVE = 128 * 1024 }; /* what a call may take besides: library calls, signal handlers */

const char *find_stack_limit(void) {
    const char *no_limit = (const char *)1;
    pthread_attr_t attributes;
    void *start = NULL;
    size_t size = 0, guard = 0;
    if (pthread_getattr_np(pthread_self(), &attributes))
        return no_limit;
    if (pthread_attr_getstack(&attributes, &start, &size) || pthread_attr_getguardsize(&attributes, &guard))
        start = NULL;
    pthread_attr_destroy(&attributes);
    size_t reserve = guard + (size < 4 * STACK_RESERVE ? size / 4 : STACK_RESERVE);
    return start ? (const char *)start + reserve : no_limit;
}

/* The addresses are this thread's, so they are looked up once per thread. */
static void look_up_thread(ThreadState *thread) {
    thread->dispatch_keys = dlsym(torch.core_library, "_ZN3c104impl26raw_local_dispatch_key_setE");
    thread->autograd = torch.symbol.autograd_state ? torch.symbol.autograd_state() : NULL;
    thread->function_modes = torch.symbol.function_state ? torch.symbol.function_state() : NULL;
}

/* Both dtypes matter only under autocast, which shows in the dispatch keys. */
static uint64_t autocast_dtypes(void) {
    return 1 + (uint64_t)(uint8_t)torch.symbol.autocast_dtype(0) +
           ((uint64_t)(uint8_t)torch.symbol.autocast_dtype(1) << 8);
}

const uint64_t *thread_dispatch_keys(void) {
    ThreadState *thread = &this_thread;
    if (!thread->dispatch_keys)
        look_up_thread(thread);
    return thread->dispatch_keys;
}

static uint32_t read_grad_mode(const ThreadState *thread) {
    const StateLayout *layout = &torch.state_layout;
    if (layout->grad_known)
        return (thread->autograd[layout->grad_byte] & layout->grad_mask) != 0;
    return torch.symbol.grad_mode();
}

static void read_function_modes(const ThreadState *thread, GlobalState *state) {
    const StateLayout *layout = &torch.state_layout;
    if (!layout->function_known) {
        state->function_disabled = (uint32_t)torch.symbol.function_disabled();
        state->function_modes = (uint32_t)torch.symbol.function_mode_count();
        return;
    }
    const char *const *ends = (const char *const *)(const void *)(thread->function_modes + layout->stack);
    state->function_disabled = *(const uint32_t *)(const void *)(thread->function_modes + layout->disabled);
    state->function_modes = (uint32_t)((ends[1] - ends[0]) / 16);
}

static uint32_t deterministic_bits(bool enabled, bool warn_only) {
    return (uint32_t)enabled | (uint32_t)warn_only << 1;
}

static void read_direct(GlobalState *state) {
    ThreadState *thread = &this_thread;
    if (!thread->dispatch_keys)
        look_up_thread(thread);
    uint64_t included = thread->dispatch_keys[0], excluded = thread->dispatch_keys[1];
    state->included = included;
    state->excluded = excluded;
    state->default_dtype = (uint64_t)(uint8_t)torch.symbol.default_dtype();
    state->autocast = included | excluded ? autocast_dtypes() : 0;
    state->grad_mode = read_grad_mode(thread);
    state->deterministic = deterministic_bits(torch.symbol.deterministic(torch.context),
                                              torch.symbol.deterministic_warn_only(torch.context));
    read_function_modes(thread, state);
    state->mode_classes = *torch.symbol.anomaly_mode ? OTHER_MODES : 0;
}

static int call_state_function(int index, uint64_t *value) {
    PyObject *result = PyObject_CallNoArgs(torch.object.state_functions[index]);
    if (result && index < 2)
        Py_SETREF(result, PyObject_CallMethod(result, "raw_repr", NULL));
    if (!result)
        return -1;
    *value = PyLong_Check(result) ? PyLong_AsUnsignedLongLongMask(result) : (uint64_t)(uintptr_t)result;
    Py_DECREF(result);
    return 0;
}

static int call_autocast_dtype(const char *device, uint64_t *value) {
    PyObject *dtype = PyObject_CallMethod(torch.object.module, "get_autocast_dtype", "s", device);
    *value = (uint64_t)(uintptr_t)dtype; /* dtype objects live as long as torch */
    Py_XDECREF(dtype);
    return dtype ? 0 : -1;
}

static int read_portable(GlobalState *state) {
    uint64_t values[STATE_FUNCTIONS], cpu, cuda;
    for (int i = 0; i < STATE_FUNCTIONS; i++)
        if (call_state_function(i, &values[i]))
            return -1;
    if (call_autocast_dtype("cpu", &cpu) || call_autocast_dtype("cuda", &cuda))
        return -1;
    *state = (GlobalState){.included = values[0], .excluded = values[1], .default_dtype = values[2],
                           .autocast = cpu * 31 + cuda, .grad_mode = (uint32_t)values[3],
                           .deterministic = deterministic_bits(values[4], values[7]), .function_disabled = (uint32_t)values[5],
                           .function_modes = (uint32_t)values[6], .mode_classes = values[8] ? OTHER_MODES : 0};
    return 0;
}

static bool only_calls(PyObject *mode) {
    PyObject *method = PyObject_GetAttrString(mode, "__torch_function__");
    bool same = method && PyMethod_Check(method) && PyMethod_GET_FUNCTION(method) == torch.object.calls_the_function;
    Py_XDECREF(method);
    return same;
}

static bool all_functions_disabled(const GlobalState *state) {
    enum { ALL_DISABLED = 2 }; /* of at::impl::TorchFunctionDisabledState; 1 is of subclasses only */
    return torch.direct ? state->function_disabled == ALL_DISABLED : state->function_disabled;
}

/* Asked at each call, since the methods of classes may be replaced. */
static uint64_t function_mode_classes(const GlobalState *state) {
    uint64_t classes = 0;
    if (all_functions_disabled(state))
        return classes;
    for (uint32_t i = 0; i < state->function_modes; i++) {
        PyObject *mode = PyObject_CallFunction(torch.object.function_mode_at, "I", i);
        bool calls = mode && only_calls(mode);
        classes = classes * 31 + (mode ? (uint64_t)(uintptr_t)Py_TYPE(mode) : 0);
        Py_XDECREF(mode);
        if (!calls) {
            PyErr_Clear(); /* modes that cannot be asked are left alone */
            return OTHER_MODES;
        }
    }
    return classes;
}

static int read_state(GlobalState *state) {
    if (!torch.direct)
        return read_portable(state);
    read_direct(state);
    return 0;
}

int global_state_read(GlobalState *state) {
    if (read_state(state))
        return -1;
    if (state->function_modes && state->mode_classes != OTHER_MODES)
        state->mode_classes = function_mode_classes(state);
    return 0;
}

const char *global_state_difference(const GlobalState *expected, const GlobalState *found) {
    if (expected->grad_mode != found->grad_mode)
        return "grad mode";
    if (expected->included != found->included || expected->excluded != found->excluded)
        return "dispatch keys";
    if (expected->autocast != found->autocast)
        return "autocast dtype";
    if (expected->default_dtype != found->default_dtype)
        return "default dtype";
    if (expected->deterministic != found->deterministic)
        return "deterministic algorithms";
    if (expected->function_disabled != found->function_disabled || expected->function_modes != found->function_modes ||
        expected->mode_classes != found->mode_classes)
        return "torch function modes";
    return NULL;
}

/* Rare: called only after no entry fitted, or for one made under a dispatch mode. */
int dispatch_mode_count(void) {
    PyObject *core = PyObject_GetAttrString(torch.object.module, "_C");
    PyObject *length = core ? PyObject_CallMethod(core, "_len_torch_dispatch_stack", NULL) : NULL;
    Py_XDECREF(core);
    int count = length ? (int)PyLong_AsLong(length) : -1;
    Py_XDECREF(length);
    return count;
}

/* Whether a dispatch mode asks to see what compiled code does from outside only. */
static int stays_outside(PyObject *mode) {
    if (!PyObject_HasAttrString(mode, "ignore_compile_internals")) /* torch before 2.11 */
        return 0;
    PyObject *answer = PyObject_CallMethod(mode, "ignore_compile_internals", NULL);
    int outside = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return outside;
}

static int dispatch_modes_stay_outside(int count) {
    PyObject *core = PyObject_GetAttrString(torch.object.module, "_C");
    int outside = core ? 1 : -1;
    for (int i = 0; i < count && outside == 1; i++) {
        PyObject *mode = PyObject_CallMethod(core, "_get_dispatch_stack_at", "i", i);
        outside = mode ? stays_outside(mode) : -1;
        Py_XDECREF(mode);
    }
    Py_XDECREF(core);
    return outside;
}

int modes_are_active(void) {
    GlobalState now;
    if (global_state_read(&now))
        return -1;
    if (now.mode_classes == OTHER_MODES)
        return 1;
    int count = dispatch_mode_count();
    if (count <= 0)
        return count;
    int outside = dispatch_modes_stay_outside(count);
    return outside < 0 ? -1 : !outside;
}

PyObject *global_state_tuple(const GlobalState *state) {
    return Py_BuildValue("(KKKKIIIIK)", (unsigned long long)state->included, (unsigned long long)state->excluded,
                         (unsigned long long)state->default_dtype, (unsigned long long)state->autocast,
                         state->grad_mode, state->deterministic, state->function_disabled, state->function_modes,
                         (unsigned long long)state->mode_classes);
}
