# SPDX-License-Identifier: MIT
"""Autograd: kernels that record, nodes that run formulas; and ADInplaceOrView kernels."""

from emit_calls import by_position, call_shapes
from emit_forward import Entries
from csource import Shared, banner, call, function, guard, includes, literal, prototype, wrapped

CALL = ("tn_call *", "call")


class Kernels:
    """Kernels, of which those that only redispatch are shared by operators of one shape."""

    def __init__(self, model):
        self.shared = Shared()
        self.shape_of = {op.id: shape.number for shape in call_shapes(model) for op in shape.operators}
        self.forward = Entries()

    def by_shape(self, op, prefix, body_of):
        """BODY_OF makes the body for an operator whose parameters are named by position."""
        twin = by_position(op)
        twin.redispatch = "tni_re_shape_%d" % self.shape_of[op.id]
        return self.shared.add("tn_status", prefix + op.id, [CALL] + twin.params + twin.out_params, body_of(twin))


def guarded(op, exclude, mask, names):
    """Redispatch below, with keys excluded on the thread; leaves `status`."""
    return ["uint64_t saved = tni_exclude(&tni_tls, %s);" % exclude,
            call("tn_status status = %s(" % getattr(op, "redispatch", "tni_re_" + op.id),
                 ["call", "call->keys & " + mask] + names, ");"),
            "tni_tls.excluded_xor = saved;"]


def below_autograd(op, names):
    """Views and writes still have to pass ADInplaceOrView."""
    exclude = "TNI_BELOW_AUTOGRAD" if op.views or op.written else "TNI_BELOW_ADINPLACE_OR_VIEW"
    return guarded(op, exclude, "TNI_KS_AFTER_AUTOGRAD", names)


def records(op):
    """The condition under which a call is recorded, or has tangents pushed through it: the cold half decides."""
    tests = []
    for arg in op.args:
        if arg.is_tensor:
            tests.append("tni_any_watched(%s, %s_n)" % (arg.name, arg.name) if arg.type.is_list
                         else "tni_watched(%s)" % arg.name)
    return wrapped("if (TNI_UNLIKELY(tni_watching_tensors && (", [" || ".join(tests)], ")))", 4)


# ---- results of a kernel that is being watched ----

def result_locals(op):
    """(declarations, arguments, moves) of results that are held until nothing can fail any more."""
    body, names, moves = [], [], []
    for out in op.outs:
        local = "made_" + out.name
        if out.arg:
            continue
        if out.is_list:
            body += ["tn_tensor **%s = NULL;" % local, "int64_t %s_n = 0;" % local]
            names += ["&" + local, "&%s_n" % local]
            moves += ["*%s = %s;" % (out.name, local), "*%s_n = %s_n;" % (out.name, local)]
        elif out.ret.type.is_tensor:
            body.append("TN_AUTO(tn_tensor) %s = NULL;" % local)
            names.append("&" + local)
            moves.append("*%s = TN_MOVE(%s);" % (out.name, local))
        else:
            names.append(out.name)
    return body, names, moves


def result_name(op, index):
    out = op.outs[index]
    return out.arg.name if out.arg else "made_" + out.name


# ---- kernels that record ----

