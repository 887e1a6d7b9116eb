/* SPDX-License-Identifier: MIT */
/* core/names.h: names of dimensions, as a tensor has them. The public half is tenon/names.h; the
 * layer that runs operators on named tensors is names/.
 *
 * Note [Named tensors]
 * A tensor with a name has the key Named in its set, and its names in what autograd hangs on it
 * (struct tni_autograd_meta), which other tensors do not have: they pay nothing. Tensors that are
 * made over the storage of a named one begin without names; who makes them gives them theirs. While
 * the thread excludes the key (in a backward pass, in the kernels below it) named tensors look like
 * any other. */
#ifndef TNI_CORE_NAMES_H
#define TNI_CORE_NAMES_H

#include <string.h>
#include "core/state.h"
#include "core/tensor.h"

/* Names of some dimensions, for ever the same: shared by the tensors that have them. */
typedef struct tni_names {
    _Atomic uint32_t n_owners;
    int n;
    size_t nbytes;
    const char *at[]; /* NULL: that dimension has none. The texts lie behind them */
} tni_names;

/* A copy of @p names, whose texts may be anybody's. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_names_new(const char *const *names, int n, TN_OWNED tni_names **out);
tni_names *tni_names_ref(tni_names *names);
void tni_names_unref(TN_STOLEN tni_names *names); /* NULL does nothing */
TNI_DEFINE_AUTO(tni_names, tni_names_unref)

/* The names of @p t, NULL for none: also where this thread does not look at names. */
static inline const tni_names *tni_names_of(const tn_tensor *t)
{
    return TNI_UNLIKELY(t && tni_keyset_minus(t->keys, tni_excluded(&tni_tls)) & TNI_KS_NAMED)
               ? t->autograd->names
               : NULL;
}
/* Take @p t's names away. */
void tni_names_drop(tn_tensor *t);

static inline bool tni_name_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}
/* "['N', None]" into @p buffer, cut where it does not fit; returns buffer. */
#define TNI_NAMES_TEXT 400
char *tni_names_format(const char *const *names, int n, char buffer[TNI_NAMES_TEXT]);
/* The names of @p t as text. */
char *tni_names_format_of(const tn_tensor *t, char buffer[TNI_NAMES_TEXT]);

/* Sizes of a tensor with names stay. @retval TN_INVALID  "Cannot resize named tensor …" */
TN_NODISCARD TNI_COLD tn_status tni_names_refuse_resize(const tn_tensor *t, int ndim,
                                                        const int64_t *sizes);

#endif
