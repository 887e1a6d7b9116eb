/* SPDX-License-Identifier: MIT */
/* composite/pack.c: sequences of several lengths, padded to one, to the rows that count and back.
 * Packed rows are ordered by step, then by sequence; batch_sizes says how many sequences each step
 * has. One list of places in the padded tensor serves all three operators. */
#include "core/at_hand.h"
#include "core/fake.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

static tn_status check_lengths(const tn_tensor *lengths)
{
    char device[32];
    if (lengths->ndim == 1 && lengths->dtype == TN_DTYPE_I64 && tni_is_fake(lengths))
        return tni_fake_needs_sizes("aten._pack_padded_sequence.default");
    TN_CHECK(lengths->ndim == 1 && lengths->dtype == TN_DTYPE_I64 &&
                 lengths->storage->device.type == TN_DEVICE_CPU,
             TN_INVALID,
             "'lengths' argument should be a 1D CPU int64 tensor, but got %dD %s %s tensor",
             lengths->ndim, tn_device_format(lengths->device, device, sizeof device),
             tni_dtype_text((tn_dtype)lengths->dtype));
    return TN_OK;
}

/* An int64 tensor over the numbers of a block, on @p device. */
static tn_status numbers(const int64_t *values, int64_t n, tn_device device, tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tn_tensor_from_data(values, 1, &n, TN_DTYPE_I64, &t));
    return tn_to_device(t, device, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, out);
}

/* Where each packed row lies: step * step_stride + sequence * sequence_stride. */
static tn_status places(const int64_t *batch_sizes, int64_t steps, int64_t rows,
                        int64_t step_stride, int64_t sequence_stride, tn_device device,
                        tn_tensor **out)
{
    size_t nbytes;
    bool fits = tni_size_mul((size_t)rows, sizeof(int64_t), &nbytes);
    int64_t *at = fits ? tni_alloc(nbytes) : NULL, n = 0;
    TN_CHECK(at, TN_NOMEM, "cannot allocate a list of %lld rows", (long long)rows);
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t b = 0; b < batch_sizes[t]; b++)
            at[n++] = t * step_stride + b * sequence_stride;
    }
    tn_status status = numbers(at, n, device, out);
    tni_free(at);
    return status;
}

/* ---- pack ---- */

static tn_status check_input(const tn_tensor *input, const tn_tensor *lengths, bool batch_first)
{
    int d;
    TN_TRY(tni_wrap_dim(batch_first ? 0 : 1, input->ndim, &d));
    TN_CHECK(input->ndim > 1, TN_INDEX,
             "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    TN_CHECK(input->numel > 0, TN_INVALID, "Cannot pack empty tensors.");
    TN_TRY(check_lengths(lengths));
    TN_CHECK(lengths->numel == input->sizes[d], TN_INVALID,
             "Expected `len(lengths)` to be equal to batch_size, but got %lld (batch_size=%lld)",
             (long long)lengths->numel, (long long)input->sizes[d]);
    return TN_OK;
}

static tn_status check_values(const int64_t *lengths, int64_t n, int64_t steps)
{
    TN_CHECK(lengths[n - 1] > 0, TN_INVALID,
             "Length of all samples has to be greater than 0, but found an element in 'lengths' "
             "that is <= 0");
    for (int64_t i = 1; i < n; i++)
        TN_CHECK(lengths[i] <= lengths[i - 1], TN_INVALID,
                 "`lengths` array must be sorted in decreasing order when `enforce_sorted` is "
                 "True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or "
                 "pack_sequence to sidestep this requirement if you do not need ONNX "
                 "exportability.");
    TN_CHECK(lengths[0] <= steps, TN_INVALID,
             "Expected no length to be larger than the padded length %lld, but got %lld",
             (long long)steps, (long long)lengths[0]);
    return TN_OK;
}

/* [a, b, ...] as [a * b, ...]. */
static tn_status as_rows(tn_tensor *t, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    sizes[0] = t->sizes[0] * t->sizes[1];
    for (int i = 2; i < t->ndim; i++)
        sizes[i - 1] = t->sizes[i];
    return tn_reshape(t, sizes, t->ndim - 1, out);
}

tn_status tni_kernel__pack_padded_sequence(tn_call *call, tn_tensor *input, tn_tensor *lengths,
                                           bool batch_first, tn_tensor **out0, tn_tensor **out1)
{
    (void)call;
    TN_TRY(check_input(input, lengths, batch_first));
    TN_AUTO(tn_tensor) sorted = NULL;
    TN_AUTO(tn_tensor) index = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) sizes = NULL;
    TN_TRY(tn_contiguous(lengths, TN_FORMAT_CONTIGUOUS, &sorted));
    TN_CHECK(tni_is_at_hand(sorted), TN_INVALID, TNI_NOT_AT_HAND);
    const int64_t *length = sorted->data, batch = sorted->numel;
    const int64_t padded = input->sizes[batch_first ? 1 : 0], steps = length[0];
    TN_TRY(check_values(length, batch, padded));
    int64_t *counts = tni_alloc((size_t)steps * sizeof *counts), total = 0;
    TN_CHECK(counts, TN_NOMEM, "cannot allocate a list of %lld batch sizes", (long long)steps);
    for (int64_t t = 0, alive = batch; t < steps; t++) {
        while (length[alive - 1] <= t)
            alive--;
        counts[t] = alive;
        total += alive;
    }
    tn_status status = places(counts, steps, total, batch_first ? 1 : batch,
                              batch_first ? padded : 1, input->device, &index);
    if (status == TN_OK)
        status = tn_tensor_from_data(counts, 1, &steps, TN_DTYPE_I64, &sizes);
    tni_free(counts);
    TN_TRY(status);
    TN_TRY(as_rows(input, &rows));
    TN_TRY(tn_index_select(rows, 0, index, out0));
    *out1 = TN_MOVE(sizes);
    return TN_OK;
}

