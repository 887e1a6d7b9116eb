# SPDX-License-Identifier: MIT
"""The strided layout of nested tensors: a list of tensors of one number of dimensions. Any operator on it is the operator on
each of the list."""
import itertools
import math

import tenon
from tenon import _C
from tenon.autograd._in_parts import InParts


class ListTensor(InParts, tenon.Tensor):
    """What ``tenon.nested.nested_tensor`` makes."""

    is_nested = True
    layout = tenon.strided

    @staticmethod
    def _of(parts):
        parts = list(parts)
        first = parts[0] if parts else tenon.empty(0)
        sizes = [max((p.shape[d] for p in parts), default=0) for d in range(first.dim())] if parts else []
        made = tenon.Tensor._make_wrapper_subclass(ListTensor, (len(parts), *sizes), dtype=first.dtype, device=first.device)
        made._parts = parts
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in FUNCTIONS:
            return FUNCTIONS[name](*args, **kwargs)
        if name in ("softmax", "log_softmax", "transpose", "sum", "unsqueeze", "squeeze", "mean"):
            return _along(func, *args, **kwargs)
        if name.startswith("__get") or name in ("dim", "is_floating_point", "is_complex", "__hash__", "__repr__"):
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        return _each(func, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func._opname in FUNCTIONS:
            return FUNCTIONS[func._opname](*args, **(kwargs or {}))
        return _each(func, args, kwargs or {})

    def _history_parts(self):
        return tuple(self._parts)

    def _gradient_from(self, grads):
        return ListTensor._of(grads)

    def _from_fakes(self, parts):
        return ListTensor._of(parts)

    def _gradient_to(self, grad):
        parts = grad._parts if isinstance(grad, ListTensor) else ()
        if [p.shape for p in parts] != [p.shape for p in self._parts]:
            raise RuntimeError("the gradient of a nested tensor has parts of other sizes")
        return tuple(parts)

    register_hook = tenon.Tensor.register_hook  # of each part
    register_post_accumulate_grad_hook = tenon.Tensor.register_post_accumulate_grad_hook

    @property
    def requires_grad(self):
        return any(p.requires_grad for p in self._parts)

    @requires_grad.setter
    def requires_grad(self, on):
        self.requires_grad_(on)

    is_leaf = property(lambda self: all(p.is_leaf for p in self._parts))
    grad_fn = property(lambda self: next((p.grad_fn for p in self._parts if p.grad_fn is not None), None))

    def requires_grad_(self, requires_grad=True):
        for p in self._parts:
            p.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        grads = [p.grad for p in self._parts]
        return None if None in [g if g is None else 0 for g in grads] else ListTensor._of(grads)

    @property
    def shape(self):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")

    def size(self, dim=None):
        if dim is None:
            return self.shape
        sizes = {p.shape[dim - 1 if dim > 0 else dim] for p in self._parts} if dim % self.dim() else {len(self._parts)}
        if len(sizes) != 1:
            raise RuntimeError("Given dimension %d is irregular and does not have a size." % dim)
        return sizes.pop()

    def numel(self):
        return sum(p.numel() for p in self._parts)

    nbytes = property(lambda self: sum(p.nbytes for p in self._parts))

    def element_size(self):
        return self.dtype.itemsize

    def get_device(self):
        return tenon.empty(0, device=self.device).get_device()

    def __format__(self, spec):
        if spec:
            raise TypeError("unsupported format string passed to Tensor.__format__")
        return repr(self)

    def __len__(self):
        return len(self._parts)

    def __iter__(self):
        return iter(self._parts)

    def values(self):
        return tenon.cat([p.flatten() for p in self._parts])

    def is_contiguous(self, memory_format=None):
        return all(p.is_contiguous() for p in self._parts)

    def to_padded_tensor(self, padding, output_size=None):
        return _padded(self, padding, output_size)

    def __repr__(self, *, tensor_contents=None):
        def indented(p):
            return "\n".join("  " + line for line in repr(p).split("\n"))
        tail = ", requires_grad=True" if self.requires_grad and self.grad_fn is None else ""
        return "nested_tensor([\n%s\n]%s)" % (",\n".join(indented(p) for p in self._parts), tail)

    __hash__ = tenon.Tensor.__hash__

    def _rows(self, rows):
        dims = self._parts[0].dim() if self._parts else 0
        return tenon.tensor([list(row) for row in rows], dtype=tenon.int64).reshape(len(self._parts), dims)

    def _nested_tensor_size(self):
        """The sizes of each part, a row each."""
        return self._rows(p.shape for p in self._parts)

    def _nested_tensor_strides(self):
        """The strides of each part, a row each."""
        return self._rows(p.stride() for p in self._parts)

    def _nested_tensor_storage_offsets(self):
        """Where each part begins among the values."""
        begins = list(itertools.accumulate((p.numel() for p in self._parts), initial=0))
        return tenon.tensor(begins[:-1], dtype=tenon.int64)

    def __reduce_ex__(self, protocol):
        """One buffer, and of each part its sizes, strides and place in it."""
        from tenon import _utils
        whole = ListTensor._of([p.detach().contiguous() for p in self._parts])
        buffer = tenon.cat([p.reshape(-1) for p in whole._parts]) if whole._parts else tenon.empty(0, dtype=self.dtype)
        return _utils._rebuild_nested_tensor, (buffer, whole._nested_tensor_size(), whole._nested_tensor_strides(),
                                               whole._nested_tensor_storage_offsets())


def _each(func, args, kwargs):
    found = [a for a in [*args, *kwargs.values()] if isinstance(a, ListTensor)]
    if not found:
        raise NotImplementedError("%s: not supported for lists of nested tensors" % func)
    if any(len(a._parts) != len(found[0]._parts) for a in found):
        raise RuntimeError("Expected both nested tensors to have the same number of constituents")

    def pick(a, i):
        return a._parts[i] if isinstance(a, ListTensor) else a
    outs = [func(*[pick(a, i) for a in args], **{k: pick(a, i) for k, a in kwargs.items()}) for i in range(len(found[0]))]
    return ListTensor._of(outs) if outs and isinstance(outs[0], tenon.Tensor) else outs


def _along(func, x, *dims, **kwargs):
    """Dimensions are those of the whole: that of the batch is no part's."""
    def inner(d):
        if isinstance(d, bool) or not isinstance(d, int):
            return d
        if d % x.dim() == 0:
            raise RuntimeError("%s: not supported for nested tensors on dim 0" % func.__name__)
        return d - 1 if d > 0 else d
    kwargs = {k: inner(v) if k in ("dim", "dim0", "dim1") else v for k, v in kwargs.items() if k != "_stacklevel"}
    return _each(func, [x, *[inner(d) for d in dims]], kwargs)


def _padded(x, padding, output_size=None):
    sizes = list(output_size)[1:] if output_size is not None else [max(p.shape[d] for p in x._parts)
                                                                  for d in range(x._parts[0].dim())]
    rows = []
    for p in x._parts:
        room = []
        for d in reversed(range(p.dim())):
            room += [0, sizes[d] - p.shape[d]]
        rows.append(tenon.nn.functional.pad(p, room, value=padding))
    return tenon.stack(rows)


def _getitem(x, index):
    if isinstance(index, tuple):
        return x._parts[index[0]][index[1:]]
    return x._parts[index]


def _reshaped(name):
    """`reshape` and `view`: the first size is that of the batch; -1 is what a part has there."""
    def reshape(x, *shape, **kwargs):
        shape = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape or kwargs.get("shape") or kwargs["size"])
        if not x._parts:
            raise RuntimeError("empty nested tensor cannot be reshaped")
        if shape[:1] != [len(x._parts)]:
            raise RuntimeError("%s: For now nested %s cannot change or infer the implicit batch dimension" % (name, name))
        made = []
        for part in x._parts:
            rest = shape[1:]
            if len(rest) > part.dim():
                if -1 in rest[part.dim():]:
                    raise RuntimeError("nested tensor does not infer shape")
                if rest.count(-1) > 1:
                    raise RuntimeError("only one dimension can be inferred")
            sizes = [part.shape[d] if n == -1 and d < part.dim() else n for d, n in enumerate(rest)]
            if min(sizes, default=0) >= 0 and math.prod(sizes) != part.numel():
                raise RuntimeError("shape '%s' is invalid for input of size %d" % (shape, part.numel()))
            made.append(getattr(part, name)(sizes))
        return ListTensor._of(made)
    return reshape


FUNCTIONS = {
    "reshape": _reshaped("reshape"), "view": _reshaped("view"),
    "unbind": lambda x, dim=0: tuple(x._parts), "to_padded_tensor": _padded, "__getitem__": _getitem,
    "select": lambda x, dim, index: x._parts[index],
}
