# SPDX-License-Identifier: MIT
"""Kernels that only glue, and the prototypes of the functions that they glue together."""

from csource import banner, call, function, guard, includes, literal, prototype, wrapped
from model import DTYPES, LAYOUTS, RULES, rest_params

CALL = ("tn_call *", "call")
UNUSED = "(void)call;"


# ---- prototypes of what is written by hand ----

def hand_header(model, name, what, layer, prefixes, head):
    body = head
    for prefix in prefixes:
        for function_name, params in model.hand_functions(prefix):
            body += prototype("tn_status", function_name, params, "TN_NODISCARD ")
    return banner(model, what, layer) + guard("TNI_GEN_%s_H" % name, body)


def shapes_h(model):
    return hand_header(model, "SHAPES", "Shape, view and check functions, written by hand in src/shape.", "shape",
                       ("tni_shape_", "tni_view_", "tni_check_"), includes("core/tensor.h"))


def cpu_h(model):
    return hand_header(model, "CPU", "Computations, written by hand in src/cpu.", "cpu", ("tni_cpu_",),
                       includes("core/tensor.h", "iter/iter.h"))


def composites_h(model):
    return hand_header(model, "COMPOSITES", "Composite operators, written by hand in src/composite.",
                       "composite", ("tni_composite_",), includes("tenon/dispatch.h"))


def kernels_h(model):
    body = includes("tenon/dispatch.h") + "/* Written by hand. */\n"
    for name, params in model.hand_functions("tni_kernel_"):
        body += prototype("tn_status", name, params, "TN_NODISCARD ")
    body += "\n/* Generated: glue of a backend or layer. */\n"
    for op in model.operators:
        for kernel in op.kernels:
            if not kernel.function.startswith("tni_kernel_"):
                body += prototype("tn_status", kernel.function, [CALL] + op.params + op.out_params,
                                  "TN_NODISCARD ")
    return banner(model, "Kernels of every layer.", "dispatch") + guard("TNI_GEN_KERNELS_H", body)


def kernel(op, prefix, body):
    return function("tn_status", prefix + op.id, [CALL] + op.params + op.out_params, body)


# ---- structured ----

def op_label(op):
    return literal(op.family.base.schema.name)


def shape_args(op):
    """Arguments of the declared schema, as the variant has them."""
    return ["opts" if arg.is_options else name for arg in op.family.base.args for name in arg.names]


def options_of_out(op):
    """An out variant has no options of its own: they are those of `out`."""
    options = any(arg.is_options for arg in op.family.base.args)
    if op.role != "out" or not options:
        return []
    name = op.outs[0].arg.name
    return ["const tn_tensor_opts out_opts = tn_opts(tn_tensor_dtype(%s), tn_tensor_device(%s));" % (name, name),
            "const tn_tensor_opts *opts = &out_opts;"]


def input_list(op, skip):
    """Declaration and (pointer, count) of the tensors that a written result must not overlap."""
    tensors = [arg for arg in op.family.base.args if arg.is_tensor and arg.name not in skip]
    lists = [arg for arg in tensors if arg.type.is_list]
    if not tensors:
        return [], "NULL, 0"
    if lists:
        return [], "%s, (int)%s_n" % (lists[0].name, lists[0].name)
    line = wrapped("tn_tensor *const inputs[] = {", [arg.name for arg in tensors], "};", 4)
    return [line], "inputs, %d" % len(tensors)


def takes(family):
    """Of the limited dtypes: which its result may have, as bits."""
    return " | ".join("TNI_PW_" + kind for kind in family.gives) or "0"


def apart(op):
    """What the in-place variant asks of arguments that must not lie in what it writes."""
    first = op.outs[0].arg.name
    return ["TN_TRY(tni_check_apart(%s, %s));" % (first, arg.name) for arg in op.family.base.args
            if arg.args[0].name in op.family.apart]


