# SPDX-License-Identifier: MIT
"""Schema types in C: parameters of functions, and how each is checked, counted in keys, boxed, unboxed.

One table, KINDS, holds all of it; the functions it names are in src/dispatch/box.h.
"""

import re
from dataclasses import dataclass

import schema as schemas

# Names that a parameter must not have: words of C and C++, and what generated functions call their own.
RESERVED = set("""alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const
constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
or_eq private protected public register reinterpret_cast restrict return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
args attr b call caller edges fn g inputs it kept kernel keys made needed node operands opts out_opts rets saved
status""".split())


@dataclass(frozen=True)
class Kind:
    params: tuple  # (C type, suffix of the name)
    box: str  # expression that makes a tn_value; "" for options, which make four
    unbox: str  # call that fills the parameters from args[i]
    keys: str = ""  # expression of the keys it brings
    check: tuple = None  # (condition that refuses, call that fails), or POINTER
    locals: tuple = ()  # more variables that unboxing needs
    box_locals: tuple = ()  # and boxing, which then may run out of memory and give None


def simple(ctype, box, unbox, **more):
    return Kind(((ctype, ""),), box, "tni_unbox_%s(call, &args[{i}], {i}, &{n})" % unbox, **more)


def listing(ctype, box, unbox, check="tni_bad_list", room="", **more):
    """A list. What is refused, a negative count or elements at NULL, CHECK finds."""
    extra = "%s, " % room if room else ""
    check = check and (check + "({n}, {n}_n)", "tni_bad_list_argument(op, {i}, {n}, {n}_n)")
    return Kind(((ctype, ""), ("int64_t", "_n")), box,
                "tni_unbox_%s(call, &args[{i}], {i}, %s&{n}, &{n}_n)" % (unbox, extra),
                check=check, **more)


def numbered(ctype, unbox, name):
    """A number that stands for something: one that does not is refused."""
    return simple(ctype, "tni_box_number({n})", unbox,
                  check=("tni_bad_%s({n})" % name, "tni_bad_%s_argument(op, {i}, (int)({n}))" % name))


