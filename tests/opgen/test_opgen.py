#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tools/opgen promises: its outputs for four operators are pinned, what it writes compiles without a
warning, and every mistake in a declaration is reported with file and line.

  test_opgen.py [--update] [--cc gcc] [--cxx g++]     --update rewrites tests/opgen/golden
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GOLDEN = os.path.join(HERE, "golden")
sys.path.insert(0, os.path.join(ROOT, "tools", "opgen"))
import constants  # noqa: E402  (the generator's own folder)
import opgen  # noqa: E402
import schema  # noqa: E402

CC, CXX = "gcc", "g++"
WARNINGS = ("-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla "
            "-Wcast-qual -Wwrite-strings -Wpointer-arith -Wdouble-promotion -Werror").split()


class Folder(unittest.TestCase):
    """A temporary folder with an `ops` in it."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.ops = os.path.join(self.root, "ops")
        self.out = os.path.join(self.root, "gen")
        os.mkdir(self.ops)

    def declare(self, text, name="x.op"):
        with open(os.path.join(self.ops, name), "w", encoding="utf-8") as file:
            file.write(text)

    def texts(self):
        texts, errors = opgen.generate(self.ops)
        self.assertEqual(errors, [])
        return texts

    def errors(self):
        texts, errors = opgen.generate(self.ops)
        self.assertTrue(texts is None or not errors)
        return errors

    def run_opgen(self, *args):
        return subprocess.run([sys.executable, "-B", opgen.__file__, "--ops", self.ops] + list(args),
                              capture_output=True, text=True)


class Golden(Folder):
    def test_outputs_for_four_operators_are_as_pinned(self):
        shutil.copy(os.path.join(HERE, "ops", "basic.op"), self.ops)
        texts = self.texts()
        for name, text in texts.items():
            with open(os.path.join(GOLDEN, name.replace("/", ".") + ".txt"), encoding="utf-8") as file:
                self.assertEqual(text, file.read(), "%s; if that is meant: test_opgen.py --update" % name)
        self.assertEqual(len(os.listdir(GOLDEN)), len(texts))


def update_golden():
    with tempfile.TemporaryDirectory() as root:
        ops = os.path.join(root, "ops")
        os.mkdir(ops)
        shutil.copy(os.path.join(HERE, "ops", "basic.op"), ops)
        texts, errors = opgen.generate(ops)
    if errors:
        sys.exit("\n".join(errors))
    os.makedirs(GOLDEN, exist_ok=True)
    for name in os.listdir(GOLDEN):
        os.remove(os.path.join(GOLDEN, name))
    for name, text in texts.items():
        opgen.write(os.path.join(GOLDEN, name.replace("/", ".") + ".txt"), text)


class Compiles(Folder):
    """Generated C under the project's warnings; -O2, because some warnings need the optimiser."""

    def compile_all(self, ops):
        texts, errors = opgen.generate(ops)
        self.assertEqual(errors, [])
        for name, text in texts.items():
            opgen.write(os.path.join(self.out, name), text)
        folders = [os.path.join(ROOT, "include"), os.path.join(ROOT, "src"), self.root,
                   os.path.join(self.out, "include")]
        flags = [flag for folder in folders for flag in ("-I", folder)]
        python = sysconfig.get_paths()["include"]
        if os.path.exists(os.path.join(python, "Python.h")):
            flags += ["-I", os.path.join(ROOT, "python", "src"), "-isystem", python]
        else:
            print("not compiled, since there are no headers of Python: python_table.c")
            texts.pop("python_table.c")
        for name in sorted(texts):
            if name.endswith(".c"):
                self.compile([CC, "-std=gnu17", "-O2", "-c", "-o", os.devnull, "-DTN_BUILDING",
                              "-DTN_STRESS=0"] + WARNINGS + flags, os.path.join(self.out, name))
        for header in ("ops.h", "kernels.h"):
            path = os.path.join(self.out, "include", "tenon", header)
            common = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only"]
            self.compile([CC, "-std=c11", "-x", "c"] + common + flags, path)
            self.compile([CXX, "-std=c++17", "-x", "c++"] + common + flags, path)

    def compile(self, command, path):
        result = subprocess.run(command + [path], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr[:2000])

    def test_every_type_and_kind_compiles_without_a_warning(self):
        self.compile_all(os.path.join(HERE, "ops"))

    def test_arguments_may_be_called_like_the_variables_of_generated_code(self):
        names = ("args", "attr", "b", "call", "caller", "edges", "kept", "needed", "node", "fn", "g", "inputs", "it", "kernel", "keys", "made", "operands",
                 "opts", "out_opts", "rets", "saved", "status", "OP", "value", "n", "made_out", "i")
        tensors = ", ".join("Tensor " + name for name in names)
        self.declare("op f(%s, Scalar? room, int[2] x) -> Tensor {\n  variants function inplace out\n"
                     "  shape f\n  cpu f\n}\n" % tensors
                     + "op p(%s, int default) -> Tensor {\n  variants function inplace out\n"
                     "  pointwise p\n  check p\n}\n" % tensors
                     + "op m(%s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                     "bool? pin_memory=None) -> (Tensor values, Tensor indices) {\n  variants function out\n"
                     "  shape m\n  cpu m\n}\n" % tensors
                     + "op v(Tensor(a) self, %s) -> Tensor(a)[] {\n  kernel CPU v\n}\n" % tensors
                     + "op w(Tensor(a) self, %s) -> Tensor(a) {\n  variants function inplace\n  view w\n}\n"
                     % tensors)
        self.compile_all(self.ops)

    def test_a_folder_without_declarations_compiles(self):
        self.compile_all(self.ops)


