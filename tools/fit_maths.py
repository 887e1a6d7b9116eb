#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fit_maths.py: makes src/cpu/kern/fits64.h, fits32.h and fits_bessel.h, the polynomials and tables that functions of float64 and float32 are
computed with.

Polynomials are fitted by Remez's algorithm in 50 digits, such that the largest weighted error is the smallest, and then rounded.
Run as: tools/fit_maths.py 64 > src/cpu/kern/fits64.h, tools/fit_maths.py 32 > src/cpu/kern/fits32.h, tools/fit_maths.py bessel > src/cpu/kern/fits_bessel.h, then make format. Needs mpmath; builds do not, since the result is kept in the tree.
"""

import re
import struct
import sys

import mpmath as mp

mp.mp.dps = 50
GRID = 600


def remez(f, low, high, terms, weight=lambda x: mp.mpf(1)):
    """Coefficients, lowest first, and the largest weighted error."""
    low, high = mp.mpf(low), mp.mpf(high)
    xs = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / GRID) for i in range(GRID + 1)]
    middle, radius = (low + high) / 2, (high - low) / 2
    ts = [(x - middle) / radius for x in xs]
    fs, ws = [f(x) for x in xs], [max(weight(x), mp.mpf(10) ** -8) for x in xs]
    nodes = [round(i * GRID / terms) for i in range(terms + 1)]
    for _ in range(12):
        rows = [[ts[n] ** k for k in range(terms)] + [(-1) ** i / ws[n]] for i, n in enumerate(nodes)]
        solved = mp.lu_solve(mp.matrix(rows), mp.matrix([fs[n] for n in nodes]))
        c = [solved[k] for k in range(terms)]
        errors = [w * (v - mp.polyval(c[::-1], t)) for w, v, t in zip(ws, fs, ts)]
        runs, begin = [], 0  # the largest error of each run of one sign
        for i in range(1, GRID + 2):
            if i == GRID + 1 or (errors[i] > 0) != (errors[begin] > 0):
                runs.append(max(range(begin, i), key=lambda n: abs(errors[n])))
                begin = i
        while len(runs) > terms + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        if len(runs) < terms + 1 or runs == nodes:
            break
        nodes = runs
    # From powers of t = (x - middle) / radius to powers of x.
    poly = [mp.mpf(0)]
    for k in reversed(c):
        shifted = [mp.mpf(0)] + [v / radius for v in poly]
        poly = [a - b for a, b in zip(shifted, [v * middle / radius for v in poly] + [mp.mpf(0)])]
        poly[0] += k
    return poly[:terms], max(abs(e) for e in errors)


def short(x, bits):
    """x rounded to so many bits."""
    x = mp.mpf(x)
    if x == 0:
        return x
    unit = mp.mpf(2) ** (mp.floor(mp.log(abs(x), 2)) - bits + 1)
    return mp.nint(x / unit) * unit


NARROW = sys.argv[1:] == ["32"]
TYPE = "float" if NARROW else "double"
ALIGNED = """/* Tables that registers are loaded from. */
#ifndef TNI_ALIGNED
#    define TNI_ALIGNED __attribute__((aligned(64)))
#endif"""


def text(x):
    """As the type has it."""
    x = struct.unpack("f", struct.pack("f", float(x)))[0] if NARROW else float(x)
    return re.sub(r"\.?0+p", "p", x.hex()).replace("0xp+0", "0.0") + ("f" if NARROW else "")


def array(name, values, what):
    aligned = " TNI_ALIGNED" if len(values) == 16 else ""
    print(f"\n/* {what} */\nstatic const {TYPE} {name}[{len(values)}]{aligned} = {{")
    print("\n".join(f"    {text(v)}," for v in values) + "\n};")


def fit(name, what, f, low, high, terms, weight=lambda x: mp.mpf(1)):
    c, error = remez(f, low, high, terms, weight)
    print(f"{name}: {terms} terms, 2^{float(mp.log(error, 2)):.1f}", file=sys.stderr)
    array(name, c, what)


