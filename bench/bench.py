#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure Tenon beside its peers in one run, print a table, and write bench.json.

usage: bench.py --build DIR [--rounds N] [--only small|large|python] [--rows NAME,NAME] (rows of large)
The programs are run in turn, round after round, so that a change of the machine's speed meets all of them alike; small
calls pinned to one processor, large ones on --threads threads with the peer at its best setting (OpenMP's build of
OpenBLAS, ATEN_CPU_CAPABILITY as the processor allows). A figure is the median of all samples; the spread is the middle
half of them.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

import python_rows

# Small calls, one thread.
ROWS = ["add4_nograd", "add4_out", "empty4", "view", "mm16_nograd", "meta_add", "meta_matmul_3d2d",
        "fake_add", "fake_matmul_3d2d",
        "dispatch_only_typed", "dispatch_only_boxed",
        "add4_grad", "forward_grad_per_node", "backward_per_node", "meta_matmul_3d2d_grad", "meta_linear_grad"]
# Kernels, several threads. Floors are named ROW@FLOOR; the best one is shown. Libraries write products into memory that is
# there: what compares with that is ROW_out, for which their floor of ROW is taken; ROW allocates its result.
LARGE = ["add_4M", "sum_4M", "exp_4M", "gelu_4M", "softmax_4096x1024", "layer_norm_4096x1024", "cross_entropy",
         "embedding", "index_select", "cat", "transpose_copy_2048", "mm_16", "mm_16_out", "mm_64",
         "mm_64_out", "mm_256", "mm_1024", "mm_2048", "bmm_64x128x64", "conv2d_resnet_3x3_56", "conv2d_resnet_1x1_28", "conv2d_resnet_3x3_14_s2", "softmax_8x16",
         "layer_norm_8x16", "sum_64", "sdpa_causal_T1024"]
# Whole training steps, several threads.
TRAINING = ["mlp_train_step_B64", "char_gpt_train_step", "char_gpt_peak_bytes"]


def floor_row(row):
    return row[:-len("_out")] if row.startswith("mm_") and row.endswith("_out") else row


def pin():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def run(path, samples, environment=None, row=None):
    env = dict(os.environ, **(environment or {}))
    before = pin if environment is None else None
    text = subprocess.run([path] + ([row] if row else []), check=True, stdout=subprocess.PIPE, text=True, preexec_fn=before, env=env).stdout
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


def spread(values, digits=1):
    if len(values) < 4:
        return ""
    quarters = statistics.quantiles(values, n=4)
    return f"{quarters[0]:.{digits}f}–{quarters[2]:.{digits}f}"


def stripped_size(library):
    copy = library + ".stripped"
    subprocess.run(["strip", "-o", copy, library], check=True)
    size = os.path.getsize(copy)
    os.remove(copy)
    return size


def cpu_capability():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        text = f.read()
    return "avx512" if "avx512f" in text else "avx2" if "avx2" in text else "default"


