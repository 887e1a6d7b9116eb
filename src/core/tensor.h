/* SPDX-License-Identifier: MIT */
/* core/tensor.h: what a tensor is made of. The public half is tenon/tensor.h. */
#ifndef TNI_CORE_TENSOR_H
#define TNI_CORE_TENSOR_H

#include "tenon/tensor.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/ref.h"
#include "core/dtype.h"
#include "core/keys.h"

/* Dimensions that need no block of their own. */
#if defined(TN_STRESS) && TN_STRESS
#    define TNI_INLINE_DIMS 1
#else
#    define TNI_INLINE_DIMS 6
#endif

/* Bytes on a device, shared by tensors. A meta storage has no data but the right byte count.
 * Small CPU storages keep their bytes right behind the header: one block, one free. The header is
 * one cache line, so the bytes behind it are 64-byte aligned too. */
typedef struct tn_storage {
    tni_object object;
    void *data;      /* NULL on meta and for no bytes */
    size_t nbytes;   /* what tensors may use */
    size_t capacity; /* what `data` was allocated with (of a fake storage: would have been); 0 when
                        the bytes are inline or foreign */
    tn_device device;
    uint8_t resizable;
    uint8_t inline_data;      /* data lies behind this header */
    uint16_t block_nbytes;    /* of the block that holds header and inline data */
    _Atomic uint32_t version; /* see Note [Version counters] */
    uint8_t side;             /* TNI_SIDE_…: what lies behind this header */
    uint8_t reserved[3];
    uint32_t made_in; /* the transform that the thread was in, see Note [Captured tensors] */
    uint32_t reserved2;
} tni_storage;

enum {
    TNI_SIDE_NONE = 0,
    TNI_SIDE_FOREIGN, /* a tni_foreign */
    TNI_SIDE_FAKE,    /* a tni_fake_side, see core/fake.h */
};

/* Memory of others: whom to tell when no tensor uses it any more. */
typedef struct tni_foreign {
    void (*release)(void *ctx); /* may be NULL */
    void *ctx;
} tni_foreign;

/* Flags that follow from sizes and strides, recomputed when these change. */
enum {
    TNI_CONTIGUOUS = 1u << 0,
    TNI_CHANNELS_LAST = 1u << 1,    /* contiguous in channels-last order, 4-D */
    TNI_CHANNELS_LAST_3D = 1u << 2, /* 5-D */
    TNI_DENSE = 1u << 3,            /* non-overlapping and dense */
    TNI_GEOMETRY_FLAGS = 0xfu,
    TNI_WRAPPED_NUMBER = 1u << 4, /* came from a bare scalar: promotes weakly */
    /* A leaf that was told to, or a result of recorded calls. A view also requires grad when its
     * base does: ask tn_tensor_requires_grad. */
    TNI_REQUIRES_GRAD = 1u << 5,
    TNI_HAS_GRAD_FN = 1u << 6, /* a result of recorded calls */
    TNI_HAS_TANGENT = 1u << 7, /* forward mode; a view also has one when its base does */
    /* Of a view: how it was made, and so whether it may be written while gradients are recorded. */
    TNI_VIEW_MULTI_OUTPUT = 1u << 8,
    TNI_VIEW_NO_GRAD = 2u << 8,
    TNI_VIEW_INFERENCE = 3u << 8,
    TNI_VIEW_CUSTOM = 4u << 8, /* made inside a custom function */
    TNI_VIEW_CREATION = 7u << 8,
    TNI_NO_TANGENT = 1u << 11, /* a view that does not have the tangent of its base: a primal */
};

/* Note [Version counters]
 * A counter is shared by a tensor, its views and its detached aliases. That of a tensor made with
 * its storage lies in the storage, which all who share the counter hold anyway: sharing it costs
 * nothing. A tensor made over an existing storage (`_unsafe_view`, `.data`) counts for itself, in
 * its own header; its views hold a weak reference to it, which keeps the header's memory (not its
 * storage, not its gradient graph) alive. An inference tensor has no counter. Whoever gives a
 * tensor another storage must give it a counter of its own first. */
