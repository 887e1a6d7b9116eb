#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs a reproducer with the dispatch trace and every stage line on, under a timeout, and says where it
# stands: when it hangs, what the last line means (`tenon diagnose`); when it returns, that the Meta
# kernel was reached.
#
#   test_hang_with_full_trace.sh [program or script.py]
#
# Without an argument: test_with_dispatch_trace beside this script, or in the build folder of the source tree. A .py runs on Tenon through
# `python3 -m tenon.as_torch`. TENON_COMMAND names the `tenon` to diagnose with, TRACE_TIMEOUT the
# seconds to wait (30), TRACE_LOG keeps the trace.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/test_with_dispatch_trace}
if [ $# -eq 0 ] && [ ! -x "$program" ]; then
    program=$here/../build/repro/test_with_dispatch_trace
    [ -x "$program" ] || { echo "FAIL: there is no test_with_dispatch_trace: build it with make"; exit 1; }
fi
seconds=${TRACE_TIMEOUT:-30}
log=${TRACE_LOG:-}

if [ -z "$log" ]; then
    log=$(mktemp) || exit 1
    trap 'rm -f "$log"' EXIT
fi
tenon=${TENON_COMMAND:-}
for candidate in "$here/../tenon" "$here/../build/tenon" "$here/../../../bin/tenon" tenon; do
    [ -n "$tenon" ] || tenon=$(command -v "$candidate" || true)
done
case $program in
    *.py) command=(python3 -m tenon.as_torch "$program") ;;
    *) command=("$program") ;;
esac

# In one variable each: a shell that traces too must not mix its own lines into the log.
export TORCH_SHOW_DISPATCH_TRACE=1 TENON_SHOW_DISPATCH_TRACE=1 TENON_DISPATCH_DEBUG=mm
timeout -k 2 "$seconds" "${command[@]}" >"$log" 2>&1
status=$?
unset TORCH_SHOW_DISPATCH_TRACE TENON_SHOW_DISPATCH_TRACE TENON_DISPATCH_DEBUG

lines=$(wc -l <"$log")
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    echo "$(basename "$program") did not return within $seconds s; the last lines of $lines:"
    tail -n 5 "$log"
    [ -z "$tenon" ] || "$tenon" diagnose "$log"
    echo "FAIL: it hangs"
    exit 1
fi
if [ "$status" -ne 0 ]; then
    tail -n 20 "$log"
    echo "FAIL: $(basename "$program") ended with status $status"
    exit 1
fi
if ! grep -qF '[DEBUG TORCH_META_FUNC(mm)] Meta function complete' "$log"; then
    tail -n 20 "$log"
    echo "FAIL: it returned, but the Meta kernel of mm left no trace"
    exit 1
fi
echo "PASS: $(basename "$program") returned, the Meta kernel was reached, $lines lines of trace"
