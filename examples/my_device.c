/* SPDX-License-Identifier: MIT */
/* my_device.c: a device of your own, in one file, outside the tree: memory, a matrix product, and a
 * fallback that borrows every other operator from the CPU.
 *
 * The device is called "toy". Its memory is the host's here; a real one would talk to its driver.
 * Making tensors, copying between devices and views work at once: they need only the vtable.
 *
 * The fallback copies arguments to the CPU, calls the operator there, and copies back what was
 * written and what was returned. It refuses lists of tensors, results that are views (operators
 * that make views have kernels for every device and do not come here), `out` arguments that must be
 * resized, and inference tensors, which do not count writes. Two written arguments must not share
 * memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/dispatch.h>
#include <tenon/kernels.h>
#include <tenon/ops.h>

static tn_device toy = {TN_DEVICE_NONE, 0};

/* ---- memory ---- */

static tn_status toy_alloc(void *ctx, tn_device device, size_t nbytes, void **out)
{
    (void)ctx, (void)device;
    *out = malloc(nbytes ? nbytes : 1);
    return *out ? TN_OK : tn_fail(TN_NOMEM, "toy: cannot allocate %zu bytes", nbytes);
}

static void toy_free(void *ctx, tn_device device, void *ptr, size_t nbytes)
{
    (void)ctx, (void)device, (void)nbytes;
    free(ptr);
}

static tn_status toy_copy(void *ctx, tn_device device, void *to, const void *from, size_t nbytes)
{
    (void)ctx, (void)device;
    memcpy(to, from, nbytes);
    return TN_OK;
}

/* ---- an operator of its own: a typed kernel, checked by the compiler ---- */

static tn_status toy_mm(tn_call *call, tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    (void)call;
    const int64_t *m = tn_tensor_sizes(a), *n = tn_tensor_sizes(b);
    const int64_t *sa = tn_tensor_strides(a), *sb = tn_tensor_strides(b);
    if (tn_tensor_ndim(a) != 2 || tn_tensor_ndim(b) != 2 || m[1] != n[0] ||
        tn_tensor_dtype(a) != TN_DTYPE_F32 || tn_tensor_dtype(b) != TN_DTYPE_F32)
        return tn_fail(TN_INVALID, "toy: mm takes float32 matrices [m, k] and [k, n]");
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, toy);
    tn_status status = tn_empty((int64_t[]){m[0], n[1]}, 2, &opts, TN_FORMAT_NONE, out);
    if (status != TN_OK)
        return status;
    const float *x = tn_tensor_data(a), *y = tn_tensor_data(b);
    float *z = tn_tensor_data(*out);
    for (int64_t i = 0; i < m[0]; i++) {
        for (int64_t j = 0; j < n[1]; j++) {
            float sum = 0;
            for (int64_t k = 0; k < m[1]; k++)
                sum += x[i * sa[0] + k * sa[1]] * y[k * sb[0] + j * sb[1]];
            z[i * n[1] + j] = sum;
        }
    }
    return TN_OK;
}

/* ---- everything else: on the CPU, with copies ---- */

static tn_status move(tn_tensor *t, tn_device device, tn_tensor **out)
{
    return tn_to_device(t, device, tn_tensor_dtype(t), false, true, TN_FORMAT_NONE, out);
}

static bool is_on_toy(const tn_value *v)
{
    return v->tag == TN_TAG_TENSOR && v->u.tensor && tn_tensor_device(v->u.tensor).type == toy.type;
}

/* The CPU counts writes: a copy that was written goes back. */
static tn_status write_back(tn_tensor *t, tn_tensor *copy, uint32_t before)
{
    uint32_t writes;
    tn_status status = tn_tensor_version(copy, &writes);
    if (status != TN_OK || writes == before)
        return status;
    if (tn_tensor_numel(t) != tn_tensor_numel(copy))
        return tn_fail(TN_UNSUPPORTED, "toy: the fallback cannot resize an argument");
    return tn_copy_(t, copy, false);
}

/* Bring a result over. One that is a written argument becomes None: the dispatcher then returns the
 * argument itself. */
static tn_status bring_over(tn_value *result, const tn_value *args, int nargs)
{
    if (result->tag != TN_TAG_TENSOR || !result->u.tensor)
        return TN_OK;
    tn_tensor *there = NULL;
    bool is_argument = false, is_view = false;
    for (int i = 0; i < nargs; i++) {
        tn_tensor *t = args[i].tag == TN_TAG_TENSOR ? args[i].u.tensor : NULL;
        is_argument |= t == result->u.tensor;
        is_view |= t && tn_tensor_shares_storage(t, result->u.tensor);
    }
    tn_status status = TN_OK;
    if (!is_argument)
        status = is_view ? tn_fail(TN_UNSUPPORTED, "toy: the fallback cannot return a view")
                         : move(result->u.tensor, toy, &there);
    tn_value_clear(result);
    if (there)
        *result = tn_value_take_tensor(there);
    return status;
}

