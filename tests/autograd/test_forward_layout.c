/* SPDX-License-Identifier: MIT */
/* Forward mode of what goes by storages, not by elements: as_strided and its relatives, of primals
 * that have gaps or lie inside larger storages. The oracle are differences: the primal moves along
 * its tangent, what lies between and around its elements does not, and the operators are linear. */
#include <string.h>

#include "autograd/kit.h"
#include "tenon/forward.h"

enum { WHOLE = 24 };

static tn_tensor *counting(int64_t n, double first, double step)
{
    double values[WHOLE];
    tn_tensor *t = NULL;
    for (int64_t i = 0; i < n; i++)
        values[i] = first + step * (double)i;
    ASSERT_OK(tn_tensor_from_data(values, 1, &n, TN_DTYPE_F64, &t));
    return t;
}

typedef struct geometry {
    int ndim;
    int64_t sizes[3], strides[3], offset; /* -1: none is said */
} geometry;

static tn_status look(tn_tensor *t, const geometry *g, tn_tensor **out)
{
    return tn_as_strided(t, g->sizes, g->ndim, g->strides, g->ndim,
                         g->offset < 0 ? tn_no_int() : tn_some_int(g->offset), out);
}

static tn_tensor *at(tn_tensor *t, const geometry *g)
{
    tn_tensor *view = NULL;
    ASSERT_OK(look(t, g, &view));
    return view;
}

typedef tn_status (*maker)(tn_tensor *t, const geometry *g, tn_tensor **out);

static tn_status copied(tn_tensor *t, const geometry *g, tn_tensor **out)
{
    return tn_as_strided_copy(t, g->sizes, g->ndim, g->strides, g->ndim,
                              g->offset < 0 ? tn_no_int() : tn_some_int(g->offset), out);
}

/* Three times the first elements of the tensor, put where the geometry says. */
static tn_status scattered(tn_tensor *t, const geometry *g, tn_tensor **out)
{
    TN_AUTO(tn_tensor) some = NULL;
    TN_AUTO(tn_tensor) source = NULL;
    TN_AUTO(tn_tensor) row = NULL;
    TN_AUTO(tn_tensor) tripled = NULL;
    int64_t n = 1;
    for (int d = 0; d < g->ndim; d++)
        n *= g->sizes[d];
    TN_TRY(tn_reshape(t, (int64_t[]){-1}, 1, &row));
    TN_TRY(tn_slice(row, 0, tn_some_int(0), tn_some_int(n), 1, &some));
    TN_TRY(tn_mul_scalar(some, tn_int(3), &tripled));
    TN_TRY(tn_reshape(tripled, g->sizes, g->ndim, &source));
    return tn_as_strided_scatter(t, source, g->sizes, g->ndim, g->strides, g->ndim,
                                 g->offset < 0 ? tn_no_int() : tn_some_int(g->offset), out);
}

/* Written through: the tensor itself is the result. */
static tn_status written(tn_tensor *t, const geometry *g, tn_tensor **out)
{
    TN_AUTO(tn_tensor) view = NULL;
    TN_TRY(look(t, g, &view));
    TN_TRY(tn_mul_scalar_(view, tn_int(5)));
    return tn_clone(t, TN_FORMAT_CONTIGUOUS, out);
}

static void expect_same(tn_tensor *a, tn_tensor *b)
{
    bool same = false;
    ASSERT(a && b);
    EXPECT_OK(tn_equal(a, b, &same));
    EXPECT(same);
}

/* The tangent by differences: f(whole with the primal moved) - f(whole). */
static tn_tensor *moved(maker make, const geometry *primal, tn_tensor *tangent, const geometry *g)
{
    tn_tensor *here = counting(WHOLE, 1, 1), *there = counting(WHOLE, 1, 1), *difference = NULL;
    tn_tensor *p = at(here, primal), *q = at(there, primal), *a = NULL, *b = NULL;
    ASSERT_OK(tn_add_(q, tangent, tn_int(1)));
    ASSERT_OK(make(p, g, &a));
    ASSERT_OK(make(q, g, &b));
    ASSERT_OK(tn_sub(b, a, tn_int(1), &difference));
    tn_tensor *const all[] = {here, there, p, q, a, b};
    for (int i = 0; i < 6; i++)
        tn_tensor_unref(all[i]);
    return difference;
}

static tn_tensor *pushed(maker make, const geometry *primal, tn_tensor *tangent, const geometry *g)
{
    tn_tensor *whole = counting(WHOLE, 1, 1), *p = at(whole, primal), *d = NULL, *made = NULL;
    tn_tensor *out = NULL;
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(p, tangent, &d));
    EXPECT_OK(make(d, g, &made));
    if (made)
        ASSERT_OK(tn_tensor_tangent(made, &out));
    ASSERT_OK(tn_forward_leave());
    tn_tensor *const all[] = {whole, p, d, made};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
    return out;
}

