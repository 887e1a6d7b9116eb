/* SPDX-License-Identifier: MIT */
/* composite/foreach.c: an operator for each tensor of a list. Each is one pass over memory, shared
 * out over threads by itself; gradients and Meta come from the operators called. */
#include <math.h>
#include <string.h>
#include "core/device.h"
#include "core/fake.h"
#include "core/tensor.h"
#include "composite/leave.h"
#include "composite/out.h"
#include "gen/composites.h"
#include "shape/index.h"
#include "tenon/ops.h"

/* What the tensors meet. */
typedef struct others {
    int lists; /* how many of the next two there are */
    tn_tensor *const *a, *const *b;
    int64_t a_n, b_n;
    bool numbered; /* a number each */
    const tn_scalar *scalars;
    int64_t scalars_n;
    tn_tensor *packed; /* the same as a tensor, or NULL */
    tn_scalar scalar;  /* one for all */
    tn_tensor *tensor; /* one for all, or NULL */
    tn_dtype dtype;
    bool flag;
    bool moves;   /* the lists may be on other devices */
    bool repeats; /* what is written may have elements that are one */
} others;

typedef tn_status (*new_fn)(tn_tensor *x, const others *o, int64_t i, tn_tensor **out);
typedef tn_status (*write_fn)(tn_tensor *x, const others *o, int64_t i);

/* ---- checks ---- */

static tn_status check_count(int64_t n, int64_t other)
{
    TN_CHECK(n == other, TN_INVALID,
             "Tensor lists must have the same number of tensors, got %lld and %lld", (long long)n,
             (long long)other);
    return TN_OK;
}

static tn_status check_packed(int64_t n, const tn_tensor *packed)
{
    TN_CHECK(packed->ndim == 1, TN_INVALID,
             "Expected packed scalar Tensor to be of dimension 1. Got %d instead.", packed->ndim);
    TN_CHECK(packed->numel == n, TN_INVALID,
             "Expected length of scalars to match input of length %lld but got %lld instead.",
             (long long)n, (long long)packed->numel);
    return TN_OK;
}

static tn_status check(int64_t n, const others *o)
{
    if (o->packed)
        TN_TRY(check_packed(n, o->packed));
    if (o->lists > 0)
        TN_TRY(check_count(n, o->a_n));
    if (o->lists > 1)
        TN_TRY(check_count(n, o->b_n));
    TN_CHECK(n > 0, TN_INVALID, "Tensor list must have at least one tensor.");
    TN_CHECK(!o->numbered || o->scalars_n == n, TN_INVALID,
             "Tensor list must have same number of elements as scalar list.");
    TN_CHECK(!o->tensor || o->tensor->ndim == 0, TN_INVALID,
             "scalar tensor expected to be 0 dim but it has %d dimensions and %lld elements.",
             o->tensor->ndim, (long long)o->tensor->numel);
    return TN_OK;
}

/* ---- loops ---- */

