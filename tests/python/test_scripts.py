# SPDX-License-Identifier: MIT
"""What public scripts use now and then: weights by their URL, timers, Sobol' sequences, reductions under masks, exported
programs, replicas of a module."""
import contextlib
import hashlib
import io
import json
import math
import os
import pathlib
import tempfile
import unittest

import harness
import tenon
from tenon import hub
from tenon.utils import collect_env

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "scripts.json")) as file:
    GOLDEN = json.load(file)


def close(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) or (math.isnan(a) and math.isnan(b))


class Weights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        plain = os.path.join(self.folder, "net.pth")
        tenon.save({"w": tenon.arange(3)}, plain)
        with open(plain, "rb") as f:
            self.digest = hashlib.sha256(f.read()).hexdigest()
        self.file = pathlib.Path(self.folder, "net-%s.pth" % self.digest[:8])
        os.rename(plain, self.file)

    def test_weights_are_fetched_once_and_checked(self):
        cache = os.path.join(self.folder, "cache")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            made = hub.load_state_dict_from_url(self.file.as_uri(), cache, check_hash=True, progress=False)
        self.assertEqual(made["w"].tolist(), [0, 1, 2])
        self.assertIn("Downloading:", said.getvalue())
        self.assertEqual(os.listdir(cache), [self.file.name])
        url = self.file.as_uri()
        self.file.unlink()
        self.assertEqual(hub.load_state_dict_from_url(url, cache)["w"].tolist(), [0, 1, 2])

    def test_what_fails_leaves_what_was_there(self):
        there = pathlib.Path(self.folder, "there")
        there.write_text("old")
        with self.assertRaisesRegex(RuntimeError, 'invalid hash value .expected "dead", got "%s"' % self.digest):
            hub.download_url_to_file(self.file.as_uri(), str(there), "dead", progress=False)
        with self.assertRaises(OSError):
            hub.download_url_to_file(pathlib.Path(self.folder, "none").as_uri(), str(there), progress=False)
        self.assertEqual(there.read_text(), "old")
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([self.file.name, "there"]))
        hub.download_url_to_file(self.file.as_uri(), str(there), self.digest, progress=False)
        self.assertEqual(there.read_bytes(), self.file.read_bytes())

    def test_programs_are_not_fetched(self):
        with self.assertRaisesRegex(RuntimeError, "fetches no programs"):
            hub.load("owner/repository", "model")


class Machine(unittest.TestCase):
    """Headers of test suites and reports of problems ask with commands of their own or of the module."""

    def test_a_command_gives_its_status_and_texts(self):
        self.assertEqual(collect_env.run("echo a; echo b >&2; exit 3"), (3, "a", "b"))
        self.assertEqual(collect_env.run(["echo", "a b"]), (0, "a b", ""))
        self.assertEqual(collect_env.run_and_read_all(lambda c: (1, "out", ""), "x"), None)

    def test_answers_come_of_what_the_command_printed(self):
        def said(text):
            return lambda command: (0, text, "")

        self.assertEqual(collect_env.get_gcc_version(said("gcc (Debian 12.2.0-14) 12.2.0\nCopyright")),
                         "(Debian 12.2.0-14) 12.2.0")
        self.assertEqual(collect_env.get_nvidia_driver_version(said("| NVIDIA-SMI 5  Driver Version: 550.1 CUDA")), "550.1")
        self.assertIsNone(collect_env.get_gpu_info(lambda command: (127, "", "not found")))
        self.assertIsNone(collect_env.get_cmake_version(lambda command: (127, "", "not found")))
        self.assertEqual(collect_env.get_pip_packages(said("numpy==2.0\nsix==1.0"), {"numpy"}), ("pip3", "numpy==2.0"))

    def test_the_report_has_torchs_fields(self):
        info = collect_env.get_env_info()
        self.assertEqual((info.torch_version, info.is_cuda_available),
                         (tenon.__version__, str(tenon.cuda.is_available())))
        self.assertIn("Tenon version", collect_env.get_pretty_env_info())


class Sequences(unittest.TestCase):
    def test_points_are_those_of_the_reference(self):
        for n, want in GOLDEN["sobol"].items():
            engine = tenon.quasirandom.SobolEngine(int(n)).fast_forward(5)
            first = engine.draw(2, dtype=tenon.float64)
            made = tenon.cat([first, engine.draw(4, dtype=tenon.float64)])
            self.assertEqual(made[:, -3:].tolist(), want)
            self.assertEqual(engine.num_generated, 11)

    def test_scrambled_points_are_even_and_those_of_their_seed(self):
        a, b = (tenon.quasirandom.SobolEngine(4, scramble=True, seed=7).draw(256) for _ in range(2))
        self.assertTrue(tenon.equal(a, b))
        self.assertFalse(tenon.equal(a, tenon.quasirandom.SobolEngine(4, scramble=True, seed=8).draw(256)))
        for d in range(4):  # 256 points: one in each of 256 parts
            self.assertEqual(sorted((a[:, d] * 256).long().tolist()), list(range(256)))

    def test_numbers_of_points(self):
        engine = tenon.quasirandom.SobolEngine(2)
        self.assertEqual(repr(engine), "SobolEngine(dimension=2)")
        first = engine.draw_base2(2)
        with self.assertRaisesRegex(ValueError, "require n to be a power of 2. 4 points have been previously generated"):
            engine.draw_base2(3)
        self.assertTrue(tenon.equal(engine.reset().draw(4), first))
        for n in (0, 513):
            with self.assertRaisesRegex(ValueError, "Supported range of dimensionality"):
                tenon.quasirandom.SobolEngine(n)


