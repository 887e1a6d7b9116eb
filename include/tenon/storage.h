/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/storage.h
 * @brief The memory behind tensors: sharing it, asking about it, and tensors over it.
 *
 * A storage is a reference-counted handle to bytes on one device. Tensors that are views of each
 * other share one. `set_` (tn_set_storage_ and its kin in tenon/ops.h) makes a tensor another name
 * for a storage. Any thread may hold and release a handle and read it.
 */
#ifndef TN_STORAGE_H
#define TN_STORAGE_H

#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A new storage. What is in it is not said.
 *  @retval TN_NOMEM, TN_DEVICE */
TN_API TN_NODISCARD tn_status tn_storage_new(tn_device device, size_t nbytes,
                                             TN_OWNED tn_storage **out);
/** The storage of @p t; NULL gives NULL. */
TN_API TN_OWNED tn_storage *tn_tensor_storage(const tn_tensor *t);
/** Add a reference and return @p s, so that calls nest. NULL gives NULL. */
TN_API TN_OWNED tn_storage *tn_storage_ref(tn_storage *s);
/** Drop a reference; the last one frees the memory. NULL does nothing. */
TN_API void tn_storage_unref(TN_STOLEN tn_storage *s);
/** How many tensors and handles there are. For tests and diagnosis: other threads may change it. */
TN_API uint32_t tn_storage_use_count(const tn_storage *s);

/* ---- reading; NULL gives 0 or NULL ---- */

/** First byte; NULL on meta and where there are no bytes. */
TN_API void *tn_storage_data(const tn_storage *s);
TN_API size_t tn_storage_nbytes(const tn_storage *s);
TN_API tn_device tn_storage_device(const tn_storage *s);
/** False for memory of others (tn_tensor_from_blob, DLPack). */
TN_API bool tn_storage_resizable(const tn_storage *s);

/**
 * Change the number of bytes, keeping those that remain. Memory that tensors use does not move: it
 * can shrink, and grow as far as it once was. A tensor that reaches beyond the new end must not be
 * used until the storage is as large again.
 *
 * @retval TN_INVALID  not resizable; or it would have to move while a tensor uses it
 * @retval TN_NOMEM, TN_DEVICE
 */
TN_API TN_NODISCARD tn_status tn_storage_resize(tn_storage *s, size_t nbytes);

#ifdef __cplusplus
}
#endif
#endif