def record(op, gradient, leave):
    """The recording half of an autograd kernel. LEAVE: statements for forward mode, which come first."""
    inplace = bool(op.outs and op.outs[0].arg)  # else what it writes is beside its results: statistics
    by_name = {arg.args[0].name: arg.name for arg in op.args}
    inputs = [by_name[arg.args[0].name] for arg in gradient.inputs]
    written = [arg.name for arg in op.written]
    body = leave + ["TN_AUTO(tni_node) node = NULL;"]
    declarations, names, moves = result_locals(op)
    body += declarations
    for arg in gradient.without:
        mine = by_name[arg.args[0].name]
        if arg.args[0].name in gradient.refused:
            body.append("TN_TRY(tni_refuse_derivative(call, %s));" % mine)
            continue
        check = "tni_refuse_lists" if arg.type.is_list else "tni_refuse_gradient"
        more = [mine, mine + "_n"] if arg.type.is_list else [mine]
        body.append("TN_TRY(%s(call, %s, %s));" % (check, literal(arg.args[0].name), ", ".join(more)))
    for name in written:
        body.append("TN_TRY(tni_check_inplace(%s));" % name)
    rewritten = sum(1 << i for i, name in enumerate(inputs) if name in written)
    body.append(wrapped("tn_tensor *const inputs[] = {", inputs or ["NULL"], "};", 4))
    listed = ["%s, %s_n" % ((by_name[gradient.list.args[0].name],) * 2)] if gradient.list else ["NULL, 0"]
    body.append(call("TN_TRY(tni_record_begin(",
                     ["&tni_class_" + gradient.id, "inputs"] + listed
                     + ["%d" % len(op.outs), "%du" % rewritten, "&node"], "));"))
    if gradient.has_fields:
        body.append("struct tni_fields_%s *kept = node->data;" % gradient.id)
        body += gradient.keeps()
    body += below_autograd(op, op.arg_names + names)
    body.append("TN_TRY(status);")
    rewrites = inplace and op.family.kind != "view" and "inplace_view" not in op.family.tags
    if rewrites:
        body.append("TN_TRY(tni_record_written(node, %s));" % written[0])
    else:
        for index in gradient.differentiable:
            name = result_name(op, index)
            if inputs and not inplace and not op.outs[index].is_list:
                body.append("TN_TRY(tni_check_made(call, inputs, %d, %s));" % (len(inputs), name))
            if op.outs[index].is_list:
                body.append("TN_TRY(tni_record_list(node, %s, %s_n));" % (name, name))
            elif len(op.outs) == 1 and not gradient.saved_results:
                body.append("TN_TRY(%s(&node, %s));" % ("tni_record_moved" if inplace else "tni_record_only_result", name))
            else:
                body.append("TN_TRY(tni_record_result(node, %d, %s));" % (index, name))
    for slot, index in gradient.saved_results:
        save = "tni_record_save_written" if rewrites else "tni_record_save"
        body.append("TN_TRY(%s(node, %d, %s));" % (save, slot, result_name(op, index)))
    return function("tn_status", "record_" + op.id, [CALL] + op.params + op.out_params,
                    body + moves + ["return TN_OK;"], "static TNI_COLD_PATH ")


def plain(op):
    return below_autograd(op, op.names) + ["return status;"]


def refusing(op, leave):
    """Of an operator that has no derivative, or whose derivative nobody can ask for."""
    if op.gradient == "none" or not op.has_tensors:
        return plain(op)
    if op.is_out or op.written:
        refuse = "tni_refuse_out" if op.is_out else "tni_refuse_operator"
        checks = ["    TN_TRY(tni_check_inplace(%s));" % arg.name for arg in op.written if not op.is_out and not arg.type.is_list]
        return ([records(op).rstrip("\n") + " {\n"] + [line if line.endswith("\n") else "    " + line for line in leave]
                + checks + ["    return %s(call);" % refuse, "}"] + plain(op))
    singles = [out.name for out in op.outs if out.ret.type.is_tensor and not out.is_list]
    lists = [out.name for out in op.outs if out.is_list]
    checks = []
    if singles:
        checks.append("tn_tensor **const results[] = {%s};" % ", ".join(singles))
        checks.append("status = tni_refuse_results(call, status, results, %d);" % len(singles))
    checks += ["status = tni_refuse_list(call, status, %s, %s_n);" % (name, name) for name in lists]
    body = (leave if checks else []) + below_autograd(op, op.names)
    if checks:
        body += [records(op).rstrip("\n") + " {\n"] + ["    " + line for line in checks] + ["}"]
    return body + ["return status;"]


def captured(op, twin):
    """What the generated ADInplaceOrView kernel asks first, where that one is written by hand."""
    if op.role != "inplace" or not op.has_kernel("ADInplaceOrView"):
        return []
    return ["TN_TRY(tni_check_captured(call, %s));" % arg.name for arg in twin.written if not arg.type.is_list]


def autograd(op, kernels):
    """The kernel, with the function that records for it."""
    if op.gradient in (None, "none") or op.is_out or not op.has_tensors:
        quiet = not op.is_out and not op.written and not any(out.ret.type.is_tensor for out in op.outs)
        if op.gradient == "none" or not op.has_tensors or quiet:
            return kernels.by_shape(op, "tni_autograd_", lambda twin: captured(op, twin) + refusing(twin, []))
        entry, _ = kernels.forward.lines(op)
        return entry + kernels.by_shape(op, "tni_autograd_",
                                        lambda twin: refusing(twin, kernels.forward.lines(twin)[1]))
    entry, leave = kernels.forward.lines(op)
    body = [records(op), call("return record_%s(" % op.id, ["call"] + op.names, ");", 8)] + plain(op)
    return entry + record(op, op.gradient, leave) + "\n" + function("tn_status", "tni_autograd_" + op.id,
                                                    [CALL] + op.params + op.out_params, body)


