/* SPDX-License-Identifier: MIT */
/* cpu/matmul.c: mm, bmm, mv, dot and the forms that add, on tensors. What they look like is said in
 * shape/linalg.c; how they are computed in cpu/gemm.c. */
#include "cpu/move.h"
#include "base/pool.h"
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/gemm_kernels.h"
#include "dispatch/debug.h"
#include "gen/cpu.h"
#include "shape/expand.h"

/* ---- tensors as matrices ---- */

/* The last two dimensions; one before them is a batch. */
/* Fields are set one by one: a structure that is put together and then copied is read before its
 * stores have arrived, which costs more than a small product. */
static inline void set_matrix(tni_matrix *m, const tn_tensor *t)
{
    int i = t->ndim - 2;
    m->data = t->data;
    m->row = t->strides[i];
    m->col = t->strides[i + 1];
    m->batch = i ? t->strides[0] : 0;
}

static inline void set_column(tni_matrix *m, const tn_tensor *t)
{
    m->data = t->data;
    m->row = t->strides[0];
    m->col = 1;
    m->batch = 0;
}

static inline void set_sizes(tni_gemm_args *g, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    g->m = m;
    g->n = n;
    g->k = k;
    g->batch = batch;
    g->gather_a = g->gather_b = NULL;
    g->gather_first = 0;
}

static inline void set_product(tni_gemm_args *g, const tn_tensor *a, const tn_tensor *b,
                               const tn_tensor *out)
{
    int i = out->ndim - 2;
    set_sizes(g, out->sizes[i], out->sizes[i + 1], a->sizes[i + 1], i ? out->sizes[0] : 1);
    set_matrix(&g->a, a);
    set_matrix(&g->b, b);
    set_matrix(&g->c, out);
    set_matrix(&g->d, out);
}

/* The product of a matrix and a vector, as one of matrices. */
static inline void set_vector_product(tni_gemm_args *g, const tn_tensor *mat, const tn_tensor *vec,
                                      const tn_tensor *out)
{
    set_sizes(g, mat->sizes[0], 1, mat->sizes[1], 1);
    set_matrix(&g->a, mat);
    set_column(&g->b, vec);
    set_column(&g->c, out);
    set_column(&g->d, out);
}

/* What is added is @p self, expanded to the sizes of @p out: read where it lies, or, where the
 * dtypes differ, copied first. */
static tn_status add_self(tni_gemm_args *g, tn_tensor *self, tn_scalar beta, tn_tensor *out)
{
    if (self == out || !tni_scalar_is_true(beta) || out->numel == 0)
        return TN_OK;
    if (TNI_UNLIKELY(self->dtype != out->dtype))
        return tni_copy_cpu(out, self);
    int64_t sizes[3], strides[3];
    TN_TRY(tni_expand(self, out->ndim, out->sizes, sizes, strides));
    int n = out->ndim;
    g->d.data = self->data;
    g->d.row = n == 1 ? strides[0] : strides[n - 2];
    g->d.col = n == 1 ? 1 : strides[n - 1];
    g->d.batch = n == 3 ? strides[0] : 0;
    return TN_OK;
}

/* ---- float8: computed in float32, rounded once ---- */

static tn_status widened(const tn_tensor *t, tn_tensor **out)
{
    TN_AUTO(tn_tensor) wide = NULL;
    TN_TRY(tni_tensor_new(t->ndim, t->sizes, NULL, TN_DTYPE_F32, TN_CPU, &wide));
    TN_TRY(tni_copy_cpu(wide, t));
    *out = TN_MOVE(wide);
    return TN_OK;
}

/* @p self: NULL of a product alone. */
static TNI_COLD tn_status product_of_float8(tn_tensor *self, tn_tensor *a, tn_tensor *b,
                                            tn_scalar beta, tn_scalar alpha, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) y = NULL;
    TN_AUTO(tn_tensor) z = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(widened(a, &x));
    TN_TRY(widened(b, &y));
    if (self)
        TN_TRY(widened(self, &z));
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F32, TN_CPU, &made));
    TN_TRY(z ? tni_cpu_addmm(z, x, y, beta, alpha, made) : tni_cpu_mm(x, y, made));
    return tni_copy_cpu(out, made);
}

/* ---- operators ---- */

