#!/bin/bash
# SPDX-License-Identifier: MIT
# What Tenon needs from Debian: installed when this runs as root, named otherwise.
#
#   tools/deps.sh         to build, test and show
#   tools/deps.sh tests   also what some tests use; without it they are skipped and say so
#   tools/deps.sh peers   also what `make bench` measures itself against
#   tools/deps.sh lint    also what `make lint` would like to have
#
# A tool that is in PATH counts as present, wherever it came from. When nothing is missing the network
# is not touched and nothing is printed.
set -euo pipefail

# has_tool NAME…: all are in PATH.
has_tool() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || return 1
    done
}

has_package() {
    command -v dpkg-query >/dev/null 2>&1 &&
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Can the compiler link a program with this library and find this header?
can_link() { # library header
    local cc=${CC:-cc}
    command -v "$cc" >/dev/null 2>&1 &&
        printf '#include <%s>\nint main(void){return 0;}\n' "$2" |
        "$cc" -x c - -o /dev/null "-l$1" >/dev/null 2>&1
}

python=/usr/bin/python3
[ -x "$python" ] || python=python3
has_python_module() { "$python" -c "import $1" >/dev/null 2>&1; }
has_python_headers() {
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' >/dev/null 2>&1
}

required=()
optional=()
need() { # package, then the test that says it is there
    local package=$1
    shift
    "$@" || has_package "$package" || required+=("$package")
}
want() {
    local package=$1
    shift
    "$@" || has_package "$package" || optional+=("$package")
}

need build-essential has_tool make cc c++ ar nm
need cmake has_tool cmake ctest
need ninja-build has_tool ninja
need pkg-config has_tool pkg-config
need python3 has_tool python3
want libopenblas-dev can_link openblas cblas.h
# The oracle of tests/cpu/test_ulp.c.
want libmpfr-dev can_link mpfr mpfr.h
# The Python package, and its tests.
want python3-dev has_python_headers
want python3-numpy has_python_module numpy

for group in "$@"; do
    case $group in
        peers)
            need libtorch-dev false
            need python3-torch false
            need python3-numpy false
            # With two threads libgomp's spinning fights the pthread build: torch is at its best with this one.
            need libopenblas0-openmp false
            need libdnnl-dev false
            ;;
        tests)
            # The profile's page is tested in a browser.
            want chromium has_tool chromium
            ;;
        lint)
            need clang-format-14 has_tool clang-format-14
            need shellcheck has_tool shellcheck
            ;;
        *)
            echo "deps.sh: unknown group $group (known: tests, peers, lint)" >&2
            exit 2
            ;;
    esac
done

missing=("${required[@]}" "${optional[@]}")
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "Missing, by their Debian names: ${missing[*]}" >&2
    [ ${#required[@]} -eq 0 ] && exit 0
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    if [ ${#required[@]} -eq 0 ]; then
        echo "Optional, and done without: sudo apt-get install ${optional[*]}" >&2
        exit 0
    fi
    echo "sudo apt-get install ${missing[*]}"
    exit 1
fi

echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y --no-install-recommends "${missing[@]}"; }
# A machine that was just made has no package lists, or lists too old to be served: get new ones then.
known() { apt-get install --print-uris --no-install-recommends "${missing[@]}" >/dev/null 2>&1; }
if { known || apt-get update; } && { install || { apt-get update && install; }; }; then
    exit 0
fi
if [ ${#required[@]} -eq 0 ]; then
    echo "Could not install ${optional[*]}; going on without, since it is optional." >&2
    exit 0
fi
echo "Could not install ${missing[*]}: is there a network?" >&2
exit 1
