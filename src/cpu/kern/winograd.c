/* SPDX-License-Identifier: MIT */
/* cpu/kern/winograd.c: the transforms of Winograd's convolution, see cpu/winograd.h. Without
 * strides the points are 0, 1, -1 and infinity. With a stride of 2 the outer elements of a kernel
 * meet even places, as a kernel of two does without strides: points 0, 1 and infinity; the middle
 * one meets odd places, two products for two results. Loops are written once, for tiles of either
 * size. */
#include "cpu/winograd.h"
#include "cpu/kern/gemm_vec.h"
#include "cpu/kern/lanes.h"

#define OUT  TNI_WINOGRAD_OUT
#define MOST 5 /* places of the input of a tile */
typedef vec_f32 V;

#define INLINE static inline __attribute__((always_inline))

INLINE V get(const float *p, int part)
{
    return part ? load_part_f32(p, part) : load_f32(p);
}

INLINE void put(float *p, V v, int part)
{
    if (part)
        store_part_f32(p, v, part);
    else
        store_f32(p, v);
}

/* Four places of the input along one dimension; five with strides. */
INLINE void input_line(const int in, V *to, int step, const V *x)
{
    if (in == 4) {
        to[0] = x[0] - x[2];
        to[step] = x[1] + x[2];
        to[2 * step] = x[2] - x[1];
        to[3 * step] = x[1] - x[3];
    } else {
        to[0] = x[0] - x[2];
        to[step] = x[2];
        to[2 * step] = x[4] - x[2];
        to[3 * step] = x[1];
        to[4 * step] = x[3];
    }
}

INLINE void input_some(const int in, float *to, int64_t plane, const float *x, int64_t row,
                       int64_t column, int part)
{
    V half[MOST * MOST], line[MOST];
    UNROLL for (int j = 0; j < in; j++)
    {
        UNROLL for (int i = 0; i < in; i++) line[i] = get(x + i * row + j * column, part);
        input_line(in, half + j, in, line);
    }
    UNROLL for (int i = 0; i < in; i++)
    {
        V out[MOST];
        input_line(in, out, 1, half + i * in);
        UNROLL for (int j = 0; j < in; j++) put(to + (i * in + j) * plane, out[j], part);
    }
}

INLINE void input_of(const int in, float *to, int64_t plane, const float *x, int64_t row,
                     int64_t column, int64_t n)
{
    int64_t c = 0;
    for (; c + VL_f32 <= n; c += VL_f32)
        input_some(in, to + c, plane, x + c, row, column, 0);
    if (c < n)
        input_some(in, to + c, plane, x + c, row, column, (int)(n - c));
}

/* Three elements of the kernel along one dimension. */
INLINE void kernel_line(const int in, V *to, int step, V a, V b, V c)
{
    const V half = set_f32(0.5f);
    V even = (a + c) * half, odd = b * half;
    to[0] = a;
    if (in == 4) {
        to[step] = even + odd;
        to[2 * step] = even - odd;
        to[3 * step] = c;
    } else {
        to[step] = a + c;
        to[2 * step] = c;
        to[3 * step] = to[4 * step] = b;
    }
}

INLINE void kernel_some(const int in, float *to, int64_t plane, const float *w, int64_t tap,
                        bool turned, int part)
{
    V half[MOST * 3];
    UNROLL for (int j = 0; j < 3; j++)
    {
        V line[3];
        UNROLL for (int i = 0; i < 3; i++)
        {
            line[i] = get(w + (turned ? 8 - (i * 3 + j) : i * 3 + j) * tap, part);
        }
        kernel_line(in, half + j, 3, line[0], line[1], line[2]);
    }
    UNROLL for (int i = 0; i < in; i++)
    {
        V out[MOST];
        kernel_line(in, out, 1, half[i * 3], half[i * 3 + 1], half[i * 3 + 2]);
        UNROLL for (int j = 0; j < in; j++) put(to + (i * in + j) * plane, out[j], part);
    }
}