/* The kernel for contiguous matrices that are so small that to describe them takes as long as to
 * multiply them; NULL where they are not. Sizes are those of the operands: to read what was just
 * written to a new tensor takes longer. */
static inline tni_gemm_tiny_fn tiny_kernel(const tn_tensor *a, const tn_tensor *b,
                                           const tn_tensor *out, int64_t m, int64_t n, int64_t k)
{
    if (!(a->flags & b->flags & out->flags & TNI_CONTIGUOUS) || !tni_gemm_is_tiny(m, n, k))
        return NULL;
    return tni_cpu_kernels()->gemm->tiny[a->dtype];
}

/* True when it was done. */
static inline bool run_tiny_batch(const tn_tensor *a, const tn_tensor *b, tn_tensor *out)
{
    const int64_t batch = a->sizes[0], m = a->sizes[1], k = a->sizes[2], n = b->sizes[2];
    tni_gemm_tiny_fn kernel = tiny_kernel(a, b, out, m, n, k);
    if (!kernel || batch * (m * n * k) > TNI_GEMM_ALONE)
        return false;
    const int64_t size = (int64_t)tni_itemsize(a);
    for (int64_t i = 0; i < batch; i++)
        kernel(m, n, k, (const char *)a->data + i * m * k * size,
               (const char *)b->data + i * k * n * size, (char *)out->data + i * m * n * size);
    return true;
}

static TNI_COLD void mm_debug(const char *what)
{
    if (tni_debug_on("aten::mm"))
        tni_debug_line("TORCH_IMPL_FUNC(mm_out_cpu)", "%s", what);
}

static __attribute__((noinline)) tn_status mm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    tni_gemm_args g;
    set_product(&g, self, mat2, out);
    return tni_gemm_plain((tn_dtype)out->dtype, &g);
}

static TNI_COLD tn_status mm_observed(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    mm_debug("========== ENTERED MM CPU FUNCTION ==========");
    tn_status status = mm(self, mat2, out);
    mm_debug(status == TN_OK ? "CPU function complete" : "CPU function failed");
    return status;
}

tn_status tni_cpu_mm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    if (TNI_UNLIKELY(TN_DTYPE_IS_LIMITED(self->dtype)))
        return product_of_float8(NULL, self, mat2, tn_int(0), tn_int(1), out);
    if (tni_observing)
        return mm_observed(self, mat2, out);
    const int64_t m = self->sizes[0], k = self->sizes[1], n = mat2->sizes[1];
    tni_gemm_tiny_fn kernel = tiny_kernel(self, mat2, out, m, n, k);
    if (!kernel)
        return mm(self, mat2, out);
    kernel(m, n, k, self->data, mat2->data, out->data);
    return TN_OK;
}

tn_status tni_cpu_bmm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    return run_tiny_batch(self, mat2, out) ? TN_OK : mm(self, mat2, out);
}

tn_status tni_cpu_addmm(tn_tensor *self, tn_tensor *mat1, tn_tensor *mat2, tn_scalar beta,
                        tn_scalar alpha, tn_tensor *out)
{
    if (TNI_UNLIKELY(TN_DTYPE_IS_LIMITED(out->dtype)))
        return product_of_float8(self, mat1, mat2, beta, alpha, out);
    tni_gemm_args g;
    set_product(&g, mat1, mat2, out);
    TN_TRY(add_self(&g, self, beta, out));
    return tni_gemm((tn_dtype)out->dtype, &g, alpha, beta);
}

tn_status tni_cpu_baddbmm(tn_tensor *self, tn_tensor *batch1, tn_tensor *batch2, tn_scalar beta,
                          tn_scalar alpha, tn_tensor *out)
{
    return tni_cpu_addmm(self, batch1, batch2, beta, alpha, out);
}

tn_status tni_cpu_mv(tn_tensor *self, tn_tensor *vec, tn_tensor *out)
{
    tni_gemm_args g;
    set_vector_product(&g, self, vec, out);
    return tni_gemm_plain((tn_dtype)out->dtype, &g);
}

tn_status tni_cpu_addmv(tn_tensor *self, tn_tensor *mat, tn_tensor *vec, tn_scalar beta,
                        tn_scalar alpha, tn_tensor *out)
{
    tni_gemm_args g;
    set_vector_product(&g, mat, vec, out);
    TN_TRY(add_self(&g, self, beta, out));
    return tni_gemm((tn_dtype)out->dtype, &g, alpha, beta);
}

