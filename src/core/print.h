/* SPDX-License-Identifier: MIT */
/* core/print.h: a tensor as text, for callers that add to it. */
#ifndef TNI_CORE_PRINT_H
#define TNI_CORE_PRINT_H

#include "tenon/tensor.h"
#include "base/str.h"

typedef struct tni_print_options {
    const char *dtype_prefix; /* "tenon." gives dtype=tenon.float16; "" gives dtype=float16 */
    const char *grad_fn;      /* "AddBackward0" gives grad_fn=<AddBackward0>; NULL: none */
    bool brief;               /* "tensor([...], size=(2, 3))": no elements, always the sizes */
} tni_print_options;

/* Append the text of @p t. @p options NULL: none of them. @retval TN_NOMEM, or what the device
 * says;
 * @p s may then hold a part. */
TN_NODISCARD tn_status tni_tensor_format(const tn_tensor *t, const tni_print_options *options,
                                         tni_str *s);

#endif