class Running(Folder):
    def test_lists_exactly_what_it_writes(self):
        shutil.copy(os.path.join(HERE, "ops", "basic.op"), self.ops)
        listed = self.run_opgen("--list-outputs").stdout.split()
        self.assertEqual(self.run_opgen("--out", self.out).returncode, 0)
        written = [os.path.relpath(os.path.join(path, name), self.out)
                   for path, _, names in os.walk(self.out) for name in names]
        pages = {"reference/%s.md" % name for name in ("mm", "add", "t", "matmul")}
        self.assertEqual(sorted(set(listed) | pages), sorted(written))

    def test_lists_outputs_of_declarations_that_have_mistakes(self):
        self.declare("op {\n")
        self.assertIn("reference/README.md", self.run_opgen("--list-outputs").stdout.split())

    def test_a_file_whose_text_is_the_same_keeps_its_time(self):
        shutil.copy(os.path.join(HERE, "ops", "basic.op"), self.ops)
        self.run_opgen("--out", self.out)
        path = os.path.join(self.out, "calls.c")
        os.utime(path, (1, 1))
        self.run_opgen("--out", self.out)
        self.assertEqual(os.stat(path).st_mtime, 1)

    def test_a_mistake_gives_status_1_and_writes_nothing(self):
        self.declare("op f(Tensor x) -> Tensor {\n}\n")
        result = self.run_opgen("--out", self.out)
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stderr.startswith("ops/x.op:1: error: "))
        self.assertFalse(os.path.exists(self.out))

    def test_check_writes_nothing(self):
        shutil.copy(os.path.join(HERE, "ops", "basic.op"), self.ops)
        self.assertEqual(self.run_opgen("--check").returncode, 0)
        self.assertEqual(os.listdir(self.root), ["ops"])

    def test_all_mistakes_of_a_run_are_listed_in_order(self):
        self.declare("op f(Tenso x) -> Tensor {\n  view f\n}\nop g(Tensor x) -> Tensor {\n  colour red\n}\n",
                     "b.op")
        self.declare("op h(Tensor x) -> Tensor {\n}\n", "a.op")
        self.assertEqual([line.split(": error")[0] for line in self.errors()],
                         ["ops/a.op:1", "ops/b.op:1", "ops/b.op:5"])

    def test_the_declarations_of_this_tree_are_right(self):
        _, errors = opgen.generate(os.path.join(ROOT, "ops"))
        self.assertEqual(errors, [])


