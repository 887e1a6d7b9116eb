/* SPDX-License-Identifier: MIT */
/* autograd.c: backward passes from Python, and what tensors say about gradients. A pass runs
 * without the interpreter lock; hooks and Python Functions take it for their own call. */
#include "grad.h"
#include "override.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- lists of tensors ---- */

void tnpy_list_clear(tnpy_list *list)
{
    for (int64_t i = 0; i < list->n; i++)
        tn_tensor_unref(list->v[i]);
    if (list->v != list->few)
        PyMem_Free(list->v);
    list->v = list->few;
    list->n = 0;
}

static int add_item(tnpy_list *list, PyObject *item, int none, const char *what)
{
    tn_tensor *t = item == Py_None ? NULL : tnpy_tensor(item);
    if (!t && !(none && item == Py_None)) {
        PyObject *name = PyType_GetName(Py_TYPE(item));
        PyErr_Format(PyExc_TypeError, "%s must be Tensors, got %U", what, name);
        Py_XDECREF(name);
        return -1;
    }
    list->v[list->n++] = tn_tensor_ref(t);
    return 0;
}

int tnpy_list_of(PyObject *o, int none, const char *what, tnpy_list *out)
{
    out->v = out->few;
    out->n = 0;
    if (o == NULL || o == Py_None)
        return 0;
    if (tnpy_tensor(o))
        return add_item(out, o, none, what);
    PyObject *items = PySequence_Tuple(o);
    if (!items)
        return -1;
    Py_ssize_t n = PyTuple_Size(items);
    if (n > (Py_ssize_t)(sizeof out->few / sizeof *out->few)) {
        out->v = PyMem_Malloc((size_t)n * sizeof *out->v);
        if (!out->v) {
            Py_DECREF(items);
            PyErr_NoMemory();
            return -1;
        }
    }
    int rc = 0;
    for (Py_ssize_t i = 0; i < n && rc == 0; i++)
        rc = add_item(out, PyTuple_GetItem(items, i), none, what);
    Py_DECREF(items);
    if (rc < 0)
        tnpy_list_clear(out);
    return rc;
}

/* ---- arguments ---- */

int tnpy_arguments(const char *function, const char *const *names, PyObject *const *args,
                   Py_ssize_t n, PyObject *kwnames, PyObject **out)
{
    Py_ssize_t most = 0;
    while (names[most])
        most++;
    if (n > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", function,
                     most, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = args[i];
    Py_ssize_t n_kw = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t k = 0; k < n_kw; k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k);
        Py_ssize_t at = 0;
        while (names[at] && PyUnicode_CompareWithASCIIString(name, names[at]) != 0)
            at++;
        if (!names[at] || at < n) {
            PyErr_Format(PyExc_TypeError,
                         names[at] ? "%s() got multiple values for argument '%U'"
                                   : "%s() got an unexpected keyword argument '%U'",
                         function, name);
            return -1;
        }
        out[at] = args[n + k];
    }
    return 0;
}

/* A flag of a pass, a number or, where @p optional, None; -2 with an exception. Not given: none. */
static int32_t flag_of(PyObject *o, bool optional)
{
    if (!o || (optional && o == Py_None))
        return TN_BOOL_NONE;
    if (PyBool_Check(o))
        return o == Py_True ? TN_BOOL_TRUE : TN_BOOL_FALSE;
    PyObject *number = PyNumber_Index(o); /* "'float' object cannot be interpreted as an integer" */
    int truth = number ? PyObject_IsTrue(number) : -1;
    Py_XDECREF(number);
    return truth < 0 ? -2 : truth ? TN_BOOL_TRUE : TN_BOOL_FALSE;
}

/* ---- Ctrl+C ---- */

/* Note [Interrupting a pass]
 * Signals set a flag that only the interpreter looks at, on the main thread. A pass on that thread
 * lets it look every some milliseconds, between two nodes; elsewhere there is nothing to look for.
 */
enum { LOOK_EVERY_MS = 20 };
static _Thread_local int64_t next_look;
static _Thread_local int thread_kind; /* 0: not known yet; 1: main; 2: another */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static tn_status look_for_signals(void)
{
    if (TNPY_UNLIKELY(thread_kind == 0))
        thread_kind = syscall(SYS_gettid) == getpid() ? 1 : 2;
    if (thread_kind == 2)
        return TN_OK;
    int64_t now = now_ms();
    if (TNPY_LIKELY(now < next_look))
        return TN_OK;
    next_look = now + LOOK_EVERY_MS;
    PyGILState_STATE state = tnpy_lock_any();
    tn_status status = PyErr_CheckSignals() < 0 ? tnpy_failed() : TN_OK;
    tnpy_unlock_any(state);
    return status;
}

