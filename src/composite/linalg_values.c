/* SPDX-License-Identifier: MIT */
/* composite/linalg_values.c: eigenvalues, singular values and orthogonal factors. */
#include <string.h>
#include "base/warn.h"
#include "composite/linalg.h"
#include "gen/composites.h"

/* ---- values ---- */

tn_status tni_composite_linalg_eigh(tn_tensor *self, const char *UPLO, tn_tensor **eigenvalues,
                                    tn_tensor **eigenvectors)
{
    return tn__linalg_eigh(self, UPLO, true, eigenvalues, eigenvectors);
}

tn_status tni_composite_linalg_eigvalsh(tn_tensor *self, const char *UPLO, tn_tensor **out)
{
    TN_AUTO(tn_tensor) vectors = NULL;
    return tn__linalg_eigh(self, UPLO, tni_linalg_has_derivative(self), out, &vectors);
}

tn_status tni_composite_linalg_eigvals(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) vectors = NULL;
    TN_TRY(tni_linalg_check_square("linalg.eigvals", self));
    if (!tni_linalg_has_derivative(self)) /* which takes the vectors */
        return tn_eigenvalues(self, out);
    return tn_linalg_eig(self, out, &vectors);
}

tn_status tni_composite_linalg_svd(tn_tensor *A, bool full_matrices, const char *driver,
                                   tn_tensor **U, tn_tensor **S, tn_tensor **Vh)
{
    return tn__linalg_svd(A, full_matrices, true, driver, U, S, Vh);
}

tn_status tni_composite_linalg_svdvals(tn_tensor *A, const char *driver, tn_tensor **out)
{
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    return tn__linalg_svd(A, false, tni_linalg_has_derivative(A), driver, &u, out, &vh);
}

tn_status tni_composite_svd(tn_tensor *self, bool some, bool compute_uv, tn_tensor **U,
                            tn_tensor **S, tn_tensor **V)
{
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "linalg.svd: input should have at least 2 dimensions, but has %d dimensions instead",
             self->ndim);
    TN_TRY(tn__linalg_svd(self, !some, true, NULL, &u, &s, &vh));
    if (!compute_uv) {
        TN_AUTO(tn_tensor) none_u = NULL;
        TN_AUTO(tn_tensor) none_v = NULL;
        int64_t m = self->sizes[self->ndim - 2], n = self->sizes[self->ndim - 1];
        int64_t sizes[TN_MAX_DIMS];
        memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
        sizes[self->ndim - 1] = m;
        TN_TRY(tn_new_zeros(self, sizes, self->ndim, NULL, &none_u));
        sizes[self->ndim - 2] = sizes[self->ndim - 1] = n;
        TN_TRY(tn_new_zeros(self, sizes, self->ndim, NULL, &turned));
        TN_TRY(tn_transpose(turned, -2, -1, &none_v));
        *U = TN_MOVE(none_u);
        *S = TN_MOVE(s);
        *V = TN_MOVE(none_v);
        return TN_OK;
    }
    TN_TRY(tn_transpose(vh, -2, -1, &turned));
    TN_TRY(tn_conj(turned, V));
    *U = TN_MOVE(u);
    *S = TN_MOVE(s);
    return TN_OK;
}

tn_status tni_composite_qr(tn_tensor *self, bool some, tn_tensor **Q, tn_tensor **R)
{
    TNI_WARN_ONCE("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a "
                  "future PyTorch release.\nThe boolean parameter 'some' has been replaced with a "
                  "string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould be replaced with\n"
                  "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')");
    return tn_linalg_qr(self, some ? "reduced" : "complete", Q, R);
}

/* (1 - tau v v^H) for each reflector v, the last one first, of the first columns of the identity.
 */
tn_status tni_composite_householder_product(tn_tensor *input, tn_tensor *tau, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(input->ndim >= 2, TN_INVALID,
             "torch.linalg.householder_product: input must have at least 2 dimensions.");
    int64_t m = input->sizes[input->ndim - 2], n = input->sizes[input->ndim - 1];
    TN_CHECK(m >= n, TN_INVALID,
             "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
             "input.shape[-1]");
    TN_CHECK(
        tau->ndim == input->ndim - 1, TN_INVALID,
        "torch.linalg.householder_product: Expected tau to have one dimension less than input, "
        "but got tau.ndim equal to %d and input.ndim is equal to %d",
        tau->ndim, input->ndim);
    int64_t k = tau->sizes[tau->ndim - 1];
    char batch[TNI_SIZES_TEXT];
    TN_CHECK(k <= n, TN_INVALID,
             "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to "
             "tau.shape[-1]");
    TN_CHECK(memcmp(input->sizes, tau->sizes, (size_t)(tau->ndim - 1) * sizeof *tau->sizes) == 0,
             TN_INVALID,
             "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to "
             "input.shape[:-2], but got %s",
             tni_format_sizes(tau->ndim - 1, tau->sizes, batch, sizeof batch));
    TN_CHECK(tau->dtype == input->dtype, TN_INVALID,
             "torch.linalg.householder_product: tau dtype %s does not match input dtype %s",
             tni_dtype_text((tn_dtype)tau->dtype), tni_dtype_text((tn_dtype)input->dtype));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *one =
        tnx_constant_pad_nd(tnx_diag_embed(tnx_new_full(tau, &n, 1, tn_int(1), NULL), 0, -2, -1),
                            (const int64_t[]){0, 0, 0, m - n}, 4, tn_int(0));
    tn_tensor *v = tnx_add(tnx_tril(input, -1), one, tn_int(1));
    tn_tensor *q = tnx_expand(one, input->sizes, input->ndim, false);
    if (k == 0) /* without reflectors, and with a history all the same */
        q = tnx_add(q, tnx_tril(input, -m), tn_int(1));
    for (int64_t i = k - 1; i >= 0; i--) {
        tn_tensor *x = tnx_narrow(v, -1, i, 1);
        tn_tensor *factor = tnx_unsqueeze(tnx_narrow(tau, -1, i, 1), -1);
        tn_tensor *part = tnx_matmul(x, tnx_matmul(tni_linalg_adjoint(x), q));
        q = tnx_sub(q, tnx_mul(factor, part), tn_int(1));
    }
    return tni_leave(scope, tni_linalg_by_columns(q), out);
}

