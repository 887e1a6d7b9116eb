# SPDX-License-Identifier: MIT
"""Operators: what the declarations mean, with everything checked. One declaration gives one to three
operators (function, in-place, out). What emitters read is here; they decide nothing."""

import re

import cargs
import constants
import gradient as gradients
import tangent as tangents
import schema as schemas
from parse import unquote
from problems import Problem

ONCE = ("variants", "inplace", "out", "dtype", "c", "tags", "shape", "cpu", "pointwise", "operands", "type", "dtypes",
        "layout", "takes", "check", "view", "composite", "alias", "autograd", "autocast", "jvp", "names", "node", "python",
        "result", "apart")
MANY = ("doc", "grad", "kernel", "sample", "error")
VARIANTS = ("function", "method", "inplace", "out")
RULES = {"promote": "TNI_PW_PROMOTE", "float": "TNI_PW_FLOAT", "bool": "TNI_PW_BOOL", "same": "TNI_PW_SAME",
         "where": "TNI_PW_WHERE", "magnitude": "TNI_PW_MAGNITUDE"}
# By what the result of an elementwise operator is laid out.
LAYOUTS = {"operands": "TNI_LAYOUT_OPERANDS", "tensors": "TNI_LAYOUT_TENSORS", "first": "TNI_LAYOUT_FIRST", "rows": "TNI_LAYOUT_ROWS"}
# Which dtypes an elementwise operator computes in.
DTYPES = {"float": "TNI_PW_FLOATS", "inexact": "TNI_PW_INEXACT", "real": "TNI_PW_REALS", "ordered": "TNI_PW_ORDERED",
          "integer": "TNI_PW_INTEGERS", "bits": "TNI_PW_BITS", "number": "TNI_PW_NUMBERS"}
# Of the dtypes that most operators refuse: which an operator takes.
TAKES = {"any": ("UNSIGNED", "FLOAT8"), "unsigned": ("UNSIGNED",), "float8": ("FLOAT8",), "given": ("UNSIGNED", "FLOAT8"), "none": ()}
TAKES_LINE = re.compile(r'(\w+)(?:\s+("(?:[^"\\]|\\.)*"))?$')
AUTOCAST = ("lower", "float32", "promote", "lower_lstm")
# What the dimensions of results are called: a rule of src/names.
NAMES = ("none", "unify", "same", "reduce", "transpose", "expand", "squeeze", "diagonal", "product", "distance", "cat", "mask",
         "masked", "equal")
KINDS = ("shape", "pointwise", "view", "composite", "alias")
NAME = re.compile(r"[A-Za-z_]\w*$")
OUT_DTYPE = re.compile(r'(exact|safe|float)\s+(?:(TYPE)\s+)?("(?:[^"\\]|\\.)*")$')
DTYPES_LINE = re.compile(r'(\w+)\s+("(?:[^"\\]|\\.)*")$')
ERROR = re.compile(r'([A-Z]+)\s+("(?:[^"\\]|\\.)*")\s*:\s*(.*)$')


class Kernel:
    """A registration: the function FN serves the operator for a dispatch key."""

    def __init__(self, key, function, where):
        self.key, self.function, self.where = key, function, where


class Operator:
    def __init__(self, family, schema, role, where):
        self.family, self.schema, self.role, self.where = family, schema, role, where
        self.args = cargs.arguments(schema)
        self.outs = cargs.results(schema, self.args)
        prefix = "" if schema.ns == "aten" else schema.ns + "_"
        self.id = prefix + schema.name + ("_" + schema.overload if schema.overload else "")
        self.kernels = []
        self.gradient = None  # a Gradient, "none" (takes no part), or None: nobody said
        self.tangent = None  # a Tangent: what forward mode does; None: it refuses
        self.name_rule = None  # one of NAMES: what becomes of names of dimensions; None: they are refused

    # Parameters of C functions, as (type, name).
    @property
    def params(self):
        return [p for arg in self.args for p in arg.params]

    @property
    def out_params(self):
        return [p for out in self.outs for p in out.params]

    @property
    def arg_names(self):
        return [name for _, name in self.params]

    @property
    def names(self):
        return self.arg_names + [name for _, name in self.out_params]

    @property
    def written(self):
        return [arg for arg in self.args if arg.write]

    @property
    def views(self):
        return [out for out in self.outs if out.view_of]

    @property
    def has_tensors(self):
        return any(arg.is_tensor for arg in self.args)

    @property
    def is_out(self):
        return any(arg.write and arg.args[0].kw_only for arg in self.args)

    @property
    def composite(self):
        return any(kernel.key == "CompositeImplicitAutograd" for kernel in self.kernels)

    def has_kernel(self, key):
        return any(kernel.key == key for kernel in self.kernels)

    def has_kernel_function(self, prefix):
        return any(kernel.function == prefix + self.id for kernel in self.kernels)

    @property
    def one_tensor(self):
        return len(self.outs) == 1 and self.outs[0].ret.type.text(False) == "Tensor"