def pieces(name, what, f, width, terms, odd_first=False, weight=lambda x: mp.mpf(1)):
    """16 polynomials of the distance from 0, width, 2 width, …: one row for each power, lowest first. Those of the first piece, which is
    the half above 0, have no constant term where odd_first says so."""
    rows, worst, width = [[] for _ in range(terms)], mp.mpf(0), mp.mpf(width)
    for i in range(16):
        centre, low, high = i * width, -width / 2 if i else mp.mpf(0), width / 2
        if odd_first and i == 0:
            c, error = remez(lambda u: f(u) / u if u else f(mp.mpf(10) ** -40) * mp.mpf(10) ** 40, low, high, terms - 1)
            c = [mp.mpf(0)] + c
            c[1] -= 1 if NARROW else 0  # see vec32.h
        else:
            c, error = remez(lambda u: f(centre + u), low, high, terms, lambda u: weight(centre + u))
        worst = max(worst, error)
        for k in range(terms):
            rows[k].append(c[k])
    print(f"{name}: 16 x {terms} terms, 2^{float(mp.log(worst, 2)):.1f}", file=sys.stderr)
    print(f"\n/* {what} */\nstatic const {TYPE} {name}[{terms}][16] TNI_ALIGNED = {{")
    for r in rows:
        print("    {" + ", ".join(text(v) for v in r) + "},")
    print("};")


def pieces_about(name, what, f, centres, widths, terms, bits, weight):
    """16 polynomials of the distance from given places. The first row has so many bits of the constant terms, and the second the rest."""
    rows, worst = [[] for _ in range(terms + 1)], mp.mpf(0)
    for centre, width in zip(centres, widths):
        c, error = remez(lambda u: f(centre + u), -mp.mpf(width) / 2, mp.mpf(width) / 2, terms, lambda u: weight(centre + u))
        worst = max(worst, error)
        first = short(c[0], bits)
        for row, value in zip(rows, [first, c[0] - first] + c[1:]):
            row.append(value)
    print(f"{name}: 16 x {terms} terms, 2^{float(mp.log(worst, 2)):.1f}", file=sys.stderr)
    print(f"\n/* {what} */\nstatic const {TYPE} {name}[{terms + 1}][16] TNI_ALIGNED = {{")
    for r in rows:
        print("    {" + ", ".join(text(v) for v in r) + "},")
    print("};")


def curve(f):
    """(f(x) - x) / x^2, near 0 by Taylor's series in more digits."""

    def g(x):
        with mp.workdps(90):
            x = mp.mpf(x) if x != 0 else mp.mpf(10) ** -30
            return (f(x) - x) / x**2

    return g


def odd(f):
    """f(x) = x + x z p(z) for z = x^2: p."""

    def g(z):
        with mp.workdps(90):
            z = mp.mpf(z) if z != 0 else mp.mpf(10) ** -30
            x = mp.sqrt(z)
            return (f(x) / x - 1) / z

    return g


def inverse(s):
    """erfinv(x) / x where -log(1 - x^2) = s^2."""
    with mp.workdps(70):
        w = mp.mpf(s) ** 2
        if w < mp.mpf(10) ** -20:
            return mp.sqrt(mp.pi) / 2
        x = mp.sqrt(-mp.expm1(-w))
        q = mp.exp(-w) / (1 + x)  # 1 - x
        y = mp.erfinv(x) if x < mp.mpf("0.9") else None
        if y is None:
            y = mp.sqrt(w) * mp.mpf("0.9")
            for _ in range(60):  # erfc(y) = q
                u = (mp.erfc(y) - q) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
                step = u / (1 - u * y)
                y += step
                if abs(step) < mp.mpf(10) ** -55:
                    break
        return y / x


def by_logarithm(w):
    with mp.workdps(70):
        return inverse(mp.sqrt(w)) if w > mp.mpf(10) ** -20 else inverse(0) + w * mp.mpf("0.232013666534654443")


def scaled(a):
    """exp(a^2) erfc(a)."""
    if a > 40:
        z = 1 / (2 * mp.mpf(a) ** 2)
        return sum((-1) ** k * mp.fac2(2 * k - 1) * z**k for k in range(26)) / (a * mp.sqrt(mp.pi))
    with mp.workdps(70):
        return mp.exp(mp.mpf(a) ** 2) * mp.erfc(a)


