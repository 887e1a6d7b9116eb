/* SPDX-License-Identifier: MIT */
/* tests/core/test_dtype.c: what is promised about dtypes, promotion, halves and scalars. */
#include "harness/test.h"

#include "tenon/dispatch.h"

#include "core/dtype.h"
#include "core/float8.h"
#include "core/half.h"
#include "core/scalar.h"
#include "tenon/dispatch.h"

#include <math.h>
#include <string.h>

static const tn_dtype all[] = {
#define X(name, number, bytes, category, py, text, cpp) TN_DTYPE_##name,
    TN_DTYPE_LIST(X)
#undef X
};
enum { NUM = sizeof all / sizeof *all };

TEST(dtypes_have_the_references_numbers_sizes_and_names)
{
    EXPECT_EQ_INT(NUM, 19);
    EXPECT_EQ_INT(TN_DTYPE_F8E4M3, 24);
    EXPECT_EQ_INT(TN_DTYPE_U64, 29);
    EXPECT_EQ_INT(TN_DTYPE_F32, 6);
    EXPECT_EQ_INT(TN_DTYPE_BF16, 15);
    EXPECT_EQ_INT(tn_dtype_size(TN_DTYPE_C128), 16);
    EXPECT_EQ_INT(tn_dtype_size(TN_DTYPE_BOOL), 1);
    EXPECT_STR(tn_dtype_name(TN_DTYPE_BF16), "bfloat16");
    EXPECT_STR(tni_dtype_text(TN_DTYPE_I64), "Long");
    EXPECT_STR(tni_dtype_cpp(TN_DTYPE_F16), "c10::Half");
    for (int i = -1; i <= TN_DTYPE_LIMIT; i++) {
        bool is = false;
        for (int k = 0; k < NUM; k++)
            is |= all[k] == (tn_dtype)i;
        EXPECT_EQ_INT(tn_dtype_valid((tn_dtype)i), is);
        EXPECT_EQ_INT(tn_dtype_size((tn_dtype)i) != 0, is);
        if (!is) {
            EXPECT_STR(tn_dtype_name((tn_dtype)i), "invalid");
            EXPECT(!tn_dtype_is_floating((tn_dtype)i) && !tn_dtype_is_complex((tn_dtype)i) &&
                   !tn_dtype_is_integral((tn_dtype)i, true));
            EXPECT_STR(tni_dtype_text((tn_dtype)i), "Undefined");
            EXPECT_STR(tni_dtype_cpp((tn_dtype)i), "undefined");
        }
    }
}

TEST(a_dtype_is_of_exactly_one_kind)
{
    for (int i = 0; i < NUM; i++) {
        tn_dtype d = all[i];
        EXPECT_EQ_INT(
            tn_dtype_is_floating(d) + tn_dtype_is_complex(d) + tn_dtype_is_integral(d, true), 1);
        EXPECT_EQ_INT(tn_dtype_is_integral(d, true) - tn_dtype_is_integral(d, false),
                      d == TN_DTYPE_BOOL);
    }
    EXPECT(tn_dtype_is_floating(TN_DTYPE_BF16) && tn_dtype_is_complex(TN_DTYPE_C64));
    EXPECT(tn_dtype_is_integral(TN_DTYPE_U8, false));
    EXPECT_EQ_INT(tni_dtype_align(TN_DTYPE_C128), 8);
    EXPECT_EQ_INT(tni_dtype_align(TN_DTYPE_F16), 2);
}

TEST(a_dtype_is_known_by_several_names)
{
    for (int i = 0; i < NUM; i++) {
        char prefixed[64] = "torch.";
        strcat(prefixed, tn_dtype_name(all[i]));
        EXPECT_EQ_INT(tn_dtype_parse(tn_dtype_name(all[i])), all[i]);
        EXPECT_EQ_INT(tn_dtype_parse(tni_dtype_text(all[i])), all[i]);
        EXPECT_EQ_INT(tn_dtype_parse(prefixed), all[i]);
    }
    EXPECT_EQ_INT(tn_dtype_parse("f32"), TN_DTYPE_F32);
    EXPECT_EQ_INT(tn_dtype_parse("float"), TN_DTYPE_F32);
    EXPECT_EQ_INT(tn_dtype_parse("double"), TN_DTYPE_F64);
    EXPECT_EQ_INT(tn_dtype_parse("half"), TN_DTYPE_F16);
    EXPECT_EQ_INT(tn_dtype_parse("long"), TN_DTYPE_I64);
    EXPECT_EQ_INT(tn_dtype_parse("tenon.bf16"), TN_DTYPE_BF16);
    EXPECT_EQ_INT(tn_dtype_parse("float31"), TN_DTYPE_NONE);
    EXPECT_EQ_INT(tn_dtype_parse("torch."), TN_DTYPE_NONE);
    EXPECT_EQ_INT(tn_dtype_parse(""), TN_DTYPE_NONE);
    EXPECT_EQ_INT(tn_dtype_parse(NULL), TN_DTYPE_NONE);
}

