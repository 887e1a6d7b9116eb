# SPDX-License-Identifier: MIT
"""Sobol' sequences: points that fill a cube more evenly than random ones. A sequence of one seed is the same everywhere;
one that is not scrambled has PyTorch's points."""

import tenon

__all__ = ["SobolEngine"]


def _directions(dimension, bits):
    """A row of numbers of so many bits for each dimension: the points are sums modulo 2 of them."""
    from tenon._sobol_table import TABLE
    rows = [[1] * bits]
    for entry in TABLE.split()[:dimension - 1]:
        polynomial, first = entry.split(":")
        polynomial, row = int(polynomial), [int(x) for x in first.split(",")]
        degree = len(row)
        for i in range(degree, bits):
            new = row[i - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    new ^= row[i - k] << k
            row.append(new)
        rows.append(row[:bits])
    return tenon.tensor([[m << (bits - 1 - i) for i, m in enumerate(row)] for row in rows], dtype=tenon.int64)


class _Dimensions:
    """SobolEngine.MAXDIM: the table is loaded when it is asked for."""

    def __get__(self, engine, kind):
        from tenon._sobol_table import DIMENSIONS
        return DIMENSIONS


class SobolEngine:
    """Points of a Sobol' sequence, in (0, 1) scrambled and in [0, 1) else. ``scramble``: by random matrices and shifts,
    those of ``seed`` where one is given."""

    MAXBIT = 30
    MAXDIM = _Dimensions()

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError("Supported range of dimensionality for SobolEngine is [1, %d]" % self.MAXDIM)
        self.dimension, self.scramble, self.seed, self.num_generated = dimension, scramble, seed, 0
        self.sobolstate = _directions(dimension, self.MAXBIT)
        self.shift = tenon.zeros(dimension, dtype=tenon.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()

    def _scramble(self):
        generator = None if self.seed is None else tenon.Generator().manual_seed(self.seed)
        bits = self.MAXBIT
        places = tenon.arange(bits - 1, -1, -1)  # the first bit of a number counts most
        shift = tenon.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (shift << places).sum(1)
        matrices = tenon.randint(2, (self.dimension, bits, bits), generator=generator).tril(-1) + tenon.eye(
            bits, dtype=tenon.int64)
        digits = (self.sobolstate.unsqueeze(-1) >> places) & 1
        self.sobolstate = (((digits.unsqueeze(-2) * matrices.unsqueeze(1)).sum(-1) % 2) << places).sum(-1)

    def _points(self, first, n):
        """Points number first to first + n, as numbers of MAXBIT bits."""
        index = tenon.arange(first, first + n)
        gray = index ^ (index >> 1)
        points = self.shift.repeat(n, 1)
        for b in range((first + n).bit_length()):
            points ^= ((gray >> b) & 1).unsqueeze(1) * self.sobolstate[:, b]
        return points

    def draw(self, n=1, out=None, dtype=None):
        """The next n points, a row each."""
        if dtype is None:
            dtype = tenon.get_default_dtype()
        if n < 1:
            raise RuntimeError("Trying to create tensor with negative dimension %d: [%d, %d]" % (n - 1, n - 1, self.dimension))
        points = self._points(self.num_generated, n)
        self.num_generated += n
        self.quasi = self._points(self.num_generated, 1)[0]
        made = points.to(dtype) * 2.0 ** -self.MAXBIT
        return made if out is None else out.resize_(made.shape).copy_(made)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; together with those drawn before, their number must be a power of two."""
        n = 2 ** m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError("The balance properties of Sobol' points require n to be a power of 2. %d points have been "
                             "previously generated, then: n=%d+2**%d=%d. If you still want to do this, please use "
                             "'SobolEngine.draw()' instead." % (self.num_generated, self.num_generated, m, total))
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Begin again."""
        self.num_generated, self.quasi = 0, self.shift.clone()
        return self

    def fast_forward(self, n):
        """Leave out n points."""
        self.num_generated += n
        self.quasi = self._points(self.num_generated, 1)[0]
        return self

    def __repr__(self):
        text = "dimension=%d" % self.dimension
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += ", seed=%d" % self.seed
        return "SobolEngine(%s)" % text
