# SPDX-License-Identifier: MIT
"""Joining processes that have unequal numbers of batches: the one process waits for nobody."""

import abc

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does for the others after its last batch."""

    def main_hook(self):
        pass

    def post_hook(self, is_last_joiner):
        pass


class Joinable(abc.ABC):
    """What can be joined."""

    @abc.abstractmethod
    def __init__(self):
        super().__init__()

    @abc.abstractmethod
    def join_hook(self, **kwargs):
        """Its JoinHook."""

    @property
    @abc.abstractmethod
    def join_device(self):
        """Where it communicates from."""

    @property
    @abc.abstractmethod
    def join_process_group(self):
        """With whom it communicates."""


class Join:
    """A context in which processes may end at different times; the one process joins as the last."""

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables] if enable else []

    def __enter__(self):
        return None

    def __exit__(self, kind, value, traceback):
        if kind is None:
            for hook in self._hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable):
        return None
