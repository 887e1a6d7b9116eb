# SPDX-License-Identifier: MIT
"""Dispatch keys and sets of them as Python sees them: DispatchKey, DispatchKeySet, guards of the thread's sets, and
questions about an operator's kernels. Found as names of ``tenon._C``, and loaded when one is first asked for."""
import enum
import re

from tenon import _C


class _Key(enum.IntEnum):
    """A key, with its number in the library."""

    def __str__(self):
        return "DispatchKey." + self.name


DispatchKey = _Key("DispatchKey", _C._key_numbers(), module=_C.__name__)  # type: ignore


class DispatchKeySet:
    """A set of keys. It does not change: ``add`` and ``remove`` give another."""

    __slots__ = ("_bits",)

    def __init__(self, key):
        self._bits = key._bits if isinstance(key, DispatchKeySet) else _C._keyset_of(_key(key))

    @classmethod
    def from_raw_repr(cls, bits):
        made = cls.__new__(cls)
        made._bits = bits
        return made

    def raw_repr(self):
        return self._bits

    def __or__(self, other):
        return DispatchKeySet.from_raw_repr(self._bits | other._bits)

    def __and__(self, other):
        return DispatchKeySet.from_raw_repr(self._bits & other._bits)

    def __sub__(self, other):
        return DispatchKeySet.from_raw_repr(self._bits & ~(other._bits & _FUNCTIONALITIES))

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._bits == other._bits

    def __hash__(self):
        return hash(self._bits)

    def add(self, key):
        return DispatchKeySet.from_raw_repr(_C._keyset_add(self._bits, _key(key)))

    def remove(self, key):
        return DispatchKeySet.from_raw_repr(_C._keyset_remove(self._bits, _key(key)))

    def has(self, key):
        return _C._keyset_has(self._bits, _key(key))

    def highestPriorityTypeId(self):
        return DispatchKey(_C._keyset_highest(self._bits))

    def __repr__(self):
        return _C._keyset_text(self._bits)


_FUNCTIONALITIES = ~0xffff & 0xffffffffffffffff  # the bits above those of the backends


def _key(key):
    if isinstance(key, str):
        return _dispatch_key_parse(key)
    return DispatchKey(key)


def _bits(keys):
    return keys._bits if isinstance(keys, DispatchKeySet) else _C._keyset_of(_key(keys))


# ---- keys ----

def _dispatch_key_name(key):
    return _key(key).name


def _dispatch_key_parse(name):
    try:
        return DispatchKey[name]
    except KeyError:
        raise RuntimeError("could not parse dispatch key: %s" % name) from None


def _dispatch_key_for_device(device_type):
    import tenon
    keys = _dispatch_keys(tenon.empty(0, device=device_type))
    return DispatchKeySet.from_raw_repr(keys._bits & 0x1ffff).highestPriorityTypeId().name


def _dispatch_num_backends():
    return 16


def _dispatch_is_alias_key(key):
    return _key(key) >= DispatchKey.Autograd


def _dispatch_is_included_in_alias(key, alias):
    return bool(_C._keyset_has(_C._keyset_of_alias(_key(alias)), _key(key)))


def _dispatch_get_backend_keyset_from_autograd(key):
    return DispatchKeySet(_key(_key(key).name[len("Autograd"):]))


def _dispatch_keys(tensor):
    return DispatchKeySet.from_raw_repr(_C._tensor_keys(tensor))


_dispatch_key_set = _dispatch_keys


def _dispatch_keyset_full():
    return DispatchKeySet.from_raw_repr(0x7fffffffffffffff)


def _dispatch_keyset_full_after(key):
    return DispatchKeySet.from_raw_repr(_C._keyset_after(_key(key)))


def _dispatch_keyset_to_string(keys):
    return repr(keys)


def _dispatch_isTensorSubclassLike(tensor):
    return _dispatch_keys(tensor).has(DispatchKey.Python)


# ---- the thread's sets ----

def _dispatch_tls_local_include_set():
    return DispatchKeySet.from_raw_repr(_C._thread_keys()[0])


def _dispatch_tls_local_exclude_set():
    return DispatchKeySet.from_raw_repr(_C._thread_keys()[1])


def _dispatch_tls_is_dispatch_key_included(key):
    return _dispatch_tls_local_include_set().has(key)


def _dispatch_tls_is_dispatch_key_excluded(key):
    return _dispatch_tls_local_exclude_set().has(key)


