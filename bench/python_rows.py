# SPDX-License-Identifier: MIT
"""The rows of Python: calls beside every torch that is found, training steps beside the program in C.

A torch is looked for in the interpreters /usr/bin/python3 and $PEER_PYTHON (several, with colons between). Everything
runs in processes of its own, in turn. Calls and training steps: processor time of one thread; imports: time that passes,
in fresh processes whose bytecode is cached.
"""
import os
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = ["py_add4", "py_add4_grad", "py_view", "py_mm16", "py_getitem", "py_meta_matmul", "py_meta_linear", "py_import"]
TRAINING = ["mlp_train_step_B64", "char_gpt_train_step"]
PYTHON = "/usr/bin/python3"
IMPORTS = 3


def pin():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class Package:
    """A package in an interpreter, and its samples."""

    def __init__(self, interpreter, name, path=None):
        self.interpreter, self.name, self.samples, self.version = interpreter, name, {}, None
        self.environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
        self.environment["OMP_NUM_THREADS"] = "1"
        if path:
            self.environment["PYTHONPATH"] = path

    def run(self, *arguments):
        """False when it cannot run there."""
        done = subprocess.run([self.interpreter, os.path.join(HERE, "py_calls.py"), self.name, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pin, env=self.environment)
        for line in done.stdout.splitlines():
            name, value = line.split()
            if name == "version":
                self.version = value
            else:
                self.samples.setdefault(name, []).append(float(value))
        return done.returncode == 0

    def median(self, row):
        return statistics.median(self.samples[row]) if self.samples.get(row) else None

    @property
    def label(self):
        return f"{self.name} {self.version}"


def peers():
    """Every torch that can be imported; where there is none, what was tried."""
    wanted = [PYTHON] + [p for p in os.environ.get("PEER_PYTHON", "").split(":") if p]
    found = [Package(path, "torch") for path in dict.fromkeys(wanted) if os.path.exists(path)]
    return [p for p in found if p.run("import")], wanted


def calls(build, rounds, out, print_table):
    ours = Package(PYTHON, "tenon", os.path.join(build, "python"))
    if not ours.run("import"):
        print("\nno rows of Python: the extension is not in this build")
        return False
    others, tried = peers()
    packages = [ours] + others
    for p in packages:  # that was the run which cached bytecode, and warmed the disk
        p.samples.clear()
    for i in range(max(rounds, IMPORTS)):
        for p in packages:
            if i < rounds:
                p.run()
            if i < IMPORTS:
                p.run("import")
    table = []
    for row in CALLS:
        a = ours.median(row)
        cells = [row, f"{a:.1f}"]
        for p in others or [None]:
            b = p and p.median(row)
            out.append({"name": row, "unit": "ns", "tenon": round(a, 2), "peer": b and round(b, 2),
                        "peer_name": p and f"{p.label} (Python)", "ratio": b and round(b / a, 2)})
            cells += [f"{b:.1f}" if b else "-", f"{b / a:.1f}" if b else "-"]
        table.append(cells)
    header = ["name", "tenon ns"]
    for p in others:
        header += [f"{p.label} ns", "ratio"]
    print("\nfrom Python, one thread" + ("" if others else "; no torch in " + ", ".join(tried)))
    print_table(header + ([] if others else ["peer ns", "ratio"]), table)
    return True


def training(build, rounds, out, print_table):
    env = dict(os.environ, TENON_NUM_THREADS="1", BENCH_CLOCK="thread", PYTHONPATH=os.path.join(build, "python"))
    samples = {}
    for _ in range(rounds):
        for command in ([os.path.join(build, "bench", "train_tenon")], [PYTHON, os.path.join(HERE, "py_train.py")]):
            text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, preexec_fn=pin, env=env).stdout
            for line in text.splitlines():
                name, value = line.split()
                samples.setdefault(name, []).append(float(value))
    table = []
    for row in TRAINING:
        a, c = statistics.median(samples["py_" + row]), statistics.median(samples[row])
        out.append({"name": "py_" + row, "unit": "ns", "tenon": round(a, 1), "peer": round(c, 1),
                    "peer_name": "tenon in C", "ratio": round(c / a, 3)})
        table.append(("py_" + row, f"{a / 1e3:.1f}", f"{c / 1e3:.1f}", f"{100 * (a / c - 1):+.1f} %"))
    print("\ntraining from Python and from C, one thread's processor time")
    print_table(("name", "Python µs", "C µs", "more"), table)


def measure(build, rounds, out, print_table):
    if calls(build, rounds, out, print_table):
        training(build, rounds, out, print_table)
