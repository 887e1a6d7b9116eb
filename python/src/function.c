/* SPDX-License-Identifier: MIT */
/* function.c: autograd.Function. A call makes a context, which forward, setup_context, backward and
 * jvp get, and which is what `grad_fn` shows of the node: the node holds the context, the context
 * knows the node as long as it lives. */
#include "grad.h"

#include <stdatomic.h>
#include <string.h>

typedef struct fn_object {
    PyObject_HEAD tnpy_held link; /* how the node holds it */
    tn_node *node;                /* not counted; NULL once it is gone; guarded by `lock` */
    atomic_flag lock;             /* for some instructions: the node may end on another thread */
    PyObject *dict, *weak;
    PyObject *to_save, *for_forward, *dirty, *non_differentiable, *needs_input_grad;
    PyObject *needs_given; /* what was put in place of needs_input_grad; NULL: nothing */
    PyObject *tensor_args; /* a byte for each argument, 1: a tensor; NULL: all are */
    int n_outputs;
    char materialize, node_ended;
} fn_object;

static PyTypeObject *FunctionBase, *FunctionClass;
static PyObject *s_backward_cls, *s_forward, *s_backward, *s_vjp, *s_jvp, *s_setup, *s_once,
    *s_bind, *s_name, *s_forward_cls;
/* What a class has that does not bring its own; filled by _set_function_defaults. */
static PyObject *plain_setup, *plain_backward, *plain_vjp, *plain_jvp;
static PyObject *slice_type, *slice_apply; /* NULL until vmap is used */

int tnpy_is_function(PyObject *o)
{
    return PyObject_TypeCheck(o, FunctionBase);
}

/* ---- node and context ---- */

static void lock(fn_object *o)
{
    while (atomic_flag_test_and_set_explicit(&o->lock, memory_order_acquire))
        ;
}

static void unlock(fn_object *o)
{
    atomic_flag_clear_explicit(&o->lock, memory_order_release);
}

/* State of a node: its context. */
typedef struct fn_state {
    fn_object *context;
} fn_state;

static void state_destroy(void *p)
{
    fn_object *o = ((fn_state *)p)->context;
    if (!o)
        return;
    lock(o);
    o->node = NULL;
    o->node_ended = 1;
    unlock(o);
    tnpy_drop(&o->link);
}

PyObject *tnpy_function_of(const tn_node *node)
{
    const fn_state *state = tn_node_function_state(node, state_destroy);
    return state ? (PyObject *)state->context : NULL;
}

tn_node *tnpy_function_node(PyObject *self)
{
    fn_object *o = (fn_object *)self;
    lock(o);
    tn_node *node = tn_node_try_ref(o->node);
    unlock(o);
    return node;
}

/* ---- arguments: those that are tensors are the inputs of the node ---- */

static bool arg_is_tensor(const fn_object *o, Py_ssize_t i)
{
    return !o->tensor_args ||
           (i < PyBytes_Size(o->tensor_args) && PyBytes_AsString(o->tensor_args)[i]);
}

/* How many arguments the call had, whose tensors are @p n. */
static int count_args(const fn_object *o, int n)
{
    return o->tensor_args ? (int)PyBytes_Size(o->tensor_args) : n;
}

/* ---- runs: callbacks that this thread is in, innermost first ---- */

typedef struct run {
    const fn_object *context;
    tn_function_ctx *ctx;
    struct run *outer;
} run;

static _Thread_local run *running;

static tn_function_ctx *backward_of(const fn_object *o)
{
    for (const run *r = running; r; r = r->outer)
        if (r->context == o)
            return r->ctx;
    return NULL;
}

/* ---- the context: what users say and ask ---- */

static void put(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;
    *slot = value;
    Py_XDECREF(old);
}

