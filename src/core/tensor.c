/* SPDX-License-Identifier: MIT */
/* core/tensor.c: making, aliasing, changing and freeing tensors. What can be asked of one is in
 * core/tensor_info.c; what sizes and strides mean is in core/shape.c. */
#include "core/device.h"
#include "core/fake.h"
#include "core/names.h"
#include "core/state.h"
#include "core/storage.h"

#include <inttypes.h>
#include <string.h>

/* ---- freeing ---- */

static inline void release_tensor(tn_tensor *t)
{
    if (TNI_UNLIKELY(t->release_peer != NULL)) {
        void *peer = t->peer;
        t->peer = NULL;
        t->release_peer(peer);
    }
    if (TNI_UNLIKELY(t->autograd != NULL)) {
        tni_autograd_meta *meta = t->autograd;
        t->autograd = NULL;
        meta->destroy(meta);
    }
    if (t->grad_fn) {
        tni_object *fn = (tni_object *)(void *)t->grad_fn; /* which is what a node begins with */
        t->grad_fn = NULL;
        fn->type->unref(fn);
    }
    if (TNI_UNLIKELY(t->sizes != t->dims_inline))
        tni_block_free(t->sizes, 2 * (size_t)t->ndim * sizeof(int64_t));
    tni_storage_drop(t->storage);
    if (TNI_UNLIKELY(t->version_owner != NULL))
        tni_weak_unref(&t->version_owner->object);
    /* A root is nobody's view: this goes one step deep. Nearly always others have it too. */
    if (t->view_base) {
        tni_object *root = &t->view_base->object;
        uint64_t before =
            tni_counts_add(&root->counts, (uint64_t)0 - TNI_STRONG_ONE, memory_order_acq_rel);
        if (TNI_UNLIKELY((uint32_t)before == 1))
            tni_unref_last(root);
    }
}

static void tensor_release(void *object)
{
    release_tensor(object);
}

static void tensor_destroy(void *object)
{
    tni_block_free(object, sizeof(tn_tensor));
}

static const tni_type tensor_type = {"tensor", tensor_release, tensor_destroy, NULL};

tn_tensor *tn_tensor_ref(tn_tensor *t)
{
    if (t)
        tni_ref(&t->object);
    return t;
}

void tn_tensor_unref(tn_tensor *t)
{
    if (!t)
        return;
    /* The common case without indirect calls: nobody else has it. */
    if (TNI_LIKELY(atomic_load_explicit(&t->object.counts, memory_order_acquire) ==
                   TNI_COUNTS_FRESH)) {
        release_tensor(t);
        tni_block_free(t, sizeof *t);
        return;
    }
    tni_unref_slow(&t->object);
}

void tn_tensor_list_free(tn_tensor **list, int64_t n)
{
    if (!list)
        return;
    for (int64_t i = 0; i < n; i++)
        tn_tensor_unref(list[i]);
    tni_free(list);
}

void tn_tensor_set_peer(tn_tensor *t, void *peer, void (*release)(void *peer))
{
    if (!t)
        return;
    t->peer = peer;
    t->release_peer = peer ? release : NULL;
}

void *tn_tensor_peer(const tn_tensor *t)
{
    return t ? t->peer : NULL;
}

uint32_t tn_tensor_use_count(const tn_tensor *t)
{
    return t ? tni_strong_count(&t->object) : 0;
}

/* ---- texts of failures, out of the way of the short paths ---- */

