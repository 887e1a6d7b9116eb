/* SPDX-License-Identifier: MIT */
/* data.h: what the files that carry data in and out of tensors share: index.c, data.c,
 * construct.c, buffer.c, values.c, dlpack.c, storage.c. */
#ifndef TNPY_DATA_H
#define TNPY_DATA_H

#include "tnpy.h"

/* ---- data.c ---- */

/* A CPU tensor with a copy of numbers, lists of them, arrays; dtype NONE: what the data suggest. */
TN_OWNED /* Show a fresh tensor to modes and transforms; takes @p t, which may be NULL. */
    tn_tensor *
    tnpy_lifted(tn_tensor *t);
tn_tensor *tnpy_from_data(PyObject *o, tn_dtype dtype);
/* The dtype whose elements Python's numbers are read from and written to: of short floats float32.
 */
static inline tn_dtype tnpy_plain_dtype(tn_dtype dtype)
{
    bool is_short = tn_dtype_is_floating(dtype) && dtype != TN_DTYPE_F32 && dtype != TN_DTYPE_F64;
    return is_short ? TN_DTYPE_F32 : dtype;
}
/* @p t in another dtype (NONE: its own), a copy where `copy` says so; takes it, NULL gives NULL. */
TN_OWNED tn_tensor *tnpy_as_dtype(TN_STOLEN tn_tensor *t, tn_dtype dtype, bool copy);
/* The same for an index: bool and uint8 stay, all else becomes int64. */
TN_OWNED tn_tensor *tnpy_index_tensor(PyObject *o);
/* An int or what has __index__; an exception in torch's words when it does not fit. */
int tnpy_long_of(PyObject *o, int64_t *out);
/* "Float" of torch.FloatTensor. */
const char *tnpy_legacy_name(tn_dtype dtype);

/* ---- construct.c ---- */

/* Arguments of a function: fills out[i] (borrowed, NULL when not given) by the names. The first
 * `n_pos` may be given by position, the first `n_min` must be there. */
typedef struct tnpy_arguments {
    const char *function;
    int n_min, n_pos, n;
    const char *names[8];
} tnpy_arguments;
int tnpy_take(const tnpy_arguments *names, PyObject *const *args, Py_ssize_t n_args,
              PyObject *kwnames, PyObject **out);

/* ---- buffer.c ---- */

/* Is it an array of NumPy's kind (or a scalar): a buffer with __array_interface__? */
int tnpy_is_array(PyObject *o);
/* A CPU tensor over the memory of a buffer, which it keeps alive. */
TN_OWNED tn_tensor *tnpy_from_buffer(PyObject *o);
/* Warns, once in a process, when an array whose memory a tensor will share is read-only: 0, or -1
 * where the warning is an error. */
int tnpy_warn_read_only(PyObject *array);
int tnpy_get_buffer(PyObject *self, Py_buffer *view, int flags);
void tnpy_release_buffer(PyObject *self, Py_buffer *view);

/* ---- values.c: a slot of Tensor ---- */

int tnpy_contains(PyObject *self, PyObject *what);

/* Adds methods and properties to the type Tensor; 0, or -1. Tables end with a NULL name. */
int tnpy_add_methods(PyMethodDef *methods, PyGetSetDef *properties);

#endif