def peer_environment(threads):
    """The peer at its best: with OpenBLAS's pthread build and several threads libgomp's spinning fights it, and on a
    processor that is younger than itself OpenBLAS takes kernels without AVX unless it is told otherwise."""
    env = {"OMP_NUM_THREADS": str(threads), "ATEN_CPU_CAPABILITY": cpu_capability()}
    core = {"avx512": "SkylakeX", "avx2": "Haswell"}.get(env["ATEN_CPU_CAPABILITY"])
    if core:
        env["OPENBLAS_CORETYPE"] = core
    openmp = glob.glob("/usr/lib/*/openblas-openmp")
    if openmp:
        env["LD_LIBRARY_PATH"] = ":".join(openmp + [os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")
    return env


def rounds(steps, n):
    total = n * len(steps)
    for i in range(total):
        run(*steps[i % len(steps)])
        show_progress(i + 1, total)


def print_table(header, table):
    widths = [max(len(str(row[i])) for row in table + [header]) for i in range(len(header))]
    for row in [header] + table:
        print("  ".join(str(cell).rjust(w) if i else str(cell).ljust(w) for i, (cell, w) in enumerate(zip(row, widths))))


def watching_costs(samples):
    """What a dispatch costs more while it is watched: mm on meta is two dispatches, the operator without work one."""
    def more(watched, plain, dispatches):
        return (statistics.median(samples[watched]) - statistics.median(samples[plain])) / dispatches

    return [("trace_on_cost", "ns", more("mm_traced", "mm_unwatched", 2)),
            ("stages_on_cost", "ns", more("mm_stages", "mm_unwatched", 2)),
            ("profile_event_cost", "ns", more("noop_profiled", "noop_unwatched", 1)),
            ("profile_call_cost", "ns", more("mm_profiled", "mm_unwatched", 1)),
            ("profile_all_options_event_cost", "ns", more("mm_profiled_all", "mm_unwatched", 2))]


def small(args, out):
    path = lambda name: os.path.join(args.build, "bench", name)  # noqa: E731
    peer = path("peer_torch")
    has_peer = os.path.exists(peer)
    ours, watched, theirs = {}, {}, {}
    rounds([(path("bench_tenon"), ours), (path("bench_watch"), watched), (path("bench_profile"), watched)]
           + ([(peer, theirs)] if has_peer else []), args.rounds)
    peer_name, table = peer_version(args), []
    for name in ROWS:
        a = statistics.median(ours[name])
        b = statistics.median(theirs[name]) if name in theirs else None
        out.append({"name": name, "unit": "ns", "tenon": round(a, 2), "peer": b and round(b, 2),
                    "peer_name": peer_name, "ratio": b and round(b / a, 2)})
        table.append((name, f"{a:.1f}", spread(ours[name]), f"{b:.1f}" if b else "-",
                      spread(theirs.get(name, [])), f"{b / a:.1f}" if b else "-"))
    trace = max(0.0, statistics.median(watched["loop_watched"]) - statistics.median(watched["loop_plain"]))
    cost = lambda on, off: statistics.median(ours[on]) - statistics.median(ours[off])  # noqa: E731
    recorder = [("recorder_cost_" + what, "ns", cost(what + "_recorder_on", what + "_recorder_off"))
                for what in ("typed", "boxed", "add4") if what + "_recorder_on" in ours]
    facts = [("trace_off_cost", "ns", trace)] + watching_costs(watched) + [
        ("library_stripped", "bytes", stripped_size(os.path.realpath(os.path.join(args.build, "libtenon.so")))),
        ("table_bytes_per_op", "bytes", statistics.median(ours["table_bytes_per_op"]))]
    for name, unit, value in recorder + facts:
        out.append({"name": name, "unit": unit, "tenon": round(value, 2), "peer": None, "peer_name": None,
                    "ratio": None})
        table.append((name, f"{value:.1f}" if unit == "ns" else f"{value:.0f} {unit}", "", "-", "", "-"))
    print_table(("name", "tenon ns", "middle half", f"{peer_name or 'peer'} ns", "middle half", "ratio"), table)


def large(args, out):
    path = lambda name: os.path.join(args.build, "bench", name)  # noqa: E731
    peer_env = peer_environment(args.threads)
    ours, theirs, floors = {}, {}, {}
    mine = {"TENON_NUM_THREADS": str(args.threads)}
    steps = [(path("large_tenon"), ours, mine), (path("train_tenon"), ours, mine)]
    for program, samples in (("large_torch", theirs), ("train_torch", theirs), ("large_floor", floors)):
        if os.path.exists(path(program)):
            steps.append((path(program), samples, peer_env))
    if args.rows:
        floors_of = lambda row: [f"{floor_row(row)}@{name}" for name in ("memory", "openblas", "onednn")]  # noqa: E731
        steps = [step + (name,) for step in steps for row in args.rows.split(",")
                 for name in (floors_of(row) if step[1] is floors else [row])
                 if step[1] is floors or (row in TRAINING) == ("train" in os.path.basename(step[0]))]
    rounds(steps, max(1, args.rounds // 2))
    peer_name, table = peer_version(args), []
    setting = ", ".join(f"{k}={v}" for k, v in peer_env.items() if k != "LD_LIBRARY_PATH")
    for name in (name for name in LARGE + TRAINING if name in ours):
        unit, scale = ("bytes", 1) if name.endswith("_bytes") else ("ns", 1e3)
        a = statistics.median(ours[name])
        b = statistics.median(theirs[name]) if name in theirs else None
        best = min(((statistics.median(v), k.split("@")[1]) for k, v in floors.items() if k.startswith(floor_row(name) + "@")),
                   default=None)
        out.append({"name": name, "unit": unit, "tenon": round(a, 1), "peer": b and round(b, 1),
                    "peer_name": peer_name and f"{peer_name} ({setting})", "ratio": b and round(b / a, 2),
                    "floor": best and round(best[0], 1), "floor_name": best and best[1]})
        digits = 3 if a / scale < 10 else 1
        table.append((name, f"{a / scale:.{digits}f}", spread([v / scale for v in ours[name]], digits),
                      f"{b / scale:.{digits}f}" if b else "-", f"{b / a:.2f}" if b else "-",
                      f"{best[0] / 1e3:.{digits}f} {best[1]}" if best else "", f"{best[0] / a:.2f}" if best else ""))
    print(f"\n{args.threads} threads; peer: {setting}; mm_N_out: into a result that is there, as libraries do")
    print_table(("name", "tenon µs", "middle half", f"{peer_name or 'peer'} µs", "ratio", "floor µs", "of floor"), table)


def peer_version(args):
    peer = os.path.join(args.build, "bench", "peer_torch")
    if not os.path.exists(peer):
        return None
    return subprocess.run([peer, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip() or "libtorch"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("small", "large", "python"))
    parser.add_argument("--rows")
    args = parser.parse_args()
    if args.rows:
        args.only = "large"
    out = []
    if args.only in (None, "small"):
        small(args, out)
    if args.only in (None, "large"):
        large(args, out)
    if args.only in (None, "python"):
        python_rows.measure(args.build, max(1, args.rounds // 2), out, print_table)
    if args.only != "python" and not peer_version(args):
        print("no peer: libtorch was not found when this was built (make bench PEERS=1 installs it)")
    with open(os.path.join(args.build, "bench.json"), "w") as f:
        json.dump(out, f, indent=1)


main()
