/* SPDX-License-Identifier: MIT */
/* cpu/kern/winograd.c: the transforms of Winograd's convolution, see cpu/winograd.h. The points are
 * 0, 1, -1 and infinity. */
#include "cpu/winograd.h"
#include "cpu/kern/gemm_vec.h"

#define IN  TNI_WINOGRAD_IN
#define OUT TNI_WINOGRAD_OUT
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

/* Four places of the input along one dimension. */
INLINE void input_line(V *to, int step, const V *x)
{
    to[0] = x[0] - x[2];
    to[step] = x[1] + x[2];
    to[2 * step] = x[2] - x[1];
    to[3 * step] = x[1] - x[3];
}

INLINE void input_some(float *to, int64_t plane, const float *x, int64_t row, int64_t column,
                       int part)
{
    V half[IN * IN], line[IN];
    for (int j = 0; j < IN; j++) {
        for (int i = 0; i < IN; i++)
            line[i] = get(x + i * row + j * column, part);
        input_line(half + j, IN, line);
    }
    for (int i = 0; i < IN; i++) {
        V out[IN];
        input_line(out, 1, half + i * IN);
        for (int j = 0; j < IN; j++)
            put(to + (i * IN + j) * plane, out[j], part);
    }
}

static void input(float *to, int64_t plane, const float *x, int64_t row, int64_t column, int64_t n)
{
    int64_t c = 0;
    for (; c + VL_f32 <= n; c += VL_f32)
        input_some(to + c, plane, x + c, row, column, 0);
    if (c < n)
        input_some(to + c, plane, x + c, row, column, (int)(n - c));
}

/* Three elements of the kernel along one dimension. */
INLINE void kernel_line(V *to, int step, V a, V b, V c)
{
    const V half = set_f32(0.5f);
    V even = (a + c) * half, odd = b * half;
    to[0] = a;
    to[step] = even + odd;
    to[2 * step] = even - odd;
    to[3 * step] = c;
}

INLINE void kernel_some(float *to, int64_t plane, const float *w, int64_t tap, bool turned,
                        int part)
{
    V half[IN * 3];
    for (int j = 0; j < 3; j++) {
        V line[3];
        for (int i = 0; i < 3; i++)
            line[i] = get(w + (turned ? 8 - (i * 3 + j) : i * 3 + j) * tap, part);
        kernel_line(half + j, 3, line[0], line[1], line[2]);
    }
    for (int i = 0; i < IN; i++) {
        V out[IN];
        kernel_line(out, 1, half[i * 3], half[i * 3 + 1], half[i * 3 + 2]);
        for (int j = 0; j < IN; j++)
            put(to + (i * IN + j) * plane, out[j], part);
    }
}

static void kernel(float *to, int64_t plane, const float *w, int64_t tap, int64_t n, bool turned)
{
    int64_t c = 0;
    for (; c + VL_f32 <= n; c += VL_f32)
        kernel_some(to + c, plane, w + c, tap, turned, 0);
    if (c < n)
        kernel_some(to + c, plane, w + c, tap, turned, (int)(n - c));
}

/* Two places of the result along one dimension. */
INLINE void output_line(V *to, int step, const V *m)
{
    to[0] = m[0] + m[1] + m[2];
    to[step] = m[1] - m[2] - m[3];
}

/* Adds what is 0 for finite results to @p sum. */
INLINE V output_some(float *y, int64_t row, int64_t column, const float *from, int64_t plane,
                     int rows, int columns, const float *bias, int part, V sum)
{
    V half[OUT * IN], line[IN];
    V first = bias ? get(bias, part) : (V){};
    for (int j = 0; j < IN; j++) {
        for (int i = 0; i < IN; i++)
            line[i] = get(from + (i * IN + j) * plane, part);
        output_line(half + j, IN, line);
    }
    for (int i = 0; i < rows; i++) {
        V out[OUT];
        output_line(out, 1, half + i * IN);
        for (int j = 0; j < columns; j++) {
            V v = out[j] + first;
            sum += v - v;
            put(y + i * row + j * column, v, part);
        }
    }
    return sum;
}

static bool output(float *y, int64_t row, int64_t column, const float *from, int64_t plane,
                   int64_t n, int rows, int columns, const float *bias)
{
    V sum = {};
    int64_t c = 0;
    for (; c + VL_f32 <= n; c += VL_f32)
        sum = output_some(y + c, row, column, from + c, plane, rows, columns,
                          bias ? bias + c : NULL, 0, sum);
    if (c < n)
        sum = output_some(y + c, row, column, from + c, plane, rows, columns,
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

const tni_winograd_loops TNI_KERN_NAME(tni_winograd) = {input, kernel, output, turn};
