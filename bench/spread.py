"""How long and how wide the spread of predictions is, and how often it holds: ``python -m bench.spread``.

Usage: python -m bench.spread [--rows 36000] [--points 1000] [--targets 5] [--columns 4] [--seed 0]

Targets are drawn from the Gaussian process with the kernel of the fit (by 4,000 random cosines) and have noise, so that
95 % of new observations lie within 1.96 standard deviations where these are right. Printed are the seconds of fit,
prediction with ``return_std`` and ``std_bounds``, how far the bounds on the variance are apart, and how many of all
new observations of all targets lie within; beside them, the same of a constant spread and of ``return_std="subset"``.
"""

import argparse
import time
from datetime import UTC, datetime

import numpy as np

import gramian
from bench.machine import describe
from gramian import KernelRidge

COSINES = 4000
NORMAL = 1.959963984540054


def draw_targets(
    rng: np.random.Generator, rows: int, columns: int, targets: int, gamma: float, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows, normal; and targets of a Gaussian process of variance 1 with this kernel, with noise."""
    X = rng.standard_normal((rows, columns))
    waves = rng.standard_normal((columns, COSINES)) * np.sqrt(2 * gamma)
    amplitudes = rng.standard_normal((COSINES, targets)) * np.sqrt(2 / COSINES)
    phases = rng.uniform(0, 2 * np.pi, COSINES)
    F = np.concatenate([np.cos(part @ waves + phases) @ amplitudes for part in np.array_split(X, max(1, rows // 2000))])
    return X, F + noise * rng.standard_normal(F.shape)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The spread of predictions at scale.")
    for name, value in (("rows", 36000), ("points", 1000), ("targets", 5), ("columns", 4), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--gamma", type=float, default=0.1)
    parser.add_argument("--noise", type=float, default=0.3)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    X, Y = draw_targets(rng, given.rows + given.points, given.columns, given.targets, given.gamma, given.noise)
    X, Z, Y, T = X[: given.rows], X[given.rows :], Y[: given.rows], Y[given.rows :]
    here = describe()
    print(
        f"gramian {gramian.__version__}, {datetime.now(UTC):%Y-%m-%d}; {here['cpu']}, {here['cores']} cores, "
        f"{here['blas']}"
    )
    print(
        f"{given.rows} rows × {given.columns} columns, {given.targets} targets, γ = {given.gamma:g}, "
        f"noise {given.noise:g}, {given.points} new points, seed {given.seed}"
    )
    clock = time.perf_counter()
    model = KernelRidge(alpha=given.noise**2, kernel="rbf", gamma=given.gamma).fit(X, Y)
    print(f"fit: {time.perf_counter() - clock:.1f} s; converged: {model.certificate_.converged}", flush=True)
    ways: tuple[bool | str, ...] = (True, "subset")
    for way in ways:
        clock, used = time.perf_counter(), time.process_time()
        mean, std = model.predict(Z, return_std=way)
        taken, busy = time.perf_counter() - clock, time.process_time() - used
        inside = float(np.mean(np.abs(T - mean) <= NORMAL * std))
        likely = float(np.mean(np.log(std) + 0.5 * ((T - mean) / std) ** 2))
        print(
            f"return_std={way!r}: {taken:.1f} s ({busy:.1f} s of processors), {model.std_method(way)}; "
            f"{100 * inside:.2f} % of {T.size} within 95 %, negative log-likelihood {likely:.4f}",
            flush=True,
        )
    flat, mean = np.sqrt(model.noise_variance_), model.predict(Z)
    inside, likely = (
        np.mean(np.abs(T - mean) <= NORMAL * flat),
        np.mean(np.log(flat) + 0.5 * ((T - mean) / flat) ** 2),
    )
    print(f"constant: {100 * inside:.2f} %, negative log-likelihood {likely:.4f}")
    clock = time.perf_counter()
    lower, upper = model.std_bounds(Z + 0.0, width=0.0499)
    apart = (upper / lower) ** 2 - 1
    print(
        f"std_bounds: {time.perf_counter() - clock:.1f} s, variances apart by {100 * apart.max():.2f} % at most, "
        f"{100 * np.median(apart):.3f} % in the middle"
    )


if __name__ == "__main__":
    main()
