# SPDX-License-Identifier: MIT
"""Mistakes found in declarations. A run collects them all, so that an author sees everything at once."""


class Problem(Exception):
    """One mistake, raised where the rest of the declaration makes no sense any more."""

    def __init__(self, where, message):
        super().__init__(message)
        self.where = where
        self.message = message


class Problems:
    def __init__(self):
        self.found = []

    def add(self, where, message):
        """WHERE is (file, line) as the parser keeps it."""
        self.found.append((where, message))

    def lines(self):
        """One `ops/x.op:12: error: …` each, in the order of the files."""
        rows = sorted(set(self.found), key=lambda row: (row[0], row[1]))
        return ["%s:%d: error: %s" % (where[0], where[1], message) for where, message in rows]
