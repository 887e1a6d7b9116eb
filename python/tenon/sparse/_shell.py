# SPDX-License-Identifier: MIT
"""What sparse tensors of all layouts share: a shell (sizes, a dtype, a device, no memory) around the ordinary tensors that
it holds in `_parts`, of which the last are the values. Its history is that of the values."""
import tenon
from tenon.autograd._in_parts import InParts

NAMES = {tenon.strided: "Strided", tenon.sparse_coo: "Sparse", tenon.sparse_csr: "SparseCsr", tenon.sparse_csc: "SparseCsc",
         tenon.sparse_bsr: "SparseBsr", tenon.sparse_bsc: "SparseBsc"}  # as messages call the layouts


def refuse(name, kind):
    """A method that another layout has."""
    def method(self, *args, **kwargs):
        raise RuntimeError("%s expected sparse %s tensor layout but got %s" % (name, kind, NAMES[self.layout]))
    method.__name__ = name
    return method


class Shell(InParts, tenon.Tensor):
    @classmethod
    def _shell(cls, parts, size):
        values = parts[-1]
        made = tenon.Tensor._make_wrapper_subclass(cls, tuple(size), dtype=values.dtype, device=values.device)
        made._parts = parts
        return made

    def _with_values(self, values):
        """The same places with other values."""
        raise NotImplementedError

    def _gradient(self, values):
        """The gradient of the tensor, where `values` is that of its entries."""
        return self._with_values(values)

    def _entries(self, grad):
        """What _gradient made `grad` of."""
        if not all(tenon.equal(mine, its) for mine, its in zip(self._parts[:-1], grad._parts)):
            raise RuntimeError("assigned grad has other places than the tensor")
        return grad._v

    def _seed(self, grad):
        """The gradient of the values, where `grad` is that of the tensor, sparse or not."""
        if grad.layout is self.layout and self._has_each_place_once() and len(grad._parts) == len(self._parts) and all(
                tenon.equal(mine, its) for mine, its in zip(self._parts[:-1], grad._parts)):
            return grad._v
        grad = grad if grad.layout is tenon.strided else grad.to_dense()
        with tenon.enable_grad():
            values = self._v.detach().requires_grad_()
            whole = self._with_values(values).to_dense()
        return tenon.autograd.grad(whole, values, grad, create_graph=tenon.is_grad_enabled() and grad.requires_grad)[0]

    def _has_each_place_once(self):
        return True

    _v = property(lambda self: self._parts[-1])
    _written_to = None  # of a gradient: whose it is, and that of the values which it shows

    def _wrote(self):
        """Its parts are others now: so are those of what it shows."""
        of, grad = self._written_to or (None, None)
        if of is not None and of._v.grad is grad:
            of.grad = self
            self._written_to = (of, of._v.grad)

    # ---- history ----

    @property
    def requires_grad(self):
        return self._v.requires_grad

    @requires_grad.setter
    def requires_grad(self, on):
        if not isinstance(on, bool):
            raise RuntimeError("requires_grad must be a bool")
        self._v.requires_grad_(on)

    def requires_grad_(self, requires_grad=True):
        self._v.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self):
        return self._v.is_leaf

    @property
    def grad_fn(self):
        return self._v.grad_fn

    @property
    def grad(self):
        grad = self._v.grad
        if grad is None:
            return None
        made = self._gradient(grad)
        made._written_to = (self, grad)
        return made

    @grad.setter
    def grad(self, value):
        if value is not None and not isinstance(value, tenon.Tensor):
            raise TypeError("assigned grad expected to be a Tensor or None but got grad of type %s" % type(value).__name__)
        if value is not None and value.layout is not self.layout:
            raise RuntimeError("assigned grad has data of a different layout: %s instead of %s" % (value.layout, self.layout))
        if value is not None and value.shape != self.shape:
            raise RuntimeError("assigned grad has data of a different size")
        self._v.grad = None if value is None else self._entries(value)

    @grad.deleter
    def grad(self):
        self._v.grad = None

    def _history_parts(self):
        return self._parts[-1:]

    def _gradient_from(self, grads):
        return self._gradient(grads[0])

    def _from_parts(self, parts):
        return self._with_values(parts[0])

    def _gradient_to(self, grad):
        return (self._seed(grad),)

    def _first_gradient(self):
        if self.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return tenon.ones(self.shape, dtype=self.dtype, device=self.device)

    @property
    def data(self):
        return self._with_values(self._v.detach())

    @property
    def nbytes(self):
        if self.layout is not tenon.sparse_coo:
            return self.numel() * self.element_size()
        raise RuntimeError("nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add "
                           "the nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, "
                           "multiply numel() by element_size()")

    def _sizes(self):
        """The first words of its text after the parts."""
        size = "size=%s" % (tuple(self.shape),)
        return ["device='meta'", size] if self.is_meta else [size, "nnz=%d" % self._nnz()]

    def _history(self):
        if self._v.grad_fn is not None:
            return "grad_fn=<%s>" % type(self._v.grad_fn).__name__
        return "requires_grad=True" if self.requires_grad else ""

    # ---- what a shell has not ----

    def numpy(self, *args, **kwargs):
        raise TypeError("can't convert %s layout tensor to numpy. Use Tensor.to_dense() first." % NAMES[self.layout])

    __array__ = numpy

    def tolist(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    data_ptr = tolist

    def storage(self):
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    untyped_storage = storage

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            made = self.detach().clone()
            memo[id(self)] = made.requires_grad_() if self.requires_grad else made
        return memo[id(self)]