/* ---- dot: a sum of products, see Note [Sums] ---- */

#define CHUNK       32768 /* elements that a piece of work has at least, whole blocks */
#define MOST_CHUNKS 64
#define FEWEST      64 /* elements: fewer are a product like others */

typedef struct dot_job {
    const tni_kernels *kernels;
    const char *x, *y;
    tn_dtype have, compute;
    int64_t n, chunk;
    double sums[MOST_CHUNKS];
} dot_job;

static tn_status dot_chunks(int64_t begin, int64_t end, void *arg)
{
    _Alignas(64) char one[TNI_SUM_BLOCK * sizeof(double)], other[TNI_SUM_BLOCK * sizeof(double)];
    dot_job *j = arg;
    int64_t size = (int64_t)tni_dtype_size(j->have);
    for (int64_t c = begin; c < end; c++) {
        int64_t stop = (c + 1) * j->chunk < j->n ? (c + 1) * j->chunk : j->n;
        double sum = 0;
        for (int64_t i = c * j->chunk; i < stop; i += TNI_SUM_BLOCK) {
            int64_t m = stop - i < TNI_SUM_BLOCK ? stop - i : TNI_SUM_BLOCK;
            const void *x = j->x + i * size, *y = j->y + i * size;
            if (j->have != j->compute) {
                tni_convert(j->kernels, j->compute, one, j->have, x, m);
                tni_convert(j->kernels, j->compute, other, j->have, y, m);
                x = one;
                y = other;
            }
            double wide;
            float narrow;
            if (j->compute == TN_DTYPE_F64)
                j->kernels->reduce->dot_block[TN_DTYPE_F64](&wide, x, y, m);
            else
                j->kernels->reduce->dot_block[TN_DTYPE_F32](&narrow, x, y, m);
            sum += j->compute == TN_DTYPE_F64 ? wide : (double)narrow;
        }
        j->sums[c] = sum;
    }
    return TN_OK;
}

static tn_status dot_of_runs(const tn_tensor *x, const tn_tensor *y, tn_tensor *out)
{
    dot_job j = {.kernels = tni_cpu_kernels(), .x = x->data, .y = y->data, .n = x->numel};
    j.have = (tn_dtype)x->dtype;
    j.compute = j.have == TN_DTYPE_F64 ? TN_DTYPE_F64 : TN_DTYPE_F32;
    int64_t blocks = (j.n + TNI_SUM_BLOCK - 1) / TNI_SUM_BLOCK;
    j.chunk = (blocks + MOST_CHUNKS - 1) / MOST_CHUNKS * TNI_SUM_BLOCK;
    j.chunk = j.chunk < CHUNK ? CHUNK : j.chunk;
    int64_t chunks = (j.n + j.chunk - 1) / j.chunk;
    if (chunks == 1)
        TN_TRY(dot_chunks(0, 1, &j));
    else
        TN_TRY(tni_pool_for(chunks, 1, dot_chunks, &j));
    double sum = 0;
    for (int64_t c = 0; c < chunks; c++)
        sum += j.sums[c];
    tni_convert(j.kernels, (tn_dtype)out->dtype, out->data, TN_DTYPE_F64, &sum, 1);
    return TN_OK;
}

tn_status tni_cpu_dot(tn_tensor *self, tn_tensor *tensor, tn_tensor *out)
{
    tn_dtype dtype = (tn_dtype)self->dtype;
    if (self->numel >= FEWEST && self->strides[0] == 1 && tensor->strides[0] == 1 &&
        tensor->dtype == self->dtype && out->dtype == self->dtype &&
        (dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64 || dtype == TN_DTYPE_BF16 ||
         dtype == TN_DTYPE_F16))
        return dot_of_runs(self, tensor, out);
    tni_gemm_args g = {.a = {self->data, self->numel, self->strides[0], 0},
                       .c = {out->data, 1, 1, 0},
                       .d = {out->data, 1, 1, 0}};
    set_sizes(&g, 1, 1, self->numel, 1);
    set_column(&g.b, tensor);
    return tni_gemm_plain((tn_dtype)out->dtype, &g);
}
