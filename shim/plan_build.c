/* Reads and checks a launch plan, so that running it needs no further checks but those on the inputs. */
#include "plan.h"

typedef struct StepRow {
    const char *name;
    StepKind kind;
    Py_ssize_t size;
} StepRow;

static const StepRow step_rows[] = {
    {"alloc", STEP_ALLOCATE, 7}, {"view", STEP_VIEW, 6}, {"kernel", STEP_KERNEL, 5},
    {"aten", STEP_ATEN, 5},      {"layout", STEP_LAYOUT, 3}, {"free", STEP_FREE, 2},
    {"written", STEP_WRITTEN, 2},  {"generator", STEP_GENERATOR, 5},
};

static const StepRow *find_step(PyObject *source) {
    PyObject *name = PyTuple_Check(source) && PyTuple_GET_SIZE(source) ? PyTuple_GET_ITEM(source, 0) : NULL;
    for (size_t i = 0; name && PyUnicode_Check(name) && i < sizeof step_rows / sizeof step_rows[0]; i++)
        if (!PyUnicode_CompareWithASCIIString(name, step_rows[i].name) && PyTuple_GET_SIZE(source) == step_rows[i].size)
            return &step_rows[i];
    PyErr_Format(PyExc_ValueError, "%R is not a step of a launch plan", source);
    return NULL;
}

static int parse_small(PyObject *source, int32_t *value) {
    long number = PyLong_AsLong(source);
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number < INT32_MIN || number > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a number of a launch plan is out of range");
        return -1;
    }
    *value = (int32_t)number;
    return 0;
}

static int parse_shape(PyObject *sizes, PyObject *strides, SlotUse *uses, TensorStep *step) {
    if (integer_list_parse(sizes, uses, &step->sizes, &step->dimensions) ||
        integer_list_parse(strides, uses, &step->strides, &step->stride_count))
        return -1;
    if (step->dimensions == step->stride_count && step->dimensions <= MOST_DIMENSIONS)
        return 0;
    PyErr_SetString(PyExc_ValueError, "a tensor of a launch plan has at most 64 sizes and as many strides");
    return -1;
}

static int parse_allocation(PyObject *source, SlotUse *uses, TensorStep *step) {
    if (parse_slot_number(PyTuple_GET_ITEM(source, 1), &step->slot) ||
        parse_small(PyTuple_GET_ITEM(source, 2), &step->scalar_type) ||
        parse_small(PyTuple_GET_ITEM(source, 3), &step->device_type) ||
        parse_small(PyTuple_GET_ITEM(source, 4), &step->device_index) ||
        parse_shape(PyTuple_GET_ITEM(source, 5), PyTuple_GET_ITEM(source, 6), uses, step))
        return -1;
    if (!scalar_type_object(step->scalar_type))
        return -1;
    PyObject *device = device_object(step->device_type, step->device_index);
    Py_XDECREF(device);
    return device ? define_slot(uses, step->slot) : -1;
}

static int parse_view(PyObject *source, SlotUse *uses, TensorStep *step) {
    if (parse_slot_number(PyTuple_GET_ITEM(source, 1), &step->slot) ||
        parse_slot_number(PyTuple_GET_ITEM(source, 2), &step->base) || use_slot(uses, step->base, SLOT_TENSOR) ||
        parse_shape(PyTuple_GET_ITEM(source, 3), PyTuple_GET_ITEM(source, 4), uses, step) ||
        integer_parse(PyTuple_GET_ITEM(source, 5), uses, &step->offset))
        return -1;
    return define_slot(uses, step->slot);
}

static int parse_kernel_slots(PyObject *source, SlotUse *uses, KernelStep *step) {
    PyObject *list = PySequence_Fast(source, "the slots of a kernel must be a list");
    if (!list)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    step->slots = PyMem_Calloc((size_t)count + 1, sizeof *step->slots);
    step->slot_count = count;
    int status = step->slots ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; !status && i < count; i++)
        status = parse_slot_number(PySequence_Fast_GET_ITEM(list, i), &step->slots[i]) ||
                         use_slot(uses, step->slots[i], SLOT_TENSOR)
                     ? -1
                     : 0;
    Py_DECREF(list);
    return status;
}

