/* SPDX-License-Identifier: MIT */
/* function_run.c: forward, backward and jvp of an autograd.Function, called from the library: their
 * arguments, and what they may return. */
#include "function.h"

#include <string.h>

/* How many arguments the call had, whose tensors are @p n. */
static int count_args(const tnpy_fn_object *o, int n)
{
    return o->tensor_args ? (int)PyBytes_Size(o->tensor_args) : n;
}

/* ---- runs: callbacks that this thread is in, innermost first ---- */

typedef struct run {
    const tnpy_fn_object *context;
    tn_function_ctx *ctx;
    struct run *outer;
} run;

static _Thread_local run *running;

tn_function_ctx *tnpy_fn_backward_of(const tnpy_fn_object *o)
{
    for (const run *r = running; r; r = r->outer)
        if (r->context == o)
            return r->ctx;
    return NULL;
}

/* ---- what forward gave ---- */

static PyObject *with_context(const tnpy_fn_call *c)
{
    Py_ssize_t n = PyTuple_Size(c->args);
    PyObject *all = PyTuple_New(n + 1);
    if (!all)
        return NULL;
    PyTuple_SetItem(all, 0, Py_NewRef((PyObject *)c->context));
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(c->args, i)));
    return all;
}

static int run_forward(tnpy_fn_call *c)
{
    PyObject *forward = PyObject_GetAttr(c->cls, tnpy_fn.forward);
    PyObject *args = c->setup ? Py_NewRef(c->args) : with_context(c);
    if (forward && args)
        c->output = tnpy_call_user(forward, args);
    Py_XDECREF(forward);
    Py_XDECREF(args);
    if (!c->output || !c->setup)
        return c->output ? 0 : -1;
    PyObject *done =
        PyObject_CallFunctionObjArgs(c->setup, (PyObject *)c->context, c->args, c->output, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Tensors of a tuple, borrowed, NULL for what is none; *out is to be freed. */
int tnpy_fn_tensors_of(PyObject *tuple, tn_tensor ***out)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    *out = PyMem_Malloc((size_t)(n ? n : 1) * sizeof **out);
    if (!*out) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        (*out)[i] = tnpy_tensor(PyTuple_GetItem(tuple, i));
    return (int)n;
}

static int contains(PyObject *tuple, const tn_tensor *t)
{
    Py_ssize_t n = tuple ? PyTuple_Size(tuple) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (tnpy_tensor(PyTuple_GetItem(tuple, i)) == t)
            return 1;
    return 0;
}

/* With setup_context, what is saved must not be an input that is returned as it is. */
static int check_saved(const tnpy_fn_call *c, PyObject *outputs)
{
    tnpy_fn_object *o = c->context;
    if (tnpy_fn_check_tensors(o->to_save,
                              "save_for_backward can only save variables, but argument %zd is of "
                              "type %U") < 0)
        return -1;
    Py_ssize_t n = c->setup ? PyTuple_Size(o->to_save) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        const tn_tensor *t = tnpy_tensor(PyTuple_GetItem(o->to_save, i));
        if (!t || !contains(c->args, t) || !contains(outputs, t) || contains(o->dirty, t))
            continue;
        PyErr_SetString(
            PyExc_RuntimeError,
            "A input that has been returned as-is as output is being saved for backward. "
            "This is not supported if you override setup_context. You should return and "
            "save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside "
            "the forward function itself.");
        return -1;
    }
    return 0;
}

typedef tn_status (*say_fn)(tn_function_ctx *ctx, tn_tensor *const *tensors, int n);

/* Tell the core about a tuple of tensors; -1 with an exception. */
static int say(say_fn fn, tn_function_ctx *ctx, PyObject *tuple)
{
    tn_tensor **list = NULL;
    int n = tnpy_fn_tensors_of(tuple, &list);
    if (n < 0)
        return -1;
    tn_status status = fn(ctx, list, n);
    PyMem_Free(list);
    if (status != TN_OK)
        tnpy_raise(status);
    return status == TN_OK ? 0 : -1;
}

static int warn_dirty(const tnpy_fn_call *c)
{
    PyObject *dirty = c->context->dirty;
    for (Py_ssize_t i = 0; i < PyTuple_Size(dirty); i++)
        if (!contains(c->args, tnpy_tensor(PyTuple_GetItem(dirty, i))))
            return PyErr_WarnEx(
                PyExc_UserWarning,
                "ctx.mark_dirty() received a tensor that was not an input. Only input "
                "Tensors that have been mutated should be passed to "
                "ctx.mark_dirty().",
                2);
    return 0;
}

