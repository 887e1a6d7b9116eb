# SPDX-License-Identifier: MIT
"""Types for annotations that TorchScript reads. Nothing reads them here."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401  (PyTorch has them here too)

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Module"]


class Module:
    """A name that is found in a module of TorchScript."""

    def __init__(self, name, members):
        self.name, self.members = name, members

    def __getattr__(self, name):
        try:
            return self.members[name]
        except KeyError:
            raise RuntimeError("Module %s has no member called %s" % (self.name, name)) from None


class BroadcastingListCls:
    """BroadcastingList2[int]: an int, or two of them."""

    def __getitem__(self, types):
        return


BroadcastingList1 = BroadcastingListCls()
for _count in range(2, 7):
    globals()["BroadcastingList%d" % _count] = BroadcastingList1
