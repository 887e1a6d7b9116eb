/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_pieces.c: kernels that take wide rows a piece at a time give what one piece would:
 * sizes are beyond the pieces, and the operands are laid out differently. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

/* Small numbers, [rows, columns], @p apart elements from one column to the next. */
static tn_tensor *some(int64_t rows, int64_t columns, int64_t apart, int64_t limit)
{
    tn_tensor *whole = NULL, *view = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    ASSERT_OK(tn_empty((int64_t[]){rows, columns * apart}, 2, &opts, TN_FORMAT_CONTIGUOUS, &whole));
    for (int64_t i = 0; i < whole->numel; i++)
        ((int64_t *)whole->data)[i] = (int64_t)(test_random() % (uint64_t)limit);
    ASSERT_OK(tn_as_strided(whole, (int64_t[]){rows, columns}, 2,
                            (int64_t[]){columns * apart, apart}, 2, tn_no_int(), &view));
    tn_tensor_unref(whole);
    return view;
}

static int64_t at(const tn_tensor *t, int64_t row, int64_t column)
{
    return ((const int64_t *)t->data)[row * t->strides[0] + column * t->strides[1]];
}

TEST(wide_rows_are_scattered_and_gathered_column_by_column)
{
    for (int64_t columns = 511; columns <= 1600; columns += 363)
        for (int64_t apart = 1; apart <= 3; apart++) {
            tn_tensor *self = some(5, columns, 1, 9), *index = some(4, columns, 1, 5);
            tn_tensor *src = some(4, columns, apart, 100), *sum = NULL, *read = NULL;
            int64_t wrong = 0;
            ASSERT_OK(tn_scatter_add(self, 0, index, src, &sum));
            ASSERT_OK(tn_gather(sum, 0, index, false, &read));
            for (int64_t c = 0; c < columns; c++) {
                int64_t wanted[5];
                for (int64_t r = 0; r < 5; r++)
                    wanted[r] = at(self, r, c);
                for (int64_t r = 0; r < 4; r++)
                    wanted[at(index, r, c)] += at(src, r, c);
                for (int64_t r = 0; r < 5; r++)
                    wrong += at(sum, r, c) != wanted[r];
                for (int64_t r = 0; r < 4; r++)
                    wrong += at(read, r, c) != wanted[at(index, r, c)];
            }
            test_note("%d columns, %d apart", (int)columns, (int)apart);
            EXPECT_EQ_INT(wrong, 0);
            tn_tensor *all[] = {self, index, src, sum, read};
            for (int i = 0; i < 5; i++)
                tn_tensor_unref(all[i]);
        }
}

/* Small whole numbers, whose sums are exact. */
static tn_tensor *whole_floats(int64_t rows, int64_t columns)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_empty((int64_t[]){rows, columns}, 2, &opts, TN_FORMAT_CONTIGUOUS, &t));
    for (int64_t i = 0; i < t->numel; i++)
        ((float *)t->data)[i] = (float)(test_random() % 9) - 4.0f;
    return t;
}

TEST(gradients_of_layer_norm_s_parameters_count_every_row)
{
    const int64_t rows[] = {1, 300, 30001}, n = 7;
    const int threads = tn_num_threads();
    for (int r = 0; r < 6; r++) {
        int64_t m = rows[r / 2];
        ASSERT_OK(tn_set_num_threads(r % 2 ? 4 : 1));
        tn_tensor *grad = whole_floats(m, n), *x = whole_floats(m, n), *mean = NULL, *rstd = NULL;
        tn_tensor *dx = NULL, *dw = NULL, *db = NULL, *weight = whole_floats(1, n);
        tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
        ASSERT_OK(tn_zeros((int64_t[]){m, 1}, 2, &opts, &mean));
        ASSERT_OK(tn_ones((int64_t[]){m, 1}, 2, &opts, &rstd));
        tn_tensor *flat = NULL;
        ASSERT_OK(tn_reshape(weight, &n, 1, &flat));
        ASSERT_OK(tn_native_layer_norm_backward(grad, x, &n, 1, mean, rstd, flat, flat,
                                                (bool[]){false, true, true}, 3, &dx, &dw, &db));
        for (int64_t c = 0; c < n; c++) {
            double of_weight = 0, of_bias = 0;
            for (int64_t i = c; i < m * n; i += n) {
                double g = (double)((float *)grad->data)[i];
                of_bias += g;
                of_weight += g * (double)((float *)x->data)[i];
            }
            test_note("column %d of %d rows", (int)c, (int)m);
            EXPECT((double)((float *)dw->data)[c] == of_weight);
            EXPECT((double)((float *)db->data)[c] == of_bias);
        }
        tn_tensor *all[] = {grad, x, mean, rstd, dx, dw, db, weight, flat};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            tn_tensor_unref(all[i]);
    }
    ASSERT_OK(tn_set_num_threads(threads));
}

