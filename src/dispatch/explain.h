/* SPDX-License-Identifier: MIT */
/* dispatch/explain.h: an operator's registrations and table, as text. Locked. */
#ifndef TNI_DISPATCH_EXPLAIN_H
#define TNI_DISPATCH_EXPLAIN_H

#include "base/str.h"
#include "dispatch/call.h"

/* "CPU, Meta, AutogradCPU": runtime keys with a kernel that does something. */
void tni_describe_backends(const tn_op *op, tni_str *s);
/* One line a valid slot: "KEY: [fallthrough ]where [provenance]". */
void tni_describe_table(const tn_op *op, tni_str *s);
/* The missing-kernel failure of a call. */
tn_status tni_missing_kernel(tn_call *call);

#endif
