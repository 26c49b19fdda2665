"""How often each rule for the number of components is right, where the right number is known.

Usage: python -m bench.rank_rules [--replicates 100] [--seed 0]

Rows are normal with unit variance but for three directions, whose variance is 1 + c√γ with γ = p/n: for c ≤ 1 no method
finds them as n and p grow (Baik, Ben Arous and Péché, 2005), and c = 0 is noise alone, where the right answer is 0.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gramian import PCA
from gramian.pca.rank import SPECTRUM_RULES, cross_validate_rank, minka_choice, parallel_analysis

Array = NDArray[np.float64]

SHAPES = ((500, 20), (100, 100), (40, 200))
STRENGTHS = (0.0, 1.5, 3.0, 6.0, 20.0)
COMPONENTS = 3
DRAWS = 40
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


def main() -> None:
    """Read the command line and report."""
    parser = argparse.ArgumentParser(description="Hit rates of rules for the number of components.")
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report(options.replicates, options.seed)


if __name__ == "__main__":
    main()