static TNI_COLD tn_status bad_geometry(int ndim, const int64_t *sizes, const int64_t *strides)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(ndim >= 0 && ndim <= TN_MAX_DIMS, TN_INVALID,
             "a tensor of %d dimensions is not possible, expected 0 to %d", ndim, TN_MAX_DIMS);
    TN_CHECK(sizes || ndim == 0, TN_INVALID, "sizes is NULL, expected %d sizes", ndim);
    tni_format_sizes(ndim, sizes, a, sizeof a);
    for (int d = 0; d < ndim; d++)
        TN_CHECK(sizes[d] >= 0, TN_INVALID,
                 "Trying to create tensor with negative dimension %" PRId64 ": %s", sizes[d], a);
    if (strides) {
        tni_format_sizes(ndim, strides, b, sizeof b);
        for (int d = 0; d < ndim; d++)
            TN_CHECK(
                strides[d] >= 0, TN_INVALID,
                "as_strided: Negative strides are not supported at the moment, got strides: %s", b);
        TN_FAIL(TN_INVALID, "Storage size calculation overflowed with sizes=%s and strides=%s", a,
                b);
    }
    TN_FAIL(TN_INVALID, "Storage size calculation overflowed with sizes=%s", a);
}

static TNI_COLD tn_status bad_kind(tn_dtype dtype, tn_device device)
{
    char name[32];
    TN_CHECK(tn_dtype_valid(dtype), TN_TYPE, "%d is not a dtype", (int)dtype);
    TN_FAIL(TN_DEVICE, "cannot make a tensor on device %s: nothing provides this device",
            tn_device_format(device, name, sizeof name));
}

static TNI_COLD tn_status no_memory(void)
{
    TN_FAIL(TN_NOMEM, "cannot allocate a tensor of %zu bytes", sizeof(tn_tensor));
}

/* ---- making ---- */

/* Room for 2 * ndim numbers: in the tensor, or a block of its own when there are many. NULL when
 * there is no memory. */
static inline int64_t *dims_room(tn_tensor *t, int ndim)
{
    if (TNI_LIKELY(ndim <= TNI_INLINE_DIMS))
        return t->dims_inline;
    return tni_block_alloc(2 * (size_t)ndim * sizeof(int64_t));
}

static inline void dims_drop(tn_tensor *t, int64_t *dims, int ndim)
{
    if (TNI_UNLIKELY(dims != t->dims_inline))
        tni_block_free(dims, 2 * (size_t)ndim * sizeof(int64_t));
}

/* Sizes and contiguous strides into @p dims. False for a negative size or a product that overflows.
 */
static inline bool put_contiguous(int64_t *dims, int ndim, const int64_t *sizes, int64_t *numel)
{
    int64_t product = 1;
    bool empty = false;
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t size = sizes[d];
        dims[d] = size;
        dims[ndim + d] = product;
        if (size > 1) {
            if (TNI_UNLIKELY(!tni_i64_mul(product, size, &product)))
                return false;
        } else if (size <= 0) {
            if (TNI_UNLIKELY(size < 0))
                return false;
            empty = true;
        }
    }
    *numel = empty ? 0 : product;
    return true;
}

static inline void *data_of(const tni_storage *s, int64_t numel, int64_t offset, size_t itemsize)
{
    if (s->data == NULL || numel == 0)
        return NULL;
    return (char *)s->data + (size_t)offset * itemsize;
}

/* Everything but the dimensions. */
static inline void tensor_fill(tn_tensor *t, tni_storage *storage, _Atomic uint32_t *versions,
                               tn_keyset keys, tn_dtype dtype, tn_device device, int64_t numel,
                               int64_t offset)
{
    tni_object_init(&t->object, &tensor_type);
    t->keys = tni_keys_of_dtype(keys, dtype);
    t->storage = storage;
    t->data = data_of(storage, numel, offset, tni_dtype_size(dtype));
    t->numel = numel;
    t->offset = offset;
    t->versions = tni_keys_are_inference(keys) ? NULL : versions;
    t->dtype = (int8_t)dtype;
    t->device = device;
    t->reserved = 0;
    enum { ZERO = offsetof(tn_tensor, dims_inline) - offsetof(tn_tensor, version_owner) };
    _Static_assert(ZERO == 64, "a few wide stores");
    memset(&t->version_owner, 0, ZERO);
}