TEST(promotion_is_the_references_table)
{
    static const struct {
        const char *a, *b, *result;
    } cells[] = {
#include "golden/promotion.inc"
    };
    EXPECT_EQ_INT(sizeof cells / sizeof *cells, NUM * NUM);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        test_note("%s with %s", cells[i].a, cells[i].b);
        EXPECT_STR(
            tn_dtype_name(tn_promote_types(tn_dtype_parse(cells[i].a), tn_dtype_parse(cells[i].b))),
            cells[i].result);
    }
    EXPECT_EQ_INT(tn_promote_types(TN_DTYPE_NONE, TN_DTYPE_F32), TN_DTYPE_NONE);
    EXPECT_EQ_INT(tn_promote_types(TN_DTYPE_F32, (tn_dtype)8), TN_DTYPE_NONE);
}

TEST(what_does_not_promote_is_named)
{
    EXPECT_FAIL(TN_INVALID,
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                "UInt16 and Int",
                tni_promotion_refused(TN_DTYPE_U16, TN_DTYPE_I32));
    EXPECT_FAIL(TN_INVALID, "Promotion for Float8 Types is not supported",
                tni_promotion_refused(TN_DTYPE_F32, TN_DTYPE_F8E5M2));
}

TEST(float8_rounds_to_nearest_and_back_to_itself)
{
    static const tn_dtype kinds[] = {TN_DTYPE_F8E5M2, TN_DTYPE_F8E4M3, TN_DTYPE_F8E5M2UZ,
                                     TN_DTYPE_F8E4M3UZ};
    for (int k = 0; k < 4; k++) {
        tni_float8 kind = tni_float8_of(kinds[k]);
        test_note("%s", tn_dtype_name(kinds[k]));
        for (int bits = 0; bits < 256; bits++) {
            float value = tni_float8_to_float(&kind, (uint8_t)bits);
            uint8_t back = tni_float8_from_float(&kind, value);
            EXPECT(isnan(value) ? isnan(tni_float8_to_float(&kind, back)) : back == bits);
        }
        /* Halfway between two neighbours: the even one. */
        for (int bits = 0; bits < kind.most; bits++) {
            float low = tni_float8_to_float(&kind, (uint8_t)bits);
            float high = tni_float8_to_float(&kind, (uint8_t)(bits + 1));
            float half = low + (high - low) / 2;
            EXPECT_EQ_INT(tni_float8_from_float(&kind, half), bits + (bits & 1));
            EXPECT_EQ_INT(tni_float8_from_float(&kind, nextafterf(half, 0)), bits);
            EXPECT_EQ_INT(tni_float8_from_float(&kind, nextafterf(half, INFINITY)), bits + 1);
        }
        EXPECT_EQ_INT(tni_float8_from_float(&kind, INFINITY), kind.overflow);
        EXPECT(tni_float8_to_float(&kind, kind.most) == (float)tni_dtype_largest(kinds[k]));
    }
}

TEST(a_number_beyond_int64_stays_itself)
{
    uint64_t big = UINT64_MAX - 1, back = 0;
    tn_scalar s = tn_uint(big);
    EXPECT(s.beyond == 1 && tn_uint(7).beyond == 0);
    EXPECT(tn_scalar_to_double(s) == (double)big);
    tni_scalar_store(s, TN_DTYPE_U64, &back);
    EXPECT(back == big);
    s = tni_scalar_load(TN_DTYPE_U64, &back);
    EXPECT(s.beyond == 1 && (uint64_t)s.v.i == big);
    tn_value v = tn_value_scalar(s);
    tn_scalar again;
    ASSERT_OK(tn_value_to_scalar(&v, &again));
    EXPECT(again.beyond == 1 && again.v.i == s.v.i);
    tni_scalar_store(tn_float(1e19), TN_DTYPE_U64, &back);
    EXPECT(back == UINT64_C(10000000000000000000));
}

