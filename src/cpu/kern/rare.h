/* SPDX-License-Identifier: MIT */
/* cpu/kern/rare.h: special functions of a double that the C library lacks. float32 is computed
 * through them too. Limits of their errors are in docs/user/accuracy.md and tests/cpu/test_ulp.c.
 */
#ifndef TNI_CPU_KERN_RARE_H
#define TNI_CPU_KERN_RARE_H

/* gamma.c */
double tni_lgamma(double x);
double tni_digamma(double x);
double tni_polygamma(double n, double x);
double tni_zeta(double s, double q);
/* The lower and the upper incomplete gamma function over gamma(a). */
double tni_igamma(double a, double x);
double tni_igammac(double a, double x);
/* How a sample of the gamma distribution moves with its parameter. */
double tni_gamma_slope(double a, double sample);
/* How x, a component of a Dirichlet sample, moves with its parameter. */
double tni_dirichlet_slope(double x, double alpha, double total);

/* error.c */
double tni_erfinv(double x);
double tni_erfcx(double x);
double tni_ndtri(double p);
double tni_log_ndtr(double x);

/* bessel.c: modified functions, those with an e are scaled by exp(-|x|) or exp(x) */
double tni_i0e(double x);
double tni_i1e(double x);
double tni_i0(double x);
double tni_i1(double x);
double tni_k0(double x);
double tni_k1(double x);
double tni_k0e(double x);
double tni_k1e(double x);

/* airy.c */
double tni_airy_ai(double x);

#endif