/* ---- passes ---- */

typedef struct request {
    tnpy_list roots, seeds, inputs;
    int has_inputs;
} request;

static void request_clear(request *r)
{
    tnpy_list_clear(&r->roots);
    tnpy_list_clear(&r->seeds);
    tnpy_list_clear(&r->inputs);
}

/* Seeds may be left out, or be as many as the tensors. */
static int request_of(request *r, PyObject *roots, PyObject *seeds, PyObject *inputs)
{
    memset(r, 0, sizeof *r);
    r->roots.v = r->roots.few;
    r->seeds.v = r->seeds.few;
    r->inputs.v = r->inputs.few;
    r->has_inputs = inputs && inputs != Py_None;
    if (tnpy_list_of(roots, 0, "tensors", &r->roots) < 0 ||
        tnpy_list_of(seeds, 1, "gradients", &r->seeds) < 0 ||
        tnpy_list_of(inputs, 0, "inputs", &r->inputs) < 0) {
        request_clear(r);
        return -1;
    }
    if (r->seeds.n && r->seeds.n != r->roots.n) {
        PyErr_Format(PyExc_RuntimeError, "got %lld tensors and %lld gradients",
                     (long long)r->roots.n, (long long)r->seeds.n);
        request_clear(r);
        return -1;
    }
    return 0;
}

/* Once: a gradient that was recorded leads to the accumulator of the leaf that holds it. */
static int warn_of_cycle(void)
{
    static bool warned;
    if (warned)
        return 0;
    warned = true;
    return PyErr_WarnEx(
        PyExc_UserWarning,
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient which can cause a memory leak. We recommend using "
        "autograd.grad when creating the graph to avoid this. If you have to use this function, "
        "make sure to reset the .grad fields of your parameters to None after use to break the "
        "cycle and avoid the leak.",
        1);
}

static PyObject *run_backward(request *r, int32_t retain, int32_t create)
{
    if (r->has_inputs && r->inputs.n == 0) {
        PyErr_SetString(PyExc_RuntimeError, "`inputs` argument to `backward()` cannot be empty.");
        return NULL;
    }
    if (TNPY_UNLIKELY(create == TN_BOOL_TRUE) && warn_of_cycle() < 0)
        return NULL;
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = retain;
    opts.create_graph = create == TN_BOOL_NONE ? TN_BOOL_FALSE : create;
    opts.inputs = r->has_inputs ? r->inputs.v : NULL;
    opts.n_inputs = r->inputs.n;
    tnpy_nesting nesting;
    tnpy_pass_begins(&nesting);
    PyThreadState *state = tnpy_unlock();
    tn_status status = tn_backward(r->roots.v, r->roots.n, r->seeds.n ? r->seeds.v : NULL, &opts);
    tnpy_lock(state);
    tnpy_pass_ended(&nesting);
    tnpy_drop_waiting();
    if (status != TN_OK)
        return tnpy_raise_pass(status);
    Py_RETURN_NONE;
}

static PyObject *backward(PyObject *roots, PyObject *seeds, PyObject *retain, PyObject *create,
                          PyObject *inputs)
{
    int32_t keep = flag_of(retain, true), record = keep == -2 ? -2 : flag_of(create, false);
    request r;
    if (keep == -2 || record == -2 || request_of(&r, roots, seeds, inputs) < 0)
        return NULL;
    PyObject *result = run_backward(&r, keep, record);
    request_clear(&r);
    return result;
}

static PyObject *Tensor_backward(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                 PyObject *kwnames)
{
    static const char *const names[] = {"gradient", "retain_graph", "create_graph", "inputs", NULL};
    PyObject *a[4] = {NULL, NULL, NULL, NULL};
    if (tnpy_arguments("Tensor.backward", names, args, n, kwnames, a) < 0)
        return NULL;
    if (TNPY_UNLIKELY(tnpy_function_on(self))) {
        PyObject *words = Py_BuildValue("{sOsOsOsO}", names[0], a[0] ? a[0] : Py_None, names[1],
                                        a[1] ? a[1] : Py_None, names[2], a[2] ? a[2] : Py_False,
                                        names[3], a[3] ? a[3] : Py_None);
        PyObject *made = words ? tnpy_override_method(self, "backward", NULL, words) : NULL;
        Py_XDECREF(words);
        return made;
    }
    bool plain = !a[0] || a[0] == Py_None || tnpy_tensor(a[0]);
    if (plain && (!a[3] || a[3] == Py_None))
        return backward(self, a[0], a[1], a[2], NULL);
    /* Inputs may be edges and the gradient a sequence of one, which the package knows. */
    PyObject *package = PyImport_ImportModule("tenon.autograd");
    PyObject *result =
        package ? PyObject_CallMethod(package, "backward", "OOOOOO", self, a[0] ? a[0] : Py_None,
                                      a[1] ? a[1] : Py_None, a[2] ? a[2] : Py_False, Py_None,
                                      a[3] ? a[3] : Py_None)
                : NULL;
    Py_XDECREF(package);
    return result;
}