static int parse_kernel_step(const LaunchPlan *plan, PyObject *source, SlotUse *uses, KernelStep *step) {
    if (parse_slot_number(PyTuple_GET_ITEM(source, 1), &step->kernel))
        return -1;
    if (step->kernel < 0 || step->kernel >= plan->kernel_count) {
        PyErr_Format(PyExc_ValueError, "kernel %zd of a plan with %zd kernels", step->kernel, plan->kernel_count);
        return -1;
    }
    if (parse_kernel_slots(PyTuple_GET_ITEM(source, 2), uses, step) ||
        integer_list_parse(PyTuple_GET_ITEM(source, 3), uses, &step->scalars, &step->scalar_count) ||
        integer_parse(PyTuple_GET_ITEM(source, 4), uses, &step->work))
        return -1;
    if (plan->kernels[step->kernel].cuda && step->slot_count == 0) {
        PyErr_SetString(PyExc_ValueError, "a CUDA kernel without a tensor has no device to run on");
        return -1;
    }
    return 0;
}

static int parse_free(PyObject *source, const LaunchPlan *plan, SlotUse *uses, TensorStep *step) {
    if (parse_slot_number(PyTuple_GET_ITEM(source, 1), &step->slot))
        return -1;
    bool input = step->slot >= 0 && step->slot < plan->input_count;
    if (input && !plan->consumes)
        return step->slot = -1, 0; /* borrowed: the caller's to free, and perhaps an output */
    if (use_slot(uses, step->slot, SLOT_TENSOR))
        return -1;
    if (input)
        plan->input_kinds[step->slot] = SLOT_TENSOR;
    uses->kinds[step->slot] = SLOT_EMPTY;
    return 0;
}

static int parse_written(PyObject *source, SlotUse *uses, TensorStep *step) {
    return parse_slot_number(PyTuple_GET_ITEM(source, 1), &step->slot) || use_slot(uses, step->slot, SLOT_TENSOR) ? -1 : 0;
}

static int parse_layout(PyObject *source, SlotUse *uses, TensorStep *step) {
    if (parse_slot_number(PyTuple_GET_ITEM(source, 1), &step->slot) || use_slot(uses, step->slot, SLOT_TENSOR) ||
        integer_list_parse(PyTuple_GET_ITEM(source, 2), uses, &step->strides, &step->stride_count))
        return -1;
    if (step->stride_count <= MOST_DIMENSIONS)
        return 0;
    PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions", MOST_DIMENSIONS);
    return -1;
}

static int parse_step(LaunchPlan *plan, PyObject *source, SlotUse *uses, Step *step) {
    const StepRow *row = find_step(source);
    if (!row)
        return -1;
    step->kind = row->kind;
    switch (row->kind) {
    case STEP_ALLOCATE:
        return parse_allocation(source, uses, &step->tensor);
    case STEP_VIEW:
        return parse_view(source, uses, &step->tensor);
    case STEP_KERNEL:
        return parse_kernel_step(plan, source, uses, &step->kernel);
    case STEP_ATEN:
        step->aten = aten_call_new(source, uses);
        return step->aten ? 0 : -1;
    case STEP_LAYOUT:
        return parse_layout(source, uses, &step->tensor);
    case STEP_FREE:
        return parse_free(source, plan, uses, &step->tensor);
    case STEP_WRITTEN:
        return parse_written(source, uses, &step->tensor);
    case STEP_GENERATOR:
        return generator_step_parse(source, uses, &step->generator);
    }
    return -1;
}

/* ---- kernels ---- */

static int load_cpu_kernel(PyObject *source, Kernel *kernel) {
    const char *symbol, *bytes;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(source, "Osy#:cpu kernel", &(PyObject *){NULL}, &symbol, &bytes, &length))
        return -1;
    kernel->object = object_load((const unsigned char *)bytes, (size_t)length);
    if (!kernel->object)
        return -1;
    kernel->function = object_symbol(kernel->object, symbol);
    if (kernel->function)
        return 0;
    PyErr_Format(PyExc_ValueError, "an object file does not define the function %s", symbol);
    return -1;
}

