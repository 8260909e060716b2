/* Declarations shared by the files of fusee._shim: the part of fusee that runs on every call of a compiled function.
 *
 * The extension links neither libtorch nor CUDA. What it needs of them is looked up by name when torch is imported
 * (torch_symbols.c), so one build serves several versions of torch. docs/contracts.md sections 4, 6 and 7 describe the
 * data that the compiler hands over. */
#ifndef FUSEE_SHIM_H
#define FUSEE_SHIM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arithmetic.h"

/* ---- torch_symbols.c: what torch exports, and where a tensor keeps what we read on every call ---- */

typedef void *TensorHandle; /* an at::Tensor *, AtenTensorHandle in torch's C interface */
typedef uint64_t StableValue; /* StableIValue in torch's C interface */
typedef void *StableList;

/* Functions of torch by field; the table in torch_symbols.c gives the exported names. A field is NULL when this torch
 * lacks the symbol. Functions that return int32_t return 0 on success. */
typedef struct TorchSymbols {
    int32_t (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, TensorHandle *);
    int32_t (*delete_tensor)(TensorHandle);
    int32_t (*new_handle)(TensorHandle, TensorHandle *);
    int32_t (*reinterpret_tensor)(TensorHandle, int64_t, const int64_t *, const int64_t *, int64_t, TensorHandle *);
    int32_t (*data_pointer)(TensorHandle, void **);
    int32_t (*sizes)(TensorHandle, int64_t **);
    int32_t (*strides)(TensorHandle, int64_t **);
    int32_t (*dtype)(TensorHandle, int32_t *);
    int32_t (*device_type)(TensorHandle, int32_t *);
    int32_t (*device_index)(TensorHandle, int32_t *);
    int32_t (*dimensions)(TensorHandle, int64_t *);
    int32_t (*element_count)(TensorHandle, int64_t *);
    bool (*grad_mode)(void);
    void (*set_grad_mode)(bool);
    int32_t (*call_dispatcher)(const char *, const char *, StableValue *);
    int32_t (*new_list)(size_t, StableList *);
    int32_t (*list_append)(StableList, StableValue);
    int32_t (*list_get)(StableList, size_t, StableValue *);
    int32_t (*list_size)(StableList, size_t *);
    int32_t (*delete_list)(StableList);
    int32_t (*new_string)(const char *, size_t, void **);
    int32_t (*delete_string)(void *);
    int32_t (*new_optional)(StableValue **);
    int32_t (*delete_optional)(StableValue *);
    void *(*operator_new)(size_t); /* of C++, for a torch that frees optionals but does not make them */
    void (*operator_delete)(void *);
    int32_t (*parallel_for)(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void *), void *);
    const char *(*error_text)(void);
    int64_t (*function_mode_count)(void);
    int32_t (*function_disabled)(void);
    const unsigned char *(*autograd_state)(void);
    const unsigned char *(*function_state)(void);
    void *(*global_context)(void);
    bool (*deterministic)(const void *);
    bool (*deterministic_warn_only)(const void *);
    const bool *anomaly_mode;
    int8_t (*autocast_dtype)(int8_t);
    bool (*requires_grad)(const void *);
    void (*bump_version)(const void *);
    int8_t (*default_dtype)(void);
    PyObject *(*wrap)(TensorHandle);
    int32_t (*cuda_stream)(int32_t, void **);
} TorchSymbols;

enum { STATE_FUNCTIONS = 9 }; /* that read torch's global state */

/* Python callables of torch that the portable paths use. */
typedef struct TorchObjects {
    PyObject *module;
    PyTypeObject *tensor_type;
    PyTypeObject *parameter_type;
    PyObject *dispatch_keys;
    PyObject *empty_strided;
    PyObject *as_strided;
    PyObject *device;
    PyObject *aten; /* torch.ops.aten */
    PyObject *state_functions[STATE_FUNCTIONS];
    PyObject *function_mode_at;   /* torch._C._get_function_stack_at */
    PyObject *calls_the_function; /* __torch_function__ of BaseTorchFunctionMode, which only calls what it is given */
} TorchObjects;