static PyObject *keep_args(PyObject **slot, PyObject *args)
{
    put(slot, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *save_for_backward(PyObject *self, PyObject *args)
{
    return keep_args(&((fn_object *)self)->to_save, args);
}

static int check_tensors(PyObject *tuple, const char *message)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (item == Py_None || tnpy_tensor(item))
            continue;
        PyObject *name = PyType_GetName(Py_TYPE(item));
        PyErr_Format(PyExc_TypeError, message, i, name);
        Py_XDECREF(name);
        return -1;
    }
    return 0;
}

static PyObject *save_for_forward(PyObject *self, PyObject *args)
{
    if (check_tensors(args, "save_for_forward expects all arguments to be tensors; you should save "
                            "non-tensors as attributes on ctx. (argument %zd is of type %U)") < 0)
        return NULL;
    return keep_args(&((fn_object *)self)->for_forward, args);
}

static PyObject *mark_dirty(PyObject *self, PyObject *args)
{
    return keep_args(&((fn_object *)self)->dirty, args);
}

static PyObject *mark_non_differentiable(PyObject *self, PyObject *args)
{
    return keep_args(&((fn_object *)self)->non_differentiable, args);
}

static PyObject *set_materialize_grads(PyObject *self, PyObject *value)
{
    int on = PyObject_IsTrue(value);
    if (on < 0)
        return NULL;
    ((fn_object *)self)->materialize = (char)on;
    Py_RETURN_NONE;
}

