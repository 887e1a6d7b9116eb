/* SPDX-License-Identifier: MIT */
/* Random programs, run on real tensors and on fake ones side by side: after each step both have
 * refused with the same words, or both look alike, share memory alike and have counted the same
 * writes. Now and then everything is converted again, in random order, and must agree once more. */
#include <stdio.h>

#include "kit.h"
#include "core/tensor.h"
#include "tenon/autograd.h"

enum { POOL = 10, STEPS = 1500, KINDS = 22 };

typedef struct pool {
    tn_tensor *real[POOL], *fake[POOL];
} pool;

/* One step: what to do, and numbers that say with what. */
typedef struct step {
    int kind;
    int64_t n[4];
} step;

static int64_t below(int64_t n)
{
    return (int64_t)(test_random() % (uint64_t)n);
}

static step draw(void)
{
    step s = {.kind = (int)below(KINDS)};
    for (int i = 0; i < 4; i++)
        s.n[i] = below(5) - 1;
    return s;
}

static tn_status run(const step *s, tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    const int64_t *n = s->n, sizes[] = {n[0], n[1]};
    const int64_t *p = n[2] > 1 ? (const int64_t[]){1, 0, 2} : (const int64_t[]){2, 0, 1};
    switch (s->kind) {
    case 0:
        return tn_transpose(a, n[0], n[1], out);
    case 1:
        return tn_select(a, n[0], n[1], out);
    case 2:
        return tn_slice(a, n[0], tn_some_int(n[1]), tn_no_int(), n[2] > 0 ? n[2] : 1, out);
    case 3:
        return tn_unsqueeze(a, n[0], out);
    case 4:
        return tn_reshape(a, sizes, 2, out);
    case 5:
        return tn_expand(a, (int64_t[]){2, n[0] > 0 ? n[0] : 3, -1}, 3, false, out);
    case 6:
        return tn_add(a, b, tn_int(1), out);
    case 7:
        return tn_mul_(a, b);
    case 8:
        return tn_sum_dim(a, n, 1, n[1] > 0, TN_DTYPE_NONE, out);
    case 9:
        return tn_cat((tn_tensor *[]){a, b}, 2, n[0], out);
    case 10:
        return tn_matmul(a, b, out);
    case 11:
        return tn_clone(a, n[0] > 0 ? TN_FORMAT_CONTIGUOUS : TN_FORMAT_PRESERVE, out);
    case 12:
        return tn_detach(a, out);
    case 13:
        return tn_to_dtype(a, n[0] > 1 ? TN_DTYPE_F64 : TN_DTYPE_F32, false, false, TN_FORMAT_NONE,
                           out);
    case 14:
        return tn_copy_(a, b, false);
    case 15:
        return tn_t_(a);
    case 16:
        return tn_unsqueeze_(a, n[0]);
    case 17:
        return tn_squeeze_(a);
    case 18:
        return tn_permute(a, p, 3, out);
    case 19:
        return tn_add_out(a, a, tn_int(1), b);
    case 20:
        return tn__unsafe_view(a, sizes, 2, out);
    default:
        return tn_ones((int64_t[]){2, 3, 2}, (int)(1 + below(3)), NULL, out);
    }
}

static void expect_alike(const tn_tensor *fake, const tn_tensor *real)
{
    uint32_t x = 0, y = 0;
    EXPECT(tn_is_fake(fake) && !tn_is_fake(real));
    EXPECT_EQ_INT(fake->ndim, real->ndim);
    for (int d = 0; fake->ndim == real->ndim && d < real->ndim; d++) {
        EXPECT_EQ_INT(fake->sizes[d], real->sizes[d]);
        EXPECT_EQ_INT(fake->strides[d], real->strides[d]);
    }
    EXPECT_EQ_INT(fake->offset, real->offset);
    EXPECT_EQ_INT(fake->dtype, real->dtype);
    EXPECT_EQ_INT(fake->flags, real->flags);
    EXPECT(fake->keys == (real->keys | TNI_KS_FAKE));
    EXPECT_EQ_INT(tn_tensor_storage_nbytes(fake), tn_tensor_storage_nbytes(real));
    EXPECT_OK(tn_tensor_version(real, &x));
    EXPECT_OK(tn_tensor_version(fake, &y));
    EXPECT_EQ_INT(y, x);
    EXPECT(tn_tensor_is_view(fake) == tn_tensor_is_view(real));
}

