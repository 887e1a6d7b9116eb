# SPDX-License-Identifier: MIT
"""What is asked about sparse matrices by compressed rows and columns: expressions, of which make_sparse_layouts.py writes
down what PyTorch says and test_sparse_layouts.py sees that Tenon says the same. `L` is the library."""
import re

ALL = """
s
s.layout, s.is_sparse, s.is_sparse_csr, s._nnz(), s.sparse_dim(), s.dense_dim(), s.shape, s.dtype, s.device, s.numel()
s.crow_indices(), s.col_indices()
s.ccol_indices(), s.row_indices()
s.values()
s.indices()
s.to_dense()
s.t()
s.transpose(0, 1).to_dense()
(s * 2), (2 * s).values(), -s, s + s
s.sum()
s.abs().sqrt(), s.sin().layout, s.clone().layout, s.detach().layout, s.to(L.float64), s.double().dtype, s.cpu().layout
s.to_sparse().coalesce()
s.to_sparse_coo().to_dense()
s.to_sparse_bsr((2, 2))
s.to_sparse_bsc((2, 2))
s.to_sparse(layout=L.sparse_coo).layout, s.to_sparse(layout=L.strided)
s.to_sparse(1)
s.stride()
s.is_contiguous()
s.numpy()
s.tolist()
s.type()
L.zeros_like(s)
s.coalesce()
s.is_coalesced()
s.clone().copy_(s * 3)
"""

PLAIN = """
s.to_sparse_bsc((1, 2))
s @ L.arange(8.0).reshape(4, 2)
s @ L.arange(4.0)
L.arange(8.0).reshape(2, 4) @ s
L.sparse.mm(s, L.ones(4, 1)), L.mm(s, L.ones(4, 1)), s.mm(L.ones(4, 1)), s.matmul(L.ones(4))
L.addmm(L.ones(4, 1), s, L.ones(4, 1)), L.sparse.addmm(L.ones(4, 1), s, L.ones(4, 1), beta=2, alpha=3)
s.to_sparse_csr(), s.to_sparse_csc()
s[1], s.select(0, 1), s[1, 3]
"""

