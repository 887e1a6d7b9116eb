/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/mode.h
 * @brief Modes: handlers that see every call of a thread; and tensors whose calls go to a handler.
 *
 * A mode is pushed on the thread's stack. From then on each call that reaches the key Python is
 * given to the innermost mode instead of a backend: gradients, views and versions are tracked
 * above, composite operators have been taken apart. While a handler runs its mode is off, and the
 * keys above Python but Fake are excluded: what it calls goes to the next mode out, and then to the
 * backend. So nothing loops; a handler that calls itself through another way ends at the depth
 * limit.
 *
 * A mode that was pushed inside a fake mode sees calls on fake tensors before they are answered;
 * one that the fake mode was entered in does not.
 */
#ifndef TN_MODE_H
#define TN_MODE_H

#include "tenon/base.h"
#include "tenon/dispatch.h"
#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_call_mode tn_call_mode; /**< a counted handle; any thread may push it */

/** Answers a call, as a boxed kernel does. tn_call_mode_go_on makes the call that it stands for. */
typedef tn_status (*tn_call_mode_fn)(void *ctx, tn_call *call, const tn_value *args,
                                     tn_value *rets);

/**
 * @param destroy  called with @p ctx when nobody has the mode any more; may be NULL
 * @retval TN_NOMEM  @retval TN_INVALID  an argument is NULL; @p destroy is not called
 */
TN_API TN_NODISCARD tn_status tn_call_mode_new(tn_call_mode_fn fn, void *ctx,
                                               void (*destroy)(void *ctx),
                                               TN_OWNED tn_call_mode **out);
/** Add a reference and return @p mode. NULL gives NULL. */
TN_API TN_OWNED tn_call_mode *tn_call_mode_ref(tn_call_mode *mode);
/** Drop a reference. NULL does nothing. */
TN_API void tn_call_mode_unref(TN_STOLEN tn_call_mode *mode);
TN_API void *tn_call_mode_context(const tn_call_mode *mode);

/** Switch @p mode on, on this thread, inside those that are on. The stack has a reference of its
 *  own. A thread pops what it pushed before it ends. @retval TN_NOMEM  @retval TN_INVALID  NULL */
TN_API TN_NODISCARD tn_status tn_call_mode_push(tn_call_mode *mode);
/** Switch the innermost mode off; the caller gets the stack's reference. NULL: none is on. */
TN_API TN_OWNED tn_call_mode *tn_call_mode_pop(void);
/** How many are on, on this thread; while a handler runs, those outside its own. */
TN_API int tn_call_mode_count(void);
/** The mode number @p i from the outermost, 0; NULL: there is none. */
TN_API TN_BORROWED tn_call_mode *tn_call_mode_at(int i);

/** What tn_call_modes_off changed; give it back to tn_call_modes_restore, on the same thread. */
typedef struct tn_call_modes_guard {
    void *modes;
} tn_call_modes_guard;
/** Switch all modes off for a while. */
TN_API TN_NODISCARD tn_call_modes_guard tn_call_modes_off(void);
TN_API void tn_call_modes_restore(tn_call_modes_guard guard);

/** From a handler: call the operator with these arguments; it goes to the next mode out, then to
 *  tensors that are handled, then to the backend. */
TN_API TN_NODISCARD tn_status tn_call_mode_go_on(tn_call *call, const tn_value *args,
                                                 tn_value *rets);

/* ---- what a handler is shown as ---- */

/** A name and a place, for people. One function of a binding often answers for many of its users';
 *  with a label the doctor's frames, errors and profiles show the user's. Kernels need none: they
 *  have tn_kernel.name, file and line. */
typedef struct tn_call_label tn_call_label;
/** @param name, file  are copied; @p file may be NULL
 *  @retval TN_NOMEM  @retval TN_INVALID  @p name or @p out is NULL */
TN_API TN_NODISCARD tn_status tn_call_label_new(const char *name, const char *file, int line,
                                                TN_OWNED tn_call_label **out);
/** Once no handler runs any more that has set it. NULL does nothing. */
TN_API void tn_call_label_free(TN_STOLEN tn_call_label *label);
/** From a handler, on its thread: its call is shown so from now until it returns. Does nothing when
 *  @p label is NULL, or to a call that no handler answers. */
TN_API void tn_call_set_label(tn_call *call, const tn_call_label *label);

/* ---- tensors whose calls go to a handler: for bindings to other languages ---- */

/** The process's handler of calls with such tensors, when no mode is on; NULL takes it away. One
 *  binding a process uses this (see tn_tensor_set_peer). */
TN_API TN_NODISCARD tn_status tn_set_tensor_handler(tn_call_mode_fn fn, void *ctx);
/** Whether calls with @p t go to the handler. Set before others see the tensor. */
TN_API TN_NODISCARD tn_status tn_tensor_set_handled(tn_tensor *t, bool on);
TN_API bool tn_tensor_is_handled(const tn_tensor *t);
/** Whether @p t was made by tn_tensor_from_number: a handler in another language is shown the
 * number and not the tensor. */
TN_API bool tn_tensor_is_number(const tn_tensor *t);
/** A handled tensor that has sizes, strides, dtype and device, and no memory: a shell around what
 *  the handler keeps elsewhere. @p strides NULL: contiguous. @retval TN_NOMEM  @retval TN_INVALID
 */
TN_API TN_NODISCARD tn_status tn_tensor_new_shell(int ndim, const int64_t *sizes,
                                                  const int64_t *strides, tn_dtype dtype,
                                                  tn_device device, TN_OWNED tn_tensor **out);

#ifdef __cplusplus
}
#endif
#endif
