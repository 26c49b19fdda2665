"""Least squares, λ = 0, on the reference data of NIST: how many digits of the certified coefficients are right."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from gramian.ridge.estimator import Ridge
from gramian.ridge.least_squares import Pair

DATA = json.loads((Path(__file__).parents[1] / "data" / "nist_strd.json").read_text("utf-8"))
NAMES = ("norris", "longley", "wampler1", "wampler2", "filip")


def powers(x, degree):
    return np.column_stack([np.asarray(x, dtype=np.float64) ** k for k in range(1, degree + 1)])


def dataset(name):
    """X, y and the certified coefficients, the intercept first."""
    if name.startswith("wampler"):
        step, x = {"wampler1": Fraction(1), "wampler2": Fraction(1, 10)}[name], range(21)
        y = [float(sum((step * i) ** k for k in range(6))) for i in x]
        return powers(x, 5), np.array(y), np.array([float(step**k) for k in range(6)])
    entry = DATA[name]
    X = powers(entry["x"], 10 if name == "filip" else 1) if name != "longley" else np.array(entry["x"], dtype=float)
    return X, np.array(entry["y"], dtype=float), np.array(entry["certified"])


def digits(found, certified):
    """The log relative error of the worst coefficient."""
    worst = np.max(np.abs(found - certified) / np.abs(certified))
    return 16.0 if worst == 0 else -np.log10(worst)


def exact_least_squares(X, y):
    """Normal equations in rational numbers: no rounding at all."""
    rows = [[Fraction(1), *row] for row in X]
    p = len(rows[0])
    M = [
        [sum(r[i] * r[j] for r in rows) for j in range(p)] + [sum(r[i] * t for r, t in zip(rows, y, strict=True))]
        for i in range(p)
    ]
    for i in range(p):  # positive definite: no pivoting needed
        M[i] = [v / M[i][i] for v in M[i]]
        M = [row if k == i else [a - row[i] * b for a, b in zip(row, M[i], strict=True)] for k, row in enumerate(M)]
    return [row[-1] for row in M]


@pytest.mark.parametrize("name", ["norris", "longley", "filip"])
def test_the_data_are_those_that_were_certified(name):
    """The decimals as printed give the certified coefficients to all their digits, and the residual sum of squares."""
    entry, degree = DATA[name], 10 if name == "filip" else 1
    decimals = [[Fraction(str(v)) for v in np.atleast_1d(np.array(x, dtype=object))] for x in entry["x"]]
    X = decimals if name == "longley" else [[x**k for k in range(1, degree + 1)] for (x,) in decimals]
    y = [Fraction(str(v)) for v in entry["y"]]
    beta = exact_least_squares(X, y)
    assert digits(np.array([float(b) for b in beta]), np.array(entry["certified"])) > 14
    rss = sum(
        (t - beta[0] - sum(b * v for b, v in zip(beta[1:], r, strict=True))) ** 2 for r, t in zip(X, y, strict=True)
    )
    assert float(rss) == pytest.approx(entry["rss"], rel=1e-14)


@pytest.mark.parametrize(("name", "expected"), [(name, 7 if name == "filip" else 9) for name in NAMES])
def test_least_squares_has_the_certified_digits(name, expected):
    X, y, certified = dataset(name)
    model = Ridge(alpha=0.0).fit(X, y)
    assert digits(np.append(model.intercept_, model.coef_), certified) >= expected


@pytest.mark.parametrize(("name", "expected"), [("norris", 9), ("longley", 9), ("wampler1", 9), ("wampler2", 9)])
def test_so_it_has_with_the_constant_as_a_column(name, expected):
    X, y, certified = dataset(name)
    model = Ridge(alpha=0.0, fit_intercept=False).fit(np.column_stack([np.ones(len(X)), X]), y)
    assert digits(model.coef_, certified) >= expected


@pytest.mark.parametrize("name", NAMES)
def test_the_residual_sum_of_squares_is_the_certified_one(name):
    X, y, _ = dataset(name)
    rss = float(np.sum((y - Ridge(alpha=0.0).fit(X, y).predict(X)) ** 2))
    certified = DATA[name]["rss"] if name in DATA else 0.0
    # terms of the polynomial of degree 10 are millions of times their sum: seven digits go in adding them up
    assert rss == pytest.approx(certified, rel=1e-7 if name == "filip" else 1e-9, abs=1e-16 * float(y @ y))


def nearly_dependent(seed):
    """A small problem with condition up to about 1e14: powers, or columns that differ by little; targets, intercept."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(6, 14)), int(rng.integers(1, 5))
    if seed % 2:
        X = (rng.uniform(0, 10) + np.arange(n))[:, None] ** np.arange(1, p + 1)
    else:
        X = rng.normal(size=(n, 1)) + 10.0 ** rng.uniform(-12, 0, p) * rng.normal(size=(n, p))
    X = X * 10.0 ** rng.integers(-3, 4, p) + 10.0 ** rng.integers(-2, 4) * rng.integers(0, 2)
    y = X @ rng.normal(size=p) + 10.0 ** rng.uniform(-14, 1) * rng.normal(size=n)
    return X, y, bool(seed % 3)


