# SPDX-License-Identifier: MIT
"""Linear algebra: the operators whose names begin with linalg_, and norms."""

import tenon
from tenon._typing import TYPE_CHECKING, Any

_operators = {name[7:]: f for name, f in vars(tenon._C._nn).items() if name.startswith("linalg_")}
globals().update(_operators)
if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...  # the operators
LinAlgError = tenon._C._LinAlgError


def _made(result, out):
    return out.copy_(result) if out is not None else result


if "matrix_norm" not in _operators:

    def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
        """The norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
        A = A if dtype is None else A.to(dtype)
        rows, columns = (d % A.dim() for d in dim)
        if ord == "fro":
            return _made(tenon._C._nn.linalg_vector_norm(A, 2, list(dim), keepdim), out)
        if ord in ("nuc", 2, -2):
            if "svdvals" not in _operators:
                raise NotImplementedError("linalg.matrix_norm: order %s needs singular values, which Tenon does not "
                                          "compute" % (ord,))
            values = _operators["svdvals"](A.movedim((rows, columns), (-2, -1)))
            made = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
            if keepdim:
                for d in sorted((rows, columns)):
                    made = made.unsqueeze(d)
            return _made(made, out)
        if ord not in (1, -1, float("inf"), float("-inf")):
            raise RuntimeError("linalg.matrix_norm: Order %s not supported." % (ord,))
        along, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = A.abs().sum(along, keepdim=True)
        made = sums.amax(other, keepdim=True) if ord > 0 else sums.amin(other, keepdim=True)
        if not keepdim:
            made = made.squeeze((rows, columns))
        return _made(made, out)


if "norm" not in _operators:

    def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
        """The norm of all elements, of vectors (dim is a number) or of matrices (dim is two numbers, or ord names a
        norm of matrices)."""
        vector = tenon._C._nn.linalg_vector_norm
        if ord is None:
            dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
            return _made(vector(A, 2, dims, keepdim, dtype=dtype), out)
        pair = dim is not None and not isinstance(dim, int) and len(dim) == 2
        if pair or (dim is None and (isinstance(ord, str) or A.dim() == 2)):
            return matrix_norm(A, ord, dim if pair else (-2, -1), keepdim, dtype=dtype, out=out)
        dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
        return _made(vector(A, ord, dims, keepdim, dtype=dtype), out)


__all__ = sorted(set(_operators) | {"LinAlgError", "matrix_norm", "norm"})