# ---- ADInplaceOrView ----

def adiov(op):
    body, names, moves = result_locals(op)
    marks = []
    for out in op.outs:
        if out.arg or not out.view_of:
            continue
        base, local = out.view_of.name, "made_" + out.name
        if out.is_list:
            marks.append("TN_TRY(views_made(%s, %s, %s_n));" % (base, local, local))
        else:
            made = "tni_alias_made" if op.gradient == "none" else "tni_view_made"
            marks.append("TN_TRY(%s(%s, %s));" % (made, base, local))
    if op.role == "inplace":
        body += ["TN_TRY(tni_check_captured(call, %s));" % arg.name for arg in op.written
                 if not arg.type.is_list and not arg.type.optional]
    body += guarded(op, "TNI_BELOW_ADINPLACE_OR_VIEW", "TNI_KS_AFTER_ADINPLACE_OR_VIEW", op.arg_names + names)
    body.append("TN_TRY(status);")
    for arg in op.written:
        if arg.type.is_list:
            marks.append("TN_TRY(bump_versions(%s, %s_n));" % (arg.name, arg.name))
        elif arg.type.optional:
            marks += ["if (%s)" % arg.name, "    TN_TRY(tni_tensor_bump_version(%s));" % arg.name]
        else:
            marks.append("TN_TRY(tni_tensor_bump_version(%s));" % arg.name)
    return body + marks + moves + ["return TN_OK;"]


VIEWS_MADE = '''/* Mark each result; when one cannot be marked, release them all. */
static tn_status views_made(const tn_tensor *base, tn_tensor **views, int64_t n)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < n && status == TN_OK; i++)
        status = tni_multi_view_made(base, views[i]);
    if (status != TN_OK)
        tn_tensor_list_free(views, n);
    return status;
}

'''
BUMP_VERSIONS = '''static tn_status bump_versions(tn_tensor *const *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        TN_TRY(tni_tensor_bump_version(list[i]));
    return TN_OK;
}

'''


def autograd_kernels_c(model):
    pieces, kernels = [], Kernels(model)
    for op in model.operators:
        made = [k.function for k in op.kernels]
        if "tni_autograd_" + op.id in made:
            pieces.append(autograd(op, kernels))
        if "tni_adiov_" + op.id in made:
            pieces.append(kernels.by_shape(op, "tni_adiov_", adiov))
    body = "\n".join(pieces)
    return (banner(model, "Autograd and ADInplaceOrView kernels: record, guard, redispatch, mark what was made or "
                          "written.", "autograd")
            + includes("core/state.h", "core/tensor.h", "autograd/forward.h", "autograd/record.h", "autograd/view.h",
                       "dispatch/box.h", "gen/gradients.h", "gen/kernels.h", "gen/redispatch.h")
            + (VIEWS_MADE if "views_made(" in body else "")
            + (BUMP_VERSIONS if "bump_versions(" in body else "") + body)


# ---- nodes ----

def gradients_h(model):
    body = includes("autograd/record.h")
    body += "/* Formulas written by hand. Results belong to the scope, where failures stick; those for several\n"
    body += " * arguments fill `made` with owned tensors and return a status. */\n"
    for name, (kind, _, params, _) in sorted(model.hands.items()):
        result = {"one": "tn_tensor *", "several": "tn_status", "list": "void"}[kind]
        more = {"one": [], "several": [("tn_tensor **", "made")],
                "list": [("tni_backward *", "b"), ("uint32_t", "first")]}[kind]
        body += prototype(result, "tni_grad_" + name, params + more)
    body += "\n/* Nodes, and what they keep. */\n"
    for gradient in model.gradients:
        if gradient.struct():
            body += "struct tni_fields_%s {\n%s};\n" % (
                gradient.id, "".join("    %s\n" % line for line in gradient.struct()))
        body += "extern const tni_node_class tni_class_%s;\n" % gradient.id
    return banner(model, "Nodes of the gradient graph and their formulas.", "autograd") + guard(
        "TNI_GEN_GRADIENTS_H", body)