/* Where a TensorImpl keeps what a guard reads, in bytes from its start; found by tensor_layout.c. Sizes and strides are
 * inside the object only up to INLINE_DIMENSIONS. */
typedef struct TensorLayout {
    bool known; /* otherwise torch's functions are called */
    Py_ssize_t autograd, dimensions, sizes, strides, dtype;
} TensorLayout;

enum { INLINE_DIMENSIONS = 5 };

/* Where torch keeps per-thread switches, from what its functions return; found by state_layout.c. */
typedef struct StateLayout {
    bool grad_known, function_known; /* otherwise torch's functions are called */
    Py_ssize_t grad_byte;
    unsigned char grad_mask;
    Py_ssize_t disabled, stack; /* a 4-byte number; begin and end of a vector */
} StateLayout;

typedef struct Torch {
    bool ready;
    bool direct; /* tensors are read through their handle; else through Python calls */
    Py_ssize_t handle_offset; /* of the at::Tensor inside a Python tensor, bytes */
    Py_ssize_t key_set_offset; /* of the dispatch key set inside a TensorImpl, bytes */
    TensorLayout tensor_layout;
    StateLayout state_layout;
    const void *context; /* at::globalContext() */
    void *core_library; /* libc10, for its thread-local symbol */
    TorchSymbols symbol;
    TorchObjects object;
} Torch;

extern Torch torch;

PyObject *calibrate(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keyword_names);
PyObject *attribute_path(PyObject *object, const char *path); /* "a.b": new reference to object.a.b */
int scalar_type_number(const char *name, int32_t *number); /* "float32" -> ScalarType; -1 and an exception if unknown */
int device_type_number(const char *name, int32_t *number);
PyObject *scalar_type_object(int32_t number); /* borrowed torch.dtype, or NULL and an exception */
PyObject *device_object(int32_t type, int32_t index); /* new torch.device, or NULL and an exception */

/* Defines what the Python source says and returns probe(torch), run in torch's ordinary state. */
PyObject *run_probe(const char *source);
Py_ssize_t implementation_bytes(const void *implementation); /* at most 256 */
int find_tensor_layout(TensorLayout *layout); /* -1 and an exception if torch misbehaves */
int find_state_layout(StateLayout *layout);

static inline TensorHandle handle_of(PyObject *tensor) {
    return (char *)tensor + torch.handle_offset;
}

/* ---- global_state.c: what a capture assumed about the thread and the process ---- */

typedef struct GlobalState {
    uint64_t included; /* thread-local dispatch keys, as torch stores them: all zero in the ordinary state */
    uint64_t excluded;
    uint64_t default_dtype; /* a ScalarType, or the address of the torch.dtype on the portable path */
    uint64_t autocast; /* dtypes of autocast; zero while the dispatch keys are ordinary */
    uint32_t grad_mode;
    uint32_t deterministic; /* bit 0: on; bit 1: only warns */
    uint32_t function_disabled;
    uint32_t function_modes;
    uint64_t mode_classes; /* of the function modes that are asked, in order; 0: none, OTHER_MODES: see there */
} GlobalState;

#define OTHER_MODES UINT64_MAX /* mode_classes where a mode may do more than call the function, and in autograd's anomaly mode */

typedef struct ThreadState {
    const uint64_t *dispatch_keys; /* two words, this thread's */
    const unsigned char *autograd, *function_modes; /* NULL until looked up */
    const char *stack_limit; /* NULL until looked up */
    int disabled; /* compiled functions run their original */
    int asking;   /* the host is at work: nothing that it calls is captured by evaluator.c */
} ThreadState;

extern _Thread_local ThreadState this_thread;

