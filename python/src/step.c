/* SPDX-License-Identifier: MIT */
/* step.c: a whole step of SGD, Adam or AdamW in one call, where nothing is asked for that needs
 * Python: no hooks, closures, modes or scalers; dense floats on the CPU; a state that earlier steps
 * made. In C for the reason that optim.c names. tenon/optim/optimizer.py asks it first, and walks
 * the groups itself when the answer is no: nothing was changed then. */
#include "override.h"

#include <stdio.h>

enum { SGD, ADAM, N_KINDS };
/* What the kernels get for each parameter. */
enum { PARAM, GRAD, MOMENTUM, N_SGD, MEAN = MOMENTUM, SQUARE, COUNT, LARGEST, N_COLUMNS };

enum { NO, YES, FAILED = -1 }; /* not for us; yes; an exception is set */

enum name {
    PARAM_GROUPS,
    STATE,
    DEFAULTS,
    PRE_HOOKS,
    POST_HOOKS,
    GRAD_SCALE,
    FOUND_INF,
    PARAMS,
    DIFFERENTIABLE,
    FOREACH,
    FUSED,
    MAXIMIZE,
    LR,
    DECAY,
    MOMENTUM_RATE,
    DAMPENING,
    NESTEROV,
    MOMENTUM_BUFFER,
    BETAS,
    EPS,
    AMSGRAD,
    DECOUPLED,
    STEP,
    EXP_AVG,
    EXP_AVG_SQ,
    MAX_EXP_AVG_SQ,
    N_NAMES
};
static const char *const texts[N_NAMES] = {
    "param_groups",
    "state",
    "defaults",
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "grad_scale",
    "found_inf",
    "params",
    "differentiable",
    "foreach",
    "fused",
    "maximize",
    "lr",
    "weight_decay",
    "momentum",
    "dampening",
    "nesterov",
    "momentum_buffer",
    "betas",
    "eps",
    "amsgrad",
    "decoupled_weight_decay",
    "step",
    "exp_avg",
    "exp_avg_sq",
    "max_exp_avg_sq",
};
static PyObject *names[N_NAMES];

/* Of tenon/optim: Algorithm.step, the hooks of all optimizers, the classes that are known. */
static PyObject *known_step, *global_pre, *global_post;
static struct {
    PyObject *type;
    int kind;
} classes[4];
static int n_classes;

/* One group's part of the step. */
typedef struct part {
    double lr, decay, momentum, dampening, beta1, beta2, eps;
    int maximize, nesterov, amsgrad, decoupled, halves;
    int64_t n, room, work;
    tn_tensor **column[N_COLUMNS]; /* each with n references; all one block */
} part;

static PyObject *get(PyObject *dict, enum name name)
{
    return PyDict_GetItemWithError(dict, names[name]);
}

/* What is missing is not for us either, unless the look-up itself failed. */
static int no_or_failed(void)
{
    return PyErr_Occurred() ? FAILED : NO;
}

static int read_number(PyObject *o, double *out)
{
    if (!o)
        return no_or_failed();
    if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o))
        return NO;
    *out = PyFloat_AsDouble(o);
    if (*out == -1 && PyErr_Occurred()) {
        PyErr_Clear(); /* an int that no double holds */
        return NO;
    }
    return YES;
}

static int number(PyObject *group, enum name name, double *out)
{
    return read_number(get(group, name), out);
}

/* True, or False, None and nothing. */
static int flag(PyObject *group, enum name name, int *out)
{
    PyObject *o = get(group, name);
    if (!o && PyErr_Occurred())
        return FAILED;
    *out = o == Py_True;
    return !o || o == Py_True || o == Py_False || o == Py_None ? YES : NO;
}

#define TRY(expression)           \
    do {                          \
        int answer_ = expression; \
        if (answer_ != YES)       \
            return answer_;       \
    } while (0)