class Meaning(Folder):
    """What one declaration becomes, beyond the golden files."""

    def operators(self):
        return {row["op"]: row for row in json.loads(self.texts()["args.json"])}

    def test_the_first_overload_has_the_plain_c_name(self):
        self.declare("op f.A(Tensor self) -> Tensor {\n  kernel CPU a\n}\n"
                     "op f.B(Tensor self, int n) -> Tensor {\n  kernel CPU b\n}\n"
                     "op f.C(Tensor self, bool n) -> Tensor {\n  c other\n  kernel CPU c\n}\n"
                     "op g_.A(Tensor(a!) self) -> Tensor(a!) {\n  kernel CPU g\n}\n"
                     "op g_.B(Tensor(a!) self, int n) -> Tensor(a!) {\n  kernel CPU h\n}\n"
                     "op h.A(Tensor(a) self) -> Tensor(a) {\n  variants function inplace\n  view h\n}\n"
                     "op h_.B(Tensor(a!) self, int n) -> Tensor(a!) {\n  kernel CPU i\n}\n")
        names = {op: row["c"] for op, row in self.operators().items()}
        self.assertEqual(names, {"aten::f.A": "tn_f", "aten::f.B": "tn_f_b", "aten::f.C": "tn_other",
                                 "aten::g_.A": "tn_g_", "aten::g_.B": "tn_g_b_", "aten::h.A": "tn_h",
                                 "aten::h_.A": "tn_h_", "aten::h_.B": "tn_h_b_"})

    def test_variants_have_torchs_names_and_schemas(self):
        self.declare("op f(Tensor self, *, int n=1) -> Tensor {\n  variants function inplace out\n"
                     "  shape f\n  cpu f\n}\n"
                     "op g.dim(Tensor self) -> (Tensor values, Tensor) {\n  variants function out\n"
                     "  shape g\n  cpu g\n}\n"
                     "op h.x(Tensor self) -> Tensor {\n  variants function out\n  out special\n"
                     "  shape h\n  cpu h\n}\n"
                     "op i.dim(Tensor self) -> (Tensor values, Tensor places) {\n  variants function out\n"
                     "  out x max most\n  shape g\n  cpu i\n}\n"
                     "op j(Tensor self) -> (Tensor a, Tensor b) {\n  variants function out\n  out x a b -\n"
                     "  shape g\n  cpu j\n}\n")
        schemas = {row["schema"] for row in self.operators().values()}
        for text in ("aten::f_(Tensor(a!) self, *, int n=1) -> Tensor(a!)",
                     "aten::f.out(Tensor self, *, int n=1, Tensor(a!) out) -> Tensor(a!)",
                     "aten::g.dim_out(Tensor self, *, Tensor(a!) values, Tensor(b!) out1) "
                     "-> (Tensor(a!) values, Tensor(b!))",
                     "aten::h.special(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
                     "aten::i.x(Tensor self, *, Tensor(a!) max, Tensor(b!) most) "
                     "-> (Tensor(a!) values, Tensor(b!) places)",
                     "aten::j.x(Tensor self, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))"):
            self.assertIn(text, schemas)

    def test_an_out_variant_takes_its_options_from_out(self):
        self.declare("op f(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                     "bool? pin_memory=None) -> Tensor {\n  variants function out\n  shape f\n  cpu f\n"
                     "  kernel BackendSelect f\n}\n")
        self.assertIn("aten::f.out(int n, *, Tensor(a!) out) -> Tensor(a!)",
                      {row["schema"] for row in self.operators().values()})
        kernel = self.texts()["meta_kernels.c"].split("tni_gen_meta_f_out(")[1]
        self.assertIn("tn_opts(tn_tensor_dtype(out), tn_tensor_device(out))", kernel)

    def test_a_written_tensor_may_say_the_dtype(self):
        self.declare("op f(Tensor self, *, ScalarType? dtype=None) -> Tensor {\n  variants function inplace out\n"
                     "  dtype written\n  shape f\n  cpu f\n}\n")
        text = self.texts()["cpu_kernels.c"]
        for name, written in (("f_", "self"), ("f_out", "out")):
            self.assertIn("dtype = tn_tensor_dtype(%s);" % written, text.split("tni_gen_cpu_%s(" % name)[1].split("\n}")[0])
        self.assertNotIn("tn_tensor_dtype", text.split("tni_gen_cpu_f(")[1].split("\n}")[0])

    def test_a_given_result_must_have_the_dtype(self):
        self.declare('op f(Tensor self) -> Tensor {\n  variants function inplace out\n  dtype exact "no %g"\n  shape f\n  cpu f\n}\n'
                     'op g(Tensor self) -> Tensor {\n  variants function out\n  dtype safe "no %g"\n  composite g\n}\n'
                     'op h(Tensor self) -> Tensor {\n  variants function out\n  dtype exact "no %g"\n  pointwise h\n}\n')
        texts = self.texts()
        text = texts["cpu_kernels.c"]
        self.assertIn('tni_check_exact(g[0].dtype, out, "no %g")', text.split("tni_gen_cpu_f_out(")[1].split("\n}")[0])
        self.assertNotIn("tni_check", text.split("tni_gen_cpu_f_(")[1].split("\n}")[0])
        self.assertIn('TNI_PW_PROMOTE, out, "no %g")', text.split("tni_gen_cpu_h_out(")[1].split("\n}")[0])
        self.assertIn('tni_check_safe(TN_INVALID, tn_tensor_dtype(made), out, "no %g")', texts["composite_kernels.c"])

    def test_a_result_may_be_cast_to_what_is_given(self):
        self.declare("op f(Tensor self) -> Tensor {\n  variants function inplace out\n  dtype cast\n  shape f\n  cpu f\n}\n")
        text = self.texts()["cpu_kernels.c"]
        self.assertIn("tni_out_prepare_cast(", text.split("tni_gen_cpu_f_out(")[1].split("\n}")[0])
        self.assertNotIn("_cast(", text.split("tni_gen_cpu_f_(")[1].split("\n}")[0])

    def test_out_of_a_composite_is_its_result(self):
        self.declare("op f(Tensor self) -> Tensor {\n  variants function out\n  composite f\n}\n")
        text = self.texts()["composite_kernels.c"].split("tni_gen_out_f_out(")[1]
        self.assertIn("TN_TRY(tn_f(self, &made));", text)
        self.assertIn('return tni_out_take("f", made, out);', text)

    def test_in_place_of_a_composite_is_its_result(self):
        self.declare("op f(Tensor self, int n) -> Tensor {\n  variants method inplace\n  composite f\n}\n")
        text = self.texts()["composite_kernels.c"].split("tni_gen_inplace_f_(")[1]
        self.assertIn("TN_TRY(tn_f(old, n, &made));", text)
        self.assertIn("return tni_inplace_take(made, self);", text)

    def test_an_alias_calls_the_variants_of_the_other(self):
        self.declare("op f(Tensor self) -> Tensor {\n  variants function inplace out\n  composite f\n}\n"
                     "op g(Tensor self) -> Tensor {\n  variants function inplace out\n  alias f\n}\n")
        text = self.texts()["composite_kernels.c"]
        for kernel, called in (("g", "tn_f(self, out)"), ("g_", "tn_f_(self)"), ("g_out", "tn_f_out(self, out)")):
            self.assertIn("return %s;" % called, text.split("tni_gen_composite_%s(" % kernel)[1].split("\n}")[0])

    def test_views_and_writes_leave_adinplaceorview_to_run(self):
        shutil.copy(os.path.join(HERE, "ops", "basic.op"), self.ops)
        text = self.texts()["autograd_kernels.c"]
        guards = {name: text.split("tn_status tni_autograd_%s(" % name)[1].split("tni_exclude(")[1].split(";")[0]
                  for name in ("mm", "mm_out", "t", "t_", "add__Tensor")}
        self.assertIn("TNI_BELOW_ADINPLACE_OR_VIEW", guards.pop("mm"))
        for name, guard in guards.items():
            self.assertIn("TNI_BELOW_AUTOGRAD)", guard, name)

    def test_a_composite_has_one_kernel(self):
        shutil.copy(os.path.join(HERE, "ops", "basic.op"), self.ops)
        rows = [row for row in self.texts()["register.c"].split("{.op = ") if row.startswith("TNI_OP_matmul,")]
        self.assertEqual(len(rows), 1)
        self.assertIn(".key = TN_KEY_COMPOSITE_IMPLICIT,", rows[0])

    def test_a_kernel_by_hand_replaces_the_generated_autograd_kernel(self):
        self.declare("op f_(Tensor(a!) self) -> Tensor(a!) {\n  kernel CPU f\n  kernel Autograd f_autograd\n"
                     "  kernel ADInplaceOrView f_below\n}\n")
        texts = self.texts()
        self.assertNotIn("tni_autograd_f_", texts["autograd_kernels.c"])
        self.assertNotIn("tni_adiov_f_", texts["autograd_kernels.c"])
        self.assertIn("(tn_typed_fn)tni_kernel_f_below", texts["register.c"])

    def test_an_argument_may_require_grad_and_have_an_undefined_gradient(self):
        self.declare("op f(Tensor self, Tensor other) -> Tensor {\n  shape f\n  cpu f\n  grad self: grad\n"
                     "  grad other: None\n}\n")
        texts, errors = opgen.generate(self.ops)
        self.assertEqual(errors, [])
        self.assertIn("b->results[0] = b->grads[0];", texts["gradients.c"])
        self.assertNotIn("b->results[1]", texts["gradients.c"])
        self.assertNotIn("tni_refuse_gradient", texts["autograd_kernels.c"])

    def test_a_term_of_a_tangent_is_computed_when_its_tangent_is_there(self):
        self.declare("op f(Tensor self, Tensor other, int n) -> Tensor {\n  shape f\n  cpu f\n  grad self: grad\n"
                     "  grad other: grad\n  jvp g(self_t, n) - g(other_t, n) + h(self_t, other_t)\n}\n")
        texts, errors = opgen.generate(self.ops)
        self.assertEqual(errors, [])
        text = texts["forward_rules.c"].split("jvp_f(")[1]
        for piece in ("if (f->tangents[0])\n        sum = tni_jvp_sum(sum, tni_grad_g(f->tangents[0], f->args[2].u.i));",
                      "tnx_neg(tni_grad_g(f->tangents[1], f->args[2].u.i))", "if (f->tangents[0] || f->tangents[1])",
                      "tni_grad_h(tni_jvp_tangent(f, 0), tni_jvp_tangent(f, 1))"):
            self.assertIn(piece, text)
        self.assertIn("{TNI_OP_f, 0, TNI_JVP_FORMULA, 0x3u, 0x0u, jvp_f}", text)

    def test_what_writes_has_the_tangent_of_its_twin(self):
        self.declare("op f(Tensor self) -> Tensor {\n  variants function inplace out\n  shape f\n  cpu f\n"
                     "  grad self: grad\n  jvp auto_linear\n}\n")
        text = self.texts()["forward_rules.c"]
        self.assertIn("{TNI_OP_f, 0, TNI_JVP_LINEAR, 0x1u, 0x0u, NULL}", text)
        self.assertIn("{TNI_OP_f_, TNI_OP_f, TNI_JVP_WRITTEN, 0x1u, 0x0u, NULL}", text)
        self.assertNotIn("TNI_OP_f_out", text)

    def test_booleans_over_a_tensor_in_place_are_recorded_alone(self):
        self.declare("op f(Tensor self) -> Tensor {\n  variants function inplace\n  pointwise f\n  type bool\n"
                     "  grad self: grad\n}\n")
        texts, errors = opgen.generate(self.ops)
        self.assertEqual(errors, [])
        self.assertIn("record_f_(", texts["autograd_kernels.c"])
        self.assertNotIn("record_f(", texts["autograd_kernels.c"])

    def test_a_node_may_have_a_name_of_its_own(self):
        self.declare("op f_2d(Tensor self) -> Tensor {\n  shape f\n  cpu f\n  grad self: grad * self\n}\n"
                     "op g(Tensor self) -> Tensor {\n  shape f\n  cpu f\n  node OtherBackward3\n  grad self: grad * self\n}\n"
                     "op mul(Tensor self, Tensor other) -> Tensor {\n  shape g\n  cpu g\n}\n")
        text = self.texts()["gradients.c"]
        self.assertIn("tni_class_f_2d = { \"F2DBackward0\"", text)
        self.assertIn("tni_class_g = { \"OtherBackward3\"", text)

    def test_a_number_may_stand_for_a_tensor_in_python(self):
        self.declare("op f.Tensor(Tensor self, Tensor other) -> Tensor {\n  shape f\n  cpu f\n}\n"
                     "op f.Scalar(Tensor self, Scalar other) -> Tensor {\n  python numbers\n  shape g\n  cpu g\n}\n")
        text = self.texts()["python_table.c"]
        self.assertIn("{\"aten::f.Scalar\"", text)
        self.assertIn("TNPY_SIG_HIDDEN", text)
        self.assertLess(text.index("{\"aten::f.Tensor\""), text.index("{\"aten::f.Scalar\""))

    def test_an_argument_may_have_another_name_in_python(self):
        self.declare("op f(Tensor self, Tensor src) -> Tensor {\n  variants function method\n  python src=other\n  shape f\n  cpu f\n}\n")
        text = self.texts()["python_table.c"]
        for name in ("\"other\"", "\"src\"", "f(input, other) -> Tensor"):
            self.assertIn(name, text)
        self.assertEqual(text.count("{\"aten::f\""), 4)  # of the function and of the method, with both names
        self.assertEqual(text.count("TNPY_SIG_HIDDEN"), 2)

    def test_the_in_place_variant_may_have_gradients_of_its_own(self):
        self.declare("op f(Tensor self) -> Tensor {\n  variants function inplace\n  shape f\n  cpu f\n"
                     "  grad self: grad * self\n  grad inplace self: grad * result\n}\n"
                     "op mul(Tensor self, Tensor other) -> Tensor {\n  shape g\n  cpu g\n}\n")
        texts = self.texts()
        self.assertIn("const tni_node_class tni_class_f = { \"FBackward0\"", texts["gradients.c"])
        self.assertIn("const tni_node_class tni_class_f_ = { \"FBackward1\"", texts["gradients.c"])
        self.assertIn("static const uint8_t from_f_[] = {TNI_SAVED_RESULT};", texts["gradients.c"])

    def test_an_operator_without_tensors_has_no_autograd_kernel(self):
        self.declare("op f(int n) -> Tensor {\n  kernel CompositeExplicitAutograd f\n}\n")
        self.assertNotIn("tni_autograd_f", self.texts()["register.c"])

    def test_a_formula_may_keep_a_list_of_tensors(self):
        self.declare("op f(Tensor self, Tensor?[] indices) -> Tensor {\n  kernel CPU f\n  grad self: f(grad, indices)\n}\n")
        texts = self.texts()
        self.assertIn("TN_TRY(tni_keep_tensors(&kept->indices, indices, indices_n));", texts["autograd_kernels.c"])
        self.assertIn("tni_saved_list indices;", texts["gradients.h"])
        self.assertIn("int64_t indices_n = tni_unpack_list(b, &kept->indices, indices);", texts["gradients.c"])
        self.assertIn("tnx_f(b->grads[0], indices, indices_n)", texts["gradients.c"])

    def test_a_formula_may_keep_the_shapes_of_a_list_alone(self):
        self.declare("op f(Tensor[] tensors, int dim) -> Tensor {\n  kernel CPU f\n"
                     "  grad tensors: pieces(grad, tensors.shapes, dim)\n}\n")
        texts = self.texts()
        self.assertIn("TN_TRY(tni_keep_shapes(&kept->tensors_shapes, tensors, tensors_n));", texts["autograd_kernels.c"])
        self.assertNotIn("tni_saved", texts["gradients.h"])
        self.assertIn("tni_grad_pieces(b->grads[0], kept->tensors_shapes.v, kept->tensors_shapes.n, kept->dim, b, 0);",
                      texts["gradients.c"])

    def test_conj_in_a_formula_is_no_call_for_real_tensors(self):
        self.declare("op f(Tensor self) -> Tensor {\n  kernel CPU f\n  grad self: conj(grad)\n}\n"
                     "op conj(Tensor self) -> Tensor {\n  kernel CPU conj\n}\n")
        self.assertIn("tni_grad_conj(b->grads[0])", self.texts()["gradients.c"])

    def test_samples_and_errors_become_rows_with_their_line(self):
        self.declare('op f(Tensor x) -> Tensor {\n  kernel CPU f\n  sample f32[2]\n'
                     '  error TYPE "say \\"no\\": # here" : f32[3], 1 # a comment\n}\n')
        text = self.texts()["samples.c"]
        self.assertIn('"f32[2]",\n     TN_OK, "",\n     "ops/x.op", 3}', text)
        self.assertIn('"f32[3], 1",\n     TN_TYPE, "say \\"no\\": # here",\n     "ops/x.op", 4}', text)

    def test_words_of_c_and_of_generated_code_are_no_parameter_names(self):
        self.declare("op f(Tensor self, int default, int call, int[] class) -> Tensor {\n  kernel CPU f\n}\n")
        text = " ".join(self.texts()["include/tenon/ops.h"].split())
        self.assertIn("tn_f(tn_tensor *self, int64_t default_, int64_t call_, const int64_t *class_,", text)

    def test_stubs_are_python_and_say_which_arguments_are_optional(self):
        for name in ("basic.op", "types.op"):
            shutil.copy(os.path.join(HERE, "ops", name), self.ops)
        text = self.texts()["python.pyi"]
        tree = ast.parse(text)
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.assertTrue({"mm", "add", "add_", "matmul", "empty"} <= functions)
        self.assertIn("def add(self, other: Tensor, *, alpha: Number = ...) -> Tensor:", text)
        self.assertIn("def mm(input: Tensor, mat2: Tensor, *, out: Optional[Tensor] = ...) -> Tensor:", text)
        self.assertNotIn(" \n", text)

    def test_a_long_declaration_goes_on_behind_a_backslash(self):
        self.declare("op f(Tensor self, \\\n     int n) \\\n  -> Tensor {\n  kernel CPU f\n  tags \\\n    core\n}\n")
        row = self.operators()["aten::f"]
        self.assertEqual((row["schema"], row["line"], row["tags"]),
                         ("aten::f(Tensor self, int n) -> Tensor", 1, ["core"]))