POINTER = "pointer"  # refused when NULL, together with the other pointers of a call
ROOM = ("int64_t {n}_room[{size}]",)
LIST_ROOM = ("TNI_LIST_ROOM {n}_room = {{NULL, 0, {{0}}}}",)
KINDS = {
    # base, list, optional (of the whole)
    ("Tensor", False, False): simple("tn_tensor *", "tni_box_tensor({n})", "tensor", keys="tni_keys({n})",
                                     check=POINTER),
    ("Tensor", False, True): simple("tn_tensor *", "tni_box_tensor({n})", "opt_tensor",
                                    keys="({n} ? tni_keys({n}) : 0)"),
    ("int", False, False): simple("int64_t", "tn_value_int({n})", "int"),
    ("int", False, True): simple("tn_opt_int", "tni_box_opt_int({n})", "opt_int"),
    ("int", True, False): listing("const int64_t *", "tn_value_ints({n}, {n}_n)", "ints", room="NULL, 0"),
    ("int", True, True): listing("const int64_t *", "tni_box_opt_ints({n}, {n}_n)", "opt_ints", None,
                                 room="NULL, 0"),
    ("float", False, False): simple("double", "tn_value_float({n})", "float"),
    ("float", False, True): simple("tn_opt_float", "tni_box_opt_float({n})", "opt_float"),
    ("float", True, False): listing("const double *", "tn_value_floats({n}, {n}_n)", "floats"),
    ("float", True, True): listing("const double *", "tni_box_opt_floats({n}, {n}_n)", "opt_floats", None),
    ("bool", False, False): simple("bool", "tn_value_bool({n})", "bool"),
    ("bool", False, True): simple("tn_opt_bool", "tni_box_opt_bool({n})", "opt_bool"),
    ("bool", True, False): listing("const bool *", "tn_value_bools({n}, {n}_n)", "bools"),
    ("Scalar", False, False): simple("tn_scalar", "tn_value_scalar({n})", "scalar",
                                     check=("tni_bad_scalar(&{n})", "tni_bad_scalar_argument(op, {i}, &{n})")),
    ("Scalar", False, True): Kind((("const tn_scalar *", ""),), "tni_box_opt_scalar({n})",
                                  "tni_unbox_opt_scalar(call, &args[{i}], {i}, &{n}_value, &{n})",
                                  locals=("tn_scalar {n}_value",),
                                  check=("tni_bad_scalar({n})", "tni_bad_scalar_argument(op, {i}, {n})")),
    ("Scalar", True, False): listing("const tn_scalar *", "tni_box_scalars({n}, {n}_n, &{n}_room)", "scalars",
                                     room="&{n}_room", locals=LIST_ROOM, box_locals=LIST_ROOM),
    ("str", False, False): simple("const char *", "tni_box_string({n})", "string",
                                  check=("!{n}", "tni_null_string_argument(op, {i})")),
    ("str", False, True): simple("const char *", "tni_box_string({n})", "opt_string"),
    ("ScalarType", False, False): numbered("tn_dtype", "dtype", "dtype"),
    ("ScalarType", False, True): numbered("tn_dtype", "opt_dtype", "dtype"),
    ("Layout", False, False): simple("tn_layout", "tni_box_number({n})", "layout"),
    ("Layout", False, True): simple("tn_layout", "tni_box_number({n})", "opt_layout"),
    ("MemoryFormat", False, False): numbered("tn_memory_format", "format", "format"),
    ("MemoryFormat", False, True): numbered("tn_memory_format", "opt_format", "format"),
    ("Device", False, False): simple("tn_device", "tni_box_device({n})", "device"),
    ("Device", False, True): simple("tn_device", "tni_box_device({n})", "opt_device"),
    ("Generator", False, True): simple("tn_generator *", "tni_box_generator({n})", "opt_generator",
                                       keys="tni_generator_keys({n})"),
    ("Stream", False, False): simple("void *", "tni_box_stream({n})", "stream"),
    ("Storage", False, False): simple("tn_storage *", "tni_box_storage({n})", "storage",
                                      check=("!{n}", "tni_null_storage_argument(op, {i})")),
}
SIZED_INTS = {  # int[k]: one int stands for k of them
    False: listing("const int64_t *", "tn_value_ints({n}, {n}_n)", "ints", room="{n}_room, {size}",
                   locals=ROOM),
    True: listing("const int64_t *", "tni_box_opt_ints({n}, {n}_n)", "opt_ints", None,
                  room="{n}_room, {size}", locals=ROOM),
}
TENSORS = {  # Tensor[]: no element is NULL; Tensor?[]: NULL is None
    False: listing("tn_tensor *const *", "tn_value_tensors({n}, {n}_n)", "tensors", "tni_bad_tensor_list",
                   keys="tni_keys_of_list({n}, {n}_n)"),
    True: listing("tn_tensor *const *", "tn_value_tensors({n}, {n}_n)", "opt_tensors",
                  keys="tni_keys_of_list({n}, {n}_n)"),
}
OPTIONS = Kind((("const tn_tensor_opts *", ""),), "",
               "tni_unbox_opts(call, &args[{i}], {i}, &{n}_value, &{n})", locals=("tn_tensor_opts {n}_value",),
               check=("tni_bad_opts({n})", "tni_bad_opts_argument(op, {n})"))