static int read_sgd(PyObject *group, part *p)
{
    TRY(number(group, MOMENTUM_RATE, &p->momentum));
    TRY(number(group, DAMPENING, &p->dampening));
    return flag(group, NESTEROV, &p->nesterov);
}

static int read_adam(PyObject *group, part *p)
{
    PyObject *betas = get(group, BETAS);
    if (!betas || !PyTuple_CheckExact(betas) || PyTuple_Size(betas) != 2)
        return no_or_failed();
    TRY(read_number(PyTuple_GetItem(betas, 0), &p->beta1));
    TRY(read_number(PyTuple_GetItem(betas, 1), &p->beta2));
    TRY(number(group, EPS, &p->eps));
    TRY(flag(group, AMSGRAD, &p->amsgrad));
    return flag(group, DECOUPLED, &p->decoupled);
}

static int read_options(PyObject *group, int kind, part *p)
{
    int graph, each;
    TRY(flag(group, DIFFERENTIABLE, &graph));
    TRY(flag(group, FOREACH, &each));
    TRY(flag(group, FUSED, &p->halves));
    PyObject *fused = get(group, FUSED);
    if (graph || each || fused == Py_False)
        return NO;
    TRY(number(group, LR, &p->lr));
    TRY(number(group, DECAY, &p->decay));
    TRY(flag(group, MAXIMIZE, &p->maximize));
    return kind == SGD ? read_sgd(group, p) : read_adam(group, p);
}

static int is_plain_gradient(tn_tensor *grad)
{
    tnpy_tensor_object *known = tn_tensor_peer(grad);
    return !known || Py_TYPE((PyObject *)known) == tnpy_Tensor;
}

/* As optim.c's fusable. */
static int takes(const part *p, tn_tensor *t, tn_tensor *grad)
{
    tn_dtype dtype = tn_tensor_dtype(t);
    if (tn_tensor_device(t).type != TN_DEVICE_CPU || tn_tensor_device(grad).type != TN_DEVICE_CPU ||
        tn_tensor_dtype(grad) != dtype || tn_tensor_is_inference(grad))
        return 0;
    return dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64 ||
           (p->halves && (dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16));
}

/* A tensor of a parameter's state, into the last row of a column. */
static int take_state(part *p, PyObject *state, enum name name, int column)
{
    PyObject *o = get(state, name);
    if (!o || Py_TYPE(o) != tnpy_Tensor)
        return no_or_failed();
    tn_tensor *t = tnpy_tensor(o);
    if (!t)
        return NO;
    p->column[column][p->n] = tn_tensor_ref(t);
    return YES;
}

static int take_states(part *p, PyObject *states, PyObject *param, int kind)
{
    if (kind == SGD && p->momentum == 0)
        return YES;
    PyObject *state = PyDict_GetItemWithError(states, param);
    if (!state || !PyDict_CheckExact(state))
        return no_or_failed();
    if (kind == SGD)
        return take_state(p, state, MOMENTUM_BUFFER, MOMENTUM);
    TRY(take_state(p, state, STEP, COUNT));
    TRY(take_state(p, state, EXP_AVG, MEAN));
    TRY(take_state(p, state, EXP_AVG_SQ, SQUARE));
    return p->amsgrad ? take_state(p, state, MAX_EXP_AVG_SQ, LARGEST) : YES;
}

/* The next row, if the parameter has a gradient. */
static int take_parameter(part *p, PyObject *states, PyObject *o, int kind)
{
    tn_tensor *t = tnpy_plain_parameter(o);
    if (!t || !tn_tensor_is_leaf(t))
        return NO;
    tn_tensor *grad = tn_tensor_grad_ref(t); /* other threads may be replacing it */
    if (!grad)
        return YES;
    p->column[GRAD][p->n] = grad; /* from here on the row is forgotten with the part */
    if (!is_plain_gradient(grad) || !takes(p, t, grad))
        return NO;
    p->column[PARAM][p->n] = tn_tensor_ref(t);
    TRY(take_states(p, states, o, kind));
    p->work += tn_tensor_numel(t);
    p->n++;
    return YES;
}