def from_one(z):
    """erf(x) / x - 1 where x^2 = z."""
    with mp.workdps(90):
        z = mp.mpf(z) if z != 0 else mp.mpf(10) ** -30
        return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def places(first, less):
    """Four pieces of each power of two, of numbers of which exponent and two bits of the mantissa are `first` or 15 more; in the order of the
    lowest four bits of those."""
    bias = 127 if NARROW else 1023
    centres, widths = [None] * 16, [None] * 16
    for i in range(first, first + 16):
        widths[i & 15] = mp.mpf(2) ** ((i >> 2) - bias - 2)
        centres[i & 15] = (4 + (i & 3) + mp.mpf(0.5)) * widths[i & 15] - mp.mpf(less)
    return centres, widths


LN2 = mp.log(2)


def main32():
    print("/* SPDX-License-Identifier: MIT */")
    print("/* cpu/kern/fits32.h: polynomials for functions of float32. Made by tools/fit_maths.py. */")
    print("#ifndef TNI_CPU_KERN_FITS32_H\n#define TNI_CPU_KERN_FITS32_H\n")
    print(ALIGNED)

    fit("fit32_erf_near", "erf(x) / x - 1 for z = x^2, x up to 1/2", from_one, 0, mp.mpf("0.2501"), 5)
    width = mp.mpf(15) / 64
    centres = [mp.mpf(0.5) + i * width for i in range(16)]
    pieces_about("fit32_erf", "erf, in pieces of 15/64 about 1/2 and more", mp.erf, centres, [width] * 16, 6, 24, lambda x: 1 / mp.erf(x))

    what = "exp(a^2) erfc(a), in pieces of a + 3/4, from 3/4 to 12; the first row has 12 bits"
    pieces_about("fit32_erfc", what, scaled, *places(0x1FA, 0.75), 7, 12, lambda a: 1 / scaled(a))

    what = "erfinv(x) / x, in pieces of w + 5/4, from 5/4 to 20, for w = -log(1 - x^2); the first row has 12 bits"
    pieces_about("fit32_erfinv", what, by_logarithm, *places(0x1FD, 1.25), 6, 12, lambda w: 1 / by_logarithm(w))
    fit("fit32_tan", "(tan(r) / r - 1) / z for z = r^2, r up to pi / 4", odd(mp.tan), 0, mp.mpf("0.61686"), 7, lambda z: z)
    root = mp.sqrt(2)
    fit("fit32_log", "(log(1 + m) - m) / m^2 for 1 + m from sqrt(1/2) to sqrt 2", curve(mp.log1p), 1 / root - 1, root - 1, 9, lambda x: abs(x))
    roots = [mp.mpf(2) ** (mp.mpf(j) / 16) for j in range(16)]
    array("fit32_roots", [short(r, 12) for r in roots], "2^(j/16), of 12 bits")
    array("fit32_roots_low", [r - short(r, 12) for r in roots], "the rest")
    print("\n#endif")