TEST(gradients_of_a_depthwise_kernel_count_every_image)
{
    const int64_t channels = 3, size = 9, one[] = {1, 1}, none[] = {0, 0};
    for (int64_t batch = 1; batch <= 5; batch += 2) {
        tn_tensor *x = NULL, *w = NULL, *grad = NULL, *dx = NULL, *dw = NULL, *db = NULL;
        tn_tensor *flat[] = {whole_floats(batch * channels, size * size), whole_floats(channels, 9),
                             whole_floats(batch * channels, size * size)};
        ASSERT_OK(tn_reshape(flat[0], (int64_t[]){batch, channels, size, size}, 4, &x));
        ASSERT_OK(tn_reshape(flat[1], (int64_t[]){channels, 1, 3, 3}, 4, &w));
        ASSERT_OK(tn_reshape(flat[2], (int64_t[]){batch, channels, size, size}, 4, &grad));
        ASSERT_OK(tn_convolution_backward(grad, x, w, &channels, 1, one, 2, one, 2, one, 2, false,
                                          none, 2, channels, (bool[]){false, true, true}, 3, &dx,
                                          &dw, &db));
        for (int64_t at = 0; at < channels * 9; at++) {
            int64_t c = at / 9, dy = at / 3 % 3 - 1, dx_ = at % 3 - 1;
            double sum = 0;
            for (int64_t i = 0; i < batch * size * size; i++) {
                int64_t image = i / (size * size), row = i / size % size + dy,
                        column = i % size + dx_;
                const int64_t plane = (image * channels + c) * size * size;
                if (row >= 0 && row < size && column >= 0 && column < size)
                    sum += (double)((float *)grad->data)[plane + i % (size * size)] *
                           (double)((float *)x->data)[plane + row * size + column];
            }
            test_note("%d images, weight %d", (int)batch, (int)at);
            EXPECT((double)((float *)dw->data)[at] == sum);
        }
        tn_tensor *all[] = {x, w, grad, dx, dw, db, flat[0], flat[1], flat[2]};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            tn_tensor_unref(all[i]);
    }
}

TEST(the_last_of_many_bags_is_whole)
{
    for (int64_t bags = 1; bags <= 2000; bags = bags * 3 + 1) {
        const int64_t rows = 11, width = 5, each = 3, n = bags * each;
        tn_tensor *weight = whole_floats(rows, width), *index = some(1, n, 1, rows);
        tn_tensor *offsets = some(1, bags, 1, 2), *flat = NULL, *from = NULL;
        tn_tensor *sum = NULL, *rest[3] = {NULL};
        int64_t wrong = 0;
        for (int64_t b = 0; b < bags; b++)
            ((int64_t *)offsets->data)[b] = b * each;
        ASSERT_OK(tn_reshape(index, &n, 1, &flat));
        ASSERT_OK(tn_reshape(offsets, &bags, 1, &from));
        ASSERT_OK(tn_embedding_bag(weight, flat, from, false, 0, false, NULL, false, &sum, &rest[0],
                                   &rest[1], &rest[2]));
        for (int64_t b = 0; b < bags * width; b++) {
            float wanted = 0;
            for (int64_t k = 0; k < each; k++)
                wanted +=
                    ((float *)weight->data)[at(index, 0, b / width * each + k) * width + b % width];
            wrong += ((float *)sum->data)[b] != wanted;
        }
        test_note("%d bags", (int)bags);
        EXPECT_EQ_INT(wrong, 0);
        tn_tensor *all[] = {weight, index, offsets, flat, from, sum, rest[0], rest[1], rest[2]};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            tn_tensor_unref(all[i]);
    }
}

TEST(whatever_is_not_zero_is_found_in_a_long_line)
{
    const int64_t n = 100003;
    tn_tensor *x = whole_floats(1, n), *places = NULL;
    int64_t found = 0, wrong = 0;
    ASSERT_OK(tn_nonzero(x, &places));
    for (int64_t i = 0; i < n; i++)
        if (((float *)x->data)[i] != 0) {
            ASSERT(found < places->sizes[0]);
            wrong += at(places, found++, 1) != i;
        }
    EXPECT_EQ_INT(wrong, 0);
    EXPECT_EQ_INT(found, places->sizes[0]);
    tn_tensor_unref(x);
    tn_tensor_unref(places);
}

TEST(the_largest_is_found_wherever_it_is)
{
    for (int64_t n = 1; n < 200; n += n < 60 ? 7 : 1)
        for (int64_t place = 0; place < n; place += place + 9 < n ? 9 : 1) {
            tn_tensor *x = whole_floats(1, n), *found = NULL;
            ((float *)x->data)[place] = 9;
            ASSERT_OK(tn_argmax(x, tn_some_int(1), false, &found));
            test_note("%d of %d", (int)place, (int)n);
            EXPECT_EQ_INT(((int64_t *)found->data)[0], place);
            tn_tensor_unref(x);
            tn_tensor_unref(found);
        }
}

