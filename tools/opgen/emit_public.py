# SPDX-License-Identifier: MIT
"""Public headers: tenon/ops.h (typed calls, documented) and tenon/kernels.h (typed kernels of others)."""

import textwrap

from csource import banner, doxygen, function, literal, parameters, prototype, wrapped

OPS_HEAD = '''/**
 * @file  tenon/ops.h
 * @brief Every operator as a C function, in two faces.
 *
 * tn_NAME returns a status and gives its results through `out`. tnx_NAME gives the result itself, which
 * belongs to the innermost scope (tn_scope_enter); it is NULL once something in the scope has failed.
 * NAME_ writes its first argument, NAME_out writes the tensor it is given.
 *
 * Lists are a pointer and a count. An optional tensor or string may be NULL, an optional number has a
 * struct of its own (tn_some_int), an optional dtype, layout, format or device is NONE. Options of
 * factories may be NULL. C has no default arguments: the schemas below say what is usual.
 */
'''
KERNELS_HEAD = '''/**
 * @file  tenon/kernels.h
 * @brief Typed kernels of the built-in operators, made outside the library.
 *
 * tn_kernel_NAME makes a tn_kernel of a C function of type tn_NAME_fn: a function with another
 * signature does not compile. Register the result with tn_library_impl.
 *
 *   static tn_status my_mm(tn_call *call, tn_tensor *self, tn_tensor *mat2, tn_tensor **out);
 *   tn_kernel k = tn_kernel_mm(my_mm, __FILE__, __LINE__);
 *
 * tn_unbox_NAME is the boxed entry that goes with it; it is not for calling.
 */
'''
KERNEL_MAKER = '''/** What the makers below share. */
static inline tn_kernel tn_kernel_of(tn_boxed_fn boxed, tn_typed_fn typed, const char *signature,
                                     const char *file, int line)
{
    tn_kernel k = TN_KERNEL_INIT(boxed);
    k.typed = typed;
    k.signature = signature;
    k.name = NULL;
    k.file = file;
    k.line = line;
    return k;
}

'''


def public_header(model, guard, head, includes, body):
    text = banner(model, "", "").rstrip() + "\n" + head
    text += "#ifndef %s\n#define %s\n\n" % (guard, guard)
    text += "".join('#include "%s"\n' % name for name in includes)
    text += '\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    return text + body.rstrip("\n") + "\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n"


def owned(op):
    """Result parameters, tensors marked as owned by the caller."""
    return [(("TN_OWNED " if out.ret.type.is_tensor and i == 0 else "") + ctype, name)
            for out in op.outs for i, (ctype, name) in enumerate(out.params)]


def paragraphs_of(doc):
    """Paragraphs of a documentation text; lines of one paragraph flow together, lists stay as they are."""
    found = []
    for block in doc.split("\n\n"):
        lines = [line for line in block.split("\n") if line.strip()]
        plain = all(line[0] not in " -*|" for line in lines)
        if lines:
            found.append(" ".join(lines) if plain else lines)
    return found


def documentation(op):
    base = op.family.base
    if op is base:
        paragraphs = paragraphs_of(op.family.doc)
    else:
        written = "`, `".join(arg.name for arg in op.written)
        paragraphs = ["tn_%s %s `%s`." % (base.c_name, "that overwrites" if op.role == "inplace" else "into",
                                          written)]
    paragraphs.append(textwrap.wrap(str(op.schema), 95, subsequent_indent="    ", break_long_words=False,
                                    break_on_hyphens=False))
    retvals = [textwrap.wrap("@retval TN_%s  %s" % (status, text), 95, subsequent_indent="    ")
               for _, status, text, _ in op.family.samples if status != "OK" and op is base]
    if retvals:
        paragraphs.append(list(dict.fromkeys(line for lines in retvals for line in lines)))
    return doxygen(paragraphs)


def ops_h(model):
    body = ""
    for file in model.files:
        families = model.families_of(file)
        if not families:
            continue
        body += "/* ---- %s%s ---- */\n\n" % (file.family, ": " + file.title if file.title else "")
        for family in families:
            for op in family.operators:
                body += documentation(op)
                body += prototype("tn_status", "tn_" + op.c_name, op.params + owned(op),
                                  "TN_API TN_NODISCARD ")
                if op.one_tensor:
                    body += prototype("tn_tensor *", "tnx_" + op.c_name, op.params, "TN_API TN_BORROWED ")
                body += "\n"
    return public_header(model, "TN_OPS_H", OPS_HEAD, ("tenon/base.h", "tenon/dtype.h", "tenon/tensor.h"), body)


def maker(op):
    text = doxygen([textwrap.wrap(str(op.schema), 93, subsequent_indent="    ", break_long_words=False,
                                  break_on_hyphens=False)])
    text += wrapped("typedef tn_status (*tn_%s_fn)(" % op.c_name,
                    parameters([("tn_call *", "call")] + op.params + op.out_params), ");")
    text += prototype("tn_status", "tn_unbox_" + op.c_name,
                      [("tn_call *", "call"), ("const tn_value *", "args"), ("tn_value *", "rets")],
                      "TN_API TN_NODISCARD ")
    body = wrapped("return tn_kernel_of(",
                   ["tn_unbox_" + op.c_name, "(tn_typed_fn)fn", literal(op.schema.signature()), "file", "line"],
                   ");", 4)
    return text + function("tn_kernel", "tn_kernel_" + op.c_name,
                           [("tn_%s_fn" % op.c_name, "fn"), ("const char *", "file"), ("int", "line")], [body],
                           "static inline ")


def kernels_h(model):
    body = KERNEL_MAKER + "\n".join(maker(op) for op in model.operators)
    return public_header(model, "TN_KERNELS_H", KERNELS_HEAD, ("tenon/base.h", "tenon/dispatch.h"), body)