def structured(op, compute):
    family = op.family
    n = len(op.outs)
    results = ["made_%s" % out.name for out in op.outs] if n > 1 else ["made"]
    body = [UNUSED, "tni_geometry g[%d];" % n]
    body += ["TN_AUTO(tn_tensor) %s = NULL;" % name for name in results] + options_of_out(op)
    prepare, finish, targets = [], [], results
    real = [] if compute or any(arg.is_options for arg in family.base.args) else ["TN_TRY(tni_check_meta(g, %d));" % n]
    if op.role == "function":
        prepare = real + ["TN_TRY(tni_tensor_from_geometry(&g[%d], &%s));" % (i, name)
                   for i, name in enumerate(results)]
        finish = ["*%s = TN_MOVE(%s);" % (out.name, name) for out, name in zip(op.outs, results)]
        finish.append("return TN_OK;")
    else:
        written = [out.arg.name for out in op.outs]
        targets = ["tni_out_target(%s, %s)" % pair for pair in zip(written, results)]
        declaration, inputs = input_list(op, written if op.role == "inplace" else [])
        body += declaration
        if family.dtype_of_written:
            body += ["if (dtype == TN_DTYPE_NONE)", "    dtype = tn_tensor_dtype(%s);" % written[0]]
        if family.out_dtype and op.role == "out":
            prepare = [call("TN_TRY(tni_check_exact(", ["g[%d].dtype" % i, to, literal(family.out_dtype[1])], "));")
                       for i, to in enumerate(written)]
        how = "tni_inplace_prepare" if op.role == "inplace" else "tni_out_prepare" + "_cast" * family.cast_out
        if op.role == "out" and (n > 1 or real):  # one that is refused leaves the others as they are
            prepare += [call("TN_TRY(%s(" % how.replace("prepare", "check"), [op_label(op), "&g[%d]" % i, to], "));")
                        for i, to in enumerate(written)]
        prepare += real
        kept = ["kept_%s" % to for to in written] if op.role == "out" and (compute or n > 1) else []
        for i, (name, to) in enumerate(zip(kept, written)):
            prepare += ["TNI_OUT_KEPT %s;" % name, "tni_out_keep(&%s, %s, &g[%d]);" % (name, to, i)]
        prepare += [call("TN_TRY(%s(" % how, [op_label(op), "&g[%d]" % i, to, inputs, "&" + name], "));")
                    for i, (to, name) in enumerate(zip(written, results))]
        if op.role == "inplace":
            prepare += apart(op)
        elif n > 1:
            prepare += ["tn_tensor *const written[] = {%s};" % ", ".join(written), "TN_TRY(tni_outs_apart(written, %d));" % n]
        if compute:
            finish = ["TN_TRY(tni_out_finish(%s, %s));" % pair for pair in zip(written, results)]
            if kept:
                finish += ["%s.out = NULL;" % name for name in kept] + ["return TN_OK;"]
            else:
                finish[-1] = finish[-1].replace("TN_TRY(", "return ", 1).replace("));", ");")
        else:
            finish = ["%s.out = NULL;" % name for name in kept] + ["return TN_OK;"]
    body.append(call("TN_TRY(tni_shape_%s(" % family.fn, ["g"] + shape_args(op), "));"))
    if any(param == ("tn_dtype", "dtype") for arg in family.base.args for param in arg.params):
        body.append(call("TN_TRY(tni_check_limited(", ["g[0].dtype", takes(family), literal(family.label)], "));"))
    body += prepare
    if compute:
        body.append(call("TN_TRY(tni_cpu_%s(" % family.cpu, shape_args(op) + targets, "));"))
    return body + finish


# ---- pointwise ----

