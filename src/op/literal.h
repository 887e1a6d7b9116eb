/* SPDX-License-Identifier: MIT */
/* op/literal.h: what the parts of the literal reader share; see Note [Argument literals] in
 * schema.h. */
#ifndef TNI_OP_LITERAL_H
#define TNI_OP_LITERAL_H

#include "op/lexer.h"
#include "op/schema.h"

/* How the elements lie in memory. */
typedef enum tni_literal_layout {
    TNI_LITERAL_PLAIN = 0,
    TNI_LITERAL_T,
    TNI_LITERAL_STRIDED,
    TNI_LITERAL_EXPANDED,
    TNI_LITERAL_CHANNELS_LAST,
} tni_literal_layout;

typedef struct tni_tensor_literal {
    tn_device device;
    tn_dtype dtype;
    tni_literal_layout layout;
    bool offset, grad, has_fill;
    tn_scalar fill;
    int ndim;
    int64_t sizes[TN_MAX_DIMS];
} tni_tensor_literal;

/* Make the tensor and give its elements their values. @retval TN_INVALID  the layout needs more
 * dimensions, or the sizes are too large @retval TN_NOMEM, TN_DEVICE */
TN_NODISCARD tn_status tni_literal_make(const tni_tensor_literal *literal,
                                        TN_OWNED tn_tensor **out);

/* Reads borrowed values, which live until tni_reader_end. */
typedef struct tni_reader {
    tni_lexer lex;
    tni_arena arena;
    struct tni_made *tensors; /* let go at the end */
    int level;                /* lists that we are inside of */
} tni_reader;

/* tni_reader_end is due also when this fails. */
TN_NODISCARD tn_status tni_reader_begin(tni_reader *r, const char *text);
void tni_reader_end(tni_reader *r);
/* One value, as far as possible of the type, which may be NULL. The caller checks that it fits. */
TN_NODISCARD tn_status tni_read_value(tni_reader *r, const tni_schema_type *type, tn_value *out);
/* Elements in a typed array where there is one for them. @p element may be NULL. */
TN_NODISCARD tn_status tni_read_pack(tni_reader *r, const tni_schema_type *element,
                                     const tn_value *values, uint32_t n, tn_value *out);
/* What a value is read as: the type without "?", NULL when anything will do. */
const tni_schema_type *tni_wanted_type(const tni_schema_type *type);
TNI_COLD tn_status tni_reader_nomem(void);

#endif