static int report(const tnpy_fn_call *c, tn_function_ctx *ctx)
{
    tnpy_fn_object *o = c->context;
    PyObject *outputs =
        PyTuple_Check(c->output) ? Py_NewRef(c->output) : PyTuple_Pack(1, c->output);
    if (!outputs)
        return -1;
    o->n_outputs = (int)PyTuple_Size(outputs);
    int rc = say(tn_function_set_outputs, ctx, outputs);
    if (rc == 0 && o->dirty &&
        (rc = tnpy_fn_check_tensors(
             o->dirty, "mark_dirty can only accept variables, but argument %zd is of type %U")) ==
            0 &&
        (rc = warn_dirty(c)) == 0)
        rc = say(tn_function_mark_dirty, ctx, o->dirty);
    if (rc == 0 && o->non_differentiable &&
        (rc = tnpy_fn_check_tensors(
             o->non_differentiable,
             "mark_non_differentiable only accepts variable arguments, but argument "
             "%zd is of type %U")) == 0)
        rc = say(tn_function_mark_non_differentiable, ctx, o->non_differentiable);
    if (rc == 0 && o->to_save && (rc = check_saved(c, outputs)) == 0)
        rc = say(tn_function_save, ctx, o->to_save);
    tn_function_set_materialize_grads(ctx, o->materialize);
    Py_DECREF(outputs);
    return rc;
}

tn_status tnpy_fn_on_forward(tn_function_ctx *ctx, tn_tensor *const *inputs, int n_inputs,
                             tn_tensor **outputs, int n_outputs)
{
    (void)inputs, (void)n_inputs, (void)outputs, (void)n_outputs;
    tnpy_fn_call *c = tn_function_args(ctx);
    tnpy_fn_object *o = c->context;
    o->node = tn_function_node(ctx);
    Py_INCREF((PyObject *)o);
    ((tnpy_fn_state *)tn_function_state(ctx))->context = o;
    return run_forward(c) == 0 && report(c, ctx) == 0 ? TN_OK : tnpy_failed();
}

/* ---- backward ---- */

static PyObject *backward_function(PyObject *context)
{
    PyObject *cls = PyObject_GetAttr(context, tnpy_fn.forward_cls);
    PyObject *fn = cls ? PyObject_GetAttr(cls, tnpy_fn.vjp) : NULL;
    PyObject *backward = fn ? PyObject_GetAttr(cls, tnpy_fn.backward) : NULL;
    if (fn == tnpy_fn.plain_vjp || !backward) {
        tnpy_fn_put(&fn, backward);
    } else if (backward != tnpy_fn.plain_backward) {
        Py_DECREF(backward);
        tnpy_fn_put(&fn, NULL);
        PyErr_SetString(PyExc_RuntimeError,
                        "Implementing both 'backward' and 'vjp' for a custom Function is not "
                        "allowed. You should only implement one of them.");
    } else {
        Py_DECREF(backward);
    }
    Py_XDECREF(cls);
    return fn;
}

/* The context and one argument for each of @p n tensors, padded with None; @p by_arg: the tensors
 * are those of the arguments of the call. */
static PyObject *callback_args(tnpy_fn_object *o, tn_tensor *const *list, int n, int wanted,
                               bool by_arg)
{
    int at = 0;
    PyObject *args = PyTuple_New(wanted + 1);
    if (args)
        PyTuple_SetItem(args, 0, Py_NewRef((PyObject *)o));
    for (int i = 0; i < wanted && args; i++) {
        tn_tensor *t = at < n && (!by_arg || tnpy_fn_arg_is_tensor(o, i)) ? list[at++] : NULL;
        PyObject *item = tnpy_wrap_borrowed(t);
        if (item)
            PyTuple_SetItem(args, i + 1, item);
        else
            Py_CLEAR(args);
    }
    return args;
}

/* Sparse classes say their layout; only the coordinate one is a gradient of what is dense, and what
 * requires grad is dense: the history of a sparse tensor is that of its values. */
static int check_layout(PyObject *item, int at, const char *name)
{
    if (Py_TYPE(item) == tnpy_Tensor)
        return 0;
    int rc = 0;
    PyObject *strided = tnpy_layout(TN_LAYOUT_STRIDED);
    PyObject *layout = PyObject_GetAttrString((PyObject *)Py_TYPE(item), "layout");
    if (strided && layout && layout != strided && Py_TYPE(layout) == Py_TYPE(strided)) {
        PyObject *module = PyImport_ImportModule("tenon.sparse._shell");
        PyObject *names = module ? PyObject_GetAttrString(module, "NAMES") : NULL;
        PyObject *text = names ? PyObject_GetItem(names, layout) : NULL;
        rc = text && PyUnicode_CompareWithASCIIString(text, "Sparse") == 0 ? 0 : -1;
        if (text && rc < 0)
            PyErr_Format(PyExc_RuntimeError,
                         "Function %s returned an invalid gradient at index %d - expected layout "
                         "Strided but got %U",
                         name, at, text);
        Py_XDECREF(text);
        Py_XDECREF(names);
        Py_XDECREF(module);
    }
    if (!strided || !layout)
        rc = -1;
    Py_XDECREF(layout);
    Py_XDECREF(strided);
    return rc;
}