def exceeds_its_bound(seed):
    """Whether the coefficients lie farther from the rational ones than their bound says; and what both are."""
    X, y, intercept = nearly_dependent(seed)
    model = Ridge(alpha=0.0, fit_intercept=intercept).fit(X, y)
    bound = model.certificate_.error_bounds[0]
    if not np.isfinite(bound):
        return False, np.nan, np.nan
    rows = [[Fraction(float(v)) for v in row] for row in X]
    right = [Fraction(float(v)) for v in y]
    if not intercept:  # a column of ones whose coefficient is taken out: solve without it
        p = len(rows[0])
        M = [[sum(r[i] * r[j] for r in rows) for j in range(p)] for i in range(p)]
        M = [[*row, sum(r[i] * t for r, t in zip(rows, right, strict=True))] for i, row in enumerate(M)]
        for i in range(p):
            M[i] = [v / M[i][i] for v in M[i]]
            M = [row if k == i else [a - row[i] * b for a, b in zip(row, M[i], strict=True)] for k, row in enumerate(M)]
        exact = [row[-1] for row in M]
    else:
        exact = exact_least_squares(rows, right)[1:]
    error = float(sum((Fraction(float(c)) - e) ** 2 for c, e in zip(model.coef_, exact, strict=True))) ** 0.5
    return error > bound, error, bound


@pytest.mark.filterwarnings("ignore")
def test_the_bound_holds_however_nearly_dependent_the_columns_are():
    found = [exceeds_its_bound(seed) for seed in range(150)]
    assert not any(exceeded for exceeded, _, _ in found)
    assert sum(np.isfinite(bound) for _, _, bound in found) > 100


@pytest.mark.parametrize("name", ["wampler1", "filip"])
def test_residuals_of_twice_the_digits_leave_the_rounding_of_the_coefficients(name):
    X, y, _ = dataset(name)
    model = Ridge(alpha=0.0).fit(X, y)
    exact = exact_least_squares([[Fraction(float(v)) for v in row] for row in X], [Fraction(float(v)) for v in y])[1:]
    error = float(sum((Fraction(float(c)) - e) ** 2 for c, e in zip(model.coef_, exact, strict=True))) ** 0.5
    size, bound = np.linalg.norm(model.coef_), model.certificate_.error_bounds[0]
    assert error <= 2.0**-52 * size
    assert error <= bound <= 2.0**-50 * size
    assert model.certificate_.proved
    assert digits(model.coef_, np.array([float(e) for e in exact])) > 15.5
    weighted = Ridge(alpha=0.0).fit(X, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_allclose(weighted.coef_, model.coef_, rtol=4e-16)
    several = Ridge(alpha=0.0).fit(X, np.column_stack([y, 4 * y]))
    np.testing.assert_allclose(several.coef_[1], 4 * model.coef_, rtol=4e-16)


def test_sums_of_two_numbers_are_exact():
    rng = np.random.default_rng(0)
    a, b = (Pair.of(rng.normal(size=(17, 2)) * 10.0 ** rng.integers(-9, 9, (17, 2))) for _ in range(2))
    exact = [
        sum(Fraction(float(u)) * Fraction(float(v)) for u, v in zip(*c, strict=True))
        for c in zip(a.high.T, b.high.T, strict=True)
    ]
    found = (a * b).sum_rows()
    unit = float(np.finfo(np.longdouble).eps)
    for high, low, true in zip(found.high, found.low, exact, strict=True):
        whole = sum(Fraction(*part.as_integer_ratio()) for part in (high, low))
        assert abs(whole - true) <= 1e3 * unit**2 * max(abs(true), 1)
    mean, true = a.mean_rows(), sum(Fraction(float(v)) for v in a.high[:, 0]) / 17
    whole = sum(Fraction(*part[0].as_integer_ratio()) for part in (mean.high, mean.low))
    assert abs(whole - true) <= 1e3 * unit**2 * float(np.abs(a.high).max())
