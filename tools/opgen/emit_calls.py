# SPDX-License-Identifier: MIT
"""Ways into an operator: typed wrappers, redispatch, the scope's face, and adaptors between boxed and
typed. Operators whose C parameters are alike share one body: it refuses what is missing, collects keys, begins, runs
the kernel, ends; what needs boxed arguments is in one cold function beside it."""

import copy

from cargs import KINDS, POINTER, declare
from csource import Shared, banner, call, function, guard, includes, prototype, wrapped

CALL = ("tn_call *", "call")
TENSOR, OPTIONAL_TENSOR = (KINDS["Tensor", False, is_optional] for is_optional in (False, True))
DEVICES = [KINDS["Device", False, is_optional] for is_optional in (False, True)]


def redispatch_params(op):
    return [("tn_call *", "caller"), ("tn_keyset", "keys")] + op.params + op.out_params


def redispatch_h(model):
    body = includes("tenon/dispatch.h")
    body += ("/* Go on from a kernel of the same operator (the frame `caller`) with exactly these keys, whose highest\n"
             " * must be lower than the kernel's own. */\n")
    shapes = call_shapes(model)
    for shape in shapes:
        body += prototype("tn_status", "tni_re_shape_%d" % shape.number, redispatch_params(shape.twin), "TN_NODISCARD ")
    for shape in shapes:
        for op in shape.operators:
            run = call("return tni_re_shape_%d(" % shape.number, ["caller", "keys"] + op.names, ");")
            body += function("tn_status", "tni_re_" + op.id, redispatch_params(op), [run],
                             "TN_NODISCARD static inline ")
    return banner(model, "Typed redispatch.", "dispatch") + guard("TNI_GEN_REDISPATCH_H", body)


# ---- typed calls ----

def n_values(n):
    return max(1, n)  # C has no empty arrays


def end_typed(op, indent):
    return call("return tni_call_end(call, ((fn_SHAPE)call->kernel->typed)(", ["call"] + op.names, "));", indent)


def box(op):
    for arg in op.args:
        if arg.is_options:
            yield "tni_box_opts(%s, &args[%d]);" % (arg.name, arg.index)
        else:
            yield "args[%d] = %s;" % (arg.index, arg.fill(arg.kind.box))
        if arg.kind.box_locals:
            yield "if (args[%d].tag == TN_TAG_NONE)" % arg.index
            yield "    return TN_NOMEM;"
    if not op.args:
        yield "args[0] = tn_value_none();"


def take(op):
    """Statements that move the results of a boxed kernel to where they belong."""
    for i, out in enumerate(op.outs):
        if out.arg:
            yield "tn_value_clear(&rets[%d]); /* the caller's %s is the result */" % (i, out.arg.name)
        elif out.is_list:
            yield "*%s = tni_take_tensors(&rets[%d], %s_n);" % (out.name, i, out.name)
        else:
            yield "*%s = %s(&rets[%d]);" % (out.name, out.take, i)


def cold_function(op):
    """All that the common path leaves: the kernel has no typed entry (then the frame may be begun), somebody
    watches, the thread is new, the call must be refused."""
    n, n_rets = len(op.schema.args), len(op.outs)
    body = ["tn_value args[%d], rets[%d];" % (n_values(n), n_values(n_rets)), "tn_status status = TN_OK;"]
    body += [arg.fill(local) + ";" for arg in op.args for local in arg.kind.box_locals]
    body += list(box(op))
    body += ["tn_event_kind kind = caller ? TN_EVENT_REDISPATCH : TN_EVENT_CALL;",
             "if (!call)",
             "    call = tni_begin(caller, op, keys, kind, args, %d, &status);" % n,
             "if (!call)", "    return status;",
             "if (call->kernel->typed)", end_typed(op, 8),
             "status = tni_run_boxed(call, args, %d, rets, %d);" % (n, n_rets)]
    for i, out in enumerate(op.outs):
        if out.is_list and not out.arg:
            body += ["if (status == TN_OK)", "    status = tni_settle_list(rets, %d, %d);" % (n_rets, i)]
    taken = list(take(op))
    if taken:
        body += ["if (status == TN_OK) {"] + ["    " + line for line in taken] + ["}"]
    body.append("return tni_call_end(call, status);")
    params = [("tn_op *", "op"), ("tn_call *", "call")] + redispatch_params(op)
    return function("tn_status", "cold_SHAPE", params, body, "static TNI_COLD ")


