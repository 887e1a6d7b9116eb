/* SPDX-License-Identifier: MIT */
/* fit.h: matching the arguments of a call (fit.c) against a signature (match.c). */
#ifndef TNPY_FIT_H
#define TNPY_FIT_H

#include "bind.h"

enum {
    TNPY_MAX_ARGS = 64,  /* of a schema */
    TNPY_ROOM = 1024,    /* bytes for lists */
    TNPY_MAX_MADE = 4,   /* tensors that are made of numbers for one call */
    TNPY_MAX_ASKING = 8, /* classes that are asked in one call, beyond which all arguments are */
    TNPY_MANY_ASKING = TNPY_MAX_ASKING + 1,
};

/* A call as CPython makes it. Of a method `self` is argument 0. */
typedef struct tnpy_call {
    tnpy_entry *entry;
    PyObject *self;
    PyObject *const *args; /* without self; behind them the values of keywords */
    PyObject *kwnames;
    int n; /* by position, self included */
    int n_keywords;
    bool numbers;      /* a number may stand for a tensor */
    bool tensors;      /* a tensor may stand for a number; see Note [Tensors for numbers] */
    bool by_schema;    /* of an operator itself: more casts, see Note [What a schema takes] */
    bool odd_keywords; /* some are not simply names of parameters; see tnpy_odd_keywords */
} tnpy_call;

/* What a match made: boxed arguments, and room for the lists among them. */
typedef struct tnpy_frame {
    int64_t work; /* elements of the tensors */
    size_t used;  /* of `room` */
    void *heap;   /* longer lists: a chain of blocks */
    int n_made;
    bool refused;       /* a tensor where a number was wanted, in any signature that was tried */
    PyObject *held;     /* copies of lists of tensors; NULL: none */
    bool overridden;    /* an argument has a __torch_function__ of its own */
    int n_asking;       /* of `asking`; TNPY_MANY_ASKING: there are more */
    PyTypeObject *kept; /* the class that results get; NULL: Tensor */
    bool requires_grad;
    PyObject *asking[TNPY_MAX_ASKING]; /* who has a __torch_function__, one a class, as found */
    tn_tensor *made[TNPY_MAX_MADE];    /* of numbers, to be released */
    tn_value v[TNPY_MAX_ARGS];
    char room[TNPY_ROOM];
} tnpy_frame;

/* A frame that holds nothing. */
static inline void tnpy_frame_begin(tnpy_frame *f)
{
    f->heap = NULL;
    f->n_made = 0;
    f->held = NULL;
    f->refused = false;
}
/* Nothing is known about the arguments yet: before the first of them, tnpy_match does it. */
static inline void tnpy_frame_forget(tnpy_frame *f)
{
    f->used = 0;
    f->work = 0;
    f->overridden = f->requires_grad = false;
    f->n_asking = 0;
    f->kept = NULL;
}
/* 1: the call fits, and the frame is filled; 0: it does not; -1: an exception, no other signature
 * is tried. The frame must be dropped in any case. */
int tnpy_match(const tnpy_call *c, tnpy_frame *f, const tnpy_sig *s);
void tnpy_frame_drop_slow(tnpy_frame *f);
static inline void tnpy_frame_drop(tnpy_frame *f)
{
    if (TNPY_UNLIKELY(f->heap != NULL || f->n_made != 0 || f->held != NULL))
        tnpy_frame_drop_slow(f);
}
/* Does one argument fit? As tnpy_match. @p one: a number may be a list of one. */
int tnpy_fit(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *o, bool one,
             tn_value *out);
/* All positional arguments from @p first on as one list: x.view(2, 3). */
int tnpy_fit_rest(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, int first, tn_value *out);
/* 1: its class is asked, see Note [Strangers]; 0: not. */
int tnpy_fit_stranger(const tnpy_call *c, tnpy_frame *f, PyObject *o, tn_value *out);
int tnpy_fit_bool(const tnpy_call *c, PyObject *o, bool *out);
/* Keep an object until the frame is dropped. The reference is taken over. */
int tnpy_frame_hold(tnpy_frame *f, PyObject *o);
/* The value of a keyword that is called @p name, or by NumPy's word for it; NULL: not given. */
PyObject *tnpy_keyword(const tnpy_call *c, PyObject *name);
/* The value of the keyword number @p i. */
static inline PyObject *tnpy_keyword_value(const tnpy_call *c, int i)
{
    return c->args[c->n - (c->self != NULL) + i];
}
/* After an error: the answer of Python where the call asks for a sparse layout, else NULL and the
 * error as it was. */
PyObject *tnpy_try_sparse(const tnpy_call *c);
/* Whether some of the names must be compared as texts, or mean more than a parameter: NumPy's
 * words, out=, options. Names that stand in a program are interned, as ours are: comparing
 * addresses is enough for the others. */
bool tnpy_odd_keywords(PyObject *kwnames, int n);
/* Intern the names of all parameters. */
int tnpy_prepare_names(void);
/* Set the TypeError of a call that fits no signature (explain.c). */
void tnpy_explain(const tnpy_call *c);

/* A call in the order of today that was given in an old one (old.c). */
enum { TNPY_OLD_ARGS = 12 };
typedef struct tnpy_old_call {
    tnpy_call call; /* owns its kwnames */
    PyObject *args[TNPY_OLD_ARGS];
    int n_numbers;
} tnpy_old_call;
/* 1: @p old has the call as it would be given today, and its kwnames are to be released; 0: this is
 * no old form; -1: an exception. */
int tnpy_take_old(const tnpy_call *c, tnpy_old_call *old);
bool tnpy_has_old_form(const char *name);
/* The warning that @p given gets, the first such call of the process. -1: it is an exception. */
int tnpy_warn_old(const tnpy_call *given, const tnpy_old_call *old);

extern PyObject *tnpy_str_out, *tnpy_str_requires_grad;

#endif