static tn_status make_each(tn_tensor *const *self, int64_t n, new_fn fn, const others *o,
                           tn_tensor ***out, int64_t *out_n)
{
    TN_TRY(check(n, o));
    tn_tensor **list = tni_alloc((size_t)n * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        tn_status status = fn(self[i], o, i, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = list;
    *out_n = n;
    return TN_OK;
}

/* Leaves are refused before any other tensor of the list is written. */
static tn_status check_leaves(tn_tensor *const *self, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        TN_TRY(tni_check_leaf(self[i]));
    return TN_OK;
}

/* Whether a number fits every dtype of numbers with a point. */
static bool is_modest(tn_scalar s)
{
    return s.kind != TN_SCALAR_COMPLEX && fabs(tn_scalar_to_double(s)) <= 65504;
}

/* Whether the tensors are so alike that what the operator refuses of one, it refuses of the first.
 */
static bool are_alike(tn_tensor *const *self, int64_t n, const others *o)
{
    const tn_tensor *first = self[0];
    if (o->numbered && tn_dtype_is_integral((tn_dtype)first->dtype, true))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const tn_tensor *x = self[i];
        if ((x->keys & TNI_KS_NAMED) || x->dtype != first->dtype || !(x->flags & TNI_DENSE) ||
            !tni_device_equal(x->device, first->device) ||
            (o->numbered &&
             (o->scalars[i].kind != o->scalars[0].kind || !is_modest(o->scalars[i]))))
            return false;
        for (int k = 0; k < o->lists; k++) {
            const tn_tensor *t = (k ? o->b : o->a)[i];
            if ((t->keys & TNI_KS_NAMED) || t->dtype != first->dtype ||
                !tni_device_equal(t->device, x->device) || t->ndim != x->ndim ||
                memcmp(t->sizes, x->sizes, (size_t)x->ndim * sizeof *x->sizes) != 0)
                return false;
        }
    }
    return true;
}

static tn_status without_memory(const tn_tensor *t, tn_tensor **out)
{
    tni_storage *s = NULL;
    TN_TRY(tni_storage_new(TN_META, t->storage->nbytes, &s));
    tn_status status = tni_tensor_over(
        s, t->ndim, t->sizes, t->strides, t->offset, (tn_dtype)t->dtype,
        tni_tensor_keys_for(TN_DEVICE_META, tni_keys_are_inference(t->keys)), TN_META, out);
    tni_storage_unref(s);
    if (status == TN_OK)
        (*out)->flags |= t->flags & TNI_WRAPPED_NUMBER;
    return status;
}

/* The operator on tensors like these that have no memory: what it would refuse, nothing written. */
static tn_status try_one(tn_tensor *const *self, int64_t i, write_fn fn, const others *o)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    others one = *o;
    if (o->lists > 0) {
        if (!o->moves)
            TN_TRY(tni_same_device(self[i], o->a[i]));
        TN_CHECK(!tni_is_meta(o->a[i]) || tni_is_meta(self[i]), TN_UNSUPPORTED,
                 "Cannot copy out of meta tensor; no data!");
        TN_TRY(without_memory(o->a[i], &a));
    }
    if (o->lists > 1) {
        TN_TRY(tni_same_device(self[i], o->b[i]));
        TN_TRY(without_memory(o->b[i], &b));
    }
    tn_tensor *const for_all[] = {o->tensor, o->packed};
    for (int k = 0; k < 2; k++) /* a number on the CPU goes with all */
        if (for_all[k] && tni_is_meta(for_all[k]))
            TN_TRY(tni_same_device(self[i], for_all[k]));
    one.a = &a;
    one.b = &b;
    if (o->numbered)
        one.scalars = &o->scalars[i];
    TN_TRY(without_memory(self[i], &x));
    return fn(x, &one, 0);
}

static bool are_named(tn_tensor *const *self, int64_t n, const others *o)
{
    bool named = false;
    for (int64_t i = 0; i < n && !named; i++) {
        named = (self[i]->keys & TNI_KS_NAMED) != 0;
        for (int k = 0; k < o->lists; k++)
            named |= ((k ? o->b : o->a)[i]->keys & TNI_KS_NAMED) != 0;
    }
    return named;
}

/* Whether some tensors are fake and others real. */
static bool are_mixed(tn_tensor *const *self, int64_t n, const others *o)
{
    bool fake = tni_is_fake(self[0]), mixed = o->tensor && tni_is_fake(o->tensor) != fake;
    mixed |= o->packed && tni_is_fake(o->packed) != fake;
    for (int64_t i = 0; i < n && !mixed; i++) {
        mixed = tni_is_fake(self[i]) != fake;
        for (int k = 0; k < o->lists; k++)
            mixed |= tni_is_fake((k ? o->b : o->a)[i]) != fake;
    }
    return mixed;
}

/* The operator on others that lie as these do, which cost nothing where there is no memory: also
 * what a mode refuses that real tensors come to. */
