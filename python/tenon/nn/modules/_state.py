# SPDX-License-Identifier: MIT
"""Saving a module's state into a dictionary and loading it back."""

import itertools
import warnings
from collections import OrderedDict, namedtuple

import tenon
from tenon.__future__ import get_swap_module_params_on_conversion
from tenon.nn.parameter import Parameter, is_lazy
from tenon.utils import swap_tensors

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns: keys that the dictionary lacked, and keys that the module does not have."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _to_swap_in(param, value, assign):
    """What takes the place of `param` where parameters are swapped: its class decides, by `module_load`."""
    loaded = param.module_load(value, assign=assign)
    if loaded is value or loaded is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if not isinstance(param, Parameter):
        return loaded
    if isinstance(loaded, Parameter):
        return loaded.requires_grad_(param.requires_grad)
    return Parameter(loaded, requires_grad=param.requires_grad)


def _never(which):
    return RuntimeError(
        f"Reached a code path in Module.{which}() that should never be called. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
    )


def _quoted(keys):
    return ", ".join(f'"{k}"' for k in keys)


class StateMethods:
    """The part of `Module` that collects and loads state."""

    def get_extra_state(self):
        """Anything else to save with this module; a class that defines it defines `set_extra_state` too."""
        raise _never("get_extra_state")

    def set_extra_state(self, state):
        """Take back what `get_extra_state` gave."""
        raise _never("set_extra_state")

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buf in self._buffers.items():
            if buf is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if type(self).get_extra_state is not StateMethods.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """An ordered dictionary from dotted names to parameters and persistent buffers, detached unless `keep_vars`."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _load_one(self, name, key, param, value, assign, error_msgs):
        """Put `value` into the parameter or buffer `name`; what goes wrong is added to `error_msgs`."""
        if not isinstance(value, tenon.Tensor) and not hasattr(value, "__torch_function__"):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                f"received {type(value)}"
            )
            return
        lazy = is_lazy(param)
        if not lazy and len(param.shape) == 0 and tuple(value.shape) == (1,):
            value = value[0]  # files of very old versions hold one-element tensors for scalars
        if not lazy and value.shape != param.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
                f"model is {param.shape}."
            )
            return
        if param.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
                "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        swap = get_swap_module_params_on_conversion()
        try:
            with tenon.no_grad():
                if swap:
                    swap_tensors(param, _to_swap_in(param, value, assign))
                    return
                if not assign:
                    param.copy_(value)
                    return
                if isinstance(param, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(param.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=param.requires_grad)
                setattr(self, name, value)
        except Exception as ex:
            error_msgs.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the model are {param.size()} and whose '
                f"dimensions in the checkpoint are {value.size()}, an exception occurred : {ex.args}."
            )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Load this module alone from the keys that start with `prefix`. Classes override it to read old formats."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        kept = ((k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set)
        local = {k: v for k, v in itertools.chain(self._parameters.items(), kept) if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, key, param, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)

        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not StateMethods.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, dot, _ = key[len(prefix) :].partition(".")
                    if (head not in self._modules) if dot else (head not in local):
                        unexpected_keys.append(key)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy (or with `assign` take) the values of `state_dict` into this module and all below it.

        With `strict` missing and unexpected keys raise; they are returned in any case as `(missing_keys, unexpected_keys)`.
        """
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local, prefix, load):  # itself as an argument: a closure would be a cycle that holds the tensors
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(local, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    below = prefix + name + "."
                    load(child, {k: v for k, v in local.items() if k.startswith(below)}, below, load)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are notexpected to return new values, "
                        "if incompatible_keys need to be modified,it should be done inplace."
                    )

        load(self, state_dict, "", load)
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return _IncompatibleKeys(missing, unexpected)
