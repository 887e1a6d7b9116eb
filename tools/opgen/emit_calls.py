# SPDX-License-Identifier: MIT
"""Ways into an operator: typed wrappers, redispatch, the scope's face, and adaptors between boxed and
typed. Shape of a wrapper: refuse what is missing, collect keys, begin, run the kernel, end. Boxing is on
the cold side."""

from cargs import declare
from csource import banner, call, function, guard, includes, prototype, wrapped

CALL = ("tn_call *", "call")


def redispatch_params(op):
    return [("tn_call *", "caller"), ("tn_keyset", "keys")] + op.params + op.out_params


def redispatch_h(model):
    body = includes("tenon/dispatch.h")
    body += ("/* Call an operator from a kernel (the frame `caller`) with exactly these keys, whose highest must be\n"
             " * lower than the kernel's own. */\n")
    for op in model.operators:
        body += prototype("tn_status", "tni_re_" + op.id, redispatch_params(op), "TN_NODISCARD ")
    return banner(model, "Typed redispatch.", "dispatch") + guard("TNI_GEN_REDISPATCH_H", body)


# ---- boxing: typed arguments to values ----

def n_values(op):
    return max(1, len(op.schema.args))  # C has no empty arrays


def box_function(op):
    body = []
    for arg in op.args:
        if arg.is_options:
            body.append("tni_box_opts(opts, &v[%d]);" % arg.index)
        else:
            body.append("v[%d] = %s;" % (arg.index, arg.fill(arg.kind.box)))
    return function("void", "box_" + op.id, [("tn_value *", "v")] + op.params,
                    body or ["v[0] = tn_value_none();"], "static TNI_COLD ")


def watch_function(op):
    params = [("tn_op *", "op"), ("tn_call *", "caller"), ("tn_keyset", "keys")] + op.params
    params += [("tn_call **", "call"), ("tn_status *", "status")]
    n = len(op.schema.args)
    body = ["tn_value args[%d];" % n_values(op),
            call("box_%s(" % op.id, ["args"] + op.arg_names, ");"),
            "return caller ? tni_redispatch_begin_observed(caller, op, keys, args, %d, call, status)" % n,
            "              : tni_call_begin_observed(op, keys, args, %d, call, status);" % n]
    return function("const tni_kernel *", "watch_" + op.id, params, body, "static TNI_COLD ")


def boxed_function(op):
    """Run a kernel that has no typed entry."""
    n, n_rets = len(op.schema.args), len(op.outs)
    body = ["tn_value args[%d], rets[%d];" % (n_values(op), max(1, n_rets))]
    body += [call("box_%s(" % op.id, ["args"] + op.arg_names, ");"),
             "TN_TRY(tni_run_boxed(call, args, %d, rets, %d));" % (n, n_rets)]
    for i, out in enumerate(op.outs):
        if out.is_list and not out.arg:
            body.append("TN_TRY(tni_settle_list(rets, %d, %d));" % (n_rets, i))
    for i, out in enumerate(op.outs):
        if out.arg:
            body.append("tn_value_clear(&rets[%d]); /* the caller's %s is the result */" % (i, out.arg.name))
        elif out.is_list:
            body.append("*%s = tni_take_tensors(&rets[%d], %s_n);" % (out.name, i, out.name))
        else:
            body.append("*%s = %s(&rets[%d]);" % (out.name, out.take, i))
    body.append("return TN_OK;")
    return function("tn_status", "boxed_" + op.id, [CALL] + op.params + op.out_params, body,
                    "static TNI_COLD ")


# ---- wrappers ----

def run_function(op):
    names = ["call"] + op.names
    body = [call("return tni_call_end(call, TNI_LIKELY(kernel->typed)", [], ""),
            call("? ((tn_%s_fn)kernel->typed)(" % op.c_name, names, ")", 33),
            call(": boxed_%s(" % op.id, names, "));", 33)]
    return function("tn_status", "run_" + op.id,
                    [("const tni_kernel *", "kernel"), CALL] + op.params + op.out_params, body,
                    "static inline ")


def begin(op, caller, plain):
    """Statements that find the kernel, and leave with the status when there is none."""
    names = ["op", caller, "keys"] + op.arg_names + ["&call", "&status"]
    return ["tn_call *call;", "tn_status status;",
            "const tni_kernel *kernel;",
            "if (tni_observing)",
            call("kernel = watch_%s(" % op.id, names, ");", 8),
            "else",
            "    kernel = %s;" % plain,
            "if (TNI_UNLIKELY(!kernel))", "    return status;",
            call("return run_%s(" % op.id, ["kernel", "call"] + op.names, ");")]


