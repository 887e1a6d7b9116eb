/* SPDX-License-Identifier: MIT */
/* cpu/triangle.c: tril and triu: each row is kept up to, or from, the diagonal. */
#include <string.h>
#include "base/pool.h"
#include "cpu/move.h"
#include "gen/cpu.h"

#define GRAIN 32768

typedef struct job {
    bool lower;
    int64_t diagonal;
    size_t itemsize;
    const tn_tensor *self;
    tn_tensor *out;
} job;

static void copy_part(const job *j, char *to, const char *from, int64_t n)
{
    int last = j->self->ndim - 1;
    int64_t item = (int64_t)j->itemsize, to_stride = j->out->strides[last] * item;
    int64_t from_stride = j->self->strides[last] * item;
    if (to == from) /* in place: it is there already */
        return;
    if (to_stride == item || n == 0) {
        tni_gather(to, from, n, from_stride, j->itemsize);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, j->itemsize);
}

static void clear_part(const job *j, char *to, int64_t n)
{
    int64_t stride = j->out->strides[j->self->ndim - 1] * (int64_t)j->itemsize;
    if (stride == (int64_t)j->itemsize) {
        memset(to, 0, (size_t)n * j->itemsize);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memset(to + i * stride, 0, j->itemsize);
}

static tn_status rows(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    const tn_tensor *x = j->self, *y = j->out;
    int ndim = x->ndim;
    int64_t columns = x->sizes[ndim - 1], item = (int64_t)j->itemsize;
    for (int64_t u = begin; u < end; u++) {
        int64_t rest = u, from = 0, to = 0, row = u % x->sizes[ndim - 2];
        for (int d = ndim - 2; d >= 0; d--) {
            int64_t k = rest % x->sizes[d];
            rest /= x->sizes[d];
            from += k * x->strides[d];
            to += k * y->strides[d];
        }
        /* Columns before `cut` lie below the diagonal or on it (tril), or below it (triu). */
        int64_t cut = row + j->diagonal + (j->lower ? 1 : 0);
        cut = cut < 0 ? 0 : cut > columns ? columns : cut;
        char *o = (char *)y->data + to * item;
        const char *a = (const char *)x->data + from * item;
        char *o_cut = o + cut * y->strides[ndim - 1] * item;
        const char *a_cut = a + cut * x->strides[ndim - 1] * item;
        if (j->lower) {
            copy_part(j, o, a, cut);
            clear_part(j, o_cut, columns - cut);
        } else {
            clear_part(j, o, cut);
            copy_part(j, o_cut, a_cut, columns - cut);
        }
    }
    return TN_OK;
}

static tn_status triangle(bool lower, tn_tensor *self, int64_t diagonal, tn_tensor *out)
{
    if (self->numel == 0)
        return TN_OK;
    int64_t height = self->sizes[self->ndim - 2], columns = self->sizes[self->ndim - 1];
    /* Beyond these nothing changes any more, and nothing overflows. */
    diagonal = diagonal < -height ? -height : diagonal > columns ? columns : diagonal;
    job j = {lower, diagonal, tni_itemsize(self), self, out};
    int64_t grain = columns < GRAIN ? GRAIN / columns : 1;
    return tni_pool_for(self->numel / columns, grain, rows, &j);
}

tn_status tni_cpu_tril(tn_tensor *self, int64_t diagonal, tn_tensor *out)
{
    return triangle(true, self, diagonal, out);
}

tn_status tni_cpu_triu(tn_tensor *self, int64_t diagonal, tn_tensor *out)
{
    return triangle(false, self, diagonal, out);
}
