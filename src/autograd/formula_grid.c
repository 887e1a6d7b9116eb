/* SPDX-License-Identifier: MIT */
/* autograd/formula_grid.c: the gradient of the gradient of sampling by a grid, written by hand. See
 * formula.c.
 *
 * A sample is a sum over taps k: s = sum_k w_k(t) x[k], where the weight w_k is a product of one
 * polynomial along each dimension, of the share t of the way between two elements; which elements
 * these are is constant between them. The backward operator gives
 *   dx[k] = sum g w_k,  dt_d = sum_k g x[k] w_k,d    (w_k,d: the derivative along dimension d).
 * For the gradients u of dx and v of dt, with v.w_k = sum_d v_d w_k,d, that of
 *   g    is sum_k u[k] w_k + x[k] v.w_k,
 *   x[k] is sum g v.w_k,
 *   t_e  is sum_k g u[k] w_k,e + g x[k] (v.w_k),e.
 * All of this is made of operators, and shares follow the grid, so that it differentiates again. */
#include "gen/gradients.h"

#include "tenon/ops.h"

enum { LINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, MIRROR };
enum { MOST_DIMS = 3, MOST_TAPS = 4, ORDERS = 3 };

/* One dimension. Tensors are [samples, places], those that differ between taps have these in the
 * middle. */
typedef struct axis {
    tn_tensor *slope;           /* elements a number of the grid, as the padding sees it */
    tn_tensor *at;              /* which elements, by tap */
    tn_tensor *inside;          /* whether these are any, by tap */
    tn_tensor *weights[ORDERS]; /* with their derivatives in the share, by tap; NULL: zeros */
} axis;

typedef struct sampling {
    int dims, taps;                                /* taps: along each dimension */
    int64_t samples, channels, numel, places, all; /* all: taps of a place */
    axis axes[MOST_DIMS];
    tn_tensor *index; /* of all taps in what gathered() reads: [samples, channels, all * places] */
} sampling;

static tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return !a ? b : !b ? a : tnx_add(a, b, tn_int(1));
}

/* ---- places: what has no derivative, or a constant one ---- */

static tn_tensor *clipped(tn_tensor *x, int64_t size, tn_tensor **slope)
{
    tn_scalar most = tn_int(size - 1);
    tn_tensor *inside = tnx_logical_and(tnx_gt_scalar(x, tn_int(0)), tnx_lt_scalar(x, most));
    *slope = tnx_where_scalarother(inside, *slope, tn_int(0));
    tn_tensor *beyond = tnx_where_scalarself(tnx_le_scalar(x, tn_int(0)), tn_int(0),
                                             tnx_full_like(x, most, NULL, TN_FORMAT_NONE));
    return tnx_where(inside, x, beyond);
}

static tn_tensor *mirrored(tn_tensor *x, double low, double span, tn_tensor **slope)
{
    if (span == 0) {
        *slope = tnx_zeros_like(x, NULL, TN_FORMAT_NONE);
        return *slope;
    }
    tn_tensor *from = tnx_sub_scalar(x, tn_float(low), tn_int(1));
    tn_tensor *down = tnx_lt_scalar(from, tn_int(0)), *far = tnx_abs(from);
    tn_tensor *extra = tnx_fmod_scalar(far, tn_float(span));
    tn_tensor *flips = tnx_floor(tnx_div_scalar(far, tn_float(span)));
    tn_tensor *odd = tnx_ne_scalar(tnx_fmod_scalar(flips, tn_int(2)), tn_int(0));
    *slope = tnx_where(tnx_logical_xor(down, odd), tnx_neg(*slope), *slope);
    tn_tensor *place = tnx_where(odd, tnx_rsub_scalar(extra, tn_float(span), tn_int(1)), extra);
    return tnx_add_scalar(place, tn_float(low), tn_int(1));
}

static tn_tensor *padded(tn_tensor *x, int64_t size, bool align, int64_t padding, tn_tensor **slope)
{
    if (padding == MIRROR)
        x = align ? mirrored(x, 0, (double)(size - 1), slope)
                  : mirrored(x, -0.5, (double)size, slope);
    return padding == ZEROS ? x : clipped(x, size, slope);
}

/* Far away is outside; so is NaN. */
static tn_tensor *is_near(tn_tensor *x)
{
    return tnx_lt_scalar(tnx_abs(x), tn_float(0x1p31));
}