static PyObject *graph_task_id(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    uint32_t pass = tn_current_pass();
    return PyLong_FromLongLong(pass ? (long long)pass : -1);
}

/* _run_backward(tensors, gradients, retain_graph, create_graph, inputs) */
static PyObject *run_backward_py(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *roots, *seeds, *retain, *create, *inputs;
    if (!PyArg_ParseTuple(args, "OOOOO", &roots, &seeds, &retain, &create, &inputs))
        return NULL;
    return backward(roots, seeds, retain, create, inputs);
}

static PyObject *wrap_all(tn_tensor **grads, int64_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int64_t i = 0; i < n; i++) {
        if (!tuple) {
            tn_tensor_unref(grads[i]);
            continue;
        }
        PyObject *item = tnpy_wrap(grads[i]);
        if (item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *run_grad(request *r, const tn_grad_opts *opts)
{
    tn_tensor *few[4] = {NULL}, **grads = few;
    if (r->inputs.n > 4)
        grads = PyMem_Calloc((size_t)r->inputs.n, sizeof *grads);
    if (!grads)
        return PyErr_NoMemory();
    tnpy_nesting nesting;
    tnpy_pass_begins(&nesting);
    PyThreadState *state = tnpy_unlock();
    tn_status status = tn_grad(r->roots.v, r->roots.n, r->inputs.v, r->inputs.n,
                               r->seeds.n ? r->seeds.v : NULL, opts, grads);
    tnpy_lock(state);
    tnpy_pass_ended(&nesting);
    tnpy_drop_waiting();
    PyObject *result = status == TN_OK ? wrap_all(grads, r->inputs.n) : tnpy_raise_pass(status);
    if (grads != few)
        PyMem_Free(grads);
    return result;
}

/* _run_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused,
 * materialize_grads): a tuple */
static PyObject *run_grad_py(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *outputs, *inputs, *seeds, *retain, *create, *unused, *materialize;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &outputs, &inputs, &seeds, &retain, &create, &unused,
                          &materialize))
        return NULL;
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    if ((opts.retain_graph = flag_of(retain, true)) == -2 ||
        (opts.create_graph = flag_of(create, false)) == -2 ||
        (opts.allow_unused = flag_of(unused, true)) == -2 ||
        (opts.materialize_grads = flag_of(materialize, false)) == -2)
        return NULL;
    request r;
    if (request_of(&r, outputs, seeds, inputs) < 0)
        return NULL;
    PyObject *result = run_grad(&r, &opts);
    request_clear(&r);
    return result;
}

/* ---- what is called once a pass is done ---- */

static tn_status call_queued(void *ctx)
{
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *result = PyObject_CallNoArgs(((tnpy_held *)ctx)->object);
    tn_status status = result ? TN_OK : tnpy_failed();
    Py_XDECREF(result);
    tnpy_unlock_any(state);
    return status;
}

static PyObject *queue_callback(PyObject *module, PyObject *fn)
{
    (void)module;
    tnpy_held *held = tnpy_hold(fn);
    if (!held)
        return NULL;
    tn_status status = tn_queue_callback(call_queued, held, tnpy_drop_any);
    if (status != TN_OK) {
        tnpy_drop(held);
        return tnpy_raise(status);
    }
    Py_RETURN_NONE;
}

/* ---- properties ---- */

static tn_tensor *self_of(PyObject *self)
{
    tn_tensor *t = tnpy_tensor(self);
    if (!t)
        PyErr_SetString(PyExc_TypeError, "expected a Tensor");
    return t;
}

/* Two attributes: their name is the closure. */
static PyObject *get_grad_fn(PyObject *self, void *closure)
{
    tn_tensor *t = self_of(self);
    if (!t)
        return NULL;
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return tnpy_override_get(self, closure);
    tn_node *node = NULL;
    tn_status status = tn_tensor_grad_fn(t, &node);
    return status == TN_OK ? tnpy_node(tn_node_ref(node)) : tnpy_raise(status);
}