static inline void dims_fill(tn_tensor *t, int64_t *dims, int ndim, uint32_t flags)
{
    t->sizes = dims;
    t->strides = dims + ndim;
    t->ndim = (uint8_t)ndim;
    t->flags = flags;
}

/* A contiguous tensor is contiguous and dense; whether it is channels-last as well only 4 and 5
 * dimensions can say. */
static inline uint32_t contiguous_flags(int ndim, const int64_t *dims)
{
    if (TNI_LIKELY(ndim != 4 && ndim != 5))
        return TNI_CONTIGUOUS | TNI_DENSE;
    return tni_geometry_flags(ndim, dims, dims + ndim);
}

tn_status tni_geometry_check(int ndim, const int64_t *sizes, const int64_t *strides, tn_dtype dtype,
                             tni_geometry *out, size_t *out_nbytes)
{
    bool good = (unsigned)ndim <= TN_MAX_DIMS && (sizes || ndim == 0);
    for (int d = 0; good && d < ndim; d++)
        good = sizes[d] >= 0 && (!strides || strides[d] >= 0);
    int64_t numel;
    if (!good || !tni_numel(ndim, sizes, &numel))
        return bad_geometry(ndim, sizes, strides);
    out->ndim = ndim;
    out->dtype = dtype;
    out->offset = 0;
    out->has_strides = strides != NULL;
    for (int d = 0; d < ndim; d++)
        out->sizes[d] = sizes[d];
    if (strides)
        memcpy(out->strides, strides, (size_t)ndim * sizeof *strides);
    else
        tni_contiguous_strides(ndim, sizes, out->strides);
    if (!tni_required_bytes(ndim, out->sizes, out->strides, 0, tni_dtype_size(dtype), out_nbytes))
        return bad_geometry(ndim, sizes, strides);
    return TN_OK;
}

static tn_status new_strided(int ndim, const int64_t *sizes, const int64_t *strides, tn_dtype dtype,
                             tn_device device, tni_object *mode, tn_tensor **out)
{
    tni_geometry g;
    size_t nbytes;
    TN_TRY(tni_geometry_check(ndim, sizes, strides, dtype, &g, &nbytes));
    TN_AUTO(tni_storage) storage = NULL;
    tn_keyset keys = tni_fresh_keys[tni_tls.inference != 0][device.type];
    if (mode) {
        TN_TRY(tni_storage_fake(mode, nbytes, &storage));
        keys |= TNI_KS_FAKE;
    } else {
        TN_TRY(tni_storage_new(device, nbytes, &storage));
    }
    return tni_tensor_over(storage, ndim, sizes, strides, 0, dtype, keys, device, out);
}

/* A fresh contiguous tensor; a fake one of @p mode when that is not NULL. */
__attribute__((always_inline)) static inline tn_status new_contiguous(
    int ndim, const int64_t *sizes, tn_dtype dtype, tn_device device, tni_object *mode,
    tn_tensor **out)
{
    if (TNI_UNLIKELY((unsigned)ndim > TN_MAX_DIMS || (!sizes && ndim != 0)))
        return bad_geometry(ndim, sizes, NULL);

    tn_tensor *t = tni_block_alloc(sizeof *t);
    if (TNI_UNLIKELY(!t))
        return no_memory();
    int64_t *dims = dims_room(t, ndim);
    tni_storage *storage = NULL;
    tn_status status = TN_OK;
    int64_t numel = 0, nbytes;
    if (TNI_UNLIKELY(!dims))
        status = no_memory();
    else if (TNI_UNLIKELY(!put_contiguous(dims, ndim, sizes, &numel) ||
                          !tni_i64_mul(numel, (int64_t)tni_dtype_size(dtype), &nbytes)))
        status = bad_geometry(ndim, sizes, NULL);
    else if (mode)
        status = tni_storage_fake(mode, (size_t)nbytes, &storage);
    else if (TNI_UNLIKELY(!tni_storage_is_small(device, (size_t)nbytes)))
        status = tni_storage_new(device, (size_t)nbytes, &storage);
    else if (TNI_UNLIKELY(!(storage = tni_storage_small(device, (size_t)nbytes))))
        status = no_memory();
    if (TNI_UNLIKELY(status != TN_OK)) {
        if (dims)
            dims_drop(t, dims, ndim);
        tni_block_free(t, sizeof *t);
        return status;
    }
    dims_fill(t, dims, ndim, contiguous_flags(ndim, dims));
    tn_keyset keys = tni_fresh_keys[tni_tls.inference != 0][device.type];
    tensor_fill(t, storage, &storage->version, mode ? keys | TNI_KS_FAKE : keys, dtype, device,
                numel, 0);
    *out = t;
    return TN_OK;
}

