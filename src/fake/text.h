/* SPDX-License-Identifier: MIT */
/* fake/text.h: operators and calls as the texts of failures show them. */
#ifndef TNI_FAKE_TEXT_H
#define TNI_FAKE_TEXT_H

#include "dispatch/registry.h"

enum { TNI_FAKE_NAME = 160 };
/* "aten.add.Tensor", "aten.mm.default" into @p buffer of TNI_FAKE_NAME; returns it. */
char *tni_fake_op_name(const tn_op *op, char *buffer);
/* Fail with @p what, then "Found in aten.add.Tensor(FakeTensor(..., size=(2,)), tensor([...],
 * size=(2,)))". */
TNI_COLD tn_status tni_fake_refuse_call(const tn_op *op, const tni_schema *schema,
                                        const tn_value *args, const char *what);

#endif