INLINE void kernel_of(const int in, float *to, int64_t plane, const float *w, int64_t tap,
                      int64_t n, bool turned)
{
    int64_t c = 0;
    for (; c + VL_f32 <= n; c += VL_f32)
        kernel_some(in, to + c, plane, w + c, tap, turned, 0);
    if (c < n)
        kernel_some(in, to + c, plane, w + c, tap, turned, (int)(n - c));
}

/* Two places of the result along one dimension. */
INLINE void output_line(const int in, V *to, int step, const V *m)
{
    if (in == 4) {
        to[0] = m[0] + m[1] + m[2];
        to[step] = m[1] - m[2] - m[3];
    } else {
        to[0] = m[0] + m[1] + m[3];
        to[step] = m[1] + m[2] + m[4];
    }
}

/* Adds what is 0 for finite results to @p sum. */
INLINE V output_some(const int in, float *y, int64_t row, int64_t column, const float *from,
                     int64_t plane, int rows, int columns, const float *bias, int part, V sum)
{
    V half[OUT * MOST], line[MOST];
    V first = bias ? get(bias, part) : (V){};
    UNROLL for (int j = 0; j < in; j++)
    {
        UNROLL for (int i = 0; i < in; i++) line[i] = get(from + (i * in + j) * plane, part);
        output_line(in, half + j, in, line);
    }
    for (int i = 0; i < rows; i++) {
        V out[OUT];
        output_line(in, out, 1, half + i * in);
        for (int j = 0; j < columns; j++) {
            V v = out[j] + first;
            sum += v - v;
            put(y + i * row + j * column, v, part);
        }
    }
    return sum;
}

INLINE bool output_of(const int in, float *y, int64_t row, int64_t column, const float *from,
                      int64_t plane, int64_t n, int rows, int columns, const float *bias)
{
    V sum = {};
    int64_t c = 0;
    for (; c + VL_f32 <= n; c += VL_f32)
        sum = output_some(in, y + c, row, column, from + c, plane, rows, columns,
                          bias ? bias + c : NULL, 0, sum);
    if (c < n)
        sum = output_some(in, y + c, row, column, from + c, plane, rows, columns,
                          bias ? bias + c : NULL, (int)(n - c), sum);
    float lanes[VL_f32];
    bool finite = true;
    store_f32(lanes, sum);
    for (int i = 0; i < VL_f32; i++)
        finite = finite && lanes[i] == 0;
    return finite;
}

static void turn(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                 int64_t columns)
{
    int64_t j = 0;
    for (; j + SQUARE_f32 <= columns; j += SQUARE_f32) {
        int64_t i = 0;
        for (; i + SQUARE_f32 <= rows; i += SQUARE_f32)
            turn_square_f32(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
        for (; i < rows; i++) {
            for (int q = 0; q < SQUARE_f32; q++)
                to[(j + q) * to_row + i] = from[i * from_row + j + q];
        }
    }
    for (; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++)
            to[j * to_row + i] = from[i * from_row + j];
    }
}

#define LOOPS(in)                                                                                 \
    static void input_##in(float *to, int64_t plane, const float *x, int64_t row, int64_t column, \
                           int64_t n)                                                             \
    {                                                                                             \
        input_of(in, to, plane, x, row, column, n);                                               \
    }                                                                                             \
    static void kernel_##in(float *to, int64_t plane, const float *w, int64_t tap, int64_t n,     \
                            bool turned)                                                          \
    {                                                                                             \
        kernel_of(in, to, plane, w, tap, n, turned);                                              \
    }                                                                                             \
    static bool output_##in(float *y, int64_t row, int64_t column, const float *from,             \
                            int64_t plane, int64_t n, int rows, int columns, const float *bias)   \
    {                                                                                             \
        return output_of(in, y, row, column, from, plane, n, rows, columns, bias);                \
    }
LOOPS(4)
LOOPS(5)

const tni_winograd_loops TNI_KERN_NAME(tni_winograd)[TNI_WINOGRAD_STRIDES] = {
    {4, 2, 16, input_4, kernel_4, output_4, turn},
    {5, 4, 25, input_5, kernel_5, output_5, turn},
};
