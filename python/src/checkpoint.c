/* SPDX-License-Identifier: MIT */
/* checkpoint.c: activation checkpointing of a Python function, on the core's: the piece gets its
 * tensors from the core, which saves and checks them, and keeps the rest in a closure. */
#include "grad.h"

#include <stdlib.h>
#include <string.h>

#include "tenon/checkpoint.h"

/* The Python function, and where its first result goes. */
typedef struct piece {
    tnpy_held *fn;
    PyObject **first; /* NULL once the first run is over */
} piece;

/* The core ends a run early by failing the call that needed nothing more; that went through Python
 * as an exception. Its traceback would keep all that the run computed. */
static tn_status failed(void)
{
    tn_status status = tnpy_failed();
    if (strcmp(tn_last_error(), "all that a checkpoint needs was computed again") == 0)
        tnpy_forget();
    return status;
}

static tn_status run_piece(void *ctx, tn_tensor *const *inputs, int n_inputs, tn_tensor **outputs,
                           int n_outputs)
{
    (void)outputs, (void)n_outputs;
    piece *p = ctx;
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *args = PyTuple_New(n_inputs);
    for (int i = 0; i < n_inputs && args; i++) {
        PyObject *item = tnpy_wrap_borrowed(inputs[i]);
        if (item)
            PyTuple_SetItem(args, i, item);
        else
            Py_CLEAR(args);
    }
    PyObject *users = args ? PyObject_GetAttrString(p->fn->object, "__wrapped__") : NULL;
    if (args && !users) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Clear();
        else /* Ctrl+C, which the text of the other one looked for */
            Py_CLEAR(args);
    }
    PyObject *result =
        args ? tnpy_call_named(users ? users : p->fn->object, p->fn->object, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(users);
    tn_status status = result ? TN_OK : failed();
    if (result && p->first) {
        *p->first = result;
        p->first = NULL;
    } else {
        Py_XDECREF(result);
    }
    tnpy_unlock_any(state);
    return status;
}

static void piece_destroy(void *ctx)
{
    piece *p = ctx;
    tnpy_drop(p->fn);
    free(p);
}

static PyObject *run(piece *p, tnpy_list *inputs, const tn_checkpoint_opts *opts)
{
    PyObject *result = NULL;
    tn_tensor *none = NULL; /* results go the other way: they need not be tensors */
    p->first = &result;
    tn_status status = tn_checkpoint(run_piece, p, inputs->v, (int)inputs->n, &none, 1, opts);
    if (status != TN_OK) {
        piece_destroy(p);
        Py_CLEAR(result);
        return tnpy_raise(status);
    }
    return result;
}

/* _checkpoint(fn, tensors, preserve_rng_state, early_stop, check): what fn(*tensors) returns */
static PyObject *checkpoint(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *fn, *tensors;
    int keep_rng, early_stop, check;
    if (!PyArg_ParseTuple(args, "OOppp", &fn, &tensors, &keep_rng, &early_stop, &check))
        return NULL;
    tnpy_list inputs;
    if (tnpy_list_of(tensors, 0, "inputs", &inputs) < 0)
        return NULL;
    piece *p = malloc(sizeof *p);
    if (p)
        p->fn = tnpy_hold(fn);
    if (!p || !p->fn) {
        free(p);
        tnpy_list_clear(&inputs);
        return PyErr_NoMemory();
    }
    tn_checkpoint_opts opts = TN_CHECKPOINT_OPTS_INIT;
    opts.keep_rng = keep_rng;
    opts.early_stop = early_stop;
    opts.check = check;
    opts.destroy = piece_destroy;
    PyObject *result = run(p, &inputs, &opts);
    tnpy_list_clear(&inputs);
    return result;
}

PyObject *tnpy_raise_pass(tn_status status)
{
    const char start[] = "torch.utils.checkpoint: ";
    bool ours = strncmp(tn_last_error(), start, sizeof start - 1) == 0;
    PyObject *module = ours ? PyImport_ImportModule("tenon.utils.checkpoint") : NULL;
    PyObject *type = module ? PyObject_GetAttrString(module, "CheckpointError") : NULL;
    PyErr_Clear();
    tnpy_raise(status);
    if (type && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        PyErr_Clear();
        PyErr_SetString(type, tn_last_error());
    }
    Py_XDECREF(type);
    Py_XDECREF(module);
    tnpy_note_anomaly();
    return NULL;
}

/* _call_user(function, *args): for hooks of modules, which our own functions call. */
static PyObject *call_user(PyObject *self, PyObject *args)
{
    (void)self;
    Py_ssize_t n = PyTuple_Size(args);
    PyObject *rest = n > 0 ? PyTuple_GetSlice(args, 1, n) : NULL;
    PyObject *result = rest ? tnpy_call_user(PyTuple_GetItem(args, 0), rest) : NULL;
    Py_XDECREF(rest);
    if (n == 0)
        PyErr_SetString(PyExc_TypeError, "_call_user() needs a function");
    return result;
}

static PyMethodDef functions[] = {
    {"_call_user", call_user, METH_VARARGS, NULL},
    {"_checkpoint", checkpoint, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_checkpoint(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
