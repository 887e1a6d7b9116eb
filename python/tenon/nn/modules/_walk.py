# SPDX-License-Identifier: MIT
"""Walking a tree of modules: names, conversions of dtype and device, modes."""

import itertools
import warnings

import tenon
import tenon.__future__ as _future
from tenon.nn.parameter import Parameter
from tenon.utils import swap_tensors


def _is_wrapper(t):
    """Whether a tensor is put together of others."""
    return type(t) is not tenon.Tensor and type(t) is not Parameter and hasattr(t, "__tensor_flatten__") and hasattr(
        t, "__tensor_unflatten__")


class WalkMethods:
    """The part of `Module` that visits everything below it."""

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            dotted = module_prefix + ("." if module_prefix else "")
            for k, v in get_members_fn(module):
                if v is None or v in seen:
                    continue
                if remove_duplicate:
                    seen.add(v)
                yield dotted + k, v

    def parameters(self, recurse=True):
        """Every parameter once, this module's first."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, parameter) for every parameter."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Every buffer once."""
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, buffer) for every buffer."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """(name, module) for the direct submodules."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """This module and every module below it, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """(dotted name, module) for this module, whose name is `prefix`, and for every module below it."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def apply(self, fn):
        """Call `fn(module)` on every module, children first, and return this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer by `fn` of it. A parameter stays the same object where it can."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        overwrite = _future.get_overwrite_module_params_on_conversion()
        swap = _future.get_swap_module_params_on_conversion()
        for key, param in self._parameters.items():
            if param is None:
                continue
            with tenon.no_grad():
                new = fn(param)
                grad = param.grad
                out = param
                if swap or _is_wrapper(new):  # setting its data would leave the tensors in it as they are
                    self._swap_in(key, param, new, grad, fn)
                    continue
                if overwrite or param.is_meta != new.is_meta:
                    out = self._parameters[key] = Parameter(new, param.requires_grad)
                elif new is not param:
                    param.data = new
                if grad is not None:
                    grad_new = fn(grad)
                    if out is not param or grad.is_meta != grad_new.is_meta:
                        out.grad = grad_new.requires_grad_(grad.requires_grad)
                    elif grad_new is not grad:
                        grad.data = grad_new
        for key, buf in self._buffers.items():
            if buf is not None:
                self._buffers[key] = fn(buf)
        return self

    def _swap_in(self, key, param, new, grad, fn):
        """Let `param` become `new`, and its gradient `fn` of it, by swapping what is behind the objects."""
        try:
            param.grad = None  # it would go with what is swapped out
            swap_tensors(param, Parameter(new, requires_grad=param.requires_grad))
        except Exception as error:
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{key}") from error
        if grad is None:
            return
        grad_new = fn(grad).requires_grad_(grad.requires_grad)
        try:
            swap_tensors(grad, grad_new)
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{key}.grad") from error
        param.grad = grad

    def cuda(self, device=None):
        """Move everything to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device=None):
        """Move everything to an IPU."""
        return self._apply(lambda t: t.ipu(device))

    def xpu(self, device=None):
        """Move everything to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device=None):
        """Move everything to an MTIA device."""
        return self._apply(lambda t: t.mtia(device))

    def cpu(self):
        """Move everything to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type):
        """Cast everything to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Cast floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Cast floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Cast floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device, recurse=True):
        """Everything on `device`, with storage that is not filled."""
        return self._apply(lambda t: tenon.empty_like(t, device=device), recurse=recurse)

    def to(self, *args, **kwargs):
        """Move and cast: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`, `to(memory_format=…)`.

        A dtype holds for floating-point and complex parameters and buffers alone; it must itself be one of those.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, and some modules "
                    "might not work as expected when using complex tensors as parameters or buffers. Please file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work "
                    "as expected.",
                    stacklevel=2,
                )

        def convert(t):
            wanted = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, wanted, non_blocking, memory_format=memory_format)
                return t.to(device, wanted, non_blocking)
            except NotImplementedError as e:
                if str(e) == "Cannot copy out of meta tensor; no data!":
                    raise NotImplementedError(
                        f"{e} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from "
                        "meta to a different device."
                    ) from None
                raise

        return self._apply(convert)

    def train(self, mode=True):
        """Set training mode here and below; returns this module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """`train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Whether autograd should record operations on the parameters; returns this module."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or fill them with zero."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are copied "
                "(in a differentiable manner) from the original module. This means they are not leaf nodes in autograd and so "
                "don't accumulate gradients. If you need gradients in your forward method, consider using autograd.grad "
                "instead.",
                stacklevel=2,
            )
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    def share_memory(self):
        """Move parameters and buffers into shared memory."""
        return self._apply(lambda t: t.share_memory_())


_TO = """to() received an invalid combination of arguments - got (%s), but expected one of:
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
"""
_TO_NAMES = ("device", "dtype", "non_blocking", "copy", "memory_format", "tensor")


def _parse_to(*args, **kwargs):
    """The argument rules of `Tensor.to`: (device, dtype, non_blocking, memory_format)."""
    rest = list(args)
    if rest and isinstance(rest[0], tenon.Tensor):
        names = ["tensor", "non_blocking", "copy"]
    elif rest and isinstance(rest[0], tenon.dtype):
        names = ["dtype", "non_blocking", "copy"]
    else:
        names = ["device", "dtype", "non_blocking", "copy"]
    given = dict(zip(names, rest))
    kinds = {"device": (str, int, tenon.device), "dtype": tenon.dtype, "non_blocking": bool, "copy": bool,
             "memory_format": tenon.memory_format, "tensor": tenon.Tensor}
    fits = len(rest) <= len(names) and not given.keys() & kwargs.keys() and all(name in _TO_NAMES for name in kwargs)
    given.update(kwargs)
    for name, value in given.items() if fits else ():
        optional = name in ("device", "dtype", "memory_format")
        fits = fits and (isinstance(value, kinds[name]) or (optional and value is None)) and \
            not (name == "device" and isinstance(value, bool))
    if not fits or ("tensor" in given and ("device" in given or "dtype" in given)):
        words = [type(value).__name__ for value in args] + [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
        raise TypeError(_TO % ", ".join(words))
    if given.get("copy"):
        raise RuntimeError(".to() does not accept copy argument")
    device, dtype = given.get("device"), given.get("dtype")
    if "tensor" in given:
        device, dtype = given["tensor"].device, given["tensor"].dtype
    if device is not None and not isinstance(device, tenon.device):
        device = tenon.device(device)
    return device, dtype, given.get("non_blocking", False), given.get("memory_format")
