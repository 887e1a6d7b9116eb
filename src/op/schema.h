/* SPDX-License-Identifier: MIT */
/* op/schema.h: operator schemas as data: parser, printer, questions.
 *
 * A schema is immutable and owns everything it points to. */
#ifndef TNI_OP_SCHEMA_H
#define TNI_OP_SCHEMA_H

#include "tenon/dispatch.h"
#include "base/auto.h"

typedef enum tni_type_kind {
    TNI_TYPE_TENSOR = 0,
    TNI_TYPE_INT,
    TNI_TYPE_SYMINT,
    TNI_TYPE_FLOAT,
    TNI_TYPE_COMPLEX,
    TNI_TYPE_BOOL,
    TNI_TYPE_SYMBOOL,
    TNI_TYPE_SCALAR,
    TNI_TYPE_STRING,
    TNI_TYPE_DEVICE,
    TNI_TYPE_SCALAR_TYPE,
    TNI_TYPE_LAYOUT,
    TNI_TYPE_MEMORY_FORMAT,
    TNI_TYPE_GENERATOR,
    TNI_TYPE_NONE,
    TNI_TYPE_NAMED,    /* Storage, Stream, QScheme, Any, Capsule, …: name says which */
    TNI_TYPE_VARIABLE, /* lower-case type variable: name */
    TNI_TYPE_CLASS,    /* __torch__.torch.classes.A.B: name is the whole */
    TNI_TYPE_LIST,     /* children[0] */
    TNI_TYPE_OPTIONAL, /* children[0] */
    TNI_TYPE_TUPLE,
    TNI_TYPE_DICT, /* children[0] key, children[1] value */
    TNI_TYPE_UNION,
    TNI_TYPE_FUTURE, /* Future, Await, RRef: name says which; children[0] */
} tni_type_kind;

/* Alias annotation: (a), (a!), (a -> *), (a! -> a|b). Set names are joined by '|'. */
typedef struct tni_alias {
    bool write;
    const char *before; /* "a", "a|b", "*" */
    const char *after;  /* the same as before unless "->" was given */
} tni_alias;

typedef struct tni_schema_type {
    tni_type_kind kind;
    int n_children;
    const char *name; /* of NAMED, VARIABLE, CLASS, FUTURE; else NULL */
    const struct tni_schema_type *const *children;
    const tni_alias *alias; /* annotation of this very type; NULL for none */
} tni_schema_type;

typedef struct tni_schema_arg {
    const char *name; /* "" for an unnamed result */
    const tni_schema_type *type;
    int fixed_n; /* N of int[N]; 0: no fixed size */
    bool keyword_only;
    bool has_default;
    bool is_write; /* some annotation inside says "!" */
    bool is_out;   /* keyword-only and written */
    tn_value default_value; /* owned by the schema; int[2]=1 holds one INT */
} tni_schema_arg;

typedef struct tni_schema {
    const char *name;     /* "aten::add", with namespace; "add" when none was given */
    const char *overload; /* "" for the default one */
    const char *full;     /* "aten::add.Tensor" */
    int nargs, nrets;
    bool vararg, varret;
    bool is_mutable; /* some argument is written */
    bool is_view;    /* some argument has an annotation and none is written */
    const tni_schema_arg *args;
    const tni_schema_arg *rets;
    uint64_t tensor_args; /* bit i: argument i is Tensor, Tensor?, Tensor[] or Tensor?[] */
    uint64_t generator_args;
} tni_schema;

#define TNI_SCHEMA_MAX_ARGS 64

/* Parse a whole schema. @retval TN_INVALID  the message quotes the text and marks the place:
 *   "expected a type in schema 'f(Tenso x) -> ()' at column 3, found 'Tenso'" and the like */
TN_NODISCARD tn_status tni_schema_parse(const char *text, TN_OWNED tni_schema **out);
/* Parse "ns::name.overload" or a whole schema; *out_schema is NULL for a bare name, *out_name owned
 * (tni_free). */
TN_NODISCARD tn_status tni_schema_parse_or_name(const char *text, TN_OWNED tni_schema **out_schema,
                                                TN_OWNED char **out_name);
void tni_schema_free(TN_STOLEN tni_schema *schema);
TNI_DEFINE_AUTO(tni_schema, tni_schema_free)
/* Canonical text; parsing it gives an equal schema. Free with tni_free. */
TN_NODISCARD tn_status tni_schema_print(const tni_schema *schema, TN_OWNED char **out);
/* One type as text, "Tensor(a!)?" into a growing string. */
struct tni_str;
void tni_schema_type_print(const tni_schema_type *type, struct tni_str *s);
/* "(Tensor, int[]) -> Tensor": types alone, as kernels carry it. */
TN_NODISCARD tn_status tni_schema_signature(const tni_schema *schema, TN_OWNED char **out);
/* Whether a kernel of this signature can serve the schema: count and type of each argument and result,
 * position by position; names and annotations are ignored, SymInt counts as int.
 * @retval TN_INVALID  with the reference's wording ("The number of arguments is different. 2 vs 1" …)*/
TN_NODISCARD tn_status tni_signature_check(const tni_schema *schema, const char *signature);
/* A schema from a name and a signature: arguments are named _0, _1, … */
TN_NODISCARD tn_status tni_schema_infer(const char *name, const char *signature,
                                        TN_OWNED tni_schema **out);
/* Whether a boxed value fits a type; the check of boxed calls. Ints pass for float and Scalar, a
 * single int for a sized list. */
bool tni_value_fits(const tn_value *value, const tni_schema_type *type);

/* "meta f32[2,4,16]", "i64[3]", "[1, 2]", "2.5", "True", "None", "'text'", "cpu", "float32": an argument as
 * people write it. @p type may be NULL; it decides between readings (int or float, dtype or string).
 * Tensor text: [DEVICE] DTYPE[SIZES][modifier…]; DEVICE is cpu (default), meta or a registered name; the
 * modifiers are .t (last two dimensions swapped), .strided (every second element of a larger one),
 * .expanded (size-1 leading dimension expanded where possible), .cl (channels-last), .grad (requires grad),
 * =V (fill with V). Values are a fixed, varied pattern that depends on sizes and dtype alone, positive and
 * negative where the dtype has a sign; of a bool tensor alternating.
 * @retval TN_INVALID */
TN_NODISCARD tn_status tni_value_parse(const char *text, const tni_schema_type *type, tn_value *out);
/* Split "a, b, key=c" at top-level commas and parse each against the schema's arguments; fills defaults.
 * @p args has room for schema->nargs values, all owned on success. */
TN_NODISCARD tn_status tni_args_parse(const tni_schema *schema, const char *text, tn_value *args);

#endif
