/* SPDX-License-Identifier: MIT */
/* core/names.c: names of dimensions: kept, asked for, written out. See Note [Named tensors]. */
#include "core/names.h"

#include <stdio.h>

#include "tenon/names.h"

/* ---- kept ---- */

tn_status tni_names_new(const char *const *names, int n, tni_names **out)
{
    size_t nbytes = sizeof(tni_names) + (size_t)n * sizeof(char *);
    for (int i = 0; i < n; i++)
        nbytes += names[i] ? strlen(names[i]) + 1 : 0;
    tni_names *made = tni_block_alloc(nbytes);
    TN_CHECK(made, TN_NOMEM, "cannot allocate %zu bytes for names of dimensions", nbytes);
    atomic_init(&made->n_owners, 1);
    made->n = n;
    made->nbytes = nbytes;
    char *text = (char *)&made->at[n];
    for (int i = 0; i < n; i++) {
        made->at[i] = names[i] ? text : NULL;
        if (!names[i])
            continue;
        size_t length = strlen(names[i]) + 1;
        memcpy(text, names[i], length);
        text += length;
    }
    *out = made;
    return TN_OK;
}

tni_names *tni_names_ref(tni_names *names)
{
    atomic_fetch_add_explicit(&names->n_owners, 1, memory_order_relaxed);
    return names;
}

void tni_names_unref(tni_names *names)
{
    if (names && atomic_fetch_sub_explicit(&names->n_owners, 1, memory_order_acq_rel) == 1)
        tni_block_free(names, names->nbytes);
}

void tni_names_drop(tn_tensor *t)
{
    if (!(t->keys & TNI_KS_NAMED))
        return;
    t->keys &= ~TNI_KS_NAMED;
    tni_names_unref(TN_MOVE(t->autograd->names));
}

/* ---- asked for ---- */

bool tn_tensor_has_names(const tn_tensor *t)
{
    return tni_names_of(t) != NULL;
}

const char *tn_tensor_name(const tn_tensor *t, int64_t dim)
{
    const tni_names *names = tni_names_of(t);
    int at;
    if (!names || dim < -names->n || dim >= names->n)
        return NULL;
    at = (int)(dim < 0 ? dim + names->n : dim);
    return names->at[at];
}

tn_status tn_tensor_find_name(const tn_tensor *t, const char *name, int *out)
{
    TN_CHECK(t && name && out, TN_INVALID, "tn_tensor_find_name: an argument is NULL");
    const tni_names *names = tni_names_of(t);
    char text[TNI_NAMES_TEXT];
    for (int i = 0; names && i < names->n; i++)
        if (tni_name_equal(names->at[i], name)) {
            *out = i;
            return TN_OK;
        }
    TN_FAIL(TN_INVALID, "Name '%s' not found in Tensor%s.", name, tni_names_format_of(t, text));
}

/* ---- written out ---- */

char *tni_names_format(const char *const *names, int n, char buffer[TNI_NAMES_TEXT])
{
    size_t at = 0;
    for (int i = 0; i < n && at < TNI_NAMES_TEXT; i++) {
        const char *quote = names && names[i] ? "'" : "";
        int wrote = snprintf(buffer + at, TNI_NAMES_TEXT - at, "%s%s%s%s", i ? ", " : "[", quote,
                             names && names[i] ? names[i] : "None", quote);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    if (at < TNI_NAMES_TEXT)
        snprintf(buffer + at, TNI_NAMES_TEXT - at, n > 0 ? "]" : "[]");
    return buffer;
}

char *tni_names_format_of(const tn_tensor *t, char buffer[TNI_NAMES_TEXT])
{
    const tni_names *names = tni_names_of(t);
    return tni_names_format(names ? names->at : NULL, t->ndim, buffer);
}

tn_status tni_names_refuse_resize(const tn_tensor *t, int ndim, const int64_t *sizes)
{
    char names[TNI_NAMES_TEXT], have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    TN_FAIL(TN_INVALID,
            "Cannot resize named tensor with resize_ or resize_as_ (tried to resize Tensor%s with "
            "size %s to %s). This may be caused by passing a named tensor as an `out=` argument; "
            "please ensure that the sizes are the same. ",
            tni_names_format(t->autograd->names->at, t->autograd->names->n, names),
            tni_format_sizes(t->ndim, t->sizes, have, sizeof have),
            tni_format_sizes(ndim, sizes, want, sizeof want));
}