static __attribute__((noinline)) tn_status new_otherwise(int ndim, const int64_t *sizes,
                                                         const int64_t *strides, tn_dtype dtype,
                                                         tn_device device, tn_tensor **out)
{
    if (device.type == TN_DEVICE_NONE)
        device.type = TN_DEVICE_CPU;
    if (TNI_UNLIKELY(!tni_dtype_ok(dtype) ||
                     (device.type != TN_DEVICE_CPU && device.type != TN_DEVICE_META &&
                      !tni_device_usable(device))))
        return bad_kind(dtype, device);
    device = tni_device_normal(device);
    if (strides)
        return new_strided(ndim, sizes, strides, dtype, device, NULL, out);
    return new_contiguous(ndim, sizes, dtype, device, NULL, out);
}

tn_status tni_tensor_new(int ndim, const int64_t *sizes, const int64_t *strides, tn_dtype dtype,
                         tn_device device, tn_tensor **out)
{
    if (TNI_UNLIKELY(tni_tls.faking))
        return tni_tensor_new_fake(tni_tls.fake_mode, ndim, sizes, strides, dtype, device, out);
    if (TNI_LIKELY(device.type == TN_DEVICE_CPU && !strides && tni_dtype_ok(dtype)))
        return new_contiguous(ndim, sizes, dtype, TN_CPU, NULL, out); /* nothing else to ask */
    return new_otherwise(ndim, sizes, strides, dtype, device, out);
}

tn_status tni_tensor_new_real(int ndim, const int64_t *sizes, const int64_t *strides,
                              tn_dtype dtype, tn_device device, tn_tensor **out)
{
    uint8_t faking = tni_tls.faking;
    tni_tls.faking = 0;
    tn_status status = tni_tensor_new(ndim, sizes, strides, dtype, device, out);
    tni_tls.faking = faking;
    return status;
}

tn_status tni_tensor_new_fake(tni_object *mode, int ndim, const int64_t *sizes,
                              const int64_t *strides, tn_dtype dtype, tn_device device,
                              tn_tensor **out)
{
    if (device.type == TN_DEVICE_NONE)
        device.type = TN_DEVICE_CPU;
    if (TNI_UNLIKELY(!tni_dtype_ok(dtype) || (unsigned)device.type >= TNI_NUM_BACKENDS))
        return bad_kind(dtype, device);
    device = tni_device_normal(device);
    if (strides)
        return new_strided(ndim, sizes, strides, dtype, device, mode, out);
    return new_contiguous(ndim, sizes, dtype, device, mode, out);
}

tn_status tni_tensor_from_geometry(const tni_geometry *g, tn_tensor **out)
{
    return tni_tensor_new(g->ndim, g->sizes, g->has_strides ? g->strides : NULL, g->dtype,
                          g->device, out);
}

/* Sizes and strides as given into @p dims, the element count, and the flags: the walk that copies
 * also sees whether they are contiguous, which most are. False as in put_contiguous. */
