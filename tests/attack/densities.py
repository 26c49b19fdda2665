"""Densities and probabilities of the families of :mod:`gramian.likelihood`, by their textbook formulas in mpmath."""

from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

COUNTS = ("poisson", "geometric", "negative binomial")
POSITIVE = ("exponential", "gamma", "weibull", "lognormal")
LINE = ("normal", "logistic", "laplace", "student t")


def log_density(name: str, x: Any, v: Any) -> Any:
    """ln f(x), or ln P(X = x)."""
    x, v = mp.mpf(x), [mp.mpf(value) for value in v]
    if name == "student t" and mp.isinf(v[0]):
        name, v = "normal", v[1:]
    if name == "negative binomial" and mp.isinf(v[0]):
        name, v = "poisson", v[1:]
    a, b = v[0], v[-1]
    if name == "student t":
        df, z = v[0], (x - v[1]) / b
        constant = mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2 - mp.log(b)
        return constant - (df + 1) / 2 * mp.log1p(z * z / df)
    formulas = {
        "normal": lambda: -(((x - a) / b) ** 2) / 2 - mp.log(b) - mp.log(2 * mp.pi) / 2,
        "logistic": lambda: -abs((x - a) / b) - 2 * mp.log1p(mp.exp(-abs((x - a) / b))) - mp.log(b),
        "laplace": lambda: -abs(x - a) / b - mp.log(2 * b),
        "exponential": lambda: mp.log(a) - a * x,
        "gamma": lambda: a * mp.log(b) - mp.loggamma(a) + (a - 1) * mp.log(x) - b * x,
        "weibull": lambda: mp.log(a / b) + (a - 1) * mp.log(x / b) - (x / b) ** a,
        "lognormal": lambda: log_density("normal", mp.log(x), v) - mp.log(x),
        "beta": lambda: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - mp.log(mp.beta(a, b)),
        "poisson": lambda: x * mp.log(a) - a - mp.loggamma(x + 1),
        "geometric": lambda: (x - 1) * mp.log1p(-a) + mp.log(a),
        "negative binomial": lambda: (
            mp.loggamma(x + a) - mp.loggamma(x + 1) - mp.loggamma(a) + a * mp.log(a / (a + b)) + x * mp.log(b / (a + b))
        ),
    }
    return formulas[name]()


def tail(name: str, x: Any, v: Any, *, above: bool) -> Any:
    """P(X > x), or P(X ≤ x)."""
    x, v = mp.mpf(x), [mp.mpf(value) for value in v]
    if mp.isinf(x):
        return mp.mpf(int((x < 0) == above))
    if name == "student t" and mp.isinf(v[0]):
        name, v = "normal", v[1:]
    if name == "negative binomial" and mp.isinf(v[0]):
        name, v = "poisson", v[1:]
    a, b, x = v[0], v[-1], mp.floor(x) if name in COUNTS else x
    if (name in POSITIVE and x <= 0) or (name in COUNTS and x < (name == "geometric")):
        return mp.mpf(int(above))
    z = (x - (v[1] if name == "student t" else a)) / b * (1 if above else -1)
    if name == "student t":
        far = mp.betainc(a / 2, mp.mpf(1) / 2, 0, a / (a + z * z), regularized=True) / 2
        return far if z >= 0 else 1 - far
    formulas = {
        "normal": lambda: mp.erfc(z / mp.sqrt(2)) / 2,
        "logistic": lambda: 1 / (1 + mp.exp(z)),
        "laplace": lambda: mp.exp(-z) / 2 if z > 0 else 1 - mp.exp(z) / 2,
        "exponential": lambda: mp.exp(-a * x) if above else -mp.expm1(-a * x),
        "weibull": lambda: mp.exp(-((x / b) ** a)) if above else -mp.expm1(-((x / b) ** a)),
        "lognormal": lambda: tail("normal", mp.log(x), v, above=above),
        "gamma": lambda: mp.gammainc(a, *((b * x, mp.inf) if above else (0, b * x)), regularized=True),
        "poisson": lambda: mp.gammainc(x + 1, *((0, a) if above else (a, mp.inf)), regularized=True),
        "geometric": lambda: (1 - a) ** x if above else 1 - (1 - a) ** x,
        "negative binomial": lambda: abs((not above) - mp.betainc(x + 1, a, 0, b / (a + b), regularized=True)),
    }
    return formulas[name]()


def log_likelihood(name: str, sample: Any, v: Any) -> Any:
    """Σw ln p of the records of a Sample, each divided by the probability of what could be seen."""

    def log_probability(a: float, b: float) -> Any:
        above = a > -np.inf and tail(name, a, v, above=True) < 0.5
        return mp.log(abs(tail(name, b, v, above=above) - tail(name, a, v, above=above)))

    sides = np.broadcast_arrays(sample.lower, sample.upper, sample.left, sample.right, sample.weight)
    total = mp.mpf(0)
    for a, b, c, d, w in zip(*sides, strict=True):
        if w == 0:
            continue
        c = np.ceil(c) - 1 if name in COUNTS else c
        each = log_density(name, a, v) if a == b else log_probability(max(a, c), min(b, d))
        if np.isfinite(c) or np.isfinite(d):
            each -= log_probability(c, d)
        total += mp.mpf(float(w)) * each
    return total
