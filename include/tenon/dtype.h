/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/dtype.h
 * @brief Element types, devices, layouts, memory formats and scalars: plain values, no ownership.
 */
#ifndef TN_DTYPE_H
#define TN_DTYPE_H

#include "tenon/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* name, number, bytes, category, name in Python, name in error texts ("Float"), C++ name ("float").
 * The numbers are those of the reference, so that saved values agree. Append only. */
#define TN_DTYPE_LIST(X)                                                                    \
    X(U8, 0, 1, UINT, "uint8", "Byte", "unsigned char")                                     \
    X(I8, 1, 1, INT, "int8", "Char", "signed char")                                         \
    X(I16, 2, 2, INT, "int16", "Short", "short int")                                        \
    X(I32, 3, 4, INT, "int32", "Int", "int")                                                \
    X(I64, 4, 8, INT, "int64", "Long", "long int")                                          \
    X(F16, 5, 2, FLOAT, "float16", "Half", "c10::Half")                                     \
    X(F32, 6, 4, FLOAT, "float32", "Float", "float")                                        \
    X(F64, 7, 8, FLOAT, "float64", "Double", "double")                                      \
    X(C64, 9, 8, COMPLEX, "complex64", "ComplexFloat", "c10::complex<float>")               \
    X(C128, 10, 16, COMPLEX, "complex128", "ComplexDouble", "c10::complex<double>")         \
    X(BOOL, 11, 1, BOOL, "bool", "Bool", "bool")                                            \
    X(BF16, 15, 2, FLOAT, "bfloat16", "BFloat16", "c10::BFloat16")                          \
    X(F8E5M2, 23, 1, FLOAT, "float8_e5m2", "Float8_e5m2", "c10::Float8_e5m2")               \
    X(F8E4M3, 24, 1, FLOAT, "float8_e4m3fn", "Float8_e4m3fn", "c10::Float8_e4m3fn")         \
    X(F8E5M2UZ, 25, 1, FLOAT, "float8_e5m2fnuz", "Float8_e5m2fnuz", "c10::Float8_e5m2fnuz") \
    X(F8E4M3UZ, 26, 1, FLOAT, "float8_e4m3fnuz", "Float8_e4m3fnuz", "c10::Float8_e4m3fnuz") \
    X(U16, 27, 2, UINT, "uint16", "UInt16", "short unsigned int")                           \
    X(U32, 28, 4, UINT, "uint32", "UInt32", "unsigned int")                                 \
    X(U64, 29, 8, UINT, "uint64", "UInt64", "long unsigned int")

typedef enum tn_dtype {
    TN_DTYPE_NONE = -1, /**< "not given": take the default or the input's */
#define X(name, number, bytes, category, py, text, cpp) TN_DTYPE_##name = (number),
    TN_DTYPE_LIST(X)
#undef X
} tn_dtype;

#define TN_DTYPE_LIMIT 32 /**< every dtype number is below this */

/** Whether only few operators take the dtype: float8 and the unsigned integers beyond a byte, which
 *  are there to keep numbers in and to exchange them. What takes one says so in its declaration;
 * any other operator refuses it by name, before it looks at memory. */
#define TN_DTYPE_IS_LIMITED(dtype) ((dtype) >= 16)

TN_API bool tn_dtype_valid(tn_dtype dtype);
TN_API size_t tn_dtype_size(tn_dtype dtype); /**< bytes an element; 0 if not valid */
TN_API TN_BORROWED const char *tn_dtype_name(tn_dtype dtype); /**< "float32" */
TN_API bool tn_dtype_is_floating(tn_dtype dtype);
TN_API bool tn_dtype_is_complex(tn_dtype dtype);
TN_API bool tn_dtype_is_integral(tn_dtype dtype, bool include_bool);
/** "float32", "f32", "float", "Float" and so on; TN_DTYPE_NONE when the name means nothing. */
TN_API tn_dtype tn_dtype_parse(const char *name);
/** The smallest type that both convert to: the reference's promotion table. TN_DTYPE_NONE where
 * there is none: float8 meets itself alone, uint16, uint32 and uint64 themselves and floating
 * types. */
TN_API tn_dtype tn_promote_types(tn_dtype a, tn_dtype b);
/** What a bare float becomes: float32 unless changed for this process. */
TN_API tn_dtype tn_default_dtype(void);
/** @retval TN_TYPE  not a floating dtype */
TN_API TN_NODISCARD tn_status tn_set_default_dtype(tn_dtype dtype);

typedef enum tn_layout { TN_LAYOUT_NONE = -1, TN_LAYOUT_STRIDED = 0 } tn_layout;

typedef enum tn_memory_format {
    TN_FORMAT_NONE = -1,
    TN_FORMAT_CONTIGUOUS = 0,
    TN_FORMAT_PRESERVE = 1,
    TN_FORMAT_CHANNELS_LAST = 2,
    TN_FORMAT_CHANNELS_LAST_3D = 3
} tn_memory_format;

/** Kind of device. CPU and META are built in; PRIVATE1 to PRIVATE3 are claimed by out-of-tree
 *  devices with tn_device_register() and then print under their own name. */
