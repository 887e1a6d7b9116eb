#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure Tenon beside its peers in one run, print a table, and write bench.json.

usage: bench.py --build DIR [--rounds N]
The programs are run in turn, round after round, each pinned to one processor, so that a change of the machine's
speed meets all of them alike. A figure is the median of all samples; the spread is the middle half of them.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

# name, unit, better is lower
ROWS = ["add4_nograd", "add4_out", "empty4", "view", "mm16_nograd", "meta_add", "meta_matmul_3d2d",
        "fake_add", "fake_matmul_3d2d",
        "dispatch_only_typed", "dispatch_only_boxed"]


def pin():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def run(path, samples, environment=None):
    env = dict(os.environ, **(environment or {}))
    text = subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True, preexec_fn=pin, env=env).stdout
    for line in text.splitlines():
        name, value = line.split()
        samples.setdefault(name, []).append(float(value))


def show_progress(done, total):
    if not sys.stderr.isatty():
        return
    width = 30
    filled = width * done // total
    end = "\n" if done == total else ""
    print(f"\rmeasuring [{'#' * filled}{'.' * (width - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def spread(values):
    if len(values) < 4:
        return ""
    quarters = statistics.quantiles(values, n=4)
    return f"{quarters[0]:.1f}–{quarters[2]:.1f}"


def stripped_size(library):
    copy = library + ".stripped"
    subprocess.run(["strip", "-o", copy, library], check=True)
    size = os.path.getsize(copy)
    os.remove(copy)
    return size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    tenon = os.path.join(args.build, "bench", "bench_tenon")
    watch = os.path.join(args.build, "bench", "bench_watch")
    peer = os.path.join(args.build, "bench", "peer_torch")
    has_peer = os.path.exists(peer)
    ours, watched, theirs = {}, {}, {}
    steps = [(tenon, ours), (watch, watched)] + ([(peer, theirs)] if has_peer else [])
    total = args.rounds * len(steps)
    for i in range(total):
        run(*steps[i % len(steps)])
        show_progress(i + 1, total)

    peer_name = None
    if has_peer:
        version = subprocess.run([peer, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
        peer_name = version or "libtorch"
    out, table = [], []
    for name in ROWS:
        a = statistics.median(ours[name])
        b = statistics.median(theirs[name]) if name in theirs else None
        out.append({"name": name, "unit": "ns", "tenon": round(a, 2), "peer": b and round(b, 2),
                    "peer_name": peer_name, "ratio": b and round(b / a, 2)})
        table.append((name, f"{a:.1f}", spread(ours[name]), f"{b:.1f}" if b else "-",
                      spread(theirs.get(name, [])), f"{b / a:.1f}" if b else "-"))
    trace = max(0.0, statistics.median(watched["loop_watched"]) - statistics.median(watched["loop_plain"]))
    facts = [("trace_off_cost", "ns", trace),
             ("library_stripped", "bytes", stripped_size(os.path.realpath(os.path.join(args.build, "libtenon.so")))),
             ("table_bytes_per_op", "bytes", statistics.median(ours["table_bytes_per_op"]))]
    for name, unit, value in facts:
        out.append({"name": name, "unit": unit, "tenon": round(value, 2), "peer": None, "peer_name": None,
                    "ratio": None})
        table.append((name, f"{value:.1f}" if unit == "ns" else f"{value:.0f} {unit}", "", "-", "", "-"))

    header = ("name", "tenon ns", "middle half", f"{peer_name or 'peer'} ns", "middle half", "ratio")
    widths = [max(len(str(row[i])) for row in table + [header]) for i in range(6)]
    for row in [header] + table:
        print("  ".join(str(cell).rjust(w) if i else str(cell).ljust(w) for i, (cell, w) in enumerate(zip(row, widths))))
    if not has_peer:
        print("no peer: libtorch was not found when this was built (make bench PEERS=1 installs it)")
    with open(os.path.join(args.build, "bench.json"), "w") as f:
        json.dump(out, f, indent=1)


main()
