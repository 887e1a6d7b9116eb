/* SPDX-License-Identifier: MIT */
/* module.c: the extension `tenon._C`, put together from its parts. */
#include "opcall.h"

/* In this order: a part may use what an earlier one added. */
static int (*const parts[])(PyObject *module) = {
    tnpy_add_error,     tnpy_add_types,    tnpy_add_device,  tnpy_add_generator,
    tnpy_add_functions, tnpy_add_override, tnpy_add_tensor,  tnpy_add_modes,
    tnpy_add_data,      tnpy_add_buffer,   tnpy_add_values,  tnpy_add_dlpack,
    tnpy_add_storage,   tnpy_add_autograd, tnpy_add_opcall,  tnpy_add_opvalue,
    tnpy_add_fake,      tnpy_add_dispatch, tnpy_add_library, tnpy_add_grad_mode,
    tnpy_add_scope,     tnpy_add_keys,     tnpy_add_names,   tnpy_add_optim,
    tnpy_add_layer,     tnpy_add_step,     tnpy_add_forward, tnpy_add_mode_stack,
};

/* Types, names and the objects of tensors are the process's: they belong to the interpreter that
 * made them. CPython hands a module that another one has loaded on without asking, so that the
 * package asks. */
static PyObject *check_interpreter(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return Py_NewRef(Py_None);
    PyErr_SetString(PyExc_ImportError,
                    "tenon works in the main interpreter of a process alone: this is another one");
    return NULL;
}

static PyMethodDef functions[] = {
    {"_check_interpreter", check_interpreter, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "tenon._C",
    "Tenon's library, for Python.",
    -1,
    functions,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__C(void);
PyMODINIT_FUNC PyInit__C(void)
{
    PyObject *here = check_interpreter(NULL, NULL);
    if (!here)
        return NULL;
    Py_DECREF(here);
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i](module)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ImportError, "a part of tenon._C could not be made");
            Py_DECREF(module);
            return NULL;
        }
    if (PyModule_AddStringConstant(module, "__version__", tn_version())) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
