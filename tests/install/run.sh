#!/bin/bash
# SPDX-License-Identifier: MIT
# Installing promises: a program of the user's builds against the installed tree with pkg-config, with
# CMake, statically and shared, and runs; the tree may be moved; nothing in it names the build folder.
#
#   tests/install/run.sh <build folder> [C compiler]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
cc=${2:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
step() {
    echo "$1"
    passed=$((passed + 1))
}

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved" # the prefix is found, not remembered
prefix=$work/moved
pc=$(dirname "$(find "$prefix" -name tenon.pc)")
export PKG_CONFIG_PATH=$pc
lib=$(dirname "$pc")

if grep -rlF "$build" "$prefix" --include='*.pc' --include='*.cmake' --include='*.h'; then
    echo "the files above name the build folder"
    exit 1
fi
step "nothing that was installed names the build folder"

[ -f "$prefix/include/tenon/base.h" ] && [ -e "$lib/libtenon.so.0" ] && [ -f "$lib/libtenon.a" ]
step "headers and both libraries are there"

# Each command has a page of its name; one that only leads to another page leads to one that is there.
for command in ops explain trace run doctor profile diagnose repro; do
    page=$prefix/share/man/man1/tenon-$command.1
    [ -s "$page" ]
    read -r first <"$page"
    [[ $first != .so* ]] || [ -s "$prefix/share/man/${first#.so }" ]
done
step "every command has a manual page"

guides=$(dirname "$(find "$prefix" -name differences.md)")
[ -f "$guides/user/torch-coverage.md" ] && [ -f "$guides/user/c-api.md" ]
step "the guides are there"

# shellcheck disable=SC2046  # flags are words
"$cc" -std=c11 -Wall -Werror "$here/user.c" $(pkg-config --cflags --libs tenon) -o "$work/shared"
LD_LIBRARY_PATH=$lib "$work/shared"
step "a shared program builds with pkg-config and runs"

# shellcheck disable=SC2046
"$cc" -std=c11 -Wall -Werror "$here/user.c" $(pkg-config --cflags tenon) "$lib/libtenon.a" \
    $(pkg-config --static --libs-only-l tenon | sed 's/-ltenon//') -o "$work/static"
"$work/static"
step "a static program builds with pkg-config and runs"

for example in "$here"/../../examples/*.c; do
    # shellcheck disable=SC2046
    "$cc" -std=c11 -Wall -Wextra -Werror "$example" $(pkg-config --cflags --libs tenon) -o "$work/example"
    LD_LIBRARY_PATH=$lib "$work/example" >/dev/null 2>"$work/log" || { cat "$work/log"; exit 1; }
done
step "every example builds with pkg-config and runs"

cmake -S "$here" -B "$work/cmake" -G Ninja --log-level=WARNING -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc"
cmake --build "$work/cmake"
"$work/cmake/user_shared"
"$work/cmake/user_static"
for example in "$work"/cmake/example_*; do
    "$example" >/dev/null 2>"$work/log" || { cat "$work/log"; exit 1; }
done
step "find_package(Tenon) gives Tenon::tenon and Tenon::tenon_static, and builds every example"

if [ -x "$prefix/bin/tenon" ]; then
    "$prefix/bin/tenon" --version >/dev/null
    step "the installed command runs"
    "$prefix/bin/tenon" repro --timeout=300 >"$work/log" || { cat "$work/log"; exit 1; }
    step "tenon repro finds its programs in a tree that was moved"
fi
echo "$passed passed, 0 failed"