const uint64_t *thread_dispatch_keys(void); /* this thread's two words; direct path only */
const char *find_stack_limit(void); /* below this address the stack is nearly used up */
int global_state_read(GlobalState *state); /* -1 and an exception only on the portable path */
static inline bool global_state_equal(const GlobalState *first, const GlobalState *second) {
    const uint64_t *left = (const uint64_t *)(const void *)first, *right = (const uint64_t *)(const void *)second;
    uint64_t difference = 0;
    for (size_t i = 0; i < sizeof *first / sizeof *left; i++)
        difference |= left[i] ^ right[i];
    return difference == 0;
}

const char *global_state_difference(const GlobalState *expected, const GlobalState *found); /* NULL if equal */
int dispatch_mode_count(void);
int modes_are_active(void); /* function or dispatch modes under which nothing compiled may run */
PyObject *global_state_tuple(const GlobalState *state);

/* ---- tensor_check.c and tensor_check.h: the guard on one tensor ---- */

typedef struct TensorCheck {
    PyTypeObject *type;
    PyObject *dtype_object;
    PyObject *device_name;
    uint64_t key_set;
    bool has_key_set;
    bool requires_grad;
    bool asks_device; /* the key set does not say all there is to say of the device */
    int32_t dtype;
    int32_t device_type;
    int32_t device_index; /* -1: not checked */
    int64_t dimensions; /* -1: any */
    int64_t *sizes; /* ANY_SIZE: any; then `dimensions` strides */
    int64_t *strides;
} TensorCheck;

#define ANY_SIZE INT64_MIN

TensorCheck *tensor_check_new(PyObject *type, PyObject *metadata);
void tensor_check_take_key_set(TensorCheck *check, PyObject *value);
void tensor_check_free(TensorCheck *check);
int key_set_of(PyObject *tensor, uint64_t *key_set);

/* ---- dict_access.c: CPython 3.11's dictionaries and instance attributes without side effects ---- */

/* Every change of any dict takes a new number from one global counter, so equal versions mean the same dict with the
 * same contents. */
static inline uint64_t dict_version(PyObject *dict) {
    return ((PyDictObject *)dict)->ma_version_tag;
}
PyObject *instance_field(PyObject *object, PyObject *name, int32_t *hint); /* borrowed or NULL, no exception */
bool instance_is_bare(PyObject *object); /* no attribute, and no dict was ever asked for */
PyObject **instance_dict_slot(PyObject *object); /* where its dict is or would be kept; NULL if it can have none */
Py_ssize_t instance_inline_index(PyObject *object, PyObject *name); /* among its inline values, -1 if not there */
PyObject *instance_inline_value(PyObject *object, Py_ssize_t index); /* borrowed or NULL */
PyObject *dict_item_at(PyObject *dict, Py_ssize_t index); /* the value of this item in order; borrowed or NULL */
bool dict_lookup_runs_no_code(PyObject *dict, PyObject *key); /* comparing keys calls no method of the user's */
PyObject *instance_dict(PyObject *object); /* new reference or NULL, no exception */

/* ---- guard.c and guard_build.c: guard programs ---- */

extern PyTypeObject GuardProgramType;
typedef struct GuardProgram GuardProgram;

typedef struct GuardFailure {
    Py_ssize_t number; /* of the first check that does not hold */
    PyObject *value; /* new reference to what was found, NULL if it does not exist */
} GuardFailure;

/* Runs the program. On success stores new references to the captured values. On failure stores nothing and, when
 * `failure` is given, says which check failed (and then no inline cache is used). Never leaves an exception. */
bool guard_program_run(GuardProgram *program, PyObject *function, PyObject *const *bound, Py_ssize_t bound_count,
                       PyObject **captures, GuardFailure *failure);
Py_ssize_t guard_program_captures(const GuardProgram *program);

/* ---- record.c: entries and code records ---- */