typedef enum tn_device_type {
    TN_DEVICE_NONE = -1,
    TN_DEVICE_CPU = 0,
    TN_DEVICE_CUDA = 1,
    TN_DEVICE_PRIVATE1 = 12,
    TN_DEVICE_PRIVATE2 = 13,
    TN_DEVICE_PRIVATE3 = 14,
    TN_DEVICE_META = 15
} tn_device_type;

/** The numbers of tn_device_type are backend components: bit i of a key set. */
typedef struct tn_device {
    int16_t type;  /**< tn_device_type */
    int16_t index; /**< -1: no index ("cuda", "cpu") */
} tn_device;

#ifdef __cplusplus
#    define TN_DEVICE_INIT(type, index)       \
        tn_device                             \
        {                                     \
            (int16_t)(type), (int16_t)(index) \
        }
#else
#    define TN_DEVICE_INIT(type, index) ((tn_device){(int16_t)(type), (int16_t)(index)})
#endif
#define TN_CPU       TN_DEVICE_INIT(TN_DEVICE_CPU, -1)
#define TN_META      TN_DEVICE_INIT(TN_DEVICE_META, -1)
#define TN_NO_DEVICE TN_DEVICE_INIT(TN_DEVICE_NONE, -1)

/** Parse "cpu", "meta", "cuda:0" or the name of a registered device.
 *  @retval TN_INVALID  no such device */
TN_API TN_NODISCARD tn_status tn_device_parse(const char *text, tn_device *out);
/** Write "cuda:0" into @p buffer and return it; @p n of 32 is always enough. */
TN_API char *tn_device_format(tn_device device, char *buffer, size_t n);

/** What kind of number a tn_scalar holds. */
typedef enum tn_scalar_kind {
    TN_SCALAR_INT = 0,
    TN_SCALAR_FLOAT = 1,
    TN_SCALAR_BOOL = 2,
    TN_SCALAR_COMPLEX = 3
} tn_scalar_kind;

/** A bare number: what Python's int, float, bool and complex are. */
typedef struct tn_scalar {
    int32_t kind;   /**< tn_scalar_kind */
    int32_t beyond; /**< INT only: 1 where the number is beyond int64; v.i has its bits */
    union {
        int64_t i; /**< INT and BOOL (0 or 1) */
        double f;  /**< FLOAT; real part of COMPLEX */
    } v;
    double imag; /**< of COMPLEX; of an INT beyond int64 the number as a double; else 0 */
} tn_scalar;

static inline tn_scalar tn_int(int64_t value)
{
    tn_scalar s;
    s.kind = TN_SCALAR_INT;
    s.beyond = 0;
    s.v.i = value;
    s.imag = 0;
    return s;
}

/** An integer without sign. Beyond int64 it wraps in operations on integers, where nothing refuses
 * it, and is the number that it is beside floating-point numbers. */
static inline tn_scalar tn_uint(uint64_t value)
{
    tn_scalar s = tn_int((int64_t)value);
    s.beyond = value > (uint64_t)INT64_MAX;
    s.imag = s.beyond ? (double)value : 0;
    return s;
}

static inline tn_scalar tn_float(double value)
{
    tn_scalar s;
    s.kind = TN_SCALAR_FLOAT;
    s.beyond = 0;
    s.v.f = value;
    s.imag = 0;
    return s;
}

static inline tn_scalar tn_bool(bool value)
{
    tn_scalar s = tn_int(value ? 1 : 0);
    s.kind = TN_SCALAR_BOOL;
    return s;
}

static inline tn_scalar tn_complex(double real, double imag)
{
    tn_scalar s = tn_float(real);
    s.kind = TN_SCALAR_COMPLEX;
    s.imag = imag;
    return s;
}

/** The value as a double; of a complex number the real part. */
TN_API double tn_scalar_to_double(tn_scalar scalar);
/** The value as an int64; a float truncates towards zero, an integer beyond int64 wraps. */
TN_API int64_t tn_scalar_to_int(tn_scalar scalar);
/** Whether a tensor of this dtype can hold the number, as filling one asks: a fraction may be lost.
 *  Any number fits bool; an unsigned dtype takes a negative integer as its two's complement. Any
 *  thread may ask.
 *  @retval TN_INVALID  "value cannot be converted to type int8_t without overflow" */
TN_API TN_NODISCARD tn_status tn_scalar_check(tn_scalar scalar, tn_dtype dtype);

/** Optional numbers, for arguments that may be None. */
typedef struct tn_opt_int {
    int64_t value;
    int64_t has;
} tn_opt_int;
typedef struct tn_opt_float {
    double value;
    int64_t has;
} tn_opt_float;
typedef enum tn_opt_bool { TN_BOOL_NONE = -1, TN_BOOL_FALSE = 0, TN_BOOL_TRUE = 1 } tn_opt_bool;

static inline tn_opt_int tn_some_int(int64_t value)
{
    tn_opt_int o;
    o.value = value;
    o.has = 1;
    return o;
}
static inline tn_opt_int tn_no_int(void)
{
    tn_opt_int o;
    o.value = 0;
    o.has = 0;
    return o;
}
static inline tn_opt_float tn_some_float(double value)
{
    tn_opt_float o;
    o.value = value;
    o.has = 1;
    return o;
}
static inline tn_opt_float tn_no_float(void)
{
    tn_opt_float o;
    o.value = 0;
    o.has = 0;
    return o;
}

#ifdef __cplusplus
}
#endif
#endif
