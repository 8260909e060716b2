/* The step of a plan that reads the state of a GPU's random generator, and moves the generator on. The host does it. */
#include "plan.h"

static int parse_given(PyObject *source, SlotUse *uses, GeneratorStep *step) {
    PyObject *list = PySequence_Fast(source, "the tensors that random numbers are drawn for must be a list");
    if (!list)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    step->given = PyMem_Calloc((size_t)count + 1, sizeof *step->given);
    step->given_count = count;
    int status = step->given ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; !status && i < count; i++)
        if (parse_slot_number(PySequence_Fast_GET_ITEM(list, i), &step->given[i]) ||
            use_slot(uses, step->given[i], SLOT_TENSOR))
            status = -1;
    Py_DECREF(list);
    return status;
}

int generator_step_parse(PyObject *source, SlotUse *uses, GeneratorStep *step) {
    if (parse_slot_number(PyTuple_GET_ITEM(source, 1), &step->slot) ||
        parse_given(PyTuple_GET_ITEM(source, 4), uses, step) || define_slot(uses, step->slot))
        return -1;
    step->device = Py_NewRef(PyTuple_GET_ITEM(source, 2));
    step->draws = PySequence_Tuple(PyTuple_GET_ITEM(source, 3));
    PyObject *module = step->draws ? PyImport_ImportModule("fusee._random") : NULL;
    step->function = module ? PyObject_GetAttrString(module, "reserved") : NULL;
    step->captured = step->function ? PyObject_GetAttrString(module, "is_captured") : NULL;
    Py_XDECREF(module);
    return step->captured ? 0 : -1;
}

int generator_is_captured(const LaunchPlan *plan) {
    for (Py_ssize_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].kind != STEP_GENERATOR)
            continue;
        PyObject *answer = PyObject_CallNoArgs(plan->steps[i].generator.captured);
        int captured = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        return captured;
    }
    return 0;
}

/* Stores the numbers of a list as a new tensor of four columns. */
static int store_state(PyObject *numbers, Slot *slot) {
    enum { COLUMNS = 4, INT64 = 4 };
    Py_ssize_t count = PyList_Check(numbers) ? PyList_GET_SIZE(numbers) : -1;
    int64_t sizes[2] = {count / COLUMNS, COLUMNS}, strides[2] = {COLUMNS, 1};
    void *data;
    if (count < 0 || count % COLUMNS) {
        PyErr_SetString(PyExc_TypeError, "the state of a generator is a list of four numbers for each draw");
        return -1;
    }
    if (slot_allocate(slot, INT64, 0, -1, 2, sizes, strides) || slot_data(slot, &data))
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        long long number = PyLong_AsLongLong(PyList_GET_ITEM(numbers, i));
        if (number == -1 && PyErr_Occurred())
            return -1;
        ((int64_t *)data)[i] = number;
    }
    return 0;
}

int generator_step_run(const GeneratorStep *step, Slot *slots) {
    PyObject *given = PyTuple_New(step->given_count);
    for (Py_ssize_t i = 0; given && i < step->given_count; i++) {
        PyObject *tensor = slot_object(&slots[step->given[i]]);
        if (tensor)
            PyTuple_SET_ITEM(given, i, Py_NewRef(tensor));
        else
            Py_CLEAR(given);
    }
    PyObject *numbers = given ? PyObject_CallFunctionObjArgs(step->function, given, step->draws, step->device, NULL) : NULL;
    Py_XDECREF(given);
    int status = numbers ? store_state(numbers, &slots[step->slot]) : -1;
    Py_XDECREF(numbers);
    return status;
}

void generator_step_free(GeneratorStep *step) {
    PyMem_Free(step->given);
    Py_CLEAR(step->draws);
    Py_CLEAR(step->device);
    Py_CLEAR(step->function);
    Py_CLEAR(step->captured);
}