class Schemas(unittest.TestCase):
    def test_printing_gives_back_the_text(self):
        for text in ("aten::f() -> ()", "my::f.o(Tensor(a -> *) x, *, int[2]? k=None) -> (Tensor(a) y, int)",
                     "aten::f(Tensor(a!)[] x, Tensor?[] y, float s=1e-05, str m='a b', int[2] k=[1, -2]) -> ()",
                     "aten::f(Tensor(a!) x, Tensor(b!)? y, Tensor(a! -> a|b) z) -> Tensor(a!)"):
            self.assertEqual(str(schema.parse(text)), text)

    def test_a_signature_has_types_alone(self):
        self.assertEqual(schema.parse("f(Tensor(a!)? x, SymInt[2] k=0) -> (Tensor(a!), int)").signature(),
                         "(Tensor?, SymInt[]) -> (Tensor, int)")


class Headers(unittest.TestCase):
    def test_keys_and_statuses_come_from_the_public_headers(self):
        keys = constants.keys()
        self.assertEqual(keys["CompositeExplicitAutograd"], "TN_KEY_COMPOSITE_EXPLICIT")
        self.assertEqual(keys["AutogradMeta"], "TN_KEY_AUTOGRAD_META")
        self.assertEqual(keys["SparseCsrCUDA"], "TN_KEY_SPARSE_CSR_CUDA")
        self.assertEqual(keys["PrivateUse1"], "TN_KEY_PRIVATE1")
        self.assertGreater(len(keys), 140)
        self.assertIn("UNSUPPORTED", constants.statuses())
        self.assertEqual(constants.functions()["tn_promote_types"], "tenon/dtype.h")


