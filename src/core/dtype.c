/* SPDX-License-Identifier: MIT */
/* core/dtype.c: what an element type is called, how large it is, and which type two of them meet
 * in. */
#include "core/dtype.h"
#include <stdio.h>

#include "base/status.h"

#include <float.h>
#include <stdatomic.h>
#include <string.h>

typedef enum category { BOOL, UINT, INT, FLOAT, COMPLEX } category;

typedef struct dtype_row {
    const char *name; /* NULL: no dtype has this number */
    const char *text;
    const char *cpp;
    category category;
} dtype_row;

#define X(name, number, bytes, category, py, text, cpp) [number] = {py, text, cpp, category},
static const dtype_row rows[TN_DTYPE_LIMIT] = {TN_DTYPE_LIST(X)};
#undef X
#define X(name, number, bytes, category, py, text, cpp) [number] = (bytes),
const uint8_t tni_dtype_sizes[TN_DTYPE_LIMIT] = {TN_DTYPE_LIST(X)};
#undef X

bool tn_dtype_valid(tn_dtype dtype)
{
    return tni_dtype_ok(dtype);
}

size_t tn_dtype_size(tn_dtype dtype)
{
    return tni_dtype_ok(dtype) ? tni_dtype_sizes[dtype] : 0;
}

const char *tn_dtype_name(tn_dtype dtype)
{
    return tni_dtype_ok(dtype) ? rows[dtype].name : "invalid";
}

const char *tni_dtype_text(tn_dtype dtype)
{
    return tni_dtype_ok(dtype) ? rows[dtype].text : "Undefined";
}

const char *tni_dtype_cpp(tn_dtype dtype)
{
    return tni_dtype_ok(dtype) ? rows[dtype].cpp : "undefined";
}

const char *tni_type_text(tn_dtype dtype, char text[TNI_TYPE_TEXT])
{
    /* Those that had a class of tensors in the first versions are called by it. */
    bool named = (tn_dtype_is_integral(dtype, false) && !TN_DTYPE_IS_LIMITED(dtype)) ||
                 dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64;
    snprintf(text, TNI_TYPE_TEXT, named ? "torch.%sTensor" : "CPU%sType", tni_dtype_text(dtype));
    return text;
}

bool tn_dtype_is_floating(tn_dtype dtype)
{
    return tni_dtype_ok(dtype) && rows[dtype].category == FLOAT;
}

bool tn_dtype_is_complex(tn_dtype dtype)
{
    return tni_dtype_ok(dtype) && rows[dtype].category == COMPLEX;
}

bool tn_dtype_is_integral(tn_dtype dtype, bool include_bool)
{
    if (!tni_dtype_ok(dtype))
        return false;
    category c = rows[dtype].category;
    return c == INT || c == UINT || (include_bool && c == BOOL);
}

tn_dtype tni_dtype_to_complex(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F64 || dtype == TN_DTYPE_C128 ? TN_DTYPE_C128 : TN_DTYPE_C64;
}

tn_dtype tni_dtype_to_real(tn_dtype dtype)
{
    return dtype == TN_DTYPE_C64 ? TN_DTYPE_F32 : dtype == TN_DTYPE_C128 ? TN_DTYPE_F64 : dtype;
}

/* ---- names ---- */

typedef struct spelling {
    const char *name;
    tn_dtype dtype;
} spelling;

/* What the table of dtypes does not say already: short forms, and the words of C and Python. */
static const spelling spellings[] = {
    {"u8", TN_DTYPE_U8},         {"i8", TN_DTYPE_I8},         {"i16", TN_DTYPE_I16},
    {"i32", TN_DTYPE_I32},       {"i64", TN_DTYPE_I64},       {"f16", TN_DTYPE_F16},
    {"f32", TN_DTYPE_F32},       {"f64", TN_DTYPE_F64},       {"c64", TN_DTYPE_C64},
    {"c128", TN_DTYPE_C128},     {"bf16", TN_DTYPE_BF16},     {"byte", TN_DTYPE_U8},
    {"char", TN_DTYPE_I8},       {"short", TN_DTYPE_I16},     {"int", TN_DTYPE_I32},
    {"long", TN_DTYPE_I64},      {"half", TN_DTYPE_F16},      {"float", TN_DTYPE_F32},
    {"double", TN_DTYPE_F64},    {"cfloat", TN_DTYPE_C64},    {"cdouble", TN_DTYPE_C128},
    {"u16", TN_DTYPE_U16},       {"u32", TN_DTYPE_U32},       {"u64", TN_DTYPE_U64},
    {"f8e5m2", TN_DTYPE_F8E5M2}, {"f8e4m3", TN_DTYPE_F8E4M3},
};

tn_dtype tn_dtype_parse(const char *name)
{
    if (!name)
        return TN_DTYPE_NONE;
    if (strncmp(name, "torch.", 6) == 0 || strncmp(name, "tenon.", 6) == 0)
        name += 6;
    for (int i = 0; i < TN_DTYPE_LIMIT; i++)
        if (rows[i].name && (strcmp(name, rows[i].name) == 0 || strcmp(name, rows[i].text) == 0))
            return (tn_dtype)i;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (strcmp(name, spellings[i].name) == 0)
            return spellings[i].dtype;
    return TN_DTYPE_NONE;
}

