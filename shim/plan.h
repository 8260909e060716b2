/* The parsed form of a launch plan, shared by the parser and the runner. */
#ifndef FUSEE_PLAN_H
#define FUSEE_PLAN_H

#include "recycle.h"

enum { MOST_DIMENSIONS = 64 };

typedef struct Kernel {
    LoadedObject *object; /* of a CPU kernel */
    void *function;
    CudaKernel *cuda;
} Kernel;

typedef enum StepKind {
    STEP_ALLOCATE,
    STEP_VIEW,
    STEP_KERNEL,
    STEP_ATEN,
    STEP_LAYOUT,
    STEP_FREE,
    STEP_WRITTEN,
    STEP_GENERATOR,
} StepKind;

typedef struct TensorStep {
    Py_ssize_t slot, base;
    int32_t scalar_type, device_type, device_index;
    Py_ssize_t dimensions, stride_count;
    Integer *sizes, *strides;
    Integer offset;
    Recycler *recycler; /* of a small output on the CPU */
    bool escapes; /* the view, or a view of it, is an output */
} TensorStep;

typedef struct KernelStep {
    Py_ssize_t kernel;
    Py_ssize_t *slots;
    Py_ssize_t slot_count;
    Integer *scalars;
    Py_ssize_t scalar_count;
    Integer work;
} KernelStep;

typedef struct GeneratorStep {
    Py_ssize_t slot;
    Py_ssize_t *given; /* slots of tensors that numbers are drawn for */
    Py_ssize_t given_count;
    PyObject *function, *captured, *draws, *device; /* of the host */
} GeneratorStep;

typedef struct Step {
    StepKind kind;
    union {
        TensorStep tensor;
        KernelStep kernel;
        AtenCall *aten;
        GeneratorStep generator;
    };
} Step;

/* An input whose memory must be apart from that of those that are written. */
typedef struct ApartInput {
    Py_ssize_t slot;
    int64_t item_bytes;
    Py_ssize_t dimensions;
    bool written;
} ApartInput;

/* The bytes from the first element of an input to its last. */
typedef struct AddressRange {
    uintptr_t begin, end;
    bool written;
} AddressRange;

typedef struct LaunchPlan {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t input_count, slot_count, output_count, step_count, kernel_count;
    SlotKind *input_kinds;
    Py_ssize_t *outputs;
    bool *placeable; /* by output: whether it is allocated, once, so that the caller may say where */
    Step *steps;
    Recycler **recyclers; /* by output; NULL for one that is not recycled; owned by the steps */
    Kernel *kernels;
    bool portable; /* made for the portable path */
    bool no_grad;  /* the steps run with grad mode off */
    bool consumes; /* its steps free inputs, which are taken from the caller by consume() */
    PyObject *fallback; /* called instead where inputs that must be apart overlap; may be NULL */
    ApartInput *apart;
    Py_ssize_t apart_count;
    AddressRange *proven; /* of the inputs that were found to be apart last */
} LaunchPlan;

/* 1 if the plan may run on these inputs, 0 if inputs share memory that it takes to be apart, −1 and an exception. */
int plan_inputs_are_apart(LaunchPlan *plan, Slot *slots);
/* `source` is the "apart" of a plan. */
int plan_parse_apart(LaunchPlan *plan, PyObject *source, SlotUse *uses);

/* plan_random.c */
int generator_step_parse(PyObject *source, SlotUse *uses, GeneratorStep *step);
int generator_step_run(const GeneratorStep *step, Slot *slots);
void generator_step_free(GeneratorStep *step);
int generator_is_captured(const LaunchPlan *plan); /* a plan that reads it cannot be part of a CUDA graph; -1: an exception */

PyObject *plan_consume(PyObject *self, PyObject *inputs);
PyObject *plan_into(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *plan_vectorcall(PyObject *self, PyObject *const *args, size_t count_flags, PyObject *keyword_names);

#endif
