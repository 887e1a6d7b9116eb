/* SPDX-License-Identifier: MIT */
/* op/def.h: a built-in operator as data, as the generator writes it (gen/op_table.c). */
#ifndef TNI_OP_DEF_H
#define TNI_OP_DEF_H

#include "tenon/dispatch.h"

enum {
    TNI_OP_VIEW = 1u << 0,      /* a result aliases an argument that is not written */
    TNI_OP_MUTATES = 1u << 1,   /* some argument is written */
    TNI_OP_INPLACE = 1u << 2,   /* name ends in '_' */
    TNI_OP_OUT = 1u << 3,       /* has a keyword-only written argument */
    TNI_OP_COMPOSITE = 1u << 4, /* CompositeImplicitAutograd only */
    TNI_OP_POINTWISE = 1u << 5,
    /* Kernels take these dtypes too, which most refuse: see Note [Limited dtypes]. */
    TNI_OP_TAKES_UNSIGNED = 1u << 6,
    TNI_OP_TAKES_FLOAT8 = 1u << 7,
    TNI_OP_NOT_IMPLEMENTED = 1u << 8, /* its derivative, as it declares itself */
};

/* What the dimensions of its results are called, where those of an argument have names: rules of
 * src/names. */
typedef enum tni_name_rule {
    TNI_NAMES_REFUSED = 0,
    TNI_NAMES_NONE,
    TNI_NAMES_UNIFY,
    TNI_NAMES_SAME,
    TNI_NAMES_REDUCE,
    TNI_NAMES_TRANSPOSE,
    TNI_NAMES_EXPAND,
    TNI_NAMES_SQUEEZE,
    TNI_NAMES_DIAGONAL,
    TNI_NAMES_PRODUCT,
    TNI_NAMES_DISTANCE,
    TNI_NAMES_CAT,
    TNI_NAMES_MASK,
    TNI_NAMES_MASKED,
    TNI_NAMES_EQUAL,
    TNI_NUM_NAME_RULES
} tni_name_rule;

typedef struct tni_op_def {
    const char *name; /* "aten::add.Tensor" */
    const char
        *schema; /* "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
    const char *c_name; /* "tn_add" */
    const char *doc;
    const char *tags;  /* separated by spaces, "" for none */
    const char *label; /* its kernel in texts that refuse a dtype: "add_stub" */
    const char *file;  /* "ops/pointwise.op" */
    int line;
    uint32_t flags; /* TNI_OP_… */
    uint8_t names;  /* tni_name_rule */
} tni_op_def;

/* Indexed by the TNI_OP_… numbers of gen/op_ids.h. */
extern const tni_op_def tni_op_defs[];

#endif
