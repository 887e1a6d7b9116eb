# SPDX-License-Identifier: MIT
"""The rows of Python: calls beside every torch that is found, training steps beside the program in C.

A torch is looked for in the interpreters /usr/bin/python3 and $PEER_PYTHON (several, with colons between). Everything
runs in processes of its own, in turn. Calls and training steps of one thread: its processor time; imports: time that
passes, in fresh processes whose bytecode is cached; training steps of two threads: time that passes.
"""
import os
import statistics
import subprocess

import turns

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = ["py_add4", "py_add4_grad", "py_view", "py_mm16", "py_getitem", "py_meta_matmul", "py_meta_linear", "py_import"]
TRAINING = ["mlp_train_step_B64", "char_gpt_train_step"]
PYTHON = "/usr/bin/python3"
IMPORTS = 3
PAIRS, TURNS = 5, {1: 5, 2: 9}  # of training: pairs of processes, samples of each by the number of threads


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
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=turns.pin, env=self.environment)
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


def pairs_of_samples(build, row, threads, rounds):
    """Lists of samples, from Python and from C, one of each for every pair of processes: where memory happens to lie
    counts too."""
    env = {"TENON_NUM_THREADS": str(threads), "BENCH_CLOCK": "thread" if threads == 1 else "wall",
           "PYTHONPATH": os.path.join(build, "python")}
    before = turns.pin if threads == 1 else None
    for _ in range(max(rounds, PAIRS)):
        ours = turns.Paced([PYTHON, os.path.join(HERE, "py_train.py"), "tenon", "py_" + row], env, before)
        theirs = turns.Paced([os.path.join(build, "bench", "train_tenon"), row], env, before)
        samples = [(ours.sample(), theirs.sample()) for _ in range(TURNS[threads])]
        ours.end()
        theirs.end()
        yield [list(column) for column in zip(*samples)]


def training(build, rounds, out, print_table):
    """Both programs of a row take samples in turn: what slows the machine down for a while slows both down. The figure
    of one thread is the median of the quotients of neighbours. With two threads a sample is only as good as the quiet
    that both had, so that the quickest of each process counts, and the figure is the median over the processes."""
    table = []
    for row, threads in [(row, threads) for row in TRAINING for threads in (1, 2)]:
        if threads > len(os.sched_getaffinity(0)):
            continue
        python, c, quotients = [], [], []
        for ours, theirs in pairs_of_samples(build, row, threads, rounds):
            if threads > 1:
                ours, theirs = [min(ours)], [min(theirs)]
            python += ours
            c += theirs
            quotients += [x / y for x, y in zip(ours, theirs)]
        a, b, more = statistics.median(python), statistics.median(c), statistics.median(quotients)
        name = "py_" + row + ("" if threads == 1 else f"_{threads}_threads")
        out.append({"name": name, "unit": "ns", "tenon": round(a, 1), "peer": round(b, 1),
                    "peer_name": "tenon in C", "ratio": round(1 / more, 3)})
        table.append((name, f"{a / 1e3:.1f}", f"{b / 1e3:.1f}", f"{100 * (more - 1):+.1f} %"))
    print("\ntraining from Python and from C: one thread's processor time; two threads, time that passes")
    print_table(("name", "Python µs", "C µs", "more"), table)


def measure(build, rounds, out, print_table):
    if calls(build, rounds, out, print_table):
        training(build, rounds, out, print_table)
