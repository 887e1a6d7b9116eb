# SPDX-License-Identifier: MIT
"""Tables: operator numbers, definitions, registrations of built-in kernels, samples."""

from csource import banner, guard, includes, literal, literal_lines


def op_ids_h(model):
    rows = "".join("    TNI_OP_%s,\n" % op.id for op in model.operators)
    body = ("/* Index of tni_op_defs, tni_op_unbox and tni_builtin_ops. */\n"
            "enum {\n%s    TNI_NUM_BUILTIN_OPS\n};\n" % rows)
    return banner(model, "Numbers of the built-in operators.", "op") + guard("TNI_GEN_OP_IDS_H", body)


def flags(op):
    found = []
    if op.views:
        found.append("TNI_OP_VIEW")
    if op.written:
        found.append("TNI_OP_MUTATES")
    if op.schema.name.endswith("_"):
        found.append("TNI_OP_INPLACE")
    if op.is_out:
        found.append("TNI_OP_OUT")
    if op.composite:
        found.append("TNI_OP_COMPOSITE")
    if op.family.kind == "pointwise":
        found.append("TNI_OP_POINTWISE")
    if op.family.not_implemented:
        found.append("TNI_OP_NOT_IMPLEMENTED")
    found += ["TNI_OP_TAKES_" + kind for kind in op.family.takes]
    return " | ".join(found) or "0"


def tags(op):
    """Those of the family; a view that is made in place changes what the tensor is."""
    rets = op.family.base.schema.rets
    if op.role != "inplace" or op is op.family.base or not (rets and rets[0].type.alias):
        return op.family.tags
    return [tag for tag in op.family.tags if tag not in ("core", "inplace_view")] + ["inplace_view"]


def op_table_c(model):
    rows = []
    for op in model.operators:
        rows.append(
            "    [TNI_OP_%s] = {\n"
            "        .name = %s,\n"
            "        .schema = %s,\n"
            "        .c_name = %s,\n"
            "        .doc = %s,\n"
            "        .tags = %s,\n"
            "        .label = %s,\n"
            "        .file = %s,\n"
            "        .line = %d,\n"
            "        .flags = %s,\n"
            "        .names = %s,\n"
            "    },\n" % (op.id, literal(op.schema.full), literal(str(op.schema)),
                          literal("tn_" + op.c_name), literal_lines(op.family.doc, 15),
                          literal(" ".join(tags(op))), literal(op.family.label), literal(op.where[0]), op.where[1], flags(op),
                          "TNI_NAMES_%s" % (op.name_rule or "refused").upper()))
    return (banner(model, "The built-in operators as data.", "op") + includes("op/def.h", "gen/op_ids.h")
            + "/* One row more than there are, so that a build without operators has an array too. */\n"
            + "const tni_op_def tni_op_defs[TNI_NUM_BUILTIN_OPS + 1] = {\n%s};\n" % "".join(rows))


def register_c(model, keys):
    rows = []
    for op in model.operators:
        for kernel in op.kernels:
            rows.append("    {.op = TNI_OP_%s,\n"
                        "     .key = %s,\n"
                        "     .typed = (tn_typed_fn)%s,\n"
                        "     .name = \"%s\",\n"
                        "     .file = %s,\n"
                        "     .line = %d},\n" % (op.id, keys[kernel.key], kernel.function, kernel.function,
                                                 literal(kernel.where[0]), kernel.where[1]))
        policy = op.family.autocast
        if policy and op is op.family.base:
            rows.append("    {.op = TNI_OP_%s,\n"
                        "     .key = TN_KEY_AUTOCAST_CPU,\n"
                        "     .boxed = tni_autocast_%s,\n"
                        "     .name = \"tni_autocast_%s\",\n"
                        "     .file = %s,\n"
                        "     .line = %d},\n" % (op.id, policy, policy, literal(op.where[0]), op.where[1]))
    return (banner(model, "Which kernel serves which operator for which key.", "runtime")
            + includes("autocast/kernels.h", "dispatch/builtin.h", "gen/kernels.h", "gen/op_ids.h")
            + "const tni_builtin_kernel tni_builtin_kernels[] = {\n%s    {.key = TN_KEY_NONE}, /* the end; not counted */\n};\n"
            % "".join(rows)
            + "const size_t tni_builtin_kernel_count = %d;\n" % len(rows))


def samples_h(model):
    body = '''#include "tenon/base.h"

/* Arguments of an operator, as tni_args_parse reads them, and what comes of them. */
typedef struct tni_sample {
    const char *op;      /* "aten::mm" */
    const char *inplace; /* its in-place variant, "" when it has none */
    const char *out;     /* its out variant, "" when it has none */
    const char *args;    /* "f32[2,3], f32[3,4]" */
    tn_status status;    /* TN_OK: the call succeeds */
    const char *text;    /* else: what the message contains */
    const char *file;
    int line;
} tni_sample;

extern const tni_sample tni_samples[];
extern const int tni_num_samples;
'''
    return (banner(model, "Samples of the operators, for tests.", "")
            + guard("TNI_GEN_SAMPLES_H", body))


def samples_c(model):
    rows, n = [], 0
    for family in model.families:
        inplace, out = family.variant("inplace"), family.variant("out")
        names = [op.schema.full if op and op is not family.base else "" for op in (inplace, out)]
        for where, status, text, arguments in family.samples:
            n += 1
            rows.append("    {%s, %s, %s,\n     %s,\n     TN_%s, %s,\n     %s, %d},\n" % (
                literal(family.base.schema.full), literal(names[0]), literal(names[1]),
                literal(arguments), status, literal(text), literal(where[0]), where[1]))
    return (banner(model, "Samples of the operators, for tests.", "") + includes("gen/samples.h")
            + "const tni_sample tni_samples[] = {\n%s    {0}, /* the end */\n};\n" % "".join(rows)
            + "const int tni_num_samples = %d;\n" % n)
