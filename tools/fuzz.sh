#!/bin/bash
# SPDX-License-Identifier: MIT
# Run every fuzz target, or those that are named: tools/fuzz.sh [seconds] [target…]
#
# With clang and its libFuzzer the targets are guided by coverage, and what they find is kept for the
# next run; otherwise the driver of our own (tests/fuzz/standalone.c) mutates the corpus under the
# address and undefined-behaviour sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
wanted=" $* "

has_libfuzzer() {
    command -v clang >/dev/null 2>&1 &&
        echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
        clang -x c - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null
}

if has_libfuzzer; then
    preset="fuzz" build="build-fuzz"
else
    echo "clang's libFuzzer is not installed: random mutations, not guided by coverage"
    preset="asan" build="build-address-undefined"
fi
cmake --preset "$preset" --log-level=WARNING
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target fuzzers

ran=0 failed=0
for program in "$build"/fuzz/fuzz_*; do
    name=$(basename "$program")
    if [ ! -x "$program" ] || [[ $wanted != "  " && $wanted != *" $name "* ]]; then
        continue
    fi
    corpora=()
    [ -d "tests/fuzz/corpus/${name#fuzz_}" ] && corpora=("tests/fuzz/corpus/${name#fuzz_}")
    echo "-- $name, $seconds seconds"
    if [ "$preset" = fuzz ]; then
        mkdir -p "$build/corpus/$name"
        "$program" -max_total_time="$seconds" -timeout=10 -artifact_prefix="$build/$name-" \
            "$build/corpus/$name" "${corpora[@]}" || failed=$((failed + 1))
    else
        "$program" -t "$seconds" -s "$RANDOM" "${corpora[@]}" || failed=$((failed + 1))
    fi
    ran=$((ran + 1))
done
echo "$((ran - failed)) passed, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
