# SPDX-License-Identifier: MIT
"""as_torch: scripts that import torch run on Tenon, as python3 would run them; names that are missing say so."""

import os
import subprocess
import sys
import tempfile
import unittest

import harness
import tenon


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_python(self, *arguments, **options):
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=1000, **options)

    def as_torch(self, *arguments, **options):
        return self.run_python("-m", "tenon.as_torch", *arguments, **options)

    def test_torch_is_tenon_under_every_name(self):
        done = self.as_torch(self.write("a.py", (
            "import torch, torch.nn as nn, tenon\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader\n"
            "from torch import optim\nimport torch.optim.lr_scheduler\n"
            "assert torch is tenon and nn is tenon.nn and F is tenon.nn.functional and optim is tenon.optim\n"
            "assert torch.optim.lr_scheduler is tenon.optim.lr_scheduler\n"
            "assert DataLoader is tenon.utils.data.DataLoader and torch.nn.__spec__.name == 'tenon.nn'\n"
            "assert torch.__version__ >= '2.0' and torch.__version__ > (1, 13) and torch.__version__.split('.')[0] == '2'\n"
            "assert not torch.__version__ < '2.9', torch.__version__\n"
            "print(torch.ones(2).sum().item(), torch.float32, torch.ones(2).shape)\n")))
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("2.0 torch.float32 torch.Size([2])\n", "", 0))

    def test_classes_and_functions_say_that_they_are_torchs(self):
        done = self.as_torch(self.write("b.py", (
            "import pickle, torch, functorch\nfrom torch._C._functorch import is_batchedtensor\n"
            "assert torch.torch is torch and torch.__name__ == 'torch' and not is_batchedtensor(torch.ones(1))\n"
            "assert functorch.vmap is torch.vmap and functorch.make_functional(torch.nn.Linear(1, 1))\n"
            "print(torch.nn.Linear, torch.optim.SGD, type(torch.nn.Parameter()))\n"
            "assert pickle.loads(pickle.dumps(torch.nn.Linear)) is torch.nn.Linear\n"
            "layer = pickle.loads(pickle.dumps(torch.nn.Linear(2, 1)))\nprint(layer, torch.typename(layer))\n")))
        self.assertEqual((done.stdout, done.stderr), (
            "<class 'torch.nn.modules.linear.Linear'> <class 'torch.optim.sgd.SGD'> "
            "<class 'torch.nn.parameter.Parameter'>\nLinear(in_features=2, out_features=1, bias=True) "
            "torch.nn.modules.linear.Linear\n", ""))

    def test_modules_are_found_where_classes_and_functions_say(self):
        done = self.as_torch(self.write("m.py", (
            "import importlib, inspect, sys, torch\nfrom torch import distributions, nn, optim\nfrom torch.optim import lr_scheduler\n"
            "from torch.utils import data\n"
            "print(inspect.getsource(nn.Linear).split('(')[0], inspect.getsource(optim.Adam.step).split('(')[0].strip())\n"
            "print(inspect.getmodule(nn.Module) is sys.modules['tenon.nn.modules.module'], inspect.getfile(nn.GRU)[-6:])\n"
            "for module in (nn, nn.functional, nn.init, optim, lr_scheduler, data, distributions):\n"
            "    for value in list(vars(module).values()):\n"
            "        if isinstance(value, (type, type(lambda: 0))):\n"
            "            assert value.__module__ in sys.modules or importlib.import_module(value.__module__), value\n")))
        self.assertEqual((done.stdout, done.stderr), ("class Linear def step\nTrue rnn.py\n", ""))

    def test_distributions_know_their_classes_under_the_other_name(self):
        done = self.as_torch(self.write("d.py", (
            "from torch.distributions import Gumbel, HalfNormal, InverseGamma, Kumaraswamy, Pareto, Weibull\n"
            "for d in (Pareto(1., 2.), Weibull(1., 2.), HalfNormal(1.), Gumbel(0., 1.), InverseGamma(2., 1.), Kumaraswamy(1., 1.)):\n"
            "    print(type(d).__name__, *d.expand((4, 3)).batch_shape)\n"
            "class Mine(Pareto):\n    def __init__(self):\n        super().__init__(1., 2.)\n"
            "try:\n    Mine().expand((2,))\nexcept NotImplementedError as error:\n    print(error)\n")))
        self.assertEqual((done.stdout, done.stderr), (
            "Pareto 4 3\nWeibull 4 3\nHalfNormal 4 3\nGumbel 4 3\nInverseGamma 4 3\nKumaraswamy 4 3\n"
            "Subclass Mine of Pareto that defines a custom __init__ method must also define a custom .expand() method.\n", ""))

    def test_plain_pickles_are_those_of_pytorch(self):
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "plain.pkl")  # by golden/make_files.py
        done = self.as_torch(self.write("c.py", (
            "import pickle, sys, torch\nwith open(sys.argv[1], 'rb') as file:\n    d = pickle.load(file)\n"
            "print(d['t'], d['p'], d['v'].tolist(), d['v'].stride(), d['m'](torch.ones(2)).tolist())\n"
            "written = pickle.dumps({'x': torch.ones(2), 'e': torch.ones(0, 2), 'f': torch.ones(2).to(torch.float8_e5m2)})\n"
            "print(b'torch.storage' in written, b'_load_from_bytes' in written, b'tenon' in written)\n"
            "back = pickle.loads(written)\nprint(back['x'], back['e'].shape, back['f'].dtype)\n")), golden)
        self.assertEqual((done.stdout, done.stderr), (
            "tensor([0, 1, 2]) Parameter containing:\ntensor([1.5000], requires_grad=True) [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] "
            "(1, 3) [2.0, 7.0, 12.0]\nTrue True False\ntensor([1., 1.]) torch.Size([0, 2]) torch.float8_e5m2\n", ""))

    def test_a_script_sees_what_python_gives_it(self):
        text = ("import os, sys\nimport helper\n"
                "print(sys.argv, sys.path[0], __file__, __name__, __spec__, __package__, os.path.basename(__loader__.path))\n"
                "import __main__\nassert __main__.__dict__ is globals()\nprint(helper.value)\n")
        self.write("helper.py", "value = 3\n")
        path = self.write("show.py", text)
        plain = self.run_python(path, "a", "--b", cwd="/")
        ours = self.as_torch(path, "a", "--b", cwd="/")
        self.assertEqual(ours.stdout, plain.stdout)
        self.assertEqual(ours.stderr, plain.stderr)
        relative = self.as_torch("show.py", cwd=self.folder)
        self.assertEqual(relative.stdout, self.run_python("show.py", cwd=self.folder).stdout)

    def test_exit_codes_and_tracebacks_are_pythons(self):
        for name, text in (("exit.py", "import sys; sys.exit(7)"), ("text.py", "raise SystemExit('no')"),
                           ("error.py", "def f():\n    1 / 0\nf()\n"), ("syntax.py", "x = (\n"),
                           ("chain.py", "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n"),
                           ("interrupt.py", "raise KeyboardInterrupt\n"), ("missing.py", "import nothing_like_this\n")):
            with self.subTest(name):
                path = self.write(name, text)
                plain, ours = self.run_python(path), self.as_torch(path)
                self.assertEqual((ours.returncode, ours.stdout, ours.stderr),
                                 (plain.returncode, plain.stdout, plain.stderr))

    def test_classes_say_where_pytorch_has_them(self):
        """So that PyTorch reads what was saved whole: a pickle names a class by its module."""
        wanted = ("torch.optim.adamw.AdamW torch.optim.rmsprop.RMSprop torch.optim.asgd.ASGD torch.optim.nadam.NAdam "
                  "torch.optim.adagrad.Adagrad torch.optim.rprop.Rprop torch.optim.Muon torch.optim.Adafactor "
                  "torch.nn.modules.activation.MultiheadAttention torch.nn.modules.container.ParameterList "
                  "torch.distributions.normal.Normal torch.distributions.beta.Beta torch.distributions.categorical.Categorical "
                  "torch.distributions.transforms.CatTransform torch.finfo torch.FloatTensor torch.LongStorage").split()
        path = os.path.join(self.folder, "where.py")
        with open(path, "w") as f:
            f.write("import importlib, pickle, torch, torch.nn as nn\n"
                    "for name in %r:\n    module, _, name = name.rpartition('.')\n"
                    "    found = getattr(importlib.import_module(module), name)\n"
                    "    print(found.__module__ + '.' + found.__qualname__)\n"
                    "print(b'torch.nn.functional\\nrelu' in pickle.dumps(nn.TransformerEncoderLayer(4, 2), 0))" % wanted)
        self.assertEqual(self.as_torch(path).stdout.split(), [*wanted, "True"])

    def test_modules_code_and_missing_files(self):
        self.write("modm.py", "import torch, sys; print(__name__, sys.argv[1:], torch.__spec__.name)")
        self.assertEqual(self.as_torch("-m", "modm", "x", cwd=self.folder).stdout, "__main__ ['x'] tenon\n")
        done = self.as_torch("-", "x", input="import sys, torch\nprint(sys.argv, torch.ones(1).shape)\nraise SystemExit(4)\n")
        self.assertEqual((done.returncode, done.stdout.strip()), (4, "['-', 'x'] torch.Size([1])"), done.stderr)
        done = self.as_torch("-c", "import sys; print(sys.argv); sys.exit(3)", "y")
        self.assertEqual((done.stdout, done.returncode), ("['-c', 'y']\n", 3))
        done = self.as_torch("nowhere.py", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("can't open file", done.stderr)
        # A module that is not there is a line, as from Python itself; one that fails inside has its traceback.
        self.write("modi.py", "import runpy\nrunpy.run_module('nowhere')")
        for module in ("nowhere", "json", "modi"):
            ours, plain = self.as_torch("-m", module, cwd=self.folder), self.run_python("-m", module, cwd=self.folder)
            self.assertEqual((ours.returncode, ours.stderr.splitlines()[-1]),
                             (plain.returncode, plain.stderr.splitlines()[-1]))
            self.assertEqual("Traceback" in ours.stderr, module == "modi", ours.stderr)
        self.assertEqual(self.as_torch().returncode, 2)

    def test_missing_names_say_where_the_list_stands(self):
        done = self.as_torch("-c", (
            "import torch\n"
            "for code in ('torch.absent', 'torch.nn.Absent', 'from torch.nn import Absent', 'import torch.absent.deep',\n"
            "             'torch.optim.Absent'):\n"
            "    try:\n        exec(code)\n    except (AttributeError, ImportError) as e:\n        print(type(e).__name__, e)\n"
            "import importlib.util\n"
            "print(importlib.util.find_spec('torch.absent'), hasattr(torch, 'absent'), getattr(torch.nn, 'Absent', 4))\n"))
        lines = done.stdout.splitlines()
        list_of_names = os.path.join(os.path.dirname(os.path.abspath(tenon.__file__)), "docs", "user", "torch-coverage.md")
        self.assertTrue(os.path.isfile(list_of_names))
        where = "Tenon does not have it; %s lists what is covered" % list_of_names
        self.assertEqual(lines[:5], [
            "AttributeError module 'torch' has no attribute 'absent': " + where,
            "AttributeError module 'torch.nn' has no attribute 'Absent': " + where,
            "ImportError cannot import name 'Absent' from 'torch.nn': " + where,
            "ModuleNotFoundError No module named 'torch.absent': " + where,
            "AttributeError module 'torch.optim' has no attribute 'Absent': " + where])
        self.assertEqual(lines[5], "None False 4")

    def test_processes_that_are_spawned_know_torch(self):
        done = self.as_torch(self.write("spawn.py", (
            "import torch, torch.multiprocessing as mp\n"
            "def work(rank, x):\n    print(rank, (x * 2).tolist(), torch.__spec__.name, flush=True)\n"
            "if __name__ == '__main__':\n    mp.spawn(work, args=(torch.ones(2),), nprocs=1)\n")))
        self.assertEqual((done.stdout, done.stderr), ("0 [2.0, 2.0] tenon\n", ""))

    def test_processes_of_a_fork_server_know_torch(self):
        done = self.as_torch(self.write("server.py", (
            "import torch, multiprocessing\n"
            "def work(q, x):\n    q.put((torch.__spec__.name, (x * 2).tolist()))\n"
            "if __name__ == '__main__':\n    c = multiprocessing.get_context('forkserver')\n    q = c.Queue()\n"
            "    p = c.Process(target=work, args=(q, torch.ones(2)))\n    p.start()\n    p.join()\n"
            "    print(p.exitcode, q.get() if p.exitcode == 0 else None)\n")))
        self.assertEqual((done.stdout, done.stderr), ("0 ('tenon', [2.0, 2.0])\n", ""))

    def test_install_serves_a_session(self):
        done = self.run_python("-c", (
            "import tenon.as_torch as a\na.install()\na.install()\nimport torch\nfrom importlib.metadata import version\n"
            "print(torch.nn.Linear(2, 3), version('torch'))\n"))
        self.assertEqual(done.stdout, "Linear(in_features=2, out_features=3, bias=True) 2.11.0+tenon\n")

    def test_a_training_script_learns(self):
        done = self.as_torch(self.write("train.py", (
            "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"
            "torch.manual_seed(0)\nif torch.cuda.is_available():\n    torch.cuda.manual_seed_all(0)\n"
            "torch.backends.cudnn.benchmark = True\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
            "torch.set_float32_matmul_precision('high')\n"
            "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
            "x = torch.randn(256, 8)\ny = (x.sum(1) > 0).long()\n"
            "model = torch.compile(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).to(device))\n"
            "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)\n"
            "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=80)\n"
            "for epoch in range(10):\n"
            "    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):\n"
            "        loss = nn.functional.cross_entropy(model(xb.to(device)), yb.to(device))\n"
            "        optimizer.zero_grad(); loss.backward(); optimizer.step(); schedule.step()\n"
            "print(next(iter(model.state_dict())), (model(x).argmax(1) == y).float().mean().item() > 0.95)\n")))
        self.assertEqual((done.stdout, done.stderr), ("_orig_mod.0.weight True\n", ""))


if __name__ == "__main__":
    harness.main()
