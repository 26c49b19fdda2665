"""The options that name a kernel, and the kernel they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import numpy as np

from gramian.cli.options import NumbersType, bundle, option
from gramian.cli.reading import read_rows
from gramian.kernels import Gaussian, Kernel, Matern, RationalQuadratic, as_kernel, median_distance
from gramian.sources import Source

KERNELS = (
    *("rbf", "laplacian", "matern", "rational-quadratic", "poly", "sigmoid", "linear", "cosine"),
    *("chi2", "additive_chi2"),
)
RULES = ("median", "scale")
WITH_GAMMA = ("rbf", "laplacian", "poly", "sigmoid", "chi2")
WITH_WIDTH = ("rbf", "matern", "rational-quadratic")


@dataclass(frozen=True)
class KernelOptions:
    """A kernel by name and parameters; several values of gamma or the bandwidth are a grid to choose from."""

    kernel: str
    gamma: tuple[float | str, ...] | None
    bandwidth: tuple[float | str, ...] | None
    degree: int
    coef0: float
    nu: float
    standardise: bool

    def check(self, *, several: bool = False) -> None:
        """Exit 2 where an option does not belong to the kernel."""
        if self.gamma is not None and self.bandwidth is not None:
            raise click.UsageError("--gamma and --bandwidth say the same (γ = 1/2σ²): give one of them")
        if self.gamma is not None and self.kernel not in WITH_GAMMA:
            raise click.UsageError(f"the kernel {self.kernel} has no --gamma; {', '.join(WITH_GAMMA)} have")
        if self.bandwidth is not None and self.kernel not in WITH_WIDTH:
            raise click.UsageError(f"the kernel {self.kernel} has no --bandwidth; {', '.join(WITH_WIDTH)} have")
        if self.standardise and self.kernel not in WITH_WIDTH:
            raise click.UsageError(f"--standardise is for the kernels {', '.join(WITH_WIDTH)}")
        values = self.gamma or self.bandwidth or ()
        if len(values) > 1 and not several:
            raise click.UsageError("give one value of --gamma or --bandwidth: there is nothing to choose by")
        if any(isinstance(value, float) and not value > 0 for value in values):
            raise click.UsageError("--gamma and --bandwidth must be positive")
        if self.kernel not in ("rbf",) and self.gamma is not None and any(v in RULES for v in self.gamma):
            raise click.UsageError(f"--gamma {' and '.join(RULES)} are rules for the kernel rbf: give a number")

    def make_kernels(self, source: Source) -> list[Kernel]:
        """Return the kernels, with every parameter found from the rows where a rule asks for that."""
        if self.kernel in WITH_WIDTH and (self.gamma is None or self.standardise):
            X = read_rows(source)  # widths are in the units of the columns, or in standard deviations of each
            spread = np.std(X, axis=0) if self.standardise else np.ones(X.shape[1])
            spread = np.where(spread > 0, spread, 1.0)
            widths = [self._width(value, X / spread) for value in self.bandwidth or self.gamma or ("median",)]
            makers: dict[str, Callable[[Any], Kernel]] = {
                "rbf": lambda width: Gaussian(bandwidth=width),
                "matern": partial(Matern, self.nu),
                "rational-quadratic": partial(RationalQuadratic, 1.0),
            }
            return [makers[self.kernel](tuple((w * spread).tolist()) if self.standardise else w) for w in widths]
        found = [as_kernel(self.kernel, gamma, self.degree, self.coef0) for gamma in self.gamma or (None,)]
        if not any(kernel.automatic for kernel in found):
            return found
        X = read_rows(source)
        return [kernel.resolved(X) for kernel in found]

    def _width(self, value: float | str, X: Any) -> float:
        if value == "median":
            return median_distance(X)
        if value == "scale":
            return float(np.sqrt(X.shape[1] * np.var(X) / 2) or 1.0)  # γ = 1/(p·Var X)
        return float(value) if self.gamma is None else float(np.sqrt(0.5 / float(value)))


def kernel_options(*, several: bool = False) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of a kernel; the command is handed them as ``kernel``."""
    widths = NumbersType(RULES)
    grid = "; several, as 0.1,1,10 or 0.01:10:7, are chosen from" if several else ""
    return bundle(
        KernelOptions,
        "kernel",
        [
            option("--kernel", type=click.Choice(KERNELS), default="rbf"),
            option("--gamma", type=widths, metavar="NUMBER", help=f"γ of the kernel, or median or scale{grid}."),
            option(
                "--bandwidth",
                type=widths,
                metavar="NUMBER",
                help=f"σ of the kernel, γ = 1/2σ² [default: median distance]{grid}.",
            ),
            option("--degree", type=click.IntRange(min=1), default=3, help="Of poly."),
            option("--coef0", type=float, default=1.0, help="Of poly and sigmoid."),
            option("--nu", type=click.FloatRange(min=0, min_open=True), default=1.5, help="Of matern."),
            option("--standardise", is_flag=True, help="Count each column in its standard deviations."),
        ],
    )