def passes_gates(op):
    """Whether a gate can be shown the operator's tensors: see Note [Gates] in src/dispatch/gate.h."""
    plain = all(arg.kind.keys in ("", TENSOR.keys, OPTIONAL_TENSOR.keys) and not arg.is_options
                and arg.kind not in DEVICES for arg in op.args)
    return (plain and any(arg.kind.keys for arg in op.args) and len(op.outs) == 1 and not op.outs[0].arg
            and not op.outs[0].is_list and op.outs[0].take == "tni_take_tensor")


def pass_function(op):
    """Past a gate where there is one; otherwise whatever the common path leaves."""
    tensors = [arg.name for arg in op.args if arg.kind.keys]
    out = op.outs[0].name
    body = ["const tni_gate *gate = tni_gate_of(call);", "if (gate) {",
            "    tn_tensor *const tensors[] = {%s};" % ", ".join(tensors),
            "    tni_passage p = {.call = call, .tensors = tensors, .n_tensors = %d};" % len(tensors),
            "    tn_typed_fn typed = gate->enter(&p);",
            "    if (TNI_LIKELY(typed != NULL)) {",
            "        tn_tensor *made = NULL;",
            call("        tn_status status = ((fn_SHAPE)typed)(", ["p.next"] + op.arg_names + ["&made"], ");", 8),
            "        status = gate->leave(&p, status, &made);",
            "        if (TNI_LIKELY(status == TN_OK))",
            "            *%s = made;" % out,
            "        return tni_call_end(call, status);",
            "    }", "}",
            call("return cold_SHAPE(", ["op", "call", "caller", "keys"] + op.names, ");", 4)]
    params = [("tn_op *", "op"), ("tn_call *", "call")] + redispatch_params(op)
    return function("tn_status", "pass_SHAPE", params, body, "static __attribute__((noinline)) ")


def begin_and_run(op, whose, caller, begin, end):
    other = "pass_SHAPE" if passes_gates(op) else "cold_SHAPE"
    return [begin, "tn_call *call = begun.call;", "if (TNI_UNLIKELY(!begun.typed))",
            call("return %s(" % other, [whose, "call", caller, "keys"] + op.names, ");", 8),
            call("return %s(call, ((fn_SHAPE)begun.typed)(" % end, ["call"] + op.names, "));", 4)]


def first_tensors(op):
    """The two tensors that the recorder describes; of a list, its first."""
    found = []
    for arg in op.args:
        if "tni_keys_of_list" in (arg.kind.keys or ""):
            found.append(arg.fill("{n}_n > 0 ? {n}[0] : NULL"))
        elif "tni_keys(" in (arg.kind.keys or ""):
            found.append(arg.name)
    return (found + ["NULL", "NULL"])[:2]


def shared_call(op):
    body, pointers = [], []
    for arg in op.args:
        if arg.kind.check == POINTER:
            pointers.append((arg.name, arg.index))
        elif arg.kind.check:
            condition, failure = map(arg.fill, arg.kind.check)
            body += ["if (TNI_UNLIKELY(%s))" % condition, "    return %s;" % failure]
    pointers += [(name, len(op.schema.args) + i) for i, (_, name) in enumerate(op.out_params)]
    if pointers:
        places = ", ".join(str(place) for _, place in pointers)
        body += [wrapped("if (TNI_UNLIKELY(", [" || ".join("!" + p for p, _ in pointers)], "))", 4),
                 call("return tni_null_pointer(op, (const uint8_t[]){%s}, (const void *const[]){" % places,
                      [p for p, _ in pointers], "});", 8)]
    keys = [arg.fill(arg.kind.keys) for arg in op.args if arg.kind.keys]
    body.append(wrapped("tn_keyset keys = ", [" | ".join(keys) or "0"], ";", 4))
    begin = call("tni_begun begun = tni_call_begin(", ["op", "keys"] + first_tensors(op), ");")
    body += begin_and_run(op, "op", "NULL", begin, "tni_call_end_plain")
    return function("tn_status", "call_SHAPE", op.params + op.out_params + [("tn_op *", "op")], body, "STATIC ")