def main():
    print("/* SPDX-License-Identifier: MIT */")
    print("/* cpu/kern/fits64.h: polynomials and tables for functions of float64. Made by tools/fit_maths.py. */")
    print("#ifndef TNI_CPU_KERN_FITS64_H\n#define TNI_CPU_KERN_FITS64_H\n")
    print(ALIGNED)

    roots = [mp.mpf(2) ** (mp.mpf(j) / 16) for j in range(16)]
    array("fit_roots", roots, "2^(j/16)")
    array("fit_roots_low", [r - mp.mpf(float(r)) for r in roots], "what that lacks")
    step = short(LN2 / 16, 38)
    array("fit_step", [16 / LN2, step, LN2 / 16 - step], "16 / log 2, and log 2 / 16 in two parts")
    fit("fit_exp", "(exp(r) - 1 - r) / r^2 for r up to log 2 / 32", curve(mp.expm1), -LN2 / 31.9, LN2 / 31.9, 5, lambda x: x * x)

    fit("fit_expm1", "the same, relative to r", curve(mp.expm1), -LN2 / 31.9, LN2 / 31.9, 6, lambda x: abs(x))

    # Of the 16 pieces of log, the one with 1 in it has the centre 1; see log64.h.
    bounds = []
    for i in range(17):
        at = int(0x3FE5800000000000) + (i << 48)
        exponent, part = (at >> 52) - 1023, at & ((1 << 52) - 1)
        bounds.append((1 + mp.mpf(part) / 2**52) * mp.mpf(2) ** exponent)
    centres = [mp.mpf(1) if bounds[i] < 1 < bounds[i + 1] else (bounds[i] + bounds[i + 1]) / 2 for i in range(16)]
    array("fit_log_centre", centres, "c, in the middle of a sixteenth of the mantissas from 0.671875 on")
    array("fit_log_inverse", [1 / c for c in centres], "1 / c")
    for name, base in (("", mp.e), ("2", mp.mpf(2)), ("10", mp.mpf(10))):
        # whole multiples of 2^-41: sums with whole multiples of `high` of log 2 are exact
        high = [mp.nint(mp.log(c) / mp.log(base) * 2**41) / 2**41 for c in centres]
        array(f"fit_log{name}_high", high, f"log{name} of c, to 41 places")
        array(f"fit_log{name}_low", [mp.log(c) / mp.log(base) - h for c, h in zip(centres, high)], "the rest")
        two = LN2 / mp.log(base)
        high_two = mp.nint(two * 2**41) / 2**41
        array(f"fit_log{name}_of_2", [high_two, two - high_two, 1 / mp.log(base)], f"log{name} of 2 in two parts, and of e")
    low = min(bounds[i] / centres[i] - 1 for i in range(16))
    high = max(bounds[i + 1] / centres[i] - 1 for i in range(16))
    fit("fit_log", "(log(1 + r) - r) / r^2", curve(mp.log1p), low, high, 8, lambda x: abs(x))


    def cube(r):
        with mp.workdps(120):
            r = mp.mpf(r) if r != 0 else mp.mpf(10) ** -25
            return (mp.log1p(r) - r + r * r / 2) / r**3

    fit("fit_log_cube", "(log(1 + r) - r + r^2 / 2) / r^3", cube, low, high, 9, lambda x: x * x)

    first = short(mp.pi / 2, 37)
    second = short(mp.pi / 2 - first, 37)
    array("fit_half_pi", [2 / mp.pi, first, second, mp.pi / 2 - first - second], "2 / pi, and pi / 2 in three parts, of which the first two have 37 bits")
    fit("fit_sin", "(sin(r) / r - 1) / z for z = r^2, r up to pi / 4", odd(mp.sin), 0, mp.mpf("0.61686"), 6, lambda z: z)

    def cosine(z):
        with mp.workdps(90):
            z = mp.mpf(z) if z != 0 else mp.mpf(10) ** -20
            return (mp.cos(mp.sqrt(z)) - 1) / z

    fit("fit_cos", "(cos(r) - 1) / z, r up to pi / 4", cosine, 0, mp.mpf("0.61686"), 7, lambda z: z)
    fit("fit_asin", "(asin(t) / t - 1) / z for z = t^2, t up to 1/2", odd(mp.asin), 0, mp.mpf("0.25"), 12, lambda z: z)
    fit("fit_atan", "(atan(t) / t - 1) / z, t up to sqrt 2 - 1", odd(mp.atan), 0, mp.mpf("0.171573"), 11, lambda z: z)

    fit("fit_erf_near", "erf(x) / x - 1 for z = x^2, x up to 3/8", from_one, 0, mp.mpf("0.1407"), 8)
    width = mp.mpf(23) / 64
    centres = [mp.mpf(0.375) + i * width for i in range(16)]
    pieces_about("fit_erf", "erf, in pieces of 23/64 about 3/8 and more", mp.erf, centres, [width] * 16, 13, 53, lambda x: 1 / mp.erf(x))

    what = "erfinv(x) / x, in pieces of w + 5/2, from 5/2 to 40, for w = -log(1 - x^2); the first row has 26 bits"
    pieces_about("fit_erfinv", what, by_logarithm, *places(0x1001, 2.5), 13, 26, lambda w: 1 / by_logarithm(w))
    what = "exp(a^2) erfc(a), in pieces of a + 2, from 2 to 32; the first row has 26 bits"
    pieces_about("fit_erfc", what, scaled, *places(0x1000, 2), 15, 26, lambda a: 1 / scaled(a))
    array("fit_roots_upper", [short(r, 26) for r in roots], "2^(j/16), of 26 bits")
    array("fit_roots_lower", [r - short(r, 26) for r in roots], "the rest")
    print("\n#endif")


