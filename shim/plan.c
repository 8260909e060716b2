/* Launch plans (contracts section 7): allocate, run kernels and operators, hand out the results. */
#include "plan.h"

#include <stdatomic.h>

/* ---- kernels ---- */

typedef int64_t (*CpuFunction)(void *const *, const int64_t *, int64_t, int64_t);

typedef struct KernelCall {
    CpuFunction function;
    void *const *pointers;
    const int64_t *scalars;
    atomic_bool failed;
} KernelCall;

static void run_part(int64_t begin, int64_t end, void *context) {
    KernelCall *call = context;
    if (call->function(call->pointers, call->scalars, begin, end))
        atomic_store(&call->failed, true);
}

/* Below this many elements a second thread costs more than it saves; the same grain as ATen's own loops. */
static const int64_t elements_per_thread = 32768;
/* Below this many elements a kernel is over sooner than the GIL is handed on. */
static const int64_t elements_to_release = 65536;

static void run_parts(KernelCall *call, int64_t work, int64_t elements) {
    int64_t parts = elements / elements_per_thread;
    if (parts < 2 || work < 2 || !torch.symbol.parallel_for) {
        run_part(0, work, call);
        return;
    }
    int64_t grain = work / parts;
    torch.symbol.parallel_for(0, work, grain > 0 ? grain : 1, run_part, call);
}

static int kernel_status(KernelCall *call) {
    if (!atomic_load(&call->failed))
        return 0;
    PyErr_SetString(PyExc_IndexError, "index out of range in a compiled graph");
    return -1;
}

static int count_elements(const KernelStep *step, Slot *slots, int64_t work, int64_t *most) {
    *most = work;
    for (Py_ssize_t i = 0; i < step->slot_count; i++) {
        int64_t count;
        if (slot_element_count(&slots[step->slots[i]], &count))
            return -1;
        *most = count > *most ? count : *most;
    }
    return 0;
}

static int run_cpu(const KernelStep *step, KernelCall *call, int64_t work, Slot *slots) {
    int64_t elements;
    if (work <= 0)
        return 0;
    if (count_elements(step, slots, work, &elements))
        return -1;
    if (elements < elements_to_release) {
        run_parts(call, work, elements);
        return kernel_status(call);
    }
    Py_BEGIN_ALLOW_THREADS
    run_parts(call, work, elements);
    Py_END_ALLOW_THREADS
    return kernel_status(call);
}

/* Every pointer, then every scalar, then the work: `arguments` points at each. */
static int run_cuda(const KernelStep *step, CudaKernel *kernel, void **pointers, int64_t *scalars, int64_t work,
                    void **arguments, Slot *slots) {
    int32_t device;
    Py_ssize_t next = 0;
    if (step->slot_count == 0 || slot_device_index(&slots[step->slots[0]], &device))
        return -1;
    for (Py_ssize_t i = 0; i < step->slot_count; i++)
        arguments[next++] = &pointers[i];
    for (Py_ssize_t i = 0; i < step->scalar_count; i++)
        arguments[next++] = &scalars[i];
    arguments[next] = &work;
    return cuda_kernel_launch(kernel, device, arguments, work);
}

enum { STACK_POINTERS = 32 };

static int run_kernel_in(const LaunchPlan *plan, const KernelStep *step, Slot *slots, void **pointers,
                         int64_t *scalars, void **arguments) {
    int64_t work;
    for (Py_ssize_t i = 0; i < step->slot_count; i++)
        if (slot_data(&slots[step->slots[i]], &pointers[i]))
            return -1;
    if (integer_list_values(step->scalars, step->scalar_count, slots, scalars) ||
        integer_value(&step->work, slots, &work))
        return -1;
    const Kernel *kernel = &plan->kernels[step->kernel];
    if (kernel->cuda)
        return run_cuda(step, kernel->cuda, pointers, scalars, work, arguments, slots);
    KernelCall call = {(CpuFunction)kernel->function, pointers, scalars, false};
    return run_cpu(step, &call, work, slots);
}