static int load_cuda_kernel(PyObject *source, Kernel *kernel) {
    const char *symbol, *image;
    Py_ssize_t length;
    unsigned threads, shared_bytes;
    long long items;
    int dependent;
    if (!PyArg_ParseTuple(source, "Osy#ILIp:cuda kernel", &(PyObject *){NULL}, &symbol, &image, &length, &threads,
                          &items, &shared_bytes, &dependent))
        return -1;
    kernel->cuda = cuda_kernel_new(symbol, image, (size_t)length, threads, items, shared_bytes, dependent);
    return kernel->cuda ? 0 : -1;
}

static int load_kernel(PyObject *source, Kernel *kernel) {
    PyObject *kind = PyTuple_Check(source) && PyTuple_GET_SIZE(source) ? PyTuple_GET_ITEM(source, 0) : NULL;
    if (kind && PyUnicode_Check(kind) && !PyUnicode_CompareWithASCIIString(kind, "cpu"))
        return load_cpu_kernel(source, kernel);
    if (kind && PyUnicode_Check(kind) && !PyUnicode_CompareWithASCIIString(kind, "cuda"))
        return load_cuda_kernel(source, kernel);
    PyErr_SetString(PyExc_ValueError, "a kernel of a launch plan is (\"cpu\", …) or (\"cuda\", …)");
    return -1;
}

/* ---- the whole ---- */

static int parse_kernels(LaunchPlan *plan, PyObject *list) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    plan->kernels = PyMem_Calloc((size_t)count + 1, sizeof *plan->kernels);
    if (!plan->kernels) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        plan->kernel_count = i + 1;
        if (load_kernel(PySequence_Fast_GET_ITEM(list, i), &plan->kernels[i]))
            return -1;
    }
    return 0;
}

static int parse_steps(LaunchPlan *plan, PyObject *list, SlotUse *uses) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    plan->steps = PyMem_Calloc((size_t)count + 1, sizeof *plan->steps);
    if (!plan->steps) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        plan->step_count = i + 1;
        if (parse_step(plan, PySequence_Fast_GET_ITEM(list, i), uses, &plan->steps[i]))
            return -1;
    }
    return 0;
}

static int parse_outputs(LaunchPlan *plan, PyObject *list, const SlotUse *uses) {
    plan->output_count = PySequence_Fast_GET_SIZE(list);
    plan->outputs = PyMem_Calloc((size_t)plan->output_count + 1, sizeof *plan->outputs);
    if (!plan->outputs) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < plan->output_count; i++) {
        Py_ssize_t slot;
        if (parse_slot_number(PySequence_Fast_GET_ITEM(list, i), &slot))
            return -1;
        if (slot < 0 || slot >= uses->count || uses->kinds[slot] == SLOT_EMPTY) {
            PyErr_Format(PyExc_ValueError, "output %zd of a launch plan is slot %zd, which holds nothing", i, slot);
            return -1;
        }
        plan->outputs[i] = slot;
    }
    return 0;
}

static bool is_output(const LaunchPlan *plan, Py_ssize_t slot) {
    for (Py_ssize_t i = 0; i < plan->output_count; i++)
        if (plan->outputs[i] == slot)
            return true;
    return false;
}

/* Later views first, so that a view whose own view escapes is seen to escape too. */
static void mark_escapes(LaunchPlan *plan) {
    for (Py_ssize_t i = plan->step_count - 1; i >= 0; i--) {
        TensorStep *view = &plan->steps[i].tensor;
        if (plan->steps[i].kind != STEP_VIEW)
            continue;
        view->escapes = is_output(plan, view->slot);
        for (Py_ssize_t later = i + 1; later < plan->step_count && !view->escapes; later++) {
            const Step *step = &plan->steps[later];
            view->escapes = (step->kind == STEP_VIEW && step->tensor.base == view->slot && step->tensor.escapes) ||
                            step->kind == STEP_ATEN; /* an operator may write to it or return it */
        }
    }
}