static const geometry primals[] = {
    {1, {8}, {3}, 1},             /* gaps */
    {1, {6}, {1}, 9},             /* dense, inside */
    {2, {3, 2}, {8, 3}, 2},       /* gaps in both dimensions */
    {2, {2, 3}, {2, 5}, 4},       /* and not in order */
    {3, {2, 1, 4}, {12, 7, 1}, 0} /* a stride that says nothing */
};
static const geometry views[] = {
    {1, {4}, {1}, -1}, {1, {5}, {2}, 0}, {2, {2, 2}, {7, 1}, 3}, {1, {6}, {1}, 8}};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static void compare(maker make)
{
    for (int i = 0; i < COUNT(primals); i++)
        for (int k = 0; k < COUNT(views); k++) {
            int64_t n = 1;
            for (int d = 0; d < primals[i].ndim; d++)
                n *= primals[i].sizes[d];
            tn_tensor *row = counting(n, 10, 10), *tangent = NULL;
            ASSERT_OK(tn_reshape(row, primals[i].sizes, primals[i].ndim, &tangent));
            tn_tensor *want = moved(make, &primals[i], tangent, &views[k]);
            tn_tensor *have = pushed(make, &primals[i], tangent, &views[k]);
            expect_same(have, want);
            tn_tensor *const all[] = {row, tangent, want, have};
            for (int m = 0; m < 4; m++)
                tn_tensor_unref(all[m]);
        }
}

TEST(as_strided_shows_the_tangents_of_the_elements_it_shows_and_zero_elsewhere)
{
    compare(look);
}

TEST(a_copy_of_what_as_strided_shows_has_its_tangent)
{
    compare(copied);
}

TEST(as_strided_scatter_puts_the_tangent_where_it_puts_the_elements)
{
    compare(scattered);
}

TEST(a_write_through_as_strided_reaches_the_tangents_of_what_it_wrote)
{
    compare(written);
}

TEST(the_tangent_of_a_primal_with_gaps_has_a_gradient)
{
    const geometry every_second = {1, {4}, {2}, 0}, first = {1, {4}, {1}, 0};
    tn_tensor *whole = counting(8, 1, 1), *p = at(whole, &every_second), *t = counting(4, 1, 1);
    tn_tensor *d = NULL, *view = NULL, *tangent = NULL, *sum = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(p, t, &d));
    ASSERT_OK(look(d, &first, &view));
    ASSERT_OK(tn_tensor_tangent(view, &tangent));
    ASSERT_OK(tn_sum(tangent, TN_DTYPE_NONE, &sum));
    ASSERT_OK(tn_tensor_backward(sum));
    ASSERT_OK(tn_forward_leave());
    const double *grad = tn_tensor_data(tn_tensor_grad(t));
    EXPECT(grad[0] == 1 && grad[1] == 1 && grad[2] == 0 && grad[3] == 0);
    tn_tensor *const all[] = {whole, p, t, d, view, tangent, sum};
    for (int i = 0; i < 7; i++)
        tn_tensor_unref(all[i]);
}

TEST(as_strided_of_a_dual_tensor_whose_elements_share_a_place_is_refused)
{
    const geometry repeated = {2, {2, 3}, {0, 1}, 0}, row = {1, {3}, {1}, 0};
    tn_tensor *whole = counting(3, 1, 1), *p = at(whole, &repeated), *flat = counting(6, 1, 1);
    tn_tensor *t = NULL, *d = NULL, *view = NULL, *twice = NULL;
    ASSERT_OK(tn_reshape(flat, (int64_t[]){2, 3}, 2, &t));
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(p, t, &d));
    EXPECT_EQ_INT(look(d, &row, &view), TN_UNSUPPORTED);
    EXPECT(!view && strstr(tn_last_error(), "share a place in memory") != NULL);
    /* Whatever goes by elements is fine. */
    ASSERT_OK(tn_mul_scalar(d, tn_int(2), &twice));
    tn_tensor *tangent = NULL;
    ASSERT_OK(tn_tensor_tangent(twice, &tangent));
    const double *values = tn_tensor_data(tangent);
    EXPECT(values[0] == 2 && values[5] == 12);
    ASSERT_OK(tn_forward_leave());
    tn_tensor *const all[] = {whole, p, flat, t, d, twice, tangent};
    for (int i = 0; i < 7; i++)
        tn_tensor_unref(all[i]);
}

/* What is still there when every allocation has failed in turn. */
static int64_t left_by_failures(tn_tensor *p, tn_tensor *t)
{
    int64_t before = tni_test_live;
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_forward_enter();
        tn_tensor *d = NULL;
        if (rc == TN_OK) {
            rc = tn_make_dual(p, t, &d);
            EXPECT(rc == TN_OK || !d);
            tn_tensor_unref(d);
            EXPECT_OK(tn_forward_leave());
        }
    }
    return tni_test_live - before;
}

TEST(a_primal_with_gaps_leaks_nothing_when_an_allocation_fails)
{
    const geometry every_second = {1, {4}, {2}, 0};
    kit_warm_up();
    tn_tensor *whole = counting(8, 1, 1), *p = at(whole, &every_second), *t = counting(4, 1, 1);
    (void)left_by_failures(p, t); /* what stays after the first time are blocks for the next */
    EXPECT_EQ_INT(left_by_failures(p, t), 0);
    tn_tensor_unref(whole);
    tn_tensor_unref(p);
    tn_tensor_unref(t);
}
