/* SPDX-License-Identifier: MIT */
/* cpu/rare.c: special functions on the CPU: which loop, with which parameters. */
#include "cpu/run.h"
#include "gen/cpu.h"

#define PLAIN(name, LOOP)                             \
    tn_status tni_cpu_##name(tni_iter *it)            \
    {                                                 \
        return tni_run(it, TNI_LOOP_##LOOP, 0, NULL); \
    }
PLAIN(lgamma, LGAMMA)
PLAIN(digamma, DIGAMMA)
PLAIN(erfinv, ERFINV)
PLAIN(i0, I0)
PLAIN(i0e, I0E)
PLAIN(i1, I1)
PLAIN(i1e, I1E)
PLAIN(ndtri, NDTRI)
PLAIN(log_ndtr, LOG_NDTR)
PLAIN(erfcx, ERFCX)
PLAIN(sinc, SINC)
PLAIN(entr, ENTR)
PLAIN(bessel_j0, J0)
PLAIN(bessel_j1, J1)
PLAIN(bessel_y0, Y0)
PLAIN(bessel_y1, Y1)
PLAIN(bessel_k0, K0)
PLAIN(bessel_k1, K1)
PLAIN(bessel_k0e, K0E)
PLAIN(bessel_k1e, K1E)
PLAIN(spherical_j0, SPHERICAL_J0)
PLAIN(airy_ai, AIRY_AI)
PLAIN(logaddexp2, LOGADDEXP2)
PLAIN(xlogy, XLOGY)
PLAIN(xlog1py, XLOG1PY)
PLAIN(zeta, ZETA)
PLAIN(igamma, IGAMMA)
PLAIN(igammac, IGAMMAC)
PLAIN(gamma_slope, GAMMA_SLOPE)
PLAIN(dirichlet_slope, DIRICHLET_SLOPE)
PLAIN(chebyshev_t, CHEBYSHEV_T)
PLAIN(chebyshev_u, CHEBYSHEV_U)
PLAIN(chebyshev_v, CHEBYSHEV_V)
PLAIN(chebyshev_w, CHEBYSHEV_W)
PLAIN(hermite, HERMITE)
PLAIN(hermite_e, HERMITE_E)
PLAIN(laguerre, LAGUERRE)
PLAIN(legendre, LEGENDRE)
PLAIN(copysign, COPYSIGN)
PLAIN(heaviside, HEAVISIDE)
PLAIN(gcd, GCD)
PLAIN(lcm, LCM)

/* In the dtype itself: a half's next number is not a float's. */
tn_status tni_cpu_nextafter(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_NEXTAFTER, TNI_RUN_RAW, NULL);
}

tn_status tni_cpu_signbit(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_SIGNBIT, TNI_RUN_BOOL_RESULT, NULL);
}

tn_status tni_cpu_logit(tni_iter *it, tn_opt_float eps)
{
    const double p[TNI_LOOP_PARAMETERS] = {eps.has ? eps.value : -1.0};
    return tni_run(it, TNI_LOOP_LOGIT, 0, p);
}

tn_status tni_cpu_polygamma(tni_iter *it, int64_t n)
{
    const double p[TNI_LOOP_PARAMETERS] = {(double)n};
    return tni_run(it, TNI_LOOP_POLYGAMMA, 0, p);
}
