/* SPDX-License-Identifier: MIT */
/* dimname.h: names of dimensions. */
#ifndef TNPY_DIMNAME_H
#define TNPY_DIMNAME_H

#include "fit.h"

/* Of a call that fits no signature: the answer of Python where names of dimensions are given, or
 * tensors made with names; 1 with *out (NULL: an exception), 0 where there is none of that. */
int tnpy_call_with_names(const tnpy_call *c, PyObject **out);

/* A tuple of the names of a tensor's dimensions, None for one that has none. */
PyObject *tnpy_names_of(const tn_tensor *t);
/* Name the dimensions of a tensor: a sequence of texts and None, or None: none has a name. @p wrong
 * (may be NULL): the text of the RuntimeError where it is neither. */
int tnpy_set_names(tn_tensor *t, PyObject *names, const char *wrong);
/* The dimension that is called so. */
int tnpy_find_name(const tn_tensor *t, PyObject *name, int64_t *out);

#endif