def pointwise(op, compute):
    family = op.family
    by_name = {arg.args[0].name: arg for arg in op.args}
    operands = ["{.%s = %s}" % ("tensor" if by_name[name].is_tensor else "scalar", by_name[name].name)
                for name in family.operands]
    body = [UNUSED,
            "static const tni_pointwise_attr attr = {%s};" % ", ".join(
                [op_label(op), RULES[family.rule], LAYOUTS[family.layout], takes(family),
                 literal(family.dtypes[1] if family.dtypes else family.label)]),
            wrapped("const tni_operand operands[] = {", operands, "};", 4),
            "tni_iter it;"]
    if not compute and not family.check:
        body[1:1] = ["(void)%s;" % name for _, name in rest_params(family)]
    if family.check:
        names = [name for arg in family.base.args for name in arg.names]
        body.append(call("TN_TRY(tni_check_%s(" % family.check, names, "));"))
    exact = literal(family.out_dtype[1]) if family.out_dtype and op.role == "out" else "NULL"
    if op.role != "function" and (family.dtypes or family.out_dtype):  # before the dtypes that it computes in
        body.append(call("TN_TRY(tni_check_written(", ["operands", "%d" % len(operands), RULES[family.rule],
                                                       op.outs[0].arg.name, exact], "));"))
    given = "NULL" if op.role == "function" else op.outs[0].arg.name
    if family.dtypes:
        kind, label = family.dtypes
        body.append(call("TN_TRY(tni_check_dtypes(", ["operands", "%d" % len(operands), RULES[family.rule],
                                                      " | ".join([DTYPES[kind]] + ["TNI_PW_" + k for k in family.takes]),
                                                      literal(label), given], "));"))
    mode, out = "TNI_ITER_NEW", "out"
    if op.role != "function":
        out = "NULL"
        mode = "TNI_ITER_INPLACE" if op.role == "inplace" else "TNI_ITER_OUT"
    body.append("TN_TRY(tni_iter_begin(&it, &attr, operands, %d, %s, %s));" % (len(operands), given, mode))
    status = "TN_OK"
    if compute:
        rest = [name for _, name in rest_params(family)]
        status = "tni_cpu_%s(%s)" % (family.fn, ", ".join(["&it"] + rest))
    body.append("return tni_iter_end(&it, %s, %s);" % (status, out))
    return body


def backend_kernels(model, prefix, compute):
    pieces = []
    for op in model.operators:
        if op.family.kind == "shape":
            pieces.append(kernel(op, prefix, structured(op, compute)))
        elif op.family.kind == "pointwise":
            pieces.append(kernel(op, prefix, pointwise(op, compute)))
    return "\n".join(pieces)


def cpu_kernels_c(model):
    return (banner(model, "CPU kernels: shape, allocate, compute.", "cpu")
            + includes("core/tensor.h", "iter/iter.h", "shape/structured.h", "gen/cpu.h", "gen/kernels.h",
                       "gen/shapes.h")
            + backend_kernels(model, "tni_gen_cpu_", True))


def meta_kernels_c(model):
    return (banner(model, "Meta kernels: shape, allocate.", "meta")
            + includes("core/tensor.h", "iter/iter.h", "shape/structured.h", "gen/kernels.h", "gen/shapes.h")
            + backend_kernels(model, "tni_gen_meta_", False))


# ---- views and composites ----

def view(op):
    base = op.family.base.args[0].name
    geometry = [base, "g.ndim", "g.sizes", "g.has_strides ? g.strides : NULL", "g.offset"]
    result = (call("return tni_tensor_view(", [base, "&g", "out"], ");") if op.role == "function"
              else call("return tni_tensor_set_geometry(", geometry, ");"))
    return [UNUSED, "tni_geometry g;",
            call("TN_TRY(tni_view_%s(" % op.family.fn, ["&g"] + op.arg_names, "));"), result]


def view_kernels_c(model):
    pieces = [kernel(op, "tni_gen_view_", view(op)) for op in model.operators if op.family.kind == "view"]
    return (banner(model, "Views: geometry over the same storage, on every backend.", "composite")
            + includes("core/tensor.h", "gen/kernels.h", "gen/shapes.h") + "\n".join(pieces))


def computed_list_out(op):
    """The same of an operator whose result is a list: as many tensors must be given."""
    to = op.written[0].name
    return [UNUSED, "tn_tensor **made = NULL;", "int64_t made_n = 0;",
            call("TN_TRY(tn_%s(" % op.family.base.c_name, shape_args(op) + ["&made", "&made_n"], "));"),
            call("tn_status status = tni_out_take_list(", [op_label(op), literal(op.id), "made", "made_n", to, to + "_n"], ");"),
            "tn_tensor_list_free(made, made_n);", "return status;"]


