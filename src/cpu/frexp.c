/* SPDX-License-Identifier: MIT */
/* cpu/frexp.c: numbers taken apart into mantissas and exponents. */
#include <math.h>
#include "base/pool.h"
#include "cpu/lines.h"
#include "gen/cpu.h"

static tn_status apart(void *const *line, void *scratch, void *ctx)
{
    const int64_t n = *(const int64_t *)ctx;
    const double *x = line[2];
    double *mantissa = line[0];
    int32_t *exponent = line[1];
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        int power = 0;
        mantissa[i] = frexp(x[i], &power);
        exponent[i] = isfinite(x[i]) ? power : 0;
    }
    return TN_OK;
}

tn_status tni_cpu_frexp(tn_tensor *self, tn_tensor *mantissa, tn_tensor *exponent)
{
    uint64_t last = self->ndim ? UINT64_C(1) << (self->ndim - 1) : 0;
    int64_t n = tni_line_length(self, last);
    tni_line lines[] = {{mantissa, TN_DTYPE_F64, TNI_LINE_WRITE},
                        {exponent, TN_DTYPE_NONE, TNI_LINE_WRITE},
                        {self, TN_DTYPE_F64, TNI_LINE_READ}};
    return n ? tni_lines(self, last, lines, 3, 0, apart, &n) : TN_OK;
}