def wrapper(op):
    body = ["tn_op *op = &tni_builtin_ops[TNI_OP_%s];" % op.id]
    for arg in op.args:
        if arg.kind.check:
            condition, failure = map(arg.fill, arg.kind.check)
            body += ["if (TNI_UNLIKELY(%s))" % condition, "    return %s;" % failure]
    for _, name in op.out_params:
        body += ["if (TNI_UNLIKELY(!%s))" % name, "    return tni_null_result(op, \"%s\");" % name]
    keys = [arg.fill(arg.kind.keys) for arg in op.args if arg.kind.keys]
    body.append(wrapped("tn_keyset keys = ", [" | ".join(keys) or "0"], ";", 4))
    body += begin(op, "NULL", "tni_call_begin(op, keys, &call, &status)")
    return function("tn_status", "tn_" + op.c_name, op.params + op.out_params, body)


def redispatcher(op):
    body = ["tn_op *op = &tni_builtin_ops[TNI_OP_%s];" % op.id]
    body += begin(op, "caller", "tni_redispatch_begin(caller, op, keys, &call, &status)")
    return function("tn_status", "tni_re_" + op.id, redispatch_params(op), body)


def calls_c(model):
    text = banner(model, "Typed calls and redispatches of the built-in operators.", "dispatch")
    text += includes("tenon/kernels.h", "tenon/ops.h", "core/tensor.h", "dispatch/box.h", "dispatch/call.h",
                     "gen/op_ids.h", "gen/redispatch.h")
    pieces = []
    for op in model.operators:
        pieces.append("/* ---- %s ---- */\n\n" % op.schema.full + "\n".join(
            [box_function(op), watch_function(op), boxed_function(op), run_function(op),
             wrapper(op), redispatcher(op)]))
    return text + "\n".join(pieces)


def scope_calls_c(model):
    text = banner(model, "The second face: results belong to the scope.", "dispatch")
    text += includes("tenon/ops.h", "core/scope.h")
    pieces = []
    for op in model.operators:
        if not op.one_tensor:
            continue
        written = op.outs[0].arg
        body = [] if written else ["tn_tensor *out = NULL;"]
        body += ["if (tni_scope_failed())", "    return NULL;",
                 call("tn_status status = tn_%s(" % op.c_name, op.arg_names + ([] if written else ["&out"]), ");"),
                 "return tni_scope_result(status, %s);" % ("tn_tensor_ref(%s)" % written.name if written else "out")]
        pieces.append(function("tn_tensor *", "tnx_" + op.c_name, op.params, body))
    return text + "\n".join(pieces)


# ---- unboxing: values to typed arguments ----

def unbox_function(op):
    body = ["tn_%s_fn fn = (tn_%s_fn)call->kernel->typed;" % (op.c_name, op.c_name)]
    for arg in op.args:
        body += [declare(ctype, name) + (" = NULL;" if ctype.endswith("*") else ";")
                 for ctype, name in arg.params]
        body += [arg.fill(local) + ";" for local in arg.kind.locals]
    passed = ["call"] + op.arg_names
    for out in op.outs:
        if out.arg:
            continue
        body.append(declare(out.ctype, out.name) + (" = NULL;" if out.ctype.endswith("*") else ";"))
        passed.append("&" + out.name)
        if out.is_list:
            body.append("int64_t %s_n = 0;" % out.name)
            passed.append("&%s_n" % out.name)
    for arg in op.args:
        body.append("TN_TRY(%s);" % arg.fill(arg.kind.unbox))
    body.append(call("TN_TRY(fn(", passed, "));"))
    for i, out in enumerate(op.outs):
        value = ("tn_value_take_tensor(tn_tensor_ref(%s))" % out.arg.name if out.arg and not out.is_list
                 else out.box.format(n=out.name))
        body.append("rets[%d] = %s;" % (i, value))
    if not op.args:
        body.insert(0, "(void)args;")
    if not op.outs:
        body.insert(0, "(void)rets;")
    body.append("return TN_OK;")
    params = [CALL, ("const tn_value *", "args"), ("tn_value *", "rets")]
    return function("tn_status", "tn_unbox_" + op.c_name, params, body)


def boxing_c(model):
    text = banner(model, "Adaptors: the boxed entry of each operator's typed kernels.", "dispatch")
    text += includes("tenon/kernels.h", "core/tensor.h", "dispatch/box.h", "dispatch/call.h", "gen/op_ids.h")
    text += "\n".join(unbox_function(op) for op in model.operators)
    rows = "".join("    [TNI_OP_%s] = tn_unbox_%s,\n" % (op.id, op.c_name) for op in model.operators)
    return text + "\nconst tn_boxed_fn tni_op_unbox[TNI_NUM_BUILTIN_OPS + 1] = {\n%s};\n" % rows