MAKING = """
csr(T([0, 1, 3]), T([0, 0, 1]), T([1.0, 2, 3])).shape
csr([0, 1, 3], [0, 0, 1], [1.0, 2, 3], (2, 2)).crow_indices().dtype
csr(T([0, 1, 3], dtype=L.int32), T([0, 0, 1], dtype=L.int32), T([1.0, 2, 3]), (2, 2)).crow_indices().dtype
csr(T([0, 1, 3], dtype=L.int32), T([0, 0, 1]), T([1.0, 2, 3]), (2, 2), check_invariants=True)
csr(T([0, 1, 3]), T([0, 0, 5]), T([1.0, 2, 3]), (2, 2), check_invariants=True)
csr(T([0, 1, 2]), T([0, 0, 1]), T([1.0, 2, 3]), (2, 2), check_invariants=True)
csr(T([1, 1, 3]), T([0, 0, 1]), T([1.0, 2, 3]), (2, 2), check_invariants=True)
csr(T([0, 1, 3, 3]), T([0, 0, 1]), T([1.0, 2, 3]), (2, 2), check_invariants=True)
csr(T([0, 1, 3]), T([0, 0, 1]), T([1.0, 2]), (2, 2), check_invariants=True)
csr(T([0, 1, 3]), T([0, 1, 0]), T([1.0, 2, 3]), (2, 2), check_invariants=True)
csr(T([0, 1, 3]), T([0, 1, 0]), T([1.0, 2, 3]), (2, 2)).to_dense()
csr(T([0.0, 1, 3]), T([0, 1, 0]), T([1.0, 2, 3]), (2, 2), check_invariants=True)
csr(T([0, 1, 3]), T([0, 0, 1]), L.arange(6.0).reshape(3, 2), (2, 2, 2))
csr(T([0, 1, 3]), T([0, 0, 1]), L.arange(6.0).reshape(3, 2)).to_dense()
csr(T([0, 1, 3]), T([0, 0, 1]), L.ones(3, 2), (2, 2, 2)).dense_dim()
csr(T([[0, 1, 2], [0, 0, 2]]), T([[0, 1], [0, 1]]), L.arange(4.0).reshape(2, 2), (2, 2, 2))
csr(T([[0, 1, 2], [0, 0, 2]]), T([[0, 1], [0, 1]]), L.arange(4.0).reshape(2, 2), (2, 2, 2)).to_dense()
L.sparse_bsr_tensor(T([0, 1, 2]), T([0, 1]), L.ones(2, 2, 3))
L.sparse_bsr_tensor(T([0, 1, 2]), T([0, 1]), L.ones(2), check_invariants=True)
L.sparse_bsr_tensor(T([0, 1, 2]), T([0, 1]), L.ones(2, 2, 2), (5, 4), check_invariants=True)
L.sparse_csc_tensor(T([0, 1, 3]), T([0, 0, 4]), T([1.0, 2, 3])).to_dense()
L.sparse_csc_tensor(T([0, 1, 3]), T([0, 0, 1]), T([1, 2, 3]), (2, 2), dtype=L.float64)
L.sparse_bsc_tensor(T([0, 1, 2]), T([0, 1]), L.arange(12.0).reshape(2, 2, 3)).to_dense()
L.sparse_compressed_tensor(T([0, 1, 3]), T([0, 0, 1]), T([1.0, 2, 3]), layout=L.sparse_csc)
L.sparse_compressed_tensor(T([0, 1, 3]), T([0, 0, 1]), T([1.0, 2, 3]))
L.sparse_compressed_tensor(T([0, 1, 3]), T([0, 0, 1]), T([1.0, 2, 3]), layout=L.strided)
A.to_sparse_bsr(3)
A.to_sparse_bsr(2).values().shape
A.to_sparse_csr(dense_dim=1)
L.arange(8.0).reshape(2, 2, 2).to_sparse_csr(dense_dim=1)
L.ones(2, 2, 2).to_sparse_csr().crow_indices()
A.ccol_indices()
A.row_indices()
A.to_sparse(layout=L.sparse_bsr)
A.to_sparse(layout=L.sparse_bsc, blocksize=(2, 2))
C.to_sparse_csc(), C.to_sparse_bsr((2, 2)), C.to_sparse(layout=L.sparse_csr).layout
C.ccol_indices()
L.hspmm(C, L.arange(8.0).reshape(4, 2))
L.smm(C, L.arange(8.0).reshape(4, 2)), C.smm(A).shape
L.sspaddmm(C, C, A, beta=2, alpha=3).coalesce(), C.sspaddmm(C, A).to_dense()
L.eye(3, dtype=L.int32).to_sparse_csc()
A.to_sparse_csr().requires_grad_()
A.to_sparse_csr() @ A.to_sparse_csr(), L.sparse.mm(A.to_sparse_csr(), A.to_sparse_csr()).layout, A.to_sparse_csr() * A.to_sparse_csr()
through(L.sparse_csc_tensor)
through(L.sparse_csr_tensor)
through_blocks()
"""


def results(L):
    """[[expression, what it gives as text]] with the library `L`."""
    T, csr = L.tensor, L.sparse_csr_tensor
    A = T([[0.0, 2, 0, 0], [3, 0, 0, 4], [0, 0, 0, 0], [0, 0, 5, 0]])
    C = A.to_sparse()

    def through(make):
        v = T([1.0, 2, 3], requires_grad=True)
        x = T([[1.0, -1], [2, 5]], requires_grad=True)
        (make(T([0, 1, 3]), T([0, 0, 1]), v, (2, 2)) @ x).pow(2).sum().backward()
        return v.grad, x.grad

    def through_blocks():
        v = L.arange(8.0).reshape(2, 2, 2).requires_grad_()
        x = L.arange(4.0).reshape(4, 1).requires_grad_()
        L.sparse_bsr_tensor(T([0, 1, 2]), T([1, 0]), v, (4, 4)).to_dense().matmul(x).sum().backward()
        return v.grad, x.grad

    def said(text, **names):
        try:
            given = repr(eval(text, {"L": L, "T": T, "csr": csr, "A": A, "C": C, "through": through,
                                     "through_blocks": through_blocks, **names}))
        except Exception as error:
            given = "%s: %s" % (type(error).__name__, error)
        return re.sub(r"\btenon\b", "torch", given)
    made = {"csr": A.to_sparse_csr(), "csc": A.to_sparse_csc(), "bsr": A.to_sparse_bsr((2, 2)), "bsc": A.to_sparse_bsc((2, 2))}
    rows = [[name + ": " + text, said(text, s=s)] for name, s in made.items()
            for text in (ALL + (PLAIN if name in ("csr", "csc") else "")).strip().splitlines()]
    return rows + [[text, said(text)] for text in MAKING.strip().splitlines()]