class Family:
    """A declaration, checked: what its operators share."""

    def __init__(self, declaration):
        self.declaration = declaration
        self.where = declaration.where
        self.file = declaration.where[0]
        self.doc, self.tags, self.variants = "", [], ["function"]
        self.kind = None  # "shape", "pointwise", "view", "composite", "alias" or "kernel"
        self.fn = self.cpu = self.check = None
        self.rule, self.operands, self.dtypes, self.layout = "promote", [], None, "operands"
        self.takes, self.gives, self.label = (), (), None  # of the limited dtypes, and the name in the text that refuses the others
        self.autograd = True
        self.autocast = None  # one of AUTOCAST
        self.names = None  # (one of NAMES, the variants that it is for)
        self.dtype_of_written = False
        self.cast_out = False  # a given result may be of another dtype
        self.out_dtype = None  # ("exact" or "safe", the text of a refusal)
        self.node = None  # name of the node in the graph, where it is not the default
        self.numbers = False  # in Python a number may stand for a tensor
        self.functional = False  # in Python the out variant is reached through `ops` alone
        self.in_nn = False  # in Python it is a function of `_C._nn`, as in the reference
        self.ops_alone = False  # in Python all of it is
        self.apart = []  # arguments that may not share memory with what the in-place variant writes
        self.no_view = False  # a composite whose results are no views, though what makes them may be
        self.samples = []  # (where, status, text, arguments)
        self.hand_kernels = []
        self.formulas = None  # of `grad` lines
        self.not_implemented = False  # said by one of them, of the whole operator
        self.jvp = None  # of the `jvp` line
        self.operators = []

    @property
    def base(self):
        """The operator that the head declares."""
        return self.operators[0]

    def alias_of(self, op):
        """Of a family of aliases: the C name of the operator that one of them calls."""
        return self.fn + ("" if op is self.base else "_" if op.role == "inplace" else "_out")

    def variant(self, role):
        return next((op for op in self.operators if op.role == role), None)


