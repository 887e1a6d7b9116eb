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
    tn_value
        default_value; /* owned by the schema; int[2]=1 holds one INT, float[2]=1 a FLOAT_LIST */
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

#define TNI_SCHEMA_MAX_ARGS  64  /* arguments, results, and parts of a tuple */
#define TNI_SCHEMA_MAX_DEPTH 32  /* how deep a type may nest */
#define TNI_SCHEMA_MAX_LIST  256 /* N of int[N], and elements of a default list */

/* Parse a whole schema. @retval TN_INVALID  the message quotes the text and marks the place:
 *   "expected a type in schema 'f(Tenso x) -> ()' at column 3, found 'Tenso'" and the like */
TN_NODISCARD tn_status tni_schema_parse(const char *text, TN_OWNED tni_schema **out);
/* Parse "ns::name.overload" or a whole schema. *out_schema is NULL for a bare name; *out_name is
 * the full name in both cases (tni_free). */
TN_NODISCARD tn_status tni_schema_parse_or_name(const char *text, TN_OWNED tni_schema **out_schema,
                                                TN_OWNED char **out_name);
void tni_schema_free(TN_STOLEN tni_schema *schema);
TNI_DEFINE_AUTO(tni_schema, tni_schema_free)
/* Canonical text; parsing it gives an equal schema. Free with tni_free. */
TN_NODISCARD tn_status tni_schema_print(const tni_schema *schema, TN_OWNED char **out);
/* One type as text, "Tensor(a!)?" into a growing string. */
struct tni_str;
void tni_schema_type_print(const tni_schema_type *type, struct tni_str *s);
/* The same with the size that only arguments know: "int[2]?". */
void tni_schema_arg_type_print(const tni_schema_arg *arg, struct tni_str *s);
/* "(Tensor, int[]) -> Tensor": types alone, as kernels carry it. */
TN_NODISCARD tn_status tni_schema_signature(const tni_schema *schema, TN_OWNED char **out);
/* Whether a kernel of this signature can serve the schema: count and type of each argument and
 * result, position by position; names and annotations are ignored, SymInt counts as int.
 * @retval TN_INVALID  with the reference's wording ("The number of arguments is different. 2 vs 1"
 * …)*/
TN_NODISCARD tn_status tni_signature_check(const tni_schema *schema, const char *signature);
/* A schema from a name and a signature: arguments are named _0, _1, … */
TN_NODISCARD tn_status tni_schema_infer(const char *name, const char *signature,
                                        TN_OWNED tni_schema **out);
/* Element @p i of a list; of anything else the value itself, for a number stands for all elements
 * of a sized list. */
static inline tn_value tni_value_element(const tn_value *v, uint32_t i)
{
    switch ((tn_tag)v->tag) {
    case TN_TAG_TENSOR_LIST:
        return (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = v->u.tensors[i]};
    case TN_TAG_INT_LIST:
        return (tn_value){.tag = TN_TAG_INT, .u.i = v->u.ints[i]};
    case TN_TAG_FLOAT_LIST:
        return (tn_value){.tag = TN_TAG_FLOAT, .u.f = v->u.floats[i]};
    case TN_TAG_BOOL_LIST:
        return (tn_value){.tag = TN_TAG_BOOL, .u.i = v->u.bools[i]};
    case TN_TAG_LIST:
        return v->u.values[i];
    default:
        return *v;
    }
}

/* Whether a boxed value fits a type; the check of boxed calls. Ints pass for float and Scalar, a
 * single int for a sized list. */
bool tni_value_fits(const tn_value *value, const tni_schema_type *type);
/* The same for an argument, which knows whether its list is sized: one number passes for int[2] and
 * not for int[]. (A type alone does not know, so that tni_value_fits lets it pass for both.) */
bool tni_arg_fits(const tn_value *value, const tni_schema_arg *arg);

/* Note [Argument literals]
 * An argument as people write it: "meta f32[2,4,16]", "i64[3]", "[1, 2]", "2.5", "1-2j", "-inf",
 * "True", "None", "'text'", "cpu", "float32", "channels_last". The type decides between readings:
 * "1" is a float for a float argument, "float32" a text for a str argument; without a type a name
 * of a dtype is a dtype, then a memory format, then a device.
 *
 * Tensor text: [DEVICE] DTYPE[SIZES] then modifiers. DEVICE is cpu (default), meta or a registered
 * name. .t         the last two dimensions lie transposed in memory; SIZES are the result's
 *   .strided   every second element of one whose last dimension is twice as large: last stride 2
 *   .expanded  the first dimension has stride 0
 *   .cl        channels-last memory, 4-D or 5-D
 *   .offset    storage offset 1; goes with each of the others
 *   .grad      requires grad
 *   =V         every element is V
 * At most one of .t, .strided, .expanded and .cl; =V comes last.
 *
 * Values depend on the row-major index k of the element and on the dtype alone, so that f32[2,3]
 * and f32[2,3].t hold equal values; under .expanded k is that of the index whose first coordinate
 * is 0. floating  F(k) = m(k) / 8, where m(k) = (7919 k + 13) mod 41 - 20, and 21 where that is 0:
 *             -0.875 -0.125 0.625 1.375 2.125 -2.25 …; exact in every dtype, never 0
 *   complex   F(k) + F(k + 7) i
 *   signed    (7919 k + 13) mod 11 - 5: -3 -4 -5 5 4 3 2 1 0 -1 -2 -3 …
 *   uint8     (7919 k + 13) mod 10: 3 2 1 0 9 8 …
 *   bool      k is even
 * Memory between the elements (.strided, .offset) is filled with bytes 0x7f, of a bool tensor
 * with 1. */

/* One literal, for @p type, which may be NULL. The value is owned.
 * @retval TN_INVALID  cannot be read, or no value of the type */
TN_NODISCARD tn_status tni_value_parse(const char *text, const tni_schema_type *type,
                                       tn_value *out);
/* The arguments "a, b, key=c" of a schema; fills defaults. One number for a sized list becomes the
 * list.
 * @p args has room for schema->nargs values, all owned on success.
 * @retval TN_INVALID  also: too many, missing, unknown or given twice */
TN_NODISCARD tn_status tni_args_parse(const tni_schema *schema, const char *text, tn_value *args);

#endif