enum { MOST_RECYCLED_BYTES = 4096, LARGEST_ITEM = 16 };

/* Only constant sizes, so that a former output has the right ones. */
static bool is_small(const TensorStep *step) {
    int64_t bytes = LARGEST_ITEM;
    for (Py_ssize_t i = 0; i < step->dimensions; i++)
        if (step->sizes[i].expression || step->strides[i].expression || step->sizes[i].value <= 0 ||
            __builtin_mul_overflow(bytes, step->sizes[i].value, &bytes) || bytes > MOST_RECYCLED_BYTES)
            return false;
    return true;
}

/* The step that made what the output's slot holds at the end. */
static TensorStep *maker_of(LaunchPlan *plan, Py_ssize_t slot) {
    for (Py_ssize_t i = plan->step_count - 1; i >= 0; i--) {
        Step *step = &plan->steps[i];
        if (step->kind == STEP_ALLOCATE && step->tensor.slot == slot)
            return &step->tensor;
        if (step->kind == STEP_FREE && step->tensor.slot == slot)
            return NULL;
    }
    return NULL;
}

static Py_ssize_t count_outputs(const LaunchPlan *plan, Py_ssize_t slot) {
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < plan->output_count; i++)
        count += plan->outputs[i] == slot;
    return count;
}

/* How many steps make what a slot holds; it may hold several things one after the other. */
static Py_ssize_t count_allocations(const LaunchPlan *plan, Py_ssize_t slot) {
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < plan->step_count; i++)
        count += plan->steps[i].kind == STEP_ALLOCATE && plan->steps[i].tensor.slot == slot;
    return count;
}

static bool slot_is_freed(const LaunchPlan *plan, Py_ssize_t slot) {
    for (Py_ssize_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == STEP_FREE && plan->steps[i].tensor.slot == slot)
            return true;
    return false;
}

static int find_placeable(LaunchPlan *plan) {
    plan->placeable = PyMem_Calloc((size_t)plan->output_count + 1, sizeof *plan->placeable);
    if (!plan->placeable) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < plan->output_count; i++) {
        Py_ssize_t slot = plan->outputs[i];
        plan->placeable[i] =
            count_allocations(plan, slot) == 1 && !slot_is_freed(plan, slot) && count_outputs(plan, slot) == 1;
    }
    return 0;
}

/* `fresh`: the caller wants new tensors from every call, since what hangs on them must end with them. */
static int prepare_recycling(LaunchPlan *plan, bool fresh) {
    plan->recyclers = PyMem_Calloc((size_t)plan->output_count + 1, sizeof(Recycler *));
    if (!plan->recyclers) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < plan->output_count && !fresh && recycle_is_possible(); i++) {
        TensorStep *maker = maker_of(plan, plan->outputs[i]);
        if (!maker || maker->device_type != 0 || !is_small(maker))
            continue;
        if (!maker->recycler && !(maker->recycler = recycler_new()))
            return -1;
        plan->recyclers[i] = maker->recycler;
    }
    return 0;
}

static int prepare_slots(LaunchPlan *plan, SlotUse *uses) {
    if (plan->input_count < 0 || plan->slot_count < plan->input_count || plan->slot_count > 1 << 20) {
        PyErr_SetString(PyExc_ValueError, "a launch plan needs at least as many slots as inputs");
        return -1;
    }
    uses->count = plan->slot_count;
    uses->kinds = PyMem_Calloc((size_t)plan->slot_count + 1, sizeof *uses->kinds);
    plan->input_kinds = PyMem_Calloc((size_t)plan->input_count + 1, sizeof *plan->input_kinds);
    if (!uses->kinds || !plan->input_kinds) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < plan->input_count; i++)
        uses->kinds[i] = SLOT_UNKNOWN_INPUT;
    return 0;
}

