"""How often intervals hold a new observation: ``python -m bench.coverage [--simulations 100]``.

100 rows with x uniform from 0 to 3 and y = sin 2x plus noise (of ``RidgeCV`` y = x plus noise), in each simulation 200
new observations, and intervals of 90 %. The noise is normal with a standard deviation of 0.3; normal with 0.1 + 0.3x;
or 0.2 times Student's t with 2 degrees of freedom. The split form of the conformal interval fits 50 of the rows and
calibrates with the others. What is chosen or learned is chosen and learned from the same rows in every simulation.
Mean coverage, with the standard error over simulations, and the mean width; and the least coverage in a third of x.
"""

import argparse
from typing import Any

import numpy as np

from gramian import KernelRidgeCV, RidgeCV

ROWS, NEW, LEVEL = 100, 200, 0.9
NOISES: dict[str, Any] = {
    "normal": lambda rng, x: 0.3 * rng.standard_normal(len(x)),
    "growing with x": lambda rng, x: (0.1 + 0.3 * x) * rng.standard_normal(len(x)),
    "Student's t, 2 degrees": lambda rng, x: 0.2 * rng.standard_t(2, len(x)),
}
MODELS: dict[str, Any] = {
    "RidgeCV": lambda: RidgeCV(np.logspace(-4, 2, 13)),
    "KernelRidgeCV": lambda: KernelRidgeCV(fit_intercept=True),
    "KernelRidgeCV, learn=loo": lambda: KernelRidgeCV(learn="loo", fit_intercept=True),
}
METHODS = ("gaussian", "jackknife+", "conformal", "split")


def interval(make: Any, model: Any, method: str, x: Any, y: Any, new: Any) -> tuple[Any, Any]:
    """Ends of the intervals at the new points."""
    if method != "split":
        low, high = model.predict_interval(new, LEVEL, method=method)
    else:
        half = make().fit(x[::2], y[::2])
        low, high = half.predict_interval(new, LEVEL, method="conformal", calibration=(x[1::2], y[1::2]))
    return low, high


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    made = argparse.ArgumentParser(prog="python -m bench.coverage", description=__doc__)
    made.add_argument("--simulations", type=int, default=100)
    args = made.parse_args(argv)
    print(f"| noise | model | {' | '.join(METHODS)} |\n|---|---|{'---|' * len(METHODS)}")
    for noise, draw in NOISES.items():
        for name, make in MODELS.items():
            inside = np.zeros((len(METHODS), args.simulations))
            widths, thirds = inside.copy(), np.zeros((len(METHODS), args.simulations, 3))
            for k in range(args.simulations):
                rng = np.random.default_rng(k)
                x = rng.uniform(0.0, 3.0, (ROWS + NEW, 1))
                y = (x[:, 0] if name == "RidgeCV" else np.sin(2 * x[:, 0])) + draw(rng, x[:, 0])
                old, new, truth = x[:ROWS], x[ROWS:], y[ROWS:]
                model = make().fit(old, y[:ROWS])
                for j, method in enumerate(METHODS):
                    low, high = interval(make, model, method, old, y[:ROWS], new)
                    held = (low <= truth) & (truth <= high)
                    inside[j, k], widths[j, k] = held.mean(), np.mean(high - low)
                    thirds[j, k] = [held[(new[:, 0] >= a) & (new[:, 0] < a + 1)].mean() for a in (0, 1, 2)]
            cells = [
                f"{one.mean():.3f} ± {one.std() / len(one) ** 0.5:.3f} ({wide.mean():.2f}; {third.mean(0).min():.2f})"
                for one, wide, third in zip(inside, widths, thirds, strict=True)
            ]
            print(f"| {noise} | {name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