/* From [-1, 1] to elements, rounded as the operator does. */
static tn_tensor *in_elements(tn_tensor *x, int64_t size, bool align)
{
    x = tnx_add_scalar(x, tn_int(1), tn_int(1));
    if (align)
        return tnx_mul_scalar(tnx_div_scalar(x, tn_int(2)), tn_int(size - 1));
    x = tnx_sub_scalar(tnx_mul_scalar(x, tn_int(size)), tn_int(1), tn_int(1));
    return tnx_div_scalar(x, tn_int(2));
}

/* ---- weights: polynomials of the share ---- */

/* c[0] + c[1] x + c[2] x^2 + c[3] x^3, or its derivative of an order. */
static tn_tensor *polynomial(tn_tensor *x, const double c[4], int order)
{
    tn_tensor *sum = NULL;
    int degree = 3;
    while (degree > order && c[degree] == 0)
        degree--;
    for (int i = degree; i >= order; i--) {
        double factor = c[i];
        for (int k = 0; k < order; k++)
            factor *= i - k;
        sum = sum ? tnx_add_scalar(tnx_mul(sum, x), tn_float(factor), tn_int(1))
                  : tnx_full_like(x, tn_float(factor), NULL, TN_FORMAT_NONE);
    }
    return sum;
}

/* The four of cubic convolution with a = -0.75, in powers of the share. */
static const double cubic[4][4] = {
    {0, -0.75, 1.5, -0.75}, {1, 0, -2.25, 1.25}, {0, 0.75, 1.5, -1.25}, {0, 0, -0.75, 0.75}};
static const double linear[2][4] = {{1, -1, 0, 0}, {0, 1, 0, 0}};

static void weigh(axis *a, tn_tensor *share, int64_t mode, int taps)
{
    for (int order = 0; order < (mode == LINEAR ? 2 : mode == NEAREST ? 1 : ORDERS); order++) {
        tn_tensor *each[MOST_TAPS];
        for (int i = 0; i < taps; i++)
            each[i] = mode == NEAREST
                          ? tnx_ones_like(share, NULL, TN_FORMAT_NONE)
                          : polynomial(share, mode == LINEAR ? linear[i] : cubic[i], order);
        if (!tni_scope_failed())
            a->weights[order] = tnx_stack_tensors(each, taps, 1);
    }
}

/* ---- one dimension ---- */

static void find(axis *a, tn_tensor *grid, int64_t size, int64_t mode, int64_t padding, bool align,
                 int taps)
{
    tn_tensor *fixed = tnx_detach(grid), *unused = NULL, *at[MOST_TAPS], *inside[MOST_TAPS];
    tn_tensor *place = in_elements(fixed, size, align);
    tn_scalar scale = tn_float((double)(align ? size - 1 : size) / 2);
    a->slope = tnx_full_like(fixed, scale, NULL, TN_FORMAT_NONE);
    if (mode != BICUBIC) /* there each element is padded */
        place = padded(place, size, align, padding, &a->slope);
    tn_tensor *near = is_near(place);
    place = tnx_where_scalarother(near, place, tn_int(-100));
    tn_tensor *low = mode == NEAREST ? tnx_round(place) : tnx_floor(place);
    for (int i = 0; i < taps; i++) {
        tn_tensor *x = tnx_add_scalar(low, tn_int(mode == BICUBIC ? i - 1 : i), tn_int(1));
        if (mode == BICUBIC) {
            unused = x;
            x = padded(x, size, align, padding, &unused);
        }
        at[i] = tnx_to_dtype(x, TN_DTYPE_I64, false, false, TN_FORMAT_NONE);
        inside[i] = tnx_logical_and(near, tnx_logical_and(tnx_ge_scalar(at[i], tn_int(0)),
                                                          tnx_lt_scalar(at[i], tn_int(size))));
    }
    if (tni_scope_failed())
        return;
    a->at = tnx_stack_tensors(at, taps, 1);
    a->inside = tnx_stack_tensors(inside, taps, 1);
    /* The value of the share is that of the place; it moves as the grid does. */
    tn_tensor *finite = tnx_isfinite(fixed);
    tn_tensor *moved = tnx_sub(tnx_where_scalarother(finite, grid, tn_int(0)),
                               tnx_where_scalarother(finite, fixed, tn_int(0)), tn_int(1));
    tn_tensor *share = tnx_sub(place, low, tn_int(1));
    weigh(a, tnx_add(share, tnx_mul(a->slope, moved), tn_int(1)), mode, taps);
}

/* ---- all of them ---- */

