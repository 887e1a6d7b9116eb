/* SPDX-License-Identifier: MIT */
/* iter/types.c: which dtype an elementwise operation is computed in, and where its result may go.
 */
#include "iter/iter.h"

#include "core/scalar.h"

/* Note [Elementwise rules]
 * Inputs fall into three buckets: tensors with dimensions, 0-dim tensors, bare numbers. Each bucket
 * promotes among itself; a stronger bucket gives way to a weaker one only where the weaker is of a
 * higher kind (bool < integer < floating < complex). Sizes broadcast from the last dimension. A
 * fresh result is laid out as its inputs are: see layout.c. */
static tn_dtype promote(tn_dtype a, tn_dtype b)
{
    if (a == TN_DTYPE_NONE)
        return b;
    if (b == TN_DTYPE_NONE || a == b)
        return a;
    return tn_promote_types(a, b);
}

/* Whether two dtypes of one bucket or of two meet in none. */
static bool apart(tn_dtype a, tn_dtype b)
{
    return a != TN_DTYPE_NONE && b != TN_DTYPE_NONE && tn_promote_types(a, b) == TN_DTYPE_NONE;
}

static tn_dtype combine(tn_dtype higher, tn_dtype lower)
{
    if (higher == TN_DTYPE_NONE)
        return lower;
    if (lower == TN_DTYPE_NONE || tn_dtype_is_complex(higher))
        return higher;
    if (tn_dtype_is_floating(higher))
        return tn_dtype_is_complex(lower) ? tni_dtype_to_complex(higher) : higher;
    if (tn_dtype_is_complex(lower)) /* also for unsigned integers, which meet no complex dtype */
        return lower;
    if (higher == TN_DTYPE_BOOL || !tn_dtype_is_integral(lower, true))
        return promote(higher, lower);
    return higher;
}

/* A number that came as a tensor counts as what it would be as a bare number. */
static tn_dtype wrapped_dtype(tn_dtype dtype)
{
    if (tn_dtype_is_complex(dtype))
        return tni_dtype_to_complex(tn_default_dtype());
    return tn_dtype_is_floating(dtype) ? tn_default_dtype() : dtype;
}

/* A whole number beyond int64 is an unsigned one, which bool does not go together with. */
static tn_dtype number_dtype(tn_scalar s)
{
    return s.kind == TN_SCALAR_INT && s.beyond ? TN_DTYPE_U64 : tni_scalar_dtype(s);
}

tn_dtype tni_result_type(const tni_operand *operands, int n)
{
    if (n == 1 && operands[0].tensor) /* a number that came as a tensor is as exact as that */
        return (tn_dtype)operands[0].tensor->dtype;
    tn_dtype with_dims = TN_DTYPE_NONE, zero_dim = TN_DTYPE_NONE, number = TN_DTYPE_NONE;
    for (int i = 0; i < n; i++) {
        const tn_tensor *t = operands[i].tensor;
        tn_dtype *bucket = !t                              ? &number
                           : t->ndim > 0                   ? &with_dims
                           : t->flags & TNI_WRAPPED_NUMBER ? &number
                                                           : &zero_dim;
        tn_dtype dtype = !t                  ? number_dtype(operands[i].scalar)
                         : bucket == &number ? wrapped_dtype((tn_dtype)t->dtype)
                                             : (tn_dtype)t->dtype;
        tn_dtype met = promote(*bucket, dtype);
        if (TNI_UNLIKELY(met == TN_DTYPE_NONE))
            return met;
        *bucket = met;
    }
    tn_dtype weak = combine(zero_dim, number);
    if (TNI_UNLIKELY(weak == TN_DTYPE_NONE && zero_dim != TN_DTYPE_NONE))
        return weak;
    return combine(with_dims, weak);
}

TNI_COLD tn_status tni_refuse_promotion(const tni_operand *operands, int n)
{
    tn_dtype first = TN_DTYPE_NONE;
    for (int i = 0; i < n; i++) {
        tn_dtype dtype = operands[i].tensor ? (tn_dtype)operands[i].tensor->dtype
                                            : number_dtype(operands[i].scalar);
        if (apart(first, dtype))
            return tni_promotion_refused(first, dtype);
        first = promote(first, dtype);
    }
    TN_FAIL(TN_INVALID, "the inputs have no common dtype");
}

tn_status tni_check_common_dtype(const tni_operand *in, int n, int type_rule, unsigned allowed,
                                 const char *kernel, const tn_tensor *given)
{
    int skip = type_rule == TNI_PW_WHERE;
    tn_dtype dtype = tni_result_type(in + skip, n - skip);
    if (type_rule == TNI_PW_FLOAT && tn_dtype_is_integral(dtype, true))
        dtype = tn_default_dtype();
    if (dtype == TN_DTYPE_NONE)
        return tni_refuse_promotion(in + skip, n - skip);
    if (allowed & (1u << dtype))
        return TN_OK;
    TN_TRY(tni_iter_check(in, n, given));
    TN_FAIL(TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel, tni_dtype_text(dtype));
}

tn_status tni_check_given_dtype(const tni_operand *in, int n, int type_rule, const tn_tensor *given,
                                const char *exact)
{
    int skip = type_rule == TNI_PW_WHERE;
    tn_dtype dtype = tni_result_type(in + skip, n - skip);
    if (type_rule == TNI_PW_FLOAT && tn_dtype_is_integral(dtype, true))
        dtype = tn_default_dtype();
    else if (type_rule == TNI_PW_BOOL)
        dtype = TN_DTYPE_BOOL;
    else if (type_rule == TNI_PW_MAGNITUDE && tn_dtype_is_complex(dtype)) {
        TN_CHECK(given != in[0].tensor, TN_INVALID,
                 "In-place abs is not supported for complex tensors.");
        dtype = tni_dtype_to_real(dtype);
        exact = NULL; /* it is another dtype anyway */
    }
    tn_status fits = exact ? tni_check_exact(dtype, given, exact)
                           : tni_check_cast(dtype, (tn_dtype)given->dtype);
    if (TNI_LIKELY(fits == TN_OK))
        return TN_OK;
    TN_TRY(tni_iter_check(in, n, given)); /* memory and sizes are what is looked at first */
    return exact ? tni_check_exact(dtype, given, exact)
                 : tni_check_cast(dtype, (tn_dtype)given->dtype);
}

tn_status tni_check_same_dtype(const tni_operand *in, int n)
{
    for (int i = 1; i < n; i++)
        TN_CHECK(in[i].tensor->dtype == in[0].tensor->dtype, TN_INVALID,
                 "Found dtype %s but expected %s", tni_dtype_text((tn_dtype)in[i].tensor->dtype),
                 tni_dtype_text((tn_dtype)in[0].tensor->dtype));
    return TN_OK;
}
