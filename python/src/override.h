/* SPDX-License-Identifier: MIT */
/* override.h: __torch_function__. */
#ifndef TNPY_OVERRIDE_H
#define TNPY_OVERRIDE_H

#include "bind.h"

/* How many function modes are on, on this thread. */
extern _Thread_local int tnpy_function_modes;
/* False inside a default __torch_function__, and where it was switched off. */
int tnpy_function_enabled(void);
/* Whether an object that is no Tensor has a __torch_function__. Sets no exception. */
int tnpy_has_torch_function(PyObject *o);
/* Ask the modes and the arguments, in torch's order; @p self may be NULL. */
PyObject *tnpy_override(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                        PyObject *kwnames);

#endif