# Body of an operator that is right, to go with a head that is not, and the other way round.
FINE = "  kernel CPU f\n}\n"
HEAD = "op f(Tensor self) -> Tensor {\n"
ERRORS = {
    # name of the test: text, then "line: message" of each error
    "an unknown kind of dtypes that it takes": (HEAD + FINE[:-2] + "  takes some\n}\n", "3: want `takes KIND [\"kernel\"]`"),
    "an unknown line": (HEAD + FINE[:-2] + "  colour red\n}\n", "3: unknown line 'colour'"),
    "a line without content": (HEAD + "  kernel\n}\n", "2: 'kernel' says nothing"),
    "a line given twice": (HEAD + "  c f\n  c g\n" + FINE, "3: 'c' was given at line 2"),
    "text between operators": ("operator f\n", "1: want `op SCHEMA {`, found 'operator f'"),
    "a head without a brace": ("op f(Tensor x) -> Tensor\n", "1: the head of an operator ends in '{'"),
    "a body that does not end": (HEAD + "  kernel CPU f\n", "1: '}' is missing: the file ends"),
    "a body that runs into the next": (HEAD + "  kernel CPU f\n" + "op g() -> () {\n  kernel CPU g\n}\n",
                                       "1: '}' is missing: the next operator begins at line 3"),
    "a line that is none": (HEAD + "  = 3\n" + FINE, "2: want a line of the operator's body, found '= 3'"),
    "a schema without results": ("op f(Tensor x) {\n" + FINE, "1: want '->' in the schema, found 'the end'"),
    "a schema with rubbish": ("op f(Tensor x) -> Tensor ; {\n" + FINE, "1: cannot read ';' in the schema"),
    "an unknown type": ("op f(Tenso x) -> Tensor {\n" + FINE, "1: unknown type 'Tenso'"),
    "a list of lists": ("op f(int[][] x) -> Tensor {\n" + FINE, "1: lists of lists have no C type"),
    "a type without C": ("op f(Tensor x, str[] y) -> Tensor {\n" + FINE,
                         "1: argument 'y': type 'str[]' has no C type"),
    "a result without C": ("op f(Tensor x) -> int[] {\n" + FINE, "1: a result of type 'int[]' has no C type"),
    "an argument twice": ("op f(Tensor x, int x) -> Tensor {\n" + FINE, "1: argument 'x' is declared twice"),
    "a default of another type": ("op f(Tensor x, int n=1.5) -> Tensor {\n" + FINE,
                                  "1: '1.5' is no default for 'int n'"),
    "a default for a tensor": ("op f(Tensor x=1) -> Tensor {\n" + FINE, "1: '1' is no default for 'Tensor x'"),
    "None for what is not optional": ("op f(Tensor x, int n=None) -> Tensor {\n" + FINE,
                                      "1: 'None' is no default for 'int n'"),
    "one number for a list without size": ("op f(Tensor x, int[] n=1) -> Tensor {\n" + FINE,
                                           "1: '1' is no default for 'int[] n'"),
    "no default after a default": ("op f(Tensor x, int n=1, int m) -> Tensor {\n" + FINE,
                                   "1: argument 'm' has no default but follows 'n', which has one"),
    "an alias of nothing": ("op f(Tensor x) -> Tensor(a) {\n" + FINE, "1: the result 'Tensor(a)' aliases no"),
    "a written result of a read argument": ("op f(Tensor(a) x) -> Tensor(a!) {\n" + FINE,
                                            "1: the result 'Tensor(a!)' is written, but argument 'x' is not"),
    "an alias of a number": ("op f(int(a) x) -> Tensor {\n" + FINE, "1: argument 'x': only tensors have alias"),
    "a written list that is returned": ("op f(Tensor(a!)[] x) -> Tensor(a!)[] {\n" + FINE,
                                        "1: a written list is not returned"),
    "an unknown variant": (HEAD + "  variants function inplac\n" + FINE, "2: unknown variant 'inplac'"),
    "variants without the operator": (HEAD + "  variants out\n  shape f\n  cpu f\n}\n",
                                      "2: variants without 'function' or 'method'"),
    "a method without self": ("op f(Tensor x) -> Tensor {\n  variants method\n" + FINE,
                              "2: variant 'method' wants a first argument 'Tensor self'"),
    "in place without a tensor": ("op f(int n) -> Tensor {\n  variants function inplace\n  shape f\n  cpu f\n}\n",
                                  "2: variant 'inplace' wants a first argument and one result"),
    "out of a number": ("op f(Tensor x) -> int {\n  variants function out\n" + FINE,
                        "2: variant 'out' wants results of type 'Tensor'"),
    "out of a view": ("op f(Tensor(a) x) -> Tensor(a) {\n  variants function out\n  view f\n}\n",
                      "2: variant 'out' wants results of type 'Tensor', or one of type 'Tensor[]', that alias nothing"),
    "an overload for no out variant": (HEAD + "  out o\n  shape f\n  cpu f\n  variants function\n}\n",
                                       "2: 'out' names a variant that 'variants' lacks"),
    "an alias of nothing": (HEAD + "  alias nothing\n}\n", "2: 'alias': there is no operator tn_nothing"),
    "an alias with other parameters": (HEAD + "  composite f\n}\nop g(Tensor self, int n) -> Tensor {\n  alias f\n}\n",
                                       "5: 'alias': tn_f has other parameters"),
    "nothing to do": (HEAD + "  doc \"x\"\n}\n", "1: nothing says what the operator does"),
    "two things to do": (HEAD + "  shape f\n  cpu f\n  pointwise f\n}\n",
                         "4: 'shape' and 'pointwise' both say what the operator does"),
    "shape without cpu": (HEAD + "  shape f\n}\n", "2: 'shape' without 'cpu'"),
    "cpu without shape": (HEAD + "  cpu f\n  kernel CPU f\n}\n", "2: 'cpu' without 'shape'"),
    "cpu beside pointwise": (HEAD + "  pointwise f\n  cpu f\n}\n", "3: 'cpu' without 'shape'"),
    "a name that is none": (HEAD + "  shape f(self)\n  cpu f\n}\n", "2: 'shape' wants one name, found 'f(self)'"),
    "an unknown dispatch key": (HEAD + "  kernel GPU f\n}\n", "2: unknown dispatch key 'GPU'"),
    "a kernel without a function": (HEAD + "  kernel CPU\n}\n", "2: want `kernel KEY FUNCTION`, found 'CPU'"),
    "two kernels for a key": (HEAD + "  kernel CPU f\n  kernel CPU g\n}\n", "3: a second kernel for CPU"),
    "a kernel that is generated": (HEAD + "  shape f\n  cpu f\n  kernel Meta f\n}\n",
                                   "4: the kernel for Meta is generated"),
    "a view that does not alias": (HEAD + "  view f\n}\n", "2: a view wants `Tensor(a) self, … -> Tensor(a)`"),
    "shape of a schema that writes": ("op f_(Tensor(a!) self) -> Tensor(a!) {\n  shape f\n  cpu f\n}\n",
                                      "2: 'shape' wants a schema without alias annotations"),
    "shape of a number": ("op f(Tensor self) -> int {\n  shape f\n  cpu f\n}\n",
                          "2: 'shape' wants results of type 'Tensor'"),
    "pointwise with two results": ("op f(Tensor x) -> (Tensor, Tensor) {\n  pointwise f\n}\n",
                                   "2: a pointwise operator has one result"),
    "an operand that is no argument": (HEAD + "  pointwise f\n  operands self other\n}\n",
                                       "3: operand 'other' is no argument"),
    "an operand that is an int": ("op f(Tensor self, int n) -> Tensor {\n  pointwise f\n  operands self n\n}\n",
                                  "3: operand 'n' is a int; want Tensor or Scalar"),
    "dtypes without a kernel's name": (HEAD + "  pointwise f\n  dtypes float\n}\n",
                                      "3: want `dtypes KIND \"kernel\"`; kinds are: float inexact"),
    "dtypes of no kind": (HEAD + "  pointwise f\n  dtypes odd \"f_cpu\"\n}\n",
                          "3: want `dtypes KIND \"kernel\"`"),
    "dtypes of a composite": (HEAD + "  composite f\n  dtypes float \"f_cpu\"\n}\n",
                              "3: 'dtypes' is for pointwise operators"),
    "a name for an in-place variant that there is not": (
        HEAD + "  variants function\n  pointwise f\n  inplace Scalar\n}\n", "4: 'inplace' names a variant that 'variants' lacks"),
    "an out variant of three names": (HEAD + "  variants function out\n  pointwise f\n  out a b c\n}\n",
                                      "4: 'out' wants an overload name, or that and a name a result, found 'a b c'"),
    "a dtype of something else": (HEAD + "  variants function out\n  dtype out\n  shape f\n  cpu f\n}\n",
                                  "3: want `dtype written`"),
    "a dtype of a result that is not given": (HEAD + "  dtype exact \"x\"\n  shape f\n  cpu f\n}\n", "2: want `dtype exact"),
    "a new result of what is no composite": (HEAD + "  shape f\n  cpu f\n  result new\n}\n", "4: want `result new`"),
    "a node without gradients": (HEAD + "  shape f\n  cpu f\n  node FBackward0\n}\n", "4: want `node NAMEBackward0`"),
    "a word for Python that nobody knows": (HEAD + "  python words\n  shape f\n  cpu f\n}\n", "2: want `python numbers`, `python functional`, `python ops`, `python nn` or"),
    "a name in Python for an argument that is not there": (HEAD + "  python mat3=other\n  shape f\n  cpu f\n}\n",
                                                            "2: want `python numbers`, `python functional`, `python ops`, `python nn` or"),
    "operands without a tensor": ("op f(Scalar s) -> Tensor {\n  pointwise f\n  operands s\n}\n",
                                  "3: a pointwise operator wants a Tensor among its operands"),
    "a tensor that is no operand": ("op f(Tensor x, Tensor y) -> Tensor {\n  pointwise f\n  operands x\n}\n",
                                    "3: argument 'y' is a tensor and no operand"),
    "operands of a structured operator": (HEAD + "  shape f\n  cpu f\n  operands self\n}\n",
                                          "4: 'operands' is for pointwise operators"),
    "an unknown type rule": (HEAD + "  pointwise f\n  type widen\n}\n", "3: unknown type rule 'widen'"),
    "an unknown rule for names": (HEAD + "  names widen\n" + FINE, "2: unknown rule 'widen' for names of dimensions; known are: none"),
    "names of no variant": (HEAD + "  names same method\n" + FINE, "2: 'names' is for the variants function, inplace and out, found "
                            "'method'"),
    "an unknown kind of autograd": (HEAD + "  autograd off\n" + FINE, "2: unknown kind of autograd 'off'"),
    "doc without quotes": (HEAD + "  doc hello\n" + FINE, "2: want a text in quotes, found hello"),
    "an error without arguments": (HEAD + "  error TYPE \"x\"\n" + FINE, "2: want `error STATUS \"text\" : "),
    "an unknown status": (HEAD + "  error WRONG \"x\" : f32[2]\n" + FINE, "2: unknown status 'WRONG'"),
    "an operator twice": (HEAD + FINE + HEAD.replace("Tensor self", "Tensor self, int n") + "  kernel CPU g\n}\n",
                          "4: operator 'aten::f' is already that of aten::f at ops/x.op:1"),
    "an identifier twice": ("op f.a_b(Tensor x) -> Tensor {\n  c one\n" + FINE
                            + "op f_a.b(Tensor x) -> Tensor {\n  c two\n" + FINE,
                            "5: identifier 'f_a_b' is already that of aten::f.a_b at ops/x.op:1"),
    "a C name twice": (HEAD + FINE + "op g(Tensor x) -> Tensor {\n  c f\n  kernel CPU g\n}\n",
                       "4: C name 'tn_f' is already that of aten::f at ops/x.op:1"),
    "a C name of a public function": ("op version(Tensor x) -> Tensor {\n" + FINE,
                                      "1: tn_version is a function of tenon/base.h"),
    "a C name that is none": (HEAD + "  c a b\n" + FINE, "2: 'c' wants one name, found 'a b'"),
    "one function with two signatures": (HEAD + FINE + "op g(Tensor x, int n) -> Tensor {\n" + FINE,
                                         "5: tni_kernel_f has another signature at ops/x.op:2"),
    "two parameters of one name": ("op f(Tensor out) -> Tensor {\n" + FINE,
                                   "1: aten::f has two C parameters 'out'"),
    "a parameter called like a variable": ("op f(Scalar? x, int x_value) -> Tensor {\n" + FINE,
                                           "1: aten::f has two C parameters 'x_value'"),
    "a list beside a tensor, with out": (
        "op f(Tensor x, Tensor[] l) -> Tensor {\n  variants function out\n  shape f\n  cpu f\n}\n",
        "2: variant 'out' cannot be derived with a list of tensors beside other tensors"),
    "a list that is made and a write": ("op f(Tensor(a!) x) -> Tensor[] {\n" + FINE,
                                        "1: the ADInplaceOrView kernel cannot be derived"),
    "a gradient of what is no argument": (HEAD + "  grad other: grad\n" + FINE, "2: 'other' is no argument of type Tensor"),
    "a gradient of a number": ("op f(Tensor self, int n) -> Tensor {\n  grad n: grad\n  shape f\n  cpu f\n}\n",
                               "2: 'n' is no argument of type Tensor"),
    "two gradients of one argument": (HEAD + "  grad self: grad\n  grad self: grad\n" + FINE,
                                      "3: 'self' has a gradient already"),
    "'grad none' and a formula": (HEAD + "  grad none\n  grad self: grad\n" + FINE, "3: 'grad none' stands alone"),
    "what is to lie apart of what is not written": (HEAD + "  apart self\n" + FINE,
                                                    "2: 'apart' names tensors behind the first one"),
    "'grad not_implemented' and a formula": (HEAD + "  grad not_implemented\n  grad self: grad\n" + FINE,
                                             "3: 'grad not_implemented' stands alone"),
    "no argument with a formula": (HEAD + "  grad self: not_implemented\n" + FINE,
                                   "2: no argument has a gradient: say `grad not_implemented`"),
    "gradients of an in-place variant that is not there": (
        HEAD + "  grad self: grad\n  grad inplace self: grad\n" + FINE,
        "3: 'grad inplace' wants the variant 'inplace' and other gradients"),
    "a formula without a colon": (HEAD + "  grad self\n" + FINE, "2: want `grad none`, `grad not_implemented` or `grad ARGUMENT: FORMULA`"),
    "forward mode without gradients": (HEAD + "  jvp auto_linear\n" + FINE,
                                       "2: `jvp` is for operators that have `grad` lines"),
    "forward mode of an unknown kind": (HEAD + "  grad self: grad\n  jvp auto_magic\n" + FINE,
                                        "3: unknown kind 'auto_magic'; known are: auto_linear auto_element_wise"),
    "a tangent without a tangent": (HEAD + "  grad self: grad\n  jvp self\n" + FINE,
                                    "3: each term of the sum wants a tangent, the name of an argument with _t"),
    "a tangent of what has no gradient": (
        "op f(Tensor self, Tensor other) -> Tensor {\n  grad self: grad\n  jvp other_t\n  shape f\n  cpu f\n}\n",
        "3: 'other' is no tensor that has a gradient"),
    "a tangent of one of two results": (
        "op f(Tensor self) -> (Tensor, Tensor) {\n  grad self: grads[0] + grads[1]\n  jvp self_t\n  shape f\n  cpu f\n}\n",
        "3: this gives the tangent of the first result alone, others have gradients too"),
    "a gradient in the formula of a tangent": (HEAD + "  grad self: grad\n  jvp self_t * grad\n" + FINE,
                                               "3: 'grad' is for `grad` lines"),
    "a formula with a word nobody knows": (HEAD + "  grad self: grad * x\n" + FINE,
                                           "2: 'x' in the formula is neither an argument nor a result"),
    "a formula that ends too early": (HEAD + "  grad self: grad *\n" + FINE,
                                      "2: want a value in the formula, found 'the end'"),
    "a formula that goes on": (HEAD + "  grad self: grad grad\n" + FINE, "2: 'grad' in the formula is not expected"),
    "a formula with a strange character": (HEAD + "  grad self: grad @ grad\n" + FINE,
                                           "2: cannot read '@ grad' in the formula"),
    "a number where a gradient is wanted": (HEAD + "  grad self: 2\n" + FINE,
                                            "2: want a tensor in the formula, found int"),
    "an operator with too many arguments": (HEAD + "  grad self: f(grad, 1)\n" + FINE,
                                            "2: f takes 1 arguments, found 2"),
    "a function by hand with two signatures": (
        "op f(Tensor self, Tensor other) -> Tensor {\n  grad self: g(grad)\n  grad other: g(grad, 1)\n  shape f\n"
        "  cpu f\n}\n", "3: tni_grad_g has another signature at"),
    "gradients of a composite operator": (HEAD + "  grad self: grad\n  composite f\n}\n",
                                          "2: a composite operator has the gradients of what it calls"),
}


class Errors(Folder):
    pass


def add_error_test(name, text, expected):
    def test(self):
        self.declare(text)
        errors = self.errors()
        line, _, message = expected.partition(": ")
        self.assertEqual(len(errors), 1, errors)
        self.assertTrue(errors[0].startswith("ops/x.op:%s: error: %s" % (line, message)), errors[0])
    setattr(Errors, "test_" + name.replace(" ", "_"), test)


for error_name, (error_text, error_expected) in ERRORS.items():
    add_error_test(error_name, error_text, error_expected)


def main():
    global CC, CXX
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--cc", default=os.environ.get("CC", CC))
    parser.add_argument("--cxx", default=os.environ.get("CXX", CXX))
    args, rest = parser.parse_known_args()
    CC, CXX = args.cc, args.cxx
    if args.update:
        update_golden()
        return 0
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    if rest:
        suite = unittest.defaultTestLoader.loadTestsFromNames(rest, sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed, failed))
    return 1 if failed or result.testsRun == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