static int read_part(PyObject *group, PyObject *states, int kind, part *p)
{
    TRY(read_options(group, kind, p));
    PyObject *params = get(group, PARAMS);
    if (!params || !PyList_CheckExact(params))
        return no_or_failed();
    int columns = kind == SGD ? N_SGD : N_COLUMNS;
    p->room = PyList_Size(params);
    tn_tensor **block = PyMem_Calloc((size_t)(p->room * columns) + 1, sizeof *block);
    if (!block) {
        PyErr_NoMemory();
        return FAILED;
    }
    for (int c = 0; c < columns; c++)
        p->column[c] = block + c * p->room;
    for (int64_t i = 0; i < p->room && i < PyList_Size(params); i++)
        TRY(take_parameter(p, states, PyList_GetItem(params, i), kind));
    return YES;
}

static void forget_part(part *p)
{
    if (!p->column[0])
        return;
    for (int c = 0; c < N_COLUMNS && p->column[c]; c++)
        for (int64_t i = 0; i < p->room && i <= p->n; i++) /* the row after the last may be begun */
            if (p->column[c][i])
                tn_tensor_unref(p->column[c][i]);
    PyMem_Free(p->column[0]);
}

/* A step that was not done is not counted. What went wrong first is what is told. */
static tn_status count_back(const part *p, tn_status st)
{
    char text[512];
    snprintf(text, sizeof text, "%s", tn_last_error());
    if (tn__foreach_add_(p->column[COUNT], p->n, tn_int(-1)) != TN_OK)
        tn_clear_error();
    return tn_fail(st, "%s", text);
}

static tn_status run_part(const part *p, int kind)
{
    tn_tensor **const *c = p->column;
    int64_t n = p->n;
    if (kind == SGD)
        return tn__fused_sgd_(c[PARAM], n, c[GRAD], n, c[MOMENTUM], p->momentum != 0 ? n : 0,
                              p->decay, p->momentum, p->lr, p->dampening, p->nesterov, p->maximize,
                              p->momentum == 0, NULL, NULL);
    tn_status st = tn__foreach_add_(c[COUNT], n, tn_int(1));
    if (st != TN_OK)
        return st;
    st = (p->decoupled ? tn__fused_adamw_ : tn__fused_adam_)(
        c[PARAM], n, c[GRAD], n, c[MEAN], n, c[SQUARE], n, c[LARGEST], p->amsgrad ? n : 0, c[COUNT],
        n, p->lr, p->beta1, p->beta2, p->decay, p->eps, p->amsgrad, p->maximize, NULL, NULL);
    return st == TN_OK ? TN_OK : count_back(p, st);
}

static int run_parts(const part *parts, Py_ssize_t n, int kind)
{
    int64_t work = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        work += parts[i].work;
    PyThreadState *state = work >= TNPY_LONG_WORK ? tnpy_unlock() : NULL;
    bool grad = tn_set_grad_enabled(false);
    tn_status st = TN_OK;
    for (Py_ssize_t i = 0; i < n && st == TN_OK; i++)
        if (parts[i].n)
            st = run_part(&parts[i], kind);
    tn_set_grad_enabled(grad);
    if (state)
        tnpy_lock(state);
    if (st == TN_OK)
        return YES;
    tnpy_raise(st);
    return FAILED;
}

static int step_groups(PyObject *groups, PyObject *states, int kind)
{
    Py_ssize_t n = PyList_Size(groups);
    part few[2] = {{0}}, *parts = few;
    if (n > 2 && !(parts = PyMem_Calloc((size_t)n, sizeof *parts))) {
        PyErr_NoMemory();
        return FAILED;
    }
    int answer = YES;
    for (Py_ssize_t i = 0; i < n && answer == YES; i++) {
        PyObject *group = PyList_GetItem(groups, i);
        answer = group && PyDict_CheckExact(group) ? read_part(group, states, kind, &parts[i]) : NO;
    }
    if (answer == YES)
        answer = run_parts(parts, n, kind);
    for (Py_ssize_t i = 0; i < n; i++)
        forget_part(&parts[i]);
    if (parts != few)
        PyMem_Free(parts);
    return answer;
}