TEST(the_default_dtype_is_floating)
{
    EXPECT_EQ_INT(tn_default_dtype(), TN_DTYPE_F32);
    EXPECT_FAIL(TN_TYPE, "only floating-point types are supported as the default type, got int64",
                tn_set_default_dtype(TN_DTYPE_I64));
    EXPECT_FAIL(TN_TYPE, "complex64", tn_set_default_dtype(TN_DTYPE_C64));
    EXPECT_FAIL(TN_TYPE, "invalid", tn_set_default_dtype(TN_DTYPE_NONE));
    EXPECT_EQ_INT(tn_default_dtype(), TN_DTYPE_F32);
    EXPECT_OK(tn_set_default_dtype(TN_DTYPE_F64));
    EXPECT_EQ_INT(tni_scalar_dtype(tn_float(1)), TN_DTYPE_F64);
    EXPECT_EQ_INT(tni_scalar_dtype(tn_complex(1, 2)), TN_DTYPE_C128);
    EXPECT_OK(tn_set_default_dtype(TN_DTYPE_F32));
    EXPECT_EQ_INT(tni_scalar_dtype(tn_complex(1, 2)), TN_DTYPE_C64);
    EXPECT_EQ_INT(tni_scalar_dtype(tn_int(1)), TN_DTYPE_I64);
    EXPECT_EQ_INT(tni_scalar_dtype(tn_bool(true)), TN_DTYPE_BOOL);
    EXPECT_EQ_INT(tni_scalar_dtype((tn_scalar){.kind = 9}), TN_DTYPE_NONE);
}

/* ---- halves: every value of both types, and rounding against the definition ---- */

/* The value of a half by its definition, in double. */
static double f16_value(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double bf16_value(uint16_t bits)
{
    int exponent = (bits >> 7) & 255, fraction = bits & 127;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 255)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(128 + fraction, exponent - 134) : ldexp(fraction, -133));
}

TEST(every_half_converts_exactly_and_back)
{
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t bits = (uint16_t)i;
        float f = tni_f16_to_float((tni_f16){bits}), b = tni_bf16_to_float((tni_bf16){bits});
        ASSERT(isnan(f16_value(bits)) ? isnan(f) : (double)f == f16_value(bits));
        ASSERT(isnan(bf16_value(bits)) ? isnan(b) : (double)b == bf16_value(bits));
        ASSERT(!!signbit(f) == !!(bits & 0x8000) && !!signbit(b) == !!(bits & 0x8000));
        if (isnan(f))
            ASSERT(isnan(tni_f16_to_float(tni_f16_from_float(f))));
        else
            ASSERT_EQ_INT(tni_f16_from_float(f).bits, bits);
        if (isnan(b))
            ASSERT(isnan(tni_bf16_to_float(tni_bf16_from_float(b))));
        else
            ASSERT_EQ_INT(tni_bf16_from_float(b).bits, bits);
    }
}

/* The nearest of @p at and its neighbour upwards, ties to even, compared in exact double
 * arithmetic. */
static uint16_t nearest(double (*value)(uint16_t), uint16_t at, double x, double above_max)
{
    double low = value(at),
           high = isinf(value((uint16_t)(at + 1))) ? above_max : value((uint16_t)(at + 1));
    double to_low = x - low, to_high = high - x;
    if (to_low != to_high)
        return to_low < to_high ? at : (uint16_t)(at + 1);
    return at & 1 ? (uint16_t)(at + 1) : at;
}

TEST(floats_between_two_halves_round_to_the_nearest_and_ties_to_even)
{
    for (uint32_t i = 0; i < 0x7c00; i++) {
        double low = f16_value((uint16_t)i);
        double high = i == 0x7bff ? 65536.0 : f16_value((uint16_t)(i + 1));
        for (int k = 0; k < 5; k++) {
            float x = (float)(low + (high - low) *
                                        (k == 4 ? 0.5 : (double)(test_random() >> 11) * 0x1p-53));
            if ((double)x < low || (double)x > high)
                continue;
            uint16_t want = nearest(f16_value, (uint16_t)i, (double)x, 65536.0);
            ASSERT_EQ_INT(tni_f16_from_float(x).bits, want);
            ASSERT_EQ_INT(tni_f16_from_float(-x).bits, want | 0x8000);
        }
        /* One float below and above the middle. */
        float middle = (float)((low + high) / 2);
        ASSERT_EQ_INT(tni_f16_from_float(nextafterf(middle, 0)).bits, i);
        ASSERT_EQ_INT(tni_f16_from_float(nextafterf(middle, INFINITY)).bits, i + 1);
    }
    for (uint32_t i = 0; i < 0x7f7f; i += 7) {
        double low = bf16_value((uint16_t)i), high = bf16_value((uint16_t)(i + 1));
        float middle = (float)((low + high) / 2);
        ASSERT_EQ_INT(tni_bf16_from_float(middle).bits,
                      nearest(bf16_value, (uint16_t)i, (double)middle, 0));
        ASSERT_EQ_INT(tni_bf16_from_float(nextafterf(middle, 0)).bits, i);
        ASSERT_EQ_INT(tni_bf16_from_float(nextafterf(middle, INFINITY)).bits, i + 1);
    }
    EXPECT_EQ_INT(tni_f16_from_float(65519.996f).bits, 0x7bff);
    EXPECT_EQ_INT(tni_f16_from_float(65520.0f).bits, 0x7c00);
    EXPECT_EQ_INT(tni_f16_from_float(-INFINITY).bits, 0xfc00);
    EXPECT_EQ_INT(tni_f16_from_float(0x1p-25f).bits, 0); /* the tie below the smallest */
    EXPECT_EQ_INT(tni_f16_from_float(nextafterf(0x1p-25f, 1)).bits, 1);
    EXPECT_EQ_INT(tni_bf16_from_float(3.4e38f).bits, 0x7f80);
    EXPECT(isnan(tni_bf16_to_float(tni_bf16_from_float(tni_bits_float(0x7f800001)))));
    EXPECT(isnan(tni_f16_to_float(tni_f16_from_float(tni_bits_float(0xff800001)))));
}