def shown(name, index, gradient):
    """What users call a saved value (INDEX: None for a result): results by their names, the only one is just that."""
    rets = gradient.op.schema.rets
    if index is None and name.startswith("result"):
        named = rets[int(name[len("result"):])].name
        return named if named and len(rets) > 1 else "result" if len(rets) == 1 else name
    return name


# How users know what is read of a tensor; what is not here is ours alone.
READ_OF_TENSORS = {"sizes": "sym_sizes", "strides": "sym_strides", "numel": "sym_numel", "ndim": "dim",
                   "offset": "sym_storage_offset"}


def kept_fields(gradient):
    """(name for users, field, kind) of what a node keeps besides single tensors."""
    args = {arg.name: arg for arg in gradient.op.args}

    def named(field):
        if field in args:
            return args[field].args[0].name
        tensor, _, attribute = field.rpartition("_")
        if tensor not in args or attribute not in READ_OF_TENSORS:
            return None
        arg = args[tensor]
        return "%s_%s%s" % (arg.args[0].name, READ_OF_TENSORS[attribute], "_opt" if arg.type.optional else "")

    found = [(field, "ints") for field in gradient.uses.lists]
    found += [(field, "tensors") for field in gradient.uses.tensor_lists]
    found += [(field, kind) for field, (kind, _) in gradient.uses.fields.items() if kind not in ("dtype", "opts")]
    return [(named(field), field, kind) for field, kind in found if named(field)]


def kept_table(gradient):
    """The table of them, or nothing."""
    rows = ["    {%s, offsetof(struct tni_fields_%s, %s), TNI_KEPT_%s},\n" % (literal(name), gradient.id, field,
                                                                            kind.upper())
            for name, field, kind in kept_fields(gradient)]
    return "static const tni_kept_field kept_%s[] = {\n%s    {NULL, 0, 0},\n};\n" % (gradient.id, "".join(rows)) if (
        rows) else ""


def node(gradient):
    body = []
    if gradient.uses.tensor_lists or gradient.has_fields and any("kept->" in line for line in gradient.body):
        body.append("const struct tni_fields_%s *kept = b->node->data;" % gradient.id)
    for slot, (name, _, _) in enumerate(gradient.saved):
        body.append("tn_tensor *%s = tni_unpack(b, %d);" % (name, slot))
    for name in gradient.uses.tensor_lists:
        body += ["tn_tensor *%s[TN_MAX_DIMS];" % name,
                 "int64_t %s_n = tni_unpack_list(b, &kept->%s, %s);" % (name, name, name)]
    if gradient.saved or gradient.uses.tensor_lists:  # formulas are not asked to bear what could not be unpacked
        body += ["if (TNI_UNLIKELY(tni_scope_settle() != TN_OK))", "    return tni_scope_settle();"]
    body += gradient.body + ["return tni_scope_settle();"]
    text = function("tn_status", "backward_" + gradient.id, [("tni_backward *", "b")], body, "static ")
    n = len(gradient.saved)
    tables = ["NULL", "NULL", "NULL"]
    if n:
        sources = ", ".join("TNI_SAVED_RESULT" if i is None else str(i) for _, i, _ in gradient.saved)
        masks = ", ".join("%du" % mask for _, _, mask in gradient.saved)
        text += "static const uint8_t from_%s[] = {%s};\n" % (gradient.id, sources)
        text += "static const uint32_t for_%s[] = {%s};\n" % (gradient.id, masks)
        text += "static const char *const names_%s[] = {%s};\n" % (
            gradient.id, ", ".join(literal(shown(name, index, gradient)) for name, index, _ in gradient.saved))
        tables = ["from_" + gradient.id, "for_" + gradient.id, "names_" + gradient.id]
    size = "sizeof(struct tni_fields_%s)" % gradient.id if gradient.struct() else "0"
    fields = [literal(gradient.node_name), "backward_" + gradient.id, "NULL", size, str(n),
              str(len(gradient.uses.lists)), str(len(gradient.uses.tensor_lists)), "TNI_CLASS_REAL_PARTS", str(len(gradient.singles))] + tables
    table = kept_table(gradient)
    text += table
    fields.append("kept_" + gradient.id if table else "NULL")
    return text + wrapped("const tni_node_class tni_class_%s = {" % gradient.id, fields, "};")


def gradients_c(model):
    return (banner(model, "What nodes compute.", "autograd")
            + includes("autograd/record.h", "core/scope.h", "gen/gradients.h", "tenon/ops.h")
            + "\n".join(node(gradient) for gradient in model.gradients))
