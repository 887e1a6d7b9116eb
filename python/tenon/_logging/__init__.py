# SPDX-License-Identifier: MIT
"""The compiler's logs, by their names. Settings are taken; what the compiler would say is not said."""

import logging

__all__ = ["getArtifactLogger", "set_logs"]


def set_logs(*, all=None, modules=None, **levels):  # noqa: A002
    """Any log may be named; a level is a number or a truth value."""
    for name, level in {**levels, **(modules or {})}.items():
        if not isinstance(level, int):
            raise ValueError("param is not type int for %s, value: %s" % (name, level))


def getArtifactLogger(module_qname, artifact_name):
    """The logger of an artifact of a module."""
    return logging.getLogger("%s.__%s" % (module_qname, artifact_name))


def trace_structured(*args, **options):
    """Nobody records the structured trace."""
