/* SPDX-License-Identifier: MIT */
/* iter/random.h: what random fills refuse, on every backend. */
#ifndef TNI_ITER_RANDOM_H
#define TNI_ITER_RANDOM_H

#include "core/tensor.h"

/* @retval TN_INVALID  "uniform_ expects to return a [from, to) range, but found from=2 > to=1"
 * @retval TN_UNSUPPORTED  not a floating or complex dtype */
TN_NODISCARD tn_status tni_check_uniform(const tn_tensor *self, double from, double to);
/* @retval TN_INVALID  "normal expects std >= 0.0, but found std -1" */
TN_NODISCARD tn_status tni_check_normal(const tn_tensor *self, double std);
/* The probability of bernoulli_. */
TN_NODISCARD tn_status tni_check_bernoulli(const tn_tensor *self, double p);
/* A tensor of probabilities, which @p self is filled by. Its values are for who sees them. */
TN_NODISCARD tn_status tni_check_bernoulli_tensor(const tn_tensor *self, const tn_tensor *p);
TN_NODISCARD tn_status tni_check_exponential(const tn_tensor *self, double lambd);

/* Whole numbers of [from, from + range), where range 0 stands for 2^64. */
typedef struct tni_whole_range {
    int64_t from;
    uint64_t range;
} tni_whole_range;
/* What random_ with these bounds gives; without @p to, all numbers from @p from that the dtype has.
 * @retval TN_INVALID  "random_ expects 'from' to be less than 'to', but got from=3 >= to=3" */
TN_NODISCARD tn_status tni_check_random(const tn_tensor *self, int64_t from, tn_opt_int to,
                                        tni_whole_range *out);
/* What random_ without bounds gives: from 0 to the largest number; of a floating dtype, to the
 * largest below which all whole numbers can be told apart. */
TN_NODISCARD tn_status tni_check_random_all(const tn_tensor *self, tni_whole_range *out);

#endif