class Builder:
    """Checks declarations one by one, then all of them together."""

    def __init__(self, problems):
        self.problems = problems
        self.keys = constants.keys()
        self.statuses = constants.statuses()
        self.families = []

    def fail(self, where, message):
        raise Problem(where, message)

    # ---- one declaration ----

    def add(self, declaration):
        family = Family(declaration)
        try:
            schema = schemas.parse(declaration.schema)
        except schemas.SchemaError as error:
            self.problems.add(declaration.where, str(error))
            return
        before = len(self.problems.found)
        for message in schemas.check(schema):
            self.problems.add(declaration.where, message)
        self.check_types(declaration.where, schema)
        self.check_keys_of_lines(declaration)
        if len(self.problems.found) > before:
            return
        self.attempt(self.texts, family, schema)
        # One mistake in these makes what follows meaningless, so each waits for the one before.
        for step in (self.variants, self.what_it_does, self.details, self.make_operators):
            if not self.attempt(step, family, schema):
                break
        if len(self.problems.found) == before:
            self.families.append(family)

    def attempt(self, step, family, schema):
        try:
            step(family, schema)
            return True
        except Problem as problem:
            self.problems.add(problem.where, problem.message)
            return False

    def check_types(self, where, schema):
        for arg in schema.args:
            if cargs.kind_of(arg.type) is None:
                self.problems.add(where, "argument '%s': type '%s' has no C type" % (arg.name, arg.type))
        for ret in schema.rets:
            if not cargs.result_has_type(ret.type):
                self.problems.add(where, "a result of type '%s' has no C type" % ret.type)
            elif ret.type.is_list and ret.type.write:
                self.problems.add(where, "a written list is not returned: let the operator return ()")

    def check_keys_of_lines(self, declaration):
        seen = {}
        for line in declaration.lines:
            if line.key not in ONCE + MANY:
                self.problems.add(line.where, "unknown line '%s'; known are: %s" % (
                    line.key, " ".join(sorted(ONCE + MANY))))
            elif line.key in ONCE and line.key in seen:
                self.problems.add(line.where, "'%s' was given at line %d" % (line.key, seen[line.key]))
            elif not line.rest:
                self.problems.add(line.where, "'%s' says nothing" % line.key)
            seen.setdefault(line.key, line.where[1])

    def name(self, line):
        if not NAME.match(line.rest):
            self.fail(line.where, "'%s' wants one name, found '%s'" % (line.key, line.rest))
        return line.rest

    def texts(self, family, schema):
        declaration = family.declaration
        family.doc = "\n".join(unquote(line.rest, line.where) for line in declaration.all("doc"))
        tags = declaration.one("tags")
        family.tags = tags.rest.split() if tags else []
        takes = declaration.one("takes")
        match = TAKES_LINE.match(takes.rest) if takes else None
        if takes and (not match or match.group(1) not in TAKES):
            self.fail(takes.where, 'want `takes KIND ["kernel"]`; kinds are: %s' % " ".join(TAKES))
        name = schema.name
        family.label = (name[:-1] if name.endswith("_") else name) + "_cpu"
        if match:
            family.takes = TAKES[match.group(1)]
            family.gives = TAKES["unsigned"] if match.group(1) == "given" else family.takes
            if match.group(2):
                family.label = unquote(match.group(2), takes.where)
        elif declaration.one("view"):
            family.takes = family.gives = TAKES["any"]
        for line in declaration.all("sample"):
            family.samples.append((line.where, "OK", "", line.rest))
        for line in declaration.all("error"):
            match = ERROR.match(line.rest)
            if not match:
                self.fail(line.where, 'want `error STATUS "text" : ARGUMENTS`')
            status, text, arguments = match.groups()
            if status not in self.statuses:
                self.fail(line.where, "unknown status '%s'; known are: %s" % (status,
                                                                             " ".join(self.statuses)))
            family.samples.append((line.where, status, unquote(text, line.where), arguments))

    def variants(self, family, schema):
        line = family.declaration.one("variants")
        if not line:
            return
        family.variants = line.rest.split()
        for word in family.variants:
            if word not in VARIANTS:
                self.fail(line.where, "unknown variant '%s'; known are: %s" % (word, " ".join(VARIANTS)))
        if "function" not in family.variants and "method" not in family.variants:
            self.fail(line.where, "variants without 'function' or 'method': declare the operator that "
                                  "there is")
        plain = not any(arg.type.alias for arg in schema.args)
        written = any(arg.type.write for arg in schema.args)
        if "method" in family.variants and not (schema.args and schema.args[0].type.is_tensor
                                                and schema.args[0].name == "self"):
            self.fail(line.where, "variant 'method' wants a first argument 'Tensor self'")
        if "inplace" in family.variants:
            first = schema.args[0].type.text(False) if schema.args else "nothing"
            if first != "Tensor" or [r.type.text(False) for r in schema.rets] != ["Tensor"] or written:
                self.fail(line.where, "variant 'inplace' wants a first argument and one result of type "
                                      "'Tensor', and nothing written")
        elif family.declaration.one("inplace"):
            self.fail(family.declaration.one("inplace").where, "'inplace' names a variant that 'variants' "
                                                               "lacks")
        if "out" in family.variants:
            results = [ret.type.text(False) for ret in schema.rets]
            if not plain or not results or results != ["Tensor"] * len(results) and results != ["Tensor[]"]:
                self.fail(line.where, "variant 'out' wants results of type 'Tensor', or one of type 'Tensor[]', that alias "
                                      "nothing")
        elif family.declaration.one("out"):
            self.fail(family.declaration.one("out").where, "'out' names a variant that 'variants' lacks")

    def what_it_does(self, family, schema):
        declaration = family.declaration
        given = [declaration.one(key) for key in KINDS if declaration.one(key)]
        kernels = declaration.all("kernel")
        if len(given) > 1:
            self.fail(given[1].where, "'%s' and '%s' both say what the operator does" % (given[0].key,
                                                                                        given[1].key))
        if not given and not kernels:
            self.fail(declaration.where, "nothing says what the operator does: want shape and cpu, "
                                         "pointwise, view, composite, alias, or kernel")
        family.kind = given[0].key if given else "kernel"
        family.fn = self.name(given[0]) if given else None
        for line in kernels:
            words = line.rest.split()
            if len(words) != 2 or not NAME.match(words[1]):
                self.fail(line.where, "want `kernel KEY FUNCTION`, found '%s'" % line.rest)
            if words[0] not in self.keys:
                self.fail(line.where, "unknown dispatch key '%s'" % words[0])
            if any(kernel.key == words[0] for kernel in family.hand_kernels):
                self.fail(line.where, "a second kernel for %s" % words[0])
            family.hand_kernels.append(Kernel(words[0], "tni_kernel_" + words[1], line.where))
        self.pairing(family, schema)

    def pairing(self, family, schema):
        """Lines that only go with one kind of operator."""
        declaration = family.declaration
        cpu = declaration.one("cpu")
        if family.kind == "shape" and not cpu:
            self.fail(declaration.one("shape").where, "'shape' without 'cpu': nothing computes the result")
        if family.kind != "shape" and cpu:
            self.fail(cpu.where, "'cpu' without 'shape'")
        if cpu:
            family.cpu = self.name(cpu)
        for key in ("operands", "type", "dtypes", "layout", "check"):
            if declaration.one(key) and family.kind != "pointwise":
                self.fail(declaration.one(key).where, "'%s' is for pointwise operators" % key)
        line = declaration.one("variants")
        for variant in ("inplace", "out"):
            if variant in family.variants and (family.kind, variant) == ("view", "out"):
                self.fail(line.where, "variant '%s' cannot be derived for a %s operator: declare it as an "
                                      "operator of its own" % (variant, family.kind))
        if family.kind == "view":
            first = schema.args[0].type if schema.args else None
            if not (len(schema.rets) == 1 and first and first.alias and not first.write
                    and schema.rets[0].type.text(False) == "Tensor" and schema.rets[0].type.alias):
                self.fail(declaration.one("view").where, "a view wants `Tensor(a) self, … -> Tensor(a)`")
        elif family.kind in ("shape", "pointwise"):
            if any(arg.type.alias for arg in schema.args):
                self.fail(declaration.one(family.kind).where, "'%s' wants a schema without alias "
                          "annotations; 'variants' gives the operators that write" % family.kind)
            if not schema.rets or any(ret.type.text(False) != "Tensor" for ret in schema.rets):
                self.fail(declaration.one(family.kind).where, "'%s' wants results of type 'Tensor'"
                          % family.kind)
        if family.kind == "pointwise" and len(schema.rets) != 1:
            self.fail(declaration.one("pointwise").where, "a pointwise operator has one result")

    def details(self, family, schema):
        declaration = family.declaration
        if family.kind == "pointwise":
            self.operand_list(family, schema)
            rule = declaration.one("type")
            if rule and rule.rest not in RULES:
                self.fail(rule.where, "unknown type rule '%s'; known are: %s" % (rule.rest,
                                                                                " ".join(RULES)))
            family.rule = rule.rest if rule else "promote"
            layout = declaration.one("layout")
            if layout and layout.rest not in LAYOUTS:
                self.fail(layout.where, "unknown layout '%s'; known are: %s" % (layout.rest, " ".join(LAYOUTS)))
            family.layout = layout.rest if layout else "operands"
            dtypes = declaration.one("dtypes")
            if dtypes:
                match = DTYPES_LINE.match(dtypes.rest)
                if not match or match.group(1) not in DTYPES:
                    self.fail(dtypes.where, 'want `dtypes KIND "kernel"`; kinds are: %s' % " ".join(DTYPES))
                family.dtypes = (match.group(1), unquote(match.group(2), dtypes.where))
            check = declaration.one("check")
            family.check = self.name(check) if check else None
        dtype = declaration.one("dtype")
        if dtype and dtype.rest.split(" ")[0] in ("exact", "safe", "float"):
            self.dtype_of_out(family, dtype)
        elif dtype and dtype.rest == "cast" and family.kind == "shape" and "out" in family.variants:
            family.cast_out = True
        elif dtype and (dtype.rest != "written" or family.kind != "shape"
                        or not any(a.name == "dtype" and a.type.text(False) == "ScalarType?" for a in schema.args)):
            self.fail(dtype.where, "want `dtype written`, for a structured operator with `ScalarType? dtype`, or "
                                  "`dtype cast`, `dtype exact \"…\"` or `dtype safe \"…\"`, for one with an out variant")
        family.dtype_of_written = dtype is not None and dtype.rest == "written"
        node = declaration.one("node")
        if node and (not re.match(r"\w+Backward(\d+|s)$", node.rest) or not declaration.all("grad")):
            self.fail(node.where, "want `node NAMEBackward0`, of an operator with gradients, found '%s'" % node.rest)
        family.node = node.rest if node else None
        python = declaration.one("python")
        words = python.rest.split() if python else []
        family.renamed = dict(word.split("=") for word in words if re.match(r"\w+=\w+$", word))
        for word in words:
            if word not in ("numbers", "functional", "ops", "nn") and word.split("=")[0] not in [
                    arg.name for arg in schema.args if "=" in word]:
                self.fail(python.where, "want `python numbers`, `python functional`, `python ops`, `python nn` or "
                                        "`python ARGUMENT=NAME`, found '%s'" % word)
        family.numbers = "numbers" in words
        family.functional = "functional" in words
        family.ops_alone = "ops" in words
        family.in_nn = "nn" in words
        result = declaration.one("result")
        if result and (result.rest != "new" or family.kind != "composite"):
            self.fail(result.where, "want `result new`, of a composite operator, found '%s'" % result.rest)
        family.no_view = result is not None
        apart = declaration.one("apart")
        family.apart = apart.rest.split() if apart else []
        plain = [arg.name for arg in schema.args[1:] if arg.type.text(False) == "Tensor"]
        for name in family.apart:
            if name not in plain or "inplace" not in family.variants or family.kind not in ("shape", "composite"):
                self.fail(apart.where, "'apart' names tensors behind the first one, of a structured or composite operator "
                                       "with an in-place variant; found '%s'" % name)
        autograd = declaration.one("autograd")
        if autograd and autograd.rest not in ("default", "none"):
            self.fail(autograd.where, "unknown kind of autograd '%s'; known are: default none"
                      % autograd.rest)
        family.autograd = not autograd or autograd.rest == "default"
        autocast = declaration.one("autocast")
        if autocast and autocast.rest not in AUTOCAST:
            self.fail(autocast.where, "unknown kind of autocast '%s'; known are: %s" % (autocast.rest, " ".join(AUTOCAST)))
        if autocast and any(arg.type.write for arg in schema.args):
            self.fail(autocast.where, "'autocast' is about operators that write none of their arguments")
        family.autocast = autocast.rest if autocast else None
        names = declaration.one("names")
        family.names = self.name_rule(names) if names else None
        family.formulas = gradients.parse(declaration.all("grad"), schema)
        family.not_implemented = any(line.rest == gradients.NOT_IMPLEMENTED for line in declaration.all("grad"))
        family.inplace_formulas = gradients.parse(declaration.all("grad"), schema, inplace=True)
        if family.inplace_formulas and (not family.formulas or "inplace" not in family.variants):
            self.fail(family.inplace_formulas[0].where, "'grad inplace' wants the variant 'inplace' and other gradients")
        if family.formulas is not None and family.kind in ("composite", "alias"):
            self.fail(declaration.all("grad")[0].where, "a composite operator has the gradients of what it calls")
        family.jvp = tangents.parse(declaration.one("jvp"), family.formulas)
        lists = [arg for arg in schema.args if arg.type.is_tensor and arg.type.is_list]
        tensors = [arg for arg in schema.args if arg.type.is_tensor]
        if lists and len(tensors) > 1 and family.kind == "shape" and "out" in family.variants:
            self.fail(declaration.one("variants").where, "variant 'out' cannot be derived with a list of "
                      "tensors beside other tensors: declare it as an operator of its own")

    def name_rule(self, line):
        rule, *roles = line.rest.split()
        if rule not in NAMES:
            self.fail(line.where, "unknown rule '%s' for names of dimensions; known are: %s" % (rule, " ".join(NAMES)))
        for role in roles:
            if role not in ("function", "inplace", "out"):
                self.fail(line.where, "'names' is for the variants function, inplace and out, found '%s'" % role)
        return rule, roles

    def dtype_of_out(self, family, dtype):
        """`dtype exact "TEXT"`, `dtype safe "TEXT"`: which dtypes a given result may have."""
        match = OUT_DTYPE.match(dtype.rest)
        if not match or "out" not in family.variants or family.kind == "alias":
            self.fail(dtype.where, 'want `dtype exact "…"` or `dtype safe [TYPE] "…"`, for an operator with an out variant')
        if match.group(1) != "exact" and family.kind not in ("composite", "kernel"):
            self.fail(dtype.where, "`dtype safe` and `dtype float` are for operators that are no structure to fill")
        family.out_dtype = (match.group(1), unquote(match.group(3), dtype.where), match.group(2) or "INVALID")

    def operand_list(self, family, schema):
        line = family.declaration.one("operands")
        types = {arg.name: arg.type.text(False) for arg in schema.args}
        family.operands = line.rest.split() if line else [n for n, t in types.items() if t == "Tensor"]
        where = line.where if line else family.declaration.one("pointwise").where
        for name in family.operands:
            if name not in types:
                self.fail(where, "operand '%s' is no argument" % name)
            if types[name] not in ("Tensor", "Scalar"):
                self.fail(where, "operand '%s' is a %s; want Tensor or Scalar" % (name, types[name]))
        if not any(types[name] == "Tensor" for name in family.operands):
            self.fail(where, "a pointwise operator wants a Tensor among its operands")
        left = [n for n, t in types.items() if t.startswith("Tensor") and n not in family.operands]
        if left:
            self.fail(where, "argument '%s' is a tensor and no operand" % left[0])

    # ---- operators of a declaration ----

    def make_operators(self, family, schema):
        written = any(arg.type.write for arg in schema.args)
        role = "function"
        if written:
            role = "out" if any(a.type.write and a.kw_only for a in schema.args) else "inplace"
        made = [(schema, role)]
        if "inplace" in family.variants:
            line = family.declaration.one("inplace")
            overload = self.name(line) if line else schema.overload
            made.append((schemas.inplace(schema, overload), "inplace"))
        if "out" in family.variants:
            line = family.declaration.one("out")
            words = line.rest.split() if line else [schemas.out_overload(schema.overload)]
            unnamed = words[-1] == "-"
            overload, *names = words[:-1] if unnamed else words
            if len(names) not in (0, len(schema.rets)) or not all(map(NAME.match, [overload] + names)):
                self.fail(line.where, "'out' wants an overload name, or that and a name a result, found '%s'"
                          % line.rest)
            made.append((schemas.out(schema, overload, names, not unnamed), "out"))
        for variant, its_role in made:
            op = Operator(family, variant, its_role, family.where)
            names = op.names + [name for arg in op.args for name in arg.local_names]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice:
                self.fail(family.where, "%s has two C parameters '%s'" % (variant.full, twice))
            self.add_kernels(family, op)
            if family.names and (not family.names[1] or its_role in family.names[1]):
                op.name_rule = family.names[0]
            family.operators.append(op)

    def add_kernels(self, family, op):
        first = not family.operators
        if first:  # `kernel` lines are about the operator of the head
            op.kernels = list(family.hand_kernels)

        def generate(key, function):
            if op.has_kernel(key):
                where = next(k.where for k in op.kernels if k.key == key)
                if key in ("Autograd", "ADInplaceOrView"):
                    return  # written by hand instead
                self.fail(where, "the kernel for %s is generated" % key)
            op.kernels.append(Kernel(key, function + op.id, family.where))

        if family.kind in ("composite", "kernel") and not first and op.role == "out":
            generate("CompositeExplicitAutograd", "tni_gen_out_")
        elif family.kind in ("composite", "kernel") and not first and op.role == "inplace":
            generate("CompositeImplicitAutograd", "tni_gen_inplace_")
        elif family.kind in ("shape", "pointwise"):
            generate("CPU", "tni_gen_cpu_")
            generate("Meta", "tni_gen_meta_")
        elif family.kind == "view":
            generate("CompositeExplicitAutograd", "tni_gen_view_")
        elif family.kind in ("composite", "alias"):
            generate("CompositeImplicitAutograd", "tni_gen_composite_")
        if op.composite:
            return
        if family.autograd and op.has_tensors:
            generate("Autograd", "tni_autograd_")
        if op.views or op.written:
            fresh = [out for out in op.outs if out.is_list and not out.arg]
            if fresh and (op.written or not fresh[0].view_of) and not op.has_kernel("ADInplaceOrView"):
                self.fail(family.where, "the ADInplaceOrView kernel cannot be derived: write one "
                                        "(`kernel ADInplaceOrView FUNCTION`)")
            generate("ADInplaceOrView", "tni_adiov_")

    # ---- all declarations together ----

    def finish(self, files):
        self.name_in_c()
        for what, value in (("operator", lambda op: op.schema.full), ("identifier", lambda op: op.id),
                            ("C name", lambda op: "tn_" + op.c_name)):
            if self.unique(what, value):
                break
        self.same_signatures()
        self.same_as_alias()
        model = Model(files, self.families)
        if not self.problems.found:
            self.add_gradients(model)
            self.add_tangents(model)
        return model

    def add_gradients(self, model):
        """Compile the formulas, which may call any operator. An in-place operator that is declared on its own has
        the gradient of its twin."""
        by_c_name = {op.c_name: op for op in model.operators}
        by_name = {op.schema.full: op for op in model.operators}
        numbers = {}
        for family in self.families:
            if not family.formulas:
                continue
            for op, formulas in [(family.base, family.formulas)] + [
                    (op, family.inplace_formulas) for op in family.operators
                    if op.role == "inplace" and family.inplace_formulas]:
                name = family.base.schema.name.rstrip("_") or family.base.schema.name
                numbers[name] = numbers.get(name, -1) + 1
                try:
                    gradient = gradients.Gradient(op, formulas, numbers[name], by_c_name, model.hands,
                                                  family.node if op is family.base else None)
                except Problem as problem:
                    self.problems.add(problem.where, problem.message)
                    continue
                model.gradients.append(gradient)
                for served in family.operators if op is family.base else [op]:
                    # Booleans have no gradient; only what they are written over in place had one.
                    served.gradient = "none" if family.rule == "bool" and served.role != "inplace" else gradient
        for family in self.families:
            for op in family.operators:
                if family.formulas == []:
                    op.gradient = "none"
                elif op.gradient is None and op.role == "inplace":
                    twin = by_name.get(op.schema.full.replace("_.", ".") if op.schema.overload
                                       else op.schema.full.rstrip("_"))
                    if twin and [a.name for a in twin.schema.args] == [a.name for a in op.schema.args]:
                        op.gradient = twin.gradient

    def add_tangents(self, model):
        """What forward mode does with each operator. One that writes its first argument does what its twin does
        that does not write, and keeps what that gives; one that makes its argument another view has its tangent
        follow."""
        by_c_name = {op.c_name: op for op in model.operators}
        for family in self.families:
            if not family.jvp:
                continue
            try:
                made = tangents.Tangent(family.base, family.jvp, by_c_name, model.hands)
            except Problem as problem:
                self.problems.add(problem.where, problem.message)
                continue
            for op in family.operators:
                if not op.is_out and op.gradient not in (None, "none"):
                    op.tangent = made if op is family.base else tangents.Tangent.of_twin(op, made)
        by_gradient = {op.gradient: op for family in self.families for op in family.operators
                       if op.tangent and op is family.base}
        for family in self.families:
            for op in family.operators:
                twin = by_gradient.get(op.gradient)
                if twin and not op.tangent and op.role == "inplace":
                    op.tangent = tangents.Tangent.of_twin(op, twin.tangent)

    def name_in_c(self):
        first, taken = set(), constants.functions()
        for family in self.families:
            schema = family.base.schema
            line = family.declaration.one("c")
            stem = schema.name.rstrip("_") if schema.name.endswith("_") else schema.name
            tail = schema.name[len(stem):]
            if line:
                base = line.rest
            elif (schema.ns, schema.name) not in first:
                base = schema.name
            else:
                base = "%s_%s%s" % (stem, schema.overload.lower(), tail)
            if not NAME.match(base):
                self.problems.add(line.where, "'c' wants one name, found '%s'" % base)
            for op in family.operators:
                first.add((op.schema.ns, op.schema.name))
                suffix = "" if op is family.base else "_" if op.role == "inplace" else "_out"
                op.c_name = base + suffix
                for name in ("tn_", "tnx_", "tn_kernel_", "tn_unbox_"):
                    if name + op.c_name in taken:
                        self.problems.add(line.where if line else family.where,
                                          "%s is a function of %s: give another name with 'c'" % (
                                              name + op.c_name, taken[name + op.c_name]))

    def unique(self, what, value):
        """Report operators that share a value; true when some do."""
        seen, before = {}, len(self.problems.found)
        for family in self.families:
            for op in family.operators:
                other = seen.setdefault(value(op), op)
                if other is not op:
                    hint = "; give another with 'c'" if what == "C name" else ""
                    self.problems.add(family.where, "%s '%s' is already that of %s at %s:%d%s" % (
                        what, value(op), other.schema.full, *other.where, hint))
        return len(self.problems.found) > before

    def same_as_alias(self):
        """An alias takes and gives what the operator takes and gives that it stands for."""
        by_c_name = {op.c_name: op for family in self.families for op in family.operators}
        for family in self.families:
            for op in family.operators if family.kind == "alias" else []:
                where = family.declaration.one("alias").where
                target = by_c_name.get(family.alias_of(op))
                if not target:
                    self.problems.add(where, "'alias': there is no operator tn_%s" % family.alias_of(op))
                elif [t for t, _ in target.params + target.out_params] != [t for t, _ in op.params + op.out_params]:
                    self.problems.add(where, "'alias': tn_%s has other parameters" % family.alias_of(op))

    def same_signatures(self):
        """A function written by hand may serve several operators, with one signature."""
        seen = {}
        for family in self.families:
            for name, params, where in hand_functions(family):
                types = [ctype for ctype, _ in params]
                other = seen.setdefault(name, (types, where))
                if other[0] != types:
                    self.problems.add(where, "%s has another signature at %s:%d" % (name, *other[1]))


