"""How often each rule for the number of components is right, where the right number is known.

Usage: python -m bench.rank_rules [--replicates 100] [--seed 0] [--noises [white mild t4 unlike ar]]

Rows are normal with unit variance but for three directions, whose variance is 1 + c√γ with γ = p/n: for c ≤ 1 no method
finds them as n and p grow (Baik, Ben Arous and Péché, 2005), and c = 0 is noise alone, where the right answer is 0.

With ``--noises``, what ``rank_advice`` says under five noises and of shapes drawn at random: three components are
added whose variance is c times the largest eigenvalue of the noise as it was drawn, its edge as it is.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gramian import PCA, rank_advice
from gramian.pca.rank import SPECTRUM_RULES, cross_validate_rank, minka_choice, parallel_analysis

Array = NDArray[np.float64]

SHAPES = ((500, 20), (100, 100), (40, 200))
STRENGTHS = (0.0, 1.5, 3.0, 6.0, 20.0)
COMPONENTS = 3
DRAWS = 40
NOISES = ("white", "mild", "t4", "unlike", "ar")
TRIED = 10


def spiked(n: int, p: int, c: float, rng: np.random.Generator) -> Array:
    """Return unit noise with three directions of variance 1 + c√(p/n), turned at random."""
    X = rng.standard_normal((n, p))
    X[:, :COMPONENTS] *= np.sqrt(1 + c * np.sqrt(p / n))
    return np.asarray(X @ np.linalg.qr(rng.standard_normal((p, p)))[0])


def answers(X: Array) -> dict[str, int]:
    """Return what each rule says."""
    n, p = X.shape
    pca = PCA()
    values = PCA().fit(X).explained_variance_
    found = {name: rule(values, n, p).n_components for name, rule in SPECTRUM_RULES.items()}
    found["mle"] = minka_choice(values, n, p).n_components
    found["parallel"] = parallel_analysis(pca, X, n_draws=DRAWS).n_components
    found["parallel-gaussian"] = parallel_analysis(pca, X, null="gaussian", n_draws=DRAWS).n_components
    found["cv"] = cross_validate_rank(pca, X, max_components=TRIED).n_components
    return found


def cell(n: int, p: int, c: float, replicates: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return the share of right answers and the mean answer of each rule."""
    rng = np.random.default_rng([seed, n, p, round(10 * c)])
    runs = [answers(spiked(n, p, c, rng)) for _ in range(replicates)]
    truth = COMPONENTS if c else 0
    by_rule = {name: np.array([run[name] for run in runs]) for name in sorted(runs[0])}
    return {name: (float(np.mean(k == truth)), float(np.mean(k))) for name, k in by_rule.items()}


def report(replicates: int, seed: int, say: Callable[[str], None] = print) -> None:
    """Print one table for each shape: per cent right, and the mean answer in brackets."""
    for n, p in SHAPES:
        cells = [cell(n, p, c, replicates, seed) for c in STRENGTHS]
        say(f"\n{n} rows, {p} columns (γ = {p / n:g})\n")
        say("| rule | noise alone | " + " | ".join(f"c = {c:g}" for c in STRENGTHS[1:]) + " |")
        say("|---" * (1 + len(STRENGTHS)) + "|")
        for name in cells[0]:
            say(f"| `{name}` | " + " | ".join(f"{100 * one[name][0]:.0f} ({one[name][1]:.1f})" for one in cells) + " |")


def draw_noise(kind: str, n: int, p: int, rng: np.random.Generator) -> Array:
    """Return "white", "mild" (deviations of 0.7 to 1.4), "t4", "unlike" (0.3 to 3) or "ar" (along columns) noise."""
    if kind == "t4":
        return np.asarray(rng.standard_t(4, (n, p)))
    Z = rng.standard_normal((n, p))
    if kind == "mild":
        return np.asarray(Z * rng.uniform(0.7, 1.4, p))
    if kind == "unlike":
        return np.asarray(Z * np.exp(rng.uniform(np.log(0.3), np.log(3.0), p)))
    if kind == "ar":
        for j in range(1, p):
            Z[:, j] = 0.5 * Z[:, j - 1] + np.sqrt(0.75) * Z[:, j]
    return Z


def add_components(N: Array, c: float, rng: np.random.Generator) -> Array:
    """Add three components of c times the largest eigenvalue of the noise, turned at random."""
    N = N - N.mean(axis=0)
    edge = float(np.linalg.svd(N, compute_uv=False)[0]) ** 2 / (len(N) - 1)
    V = np.linalg.qr(rng.standard_normal((N.shape[1], COMPONENTS)))[0]
    return np.asarray(N + rng.standard_normal((len(N), COMPONENTS)) * np.sqrt(c * edge) @ V.T)


def draw_shape(rng: np.random.Generator) -> tuple[int, int]:
    """Return 60 to 800 rows and 20 to 150 columns; of ten 1,000 rows and 200 columns, or fewer rows than columns."""
    kind = int(rng.integers(10))
    if kind == 0:
        return 1000, 200
    if kind == 1:
        return int(rng.integers(30, 60)), int(rng.integers(80, 400))
    return int(rng.integers(60, 801)), int(rng.integers(20, 151))


def report_noises(
    replicates: int, seed: int, kinds: tuple[str, ...] = NOISES, say: Callable[[str], None] = print
) -> None:
    """Print how often the number is right, and how often its range holds the truth, by noise and strength."""
    say("\n| noise | noise alone: right | range | 4 times the edge: right | range | 1.5 times: right | range | width |")
    say("|---" * 8 + "|")
    for kind in kinds:
        number, shown, width = NOISES.index(kind), list[str](), 0
        for c in (0.0, 4.0, 1.5):
            rng, truth = np.random.default_rng([seed, number]), COMPONENTS * (c > 0)
            right, within, width = 0, 0, 0
            for _ in range(replicates):
                N = draw_noise(kind, *draw_shape(rng), rng)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    advice = rank_advice(add_components(N, c, rng) if c else N)
                low, high = advice.interval or (0, 0)
                right, within, width = (
                    right + (advice.consensus == truth),
                    within + (low <= truth <= high),
                    width + high,
                )
                width -= low
            shown += [f"{100 * right / replicates:.0f}", f"{100 * within / replicates:.0f}"]
        say(f"| {kind} | " + " | ".join(shown) + f" | {width / replicates:.1f} |")


def main() -> None:
    """Read the command line and report."""
    parser = argparse.ArgumentParser(description="Hit rates of rules for the number of components.")
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noises", nargs="*", choices=NOISES, help="all, or those that are named")
    options = parser.parse_args()
    if options.noises is None:
        report(options.replicates, options.seed)
    else:
        report_noises(options.replicates, options.seed, tuple(options.noises) or NOISES)


if __name__ == "__main__":
    main()