def _switch(which, key, on):
    sets = list(_C._thread_keys())
    keys = DispatchKeySet.from_raw_repr(sets[which])
    sets[which] = (keys.add(key) if on else keys.remove(key))._bits
    _C._set_thread_keys(*sets)


def _dispatch_tls_set_dispatch_key_included(key, on):
    _switch(0, key, on)


def _dispatch_tls_set_dispatch_key_excluded(key, on):
    _switch(1, key, on)


class _Guard:
    """The thread has other sets inside."""

    def __enter__(self):
        self._before = _C._thread_keys()
        _C._set_thread_keys(*self._sets(*self._before))
        return self

    def __exit__(self, *args):
        _C._set_thread_keys(*self._before)


class _ExcludeDispatchKeyGuard(_Guard):
    def __init__(self, keys):
        self._keys = _bits(keys)

    def _sets(self, included, excluded):
        return included, excluded | self._keys


class _IncludeDispatchKeyGuard(_ExcludeDispatchKeyGuard):
    def _sets(self, included, excluded):
        return included | self._keys, excluded


class _ForceDispatchKeyGuard(_Guard):
    def __init__(self, include=None, exclude=None):
        self._forced = None if include is None else (_bits(include), _bits(exclude))

    def _sets(self, included, excluded):
        return self._forced or (included, excluded)


class _PreserveDispatchKeyGuard(_Guard):
    def _sets(self, included, excluded):
        return included, excluded


class _SetExcludeDispatchKeyGuard(_Guard):
    def __init__(self, key, on):
        self._one, self._on = _key(key), on

    def _sets(self, included, excluded):
        change = _C._keyset_add if self._on else _C._keyset_remove
        return included, change(excluded, self._one)


class _AutoDispatchBelowAutograd(_ExcludeDispatchKeyGuard):
    def __init__(self):
        self._keys = _C._keyset_of_alias(DispatchKey.Autograd)


class _AutoDispatchBelowADInplaceOrView(_ExcludeDispatchKeyGuard):
    def __init__(self):
        self._keys = _C._keyset_of_alias(DispatchKey.Autograd) | _C._keyset_of(DispatchKey.ADInplaceOrView)


# ---- operators ----

def _registered(name):
    """The keys that kernels of an operator were registered to, aliases too."""
    heads = re.findall(r"^(\w+)(?:\[alias\])?(?: \(inactive\))?: ", _C._operator_dump(name, False), re.M)
    return [head for head in heads if head in DispatchKey.__members__]


def _dispatch_dump(name):
    """An operator's schema and kernels."""
    return _C._operator_dump(name, False)


def _dispatch_dump_table(name):
    """What each key of an operator runs, and why."""
    return _C._operator_dump(name, True)


def _dispatch_get_all_op_names():
    return _C._operator_names("")


def _dispatch_find_schema_or_throw(name, overload_name):
    import tenon
    return tenon._ops._overload(name + ("." + overload_name if overload_name else ""))


def _dispatch_has_kernel(name):
    return _C._schema_text(name) is not None and bool(_registered(name))


def _dispatch_has_kernel_for_dispatch_key(name, key):
    return _key(key).name in _registered(name)


def _dispatch_has_kernel_for_any_dispatch_key(name, keys):
    return any(keys.has(DispatchKey[found]) for found in _registered(name) if not _dispatch_is_alias_key(found))


def _dispatch_has_computed_kernel_for_dispatch_key(name, key):
    key = _key(key)
    if _dispatch_is_alias_key(key):
        raise RuntimeError("%s is an alias key: it has no kernel of its own in a table" % key)
    return _C._operator_slot(name, key)[0]


def _dispatch_kernel_for_dispatch_key_is_fallthrough(name, key):
    return _C._operator_slot(name, _key(key))[1]


def _dispatch_get_registrations_for_dispatch_key(key=""):
    names = _dispatch_get_all_op_names()
    return [name for name in names if key in _registered(name)] if key else names


def _dispatch_print_registrations_for_dispatch_key(key=""):
    for name in _dispatch_get_registrations_for_dispatch_key(key):
        print(name)


ExcludeDispatchKeyGuard = _ExcludeDispatchKeyGuard
NAMES = frozenset(name for name in globals() if name.startswith(("_dispatch_", "DispatchKey", "_AutoDispatch"))
                  or name.endswith("KeyGuard"))