def result_params(family):
    """Results as existing tensors, which computations fill."""
    names = [out.name for out in family.base.outs]
    return [("tn_tensor *", name) for name in names]


def rest_params(family):
    """Pointwise: parameters of arguments that are no operands."""
    return [p for arg in family.base.args if arg.args[0].name not in family.operands for p in arg.params]


def hand_functions(family):
    """(name, parameters, where) of each function that somebody writes for a declaration."""
    base, where = family.base, family.where
    geometry = [("tni_geometry *", "g")]
    if family.kind == "shape":
        yield "tni_shape_" + family.fn, geometry + base.params, where
        yield "tni_cpu_" + family.cpu, base.params + result_params(family), where
    elif family.kind == "pointwise":
        yield "tni_cpu_" + family.fn, [("tni_iter *", "it")] + rest_params(family), where
        if family.check:
            yield "tni_check_" + family.check, base.params, where
    elif family.kind == "view":
        yield "tni_view_" + family.fn, geometry + base.params, where
    elif family.kind == "composite":
        yield "tni_composite_" + family.fn, base.params + base.out_params, where
    for kernel in family.hand_kernels:
        yield kernel.function, [("tn_call *", "call")] + base.params + base.out_params, kernel.where


class Model:
    def __init__(self, files, families):
        self.files, self.families = files, families
        self.gradients = []
        self.hands = {}  # formulas written by hand: name: (kind, types, parameters, where)

    @property
    def operators(self):
        return [op for family in self.families for op in family.operators]

    def hand_functions(self, prefix):
        """(name, parameters) of the functions with a prefix, each once, in order."""
        seen = {}
        for family in self.families:
            for name, params, _ in hand_functions(family):
                if name.startswith(prefix):
                    seen.setdefault(name, params)
        return list(seen.items())

    def families_of(self, file):
        return [family for family in self.families if family.file == file.label]


def build(files, problems):
    builder = Builder(problems)
    for file in files:
        for declaration in file.declarations:
            builder.add(declaration)
    return builder.finish(files)
