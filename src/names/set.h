/* SPDX-License-Identifier: MIT */
/* names/set.h: what may be the names of a tensor. */
#ifndef TNI_NAMES_SET_H
#define TNI_NAMES_SET_H

#include "core/names.h"

/* @retval TN_INVALID  "Cannot construct a tensor with duplicate names. Got names: ['N', 'N']." */
TN_NODISCARD tn_status tni_names_check_distinct(const char *const *names, int n);
/* @retval TN_INVALID  "NYI: named tensors only support CPU, …" */
TN_NODISCARD tn_status tni_names_check_device(const tn_tensor *t);
/* Some dimension has a name; NULL @p names: none has. */
bool tni_names_any(const char *const *names, int n);

#endif