/* ---- promotion ---- */

/* The reference's table, less complex32, which does not exist here: what would be complex32 there
 * (float16 with a complex half) cannot come up, and float16 with a complex type gives that type.
 * Rows and columns in the order of `order`. */
enum { U8, I8, I16, I32, I64, F16, F32, F64, C64, C128, B1, BF16, N };
#define U1 TN_DTYPE_U8
#define S1 TN_DTYPE_I8
#define S2 TN_DTYPE_I16
#define S4 TN_DTYPE_I32
#define S8 TN_DTYPE_I64
#define F2 TN_DTYPE_F16
#define F4 TN_DTYPE_F32
#define F8 TN_DTYPE_F64
#define C4 TN_DTYPE_C64
#define C8 TN_DTYPE_C128
#define BB TN_DTYPE_BOOL
#define BF TN_DTYPE_BF16
static const int8_t order[16] = {
    [U1] = U8,  [S1] = I8,  [S2] = I16, [S4] = I32,  [S8] = I64, [F2] = F16,
    [F4] = F32, [F8] = F64, [C4] = C64, [C8] = C128, [BB] = B1,  [BF] = BF16,
};
/* clang-format off */
static const int8_t promoted[N][N] = {
    /*          u8  i8  i16 i32 i64 f16 f32 f64 c64 c128 bool bf16 */
    [U8]   =  { U1, S2, S2, S4, S8, F2, F4, F8, C4, C8, U1, BF },
    [I8]   =  { S2, S1, S2, S4, S8, F2, F4, F8, C4, C8, S1, BF },
    [I16]  =  { S2, S2, S2, S4, S8, F2, F4, F8, C4, C8, S2, BF },
    [I32]  =  { S4, S4, S4, S4, S8, F2, F4, F8, C4, C8, S4, BF },
    [I64]  =  { S8, S8, S8, S8, S8, F2, F4, F8, C4, C8, S8, BF },
    [F16]  =  { F2, F2, F2, F2, F2, F2, F4, F8, C4, C8, F2, F4 },
    [F32]  =  { F4, F4, F4, F4, F4, F4, F4, F8, C4, C8, F4, F4 },
    [F64]  =  { F8, F8, F8, F8, F8, F8, F8, F8, C8, C8, F8, F8 },
    [C64]  =  { C4, C4, C4, C4, C4, C4, C4, C8, C4, C8, C4, C4 },
    [C128] =  { C8, C8, C8, C8, C8, C8, C8, C8, C8, C8, C8, C8 },
    [B1]   =  { U1, S1, S2, S4, S8, F2, F4, F8, C4, C8, BB, BF },
    [BF16] =  { BF, BF, BF, BF, BF, F4, F4, F8, C4, C8, BF, BF },
};
/* clang-format on */

tn_dtype tn_promote_types(tn_dtype a, tn_dtype b)
{
    if (!tni_dtype_ok(a) || !tni_dtype_ok(b))
        return TN_DTYPE_NONE;
    if (TN_DTYPE_IS_LIMITED(a) || TN_DTYPE_IS_LIMITED(b)) {
        if (a == b)
            return a;
        if (tni_dtype_is_float8(a) || tni_dtype_is_float8(b))
            return TN_DTYPE_NONE;
        return tn_dtype_is_floating(a) ? a : tn_dtype_is_floating(b) ? b : TN_DTYPE_NONE;
    }
    return (tn_dtype)promoted[order[a]][order[b]];
}

tn_status tni_promotion_refused(tn_dtype a, tn_dtype b)
{
    bool float8 = tni_dtype_is_float8(a) || tni_dtype_is_float8(b);
    TN_FAIL(TN_INVALID, "Promotion for %s is not supported, attempted to promote %s and %s",
            float8 ? "Float8 Types" : "uint16, uint32, uint64 types", tni_dtype_text(a),
            tni_dtype_text(b));
}

double tni_dtype_largest(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F16:
        return 65504.0;
    case TN_DTYPE_BF16:
        return 0x1.fep+127;
    case TN_DTYPE_F8E5M2:
    case TN_DTYPE_F8E5M2UZ:
        return 57344.0;
    case TN_DTYPE_F8E4M3:
        return 448.0;
    case TN_DTYPE_F8E4M3UZ:
        return 240.0;
    case TN_DTYPE_F32:
    case TN_DTYPE_C64:
        return (double)FLT_MAX;
    default:
        return DBL_MAX;
    }
}

/* ---- the default ---- */

static _Atomic int default_dtype = TN_DTYPE_F32;

tn_dtype tn_default_dtype(void)
{
    return (tn_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed);
}

tn_status tn_set_default_dtype(tn_dtype dtype)
{
    TN_CHECK(tn_dtype_is_floating(dtype), TN_TYPE,
             "only floating-point types are supported as the default type, got %s",
             tn_dtype_name(dtype));
    atomic_store_explicit(&default_dtype, dtype, memory_order_relaxed);
    return TN_OK;
}
