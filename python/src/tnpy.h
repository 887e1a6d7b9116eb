/* SPDX-License-Identifier: MIT */
/* tnpy.h: what the files of the extension `tenon._C` share. It sees the public headers of Tenon and
 * CPython's limited API alone. Unless said otherwise a function wants the interpreter lock, and one
 * that returns NULL or -1 has set an exception. How it works: docs/dev/python.md */
#ifndef TNPY_H
#define TNPY_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#    define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <structmember.h>

#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/storage.h"
#include "tenon/tensor.h"

#define TNPY_LIKELY(x)   __builtin_expect(!!(x), 1)
#define TNPY_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- tensors (tensor.c) ---- */

/* A tensor in Python. While it owns `t`, the C tensor only points back at it; once Python forgets
 * an object that must live on (see Note [Who owns whom]), the C tensor owns the object. */
typedef struct tnpy_tensor_object {
    PyObject_HEAD tn_tensor *t;      /* NULL once the tensor is gone */
    PyObject *dict;                  /* __dict__, NULL until needed */
    PyObject *weak;                  /* weak references */
    PyTypeObject *looked;            /* the type that `overrides` was found for */
    struct tnpy_tensor_object *next; /* of the queue of objects that wait to be released */
    uint8_t owned_by_c;
    uint8_t overrides; /* TNPY_PLAIN, TNPY_CUSTOM or TNPY_KEEPS: see override.h */
} tnpy_tensor_object;

extern PyTypeObject *tnpy_Tensor;
/* nn.Parameter, once it is there: the class that most arguments of layers have. */
extern PyTypeObject *tnpy_Parameter;

/* Its Python object, the same one while one lives; NULL gives None. Takes the reference. */
PyObject *tnpy_wrap(TN_STOLEN tn_tensor *t);
/* The same for a tensor that stays the caller's. */
PyObject *tnpy_wrap_borrowed(tn_tensor *t);
/* Two objects change their tensors. */
void tnpy_swap(PyObject *a, PyObject *b);
/* A tuple of the tensors of a list that an operator returned; takes the list. */
PyObject *tnpy_wrap_list(TN_STOLEN tn_tensor **list, int64_t n);
/* A new object of @p type (Tensor or a subclass) for a tensor that has none. Takes the reference.
 */
PyObject *tnpy_wrap_as(PyTypeObject *type, TN_STOLEN tn_tensor *t);
/* Is it a Tensor, or of a subclass? */
int tnpy_is_tensor(PyObject *o);
/* Its tensor, borrowed; NULL when @p o is no Tensor: no exception is set. */
static inline tn_tensor *tnpy_tensor(PyObject *o)
{
    if (TNPY_LIKELY(Py_TYPE(o) == tnpy_Tensor || Py_TYPE(o) == tnpy_Parameter) || tnpy_is_tensor(o))
        return ((tnpy_tensor_object *)(void *)o)->t;
    return NULL;
}
/* The tensor of an object whose class is Tensor itself or nn.Parameter, borrowed; NULL: it is of
 * another class (optim.c). */
tn_tensor *tnpy_plain_parameter(PyObject *o);
/* What the object's class does with calls (override.h); 0: nothing. @p o is a Tensor. */
int tnpy_overrides_slow(tnpy_tensor_object *o);
static inline int tnpy_overrides(PyObject *o)
{
    if (TNPY_LIKELY(Py_TYPE(o) == tnpy_Tensor))
        return 0;
    tnpy_tensor_object *t = (tnpy_tensor_object *)(void *)o;
    return t->looked == Py_TYPE(o) ? t->overrides : tnpy_overrides_slow(t);
}

/* ---- guards (guard.c) ---- */

/* A capsule with room for a guard of @p size bytes, for what leaves again: that finds it under
 * @p name, so that one guard is not taken for another. @p name lives as long as the module. */
PyObject *tnpy_guard_new(const char *name, size_t size, void **room);

/* ---- errors (error.c) ---- */

/* The exception of the last failure on this thread, of torch's class; returns NULL. When Python
 * code that C called had failed, it is that exception. */
PyObject *tnpy_raise(tn_status st);
/* For Python code that C called: put the exception away until tnpy_raise, and return a status whose
 * message is its text. */
tn_status tnpy_failed(void);
/* C got over the failure of Python code that it called: let go of its exception. */
void tnpy_forget(void);
/* The name of an object's type, as messages say it ("str", "numpy.ndarray"); returns @p room.
 * Touches no exception that was not there. */
const char *tnpy_type_name(PyObject *o, char *room, size_t n);
/* tenon.OutOfMemoryError */
extern PyObject *tnpy_OutOfMemoryError;
/* The name that types print in front of theirs: "tenon", or "torch" where Tenon stands in for it.
 */
const char *tnpy_module_name(void);

/* ---- plain values (types.c, device.c, scalar.c) ---- */