def computed_out(op):
    """out= of an operator that is no structure to fill: its function's result, brought to `out`."""
    if op.family.base.outs[0].is_list:
        return computed_list_out(op)
    base = op.family.base
    results = ["made_%s" % out.name for out in op.outs] if len(op.outs) > 1 else ["made"]
    body = [UNUSED] + ["TN_AUTO(tn_tensor) %s = NULL;" % name for name in results] + options_of_out(op)
    body.append(call("TN_TRY(tn_%s(" % base.c_name, shape_args(op) + ["&" + name for name in results], "));"))
    takes = [(op_label(op), name, out.arg.name) for name, out in zip(results, op.outs)]
    if op.family.out_dtype:
        kind, text, status = op.family.out_dtype
        body += [call("TN_TRY(tni_check_%s(" % kind, ["TN_" + status] * (kind == "safe")
                      + ["tn_tensor_dtype(%s)" % made, out, literal(text)], "));") for _, made, out in takes]
    if len(takes) == 1:
        # A factory's out is its place, of whatever size.
        how = "_fresh" if options_of_out(op) and not any(arg.is_tensor for arg in base.args) else ""
        if "pointwise" in op.family.tags:
            how = "_pointwise"
        return body + ["return tni_out_take%s(%s, %s, %s);" % ((how,) + takes[0])]
    body += [wrapped("tn_tensor *const made[] = {", results, "};", 4),
             wrapped("tn_tensor *const outs[] = {", [out for _, _, out in takes], "};", 4)]
    return body + ["return tni_out_take_all(%s, made, outs, %d);" % (op_label(op), len(takes))]


def computed_inplace(op):
    """In place, of such an operator: its function's result, copied over the first argument. What the function keeps
    for gradients is what was there before."""
    base = op.family.base
    first = op.outs[0].arg.name
    return [UNUSED, "TN_AUTO(tn_tensor) old = NULL;", "TN_AUTO(tn_tensor) made = NULL;"] + apart(op) + [
            "TN_TRY(tni_inplace_begin(%s, &old));" % first,
            call("TN_TRY(tn_%s(" % base.c_name, ["old" if name == first else name for name in shape_args(op)] + ["&made"],
                 "));"),
            "return tni_inplace_take(made, %s);" % first]


def composite(op):
    """With `result new` the results are no views, whatever they were made of."""
    fresh = [out for out in op.outs if not out.arg and not out.view_of and not out.is_list and out.ret.type.is_tensor]
    if not op.family.no_view or op.written:
        return [UNUSED, call("return tni_composite_%s(" % op.family.fn, op.names, ");")]
    if len(op.outs) == 1:
        return [UNUSED, call("return tni_no_view(tni_composite_%s(" % op.family.fn, op.names, "), %s);" % fresh[0].name)]
    return ([UNUSED, call("tn_status status = tni_composite_%s(" % op.family.fn, op.names, ");")]
            + ["status = tni_no_view(status, %s);" % out.name for out in fresh] + ["return status;"])


def names_first(op):
    """A composite with a rule for names of dimensions lets that go first, which comes back here without them."""
    if not op.name_rule or not op.composite:
        return []
    return ["if (TNI_UNLIKELY(call->keys & TNI_KS_NAMED))",
            "    " + call("return tni_re_%s(" % op.id, ["call", "call->keys & TNI_KS_NAMED_ON"] + op.names, ");")]


def composite_kernels_c(model):
    pieces = []
    for op in model.operators:
        if op.has_kernel_function("tni_gen_out_"):
            pieces.append(kernel(op, "tni_gen_out_", computed_out(op)))
        elif op.has_kernel_function("tni_gen_inplace_"):
            pieces.append(kernel(op, "tni_gen_inplace_", names_first(op) + computed_inplace(op)))
        elif op.family.kind == "composite":
            pieces.append(kernel(op, "tni_gen_composite_", names_first(op) + composite(op)))
        elif op.family.kind == "alias":
            pieces.append(kernel(op, "tni_gen_composite_", [
                UNUSED, call("return tn_%s(" % op.family.alias_of(op), op.names, ");")]))
    return (banner(model, "Composite operators as kernels.", "composite")
            + includes("composite/out.h", "core/tensor.h", "dispatch/call.h", "gen/composites.h", "gen/kernels.h", "gen/redispatch.h",
                       "shape/structured.h", "tenon/ops.h")
            + "\n".join(pieces))
