/* SPDX-License-Identifier: MIT */
/* bind.h: how a call from Python finds its operator. tools/opgen/emit_python.py writes the tables
 * that are described here; bind.c matches calls against them. */
#ifndef TNPY_BIND_H
#define TNPY_BIND_H

#include "tnpy.h"

/* Kinds of arguments. */
enum {
    TNPY_TENSOR,
    TNPY_TENSORS,
    TNPY_OPT_TENSORS, /* Tensor?[] */
    TNPY_INT,
    TNPY_INTS,
    TNPY_FLOAT,
    TNPY_FLOATS,
    TNPY_BOOL,
    TNPY_BOOLS,
    TNPY_SCALAR,
    TNPY_SCALARS,
    TNPY_STR,
    TNPY_DTYPE,
    TNPY_LAYOUT,
    TNPY_FORMAT,
    TNPY_DEVICE,
    TNPY_GENERATOR,
    TNPY_STORAGE,
    TNPY_STREAM,
};

enum {
    TNPY_OPTIONAL = 1, /* None is allowed */
    TNPY_DEFAULT = 2,  /* may be left out */
    TNPY_KEYWORD = 4,  /* by keyword alone */
    TNPY_OUT = 8,      /* a tensor of out= */
    TNPY_SIZE = 16,    /* SymInt: a tensor of one element serves, whatever its dimensions */
};

typedef struct tnpy_param {
    uint16_t name; /* in tnpy_names */
    uint8_t kind;
    uint8_t flags;
    int32_t size;     /* k of int[k]: one number stands for k of them */
    const char *text; /* of the default, for messages; NULL: none */
    tn_value value;   /* the default */
} tnpy_param;

enum {
    TNPY_SIG_OPTIONS = 1, /* dtype, layout, device, pin_memory in a row: requires_grad= works too */
    TNPY_SIG_FACTORY = 2, /* makes a tensor of no other: the default device counts */
    TNPY_SIG_OUT = 4,     /* writes out= */
    TNPY_SIG_INPLACE = 8,
    TNPY_SIG_HIDDEN = 16, /* not shown in messages */
    TNPY_SIG_DTYPE = 64,  /* its result is a dtype */
    TNPY_SIG_LIST = 32,   /* its one positional argument is a list of ints: x.view(2, 3) */
    TNPY_SIG_FIRST = 128, /* its result is its first argument, the list that it overwrites */
};

typedef struct tnpy_sig {
    const char *op; /* "aten::add.Tensor" */
    const tnpy_param *params;
    const char *const *results; /* names of several results, NULL: a plain tuple */
    uint8_t n;                  /* arguments of the operator; of a method the first is self */
    uint8_t positional;         /* how many of them may be given by position */
    uint8_t n_rets;
    uint8_t flags;
    /* Calls the typed function with arguments that fit; NULL: only a boxed call does. */
    tn_status (*direct)(const tn_value *v, tn_value *rets);
} tnpy_sig;

/* A name, and the signatures that a call of it is matched against, in this order. */
typedef struct tnpy_entry {
    const char *name;
    const tnpy_sig *sigs;
    uint16_t n;
    uint8_t method;
    uint8_t numbers;      /* a number may stand for a tensor */
    uint8_t in_nn;        /* PyTorch has the function in torch._C._nn: so pickles name it */
    PyObject *function;   /* what overrides get as `func`; made when first needed */
    tn_op **ops;          /* one a signature, found when first needed */
    PyTypeObject **types; /* of named results, one a signature, made when first needed */
} tnpy_entry;

extern tnpy_entry tnpy_function_entries[], tnpy_method_entries[];
extern PyMethodDef tnpy_functions[], tnpy_methods[];
extern const char *const tnpy_name_texts[]; /* names of arguments, each once */
extern PyObject *tnpy_names[];              /* the same as interned strings */
extern const int tnpy_num_names;

/* ---- what direct calls are made of: values that fit a parameter, as the typed functions want them
 * ---- */

static inline tn_opt_int tnpy_opt_int(const tn_value *v)
{
    return (tn_opt_int){v->u.i, v->tag != TN_TAG_NONE};
}

static inline tn_opt_float tnpy_opt_float(const tn_value *v)
{
    return (tn_opt_float){v->u.f, v->tag != TN_TAG_NONE};
}

static inline tn_opt_bool tnpy_opt_bool(const tn_value *v)
{
    return v->tag == TN_TAG_NONE ? TN_BOOL_NONE : v->u.i ? TN_BOOL_TRUE : TN_BOOL_FALSE;
}

static inline int tnpy_opt_number(const tn_value *v)
{
    return v->tag == TN_TAG_NONE ? -1 : (int)v->u.i;
}

static inline tn_device tnpy_opt_device(const tn_value *v)
{
    return v->tag == TN_TAG_NONE ? TN_NO_DEVICE : v->u.device;
}

static inline tn_scalar tnpy_value_scalar(const tn_value *v)
{
    tn_scalar s;
    if (TNPY_UNLIKELY(v->tag == TN_TAG_INT && v->count != 0))
        return tn_uint((uint64_t)v->u.i);
    s.beyond = 0;
    s.imag = v->tag == TN_TAG_COMPLEX ? v->u.z.im : 0;
    s.v.i = v->u.i; /* or the float, or the real part: the same bytes */
    s.kind = v->tag == TN_TAG_INT     ? TN_SCALAR_INT
             : v->tag == TN_TAG_FLOAT ? TN_SCALAR_FLOAT
             : v->tag == TN_TAG_BOOL  ? TN_SCALAR_BOOL
                                      : TN_SCALAR_COMPLEX;
    return s;
}

static inline const tn_scalar *tnpy_opt_scalar(const tn_value *v, tn_scalar *room)
{
    if (v->tag == TN_TAG_NONE)
        return NULL;
    *room = tnpy_value_scalar(v);
    return room;
}

/* dtype, layout, device and pin_memory in a row. */
static inline tn_tensor_opts tnpy_value_opts(const tn_value *v)
{
    return (tn_tensor_opts){sizeof(tn_tensor_opts), tnpy_opt_number(v), tnpy_opt_number(v + 1),
                            tnpy_opt_device(v + 2), tnpy_opt_bool(v + 3)};
}

/* ---- the functions that CPython calls ---- */

#define TNPY_FUNCTION(id, i)                                                                    \
    static PyObject *id(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) \
    {                                                                                           \
        (void)self;                                                                             \
        return tnpy_call_function(&tnpy_function_entries[i], args, n, kwnames);                 \
    }
#define TNPY_METHOD(id, i)                                                                      \
    static PyObject *id(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) \
    {                                                                                           \
        return tnpy_call_method(&tnpy_method_entries[i], self, args, n, kwnames);               \
    }

#endif