/* What differs between the taps of dimension @p d, so that it broadcasts with the others. */
static tn_tensor *across(const sampling *s, int d, tn_tensor *t)
{
    int64_t sizes[MOST_DIMS + 2] = {s->samples};
    for (int i = 0; i < s->dims; i++)
        sizes[1 + i] = i == d ? s->taps : 1;
    sizes[1 + s->dims] = s->places;
    return tnx_reshape(t, sizes, s->dims + 2);
}

/* [samples, all, places] */
static tn_tensor *together(const sampling *s, tn_tensor *t)
{
    const int64_t sizes[] = {s->samples, s->all, s->places};
    return tnx_reshape(t, sizes, 3);
}

/* The weights of all taps, differentiated once along @p d and once along @p e (-1: not). NULL:
 * zeros. */
static tn_tensor *weights(const sampling *s, int d, int e)
{
    tn_tensor *product = NULL;
    for (int i = 0; i < s->dims; i++)
        if (!s->axes[i].weights[(i == d) + (i == e)])
            return NULL;
    for (int i = 0; i < s->dims; i++) {
        tn_tensor *along = across(s, i, s->axes[i].weights[(i == d) + (i == e)]);
        product = product ? tnx_mul(product, along) : along;
    }
    return together(s, product);
}

static void index_all(sampling *s, const int64_t *sizes)
{
    const int64_t lines[] = {s->samples, 1, s->all * s->places};
    tn_tensor *at = NULL, *inside = NULL;
    for (int d = 0; d < s->dims; d++) {
        tn_tensor *one = across(s, d, s->axes[d].at), *is = across(s, d, s->axes[d].inside);
        at = at ? tnx_add(tnx_mul_scalar(at, tn_int(sizes[d])), one, tn_int(1)) : one;
        inside = inside ? tnx_logical_and(inside, is) : is;
    }
    at = tnx_reshape(tnx_where_scalarother(inside, at, tn_int(s->numel)), lines, 3);
    s->index = tnx_expand(at, (const int64_t[]){s->samples, s->channels, lines[2]}, 3, false);
}

static void describe(sampling *s, const tn_tensor *input, tn_tensor *grid, int64_t mode,
                     int64_t padding, bool align)
{
    *s = (sampling){.dims = input->ndim - 2,
                    .taps = mode == BICUBIC   ? 4
                            : mode == NEAREST ? 1
                                              : 2,
                    .samples = input->sizes[0],
                    .channels = input->sizes[1],
                    .numel = 1,
                    .places = 1,
                    .all = 1};
    for (int d = 0; d < s->dims; d++) {
        s->numel *= input->sizes[2 + d];
        s->places *= grid->sizes[1 + d];
        s->all *= s->taps;
    }
    for (int d = 0; d < s->dims; d++) { /* the grid has the last dimension first */
        const int64_t flat[] = {s->samples, s->places};
        tn_tensor *one = tnx_reshape(tnx_select(grid, -1, s->dims - 1 - d), flat, 2);
        find(&s->axes[d], one, input->sizes[2 + d], mode, padding, align, s->taps);
    }
    index_all(s, input->sizes + 2);
}

/* [samples, channels, elements] at all taps: [samples, channels, all, places]; 0 outside. */
static tn_tensor *gathered(const sampling *s, tn_tensor *t)
{
    const int64_t flat[] = {s->samples, s->channels, s->numel}, pad[] = {0, 1};
    const int64_t sizes[] = {s->samples, s->channels, s->all, s->places};
    t = tnx_constant_pad_nd(tnx_reshape(t, flat, 3), pad, 2, tn_int(0));
    return tnx_reshape(tnx_gather(t, 2, s->index, false), sizes, 4);
}

/* The other way round: the sum of what goes to each element. */
static tn_tensor *scattered(const sampling *s, tn_tensor *t, const tn_tensor *like)
{
    const int64_t more[] = {s->samples, s->channels, s->numel + 1};
    const int64_t flat[] = {s->samples, s->channels, s->all * s->places};
    tn_tensor *sum =
        tnx_scatter_add(tnx_new_zeros(t, more, 3, NULL), 2, s->index, tnx_reshape(t, flat, 3));
    return tnx_reshape(tnx_narrow(sum, 2, 0, s->numel), like->sizes, like->ndim);
}

static tn_tensor *sum_over(tn_tensor *t, int64_t dim)
{
    return tnx_sum_dim(t, &dim, 1, false, TN_DTYPE_NONE);
}

/* What weighs all channels alike. */
static tn_tensor *of_channels(tn_tensor *t)
{
    return tnx_unsqueeze(t, 1);
}