/* What autograd hangs on a tensor begins with this, so that the tensor can let go of it. */
typedef struct tni_autograd_meta {
    void (*destroy)(struct tni_autograd_meta *meta);
    struct tni_names *names; /* owned; not NULL exactly when the tensor has the key Named */
} tni_autograd_meta;

struct tn_tensor {
    tni_object object;
    tn_keyset keys;
    tni_storage *storage; /* strong; never NULL */
    void *data;           /* storage->data + offset, cached; NULL on meta or without elements */
    int64_t numel;
    int64_t offset; /* in elements */
    int64_t *sizes; /* ndim sizes, then ndim strides; dims_inline or a heap block */
    int64_t *strides;
    _Atomic uint32_t *versions; /* counts writes; NULL for an inference tensor */
    uint32_t flags;
    /* These six bytes and two of nothing are the head of a tni_flight_tensor and of a tni_input:
     * copied as one word. */
    uint8_t ndim;
    int8_t dtype;     /* tn_dtype */
    tn_device device; /* what device() says; for a fake tensor not the storage's */
    uint16_t reserved;
    /* From here to the dimensions all is zero in a new tensor: one line's worth of wide stores. */
    struct tn_tensor *version_owner; /* weak; whose header the counter is in, when not our own */
    tni_autograd_meta *autograd;     /* NULL until needed; owned; see autograd/ */
    struct tn_tensor
        *view_base; /* strong; of a differentiable view: what it is at root a view of */
    /* Strong; NULL for a leaf. Here and not in what `autograd` points to: nearly every tensor of a
     * graph has a node, and few have anything else. */
    struct tn_node *grad_fn;          /* of a view: as of view_version */
    void *peer;                       /* a language binding's object; see tn_tensor_set_peer */
    void (*release_peer)(void *peer); /* not NULL: the tensor owns its peer */
    uint32_t view_version;            /* the counter when its history was last right */
    uint32_t output;                  /* which result of grad_fn this tensor is */
    _Atomic uint32_t version;
    int64_t dims_inline[2 * TNI_INLINE_DIMS];
};

TNI_DEFINE_AUTO(tn_tensor, tn_tensor_unref)

static inline void tni_storage_unref(tni_storage *s)
{
    tni_unref(&s->object);
}
TNI_DEFINE_AUTO(tni_storage, tni_storage_unref)

/* What a tensor looks like, before it exists. Shape functions fill it; not zeroed. */
typedef struct tni_geometry {
    int ndim;
    tn_dtype dtype;
    tn_device device;
    bool has_strides; /* false: contiguous */
    int64_t offset;   /* views only */
    int64_t sizes[TN_MAX_DIMS];
    int64_t strides[TN_MAX_DIMS];
} tni_geometry;

/* ---- storages ---- */

/* @retval TN_NOMEM, TN_DEVICE */
TN_NODISCARD tn_status tni_storage_new(tn_device device, size_t nbytes, TN_OWNED tni_storage **out);
/* A storage over memory of others; @p release (may be NULL) is called with @p ctx when it goes.
 * @retval TN_NOMEM  @p release was not called */
TN_NODISCARD tn_status tni_storage_foreign(void *data, size_t nbytes, tn_device device,
                                           void (*release)(void *ctx), void *ctx,
                                           TN_OWNED tni_storage **out);
/* Of a foreign storage: whom to tell, once it is sure that nothing fails any more. */
void tni_storage_set_release(tni_storage *s, void (*release)(void *ctx), void *ctx);
/* Change the byte count, keeping min(old, new) bytes. Tensors remember where their data is, so
 * memory that several of them share does not move: it can shrink, and grow as far as it once was.
 * The one tensor that is left must look again: tni_tensor_refresh_data.
 * @retval TN_INVALID  not resizable, or shared and would have to move; @retval TN_NOMEM, TN_DEVICE
 */
TN_NODISCARD tn_status tni_storage_resize(tni_storage *s, size_t nbytes);
/* Whether it will, but for memory that cannot be had; *stay: without new memory. */
TN_NODISCARD tn_status tni_storage_check_resize(const tni_storage *s, size_t nbytes, bool *stay);
/* How many bytes fit where the data already is; of a fake storage, where it would be. */
size_t tni_storage_room(const tni_storage *s);