static int item_number(PyObject *plan, const char *key, Py_ssize_t *value) {
    PyObject *item = PyDict_GetItemString(plan, key);
    if (item)
        return parse_slot_number(item, value);
    PyErr_Format(PyExc_ValueError, "a launch plan lacks \"%s\"", key);
    return -1;
}

/* New reference to a list or tuple. */
static PyObject *item_list(PyObject *plan, const char *key) {
    PyObject *item = PyDict_GetItemString(plan, key);
    if (item)
        return PySequence_Fast(item, "a part of a launch plan must be a list");
    return PyErr_Format(PyExc_ValueError, "a launch plan lacks \"%s\"", key);
}

static bool item_is_true(PyObject *plan, const char *key) {
    return PyDict_GetItemString(plan, key) == Py_True;
}

static int parse_plan(LaunchPlan *plan, PyObject *source, SlotUse *uses) {
    PyObject *apart = PyDict_GetItemString(source, "apart");
    plan->no_grad = item_is_true(source, "no_grad");
    plan->consumes = item_is_true(source, "consumes");
    if (item_number(source, "inputs", &plan->input_count) || item_number(source, "slots", &plan->slot_count) ||
        prepare_slots(plan, uses) || (apart && plan_parse_apart(plan, apart, uses)))
        return -1;
    PyObject *kernels = item_list(source, "kernels");
    PyObject *steps = kernels ? item_list(source, "steps") : NULL;
    PyObject *outputs = steps ? item_list(source, "outputs") : NULL;
    int status = outputs && !parse_kernels(plan, kernels) && !parse_steps(plan, steps, uses) &&
                         !parse_outputs(plan, outputs, uses)
                     ? 0
                     : -1;
    Py_XDECREF(kernels);
    Py_XDECREF(steps);
    Py_XDECREF(outputs);
    if (status)
        return -1;
    for (Py_ssize_t i = 0; i < plan->input_count; i++)
        if (uses->kinds[i] != SLOT_EMPTY) /* those are freed by a step, which notes their kind */
            plan->input_kinds[i] = uses->kinds[i];
    mark_escapes(plan);
    if (find_placeable(plan))
        return -1;
    return prepare_recycling(plan, item_is_true(source, "fresh"));
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"plan", "fallback", NULL};
    PyObject *source, *fallback = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|O:LaunchPlan", names, &PyDict_Type, &source, &fallback))
        return NULL;
    if (!torch.ready)
        return PyErr_Format(PyExc_RuntimeError, "calibrate(torch) must come before the first launch plan");
    LaunchPlan *plan = (LaunchPlan *)type->tp_alloc(type, 0);
    if (!plan)
        return NULL;
    SlotUse uses = {0, NULL};
    plan->vectorcall = plan_vectorcall;
    plan->fallback = Py_XNewRef(fallback);
    plan->portable = !torch.direct;
    int status = parse_plan(plan, source, &uses);
    PyMem_Free(uses.kinds);
    if (status)
        Py_CLEAR(plan);
    return (PyObject *)plan;
}

static void free_step(Step *step) {
    switch (step->kind) {
    case STEP_ALLOCATE:
    case STEP_VIEW:
    case STEP_LAYOUT:
        integer_list_free(step->tensor.sizes, step->tensor.dimensions);
        integer_list_free(step->tensor.strides, step->tensor.stride_count);
        integer_clear(&step->tensor.offset);
        recycler_free(step->tensor.recycler);
        break;
    case STEP_KERNEL:
        PyMem_Free(step->kernel.slots);
        integer_list_free(step->kernel.scalars, step->kernel.scalar_count);
        integer_clear(&step->kernel.work);
        break;
    case STEP_ATEN:
        aten_call_free(step->aten);
        break;
    case STEP_GENERATOR:
        generator_step_free(&step->generator);
        break;
    case STEP_FREE:
    case STEP_WRITTEN:
        break;
    }
}