static PyObject *saved_of(tn_node *node)
{
    int n = tn_node_function_saved_count(node);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; i < n && tuple; i++) {
        tn_tensor *t = NULL;
        tn_status status = tn_node_function_saved(node, i, &t);
        PyObject *item = status == TN_OK ? tnpy_wrap(t) : tnpy_raise(status);
        if (item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* The node, a new reference, NULL when nothing was recorded. -1 with an exception: it is gone, and
 * what was saved with it. */
static int node_with_saved(PyObject *self, tn_node **out)
{
    *out = tnpy_function_node(self);
    if (*out || !((fn_object *)self)->node_ended)
        return 0;
    PyErr_SetString(
        PyExc_RuntimeError,
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        "calling backward.");
    return -1;
}

static PyObject *get_saved_tensors(PyObject *self, void *closure)
{
    (void)closure;
    fn_object *o = (fn_object *)self;
    if (o->for_forward)
        return Py_NewRef(o->for_forward);
    tn_node *node = NULL;
    if (node_with_saved(self, &node) < 0)
        return NULL;
    PyObject *saved = node ? saved_of(node) : PyTuple_New(0);
    tn_node_unref(node);
    return saved;
}

static PyObject *get_raw_saved_tensors(PyObject *self, void *closure)
{
    (void)closure;
    tn_node *node = NULL;
    if (node_with_saved(self, &node) < 0)
        return NULL;
    int n = node ? tn_node_function_saved_count(node) : 0;
    /* Reading one says why when they are gone. */
    PyObject *first = n ? saved_of(node) : PyTuple_New(0);
    PyObject *tuple = first ? PyTuple_New(n) : NULL;
    for (int i = 0; i < n && tuple; i++) {
        PyObject *item = tnpy_saved_tensor(node, (uint32_t)i, true);
        if (item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    Py_XDECREF(first);
    tn_node_unref(node);
    return tuple;
}

static PyObject *get_needs_input_grad(PyObject *self, void *closure)
{
    (void)closure;
    fn_object *o = (fn_object *)self;
    const tn_function_ctx *ctx = backward_of(o);
    if (o->needs_given && PyTuple_Check(o->needs_given))
        return Py_NewRef(o->needs_given);
    if (!o->needs_input_grad)
        return PyTuple_New(0);
    if (!ctx)
        return Py_NewRef(o->needs_input_grad);
    Py_ssize_t n = PyTuple_Size(o->needs_input_grad);
    PyObject *tuple = PyTuple_New(n);
    int input = 0;
    for (Py_ssize_t i = 0; i < n && tuple; i++) {
        bool needs = arg_is_tensor(o, i) && tn_function_needs_input_grad(ctx, input++);
        PyTuple_SetItem(tuple, i, PyBool_FromLong(needs));
    }
    if (!tuple || !o->needs_given)
        return tuple;
    PyObject *shown = PyObject_CallFunctionObjArgs(o->needs_given, tuple, NULL);
    Py_DECREF(tuple);
    return shown;
}

/* A tuple is shown from now on. What can be called is given the tuple of each pass, and what it
 * gives is shown: passes on several threads may want different gradients of one node. */
static int set_needs_input_grad(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    fn_object *o = (fn_object *)self;
    bool kept = value && (PyTuple_Check(value) || PyCallable_Check(value));
    put(&o->needs_given, kept ? Py_NewRef(value) : NULL);
    return 0;
}

static PyObject *get_materialize(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((fn_object *)self)->materialize);
}

static int set_materialize(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    int on = value ? PyObject_IsTrue(value) : 1;
    ((fn_object *)self)->materialize = (char)(on != 0);
    return on < 0 ? -1 : 0;
}

/* ---- what forward gave ---- */

/* One call of apply. */
typedef struct call {
    PyObject *cls, *args; /* args: a tuple */
    fn_object *context;
    tn_tensor *const *inputs;
    PyObject *setup;  /* setup_context, NULL when the class has none of its own */
    PyObject *output; /* what forward returned, owned */
} call;

static PyObject *with_context(const call *c)
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

static int run_forward(call *c)
{
    PyObject *forward = PyObject_GetAttr(c->cls, s_forward);
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
static int tensors_of(PyObject *tuple, tn_tensor ***out)
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
static int check_saved(const call *c, PyObject *outputs)
{
    fn_object *o = c->context;
    if (check_tensors(o->to_save,
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
    int n = tensors_of(tuple, &list);
    if (n < 0)
        return -1;
    tn_status status = fn(ctx, list, n);
    PyMem_Free(list);
    if (status != TN_OK)
        tnpy_raise(status);
    return status == TN_OK ? 0 : -1;
}

static int warn_dirty(const call *c)
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

static int report(const call *c, tn_function_ctx *ctx)
{
    fn_object *o = c->context;
    PyObject *outputs =
        PyTuple_Check(c->output) ? Py_NewRef(c->output) : PyTuple_Pack(1, c->output);
    if (!outputs)
        return -1;
    o->n_outputs = (int)PyTuple_Size(outputs);
    int rc = say(tn_function_set_outputs, ctx, outputs);
    if (rc == 0 && o->dirty &&
        (rc = check_tensors(
             o->dirty, "mark_dirty can only accept variables, but argument %zd is of type %U")) ==
            0 &&
        (rc = warn_dirty(c)) == 0)
        rc = say(tn_function_mark_dirty, ctx, o->dirty);
    if (rc == 0 && o->non_differentiable &&
        (rc = check_tensors(o->non_differentiable,
                            "mark_non_differentiable only accepts variable arguments, but argument "
                            "%zd is of type %U")) == 0)
        rc = say(tn_function_mark_non_differentiable, ctx, o->non_differentiable);
    if (rc == 0 && o->to_save && (rc = check_saved(c, outputs)) == 0)
        rc = say(tn_function_save, ctx, o->to_save);
    tn_function_set_materialize_grads(ctx, o->materialize);
    Py_DECREF(outputs);
    return rc;
}

static tn_status on_forward(tn_function_ctx *ctx, tn_tensor *const *inputs, int n_inputs,
                            tn_tensor **outputs, int n_outputs)
{
    (void)inputs, (void)n_inputs, (void)outputs, (void)n_outputs;
    call *c = tn_function_args(ctx);
    fn_object *o = c->context;
    o->node = tn_function_node(ctx);
    Py_INCREF((PyObject *)o);
    ((fn_state *)tn_function_state(ctx))->context = o;
    return run_forward(c) == 0 && report(c, ctx) == 0 ? TN_OK : tnpy_failed();
}

/* ---- backward ---- */

static PyObject *backward_function(PyObject *context)
{
    PyObject *cls = PyObject_GetAttr(context, s_forward_cls);
    PyObject *fn = cls ? PyObject_GetAttr(cls, s_vjp) : NULL;
    PyObject *backward = fn ? PyObject_GetAttr(cls, s_backward) : NULL;
    if (fn == plain_vjp || !backward) {
        put(&fn, backward);
    } else if (backward != plain_backward) {
        Py_DECREF(backward);
        put(&fn, NULL);
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
static PyObject *callback_args(fn_object *o, tn_tensor *const *list, int n, int wanted, bool by_arg)
{
    int at = 0;
    PyObject *args = PyTuple_New(wanted + 1);
    if (args)
        PyTuple_SetItem(args, 0, Py_NewRef((PyObject *)o));
    for (int i = 0; i < wanted && args; i++) {
        tn_tensor *t = at < n && (!by_arg || arg_is_tensor(o, i)) ? list[at++] : NULL;
        PyObject *item = tnpy_wrap_borrowed(t);
        if (item)
            PyTuple_SetItem(args, i + 1, item);
        else
            Py_CLEAR(args);
    }
    return args;
}

/* Tensors and None of @p result, at most @p n of them; what is more must be None. @p by_arg: they
 * are for the arguments of its call, of which only tensors have a place. @p say_wrong: message with
 * "expected" and "got". */
static int take(PyObject *result, int n, tn_tensor **out, const fn_object *by_arg,
                const char *say_wrong, const char *name)
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
        if (by_arg && !arg_is_tensor(by_arg, i)) {
            if (item == Py_None)
                continue;
            PyErr_Format(PyExc_RuntimeError,
                         "function %s returned a gradient different than None at position %zd, but "
                         "the corresponding forward input was not a Variable",
                         name, i + 1);
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

static tn_status on_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                             tn_tensor **out, int n_out)
{
    fn_object *o = ((fn_state *)tn_function_state(ctx))->context;
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
                 ? take(result, count_args(o, n_out), out, o,
                        "function %s returned an incorrect number of gradients (expected %d, got "
                        "%zd)",
                        tn_node_name(tn_function_node(ctx)))
                 : -1;
    Py_XDECREF(result);
    tn_status status = rc == 0 ? TN_OK : tnpy_failed();
    tnpy_unlock_any(state);
    return status;
}

static tn_status on_jvp(tn_function_ctx *ctx, tn_tensor *const *tangents, int n, tn_tensor **out,
                        int n_out)
{
    call *c = tn_function_args(ctx);
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *fn = PyObject_GetAttr(c->cls, s_jvp);
    PyObject *args =
        fn ? callback_args(c->context, tangents, n, count_args(c->context, n), true) : NULL;
    PyObject *result = args ? tnpy_call_user(fn, args) : NULL;
    Py_XDECREF(fn);
    Py_XDECREF(args);
    int rc = result
                 ? take(result, n_out, out, NULL,
                        "Function's jvp returned an invalid number of forward gradients (expected "
                        "%d but got %zd)",
                        NULL)
                 : -1;
    Py_XDECREF(result);
    tn_status status = rc == 0 ? TN_OK : tnpy_failed();
    tnpy_unlock_any(state);
    return status;
}

/* ---- apply ---- */

/* The results in the place of what forward returned. */
static PyObject *wrap_outputs(PyObject *output, tn_tensor **made, int n)
{
    if (!PyTuple_Check(output))
        return made[0] ? tnpy_wrap_borrowed(made[0]) : Py_NewRef(output);
    PyObject *all = PyTuple_New(n);
    for (int i = 0; i < n && all; i++) {
        PyObject *item =
            made[i] ? tnpy_wrap_borrowed(made[i]) : Py_NewRef(PyTuple_GetItem(output, i));
        if (item)
            PyTuple_SetItem(all, i, item);
        else
            Py_CLEAR(all);
    }
    return all;
}

static int truth_of(PyObject *cls, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(cls, name);
    int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth;
}

static bool has_own_jvp(PyObject *cls)
{
    PyObject *jvp = PyObject_GetAttr(cls, s_jvp);
    bool own = jvp && jvp != plain_jvp;
    Py_XDECREF(jvp);
    PyErr_Clear();
    return own;
}

static PyObject *run_call(call *c, int n)
{
    PyObject *name = PyObject_GetAttr(c->cls, s_name);
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    int once = text ? truth_of(c->cls, s_once) : -1;
    PyObject *result = NULL;
    if (once >= 0) {
        tn_function fn = TN_FUNCTION_INIT(text, on_forward, on_backward);
        fn.flags = once ? TN_FUNCTION_ONCE_DIFFERENTIABLE : 0;
        fn.state_size = sizeof(fn_state);
        fn.state_destroy = state_destroy;
        if (TNPY_UNLIKELY(tn_forward_entered()) && has_own_jvp(c->cls))
            fn.jvp = on_jvp;
        tn_tensor **made = NULL;
        int n_made = 0;
        tn_status status = tn_function_apply_any(&fn, c, c->inputs, n, &made, &n_made);
        if (status == TN_OK) {
            result = wrap_outputs(c->output, made, n_made);
            tn_tensor_list_free(made, n_made);
        } else {
            tnpy_raise(status);
        }
    }
    Py_XDECREF(name);
    return result;
}

/* A new context of the class's own type, for these inputs. */
static fn_object *new_context(PyObject *cls, tn_tensor *const *inputs, Py_ssize_t n)
{
    PyObject *type = PyObject_GetAttr(cls, s_backward_cls);
    PyObject *needs = type ? PyTuple_New(n) : NULL;
    fn_object *o = NULL;
    if (needs && PyType_Check(type))
        o = (fn_object *)PyType_GenericAlloc((PyTypeObject *)type, 0);
    Py_XDECREF(type);
    if (!o) {
        Py_XDECREF(needs);
        return NULL;
    }
    bool all = true;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SetItem(needs, i, PyBool_FromLong(tn_tensor_requires_grad(inputs[i])));
        all = all && inputs[i];
    }
    if (!all) {
        o->tensor_args = PyBytes_FromStringAndSize(NULL, n);
        if (!o->tensor_args) {
            Py_DECREF(needs);
            Py_DECREF((PyObject *)o);
            return NULL;
        }
        for (Py_ssize_t i = 0; i < n; i++)
            PyBytes_AsString(o->tensor_args)[i] = inputs[i] != NULL;
    }
    o->link = (tnpy_held){(PyObject *)o, NULL, 1};
    o->needs_input_grad = needs;
    o->materialize = 1;
    return o;
}

static PyObject *apply_to(PyObject *cls, PyObject *args, PyObject *setup)
{
    tn_tensor **inputs = NULL;
    int n = tensors_of(args, &inputs);
    if (n < 0)
        return NULL;
    fn_object *o = new_context(cls, inputs, n);
    PyObject *result = NULL;
    if (o) {
        call c = {.cls = cls, .args = args, .context = o, .inputs = inputs, .setup = setup};
        int n_tensors = 0;
        for (int i = 0; i < n; i++)
            if (inputs[i])
                inputs[n_tensors++] = inputs[i];
        result = run_call(&c, n_tensors);
        Py_XDECREF(c.output);
        Py_CLEAR(o->to_save);
        Py_CLEAR(o->for_forward);
        Py_CLEAR(o->dirty);
        Py_CLEAR(o->non_differentiable);
        Py_DECREF((PyObject *)o);
    }
    PyMem_Free(inputs);
    return result;
}

/* Defaults of forward are arguments too, for setup_context and for gradients. */
static PyObject *bind_defaults(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *bind = PyObject_GetAttr(cls, s_bind);
    PyObject *all = bind ? PyObject_CallFunctionObjArgs(bind, args, kwargs, NULL) : NULL;
    Py_XDECREF(bind);
    if (all && !PyTuple_Check(all)) {
        PyErr_SetString(PyExc_TypeError, "arguments of forward could not be bound");
        Py_CLEAR(all);
    }
    return all;
}

static PyObject *apply_plainly(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *setup = PyObject_GetAttr(cls, s_setup);
    if (!setup)
        return NULL;
    if (setup == plain_setup)
        Py_CLEAR(setup);
    PyObject *result = NULL;
    if (setup) {
        PyObject *all = bind_defaults(cls, args, kwargs ? kwargs : Py_None);
        if (all)
            result = apply_to(cls, all, setup);
        Py_XDECREF(all);
        Py_DECREF(setup);
    } else if (kwargs && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "apply() takes no keyword arguments");
    } else {
        result = apply_to(cls, args, NULL);
    }
    return result;
}

/* Whether slices of vmap are among arguments, also in tuples and lists of them. */
static bool has_slices(PyObject *o, int depth)
{
    if (PyObject_TypeCheck(o, (PyTypeObject *)slice_type))
        return true;
    bool tuple = PyTuple_Check(o), found = false;
    if (depth == 0 || (!tuple && !PyList_Check(o)))
        return false;
    Py_ssize_t n = tuple ? PyTuple_Size(o) : PyList_Size(o);
    for (Py_ssize_t i = 0; i < n && !found; i++)
        found = has_slices(tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i), depth - 1);
    return found;
}

static PyObject *function_apply(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    enum { DEPTH = 4 };
    if (TNPY_LIKELY(!slice_type) || !has_slices(args, DEPTH))
        return apply_plainly(cls, args, kwargs);
    PyObject *result =
        PyObject_CallFunctionObjArgs(slice_apply, cls, args, kwargs ? kwargs : Py_None, NULL);
    if (result != Py_NotImplemented)
        return result;
    Py_DECREF(result);
    return apply_plainly(cls, args, kwargs);
}

/* ---- types ---- */

static int fn_traverse(PyObject *self, visitproc visit, void *arg)
{
    fn_object *o = (fn_object *)self;
    Py_VISIT(o->dict);
    Py_VISIT(o->to_save);
    Py_VISIT(o->for_forward);
    Py_VISIT(o->dirty);
    Py_VISIT(o->non_differentiable);
    Py_VISIT(o->needs_given);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int fn_clear(PyObject *self)
{
    fn_object *o = (fn_object *)self;
    Py_CLEAR(o->dict);
    Py_CLEAR(o->to_save);
    Py_CLEAR(o->for_forward);
    Py_CLEAR(o->dirty);
    Py_CLEAR(o->non_differentiable);
    Py_CLEAR(o->needs_input_grad);
    Py_CLEAR(o->needs_given);
    Py_CLEAR(o->tensor_args);
    return 0;
}

static void fn_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    PyTypeObject *type = Py_TYPE(self);
    if (((fn_object *)self)->weak)
        PyObject_ClearWeakRefs(self);
    fn_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *fn_repr(PyObject *self)
{
    PyObject *name = PyType_GetName(Py_TYPE(self));
    PyObject *text = name ? PyUnicode_FromFormat("<%s.autograd.function.%U object at %p>",
                                                 tnpy_module_name(), name, (void *)self)
                          : NULL;
    Py_XDECREF(name);
    return text;
}

static PyMethodDef fn_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "save_for_backward(*tensors)\n--\n\nKeep tensors for backward; None is fine."},
    {"save_for_forward", save_for_forward, METH_VARARGS,
     "save_for_forward(*tensors)\n--\n\nKeep tensors for jvp."},
    {"mark_dirty", mark_dirty, METH_VARARGS,
     "mark_dirty(*inputs)\n--\n\nThese inputs were written in place; each must be returned."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "mark_non_differentiable(*outputs)\n--\n\nThese outputs have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads(value)\n--\n\nFalse: backward gets None for gradients that did not "
     "come."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef fn_getset[] = {
    {"saved_tensors", get_saved_tensors, NULL, "What save_for_backward kept.", NULL},
    {"saved_variables", get_saved_tensors, NULL, NULL, NULL},
    {"_raw_saved_tensors", get_raw_saved_tensors, NULL, "The same before they are unpacked.", NULL},
    {"needs_input_grad", get_needs_input_grad, set_needs_input_grad,
     "For each input whether its gradient is wanted.", NULL},
    {"materialize_grads", get_materialize, set_materialize, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef fn_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(fn_object, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(fn_object, weak), READONLY, NULL},
    {"to_save", T_OBJECT, offsetof(fn_object, to_save), 0, NULL},
    {"saved_for_forward", T_OBJECT, offsetof(fn_object, for_forward), 0, NULL},
    {"dirty_tensors", T_OBJECT, offsetof(fn_object, dirty), 0, NULL},
    {"non_differentiable", T_OBJECT, offsetof(fn_object, non_differentiable), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot fn_slots[] = {
    {Py_tp_dealloc, fn_dealloc}, {Py_tp_traverse, fn_traverse},
    {Py_tp_clear, fn_clear},     {Py_tp_repr, fn_repr},
    {Py_tp_methods, fn_methods}, {Py_tp_getset, fn_getset},
    {Py_tp_members, fn_members}, {0, NULL},
};
static PyType_Spec fn_spec = {
    .name = "tenon._C._FunctionBase",
    .basicsize = sizeof(fn_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = fn_slots,
};

static PyMethodDef class_methods[] = {
    {"apply", (PyCFunction)(void (*)(void))function_apply,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "apply(*args)\n--\n\nCall the function; its results have the gradient that backward gives."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot class_slots[] = {{Py_tp_methods, class_methods}, {0, NULL}};
static PyType_Spec class_spec = {
    .name = "tenon._C._FunctionClass",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = class_slots,
};

/* _set_function_defaults(setup_context, backward, vjp, jvp): those of the class Function itself */
static PyObject *set_function_defaults(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *setup, *backward, *vjp, *jvp;
    if (!PyArg_ParseTuple(args, "OOOO", &setup, &backward, &vjp, &jvp))
        return NULL;
    put(&plain_backward, Py_NewRef(backward));
    put(&plain_setup, Py_NewRef(setup));
    put(&plain_vjp, Py_NewRef(vjp));
    put(&plain_jvp, Py_NewRef(jvp));
    Py_RETURN_NONE;
}

/* _set_function_slices(type, apply): where an argument of a function is of the type, apply(cls,
 * args, kwargs or None) is called; NotImplemented: it is an argument like others */
static PyObject *set_function_slices(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *apply;
    if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &type, &apply))
        return NULL;
    put(&slice_apply, Py_NewRef(apply));
    put(&slice_type, Py_NewRef(type));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_set_function_slices", set_function_slices, METH_VARARGS, NULL},
    {"_set_function_defaults", set_function_defaults, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_names(void)
{
    static const struct {
        PyObject **slot;
        const char *text;
    } names[] = {
        {&s_backward_cls, "_backward_cls"},
        {&s_forward, "forward"},
        {&s_backward, "backward"},
        {&s_vjp, "vjp"},
        {&s_jvp, "jvp"},
        {&s_setup, "setup_context"},
        {&s_once, "_once_differentiable"},
        {&s_bind, "_bind_arguments"},
        {&s_name, "__name__"},
        {&s_forward_cls, "_forward_cls"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].slot = PyUnicode_InternFromString(names[i].text)))
            return -1;
    return 0;
}

int tnpy_add_function(PyObject *module)
{
    FunctionBase = (PyTypeObject *)PyType_FromSpec(&fn_spec);
    FunctionClass = (PyTypeObject *)PyType_FromSpec(&class_spec);
    if (!FunctionBase || !FunctionClass || add_names() < 0 ||
        tnpy_add_node_parts(FunctionBase) < 0 ||
        PyModule_AddObjectRef(module, "_FunctionBase", (PyObject *)FunctionBase) < 0 ||
        PyModule_AddObjectRef(module, "_FunctionClass", (PyObject *)FunctionClass) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