/* ---- and back ---- */

/* Sizes of the padded tensor. */
typedef struct padded {
    int ndim;
    int64_t sizes[TN_MAX_DIMS]; /* [steps, batch, ...] */
} padded;

/* Sequences never begin late, and batch_sizes counts the rows of @p data. */
static tn_status check_batch_sizes(const int64_t *sizes, int64_t n, const tn_tensor *data)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        TN_CHECK(sizes[i] >= 0 && (i == 0 || sizes[i] <= sizes[i - 1]) &&
                     tni_i64_add(total, sizes[i], &total),
                 TN_INVALID,
                 "batch_sizes must not be negative and never grow, but batch_sizes[%lld] is %lld",
                 (long long)i, (long long)sizes[i]);
    TN_CHECK(total == data->sizes[0], TN_INVALID,
             "batch_sizes add up to %lld, but data has %lld rows", (long long)total,
             (long long)data->sizes[0]);
    return TN_OK;
}

/* Rows of a fresh tensor [steps * batch, ...] filled with @p fill. */
static tn_status fresh_rows(const padded *p, const tn_tensor *like, tn_scalar fill, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    TN_CHECK(tni_i64_mul(p->sizes[0], p->sizes[1], &sizes[0]), TN_INVALID,
             "the padded sequences have too many elements");
    for (int i = 2; i < p->ndim; i++)
        sizes[i - 1] = p->sizes[i];
    tn_tensor_opts opts = tn_opts((tn_dtype)like->dtype, like->device);
    return tn_full(sizes, p->ndim - 1, fill, &opts, out);
}

/* Rows as [steps, batch, ...], or with the batch first. */
static tn_status shaped(const padded *p, tn_tensor *rows, bool batch_first, tn_tensor **out)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_TRY(tn_view(rows, p->sizes, p->ndim, &whole));
    if (batch_first)
        return tn_transpose(whole, 0, 1, out);
    *out = TN_MOVE(whole);
    return TN_OK;
}