int tnpy_dtype_of(PyObject *o, tn_dtype *out); /* also float, int, bool and complex */
PyObject *tnpy_dtype(tn_dtype dtype);
int tnpy_is_dtype(PyObject *o);
int tnpy_layout_of(PyObject *o, tn_layout *out);
PyObject *tnpy_layout(tn_layout layout);
int tnpy_is_layout(PyObject *o);
int tnpy_format_of(PyObject *o, tn_memory_format *out);
PyObject *tnpy_format(tn_memory_format format);
int tnpy_is_format(PyObject *o);
int tnpy_device_of(PyObject *o, tn_device *out); /* a device, a text, or a number */
PyObject *tnpy_device(tn_device device);
int tnpy_is_device(PyObject *o);
/* What factories use on this thread when nobody names a device; NONE: nothing was set, or modes are
 * asked. See Note [Devices on the stack]. */
extern _Thread_local tn_device tnpy_default_device;
/* The generator of a Generator; NULL when it is none: no exception is set. */
tn_generator *tnpy_generator_of(PyObject *o);
PyObject *tnpy_generator(TN_STOLEN tn_generator *g);

/* int, float, bool, complex, tensors of one element, NumPy scalars. */
int tnpy_scalar_of(PyObject *o, tn_scalar *out);
PyObject *tnpy_scalar(tn_scalar s);
/* Whether tnpy_scalar_of would take it, as torch's Scalar arguments do. */
int tnpy_is_number(PyObject *o);
int tnpy_is_numpy_bool(PyObject *o);
int tnpy_is_numpy_scalar(PyObject *o);
/* An int, something with __index__, or an integer tensor of one element. */
int tnpy_int_of(PyObject *o, int64_t *out);
/* A sequence of ints: how many, at most @p max; -1 with an exception. */
int tnpy_ints_of(PyObject *o, int64_t *room, int max);
/* tenon.Size, a tuple. */
PyObject *tnpy_size(const int64_t *sizes, int n);
extern PyTypeObject *tnpy_Size;

/* ---- the interpreter lock (lock.c) ---- */

/* Elements from which on others may use the interpreter while a kernel runs: giving it away and
 * getting it back costs as much as a kernel on a thousand elements. */
enum { TNPY_LONG_WORK = 8192 };
/* Around C code that may take long. Nothing of Python may be touched between them. */
PyThreadState *tnpy_unlock(void);
void tnpy_lock(PyThreadState *state);
/* For C that does not know whether it has the lock (hooks, kernels in Python). */
PyGILState_STATE tnpy_lock_any(void);
void tnpy_unlock_any(PyGILState_STATE state);
/* Whether no thread is inside C code that gave the lock away. Wants the lock, and stays so while it
 * is held. */
bool tnpy_all_locked(void);
/* Does this thread hold the lock? */
int tnpy_has_lock(void);
/* Call a user's function that runs outside of operators; the doctor can name it meanwhile. @p
 * second may be NULL. */
PyObject *tnpy_call_user(PyObject *fn, PyObject *args);
/* Calls @p fn, a function of ours around the user's, which is @p named. */
PyObject *tnpy_call_named(PyObject *named, PyObject *fn, PyObject *args);
PyObject *tnpy_call_hook(PyObject *fn, PyObject *first, PyObject *second);
/* Drop a reference now, or when somebody next has the lock. Needs no lock, allocates nothing that
 * could fail to be freed. */
void tnpy_release(PyObject *o);
/* Release what waits; cheap when nothing does. */
void tnpy_drain(void);

/* ---- layers (forward.c) ---- */

/* What the module @p self, whose names are @p own, gives for this argument, without its forward;
 * NULL without an exception: its forward has to be called. */
PyObject *tnpy_try_forward(PyObject *self, PyObject *own, PyObject *input);
/* The same for a whole call; NULL without an exception: it has to be called (layer.c). */
PyObject *tnpy_try_module(PyObject *self, PyObject *input);

/* ---- calling operators (bind.c) ---- */

/* Call the operator that a name and its arguments mean, as the generated functions do. */
struct tnpy_entry;
PyObject *tnpy_call_function(struct tnpy_entry *e, PyObject *const *args, Py_ssize_t n,
                             PyObject *kwnames);
PyObject *tnpy_call_method(struct tnpy_entry *e, PyObject *self, PyObject *const *args,
                           Py_ssize_t n, PyObject *kwnames);
/* A result of a boxed call as a Python object; takes the value. */
PyObject *tnpy_from_value(TN_STOLEN tn_value *v);

/* ---- parts of the module: each adds its names; 0, or -1 ---- */

int tnpy_add_error(PyObject *module);
int tnpy_add_types(PyObject *module);
int tnpy_add_device(PyObject *module);
int tnpy_add_generator(PyObject *module);
int tnpy_add_override(PyObject *module);
int tnpy_add_mode_stack(PyObject *module);
int tnpy_add_tensor(PyObject *module);
int tnpy_add_functions(PyObject *module);
int tnpy_add_modes(PyObject *module);
int tnpy_add_data(PyObject *module);
int tnpy_add_buffer(PyObject *module);
int tnpy_add_values(PyObject *module);
int tnpy_add_dlpack(PyObject *module);
int tnpy_add_storage(PyObject *module);
int tnpy_add_autograd(PyObject *module);
int tnpy_add_grad_mode(PyObject *module);
int tnpy_add_scope(PyObject *module);
int tnpy_add_optim(PyObject *module);
int tnpy_add_layer(PyObject *module);
int tnpy_add_step(PyObject *module);
int tnpy_add_names(PyObject *module);
int tnpy_add_forward(PyObject *module);

#endif
