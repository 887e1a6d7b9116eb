# SPDX-License-Identifier: MIT
"""Names that the public headers define and declarations use or must not use: dispatch keys, statuses,
functions. The headers are the one truth, so they are read."""

import os
import re

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include", "tenon")
# Instances of a per-backend functionality: prefix of the text, prefix of the constant.
PER_BACKEND = (("", ""), ("Quantized", "QUANTIZED_"), ("Sparse", "SPARSE_"), ("SparseCsr", "SPARSE_CSR_"),
               ("NestedTensor", "NESTED_TENSOR_"), ("Autograd", "AUTOGRAD_"))


def rows(header, macro):
    """First two fields of each X(…) of a list macro."""
    with open(os.path.join(INCLUDE, header), encoding="utf-8") as file:
        text = file.read()
    body = re.search(r"#define %s\(X\)((?:.*\\\n)*.*)" % macro, text).group(1)
    return re.findall(r'X\((\w+), "?(\w+)"?', body)


def keys():
    """{"CompositeExplicitAutograd": "TN_KEY_COMPOSITE_EXPLICIT", "CPU": "TN_KEY_CPU", …}"""
    found = {}
    for macro in ("TN_FUNCTIONALITY_LIST", "TN_ALIAS_LIST"):
        found.update((text, "TN_KEY_" + name) for name, text in rows("dispatch.h", macro))
    for text_prefix, prefix in PER_BACKEND:
        found.update((text_prefix + text, "TN_KEY_" + prefix + name)
                     for name, text in rows("dispatch.h", "TN_BACKEND_LIST"))
    return found


def statuses():
    return [name for name, _ in rows("base.h", "TN_STATUS_LIST") if name != "OK"]


def functions():
    """{"tn_promote_types": "tenon/dtype.h", …}: names that an operator cannot have in C."""
    found = {}
    for header in sorted(os.listdir(INCLUDE)):
        with open(os.path.join(INCLUDE, header), encoding="utf-8") as file:
            for name in re.findall(r"\b(tnx?_\w+)\(", file.read()):
                found.setdefault(name, "tenon/" + header)
    return found