tn_status tni_composite__pack_padded_sequence_backward(tn_tensor *grad, const int64_t *input_size,
                                                       int64_t input_size_n, tn_tensor *batch_sizes,
                                                       bool batch_first, tn_tensor **out)
{
    padded p = {.ndim = (int)input_size_n};
    TN_TRY(check_lengths(batch_sizes));
    TN_CHECK(input_size_n >= 2 && input_size_n <= TN_MAX_DIMS && grad->ndim == input_size_n - 1,
             TN_INVALID,
             "Expected grad to have one dimension less than input_size, which has %lld, but it has "
             "%d",
             (long long)input_size_n, grad->ndim);
    for (int i = 0; i < p.ndim; i++)
        p.sizes[i] = input_size[i];
    p.sizes[0] = input_size[batch_first ? 1 : 0];
    p.sizes[1] = input_size[batch_first ? 0 : 1];
    TN_AUTO(tn_tensor) counts = NULL;
    TN_AUTO(tn_tensor) index = NULL;
    TN_AUTO(tn_tensor) zeros = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_TRY(tn_contiguous(batch_sizes, TN_FORMAT_CONTIGUOUS, &counts));
    TN_CHECK(tni_is_at_hand(counts), TN_INVALID, TNI_NOT_AT_HAND);
    const int64_t *sizes = counts->data;
    TN_TRY(check_batch_sizes(sizes, counts->numel, grad));
    TN_CHECK(counts->numel <= p.sizes[0] && (counts->numel == 0 || sizes[0] <= p.sizes[1]),
             TN_INVALID, "Expected at most %lld batch sizes of at most %lld, but got %lld and %lld",
             (long long)p.sizes[0], (long long)p.sizes[1], (long long)counts->numel,
             (long long)(counts->numel ? sizes[0] : 0));
    TN_TRY(fresh_rows(&p, grad, tn_int(0), &zeros));
    TN_TRY(places(sizes, counts->numel, grad->sizes[0], p.sizes[1], 1, grad->device, &index));
    TN_TRY(tn_index_add(zeros, 0, index, grad, tn_int(1), &rows));
    return shaped(&p, rows, batch_first, out);
}

/* How many steps each sequence has. */
static tn_status lengths_of(const int64_t *sizes, int64_t steps, tn_tensor **out)
{
    int64_t batch = sizes[0];
    size_t nbytes = (size_t)batch * sizeof(int64_t);
    int64_t *lengths = tni_alloc(nbytes);
    TN_CHECK(lengths, TN_NOMEM, "cannot allocate a list of %lld lengths", (long long)batch);
    for (int64_t b = 0, t = steps; b < batch; b++) {
        while (t > 0 && sizes[t - 1] <= b)
            t--;
        lengths[b] = t;
    }
    tn_status status = tn_tensor_from_data(lengths, 1, &batch, TN_DTYPE_I64, out);
    tni_free(lengths);
    return status;
}

tn_status tni_composite__pad_packed_sequence(tn_tensor *data, tn_tensor *batch_sizes,
                                             bool batch_first, tn_scalar padding_value,
                                             int64_t total_length, tn_tensor **out0,
                                             tn_tensor **out1)
{
    TN_TRY(check_lengths(batch_sizes));
    TN_CHECK(batch_sizes->numel > 0, TN_INVALID, "batch_sizes can not be empty");
    TN_CHECK(data->ndim > 0 && data->ndim < TN_MAX_DIMS, TN_INVALID,
             "Expected data to have 1 to %d dimensions, but it has %d", TN_MAX_DIMS - 1,
             data->ndim);
    TN_AUTO(tn_tensor) counts = NULL;
    TN_AUTO(tn_tensor) index = NULL;
    TN_AUTO(tn_tensor) base = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) lengths = NULL;
    TN_TRY(tn_contiguous(batch_sizes, TN_FORMAT_CONTIGUOUS, &counts));
    TN_CHECK(tni_is_at_hand(counts), TN_INVALID, TNI_NOT_AT_HAND);
    const int64_t *sizes = counts->data, steps = counts->numel;
    TN_TRY(check_batch_sizes(sizes, steps, data));
    TN_CHECK(total_length <= 0 || total_length >= steps, TN_INVALID,
             "Expected total_length to be at least the length of the longest sequence in input, "
             "but got total_length=%lld and max sequence length being %lld",
             (long long)total_length, (long long)steps);
    padded p = {.ndim = data->ndim + 1};
    p.sizes[0] = total_length > 0 ? total_length : steps;
    p.sizes[1] = sizes[0];
    for (int i = 1; i < data->ndim; i++)
        p.sizes[i + 1] = data->sizes[i];
    TN_TRY(fresh_rows(&p, data, padding_value, &base));
    TN_TRY(places(sizes, steps, data->sizes[0], p.sizes[1], 1, data->device, &index));
    TN_TRY(lengths_of(sizes, steps, &lengths));
    TN_TRY(tn_index_put(base, (tn_tensor *[]){index}, 1, data, false, &rows));
    TN_TRY(shaped(&p, rows, batch_first, out0));
    *out1 = TN_MOVE(lengths);
    return TN_OK;
}
