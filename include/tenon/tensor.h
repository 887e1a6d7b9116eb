/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/tensor.h
 * @brief Make, inspect and release tensors; devices; generators; DLPack; scopes.
 *
 * A tensor is an opaque, reference-counted handle: sizes, strides and an offset over a storage that
 * other tensors may share. Any thread may hold and release a handle and read it; writing data or
 * metadata needs the caller's own ordering, as for any C object. Operators are in tenon/ops.h.
 */
#ifndef TN_TENSOR_H
#define TN_TENSOR_H

#include "tenon/base.h"
#include "tenon/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_MAX_DIMS 64

typedef struct tn_tensor tn_tensor;
typedef struct tn_generator tn_generator;
typedef struct tn_storage tn_storage; /**< the memory behind tensors, see tenon/storage.h */
typedef uint64_t tn_keyset;           /**< set of dispatch keys, see tenon/dispatch.h */

/** Options of factories. Start from TN_TENSOR_OPTS_INIT or tn_opts(); NULL means the first. */
typedef struct tn_tensor_opts {
    uint32_t size;      /**< sizeof(tn_tensor_opts); any other is refused with TN_INVALID */
    int32_t dtype;      /**< tn_dtype; NONE: the default dtype, or what the operator infers */
    int32_t layout;     /**< tn_layout */
    tn_device device;   /**< NONE: the CPU, or the input's device for *_like */
    int32_t pin_memory; /**< tn_opt_bool */
} tn_tensor_opts;

#define TN_TENSOR_OPTS_INIT                                                                       \
    {                                                                                             \
        sizeof(tn_tensor_opts), TN_DTYPE_NONE, TN_LAYOUT_NONE, {TN_DEVICE_NONE, -1}, TN_BOOL_NONE \
    }

/** Options with a dtype and a device; either may be NONE. */
static inline tn_tensor_opts tn_opts(tn_dtype dtype, tn_device device)
{
    tn_tensor_opts o = TN_TENSOR_OPTS_INIT;
    o.dtype = dtype;
    o.device = device;
    return o;
}

/** Whether tensors that nobody wrote (those of empty, and what resize_ adds) are filled on the CPU:
 *  with NaN, or the largest number of a dtype without one. Off unless changed for this process.
 *  A program that reads such memory by mistake then does the same in every run. */
TN_API bool tn_fill_empty(void);
TN_API void tn_set_fill_empty(bool on);

/* ---- handles ---- */

/** Add a reference and return @p t, so that calls nest. NULL gives NULL. */
TN_API TN_OWNED tn_tensor *tn_tensor_ref(tn_tensor *t);
/** Drop a reference; the last one frees. NULL does nothing. */
TN_API void tn_tensor_unref(TN_STOLEN tn_tensor *t);
/** Release an array that an operator returned (tn_split and such): each tensor, then the array. */
TN_API void tn_tensor_list_free(TN_STOLEN tn_tensor **list, int64_t n);
/** How many references there are. For tests and diagnosis: other threads may change it. */
TN_API uint32_t tn_tensor_use_count(const tn_tensor *t);

/* ---- peers: for bindings to other languages ---- */

/**
 * Remember @p peer as the object that stands for @p t in another language, so that the same tensor
 * is the same object there. One binding a process uses this; it orders its own calls (an
 * interpreter has a lock for that), the library only reads it when @p t goes.
 *
 * @param release  NULL: the peer owns a reference of the tensor, and takes itself off (NULL, NULL)
 * before it drops that. Else the tensor owns the peer: @p release is called with it when the last
 * reference is dropped, on whatever thread that happens, with no lock held. It must not wait for a
 * lock that a caller of the library can hold
 */
TN_API void tn_tensor_set_peer(tn_tensor *t, void *peer, void (*release)(void *peer));
/** The peer; NULL when there is none. */
TN_API void *tn_tensor_peer(const tn_tensor *t);

/* ---- making ---- */

/**
 * Copy @p data, which is contiguous and has the elements of @p sizes, to a new CPU tensor.
 *
 * @param ndim   0 to TN_MAX_DIMS
 * @param sizes  @p ndim extents, each >= 0; may be NULL when @p ndim is 0
 * @param data   may be NULL when there are no elements
 * @retval TN_INVALID  a size is negative, or the byte count overflows
 */
TN_API TN_NODISCARD tn_status tn_tensor_from_data(const void *data, int ndim, const int64_t *sizes,
                                                  tn_dtype dtype, TN_OWNED tn_tensor **out);
/**
 * A CPU tensor over memory of the caller's.
 *
 * @param strides  in elements, each >= 0; NULL: contiguous
 * @param release  called once with @p ctx when no tensor uses the memory any more; may be NULL
 * On failure @p release is not called.
 */
