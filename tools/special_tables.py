"""Writes src/ops/special_tables.h: Chebyshev series of functions, fitted with mpmath.

python tools/special_tables.py > src/ops/special_tables.h
"""

import textwrap

from mpmath import (
    airyai,
    airybi,
    besseli,
    besselj,
    besselk,
    bessely,
    cos,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    hankel1,
    log,
    loggamma,
    mp,
    mpc,
    mpf,
    pi,
    sin,
    sinh,
    sqrt,
    tanh,
)  # fmt: skip

mp.dps = 40
TOLERANCE = mpf(10) ** -18


def chebyshev(f, n=48, tolerance=TOLERANCE):
    """Coefficients of the interpolant of f on [-1, 1], without the negligible tail."""
    values = [f(cos(pi * (k + mpf(1) / 2) / n)) for k in range(n)]
    c = [
        2 * sum(values[k] * cos(pi * j * (k + mpf(1) / 2) / n) for k in range(n)) / n
        for j in range(n)
    ]
    c[0] /= 2
    largest = max(abs(x) for x in c)
    while len(c) > 1 and abs(c[-1]) < tolerance * largest:
        c.pop()
    return c


def fit(low, high, g, n=48):
    return chebyshev(lambda t: g(low + (high - low) * (t + 1) / 2), n)


def amplitudes(order):
    """P and Q of the Hankel function's modulus and phase, in u = (8 / x)^2; Q divided by 8 / x."""
    phase = pi / 4 + order * pi / 2

    def wave(u):
        x = 8 / sqrt(u)
        return hankel1(order, x) * sqrt(pi * x / 2) * exp(-mpc(0, 1) * (x - phase))

    return fit(0, 1, lambda u: wave(u).real), fit(0, 1, lambda u: wave(u).imag / sqrt(u))


def airy_zeta(x):
    return 2 * sqrt(x) ** 3 / 3


def airy_right(t):
    """Ai without its exponential and power, in t = zeta(2) / zeta."""
    zeta = airy_zeta(2) / t
    x = (3 * zeta / 2) ** (mpf(2) / 3)
    return airyai(x) * 2 * sqrt(pi * sqrt(x)) * exp(zeta)


def airy_left(u):
    """P + i Q of Ai(-x)'s modulus and phase, in u = (zeta(2) / zeta)^2."""
    zeta = airy_zeta(2) / sqrt(u)
    x = (3 * zeta / 2) ** (mpf(2) / 3)
    wave = mpc(airyai(-x), airybi(-x)) * sqrt(pi * sqrt(x))
    return wave * exp(mpc(0, 1) * (zeta - pi / 4))


def normal_tail(r):
    """x > 0 with P(normal > x) = exp(-r^2), by Newton's method on the logarithm."""
    p = exp(-r * r)
    x = sqrt(2 * r * r - log(4 * pi * r * r)) if r > 1.2 else mpf("1.3")
    for _ in range(60):
        tail, slope = erfc(x / sqrt(mpf(2))) / 2, -exp(-x * x / 2) / sqrt(2 * pi)
        step = (log(tail) - log(p)) * tail / slope
        x -= step
        if abs(step) < mpf(10) ** -32:
            break
    return x


def erfcx_over_t(t):
    x = 4 * (1 - t) / t
    return erfc(x) * exp(x * x) / t


def erfcx_flat(t):
    """exp(x^2) erfc(x) (1 + 2 x) - 1, which is small for every x >= 0, in t = (x - 3) / (x + 3)."""
    if t > mpf("0.98"):  # x > 297: the asymptotic series
        y = (1 - t) / (3 * (1 + t))
        terms = 1 - y**2 / 2 + 3 * y**4 / 4 - 15 * y**6 / 8 + 105 * y**8 / 16
        return (terms - 945 * y**10 / 32) * (y + 2) / sqrt(pi) - 1
    x = 3 * (1 + t) / (1 - t)
    return erfc(x) * exp(x * x) * (1 + 2 * x) - 1


def erfinv_ratio(w):
    """erfinv(x) / x in w = -log(1 - x^2)."""
    x = sqrt(1 - exp(-w))
    if x < mpf("0.8"):
        return erfinv(x) / x
    return normal_tail(sqrt(w + log(2 * (1 + x)))) / sqrt(mpf(2)) / x


def lgamma_near(d):
    """lgamma(1 + d) / (d (d - 1)): without the zeros at 1 and 2."""
    return loggamma(1 + d).real / (d * (d - 1))


def lgamma_far(u):
    """What Stirling's formula leaves out, times 8 / x, in u = (8 / x)^2."""
    x = 8 / sqrt(u)
    return (loggamma(x).real - (x - mpf(1) / 2) * log(x) + x - log(2 * pi) / 2) * x / 8


