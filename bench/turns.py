# SPDX-License-Identifier: MIT
"""Programs of the benchmark that take turns: a sample of one, a sample of the next, and so on. What slows the machine
down for a while slows all of them down, so that quotients of neighbours mean something where figures alone do not."""
import os
import signal
import statistics
import subprocess


def pin():
    """In a child, before it runs: on one processor."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class Paced:
    """A program that takes a sample whenever it is told to."""

    def __init__(self, command, env, before):
        env = dict(os.environ, BENCH_PACED="1", **env)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, preexec_fn=before)

    def sample(self):
        """None: the program has no such row, and has ended. Between two samples it is stopped: threads that wait for more
        work, as OpenMP's do, would take the processors from whoever has its turn."""
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        self.process.send_signal(signal.SIGSTOP)
        return float(line.split()[1]) if line else None

    def end(self):
        """What else it had to tell: {name: figure}."""
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        rest = self.process.stdout.read().decode()
        if self.process.wait():
            raise RuntimeError("a program of the benchmark failed")
        return {name: float(value) for name, value in map(str.split, rest.splitlines())}


def take_turns(programs, n):
    """Samples of each of PROGRAMS, {key: (command, environment, what to do in the child first)}, and what they told
    besides. Each warms up and takes a sample that does not count before the next one starts; what has no such row is left
    out."""
    players, rest = {}, {}
    for key, program in programs.items():
        player = Paced(*program)
        if player.sample() is None:
            player.end()
        else:
            players[key] = player
    samples = {key: [] for key in players}
    for _ in range(n if players else 0):
        for key, player in players.items():
            samples[key].append(player.sample())
    for key, player in players.items():
        rest[key] = player.end()
    return samples, rest


def quotient(numerators, denominators):
    """The median over neighbours."""
    return statistics.median(a / b for a, b in zip(numerators, denominators))