static int run_kernel(const LaunchPlan *plan, const KernelStep *step, Slot *slots) {
    Py_ssize_t most = step->slot_count + step->scalar_count + 1;
    if (most <= STACK_POINTERS) {
        void *pointers[STACK_POINTERS], *arguments[STACK_POINTERS];
        int64_t scalars[STACK_POINTERS];
        return run_kernel_in(plan, step, slots, pointers, scalars, arguments);
    }
    void **space = PyMem_Malloc((size_t)most * 3 * sizeof *space);
    if (!space) {
        PyErr_NoMemory();
        return -1;
    }
    int status = run_kernel_in(plan, step, slots, space, (int64_t *)(space + most), space + 2 * most);
    PyMem_Free(space);
    return status;
}

/* ---- tensors ---- */

/* 0 if the tensor that the caller gave for an output is as the plan would have made it. */
static int check_place(const TensorStep *step, Slot *place, const int64_t *sizes, const int64_t *strides) {
    PyObject *dtype = PyObject_GetAttrString(place->object, "dtype"), *wanted = scalar_type_object(step->scalar_type);
    PyObject *rank = dtype ? PyObject_CallMethod(place->object, "dim", NULL) : NULL;
    bool fits = rank && wanted && dtype == wanted && PyLong_AsSsize_t(rank) == step->dimensions;
    Py_XDECREF(dtype);
    Py_XDECREF(rank);
    for (Py_ssize_t i = 0; fits && i < step->dimensions; i++) {
        int64_t size, stride;
        fits = !slot_size(place, i, &size) && !slot_stride(place, i, &stride) && size == sizes[i] &&
               (stride == strides[i] || size < 2);
    }
    int32_t device = -1;
    fits = fits && !slot_device_index(place, &device) && (step->device_type == 0 ? device < 0 : device == step->device_index);
    if (!fits && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "the place for an output of a launch plan is unlike the output");
    return fits ? 0 : -1;
}

static int run_allocation(const TensorStep *step, Slot *slots) {
    int64_t sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
    bool placed = slots[step->slot].object != NULL;
    if (!placed && step->recycler && recycle_take(step->recycler, &slots[step->slot]))
        return 0;
    if (integer_list_values(step->sizes, step->dimensions, slots, sizes) ||
        integer_list_values(step->strides, step->dimensions, slots, strides))
        return -1;
    if (placed)
        return check_place(step, &slots[step->slot], sizes, strides);
    return slot_allocate(&slots[step->slot], step->scalar_type, step->device_type, step->device_index,
                         step->dimensions, sizes, strides);
}

static int run_view(const TensorStep *step, Slot *slots) {
    int64_t sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS], offset;
    if (integer_list_values(step->sizes, step->dimensions, slots, sizes) ||
        integer_list_values(step->strides, step->dimensions, slots, strides) ||
        integer_value(&step->offset, slots, &offset))
        return -1;
    return slot_view(&slots[step->slot], &slots[step->base], step->dimensions, sizes, strides, offset, step->escapes);
}

static int run_layout(const TensorStep *step, Slot *slots) {
    int64_t strides[MOST_DIMENSIONS];
    if (integer_list_values(step->strides, step->stride_count, slots, strides))
        return -1;
    return slot_lay_out(&slots[step->slot], step->stride_count, strides);
}

static int run_step(const LaunchPlan *plan, const Step *step, Slot *slots) {
    switch (step->kind) {
    case STEP_ALLOCATE:
        return run_allocation(&step->tensor, slots);
    case STEP_VIEW:
        return run_view(&step->tensor, slots);
    case STEP_KERNEL:
        return run_kernel(plan, &step->kernel, slots);
    case STEP_ATEN:
        return aten_call_run(step->aten, slots);
    case STEP_LAYOUT:
        return run_layout(&step->tensor, slots);
    case STEP_FREE:
        if (step->tensor.slot >= 0)
            slot_clear(&slots[step->tensor.slot]);
        return 0;
    case STEP_WRITTEN:
        return slot_written(&slots[step->tensor.slot]);
    case STEP_GENERATOR:
        return generator_step_run(&step->generator, slots);
    }
    return 0;
}

/* ---- calls ---- */

