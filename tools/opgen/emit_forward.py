# SPDX-License-Identifier: MIT
"""Forward mode: the rules of operators, and the way from a typed autograd kernel to them."""

from csource import banner, call, function, includes
from emit_calls import box, by_position, n_values, take


class Entries:
    """Functions `forward_N`, one for each shape of C parameters: box, do what is to be done, take the results."""

    def __init__(self):
        self.known = {}

    def lines(self, op):
        """(definition or "", statements that leave the kernel when forward mode had the call)"""
        twin = by_position(op)
        n_rets = len(twin.outs)
        body = ["tn_value args[%d], rets[%d];" % (n_values(len(op.schema.args)), n_values(n_rets)),
                "tn_status status;"]
        body += [arg.fill(local) + ";" for arg in twin.args for local in arg.kind.box_locals] + list(box(twin))
        body.append("*done = tni_forward_call(call, args, rets, &status);")
        for i, out in enumerate(twin.outs):
            if out.is_list and not out.arg:
                body += ["if (*done && status == TN_OK)", "    status = tni_settle_list(rets, %d, %d);" % (n_rets, i)]
        taken = list(take(twin))
        if taken:
            body += ["if (*done && status == TN_OK) {"] + ["    " + line for line in taken] + ["}"]
        body.append("return status;")
        params = [("tn_call *", "call")] + twin.params + twin.out_params + [("bool *", "done")]
        text = function("tn_status", "NAME", params, body, "static TNI_COLD ")
        new = text not in self.known
        name = self.known.setdefault(text, "forward_%d" % len(self.known))
        leave = ["if (TNI_UNLIKELY(tni_forward_on)) {", "    bool done;",
                 call("tn_status pushed = %s(" % name, ["call"] + op.names + ["&done"], ");", 8),
                 "    if (done)", "        return pushed;", "}"]
        return (text.replace("NAME", name) + "\n" if new else ""), leave


def formula(rule):
    body = ["tn_tensor *sum = NULL;"] + rule.body + ["return sum;"]
    return function("tn_tensor *", "jvp_" + rule.op.id, [("const tni_forward *", "f")], body, "static ")


def without(op):
    """Bits of the arguments that the gradient refuses, and a tangent too."""
    if op.gradient in (None, "none"):
        return 0
    names = {arg.args[0].name for arg in op.gradient.without}
    return sum(1 << arg.index for arg in op.args if arg.is_tensor and arg.args[0].name in names)


def forward_c(model):
    rules = [op.tangent for op in model.operators if op.tangent]
    text = banner(model, "What forward mode does with operators.", "autograd")
    text += includes("autograd/forward.h", "gen/gradients.h", "gen/op_ids.h", "tenon/ops.h")
    text += "".join(formula(rule) + "\n" for rule in rules if rule.body)
    rows = ""
    for rule in rules:
        rows += "    {TNI_OP_%s, %s, %s, %#xu, %#xu, %s},\n" % (
            rule.op.id, "TNI_OP_" + rule.twin.id if rule.twin else "0", rule.kind, rule.edges, without(rule.op),
            "jvp_" + rule.op.id if rule.body else "NULL")
    text += "/* In the order of the operators' numbers; the last row ends it. */\n"
    text += "const tni_forward_rule tni_forward_rules[] = {\n%s    {0, 0, TNI_JVP_NONE, 0, 0, NULL},\n};\n" % rows
    return text + "const int tni_forward_n_rules = %d;\n" % len(rules)