def bessel_table(name, what, f, less, terms):
    """Polynomials for t from 1 to 32, four for each power of two, of the distance of t - less from the middle; one with t - less = 0 at its end is about 0."""
    print(f"\n/* {what} */\nstatic const double {name}[20][{terms + 1}] = {{")
    worst = mp.mpf(0)
    for i in range(20):
        width = mp.mpf(2) ** (i // 4 - 2)
        centre = (4 + i % 4 + mp.mpf(0.5)) * width - less
        low, high = -width / 2, width / 2
        if i == 0 and less:
            centre, low, high = mp.mpf(0), mp.mpf(0), width
            c, error = remez(lambda u: (f(u) - f(0)) / u if u else mp.diff(f, 0), low, high, terms - 1)
            c = [f(0)] + c
        else:
            c, error = remez(lambda u: f(centre + u), low, high, terms, lambda u: 1 / f(centre + u))
        worst = max(worst, error)
        first = mp.mpf(float(c[0]))
        print("    {" + ", ".join(text(v) for v in [first, c[0] - first] + c[1:]) + "},")
    print("};")
    print(f"{name}: 20 x {terms} terms, 2^{float(mp.log(worst, 2)):.1f}", file=sys.stderr)


def main_bessel():
    print("/* SPDX-License-Identifier: MIT */")
    print("/* cpu/kern/fits_bessel.h: polynomials for modified Bessel functions. Made by tools/fit_maths.py. */")
    print("#ifndef TNI_CPU_KERN_FITS_BESSEL_H\n#define TNI_CPU_KERN_FITS_BESSEL_H")
    global GRID
    GRID = 240
    for n in (0, 1):
        def i_near(x, n=n):
            return mp.besseli(n, x) * mp.exp(-x) / (x if n else 1) if x else mp.mpf(1) / (1 + n)

        def k_near(x, n=n):
            return mp.besselk(n, x) * mp.exp(x)

        def i_far(r, n=n):
            return mp.besseli(n, 1 / r) * mp.exp(-1 / r) / mp.sqrt(r) if r > mp.mpf(10) ** -5 else series(r, n, -1) / mp.sqrt(2 * mp.pi)

        def k_far(r, n=n):
            return mp.besselk(n, 1 / r) * mp.exp(1 / r) / mp.sqrt(r) if r > mp.mpf(10) ** -5 else series(r, n, 1) * mp.sqrt(mp.pi / 2)

        of = " / x" if n else ""
        bessel_table(f"fit_i{n}", f"exp(-x) I{n}(x){of} in pieces of x + 1; two parts of the first coefficient", i_near, 1, 14)
        fit(f"fit_i{n}_far", f"sqrt(x) exp(-x) I{n}(x), in powers of 1 / x, from 31 on", i_far, 0, mp.mpf(1) / 31, 11)
        bessel_table(f"fit_k{n}", f"exp(x) K{n}(x) in pieces of x", k_near, 0, 14)
        fit(f"fit_k{n}_far", f"sqrt(x) exp(x) K{n}(x), in powers of 1 / x, from 32 on", k_far, 0, mp.mpf(1) / 32, 11)
    print("\n#endif")


def series(r, n, sign):
    """The asymptotic series in r = 1 / x."""
    term = total = mp.mpf(1)
    for k in range(1, 8):
        term *= sign * (4 * n * n - (2 * k - 1) ** 2) * r / (8 * k)
        total += term
    return total


if sys.argv[1:] == ["bessel"]:
    main_bessel()
else:
    main32() if NARROW else main()