TN_API TN_NODISCARD tn_status tn_tensor_from_blob(void *data, int ndim, const int64_t *sizes,
                                                  const int64_t *strides, tn_dtype dtype,
                                                  void (*release)(void *ctx), void *ctx,
                                                  TN_OWNED tn_tensor **out);
/** A 0-dimensional CPU tensor. @p dtype NONE: int64, the default dtype, bool or complex. */
TN_API TN_NODISCARD tn_status tn_tensor_from_scalar(tn_scalar value, tn_dtype dtype,
                                                    TN_OWNED tn_tensor **out);

/** The same, as operators see a bare number beside tensors: it takes part in finding the result's
 * dtype only by its kind (a float beside int64 tensors gives the default dtype, beside float16
 * float16). */
TN_API TN_NODISCARD tn_status tn_tensor_from_number(tn_scalar value, TN_OWNED tn_tensor **out);

/* ---- reading metadata; NULL gives 0, false or NULL ---- */

TN_API int tn_tensor_ndim(const tn_tensor *t);
TN_API TN_BORROWED const int64_t *tn_tensor_sizes(const tn_tensor *t);
TN_API TN_BORROWED const int64_t *tn_tensor_strides(const tn_tensor *t);
/** Size of one dimension; @p dim may be negative. @retval TN_INDEX  out of range */
TN_API TN_NODISCARD tn_status tn_tensor_size(const tn_tensor *t, int64_t dim, int64_t *out);
TN_API int64_t tn_tensor_numel(const tn_tensor *t);
TN_API int64_t tn_tensor_storage_offset(const tn_tensor *t); /**< in elements */
TN_API size_t tn_tensor_nbytes(const tn_tensor *t);          /**< numel * element size */
TN_API size_t tn_tensor_storage_nbytes(const tn_tensor *t);
TN_API tn_dtype tn_tensor_dtype(const tn_tensor *t);
TN_API tn_device tn_tensor_device(const tn_tensor *t);
TN_API tn_layout tn_tensor_layout(const tn_tensor *t);
/** First element; NULL for a meta tensor or one without elements. Who writes there what a recorded
 * operator made falsifies its gradient: a kernel of an operator without a derivative that asks for
 * such memory is refused. */
TN_API void *tn_tensor_data(const tn_tensor *t);
/** The same, for who only reads. */
TN_API const void *tn_tensor_const_data(const tn_tensor *t);
TN_API tn_keyset tn_tensor_keys(const tn_tensor *t);
TN_API bool tn_tensor_is_contiguous(const tn_tensor *t, tn_memory_format format);
TN_API bool tn_tensor_is_non_overlapping_and_dense(const tn_tensor *t);
TN_API bool tn_tensor_shares_storage(const tn_tensor *a, const tn_tensor *b);
TN_API bool tn_tensor_is_inference(const tn_tensor *t);
/** Writes counted so far. @retval TN_INVALID  an inference tensor, which counts none */
TN_API TN_NODISCARD tn_status tn_tensor_version(const tn_tensor *t, uint32_t *out);
TN_API bool tn_tensor_requires_grad(const tn_tensor *t);
/** @retval TN_INVALID  not a floating or complex tensor, or an inference tensor outside the mode */
TN_API TN_NODISCARD tn_status tn_tensor_set_requires_grad(tn_tensor *t, bool on);
/** "tensor([[1., 2.],\n        [3., 4.]])" and what is not the default behind it: device, dtype,
 *  requires_grad. More than 1000 elements are shown by their corners. Free with tn_string_free. */
TN_API TN_NODISCARD tn_status tn_tensor_to_string(const tn_tensor *t, TN_OWNED char **out);
TN_API void tn_string_free(TN_STOLEN char *text);

/* ---- modes of this thread ---- */

TN_API bool tn_grad_enabled(void);
/** Switch recording of gradients; returns what it was. */
TN_API bool tn_set_grad_enabled(bool on);
TN_API bool tn_inference_mode_enabled(void);
/** What tn_inference_enter changed; give it back to tn_inference_leave. */
typedef struct tn_inference_guard {
    uint64_t included, excluded;
    uint32_t flags, reserved;
} tn_inference_guard;
TN_API tn_inference_guard tn_inference_enter(bool on);
TN_API void tn_inference_leave(tn_inference_guard guard);

/* ---- random numbers: one Philox counter a generator, same bits on every device ---- */