# Results: the C type behind the pointer, how a boxed result is made of it, how it is taken out of one.
RESULTS = {
    ("Tensor", False, False): ("tn_tensor *", "tn_value_take_tensor({n})", "tni_take_tensor"),
    ("Tensor", False, True): ("tn_tensor *", "tn_value_take_tensor({n})", "tni_take_tensor"),
    ("Scalar", False, False): ("tn_scalar", "tn_value_scalar({n})", "tni_take_scalar"),
    ("int", False, False): ("int64_t", "tn_value_int({n})", "tni_take_int"),
    ("bool", False, False): ("bool", "tn_value_bool({n})", "tni_take_bool"),
    ("float", False, False): ("double", "tn_value_float({n})", "tni_take_float"),
    ("ScalarType", False, False): ("tn_dtype", "tni_box_number({n})", "tni_take_dtype"),
}
TENSOR_LIST = ("tn_tensor **", "tn_value_take_tensors({n}, {n}_n)", "tni_take_tensors")


def declare(ctype, name):
    return ctype + name if ctype.endswith("*") else ctype + " " + name


def base_of(kind):
    return {"SymInt": "int", "SymBool": "bool"}.get(kind.base, kind.base)


class CArg:
    """One parameter group of a C function: an argument of the schema, or the four of tn_tensor_opts."""

    def __init__(self, kind, name, args, index):
        self.kind, self.name, self.args, self.index = kind, name, args, index
        self.type = args[0].type
        self.is_options = kind is OPTIONS
        self.is_tensor = not self.is_options and self.type.is_tensor
        self.write = self.is_tensor and self.type.write

    def fill(self, template):
        return template.format(n=self.name, i=self.index, s=self.args[0].name, size=self.type.size)

    @property
    def params(self):
        return [(ctype, self.name + suffix) for ctype, suffix in self.kind.params]

    @property
    def names(self):
        return [name for _, name in self.params]

    @property
    def local_names(self):
        return [re.search(r"(\w+)(?:\[\d+\])?(?: = .*)?$", self.fill(local)).group(1) for local in self.kind.locals]


class COut:
    """One result. `arg` is the written argument that is returned; then there is no parameter."""

    def __init__(self, ret, name, arg, view_of):
        self.ret, self.name, self.arg, self.view_of = ret, name, arg, view_of
        kind = ret.type
        self.is_list = kind.is_list
        key = (base_of(kind), False, kind.optional)
        self.ctype, self.box, self.take = TENSOR_LIST if self.is_list else RESULTS[key]

    @property
    def params(self):
        if self.arg:
            return []
        params = [(self.ctype + ("*" if self.ctype.endswith("*") else " *"), self.name)]
        return params + ([("int64_t *", self.name + "_n")] if self.is_list else [])

    @property
    def names(self):
        return [name for _, name in self.params]


def kind_of(kind):
    """The row of an argument type, or None when it has no C type."""
    base = base_of(kind)
    if base == "Tensor" and kind.is_list:
        return None if kind.optional else TENSORS[kind.element_optional]
    if base == "int" and kind.is_list and kind.size:
        return SIZED_INTS[kind.optional]
    return KINDS.get((base, kind.is_list, kind.optional))


def result_has_type(kind):
    if kind.is_list:
        return kind.base == "Tensor" and not kind.optional and not kind.element_optional
    return (base_of(kind), False, kind.optional) in RESULTS


def c_name(name):
    return name + "_" if name in RESERVED or name.startswith("made_") else name


def arguments(schema):
    """CArgs of a schema whose types were checked."""
    found, i = [], 0
    while i < len(schema.args):
        if schemas.options_at(schema.args, i):
            found.append(CArg(OPTIONS, "opts", schema.args[i:i + 4], i))
            i += 4
            continue
        arg = schema.args[i]
        found.append(CArg(kind_of(arg.type), c_name(arg.name), (arg,), i))
        i += 1
    return found


def results(schema, cargs):
    """COuts of a schema whose types were checked."""
    found = []
    for i, ret in enumerate(schema.rets):
        alias = ret.type.alias
        partner = None
        if alias:
            partner = next(a for a in cargs if a.is_tensor and a.type.alias
                           and a.type.alias.before == alias.after)
        name = "out" if len(schema.rets) == 1 else c_name(ret.name) or "out%d" % i
        found.append(COut(ret, name, partner if alias and alias.write else None,
                          partner if alias and not alias.write else None))
    return found