static tn_status check_ormqr(const tn_tensor *self, const tn_tensor *tau, const tn_tensor *other,
                             bool left)
{
    const tn_tensor *both[] = {tau, other};
    TN_CHECK(self->ndim >= 2, TN_INVALID, "torch.ormqr: input must have at least 2 dimensions.");
    TN_CHECK(other->ndim >= 2, TN_INVALID, "torch.ormqr: other must have at least 2 dimensions.");
    int64_t rows = other->sizes[other->ndim - (left ? 2 : 1)], k = self->sizes[self->ndim - 1];
    TN_CHECK(rows == self->sizes[self->ndim - 2], TN_INVALID,
             "torch.ormqr: other.shape[%d] must be equal to input.shape[-2]", left ? -2 : -1);
    TN_CHECK(tau->ndim == self->ndim - 1, TN_INVALID,
             "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim "
             "equal to %d and input.ndim is equal to %d",
             tau->ndim, self->ndim);
    TN_CHECK(tau->sizes[tau->ndim - 1] == (rows < k ? rows : k), TN_INVALID,
             "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[%d], input.shape[-1])",
             left ? -2 : -1);
    for (int i = 0; i < 2; i++) {
        const int batch = self->ndim - 2;
        bool same = both[i]->ndim - (i ? 2 : 1) == batch;
        for (int d = 0; same && d < batch; d++)
            same = both[i]->sizes[d] == self->sizes[d];
        char text[256];
        TN_CHECK(same, TN_INVALID,
                 "torch.ormqr: Expected batch dimensions of %s to be equal to input.shape[:-2], "
                 "but got %s",
                 i ? "other" : "tau",
                 tni_format_sizes(both[i]->ndim - (i ? 2 : 1), both[i]->sizes, text, sizeof text));
    }
    for (int i = 0; i < 2; i++)
        TN_CHECK(both[i]->dtype == self->dtype, TN_INVALID,
                 "torch.ormqr: Expected input and %s to have the same dtype, but input has dtype%s "
                 "and %s has dtype %s",
                 i ? "other" : "tau", tni_dtype_text((tn_dtype)self->dtype), i ? "other" : "tau",
                 tni_dtype_text((tn_dtype)both[i]->dtype));
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_CHECK(tn_dtype_is_complex(dtype) || dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64,
             TN_UNSUPPORTED, "\"ormqr_cpu\" not implemented for '%s'", tni_dtype_text(dtype));
    return TN_OK;
}

/* The product of the reflectors, or its adjoint, times a matrix, or the other way round: one
 * reflector after the other. */
tn_status tni_composite_ormqr(tn_tensor *self, tn_tensor *tau, tn_tensor *other, bool left,
                              bool transpose, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(check_ormqr(self, tau, other, left));
    int64_t m = self->sizes[self->ndim - 2], n = self->sizes[self->ndim - 1];
    int64_t k = tau->sizes[tau->ndim - 1];
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *one = tnx_new_full(tau, (const int64_t[]){m < n ? m : n}, 1, tn_int(1), NULL);
    one = tnx_constant_pad_nd(tnx_diag_embed(one, 0, -2, -1),
                              (const int64_t[]){0, n > m ? n - m : 0, 0, m > n ? m - n : 0}, 4,
                              tn_int(0));
    tn_tensor *v = tnx_add(tnx_tril(self, -1), one, tn_int(1)), *made = other;
    if (transpose)
        tau = tnx_conj(tau);
    for (int64_t step = 0; step < k; step++) {
        int64_t i = left == transpose ? step : k - 1 - step;
        tn_tensor *x = tnx_narrow(v, -1, i, 1);
        tn_tensor *factor = tnx_unsqueeze(tnx_narrow(tau, -1, i, 1), -1);
        tn_tensor *part = left ? tnx_matmul(x, tnx_matmul(tni_linalg_adjoint(x), made))
                               : tnx_matmul(tnx_matmul(made, x), tni_linalg_adjoint(x));
        made = tnx_sub(made, tnx_mul(factor, part), tn_int(1));
    }
    return tni_leave(scope, tni_linalg_by_columns(k ? made : tnx_clone(made, TN_FORMAT_CONTIGUOUS)),
                     out);
}