/* Tensors and None of @p result, at most @p n of them; what is more must be None. @p by_arg: they
 * are for the arguments of its call, of which only tensors have a place. @p say_wrong: message with
 * "expected" and "got". */
static int take(PyObject *result, int n, tn_tensor **out, const tnpy_fn_object *by_arg,
                const tn_function_ctx *ctx, const char *say_wrong, const char *name)
{
    PyObject *tuple = PyTuple_Check(result) ? Py_NewRef(result) : PyTuple_Pack(1, result);
    if (!tuple)
        return -1;
    Py_ssize_t got = PyTuple_Size(tuple), used = got;
    while (used > n && PyTuple_GetItem(tuple, used - 1) == Py_None)
        used--;
    int rc = used == n ? 0 : -1;
    if (rc < 0 && name)
        PyErr_Format(PyExc_RuntimeError, say_wrong, name, n, got);
    else if (rc < 0)
        PyErr_Format(PyExc_RuntimeError, say_wrong, n, got);
    int at = 0;
    for (Py_ssize_t i = 0; i < used && rc == 0; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        tn_tensor *t = item == Py_None ? NULL : tnpy_tensor(item);
        if (by_arg && !tnpy_fn_arg_is_tensor(by_arg, i)) {
            if (item == Py_None)
                continue;
            PyErr_Format(PyExc_RuntimeError,
                         "function %s returned a gradient different than None at position %zd, but "
                         "the corresponding forward input was not a Variable",
                         name, i + 1);
            rc = -1;
            break;
        }
        if (t && by_arg && tn_function_needs_input_grad(ctx, at) &&
            check_layout(item, at, name) < 0) {
            rc = -1;
            break;
        }
        if (t || item == Py_None) {
            out[at++] = tn_tensor_ref(t);
            continue;
        }
        PyObject *type = PyType_GetName(Py_TYPE(item));
        PyErr_Format(PyExc_RuntimeError, "expected Variable or None (got %U)", type);
        Py_XDECREF(type);
        rc = -1;
    }
    Py_DECREF(tuple);
    return rc;
}

tn_status tnpy_fn_on_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                              tn_tensor **out, int n_out)
{
    tnpy_fn_object *o = ((tnpy_fn_state *)tn_function_state(ctx))->context;
    PyGILState_STATE state = tnpy_lock_any();
    run r = {o, ctx, running};
    running = &r;
    PyObject *fn = backward_function((PyObject *)o);
    PyObject *args = fn ? callback_args(o, grads, n_grads, o->n_outputs, false) : NULL;
    PyObject *result = args ? tnpy_call_user(fn, args) : NULL;
    running = r.outer;
    Py_XDECREF(fn);
    Py_XDECREF(args);
    int rc = result
                 ? take(result, count_args(o, n_out), out, o, ctx,
                        "function %s returned an incorrect number of gradients (expected %d, got "
                        "%zd)",
                        tn_node_name(tn_function_node(ctx)))
                 : -1;
    Py_XDECREF(result);
    tn_status status = rc == 0 ? TN_OK : tnpy_failed();
    tnpy_unlock_any(state);
    return status;
}

tn_status tnpy_fn_on_jvp(tn_function_ctx *ctx, tn_tensor *const *tangents, int n, tn_tensor **out,
                         int n_out)
{
    tnpy_fn_call *c = tn_function_args(ctx);
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *fn = PyObject_GetAttr(c->cls, tnpy_fn.jvp);
    PyObject *args =
        fn ? callback_args(c->context, tangents, n, count_args(c->context, n), true) : NULL;
    PyObject *result = args ? tnpy_call_user(fn, args) : NULL;
    Py_XDECREF(fn);
    Py_XDECREF(args);
    int rc = result
                 ? take(result, n_out, out, NULL, ctx,
                        "Function's jvp returned an invalid number of forward gradients (expected "
                        "%d but got %zd)",
                        NULL)
                 : -1;
    Py_XDECREF(result);
    tn_status status = rc == 0 ? TN_OK : tnpy_failed();
    tnpy_unlock_any(state);
    return status;
}
