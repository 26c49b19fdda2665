"""Random samples of every kind and size: the maximum is that of exact arithmetic, or the fit says that it is none."""

import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from attack.densities import COUNTS, LINE, POSITIVE, log_likelihood
from attack.harness import case_count, seed
from gramian.likelihood import Binned, Censored, Intervals, fit

EPS = float(np.finfo(float).eps)
DRAWS = {"line": lambda rng, n: rng.standard_t(3, n), "positive": lambda rng, n: rng.gamma(2.0, 1.0, n)}


def draw_sample(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of a fit: values, classes, censored values or limits, weighted or not, truncated or not."""
    n, kind = int(rng.integers(4, 15)), rng.integers(5)
    if name in COUNTS:
        size = 10.0 ** rng.uniform(-1, 15 if kind < 2 else 2)  # tails of large counts take mpmath long
        x = np.floor(size * rng.gamma(rng.choice([0.5, 30.0]), 1.0, n)) + (name == "geometric")
        scale = 1.0
    else:
        scale = 10.0 ** rng.uniform(-250, 250)
        x = DRAWS["line" if name in LINE else "positive"](rng, n) * scale
        if name in LINE:
            x = x + scale * rng.choice([0.0, 10.0, -1e3])
    if kind == 0:
        return {"data": x}
    if kind == 1:
        return {"data": x, "sample_weight": rng.integers(0, 4, n) + (np.arange(n) < 3)}
    if kind == 2:
        top = np.sort(x)[-2]
        return {"data": Censored(np.minimum(x, top), x < top)}
    low, high = np.sort(x)[[0, -1]]
    if kind == 3:
        inner = np.unique(
            np.floor(np.quantile(x, [0.2, 0.4, 0.6, 0.8])) if name in COUNTS else np.quantile(x, [0.2, 0.5, 0.7])
        )
        edges = np.concatenate([[0.0 if name in POSITIVE else -np.inf], inner, [np.inf]])
        return {"data": Binned(edges, np.histogram(x, edges)[0] + rng.integers(1, 4, len(edges) - 1))}
    if name in COUNTS:
        return {"data": x, "truncated": (float(name == "geometric"), high + 2)}
    width = 0.1 * scale
    return {"data": Intervals(x, np.where(rng.random(n) < 0.5, x, x + width)), "truncated": (low - width, np.inf)}


@pytest.mark.parametrize("name", [*LINE, *POSITIVE, *COUNTS])
def test_certified_maxima_have_no_ascent_in_exact_arithmetic(name: str) -> None:
    """At a maximum that is called one the score of exact arithmetic, in standard errors, meets the tolerance.

    Beyond the tolerance, only the rounding of the parameters to float64 may add to it.
    """
    proved = 0
    for case in range(case_count(6)):
        rng = np.random.default_rng([seed(), case, sum(map(ord, name))])
        arguments = draw_sample(name, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                found = fit(name, **arguments)
            except ValueError:
                continue
        if not found.certificate.converged or np.isnan(found.covariance).any() or not np.isfinite(found.values).all():
            continue
        proved += 1
        label = f"{name}, case {case} of seed {seed()}: {found}"
        errors = np.array(list(found.standard_errors.values()))
        correlation = (
            found.covariance / np.outer(errors, errors) if (errors > 1e-140).all() and (errors < 1e140).all() else None
        )
        with mp.workdps(40):
            values, step = [mp.mpf(v) for v in found.values], mp.mpf(10) ** -12
            height = log_likelihood(name, found.sample, values)
            assert abs(height - mp.mpf(found.loglik)) <= 1e-9 * (1 + abs(height)), label
            if name == "laplace":  # kinks: there is no score
                continue
            g = []
            for j, error in enumerate(errors):
                up, down = (
                    [v + sign * step * mp.mpf(error) * (i == j) for i, v in enumerate(values)] for sign in (1, -1)
                )
                rise = log_likelihood(name, found.sample, up) - log_likelihood(name, found.sample, down)
                g.append(float(rise / (2 * step)))
        size = np.sqrt(g @ correlation @ g) if correlation is not None else np.linalg.norm(g)
        rounding = EPS * np.linalg.norm(found.values / errors) * (np.linalg.norm(g) / size if size else 1.0)
        slack = 1.0 if correlation is not None else 1e3
        assert size <= slack * (found.certificate.tolerance + rounding), label
    assert proved >= case_count(6) // 6