static int set_grad_fn(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (value != Py_None) {
        PyErr_SetString(PyExc_RuntimeError, "_grad_fn can be only set to None");
        return -1;
    }
    PyObject *done = PyObject_CallMethod(self, "detach_", NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyGetSetDef properties[] = {
    {"grad_fn", get_grad_fn, NULL, "The node that made the tensor; None for a leaf.", "grad_fn"},
    {"_grad_fn", get_grad_fn, set_grad_fn, NULL, "_grad_fn"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"backward", (PyCFunction)(void (*)(void))Tensor_backward, METH_FASTCALL | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Add the gradients to `.grad` of the leaves that the tensor came from."},
    {NULL, NULL, 0, NULL},
};

/* ---- functions ---- */

/* _gradient_edge(tensor): (node, which of its results) */
static PyObject *gradient_edge(PyObject *module, PyObject *o)
{
    (void)module;
    tn_tensor *t = self_of(o);
    if (!t)
        return NULL;
    if (!tn_tensor_requires_grad(t)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "It is not possible to get the gradient edge for a Tensor that does not "
                        "require gradients");
        return NULL;
    }
    tn_node *node = NULL;
    uint32_t input = 0;
    tn_status status = tn_tensor_gradient_edge(t, &node, &input);
    if (status != TN_OK)
        return tnpy_raise(status);
    PyObject *object = tnpy_node(node);
    return object ? Py_BuildValue("(NI)", object, (unsigned)input) : NULL;
}

/* _tensor_at_edge(node, which of its results): a tensor whose gradient goes there */
static PyObject *tensor_at_edge(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *o;
    unsigned input;
    if (!PyArg_ParseTuple(args, "OI", &o, &input))
        return NULL;
    tn_node *node = tnpy_node_of(o);
    if (!node)
        return NULL;
    tn_tensor *made = NULL;
    tn_status status = tn_tensor_at_edge(node, input, &made);
    tn_node_unref(node);
    return status == TN_OK ? tnpy_wrap(made) : tnpy_raise(status);
}

static PyObject *increment_version(PyObject *module, PyObject *o)
{
    (void)module;
    tn_tensor *t = self_of(o);
    if (!t)
        return NULL;
    tn_status status = tn_tensor_bump_version(t);
    if (status != TN_OK)
        return tnpy_raise(status);
    Py_RETURN_NONE;
}

static PyObject *current_node(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return tnpy_node(tn_node_ref(tn_current_node()));
}

static PyObject *current_pass(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(tn_current_pass());
}

static PyObject *passes_are_whole(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tn_passes_are_whole());
}

static PyMethodDef functions[] = {
    {"_run_backward", run_backward_py, METH_VARARGS, NULL},
    {"_current_graph_task_id", graph_task_id, METH_NOARGS,
     "_current_graph_task_id()\n--\n\nA number for the backward pass that runs here; -1: none."},
    {"_run_grad", run_grad_py, METH_VARARGS, NULL},
    {"_queue_callback", queue_callback, METH_O, NULL},
    {"_gradient_edge", gradient_edge, METH_O, NULL},
    {"_tensor_at_edge", tensor_at_edge, METH_VARARGS, NULL},
    {"_increment_version", increment_version, METH_O, NULL},
    {"_current_pass", current_pass, METH_NOARGS, NULL},
    {"_passes_are_whole", passes_are_whole, METH_NOARGS, NULL},
    {"_current_autograd_node", current_node, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_descriptor(const char *name, PyObject *descriptor)
{
    if (!descriptor)
        return -1;
    int rc = PyObject_SetAttrString((PyObject *)tnpy_Tensor, name, descriptor);
    Py_DECREF(descriptor);
    return rc;
}

int tnpy_add_autograd(PyObject *module)
{
    for (PyGetSetDef *p = properties; p->name; p++)
        if (add_descriptor(p->name, PyDescr_NewGetSet(tnpy_Tensor, p)) < 0)
            return -1;
    for (PyMethodDef *m = methods; m->ml_name; m++)
        if (add_descriptor(m->ml_name, PyDescr_NewMethod(tnpy_Tensor, m)) < 0)
            return -1;
    tn_set_interrupt_check(look_for_signals);
    tnpy_set_up_nesting();
    if (PyModule_AddFunctions(module, functions) < 0 || tnpy_add_node(module) < 0 ||
        tnpy_add_hooks(module) < 0 || tnpy_add_saved_tensor(module) < 0 ||
        tnpy_add_function(module) < 0 || tnpy_add_transforms(module) < 0 ||
        tnpy_add_anomaly(module) < 0 || tnpy_add_checkpoint(module) < 0 ||
        tnpy_add_autocast(module) < 0 || tnpy_add_profile(module) < 0)
        return -1;
    return tnpy_add_forward_ad(module);
}