/* ---- tensors ---- */

/* A fresh tensor with its own storage. @p strides NULL: contiguous. Keys follow the device and
 * inference mode. Checks: ndim, negative sizes ("Trying to create tensor with negative dimension
 * -1:
 * [-1]"), byte overflow ("Storage size calculation overflowed with sizes=[...]"). */
TN_NODISCARD tn_status tni_tensor_new(int ndim, const int64_t *sizes, const int64_t *strides,
                                      tn_dtype dtype, tn_device device, TN_OWNED tn_tensor **out);
/* The same from a geometry. */
TN_NODISCARD tn_status tni_tensor_from_geometry(const tni_geometry *g, TN_OWNED tn_tensor **out);
/* A tensor over @p storage (takes a reference of its own). Own version counter. Keys are @p keys.
 */
TN_NODISCARD tn_status tni_tensor_over(tni_storage *storage, int ndim, const int64_t *sizes,
                                       const int64_t *strides, int64_t offset, tn_dtype dtype,
                                       tn_keyset keys, tn_device device, TN_OWNED tn_tensor **out);
/* An alias of @p base: same storage, dtype, device and keys, other geometry, OWN version counter.
 * The ADInplaceOrView layer then shares the counter (tni_tensor_share_version). Not checked against
 * the storage's size; view rules only make geometries inside it. */
TN_NODISCARD tn_status tni_tensor_alias(const tn_tensor *base, int ndim, const int64_t *sizes,
                                        const int64_t *strides, int64_t offset,
                                        TN_OWNED tn_tensor **out);
/* The same for the geometry that a view rule made; its dtype and device are not looked at. */
TN_NODISCARD tn_status tni_tensor_view(const tn_tensor *base, const tni_geometry *g,
                                       TN_OWNED tn_tensor **out);
/* Make @p t count its writes together with @p base. */
void tni_tensor_share_version_otherwise(tn_tensor *t, const tn_tensor *base);
static inline void tni_tensor_share_version(tn_tensor *t, const tn_tensor *base)
{
    /* Nearly always: the base was made with its storage, whose counter the view then uses too. */
    if (TNI_LIKELY(base->versions == &base->storage->version && t->storage == base->storage &&
                   t->version_owner == NULL))
        t->versions = base->versions;
    else
        tni_tensor_share_version_otherwise(t, base);
}
/* Count a write. @retval TN_INVALID  an inference tensor outside inference mode, with the
 * reference's text "Inplace update to inference tensor outside InferenceMode is not allowed. ..."
 */
TN_NODISCARD tn_status tni_tensor_bump_version(tn_tensor *t);
/* Change sizes and strides in place (in-place views, resize_). @p strides NULL: contiguous. */
TN_NODISCARD tn_status tni_tensor_set_geometry(tn_tensor *t, int ndim, const int64_t *sizes,
                                               const int64_t *strides, int64_t offset);
/* Give @p t the storage, geometry and dtype of @p source, which is of the same kind (keys but for
 * autograd's). It goes on counting writes from where it was, for itself alone when the storage is
 * another one. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_tensor_set_data(tn_tensor *t, const tn_tensor *source);
/* After its storage moved: where the first element is now. */
void tni_tensor_refresh_data(tn_tensor *t);
/* resize_: new sizes, contiguous, growing the storage when needed; keeps data. The sizes it has
 * already change nothing, strides included. */
TN_NODISCARD tn_status tni_tensor_resize(tn_tensor *t, int ndim, const int64_t *sizes);
/* Undo that: the geometry that it had, in a storage of as many bytes as it had then. Without memory
 * for that, of as much as it can be. */
void tni_tensor_put_back(tn_tensor *t, const tni_geometry *was, size_t nbytes);
/* Whether it will, but for memory that cannot be had. */
TN_NODISCARD tn_status tni_tensor_check_resize(const tn_tensor *t, int ndim, const int64_t *sizes);
/* Mark the bytes of the CPU storage of @p t from @p from on as ones that nobody wrote
 * (tn_set_fill_empty); a tensor without memory is left as it is. */