/* sum_d v_d w_,d, differentiated along @p e too (-1: not). v[d] is [samples, 1, places]. */
static tn_tensor *along(const sampling *s, tn_tensor *const *v, int e)
{
    tn_tensor *sum = NULL;
    for (int d = 0; v[0] && d < s->dims; d++) {
        tn_tensor *w = weights(s, d, e);
        sum = plus(sum, w ? tnx_mul(v[d], w) : NULL);
    }
    return sum;
}

/* That of the grid: u and x are gathered. */
static tn_tensor *for_grid(const sampling *s, tn_tensor *g, tn_tensor *u, tn_tensor *x,
                           tn_tensor *const *v, const tn_tensor *like)
{
    tn_tensor *parts[MOST_DIMS], *gu = u ? sum_over(tnx_mul(g, u), 1) : NULL;
    tn_tensor *gx = v[0] ? sum_over(tnx_mul(g, x), 1) : NULL;
    for (int e = 0; e < s->dims; e++) {
        tn_tensor *w = u ? weights(s, e, -1) : NULL, *more = along(s, v, e);
        tn_tensor *sum = plus(w ? tnx_mul(gu, w) : NULL, more ? tnx_mul(gx, more) : NULL);
        parts[s->dims - 1 - e] = sum ? tnx_mul(sum_over(sum, 1), s->axes[e].slope)
                                     : tnx_zeros_like(s->axes[e].slope, NULL, TN_FORMAT_NONE);
    }
    return tni_scope_failed()
               ? NULL
               : tnx_reshape(tnx_stack_tensors(parts, s->dims, 2), like->sizes, like->ndim);
}

static tn_tensor *as(tn_tensor *t, tn_dtype dtype)
{
    return t ? tnx_to_dtype(t, dtype, false, false, TN_FORMAT_NONE) : NULL;
}

static tn_tensor *settled(tn_tensor *t, tn_tensor *like)
{
    return t ? as(t, (tn_dtype)like->dtype) : tnx_zeros_like(like, NULL, TN_FORMAT_NONE);
}

tn_status tni_grad_grid_second(tn_tensor *const *grads, int64_t n, tn_tensor *grad_output,
                               tn_tensor *input, tn_tensor *grid, int64_t mode, int64_t padding,
                               bool align, const bool *needed, int64_t needed_n, tn_tensor **made)
{
    (void)n, (void)needed_n;
    sampling s;
    tn_dtype dtype = input->dtype == TN_DTYPE_F64 ? TN_DTYPE_F64 : TN_DTYPE_F32;
    tn_tensor *results[3] = {NULL, NULL, NULL}, *v[MOST_DIMS] = {NULL};
    describe(&s, input, as(grid, dtype), mode, padding, align);
    for (int d = 0; grads[1] && d < s.dims; d++) {
        const int64_t each[] = {s.samples, s.places}, lines[] = {s.samples, 1, s.places};
        tn_tensor *one = tnx_select(as(grads[1], dtype), -1, s.dims - 1 - d);
        v[d] = tnx_reshape(tnx_mul(tnx_reshape(one, each, 2), s.axes[d].slope), lines, 3);
    }
    const int64_t rows[] = {s.samples, s.channels, 1, s.places};
    tn_tensor *g = tnx_reshape(as(grad_output, dtype), rows, 4), *turned = along(&s, v, -1);
    tn_tensor *x = grads[1] ? gathered(&s, as(input, dtype)) : NULL;
    tn_tensor *u = grads[0] ? gathered(&s, as(grads[0], dtype)) : NULL;
    if (needed[0]) {
        tn_tensor *w = u ? weights(&s, -1, -1) : NULL;
        tn_tensor *sum = plus(w ? tnx_mul(u, of_channels(w)) : NULL,
                              turned ? tnx_mul(x, of_channels(turned)) : NULL);
        if (sum)
            sum = tnx_reshape(sum_over(sum, 2), grad_output->sizes, grad_output->ndim);
        results[0] = settled(sum, grad_output);
    }
    if (needed[1])
        results[1] =
            settled(turned ? scattered(&s, tnx_mul(g, of_channels(turned)), input) : NULL, input);
    if (needed[2])
        results[2] = settled(for_grid(&s, g, u, x, v, grid), grid);
    TN_TRY(tni_scope_settle());
    for (int i = 0; i < 3; i++)
        made[i] = tn_tensor_ref(results[i]);
    return TN_OK;
}