def shared_redispatch(op):
    body = begin_and_run(op, "caller->op", "caller",
                         "tni_begun begun = tni_redispatch_begin(caller, caller->op, keys);", "tni_redispatch_end")
    return function("tn_status", "tni_re_shape_SHAPE", redispatch_params(op), body)


def by_position(op):
    """The operator with parameters named by their position, so that operators of one shape give one text."""
    twin = copy.copy(op)
    twin.args = [copy.copy(arg) for arg in op.args]
    renamed = {}
    for i, (old, arg) in enumerate(zip(op.args, twin.args)):
        arg.name = "a%d" % i
        renamed[id(old)] = arg
    twin.outs = [copy.copy(out) for out in op.outs]
    for i, out in enumerate(twin.outs):
        out.name = "r%d" % i
        out.arg = out.arg and renamed[id(out.arg)]
        out.view_of = out.view_of and renamed[id(out.view_of)]
    return twin


class CallShape:
    """The shared bodies of the operators that have the same C parameters."""

    def __init__(self, number, twin, text):
        self.number, self.twin, self.text, self.operators = number, twin, text, []

    def source(self):
        static = "static" if len(self.operators) == 1 else "static TNI_SHARED"
        return self.text.replace("STATIC", static).replace("SHAPE", str(self.number))


def call_shapes(model):
    found = {}
    for op in model.operators:
        twin = by_position(op)
        types = [ctype.rstrip() for ctype, _ in [CALL] + twin.params + twin.out_params]
        parts = [wrapped("typedef tn_status (*fn_SHAPE)(", types, ");"), cold_function(twin)]
        parts += [pass_function(twin)] if passes_gates(twin) else []
        text = "\n".join(parts + [shared_call(twin), shared_redispatch(twin)])
        found.setdefault(text, CallShape(len(found), twin, text)).operators.append(op)
    return list(found.values())


def wrapper(op, shape):
    run = call("return call_%d(" % shape.number, op.names + ["OP(%s)" % op.id], ");")
    return function("tn_status", "tn_" + op.c_name, op.params + op.out_params, [run])


CALLS_HEAD = """#define OP(id) (&tni_builtin_ops[TNI_OP_##id])
/* One body for many wrappers: inlining it into each would undo the sharing. */
#define TNI_SHARED __attribute__((noinline))

/* For each shape of C parameters: call_N calls the operator that comes last; tni_re_shape_N goes on from a
 * kernel; cold_N is the rare half of both, whatever tni_call_begin and tni_redispatch_begin leave; pass_N asks gates
 * before it, see dispatch/gate.h. */

"""


def calls_c(model):
    text = banner(model, "Typed calls and redispatches of the built-in operators.", "dispatch")
    text += includes("tenon/kernels.h", "tenon/ops.h", "core/tensor.h", "dispatch/box.h", "dispatch/call.h",
                     "dispatch/gate.h", "gen/op_ids.h", "gen/redispatch.h")
    text += CALLS_HEAD
    pieces = []
    for shape in call_shapes(model):
        names = wrapped("/* Shape %d: " % shape.number, [op.schema.full for op in shape.operators], " */")
        pieces.append("\n".join([names, shape.source()] + [wrapper(op, shape) for op in shape.operators]))
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

def unbox_function(op, shared):
    """Operators of one shape share it: parameters are named by position, messages find names in the schema."""
    op = by_position(op)
    types = ", ".join(ctype.rstrip() for ctype, _ in [CALL] + op.params + op.out_params)
    body = ["tn_status (*fn)(%s) = (tn_status (*)(%s))call->kernel->record->typed;" % (types, types)]
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
    body.append("tni_stage(call, TNI_STAGE_INSIDE);")
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
    return shared.add("tn_status", "tn_unbox_" + op.c_name, params, body)


def boxing_c(model):
    text = banner(model, "Adaptors: the boxed entry of each operator's typed kernels.", "dispatch")
    text += includes("tenon/kernels.h", "core/tensor.h", "dispatch/box.h", "dispatch/call.h", "gen/op_ids.h")
    shared = Shared()
    text += "\n".join(unbox_function(op, shared) for op in model.operators)
    rows = "".join("    [TNI_OP_%s] = tn_unbox_%s,\n" % (op.id, op.c_name) for op in model.operators)
    return text + "\nconst tn_boxed_fn tni_op_unbox[TNI_NUM_BUILTIN_OPS + 1] = {\n%s};\n" % rows