/* What holds between any two: memory, counter, base. */
static void expect_related_alike(const pool *p)
{
    for (int i = 0; i < POOL; i++) {
        expect_alike(p->fake[i], p->real[i]);
        for (int k = 0; k < i; k++) {
            const tn_tensor *r = p->real[i], *s = p->real[k], *f = p->fake[i], *g = p->fake[k];
            EXPECT((f->storage == g->storage) == (r->storage == s->storage));
            EXPECT((f->versions == g->versions) == (r->versions == s->versions));
            EXPECT((f->view_base == g) == (r->view_base == s));
            EXPECT((f->view_base == g->view_base) == (r->view_base == s->view_base));
        }
    }
}

static void put(pool *p, int i, tn_tensor *real, tn_tensor *fake)
{
    tn_tensor_unref(p->real[i]);
    tn_tensor_unref(p->fake[i]);
    p->real[i] = real;
    p->fake[i] = fake;
}

/* Everything anew in a mode of its own, beginning anywhere. */
static void convert_all(const pool *p)
{
    tn_fake_mode *mode = new_mode(false);
    pool q = {0};
    int first = (int)below(POOL);
    for (int k = 0; k < POOL; k++) {
        int i = (first + k) % POOL;
        q.real[i] = tn_tensor_ref(p->real[i]);
        ASSERT_OK(tn_fake_from_real(mode, q.real[i], &q.fake[i]));
    }
    expect_related_alike(&q);
    unref_all(q.real, POOL);
    unref_all(q.fake, POOL);
    tn_fake_mode_unref(mode);
}

TEST(random_programs_agree_on_fake_and_real_tensors)
{
    tn_fake_mode *mode = new_mode(false);
    pool p = {0};
    int refused = 0;
    for (int i = 0; i < POOL; i++) {
        tn_tensor *real = ones(1 + i % 3, TN_CPU), *fake = NULL;
        ASSERT_OK(tn_fake_from_real(mode, real, &fake));
        put(&p, i, real, fake);
    }
    for (int k = 0; k < STEPS; k++) {
        step s = draw();
        int a = (int)below(POOL), b = (int)below(POOL), to = (int)below(POOL);
        char text[400] = "";
        tn_tensor *real = NULL, *fake = NULL;
        test_note("step %d: kind %d of %d and %d with %d, %d, %d", k, s.kind, a, b, (int)s.n[0],
                  (int)s.n[1], (int)s.n[2]);
        if (s.kind == KINDS - 1) { /* new ones */
            ASSERT_OK(run(&s, NULL, NULL, &real));
            ASSERT_OK(tn_fake_from_real(mode, real, &fake));
            put(&p, to, real, fake);
            continue;
        }
        tn_status real_status = run(&s, p.real[a], p.real[b], &real);
        if (real_status != TN_OK)
            snprintf(text, sizeof text, "%s", tn_last_error());
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status fake_status = run(&s, p.fake[a], p.fake[b], &fake);
        tn_fake_leave(guard);
        EXPECT_EQ_INT(fake_status, real_status);
        if (real_status != TN_OK)
            EXPECT_STR(tn_last_error(), text);
        refused += real_status != TN_OK;
        if (real && fake)
            put(&p, to, real, fake);
        expect_related_alike(&p);
        if (k % 25 == 0)
            convert_all(&p);
        if (p.real[to]->numel > 2000) /* products and joins grow */
            put(&p, to, tn_tensor_ref(p.real[0]), tn_tensor_ref(p.fake[0]));
    }
    EXPECT(refused > STEPS / 20 && refused < STEPS * 3 / 4);
    unref_all(p.real, POOL);
    unref_all(p.fake, POOL);
    tn_fake_mode_unref(mode);
}