def tables():
    yield "AiCentre", fit(-2, 2, airyai)
    yield "AiRight", fit(0, 1, airy_right)
    yield "AiP", fit(0, 1, lambda u: airy_left(u).real)
    yield "AiQ", fit(0, 1, lambda u: airy_left(u).imag / sqrt(u))
    yield "I0Small", fit(0, 8, lambda x: besseli(0, x) * exp(-x))
    yield "I0Large", fit(0, 1, lambda u: besseli(0, 8 / u) * exp(-8 / u) * sqrt(8 / u))
    yield "I1Small", fit(0, 8, lambda x: besseli(1, x) * exp(-x) / x)
    yield "I1Large", fit(0, 1, lambda u: besseli(1, 8 / u) * exp(-8 / u) * sqrt(8 / u))
    yield "Erfcx", fit(0, 1, erfcx_over_t, 64)
    yield "J0Small", fit(0, 64, lambda y: besselj(0, sqrt(y)))
    yield "J1Small", fit(0, 64, lambda y: besselj(1, sqrt(y)) / sqrt(y))

    def y0(x):
        return bessely(0, x) - 2 / pi * log(x) * besselj(0, x)

    def y1(x):
        return (bessely(1, x) - 2 / pi * (log(x) * besselj(1, x) - 1 / x)) / x

    yield "Y0Small", fit(0, 64, lambda y: y0(sqrt(y)))
    yield "Y1Small", fit(0, 64, lambda y: y1(sqrt(y)))
    for order in (0, 1):
        p, q = amplitudes(order)
        yield f"P{order}", p
        yield f"Q{order}", q

    def k0(x):
        return besselk(0, x) + log(x / 2) * besseli(0, x)

    def k1(x):
        return (besselk(1, x) - log(x / 2) * besseli(1, x)) * x

    yield "K0Small", fit(0, 4, lambda y: k0(sqrt(y)))
    yield "K1Small", fit(0, 4, lambda y: k1(sqrt(y)))
    yield "K0Large", fit(0, 1, lambda u: besselk(0, 2 / u) * exp(2 / u) * sqrt(2 / u))
    yield "K1Large", fit(0, 1, lambda u: besselk(1, 2 / u) * exp(2 / u) * sqrt(2 / u))
    centre = mpf("0.425") ** 2
    yield "NdtriCentre", fit(0, centre, lambda y: sqrt(mpf(2)) * erfinv(2 * sqrt(y)) / sqrt(y))
    yield "NdtriNear", fit(mpf("1.5"), 5, normal_tail)
    yield "NdtriFar", fit(mpf(1) / 28, mpf(1) / 5, lambda q: normal_tail(1 / q) * q)
    # transcendental.cc's.
    half = mpf(1) / 2
    yield "Expm1", fit(-half, half, lambda x: (expm1(x) - x) / x**2)
    yield "Sinh", fit(0, 1, lambda y: (sinh(sqrt(y)) / sqrt(y) - 1) / y)
    yield "Tanh", fit(0, mpf("0.36"), lambda y: (tanh(sqrt(y)) / sqrt(y) - 1) / y)
    yield "Erf", fit(0, 1, lambda y: erf(sqrt(y)) / sqrt(y) - 1)
    yield "LogErfc", fit(1, 4, lambda x: log(erfc(x)))
    yield "ErfcxFlat", fit(-1, 1, erfcx_flat, 80)
    yield "ErfinvNear", fit(0, 5, erfinv_ratio)
    for name, low, high in (("Tail", "2.2", "4.2"), ("Far", "4.2", "6.2")):
        yield f"Erfinv{name}", fit(mpf(low), mpf(high), lambda q: erfinv_ratio(q * q) / q)
    yield "LgammaNear", fit(-half / 2, 2 - half, lgamma_near)
    yield "LgammaMiddle", fit(mpf("2.5"), 8, lambda x: loggamma(x).real / (x - 2))
    yield "LgammaFar", fit(0, 1, lgamma_far)
    yield "SinPi", fit(0, half / 2, lambda y: sin(pi * sqrt(y)) / (pi * sqrt(y)))


print("""// Chebyshev coefficients for special.cc and transcendental.cc, fitted by
// tools/special_tables.py at 40 digits, down to 1e-18 of the largest. Not to be edited.
#pragma once

namespace tpu::ops::tables {
""")
for name, c in tables():
    numbers = ", ".join(mp.nstr(x, 18, min_fixed=-3, max_fixed=3) for x in c)
    print(f"inline constexpr double k{name}[] = {{")
    print(textwrap.fill(numbers, 96, initial_indent="    ", subsequent_indent="    ",
                        break_on_hyphens=False) + "};")  # fmt: skip
print("\n}  // namespace tpu::ops::tables")
