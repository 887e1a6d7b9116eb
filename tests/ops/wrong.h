/* SPDX-License-Identifier: MIT */
/* tests/ops/wrong.h: arguments that do not fit: numbers out of every range, sizes and dtypes that
 * are others, tensors that are missing, repeat elements or are elsewhere; and whether a call that
 * failed has written something. For the tests of refusals. */
#ifndef TNI_TESTS_WRONG_H
#define TNI_TESTS_WRONG_H

#include "ops/sampling.h"

enum { WRONG_KEPT = 64 };
/* A tensor as it was. */
typedef struct wrong_kept {
    const tn_tensor *t;
    int ndim, dtype;
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS], offset;
    uint32_t flags, version;
    const void *storage, *grad_fn;
    size_t nbytes, bytes; /* of the storage, and as many of them as are in `copy` */
    char *copy;
} wrong_kept;

/* Numbers begin anew, by the sample and @p turn alone: a new sample does not change what others
 * meet. */
void wrong_begin(const tni_sample *s, uint64_t turn);
/* Below n. */
uint64_t wrong_pick(uint64_t n);
tn_dtype wrong_dtype(void);
/* Ones. */
tn_tensor *wrong_fresh(int ndim, const int64_t *sizes, tn_dtype dtype, tn_device device);
/* Something in the place of @p t, or NULL for nothing. */
tn_tensor *wrong_tensor(tn_tensor *t);
/* Something in the place of @p v. Lists of numbers are in one place: one at a time. */
tn_value wrong_value(const tn_value *v, const tni_schema_arg *arg);
/* What an argument is, optional or not. */
tni_type_kind wrong_kind(const tni_schema_type *type);
/* Remember the tensors of @p args; returns how many. */
int wrong_keep(const bundle *args, wrong_kept *all);
/* Whether they are as they were. */
const char *wrong_change(const wrong_kept *all, int n); /* what is not; "" */
bool wrong_unwritten(const wrong_kept *all, int n);
void wrong_forget(wrong_kept *all, int n);

#endif