static int adopt_scalar(Slot *slot, PyObject *value) {
    if (PyFloat_Check(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        memcpy(&slot->scalar, &number, sizeof number);
        return 0;
    }
    if (!PyLong_Check(value)) {
        PyErr_Format(PyExc_TypeError, "a compiled graph expects a number here, not %R", value);
        return -1;
    }
    slot->scalar = PyLong_AsLongLong(value);
    return slot->scalar == -1 && PyErr_Occurred() ? -1 : 0;
}

static inline bool is_tensor(PyObject *value) {
    return Py_IS_TYPE(value, torch.object.tensor_type) || Py_IS_TYPE(value, torch.object.parameter_type) ||
           PyObject_TypeCheck(value, torch.object.tensor_type);
}

static int adopt_input(Slot *slot, PyObject *value, SlotKind kind) {
    slot->object = value;
    if (kind == SLOT_SCALAR)
        return adopt_scalar(slot, value);
    if (kind != SLOT_TENSOR)
        return 0; /* only handed through */
    if (!is_tensor(value)) {
        PyErr_Format(PyExc_TypeError, "a compiled graph expects a tensor here, not %R", value);
        return -1;
    }
    slot_adopt_object(slot, value, false);
    return 0;
}

static PyObject *collect_outputs(const LaunchPlan *plan, Slot *slots, bool placed) {
    PyObject *outputs = PyTuple_New(plan->output_count);
    for (Py_ssize_t i = 0; outputs && i < plan->output_count; i++) {
        PyObject *object = slot_object(&slots[plan->outputs[i]]);
        if (object)
            PyTuple_SET_ITEM(outputs, i, Py_NewRef(object));
        else
            Py_CLEAR(outputs);
        if (object && plan->recyclers[i] && !placed)
            recycle_keep(plan->recyclers[i], object);
    }
    return outputs;
}

/* Whether a step makes a view that the program sees, of a tensor that requires no gradients; -1: an exception. */
static int shows_plain_view(const Step *step, Slot *slots) {
    if (step->kind != STEP_VIEW || !step->tensor.escapes)
        return false;
    PyObject *base = slot_object(&slots[step->tensor.base]);
    PyObject *requires_grad = base ? PyObject_GetAttrString(base, "requires_grad") : NULL;
    if (!requires_grad)
        return -1;
    Py_DECREF(requires_grad);
    return requires_grad == Py_False;
}

/* Grad mode is off, where the program has it on: a view that the program may write in place is made with it on, as autograd
 * refuses to record writes to others. */
static int run_unrecorded_step(const LaunchPlan *plan, const Step *step, Slot *slots) {
    int plain = shows_plain_view(step, slots);
    if (plain > 0)
        torch.symbol.set_grad_mode(true);
    int status = plain < 0 ? -1 : run_step(plan, step, slots);
    if (plain > 0)
        torch.symbol.set_grad_mode(false);
    return status;
}

static int run_steps(const LaunchPlan *plan, Slot *slots) {
    bool turn_off = plan->no_grad && torch.symbol.grad_mode();
    int status = 0;
    if (turn_off)
        torch.symbol.set_grad_mode(false);
    for (Py_ssize_t i = 0; i < plan->step_count && !status; i++)
        status = turn_off ? run_unrecorded_step(plan, &plan->steps[i], slots) : run_step(plan, &plan->steps[i], slots);
    if (turn_off)
        torch.symbol.set_grad_mode(true);
    return status;
}

static PyObject *run_fallback(const LaunchPlan *plan, PyObject *const *inputs) {
    if (plan->fallback)
        return PyObject_Vectorcall(plan->fallback, inputs, (size_t)plan->input_count, NULL);
    PyErr_SetString(PyExc_RuntimeError, "inputs of a launch plan share memory that it writes");
    return NULL;
}

/* Moves the inputs out of the caller's list, so that a step that frees one frees its memory. */
static int take_inputs(const LaunchPlan *plan, Slot *slots, PyObject *list) {
    for (Py_ssize_t i = 0; i < plan->input_count; i++) {
        Py_INCREF(slots[i].object);
        slots[i].owned = true;
    }
    return PyList_SetSlice(list, 0, PyList_GET_SIZE(list), NULL);
}

/* Where outputs shall lie: their slots are filled before the steps that would allocate them. */
static int place_outputs(const LaunchPlan *plan, Slot *slots, PyObject *places) {
    for (Py_ssize_t i = 0; i < plan->output_count; i++) {
        PyObject *place = PyTuple_GET_ITEM(places, i);
        if (place == Py_None)
            continue;
        if (!plan->placeable[i] || !is_tensor(place)) {
            PyErr_Format(PyExc_ValueError, "output %zd of a launch plan cannot be placed in %R", i, Py_TYPE(place));
            return -1;
        }
        slot_adopt_object(&slots[plan->outputs[i]], Py_NewRef(place), true);
    }
    return 0;
}

/* `taken` is the list that the inputs are in and are taken from, or NULL where they stay the caller's; `places` has a tensor or
 * None for each output, or is NULL. */
static PyObject *run_plan(LaunchPlan *plan, PyObject *const *inputs, Slot *slots, PyObject *taken, PyObject *places) {
    for (Py_ssize_t i = 0; i < plan->input_count; i++)
        if (adopt_input(&slots[i], inputs[i], plan->input_kinds[i]))
            return NULL;
    int apart = plan->apart_count ? plan_inputs_are_apart(plan, slots) : 1;
    int captured = apart > 0 && plan->fallback ? generator_is_captured(plan) : 0;
    if (apart < 0 || captured < 0)
        return NULL;
    if (!apart || captured)
        return run_fallback(plan, inputs);
    if ((taken && take_inputs(plan, slots, taken)) || (places && place_outputs(plan, slots, places)))
        return NULL;
    return run_steps(plan, slots) ? NULL : collect_outputs(plan, slots, places != NULL);
}

enum { STACK_SLOTS = 32 };

static PyObject *call_plan(LaunchPlan *plan, PyObject *const *inputs, Py_ssize_t count, PyObject *taken,
                           PyObject *places) {
    Slot stack[STACK_SLOTS], *slots = stack;
    if (count != plan->input_count)
        return PyErr_Format(PyExc_TypeError, "this launch plan takes %zd positional arguments", plan->input_count);
    if (plan->portable == torch.direct)
        return PyErr_Format(PyExc_RuntimeError, "torch was calibrated anew after this launch plan was made");
    if (plan->slot_count > STACK_SLOTS && !(slots = PyMem_Malloc((size_t)plan->slot_count * sizeof *slots)))
        return PyErr_NoMemory();
    memset(slots, 0, (size_t)plan->slot_count * sizeof *slots);
    PyObject *outputs = run_plan(plan, inputs, slots, taken, places);
    for (Py_ssize_t i = 0; i < plan->slot_count; i++)
        slot_clear(&slots[i]);
    if (slots != stack)
        PyMem_Free(slots);
    return outputs;
}

PyObject *plan_vectorcall(PyObject *self, PyObject *const *args, size_t count_flags, PyObject *keyword_names) {
    LaunchPlan *plan = (LaunchPlan *)self;
    bool named = keyword_names && PyTuple_GET_SIZE(keyword_names);
    return call_plan(plan, args, named ? -1 : PyVectorcall_NARGS(count_flags), NULL, NULL);
}

/* consume(inputs) */
PyObject *plan_consume(PyObject *self, PyObject *inputs) {
    if (!PyList_CheckExact(inputs))
        return PyErr_Format(PyExc_TypeError, "a launch plan takes its inputs out of a list, not of %R", inputs);
    return call_plan((LaunchPlan *)self, ((PyListObject *)inputs)->ob_item, PyList_GET_SIZE(inputs), inputs, NULL);
}

/* into(inputs, places) */
PyObject *plan_into(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    LaunchPlan *plan = (LaunchPlan *)self;
    if (count != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) != plan->output_count)
        return PyErr_Format(PyExc_TypeError, "into(inputs, places), two tuples, with a place or None for each output");
    return call_plan(plan, ((PyTupleObject *)args[0])->ob_item, PyTuple_GET_SIZE(args[0]), NULL, args[1]);
}
