# SPDX-License-Identifier: MIT
# The commands that people type. The build itself is CMake's: CMakeLists.txt.
#
#   make            build the library and the command
#   make demo       install what is missing, build, show what Tenon does, train a small GPT for a minute
#   make test       install what is missing, build, run every test: plain, then under the address and
#                   undefined-behaviour sanitizers, then threads under the thread sanitizer
#   make test SAN=address,undefined     that build alone (or SAN=thread)
#   make test-python-asan     the Python tests with the extension under the address sanitizer
#   make check      the plain build's tests alone, for every day
#   make bench      measure, beside libtorch where it is installed; PEERS=1 installs it
#   make install    PREFIX=/usr/local, DESTDIR honoured
#   make lint       formatting, layers, headers, symbols, shell scripts, file sizes
#   make format     let clang-format rewrite the sources
#   make fuzz       run every fuzz target for FUZZ_SECONDS=60
#   make clean      remove every build folder
#
# BUILD=folder builds elsewhere; JOBS=n; CMAKE_ARGS=… goes to CMake; TESTS=regex runs some tests.

BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
SAN ?=
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
export BUILD JOBS CMAKE_ARGS TESTS

CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_ARGS)

.PHONY: all deps demo test test-python-asan check bench install lint format fuzz clean help
.NOTPARALLEL:

all: deps
	@$(CONFIGURE) --log-level=WARNING
	@cmake --build $(BUILD) -j $(JOBS) --target product

deps:
	@tools/deps.sh

demo: all
	@$(BUILD)/tenon demo
	@if [ -e $(BUILD)/python/tenon/_C.abi3.so ]; then \
	    PYTHONPATH=$(BUILD)/python $(PYTHON) -B examples/char_gpt.py --out $(BUILD)/char_gpt; \
	else echo "the Python package was not built: examples/char_gpt.py does not run"; fi

test:
	@tools/deps.sh tests
	@$(PYTHON) -B tools/test.py $(if $(SAN),--san $(SAN),--all)

test-python-asan: deps
	@$(PYTHON) -B tools/test.py --python-asan

check: deps
	@$(PYTHON) -B tools/test.py

bench:
	@tools/deps.sh $(if $(filter 1,$(PEERS)),peers)
	@$(CONFIGURE) --log-level=WARNING
	@cmake --build $(BUILD) -j $(JOBS) --target bench

install: all
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

lint:
	@$(PYTHON) -B tools/lint.py --build $(BUILD)

format:
	@$(PYTHON) -B tools/lint.py --format

fuzz: deps
	@tools/fuzz.sh $(FUZZ_SECONDS)

clean:
	rm -rf build build-*

help:
	@awk 'NR > 1 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' Makefile
