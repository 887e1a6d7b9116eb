#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that #include lines point down the layers (levels: tools/layers.txt).

  src/<layer>/        itself, strictly lower layers, tenon/ and generated headers of its layer or below
  include/tenon/      tenon/ alone
  cli examples bench python   tenon/ and their own folder: they are users

A generated source belongs to the layer whose CMakeLists.txt takes it. Each violation is one line
`file:line: what`. The twin of this check, by linking, is the CMake target `layer_check`.
"""

import argparse
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = (".c", ".h", ".inc", ".cu", ".cpp", ".cc")
USERS = ("cli", "examples", "bench", "python")


def read_levels(path):
    """{layer: level}, {generated header: layer}, {files outside src/ that may look inside}."""
    levels, generated, inside = {}, {}, set()
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            if len(words) != 2:
                sys.exit("%s:%d: want `folder level`, `gen/header.h layer` or `file inside`" %
                         (path, number))
            if words[1] == "inside":
                inside.add(words[0])
            elif words[0].startswith("gen/"):
                generated[words[0]] = words[1]
            else:
                levels[words[0]] = int(words[1])
    return levels, generated, inside


def files_of(folder):
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(SOURCES):
                yield os.path.join(path, name)


def includes_of(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) == '"', match.group(2)


def own_file(path, name, folder):
    """Does NAME, as the compiler looks it up beside PATH, lie inside FOLDER?"""
    found = os.path.normpath(os.path.join(os.path.dirname(path), name))
    return os.path.isfile(found) and found.startswith(os.path.normpath(folder) + os.sep)


def generated_of(folder, gen):
    """Generated sources that a layer's CMakeLists.txt takes."""
    listing = os.path.join(folder, "CMakeLists.txt")
    if gen and os.path.isfile(listing):
        with open(listing, encoding="utf-8") as file:
            for words in re.findall(r"\bGENERATED\s+((?:[\w/]+\.c\s*)+)", file.read()):
                for name in words.split():
                    if os.path.isfile(os.path.join(gen, name)):
                        yield os.path.join(gen, name)


def check_layer(root, layer, levels, generated, gen):
    folder = os.path.join(root, "src", layer)
    for path in list(files_of(folder)) + list(generated_of(folder, gen)):
        for number, quoted, name in includes_of(path):
            first = name.split("/", 1)[0]
            where = "%s:%d" % (os.path.relpath(path, root), number)
            if first == "tenon" or (not quoted and first not in levels):
                continue
            if ".." in name.split("/"):
                yield "%s: \"%s\" climbs; name it from src/" % (where, name)
            elif first == "gen":
                owner = generated.get(name)
                if owner is None:
                    yield "%s: %s has no layer in tools/layers.txt" % (where, name)
                elif owner != layer and levels[owner] >= levels[layer]:
                    yield "%s: %s (level %d) includes %s of %s (level %d)" % (
                        where, layer, levels[layer], name, owner, levels[owner])
            elif first in levels and "/" in name:
                if first != layer and levels[first] >= levels[layer]:
                    yield "%s: %s (level %d) includes %s (level %d)" % (
                        where, layer, levels[layer], name, levels[first])
            elif not own_file(path, name, folder):
                yield "%s: \"%s\" is neither a layer's header nor a file of %s" % (where, name, layer)


def check_public(root, folder, only_tenon, inside):
    for path in files_of(os.path.join(root, folder)):
        if os.path.relpath(path, root) in inside:
            continue
        for number, quoted, name in includes_of(path):
            where = "%s:%d" % (os.path.relpath(path, root), number)
            if name.startswith("tenon/"):
                continue
            if quoted and (only_tenon or not (own_file(path, name, os.path.join(root, folder)) or
                                              os.path.isfile(os.path.join(root, folder, name)))):
                yield "%s: %s may include tenon/ headers only, not \"%s\"" % (where, folder, name)


def check(root, gen=""):
    levels, generated, inside = read_levels(os.path.join(root, "tools", "layers.txt"))
    for header, owner in generated.items():
        if owner not in levels:
            yield "tools/layers.txt: %s belongs to unknown layer %s" % (header, owner)
            return
    source = os.path.join(root, "src")
    for layer in sorted(os.listdir(source)):
        if not os.path.isdir(os.path.join(source, layer)):
            yield "src/%s: sources live in a layer's folder" % layer
        elif layer not in levels:
            yield "src/%s: not in tools/layers.txt" % layer
        else:
            yield from check_layer(root, layer, levels, generated, gen)
    yield from check_public(root, "include/tenon", True, set())
    for folder in USERS:
        yield from check_public(root, folder, False, inside)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--gen", default="", help="folder of generated sources, checked as well")
    args = parser.parse_args()
    problems = list(check(args.root, args.gen))
    for problem in problems:
        print(problem)
    print("layers: %s" % ("%d wrong" % len(problems) if problems else "all includes point down"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
