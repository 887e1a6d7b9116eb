# SPDX-License-Identifier: MIT
"""Public headers: tenon/ops.h (typed calls, documented) and tenon/kernels.h (typed kernels of others)."""

from csource import banner, doxygen, literal, prototype, wrapped

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
 * tn_kernel_NAME makes a tn_kernel of a C function with exactly the operator's signature: a function
 * with another one does not compile. Register the result with tn_library_impl.
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


def documentation(op):
    paragraphs = []
    if op.family.doc:
        paragraphs.append(op.family.doc)
    if op is not op.family.base:
        how = "in place: writes `%s`" if op.role == "inplace" else "writes `%s`"
        written = "`, `".join(arg.name for arg in op.written)
        paragraphs.append("tn_%s, %s." % (op.family.base.c_name, how % written))
    paragraphs.append([str(op.schema)])
    retvals = []
    for _, status, text, _ in op.family.samples:
        if status != "OK" and op is op.family.base:
            retvals.append("@retval TN_%s  %s" % (status, text))
    if retvals:
        paragraphs.append("\n".join(dict.fromkeys(retvals)))
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
    types = ["tn_call *"] + [ctype for ctype, _ in op.params + op.out_params]
    text = "/** %s */\n" % op.schema.full
    text += ("TN_API TN_NODISCARD tn_status tn_unbox_%s(tn_call *call, const tn_value *args, tn_value *rets);\n"
             % op.c_name)
    text += wrapped("static inline tn_kernel tn_kernel_%s(tn_status (*fn)(" % op.c_name, types,
                    "), const char *file, int line)")
    text += "{\n" + wrapped("return tn_kernel_of(",
                            ["tn_unbox_" + op.c_name, "(tn_typed_fn)fn", literal(op.schema.signature()),
                             "file", "line"], ");", 4) + "}\n"
    return text


def kernels_h(model):
    body = KERNEL_MAKER + "\n".join(maker(op) for op in model.operators)
    return public_header(model, "TN_KERNELS_H", KERNELS_HEAD, ("tenon/base.h", "tenon/dispatch.h"), body)