typedef struct Entry {
    PyObject_HEAD
    GuardProgram *guards;
    PyCodeObject *code;
    PyObject *report;
    GlobalState state;
    bool has_state;   /* set when the entry joins a record */
    bool under_modes; /* made while there were dispatch modes: what those are like is asked at each call */
    Py_ssize_t functions; /* made of the code, each held by a compiled function that holds the entry too */
    unsigned long long hits;
} Entry;

/* RECORD_FULL: the entries there are still serve what they fit, and no more are made. */
typedef enum RecordState { RECORD_ACTIVE, RECORD_FULL, RECORD_PLAIN, RECORD_DISABLED } RecordState;

typedef struct CodeRecord {
    PyObject_HEAD
    PyObject *entries; /* tuple, most recently hit first */
    PyObject *data; /* belongs to the host */
    PyObject *weak_references;
    RecordState state;
    Py_ssize_t most_captures;
    unsigned long long hits, misses, rejected;
} CodeRecord;

extern PyTypeObject EntryType;
extern PyTypeObject CodeRecordType;

/* Visits the constants of code of which the caller holds the only references; the collector does not look into code. */
int visit_constants(PyObject *code, visitproc visit, void *arg);
int record_add(CodeRecord *record, Entry *entry);
int record_move_to_front(CodeRecord *record, PyObject *entries, Py_ssize_t index);

/* ---- binding.c: arguments to parameters ---- */

typedef struct Parameters {
    int positional_only, positional, keyword_only;
    bool takes_tuple, takes_dict;
    Py_ssize_t count; /* of all, the tuple and the dict included */
} Parameters;

void parameters_of(const PyCodeObject *code, Parameters *parameters);

/* Binds as CPython does, storing new references. 0: bound; 1: the call does not fit (no exception); -1: exception. */
int bind_arguments(PyFunctionObject *function, const Parameters *parameters, PyObject *const *args, Py_ssize_t count,
                   PyObject *keyword_names, PyObject **bound);

/* ---- callable.c ---- */

extern PyTypeObject CompiledFunctionType;
extern PyTypeObject OnwardType;
PyObject *original_function(PyObject *function); /* borrowed; unwraps a CompiledFunction; NULL and an exception if none */

/* Runs the entry that fits these values of the parameters, or `run(frame)` where there is none. */
PyObject *call_in_place(PyObject *compiled, PyObject *const *bound, PyObject *(*run)(void *), void *frame);

/* ---- evaluator.c: capture of every function that is called ---- */