static tn_status try_others(tn_tensor *const *self, int64_t n, write_fn fn, const others *o)
{
    for (int64_t i = 0; i < n; i++) {
        TN_AUTO(tn_tensor) x = NULL;
        TN_TRY(tn_new_empty_strided(self[i], self[i]->sizes, self[i]->ndim, self[i]->strides,
                                    self[i]->ndim, NULL, &x));
        TN_TRY(fn(x, o, i));
    }
    return TN_OK;
}

/* The operator on copies, with which names go. */
static tn_status try_copies(tn_tensor *const *self, int64_t n, write_fn fn, const others *o)
{
    for (int64_t i = 0; i < n; i++) {
        TN_AUTO(tn_tensor) plain = NULL;
        TN_AUTO(tn_tensor) x = NULL;
        if (!o->repeats)
            TN_TRY(tni_check_internal_overlap(self[i])); /* which the copy has not */
        TN_TRY(tn_detach(self[i], &plain));
        TN_TRY(tn_clone(plain, TN_FORMAT_PRESERVE, &x));
        TN_TRY(fn(x, o, i));
    }
    return TN_OK;
}

/* All of the list are asked for before the first is written. */
static tn_status try_each(tn_tensor *const *self, int64_t n, write_fn fn, const others *o)
{
    if (TNI_UNLIKELY(are_mixed(self, n, o)))
        return try_others(self, n, fn, o);
    if (are_alike(self, n, o))
        return TN_OK;
    if (are_named(self, n, o))
        return try_copies(self, n, fn, o);
    if (tni_is_fake(self[0]) || tni_is_meta(self[0]))
        return try_others(self, n, fn, o);
    if (self[0]->device.type != TN_DEVICE_CPU)
        return TN_OK;
    for (int64_t i = 0; i < n; i++)
        TN_TRY(try_one(self, i, fn, o));
    return TN_OK;
}

static tn_status write_each(tn_tensor *const *self, int64_t n, write_fn fn, const others *o)
{
    TN_TRY(check(n, o));
    TN_TRY(check_leaves(self, n));
    TN_TRY(try_each(self, n, fn, o));
    for (int64_t i = 0; i < n; i++)
        TN_TRY(fn(self[i], o, i));
    return TN_OK;
}

/* The number for tensor @p i. */
static tn_scalar number(const others *o, int64_t i)
{
    return o->numbered ? o->scalars[i] : o->scalar;
}

#define SELF tn_tensor *const *self, int64_t self_n
#define LIST tn_tensor ***out, int64_t *out_n

/* One operator: EXPRESSION and WRITING are calls of the plain one, with x, o, i and the number s.
 */
#define EACH(name, expression, writing)                                                    \
    static tn_status name##_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out) \
    {                                                                                      \
        tn_scalar s = number(o, i);                                                        \
        (void)s;                                                                           \
        return expression;                                                                 \
    }                                                                                      \
    static tn_status name##_write(tn_tensor *x, const others *o, int64_t i)                \
    {                                                                                      \
        tn_scalar s = number(o, i);                                                        \
        (void)s;                                                                           \
        return writing;                                                                    \
    }