/* By step, since two outputs may be the same tensor. */
static int plan_traverse(PyObject *self, visitproc visit, void *arg) {
    LaunchPlan *plan = (LaunchPlan *)self;
    Py_VISIT(plan->fallback);
    for (Py_ssize_t i = 0; i < plan->step_count; i++) {
        int status = plan->steps[i].kind == STEP_ALLOCATE
                         ? recycler_traverse(plan->steps[i].tensor.recycler, visit, arg)
                         : 0;
        if (status)
            return status;
    }
    return 0;
}

static int plan_clear(PyObject *self) {
    LaunchPlan *plan = (LaunchPlan *)self;
    Py_CLEAR(plan->fallback);
    for (Py_ssize_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == STEP_ALLOCATE)
            recycler_clear(plan->steps[i].tensor.recycler);
    return 0;
}

static void plan_dealloc(PyObject *self) {
    LaunchPlan *plan = (LaunchPlan *)self;
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; i < plan->step_count; i++)
        free_step(&plan->steps[i]);
    for (Py_ssize_t i = 0; i < plan->kernel_count; i++) {
        object_free(plan->kernels[i].object);
        cuda_kernel_free(plan->kernels[i].cuda);
    }
    PyMem_Free(plan->steps);
    PyMem_Free(plan->kernels);
    PyMem_Free(plan->outputs);
    PyMem_Free(plan->placeable);
    PyMem_Free(plan->recyclers);
    PyMem_Free(plan->input_kinds);
    PyMem_Free(plan->apart);
    PyMem_Free(plan->proven);
    Py_XDECREF(plan->fallback);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *describe_step(const Step *step) {
    static const char *const names[] = {"alloc", "view", "kernel", "aten", "layout", "free", "written"};
    if (step->kind == STEP_ATEN)
        return aten_call_describe(step->aten);
    if (step->kind == STEP_KERNEL)
        return Py_BuildValue("(sn)", "kernel", step->kernel.kernel);
    return Py_BuildValue("(sn)", names[step->kind], step->tensor.slot);
}

/* describe() -> list of tuples, one per step, the first item its kind */
static PyObject *plan_describe(PyObject *self, PyObject *Py_UNUSED(unused)) {
    LaunchPlan *plan = (LaunchPlan *)self;
    PyObject *list = PyList_New(plan->step_count);
    for (Py_ssize_t i = 0; list && i < plan->step_count; i++) {
        PyObject *description = describe_step(&plan->steps[i]);
        if (description)
            PyList_SET_ITEM(list, i, description);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* placeable() -> tuple of bools, by output */
static PyObject *plan_placeable(PyObject *self, PyObject *Py_UNUSED(unused)) {
    LaunchPlan *plan = (LaunchPlan *)self;
    PyObject *tuple = PyTuple_New(plan->output_count);
    for (Py_ssize_t i = 0; tuple && i < plan->output_count; i++)
        PyTuple_SET_ITEM(tuple, i, PyBool_FromLong(plan->placeable[i]));
    return tuple;
}

static PyMethodDef plan_methods[] = {
    {"into", (PyCFunction)(void (*)(void))plan_into, METH_FASTCALL,
     "into(inputs, places): as a call, with the outputs that have a place, which is a tensor and not None, written there."},
    {"placeable", plan_placeable, METH_NOARGS, "placeable(): for each output whether into() takes a place for it."},
    {"consume", plan_consume, METH_O,
     "consume(inputs): as a call with the inputs in a list, which is empty afterwards; those that nothing else holds end where "
     "the plan frees them."},
    {"describe", plan_describe, METH_NOARGS, "describe(): a tuple per step, with the way each operator is called."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject LaunchPlanType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fusee._shim.LaunchPlan",
    .tp_doc = "LaunchPlan(plan, fallback=None): a compiled graph; called with its inputs, returns the tuple of its outputs. The "
              "fallback is called instead where inputs share memory that the plan takes to be apart.",
    .tp_basicsize = sizeof(LaunchPlan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_traverse = plan_traverse,
    .tp_clear = plan_clear,
    .tp_vectorcall_offset = offsetof(LaunchPlan, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = plan_new,
    .tp_dealloc = plan_dealloc,
    .tp_methods = plan_methods,
};