int leave_code_alone(PyObject *code); /* marks code that the compiler wrote; -1 and an exception if memory is out */
bool left_to_tracer(void); /* a trace function is to see what runs, under capture of everything */
PyObject *capture_all(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- object_loader.c: relocatable x86-64 objects ---- */

typedef struct LoadedObject LoadedObject;
LoadedObject *object_load(const unsigned char *bytes, size_t length); /* NULL and an exception */
void *object_symbol(const LoadedObject *object, const char *name); /* NULL if not defined */
void object_free(LoadedObject *object);

/* ---- cuda_driver.c ---- */

typedef struct CudaKernel CudaKernel;
CudaKernel *cuda_kernel_new(const char *symbol, const void *image, size_t length, unsigned threads, int64_t items,
                            unsigned shared_bytes, bool dependent);
void cuda_kernel_free(CudaKernel *kernel);
int cuda_kernel_launch(CudaKernel *kernel, int32_t device, void **arguments, int64_t work);
PyObject *cuda_describe(PyObject *module, PyObject *unused);

/* ---- slot.c: the tensors of a running plan ---- */

typedef struct Slot {
    TensorHandle handle; /* NULL on the portable path */
    PyObject *object; /* the Python tensor or, for an input, whatever was passed; NULL while only the handle exists */
    int64_t scalar; /* of an int or float input; a float is kept as its 64 bits */
    bool owned; /* the object reference, or the handle if there is no object, is ours */
} Slot;

int slot_allocate(Slot *slot, int32_t scalar_type, int32_t device_type, int32_t device_index, Py_ssize_t dimensions,
                  const int64_t *sizes, const int64_t *strides);
int slot_view(Slot *slot, Slot *base, Py_ssize_t dimensions, const int64_t *sizes, const int64_t *strides,
              int64_t offset, bool escapes);
void slot_adopt_handle(Slot *slot, TensorHandle handle); /* owned from now on */
void slot_adopt_object(Slot *slot, PyObject *tensor, bool owned); /* steals the reference if owned */
PyObject *slot_object(Slot *slot); /* borrowed Python tensor, made if there was none; NULL and an exception */
int slot_data(Slot *slot, void **pointer);
int slot_size(Slot *slot, int64_t dimension, int64_t *size);
int slot_stride(Slot *slot, int64_t dimension, int64_t *stride);
int slot_written(Slot *slot); /* counts a write in the tensor's version */
/* Copies the tensor to one with these strides, unless it has them. */
int slot_lay_out(Slot *slot, Py_ssize_t dimensions, const int64_t *strides);
int slot_element_count(Slot *slot, int64_t *count);
int slot_device_index(Slot *slot, int32_t *index);
void slot_clear(Slot *slot);
int set_torch_error(const char *what); /* raises what torch's last C call reported; returns -1 */

/* ---- recycle.c: outputs used again ---- */

int recycle_calibrate(void); /* -1 and an exception if torch misbehaves */

/* ---- integer.c: integers of a plan, constant or computed from scalar inputs and sizes ---- */

typedef struct Expression Expression;
typedef struct Integer {
    Expression *expression; /* NULL: constant */
    int64_t value;
} Integer;

struct Expression {
    Operation operation;
    Integer left, right;
    Py_ssize_t slot;
};

typedef struct SlotUse SlotUse;
int integer_parse(PyObject *source, SlotUse *uses, Integer *result);
int integer_list_parse(PyObject *source, SlotUse *uses, Integer **result, Py_ssize_t *count);
int integer_value(const Integer *integer, Slot *slots, int64_t *value);
int integer_list_values(const Integer *integers, Py_ssize_t count, Slot *slots, int64_t *values);
void integer_clear(Integer *integer);
void integer_list_free(Integer *integers, Py_ssize_t count);

/* Which slots are live at a point of the plan, and as what, while the plan is read. */
typedef enum SlotKind { SLOT_EMPTY, SLOT_UNKNOWN_INPUT, SLOT_TENSOR, SLOT_SCALAR } SlotKind;
struct SlotUse {
    Py_ssize_t count;
    SlotKind *kinds;
};
int use_slot(SlotUse *uses, Py_ssize_t slot, SlotKind as);
int define_slot(SlotUse *uses, Py_ssize_t slot);
int parse_slot_number(PyObject *source, Py_ssize_t *slot);

/* ---- aten_call.c: any operator of ATen ---- */

typedef struct AtenCall AtenCall;
AtenCall *aten_call_new(PyObject *step, SlotUse *uses);
void aten_call_free(AtenCall *call);
int aten_call_run(AtenCall *call, Slot *slots);
PyObject *aten_call_describe(const AtenCall *call);

/* ---- plan.c ---- */

extern PyTypeObject LaunchPlanType;

/* ---- object_table.c: ids and descriptions of the objects of one compile ---- */

extern PyTypeObject ObjectTableType;

/* ---- guard_bind.c: guard trees with live objects ---- */

PyObject *bind_guards(PyObject *self, PyObject *const *args, Py_ssize_t count);

/* ---- steps.c: what rewritten code needs ---- */

extern PyTypeObject StateType;
extern PyMethodDef step_methods[];
int copies_free_variables(PyCodeObject *code); /* whether it needs a closure; -1 and an exception */

#endif