class Masks(unittest.TestCase):
    def test_values_are_those_of_the_reference(self):
        x = tenon.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
        mask = tenon.tensor([[True, False, True], [False, True, True]])
        for call, want in GOLDEN["masked"].items():
            name, _, dim = call.partition(" ")
            before = (2.0,) if name in ("norm", "normalize") else ()
            dim = 1 if not dim else None if dim == "None" else int(dim)
            made = getattr(tenon.masked, name)(x, *before, dim, mask=mask)
            self.assertTrue(close(made.tolist(), want), (call, made, want))

    def test_nothing_counts(self):
        x, none = tenon.ones(2, 2), tenon.zeros(2, 2, dtype=tenon.bool)
        self.assertEqual(tenon.masked.sum(x, mask=none).item(), 0)
        self.assertEqual(tenon.masked.prod(x, mask=none).item(), 1)
        self.assertTrue(tenon.masked.mean(x, mask=none).isnan())
        self.assertEqual(tenon.masked.amax(x.int(), 0, mask=none).tolist(), [-2 ** 31] * 2)


class Programs(unittest.TestCase):
    def test_an_exported_program_is_written_and_read(self):
        model = tenon.nn.Sequential(tenon.nn.Linear(2, 3), tenon.nn.ReLU())
        x = tenon.randn(4, 2)
        program = tenon.export.export(model, (x,), dynamic_shapes={"input": {0: tenon.export.Dim("n", min=2)}})
        file, files = io.BytesIO(), {"note": ""}
        tenon.export.save(program, file, extra_files={"note": "hello"})
        file.seek(0)
        again = tenon.export.load(file, extra_files=files)
        self.assertTrue(tenon.equal(again.module()(x), model(x)))
        self.assertTrue(tenon.equal(again.example_inputs[0][0], x))
        self.assertEqual(files, {"note": "hello"})
        self.assertEqual(sorted(again.state_dict), sorted(model.state_dict()))
        with self.assertRaisesRegex(TypeError, "must be an instance of 'ExportedProgram'"):
            tenon.export.save(model, io.BytesIO())

    def test_names_of_sizes(self):
        from tenon.export.dynamic_shapes import Dim, dims
        self.assertEqual([d.__name__ for d in dims("a", "b")], ["a", "b"])
        self.assertEqual((2 * Dim("n") + 1).__name__, "2*n + 1")
        for bad in (dict(name="a b"), dict(name="a", min=3, max=2)):
            with self.assertRaises(AssertionError):
                Dim(**bad)

    def test_replicas_learn_for_their_module(self):
        model = tenon.nn.Linear(2, 1)
        a, b = tenon.nn.parallel.replicate(model, [0, 1])
        x = tenon.ones(3, 2)
        sum(out.sum() for out in tenon.nn.parallel.parallel_apply([a, b], [x, (x,)])).backward()
        self.assertEqual(model.weight.grad.tolist(), [[6.0, 6.0]])
        with self.assertRaisesRegex(AssertionError, "number of modules 1 is not equal to the number of inputs 2"):
            tenon.nn.parallel.parallel_apply([a], [x, x])

    def test_a_timer_takes_statements_with_a_margin(self):
        language = tenon.utils.benchmark.Language
        self.assertEqual([(kind.name, kind.value) for kind in language], [("PYTHON", 0), ("CPP", 1)])
        tenon.utils.benchmark.Timer("1 + 1", language=language.PYTHON).timeit(1)
        with self.assertRaisesRegex(ValueError, "^Invalid language `rust`.$"):
            tenon.utils.benchmark.Timer("1 + 1", language="rust")
        timer = tenon.utils.benchmark.Timer("""
            y = x + 1
            y * 2
        """, setup="""
            x = torch.ones(3)
        """)
        self.assertEqual(timer.timeit(3).number_per_run, 3)

    def test_a_tangent_takes_the_dtype_of_its_tensor(self):
        forward = tenon.autograd.forward_ad
        with forward.dual_level():
            made = forward.make_dual(tenon.ones(2, dtype=tenon.float64), tenon.full((2,), 3.0)) ** 2
            self.assertEqual(forward.unpack_dual(made).tangent.tolist(), [6.0, 6.0])


if __name__ == "__main__":
    harness.main()