/* Both forms of an overload; FILL are the initialisers of `others`. */
#define FORMS(op, overload, name, PARAMETERS, ...)                        \
    tn_status tni_composite__foreach_##op##_##overload PARAMETERS(, LIST) \
    {                                                                     \
        const others o = {__VA_ARGS__};                                   \
        return make_each(self, self_n, name##_new, &o, out, out_n);       \
    }                                                                     \
    tn_status tni_composite__foreach_##op##_##overload##_ PARAMETERS()    \
    {                                                                     \
        const others o = {__VA_ARGS__};                                   \
        return write_each(self, self_n, name##_write, &o);                \
    }

#define WITH_SCALAR(...)  (SELF, tn_scalar scalar __VA_ARGS__)
#define WITH_SCALARS(...) (SELF, const tn_scalar *scalars, int64_t scalars_n __VA_ARGS__)
#define WITH_LIST(...)    (SELF, tn_tensor *const *other, int64_t other_n __VA_ARGS__)
#define WITH_LIST_ALPHA(...) \
    (SELF, tn_tensor *const *other, int64_t other_n, tn_scalar alpha __VA_ARGS__)
#define WITH_TENSOR(...)       (SELF, tn_tensor * other __VA_ARGS__)
#define WITH_TENSOR_ALPHA(...) (SELF, tn_tensor * other, tn_scalar alpha __VA_ARGS__)

/* ---- + - * / ---- */

EACH(add_number, tn_add_scalar(x, s, tn_int(1), out), tn_add_scalar_(x, s, tn_int(1)))
EACH(sub_number, tn_sub_scalar(x, s, tn_int(1), out), tn_sub_scalar_(x, s, tn_int(1)))
EACH(mul_number, tn_mul_scalar(x, s, out), tn_mul_scalar_(x, s))
EACH(div_number, tn_div_scalar(x, s, out), tn_div_scalar_(x, s))
EACH(add_list, tn_add(x, o->a[i], s, out), tn_add_(x, o->a[i], s))
EACH(sub_list, tn_sub(x, o->a[i], s, out), tn_sub_(x, o->a[i], s))
EACH(mul_list, tn_mul(x, o->a[i], out), tn_mul_(x, o->a[i]))
EACH(div_list, tn_div(x, o->a[i], out), tn_div_(x, o->a[i]))
EACH(add_tensor, tn_add(x, o->tensor, s, out), tn_add_(x, o->tensor, s))
EACH(mul_tensor, tn_mul(x, o->tensor, out), tn_mul_(x, o->tensor))
EACH(div_tensor, tn_div(x, o->tensor, out), tn_div_(x, o->tensor))

#define ARITHMETIC(op)                                                                     \
    FORMS(op, scalar, op##_number, WITH_SCALAR, .scalar = scalar)                          \
    FORMS(op, scalarlist, op##_number, WITH_SCALARS, .numbered = true, .scalars = scalars, \
          .scalars_n = scalars_n)
ARITHMETIC(add)
ARITHMETIC(sub)
ARITHMETIC(mul)
ARITHMETIC(div)
FORMS(add, list, add_list, WITH_LIST_ALPHA, .lists = 1, .a = other, .a_n = other_n, .scalar = alpha)
FORMS(sub, list, sub_list, WITH_LIST_ALPHA, .lists = 1, .a = other, .a_n = other_n, .scalar = alpha)
FORMS(mul, list, mul_list, WITH_LIST, .lists = 1, .a = other, .a_n = other_n)
FORMS(div, list, div_list, WITH_LIST, .lists = 1, .a = other, .a_n = other_n)
FORMS(add, tensor, add_tensor, WITH_TENSOR_ALPHA, .tensor = other, .scalar = alpha)
FORMS(mul, tensor, mul_tensor, WITH_TENSOR, .tensor = other)
FORMS(div, tensor, div_tensor, WITH_TENSOR, .tensor = other)

/* ---- x + value * a * b, x + value * a / b ---- */

/* a * value, where value is an element of a tensor: no need to know it. */
static tn_status times_element(const others *o, int64_t i, tn_tensor **out)
{
    TN_AUTO(tn_tensor) value = NULL;
    TN_TRY(tn_select(o->packed, 0, i, &value));
    return tn_mul(o->a[i], value, out);
}

#define THREE \
    tn_tensor *const *tensor1, int64_t tensor1_n, tn_tensor *const *tensor2, int64_t tensor2_n
#define WITH_THREE(...) (SELF, THREE, tn_scalar value __VA_ARGS__)
#define WITH_THREE_SCALARS(...) \
    (SELF, THREE, const tn_scalar *scalars, int64_t scalars_n __VA_ARGS__)
#define WITH_THREE_PACKED(...) (SELF, THREE, tn_tensor * scalars __VA_ARGS__)
#define LISTS                  .lists = 2, .a = tensor1, .a_n = tensor1_n, .b = tensor2, .b_n = tensor2_n
#define ADDED(op)                                                                               \
    EACH(op##_number, tn_##op(x, o->a[i], o->b[i], s, out), tn_##op##_(x, o->a[i], o->b[i], s)) \
    static tn_status op##_packed_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out) \
    {                                                                                           \
        TN_AUTO(tn_tensor) a = NULL;                                                            \
        TN_TRY(times_element(o, i, &a));                                                        \
        return tn_##op(x, a, o->b[i], tn_int(1), out);                                          \
    }                                                                                           \
    static tn_status op##_packed_write(tn_tensor *x, const others *o, int64_t i)                \
    {                                                                                           \
        TN_AUTO(tn_tensor) a = NULL;                                                            \
        TN_TRY(times_element(o, i, &a));                                                        \
        return tn_##op##_(x, a, o->b[i], tn_int(1));                                            \
    }                                                                                           \
    FORMS(op, scalar, op##_number, WITH_THREE, LISTS, .scalar = value)                          \
    FORMS(op, scalarlist, op##_number, WITH_THREE_SCALARS, LISTS, .numbered = true,             \
          .scalars = scalars, .scalars_n = scalars_n)                                           \
    FORMS(op, tensor, op##_packed, WITH_THREE_PACKED, LISTS, .packed = scalars)
ADDED(addcmul)
ADDED(addcdiv)

/* ---- lerp ---- */

#define ENDS                   tn_tensor *const *tensors1, int64_t tensors1_n
#define WITH_ENDS(...)         (SELF, ENDS, tn_scalar weight __VA_ARGS__)
#define WITH_ENDS_SCALARS(...) (SELF, ENDS, const tn_scalar *weight, int64_t weight_n __VA_ARGS__)
#define WITH_ENDS_LIST(...)    (SELF, ENDS, tn_tensor *const *weights, int64_t weights_n __VA_ARGS__)
EACH(lerp_number, tn_lerp(x, o->a[i], s, out), tn_lerp_(x, o->a[i], s))
EACH(lerp_list, tn_lerp_tensor(x, o->a[i], o->b[i], out), tn_lerp_tensor_(x, o->a[i], o->b[i]))
FORMS(lerp, scalar, lerp_number, WITH_ENDS, .lists = 1, .a = tensors1, .a_n = tensors1_n,
      .scalar = weight)
FORMS(lerp, scalarlist, lerp_number, WITH_ENDS_SCALARS, .lists = 1, .a = tensors1,
      .a_n = tensors1_n, .numbered = true, .scalars = weight, .scalars_n = weight_n)
FORMS(lerp, list, lerp_list, WITH_ENDS_LIST, .lists = 2, .a = tensors1, .a_n = tensors1_n,
      .b = weights, .b_n = weights_n)

/* ---- bounds ---- */

EACH(clamp_min_number, tn_clamp_min(x, s, out), tn_clamp_min_(x, s))
EACH(clamp_max_number, tn_clamp_max(x, s, out), tn_clamp_max_(x, s))
EACH(clamp_min_list, tn_clamp_min_tensor(x, o->a[i], out), tn_clamp_min_tensor_(x, o->a[i]))
EACH(clamp_max_list, tn_clamp_max_tensor(x, o->a[i], out), tn_clamp_max_tensor_(x, o->a[i]))

#define BOUND(op, bound)                                                                      \
    FORMS(op, scalar, bound##_number, WITH_SCALAR, .scalar = scalar)                          \
    FORMS(op, scalarlist, bound##_number, WITH_SCALARS, .numbered = true, .scalars = scalars, \
          .scalars_n = scalars_n)                                                             \
    FORMS(op, list, bound##_list, WITH_LIST, .lists = 1, .a = other, .a_n = other_n)
BOUND(clamp_min, clamp_min)
BOUND(clamp_max, clamp_max)

/* Bounds, but for the slope where both are equal: maximum and minimum share it out. In place they
 * have none. */
static bool is_complex(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

#define EXTREME(op, bound)                                                                      \
    static tn_status op##_number_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out) \
    {                                                                                           \
        TN_AUTO(tn_tensor) other = NULL;                                                        \
        tn_scalar s = number(o, i);                                                             \
        if (is_complex(x) || s.kind == TN_SCALAR_COMPLEX)                                       \
            return bound##_number_new(x, o, i, out);                                            \
        TN_TRY(tn_tensor_from_number(s, &other));                                               \
        return tn_##op(x, other, out);                                                          \
    }                                                                                           \
    static tn_status op##_number_write(tn_tensor *x, const others *o, int64_t i)                \
    {                                                                                           \
        return bound##_number_write(x, o, i);                                                   \
    }                                                                                           \
    static tn_status op##_list_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out)   \
    {                                                                                           \
        return is_complex(x) || is_complex(o->a[i]) ? bound##_list_new(x, o, i, out)            \
                                                    : tn_##op(x, o->a[i], out);                 \
    }                                                                                           \
    static tn_status op##_list_write(tn_tensor *x, const others *o, int64_t i)                  \
    {                                                                                           \
        return bound##_list_write(x, o, i);                                                     \
    }                                                                                           \
    BOUND(op, op)
EXTREME(maximum, clamp_min)
EXTREME(minimum, clamp_max)

/* ---- powers ---- */

#define WITH_EXPONENT(...)  (SELF, tn_scalar exponent __VA_ARGS__)
#define WITH_EXPONENTS(...) (SELF, const tn_scalar *exponent, int64_t exponent_n __VA_ARGS__)
#define WITH_POWERS(...)    (SELF, tn_tensor *const *exponent, int64_t exponent_n __VA_ARGS__)
EACH(pow_number, tn_pow_tensor_scalar(x, s, out), tn_pow_tensor_scalar_(x, s))
EACH(pow_list, tn_pow(x, o->a[i], out), tn_pow_(x, o->a[i]))
FORMS(pow, scalar, pow_number, WITH_EXPONENT, .scalar = exponent)
FORMS(pow, scalarlist, pow_number, WITH_EXPONENTS, .numbered = true, .scalars = exponent,
      .scalars_n = exponent_n)
FORMS(pow, list, pow_list, WITH_POWERS, .lists = 1, .a = exponent, .a_n = exponent_n)

static tn_status power_of_number(tn_tensor *x, const others *o, int64_t i, tn_tensor **out)
{
    (void)i;
    return tn_pow_scalar(o->scalar, x, out);
}

tn_status tni_composite__foreach_pow_scalarandtensor(tn_scalar self, tn_tensor *const *exponent,
                                                     int64_t exponent_n, LIST)
{
    const others o = {.scalar = self};
    return make_each(exponent, exponent_n, power_of_number, &o, out, out_n);
}

/* ---- of the tensors alone ---- */

#define ALONE(op)                                                      \
    EACH(op##_each, tn_##op(x, out), tn_##op##_(x))                    \
    tn_status tni_composite__foreach_##op(SELF, LIST)                  \
    {                                                                  \
        const others o = {0};                                          \
        return make_each(self, self_n, op##_each_new, &o, out, out_n); \
    }                                                                  \
    tn_status tni_composite__foreach_##op##_(SELF)                     \
    {                                                                  \
        const others o = {0};                                          \
        return write_each(self, self_n, op##_each_write, &o);          \
    }
ALONE(sqrt)
ALONE(neg)
ALONE(abs)
ALONE(acos)
ALONE(asin)
ALONE(atan)
ALONE(ceil)
ALONE(cos)
ALONE(cosh)
ALONE(erf)
ALONE(erfc)
ALONE(exp)
ALONE(expm1)
ALONE(floor)
ALONE(frac)
ALONE(lgamma)
ALONE(log)
ALONE(log10)
ALONE(log1p)
ALONE(log2)
ALONE(reciprocal)
ALONE(round)
ALONE(rsqrt)
ALONE(sigmoid)
ALONE(sign)
ALONE(sin)
ALONE(sinh)
ALONE(tan)
ALONE(tanh)
ALONE(trunc)

static tn_status max_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out)
{
    (void)o;
    (void)i;
    return tn_max(x, out);
}

tn_status tni_composite__foreach_max(SELF, LIST)
{
    const others o = {0};
    return make_each(self, self_n, max_new, &o, out, out_n);
}

static tn_status norm_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out)
{
    (void)i;
    TN_CHECK(x->numel > 0 || !isinf(tn_scalar_to_double(o->scalar)), TN_INVALID,
             "_foreach_norm cannot compute the infinity norm on an empty tensor because the "
             "operation does not have an identity");
    return tn_linalg_vector_norm(x, o->scalar, NULL, 0, false, o->dtype, out);
}

tn_status tni_composite__foreach_norm_scalar(SELF, tn_scalar ord, tn_dtype dtype, LIST)
{
    const others o = {.scalar = ord, .dtype = dtype};
    TN_CHECK(ord.kind == TN_SCALAR_INT || ord.kind == TN_SCALAR_FLOAT, TN_INVALID,
             "foreach_tensor_norm_slow expects ord to be integer or float");
    return make_each(self, self_n, norm_new, &o, out, out_n);
}

static tn_status zero_write(tn_tensor *x, const others *o, int64_t i)
{
    (void)o;
    (void)i;
    return tn_zero_(x);
}

static tn_status zero_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out)
{
    (void)o;
    (void)i;
    return tn_zeros_like(x, NULL, TN_FORMAT_NONE, out);
}

tn_status tni_composite__foreach_zero(SELF, tn_tensor ***self_out, int64_t *self_out_n)
{
    const others o = {0};
    return make_each(self, self_n, zero_new, &o, self_out, self_out_n);
}

tn_status tni_composite__foreach_zero_(SELF)
{
    const others o = {.repeats = true};
    return write_each(self, self_n, zero_write, &o);
}

static tn_status copy_write(tn_tensor *x, const others *o, int64_t i)
{
    return tn_copy_(x, o->a[i], o->flag);
}

static tn_status copy_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_clone(x, TN_FORMAT_NONE, &made));
    TN_TRY(copy_write(made, o, i));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_composite__foreach_copy(SELF, tn_tensor *const *src, int64_t src_n, bool non_blocking,
                                      tn_tensor ***self_out, int64_t *self_out_n)
{
    const others o = {.lists = 1, .a = src, .a_n = src_n, .flag = non_blocking};
    return make_each(self, self_n, copy_new, &o, self_out, self_out_n);
}

tn_status tni_composite__foreach_copy_(SELF, tn_tensor *const *src, int64_t src_n,
                                       bool non_blocking)
{
    const others o = {.lists = 1, .a = src, .a_n = src_n, .flag = non_blocking, .moves = true};
    return write_each(self, self_n, copy_write, &o);
}

static tn_status powsum_new(tn_tensor *x, const others *o, int64_t i, tn_tensor **out)
{
    (void)i;
    tn_scope *scope;
    tn_dtype dtype = o->dtype == TN_DTYPE_NONE ? (tn_dtype)x->dtype : o->dtype;
    TN_CHECK(!tn_dtype_is_integral(dtype, true), TN_UNSUPPORTED,
             "\"powsum_cpu\" not implemented for '%s'", tni_dtype_text(dtype));
    TN_TRY(tn_scope_enter(&scope));
    if (tn_dtype_is_complex((tn_dtype)x->dtype) && !tn_dtype_is_complex(dtype))
        x = tnx_abs(x); /* before the cast, which would drop the imaginary part */
    tn_tensor *wide = tnx_to_dtype(x, dtype, false, false, TN_FORMAT_NONE);
    tn_tensor *sum = tnx_sum(tnx_pow_tensor_scalar(tnx_abs(wide), o->scalar), TN_DTYPE_NONE);
    return tni_leave(scope, sum, out);
}

tn_status tni_composite__foreach_powsum_scalar(SELF, tn_scalar ord, tn_dtype dtype, LIST)
{
    const others o = {.scalar = ord, .dtype = dtype};
    return make_each(self, self_n, powsum_new, &o, out, out_n);
}