/* ---- scalars ---- */

TEST(an_integer_without_sign_keeps_its_bits_and_its_size)
{
    _Alignas(16) char to[16];
    tn_scalar small = tn_uint(7), large = tn_uint(UINT64_C(1) << 63);
    EXPECT_EQ_INT(small.beyond, 0);
    EXPECT_EQ_INT(tn_scalar_to_int(small), 7);
    EXPECT_EQ_INT(large.beyond, 1);
    EXPECT_EQ_INT(tn_scalar_to_int(large), INT64_MIN);
    EXPECT(tn_scalar_to_double(large) == 0x1p63);
    tni_scalar_store(large, TN_DTYPE_F32, to);
    EXPECT(*(float *)(void *)to == 0x1p63f);
    tni_scalar_store(large, TN_DTYPE_I64, to);
    EXPECT_EQ_INT(*(int64_t *)(void *)to, INT64_MIN);
    tn_value boxed = tn_value_scalar(large);
    tn_scalar back = tn_int(0);
    ASSERT_OK(tn_value_to_scalar(&boxed, &back));
    EXPECT(back.beyond == 1 && back.v.i == INT64_MIN && back.imag == 0x1p63);
}

TEST(a_scalar_reads_as_another_kind)
{
    EXPECT(tn_scalar_to_double(tn_int(-3)) == -3.0 && tn_scalar_to_double(tn_bool(true)) == 1.0);
    EXPECT(tn_scalar_to_double(tn_complex(2.5, 9)) == 2.5);
    EXPECT_EQ_INT(tn_scalar_to_int(tn_float(-2.9)), -2);
    EXPECT_EQ_INT(tn_scalar_to_int(tn_float((double)NAN)), 0);
    EXPECT_EQ_INT(tn_scalar_to_int(tn_float(1e300)), INT64_MAX);
    EXPECT_EQ_INT(tn_scalar_to_int(tn_float(-1e300)), INT64_MIN);
    EXPECT_EQ_INT(tn_scalar_to_int(tn_float(-0x1p63)), INT64_MIN);
    EXPECT_EQ_INT(tn_scalar_to_int(tn_complex(7.5, 1)), 7);
    EXPECT(tni_scalar_is_true(tn_float((double)NAN)) && !tni_scalar_is_true(tn_float(-0.0)));
    EXPECT(tni_scalar_is_true(tn_complex(0, 1)) && !tni_scalar_is_true(tn_complex(0, 0)));
}

TEST(a_scalar_stores_to_and_loads_from_every_dtype)
{
    for (int i = 0; i < NUM; i++) {
        _Alignas(16) unsigned char room[17];
        memset(room, 0xaa, sizeof room);
        tni_scalar_store(tn_complex(1, 0), all[i], room);
        EXPECT_EQ_INT(room[tn_dtype_size(all[i])], 0xaa); /* not a byte more */
        tn_scalar back = tni_scalar_load(all[i], room);
        test_note("%s", tn_dtype_name(all[i]));
        EXPECT(tn_scalar_to_double(back) == 1.0);
        EXPECT_EQ_INT(back.kind, all[i] == TN_DTYPE_BOOL        ? TN_SCALAR_BOOL
                                 : tn_dtype_is_complex(all[i])  ? TN_SCALAR_COMPLEX
                                 : tn_dtype_is_floating(all[i]) ? TN_SCALAR_FLOAT
                                                                : TN_SCALAR_INT);
    }
    uint8_t byte;
    tni_scalar_store(tn_int(300), TN_DTYPE_U8, &byte);
    EXPECT_EQ_INT(byte, 44); /* wraps */
    int8_t small;
    tni_scalar_store(tn_int(200), TN_DTYPE_I8, &small);
    EXPECT_EQ_INT(small, -56);
    tni_scalar_store(tn_float(0.5), TN_DTYPE_BOOL, &byte);
    EXPECT_EQ_INT(byte, 1);
    double z[2];
    tni_scalar_store(tn_complex(1, -2), TN_DTYPE_C128, z);
    EXPECT(z[0] == 1 && z[1] == -2);
    tni_scalar_store(tn_int(5), TN_DTYPE_C128, z);
    EXPECT(z[0] == 5 && z[1] == 0);
}
