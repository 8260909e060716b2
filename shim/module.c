/* fusee._shim: the C extension module. */
#include "shim.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "fusee._shim", .m_size = -1,
    .m_doc = "The part of fusee that runs on every call: dispatch, guards, launch plans.", .m_methods = step_methods,
};

static PyTypeObject *const types[] = {
    &StateType, &GuardProgramType, &EntryType, &CodeRecordType, &CompiledFunctionType, &OnwardType, &LaunchPlanType,
    &ObjectTableType,
};

PyMODINIT_FUNC PyInit__shim(void) {
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof types / sizeof types[0]; i++)
        if (PyModule_AddType(module, types[i]))
            Py_CLEAR(module);
    return module;
}