static tn_status toy_fallback(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_op *op = tn_call_op(call);
    const int nargs = tn_call_num_arguments(call), nrets = tn_call_num_returns(call);
    tn_value cpu[64], results[64]; /* a schema has no more */
    uint32_t writes[64];
    tn_status status = TN_OK;
    for (int i = 0; i < nargs; i++) {
        tn_tensor *copy;
        cpu[i] = args[i];
        cpu[i].flags = 0; /* lent, not ours */
        if (args[i].tag == TN_TAG_TENSOR_LIST)
            status = tn_fail(TN_UNSUPPORTED, "toy: the fallback does not do lists of tensors");
        if (status == TN_OK && is_on_toy(&args[i]) &&
            (status = move(args[i].u.tensor, TN_CPU, &copy)) == TN_OK) {
            cpu[i] = tn_value_take_tensor(copy);
            status = tn_tensor_version(copy, &writes[i]);
        }
    }
    for (int i = 0; i < nrets; i++)
        results[i] = tn_value_none();
    if (status == TN_OK) {
        /* What was passed on the way here is switched off; the layer that counts writes must run.
         */
        tn_keyset counting = tn_keyset_of(TN_KEY_ADINPLACE_OR_VIEW);
        tn_key_guard guard = tn_force_keys(tn_included_keys(), tn_excluded_keys() & ~counting);
        status = tn_op_call(op, cpu, nargs, results);
        tn_keys_restore(guard);
    }
    for (int i = 0; i < nargs && status == TN_OK; i++)
        if (is_on_toy(&args[i]))
            status = write_back(args[i].u.tensor, cpu[i].u.tensor, writes[i]);
    for (int i = 0; i < nrets && status == TN_OK; i++)
        status = bring_over(&results[i], cpu, nargs);
    for (int i = 0; i < nrets; i++) {
        if (status == TN_OK)
            rets[i] = results[i];
        else
            tn_value_clear(&results[i]);
    }
    for (int i = 0; i < nargs; i++)
        tn_value_clear(&cpu[i]);
    return status;
}

/* ---- in use ---- */

static tn_library *kernels, *fallbacks; /* what is registered lives as long as its library */

static tn_status register_toy(void)
{
    const tn_device_vtable vtable = {.size = sizeof vtable,
                                     .alloc = toy_alloc,
                                     .free = toy_free,
                                     .to_host = toy_copy,
                                     .from_host = toy_copy};
    tn_device_type type;
    tn_status status = tn_device_register("toy", &vtable, &type);
    if (status != TN_OK)
        return status;
    toy = TN_DEVICE_INIT(type, 0);
    const tn_key key = (tn_key)(TN_KEY_CPU + type);
    const tn_kernel mm = tn_kernel_mm(toy_mm, __FILE__, __LINE__);
    const tn_kernel fallback = TN_KERNEL_INIT(toy_fallback);
    if ((status = tn_library_open(TN_LIBRARY_IMPL, "aten", key, __FILE__, __LINE__, &kernels)) ||
        (status = tn_library_impl(kernels, "mm", TN_KEY_NONE, &mm, NULL)) ||
        (status = tn_library_open(TN_LIBRARY_IMPL, "_", key, __FILE__, __LINE__, &fallbacks)))
        return status;
    return tn_library_fallback(fallbacks, key, &fallback, NULL);
}

static tn_tensor *layer(tn_device device)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_manual_seed(1); /* the same numbers on every device */
    tn_tensor *x = tnx_randn((int64_t[]){2, 4, 3}, 3, &opts);
    return tnx_relu_(tnx_matmul(x, tnx_ones((int64_t[]){3, 2}, 2, &opts)));
}

int main(void)
{
    tn_scope *scope;
    tn_scalar worst = tn_float(1);
    char *text;
    if (register_toy() != TN_OK || tn_scope_enter(&scope) != TN_OK) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_set_dispatch_trace(true); /* to stderr: what ran on "toy", and what on the CPU? */
    tn_tensor *y = layer(toy);
    tn_set_dispatch_trace(false);
    tn_tensor *distance = tnx_abs(
        tnx_sub(y, tnx_to_other(layer(TN_CPU), y, false, false, TN_FORMAT_NONE), tn_int(1)));
    tn_tensor *largest = tnx_amax(distance, NULL, 0, false);
    if (tn_scope_status(scope) == TN_OK && tn_tensor_to_string(y, &text) == TN_OK) {
        printf("%s\n", text);
        tn_string_free(text);
        if (tn_item(largest, &worst) == TN_OK)
            printf("largest distance from the CPU: %.1e\n", tn_scalar_to_double(worst));
    }
    if (tn_scope_leave(scope) != TN_OK)
        fprintf(stderr, "%s\n", tn_last_error());
    tn_library_close(kernels);
    tn_library_close(fallbacks);
    return !(tn_scalar_to_double(worst) < 1e-5);
}