static inline bool put_strided(int64_t *dims, int ndim, const int64_t *sizes,
                               const int64_t *strides, int64_t *numel, uint32_t *flags)
{
    int64_t product = 1;
    bool empty = false, contiguous = true;
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t size = sizes[d];
        dims[d] = size;
        dims[ndim + d] = strides[d];
        if (size == 1)
            continue;
        contiguous &= strides[d] == product;
        if (size > 1) {
            if (TNI_UNLIKELY(!tni_i64_mul(product, size, &product)))
                return false;
        } else {
            if (TNI_UNLIKELY(size < 0))
                return false;
            empty = true;
        }
    }
    *numel = empty ? 0 : product;
    if (contiguous && ndim != 4 && ndim != 5)
        *flags = TNI_CONTIGUOUS | TNI_DENSE;
    else if (ndim == 2 && !empty && strides[0] == 1 && strides[1] == sizes[0])
        *flags = TNI_DENSE; /* a transposed matrix */
    else
        *flags = tni_geometry_flags(ndim, dims, dims + ndim);
    return true;
}

/* The common part of a tensor over a storage that exists. Checks what a caller may have computed
 * from user input; the storage's size is the caller's concern. */
__attribute__((always_inline)) static inline tn_status make_over(
    tni_storage *storage, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
    tn_dtype dtype, tn_keyset keys, tn_device device, tn_tensor **out)
{
    if (TNI_UNLIKELY((unsigned)ndim > TN_MAX_DIMS))
        return bad_geometry(ndim, sizes, strides);
    /* First of all, because a locked instruction waits for all stores before it. */
    tni_ref(&storage->object);
    tn_tensor *t = tni_block_alloc(sizeof *t);
    int64_t *dims = TNI_LIKELY(t != NULL) ? dims_room(t, ndim) : NULL;
    int64_t numel = 0;
    uint32_t flags = TNI_CONTIGUOUS | TNI_DENSE;
    bool good = dims != NULL;
    if (TNI_LIKELY(good)) {
        if (strides) {
            good = put_strided(dims, ndim, sizes, strides, &numel, &flags);
        } else {
            good = put_contiguous(dims, ndim, sizes, &numel);
            flags = good ? contiguous_flags(ndim, dims) : 0;
        }
    }
    if (TNI_UNLIKELY(!good)) {
        tni_storage_unref(storage);
        if (dims)
            dims_drop(t, dims, ndim);
        tni_block_free(t, sizeof *t);
        return dims ? bad_geometry(ndim, sizes, strides) : no_memory();
    }
    dims_fill(t, dims, ndim, flags);
    tensor_fill(t, storage, &t->version, keys, dtype, device, numel, offset);
    *out = t;
    return TN_OK;
}

tn_status tni_tensor_over(tni_storage *storage, int ndim, const int64_t *sizes,
                          const int64_t *strides, int64_t offset, tn_dtype dtype, tn_keyset keys,
                          tn_device device, tn_tensor **out)
{
    return make_over(storage, ndim, sizes, strides, offset, dtype, keys, device, out);
}

tn_status tni_tensor_alias(const tn_tensor *base, int ndim, const int64_t *sizes,
                           const int64_t *strides, int64_t offset, tn_tensor **out)
{
    return make_over(base->storage, ndim, sizes, strides, offset, (tn_dtype)base->dtype,
                     base->keys & ~TNI_FBIT(TN_KEY_PYTHON), base->device, out);
}