TN_API TN_NODISCARD tn_status tn_generator_new(uint64_t seed, TN_OWNED tn_generator **out);
TN_API TN_OWNED tn_generator *tn_generator_ref(tn_generator *g);
TN_API void tn_generator_unref(TN_STOLEN tn_generator *g);
/** The process's own generator; never NULL. */
TN_API TN_BORROWED tn_generator *tn_default_generator(void);
/** Seed @p g (NULL: the default generator) and set its counter to 0. */
TN_API void tn_generator_seed(tn_generator *g, uint64_t seed);
typedef struct tn_generator_state {
    uint64_t seed, counter;
} tn_generator_state;
TN_API tn_generator_state tn_generator_get_state(tn_generator *g);
TN_API void tn_generator_set_state(tn_generator *g, tn_generator_state state);
/** Same as tn_generator_seed(NULL, seed). */
TN_API void tn_manual_seed(uint64_t seed);

/* ---- out-of-tree devices ---- */

/** What a device must be able to do. Functions are called from any thread. */
typedef struct tn_device_vtable {
    uint32_t size;  /**< sizeof(tn_device_vtable) */
    uint32_t flags; /**< 0 */
    /** At least @p nbytes on @p device; @p nbytes may be 0 (then *out may be NULL). */
    tn_status (*alloc)(void *ctx, tn_device device, size_t nbytes, void **out);
    void (*free)(void *ctx, tn_device device, void *ptr, size_t nbytes);
    /** Copy between host and device, or within the device. NULL @p host pointers never occur. */
    tn_status (*to_host)(void *ctx, tn_device device, void *host, const void *ptr, size_t nbytes);
    tn_status (*from_host)(void *ctx, tn_device device, void *ptr, const void *host, size_t nbytes);
    void *ctx;
} tn_device_vtable;

/**
 * Claim a free device slot under @p name: keys, devices and messages print that name from then on.
 *
 * @param name    a letter, then letters, digits or '_', at most 15 characters
 * @param vtable  copied
 * @retval TN_INVALID  the name is taken or malformed, a function is missing, or no slot is free
 */
TN_API TN_NODISCARD tn_status tn_device_register(const char *name, const tn_device_vtable *vtable,
                                                 tn_device_type *out);

/* ---- DLPack: exchange with other libraries, without copying ---- */

struct DLManagedTensorVersioned;
struct DLManagedTensor;

/** Describe @p t for another library, which calls the deleter when done. Shares memory.
 *  @retval TN_UNSUPPORTED  DLPack has no such device or dtype; a tensor that requires grad */
TN_API TN_NODISCARD tn_status tn_to_dlpack(tn_tensor *t,
                                           TN_OWNED struct DLManagedTensorVersioned **out);
/** A tensor over another library's memory. Takes @p m and calls its deleter when done; on failure
 *  @p m still belongs to the caller. @retval TN_INVALID  it contradicts itself
 *  @retval TN_UNSUPPORTED  a newer major version, a device or dtype that Tenon does not have, or
 *  memory marked read-only */
TN_API TN_NODISCARD tn_status tn_from_dlpack(struct DLManagedTensorVersioned *m,
                                             TN_OWNED tn_tensor **out);
/** The same for the older, unversioned struct. */
TN_API TN_NODISCARD tn_status tn_from_dlpack_legacy(struct DLManagedTensor *m,
                                                    TN_OWNED tn_tensor **out);

/* ---- scopes: the second face of the API ---- */

/**
 * Between tn_scope_enter and tn_scope_leave the functions tnx_* of tenon/ops.h return tensors that
 * belong to the scope. The first failure sticks: from then on tnx_* return NULL at once, and
 * tn_scope_leave says what went wrong. Scopes nest and belong to the thread that entered them:
 * leaving one leaves those that were entered after it and are still open, whose handles are gone
 * then. A hook, a node or a function with a gradient of its own cannot leave a scope around the
 * pass that calls it.
 */
typedef struct tn_scope tn_scope;
/** @retval TN_NOMEM */
TN_API TN_NODISCARD tn_status tn_scope_enter(TN_OWNED tn_scope **out);
/** Release the scope's tensors; returns the first failure inside, and makes it the last error: the
 *  scope's own, or else that of a scope inside that was still open. @retval TN_INVALID  also: it is
 *  not open on this thread, or around the pass that runs; then nothing is left */
TN_API TN_NODISCARD tn_status tn_scope_leave(TN_STOLEN tn_scope *scope);
/** The failure so far, TN_OK when none. */
TN_API tn_status tn_scope_status(const tn_scope *scope);
/** Take @p t out of the innermost scope: the caller owns a reference that outlives it. NULL gives
 *  NULL. */
TN_API TN_OWNED tn_tensor *tn_scope_keep(tn_tensor *t);
/** Hand a tensor to the innermost scope, which releases it; returns @p t. On failure (no scope, no
 *  memory) @p t is released and NULL returned. */
TN_API TN_BORROWED tn_tensor *tn_scope_own(TN_STOLEN tn_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
