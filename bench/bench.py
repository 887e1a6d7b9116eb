#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure Tenon beside its peers in one run, print a table, and write bench.json.

usage: bench.py --build DIR [--rounds N] [--only small|large|python] [--rows NAME,NAME] (rows of large)
For each row the programs take samples in turn, so that a change of the machine's speed meets all of them alike; small
calls by processor time, on one processor, large ones on --threads threads with the peer at its best setting (OpenMP's build of
OpenBLAS, ATEN_CPU_CAPABILITY as the processor allows). A figure is the median of all samples, the spread the middle half
of them, and a ratio the median of the quotients of samples that were taken one right after the other.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

import python_rows
import turns

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
TRAINING = ["mlp_train_step_B64", "char_gpt_train_step"]
PEAK = "char_gpt_peak_bytes"  # told by the program of the second, at its end
TURNS = {"small": 7, "large": 4, "training": 2}  # samples of a row for each of --rounds


def floor_row(row):
    return row[:-len("_out")] if row.startswith("mm_") and row.endswith("_out") else row


def run(path, samples):
    text = subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True, preexec_fn=turns.pin).stdout
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


def existing(programs):
    """Those that were built: the peer's are where it is installed."""
    return {key: program for key, program in programs.items() if os.path.exists(program[0][0])}


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
    told = {}  # what no peer has: costs of being watched, sizes
    steps = args.rounds * [path("bench_tenon"), path("bench_watch"), path("bench_profile")]
    total = len(steps) + len(ROWS)
    for i, step in enumerate(steps):
        run(step, told)
        show_progress(i + 1, total)
    peer_name, table = peer_version(args), []
    for i, name in enumerate(ROWS):
        programs = existing({key: ([path(program), name], {"BENCH_CLOCK": "thread"}, turns.pin)
                             for key, program in (("tenon", "bench_tenon"), ("peer", "peer_torch"))})
        samples, _ = turns.take_turns(programs, TURNS["small"] * args.rounds)
        show_progress(len(steps) + i + 1, total)
        ours, theirs = samples["tenon"], samples.get("peer")
        a, b = statistics.median(ours), theirs and statistics.median(theirs)
        ratio = theirs and turns.quotient(theirs, ours)
        out.append({"name": name, "unit": "ns", "tenon": round(a, 2), "peer": b and round(b, 2),
                    "peer_name": peer_name, "ratio": ratio and round(ratio, 2)})
        table.append((name, f"{a:.1f}", spread(ours), f"{b:.1f}" if b else "-", spread(theirs or []),
                      f"{ratio:.1f}" if ratio else "-"))
    trace = max(0.0, statistics.median(told["loop_watched"]) - statistics.median(told["loop_plain"]))
    cost = lambda on, off: statistics.median(told[on]) - statistics.median(told[off])  # noqa: E731
    recorder = [("recorder_cost_" + what, "ns", cost(what + "_recorder_on", what + "_recorder_off"))
                for what in ("typed", "boxed", "add4") if what + "_recorder_on" in told]
    facts = [("trace_off_cost", "ns", trace)] + watching_costs(told) + [
        ("library_stripped", "bytes", stripped_size(os.path.realpath(os.path.join(args.build, "libtenon.so")))),
        ("table_bytes_per_op", "bytes", statistics.median(told["table_bytes_per_op"]))]
    for name, unit, value in recorder + facts:
        out.append({"name": name, "unit": unit, "tenon": round(value, 2), "peer": None, "peer_name": None,
                    "ratio": None})
        table.append((name, f"{value:.1f}" if unit == "ns" else f"{value:.0f} {unit}", "", "-", "", "-"))
    print_table(("name", "tenon ns", "middle half", f"{peer_name or 'peer'} ns", "middle half", "ratio"), table)


def measure_large(args, name, peer_env):
    """Samples of a row: "tenon", "peer" and floors by their names; and what the programs told besides."""
    path = lambda program: os.path.join(args.build, "bench", program)  # noqa: E731
    kind = "train" if name in TRAINING else "large"
    programs = {"tenon": ([path(kind + "_tenon"), name], {"TENON_NUM_THREADS": str(args.threads)}, None),
                "peer": ([path(kind + "_torch"), name], peer_env, None)}
    for floor in ("memory", "openblas", "onednn"):
        programs[floor] = ([path("large_floor"), f"{floor_row(name)}@{floor}"], peer_env, None)
    n = TURNS["training" if name in TRAINING else "large"] * args.rounds
    return turns.take_turns(existing(programs), n)


def large_row(name, samples):
    """The row of the table and of the file."""
    ours, theirs = samples["tenon"], samples.get("peer")
    a, b = statistics.median(ours), theirs and statistics.median(theirs)
    best = min((key for key in samples if key not in ("tenon", "peer")), key=lambda key: statistics.median(samples[key]), default=None)
    floor = best and statistics.median(samples[best])
    ratio = theirs and turns.quotient(theirs, ours)
    of_floor = best and turns.quotient(samples[best], ours)
    record = {"name": name, "unit": "ns", "tenon": round(a, 1), "peer": b and round(b, 1), "peer_name": None,
              "ratio": ratio and round(ratio, 2), "floor": best and round(floor, 1), "floor_name": best,
              "of_floor": best and round(of_floor, 2)}
    digits = 3 if a < 1e4 else 1
    cell = lambda value: f"{value / 1e3:.{digits}f}" if value else "-"  # noqa: E731
    return record, (name, cell(a), spread([v / 1e3 for v in ours], digits), cell(b), f"{ratio:.2f}" if ratio else "-",
                    f"{cell(floor)} {best}" if best else "", f"{of_floor:.2f}" if best else "")


def large(args, out):
    peer_env = peer_environment(args.threads)
    peer_name, table = peer_version(args), []
    setting = ", ".join(f"{k}={v}" for k, v in peer_env.items() if k != "LD_LIBRARY_PATH")
    rows = [name for name in LARGE + TRAINING if not args.rows or name in args.rows.split(",")]
    for i, name in enumerate(rows):
        samples, rest = measure_large(args, name, peer_env)
        show_progress(i + 1, len(rows))
        record, cells = large_row(name, samples)
        records = [record]
        table.append(cells)
        if PEAK in rest["tenon"]:
            a, b = rest["tenon"][PEAK], rest.get("peer", {}).get(PEAK)
            records.append({"name": PEAK, "unit": "bytes", "tenon": a, "peer": b, "ratio": b and round(b / a, 2)})
            table.append((PEAK, f"{a:.0f}", "", f"{b:.0f}" if b else "-", f"{b / a:.2f}" if b else "-", "", ""))
        out += [dict(r, peer_name=peer_name and f"{peer_name} ({setting})") for r in records]
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