/* The short way: what every view of a few dimensions takes. */
tn_status tni_tensor_view(const tn_tensor *base, const tni_geometry *g, tn_tensor **out)
{
    const int64_t *strides = g->has_strides ? g->strides : NULL;
    int ndim = g->ndim;
    if (TNI_UNLIKELY((unsigned)ndim > TNI_INLINE_DIMS))
        return tni_tensor_alias(base, ndim, g->sizes, strides, g->offset, out);
    tn_tensor *t = tni_block_alloc(sizeof *t);
    if (TNI_UNLIKELY(!t))
        return no_memory();
    int64_t numel = 0;
    uint32_t flags = TNI_CONTIGUOUS | TNI_DENSE;
    bool good;
    if (strides) {
        good = put_strided(t->dims_inline, ndim, g->sizes, strides, &numel, &flags);
    } else {
        good = put_contiguous(t->dims_inline, ndim, g->sizes, &numel);
        if (good && TNI_UNLIKELY(ndim == 4 || ndim == 5))
            flags = contiguous_flags(ndim, t->dims_inline);
    }
    if (TNI_UNLIKELY(!good)) {
        tni_block_free(t, sizeof *t);
        return bad_geometry(ndim, g->sizes, strides);
    }
    tni_storage *storage = base->storage;
    tni_ref(&storage->object);
    tensor_fill(t, storage, &t->version, base->keys & ~TNI_FBIT(TN_KEY_PYTHON),
                (tn_dtype)base->dtype, base->device, numel, g->offset);
    dims_fill(t, t->dims_inline, ndim, flags);
    *out = t;
    return TN_OK;
}

/* ---- versions: see Note [Version counters] ---- */

void tni_tensor_share_version_otherwise(tn_tensor *t, const tn_tensor *base)
{
    if (t->versions == base->versions)
        return;
    tn_tensor *owner = NULL, *old = t->version_owner;
    bool in_storage = base->versions == &base->storage->version && t->storage == base->storage;
    if (TNI_UNLIKELY(base->versions && !in_storage)) {
        owner = base->version_owner ? base->version_owner : (tn_tensor *)(uintptr_t)base;
        tni_weak_ref(&owner->object);
    }
    t->versions = base->versions;
    t->version_owner = owner;
    if (TNI_UNLIKELY(old != NULL))
        tni_weak_unref(&old->object);
}

static TNI_COLD tn_status refuse_inference_write(void)
{
    TN_FAIL(
        TN_INVALID,
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
        "clone to get a normal tensor before doing inplace update.See "
        "https://github.com/pytorch/rfcs/pull/17 for more details.");
}

tn_status tni_tensor_bump_version(tn_tensor *t)
{
    if (TNI_UNLIKELY(!t->versions))
        return tni_tls.inference ? TN_OK : refuse_inference_write();
    tni_count_up(t->versions);
    return TN_OK;
}

/* ---- changing ---- */

void tni_tensor_refresh_data(tn_tensor *t)
{
    t->data = data_of(t->storage, t->numel, t->offset, tni_itemsize(t));
}

/* Put new dimensions in place. @p dims holds them when they need a block of their own. */
static void replace_dims(tn_tensor *t, int64_t *dims, int ndim, const int64_t *pair)
{
    dims_drop(t, t->sizes, t->ndim);
    memcpy(dims, pair, 2 * (size_t)ndim * sizeof(int64_t));
    dims_fill(t, dims, ndim,
              (t->flags & ~(uint32_t)TNI_GEOMETRY_FLAGS) |
                  tni_geometry_flags(ndim, dims, dims + ndim));
}

/* Check and collect new dimensions: sizes, then strides. They may lie in the tensor itself. */
static tn_status collect_dims(int ndim, const int64_t *sizes, const int64_t *strides, int64_t *pair,
                              int64_t *numel)
{
    if ((unsigned)ndim > TN_MAX_DIMS || (!sizes && ndim != 0))
        return bad_geometry(ndim, sizes, strides);
    if (!put_contiguous(pair, ndim, sizes, numel))
        return bad_geometry(ndim, sizes, strides);
    if (strides && ndim)
        memcpy(pair + ndim, strides, (size_t)ndim * sizeof(int64_t));
    return TN_OK;
}