static int is_empty(PyObject *table)
{
    return table && PyDict_Check(table) && PyDict_Size(table) == 0;
}

static int kind_of(PyObject *optimizer)
{
    for (int i = 0; i < n_classes; i++)
        if (classes[i].type == (PyObject *)Py_TYPE(optimizer))
            return classes[i].kind;
    return -1;
}

static int step_of(PyObject *own, int kind)
{
    PyObject *defaults = get(own, DEFAULTS), *states = get(own, STATE);
    PyObject *groups = get(own, PARAM_GROUPS);
    int graph;
    if (!is_empty(get(own, PRE_HOOKS)) || !is_empty(get(own, POST_HOOKS)) || get(own, GRAD_SCALE) ||
        get(own, FOUND_INF) || !defaults || !PyDict_Check(defaults) || !states ||
        !PyDict_Check(states) || !groups || !PyList_CheckExact(groups))
        return no_or_failed();
    TRY(flag(defaults, DIFFERENTIABLE, &graph));
    return graph || PyErr_Occurred() ? no_or_failed() : step_groups(groups, states, kind);
}

/* _step_at_once(optimizer, its step function, without hooks) -> whether the step was done. */
static PyObject *step_at_once(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "_step_at_once: an optimizer and a function are expected");
        return NULL;
    }
    int kind = args[1] == known_step ? kind_of(args[0]) : -1;
    if (kind < 0 || !is_empty(global_pre) || !is_empty(global_post) ||
        (tnpy_function_modes && tnpy_function_off < 2))
        Py_RETURN_FALSE;
    PyObject *own = PyObject_GenericGetDict(args[0], NULL);
    int answer = own ? step_of(own, kind) : FAILED;
    Py_XDECREF(own);
    return answer == FAILED ? NULL : PyBool_FromLong(answer == YES);
}

static void keep(PyObject **place, PyObject *o)
{
    PyObject *before = *place;
    Py_INCREF(o);
    *place = o;
    Py_XDECREF(before);
}

/* _know_step(function, hooks before, hooks after): those of tenon.optim.optimizer. */
static PyObject *know_step(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *function, *pre, *post;
    if (!PyArg_ParseTuple(args, "OOO:_know_step", &function, &pre, &post))
        return NULL;
    keep(&known_step, function);
    keep(&global_pre, pre);
    keep(&global_post, post);
    Py_RETURN_NONE;
}

/* _know_optimizer(class, kind): 0, SGD; 1, Adam. */
static PyObject *know_optimizer(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type;
    int kind;
    if (!PyArg_ParseTuple(args, "Oi:_know_optimizer", &type, &kind))
        return NULL;
    if (kind < 0 || kind >= N_KINDS || n_classes == (int)(sizeof classes / sizeof classes[0])) {
        PyErr_SetString(PyExc_ValueError, "_know_optimizer: no such kind, or too many classes");
        return NULL;
    }
    keep(&classes[n_classes].type, type);
    classes[n_classes++].kind = kind;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_step_at_once", (PyCFunction)(void (*)(void))step_at_once, METH_FASTCALL,
     "Do a whole step where that is possible."},
    {"_know_step", know_step, METH_VARARGS, NULL},
    {"_know_optimizer", know_optimizer, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_step(PyObject *module)
{
    for (int i = 0; i < N_NAMES; i++)
        if (!(names[i] = PyUnicode_InternFromString(texts[i])))
            return -1;
    return PyModule_AddFunctions(module, functions);
}