/* That is what pivots are for: every factor is at most 1. */
TEST(factors_below_the_diagonal_are_at_most_1)
{
    for (int64_t n = 2; n < 80; n = n * 2 + 1) {
        tn_tensor *a = whole_floats(n, n), *lu = NULL, *pivots = NULL;
        double most = 0;
        ASSERT_OK(tn_linalg_lu_factor(a, true, &lu, &pivots));
        for (int64_t r = 0; r < n; r++)
            for (int64_t c = 0; c < r; c++) {
                double factor =
                    fabs((double)((float *)lu->data)[r * lu->strides[0] + c * lu->strides[1]]);
                most = fmax(most, factor);
            }
        test_note("%d rows: %g", (int)n, most);
        EXPECT(most <= 1.0 + 1e-6);
        tn_tensor *all[] = {a, lu, pivots};
        for (int i = 0; i < 3; i++)
            tn_tensor_unref(all[i]);
    }
}

TEST(every_plane_is_put_back_where_it_was_the_largest)
{
    const int64_t planes = 70, each = 4, size[] = {4, 4};
    tn_tensor *flat = whole_floats(planes, each), *places = some(planes, each, 1, 4), *x = NULL;
    tn_tensor *index = NULL, *out = NULL;
    int64_t wrong = 0;
    for (int64_t i = 0; i < planes * each; i++) /* each in its own quarter */
        ((int64_t *)places->data)[i] += i % each * 4;
    ASSERT_OK(tn_reshape(flat, (int64_t[]){planes, 2, 2}, 3, &x));
    ASSERT_OK(tn_reshape(places, (int64_t[]){planes, 2, 2}, 3, &index));
    ASSERT_OK(tn_max_unpool2d(x, index, size, 2, &out));
    for (int64_t i = 0; i < planes * each; i++)
        wrong += ((float *)out->data)[i / each * 16 + at(places, i / each, i % each)] !=
                 ((float *)flat->data)[i];
    EXPECT_EQ_INT(wrong, 0);
    tn_tensor *all[] = {flat, places, x, index, out};
    for (int i = 0; i < 5; i++)
        tn_tensor_unref(all[i]);
}

/* So large that the result goes past the caches; a small one does not. */
TEST(exp_of_a_large_tensor_is_that_of_its_pieces)
{
    enum { ALL = 6000011, PIECE = 30011 };
    tn_tensor *x = NULL, *y = NULL, *beside = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_empty((int64_t[]){ALL + 1}, 1, &opts, TN_FORMAT_CONTIGUOUS, &beside));
    for (int64_t i = 0; i <= ALL; i++)
        ((float *)beside->data)[i] = (float)(i * 7919 % 20011) * 0.01f - 100.0f;
    ASSERT_OK(tn_as_strided(beside, (int64_t[]){ALL}, 1, (int64_t[]){1}, 1, tn_some_int(1), &x));
    ASSERT_OK(tn_exp(x, &y));
    int wrong = 0;
    for (int64_t first = 0; first < ALL; first += 20 * PIECE) {
        const int64_t n = ALL - first < PIECE ? ALL - first : PIECE;
        tn_tensor *piece = NULL, *part = NULL;
        ASSERT_OK(tn_as_strided(x, &n, 1, (int64_t[]){1}, 1, tn_some_int(first + 1), &piece));
        ASSERT_OK(tn_exp(piece, &part));
        wrong += memcmp(part->data, (const float *)y->data + first, (size_t)n * sizeof(float)) != 0;
        tn_tensor_unref(piece);
        tn_tensor_unref(part);
    }
    EXPECT_EQ_INT(wrong, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(beside);
}

/* Operands that no cache holds: the result goes past them, a block at a time, and the first element
 * of it need not begin a line. */
TEST(sums_of_large_tensors_are_those_of_their_elements)
{
    enum { N = 4194304 + 37 };
    const int64_t n = N;
    for (int64_t skipped = 0; skipped < 2; skipped++) {
        tn_tensor *a = NULL, *b = NULL, *out = NULL, *part = NULL;
        ASSERT_OK(tn_empty(&n, 1, NULL, TN_FORMAT_NONE, &a));
        ASSERT_OK(tn_empty(&n, 1, NULL, TN_FORMAT_NONE, &b));
        ASSERT_OK(tn_zeros(&n, 1, NULL, &out));
        float *x = a->data, *y = b->data;
        for (int64_t i = 0; i < n; i++) {
            x[i] = (float)(i % 1000003);
            y[i] = (float)(i % 7919);
        }
        tn_tensor *operands[] = {a, b};
        for (int i = 0; i < 2; i++) {
            ASSERT_OK(tn_slice(operands[i], 0, tn_some_int(skipped), tn_no_int(), 1, &part));
            tn_tensor_unref(operands[i]);
            operands[i] = part;
        }
        ASSERT_OK(tn_slice(out, 0, tn_some_int(skipped), tn_no_int(), 1, &part));
        ASSERT_OK(tn_add_out(operands[0], operands[1], tn_int(1), part));
        const float *result = out->data;
        int64_t wrong = skipped && result[0] != 0;
        for (int64_t i = skipped; i < n; i++)
            wrong += result[i] != (float)(i % 1000003) + (float)(i % 7919);
        EXPECT_EQ_INT(wrong, 0);
        tn_tensor *all[] = {operands[0], operands[1], part, out};
        for (int i = 0; i < 4; i++)
            tn_tensor_unref(all[i]);
    }
}