tn_status tni_tensor_set_geometry(tn_tensor *t, int ndim, const int64_t *sizes,
                                  const int64_t *strides, int64_t offset)
{
    int64_t pair[2 * TN_MAX_DIMS], numel;
    TN_TRY(collect_dims(ndim, sizes, strides, pair, &numel));
    int64_t *dims = dims_room(t, ndim);
    if (!dims)
        return no_memory();
    if (TNI_UNLIKELY((t->keys & TNI_KS_NAMED) && ndim != t->ndim))
        tni_names_drop(t);
    replace_dims(t, dims, ndim, pair);
    t->numel = numel;
    t->offset = offset;
    tni_tensor_refresh_data(t);
    return TN_OK;
}

/* The counter may lie in a storage that is about to go. */
static void own_version(tn_tensor *t)
{
    if (!t->versions || t->versions == &t->version)
        return;
    atomic_store_explicit(&t->version, atomic_load_explicit(t->versions, memory_order_relaxed),
                          memory_order_relaxed);
    t->versions = &t->version;
    if (t->version_owner)
        tni_weak_unref(&t->version_owner->object);
    t->version_owner = NULL;
}

tn_status tni_tensor_set_data(tn_tensor *t, const tn_tensor *source)
{
    if (t == source)
        return TN_OK;
    TN_TRY(
        tni_tensor_set_geometry(t, source->ndim, source->sizes, source->strides, source->offset));
    if (t->storage != source->storage) /* else others go on seeing what is written */
        own_version(t);
    tni_names_drop(t);
    tni_storage *old = t->storage;
    tni_ref(&source->storage->object);
    t->storage = source->storage;
    t->dtype = source->dtype;
    t->keys = tni_keys_of_dtype(t->keys, t->dtype);
    t->device = source->device;
    tni_tensor_refresh_data(t);
    tni_storage_drop(old);
    return TN_OK;
}

tn_status tni_tensor_check_resize(const tn_tensor *t, int ndim, const int64_t *sizes)
{
    int64_t pair[2 * TN_MAX_DIMS], numel;
    size_t need;
    bool stay;
    TN_TRY(collect_dims(ndim, sizes, NULL, pair, &numel));
    if (!tni_required_bytes(ndim, pair, pair + ndim, t->offset, tni_itemsize(t), &need))
        return bad_geometry(ndim, sizes, NULL);
    return need > t->storage->nbytes ? tni_storage_check_resize(t->storage, need, &stay) : TN_OK;
}

tn_status tni_tensor_resize(tn_tensor *t, int ndim, const int64_t *sizes)
{
    if (ndim == t->ndim &&
        (ndim == 0 || (sizes && memcmp(sizes, t->sizes, (size_t)ndim * sizeof *sizes) == 0)))
        return TN_OK;
    if (TNI_UNLIKELY(t->keys & TNI_KS_NAMED))
        return tni_names_refuse_resize(t, ndim, sizes);
    int64_t pair[2 * TN_MAX_DIMS], numel;
    size_t need;
    TN_TRY(collect_dims(ndim, sizes, NULL, pair, &numel));
    if (!tni_required_bytes(ndim, pair, pair + ndim, t->offset, tni_itemsize(t), &need))
        return bad_geometry(ndim, sizes, NULL);
    int64_t *dims = dims_room(t, ndim);
    if (!dims)
        return no_memory();
    if (need > t->storage->nbytes) {
        tn_status status = tni_storage_resize(t->storage, need);
        if (status != TN_OK) {
            dims_drop(t, dims, ndim);
            return status;
        }
    }
    replace_dims(t, dims, ndim, pair);
    t->numel = numel;
    tni_tensor_refresh_data(t);
    return TN_OK;
}

void tni_tensor_put_back(tn_tensor *t, const tni_geometry *was, size_t nbytes)
{
    /* Room for as many dimensions may be missing now: then it stays as large as it has become. */
    if (tni_tensor_set_geometry(t, was->ndim, was->sizes, was->strides, was->offset) != TN_OK ||
        t->storage->nbytes <= nbytes)
        return;
    if (tni_storage_resize(t->storage, nbytes) != TN_OK)
        t->storage->nbytes = nbytes; /* in the memory that it has */
    tni_tensor_refresh_data(t);
}