void tni_fill_unset(tn_tensor *t, size_t from);
/* Somebody is given the elements of @p t, to look or to write: noted for autograd, which asks
 * whether a kernel computed with them by itself (autograd/fallback.c). NULL: nothing. */
void tni_note_read(const tn_tensor *t);
/* Whether @p t may be written: fails where two of its elements lie at one place, found by strides
 * of 0 and by two dimensions that meet. @retval TN_INVALID  "unsupported operation: more than one
 * element of the written-to tensor refers to a single memory location. …" */
TN_NODISCARD tn_status tni_check_internal_overlap(const tn_tensor *t);
/* A dimension along which @p t reaches some place again: one of stride 0, or the smaller of two
 * that meet; -1 where no two meet. */
int tni_repeating_dim(const tn_tensor *t);
/* Whether @p input lies apart from @p written: fails where they are one, or both are dense and
 * their ranges meet. Of others nothing cheap tells. @retval TN_INVALID  "unsupported operation:
 * some elements of the input tensor and the written-to tensor refer to a single memory location. …"
 */
TN_NODISCARD tn_status tni_check_apart(const tn_tensor *written, const tn_tensor *input);

static inline tn_keyset tni_keys(const tn_tensor *t)
{
    return t->keys;
}
static inline bool tni_is_meta(const tn_tensor *t)
{
    return t->storage->device.type == TN_DEVICE_META;
}
/* Pretends to be on `device`; its storage is meta. See core/fake.h. */
static inline bool tni_is_fake(const tn_tensor *t)
{
    return (t->keys & TNI_FBIT(TN_KEY_FAKE)) != 0;
}
static inline size_t tni_itemsize(const tn_tensor *t)
{
    return tni_dtype_size((tn_dtype)t->dtype);
}
/* Neither an autograd key nor ADInplaceOrView. */
static inline bool tni_keys_are_inference(tn_keyset ks)
{
    return !(ks & (TNI_KS_AUTOGRAD | TNI_KS_ADINPLACE_OR_VIEW));
}

/* ---- geometry arithmetic (core/shape.c) ---- */

/* Check dimensions that a user gave for @p dtype, with the texts of tni_tensor_new, and write them
 * down with their strides (@p strides NULL: contiguous) and the bytes they need. g->dtype is set,
 * the device is not. */
TN_NODISCARD tn_status tni_geometry_check(int ndim, const int64_t *sizes, const int64_t *strides,
                                          tn_dtype dtype, tni_geometry *out, size_t *out_nbytes);
/* TNI_CONTIGUOUS | … for sizes and strides. */
uint32_t tni_geometry_flags(int ndim, const int64_t *sizes, const int64_t *strides);
void tni_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides);
/* Strides of a fresh tensor in this format; PRESERVE is not a format here.
 * @retval TN_INVALID  "required rank 4 tensor to use channels_last format" */
TN_NODISCARD tn_status tni_format_strides(tn_memory_format format, int ndim, const int64_t *sizes,
                                          int64_t *strides);
/* Dense strides that keep the order of @p from's strides (empty_like, clone with PRESERVE). */
void tni_preserve_strides(const tn_tensor *from, int64_t *strides);
/* strides-like-channels-last, to guess a format: CONTIGUOUS, CHANNELS_LAST or CHANNELS_LAST_3D. */
tn_memory_format tni_suggest_format(const tn_tensor *t);
/* Product of sizes; false when it overflows, also when a size 0 hides that: strides could not be
 * written down either. */
bool tni_numel(int ndim, const int64_t *sizes, int64_t *out);
/* Bytes needed: 0 if any size is 0, else itemsize * (offset + 1 + sum((size-1)*stride)). */
bool tni_required_bytes(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                        size_t itemsize, size_t *out);
/* Wrap a negative dimension. "Dimension out of range (expected to be in range of [-2, 1], but got
 * 5)"; for ndim 0 the range is [-1, 0]. */
TN_NODISCARD tn_status tni_wrap_dim(int64_t dim, int ndim, int *out);
/* "[2, 3]" into @p buffer, cut with "..." when it does not fit; returns buffer. */
char *tni_format_sizes(int ndim, const int64_t *sizes, char *buffer, size_t n);
#define TNI_SIZES_TEXT 512

#endif
