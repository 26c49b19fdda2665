"""The rank of a preconditioner: what a factor and a product cost, and when a larger factor pays."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gramian.operators.base import Operator

__all__ = ["CARD", "CPU", "Costs", "costs_of", "factor_bytes", "first_rank", "largest_rank", "pays_to_double"]

Vector = npt.NDArray[np.float64]

BYTES = 2**31  # of a factor with all that is made of it, in the memory of a computer
ROOMS = 4  # times the room of a solver's vectors on a device, an eighth of the card each


@dataclass(frozen=True)
class Costs:
    """What a machine takes, in seconds, roughly: their ratios are what counts.

    Attributes
    ----------
    product : float
        An entry of K in a product.
    factor : float
        n·r² of a factor of rank r: pivoted Cholesky, FᵀF, and U.
    eigen : float
        r³ of the eigenvectors of FᵀF, where they are not as good as free beside that.
    """

    product: float
    factor: float
    eigen: float = 0.0

    def factoring(self, n: int, r: int) -> float:
        """Seconds for a factor of rank r of n rows, and its eigenvectors."""
        return self.factor * n * r**2 + self.eigen * r**3


CPU = Costs(product=0.45e-9, factor=0.12e-9)  # two cores, products in float32
CARD = Costs(product=0.3e-12, factor=5e-14, eigen=4e-11)  # one H200, products in float32
DOUBLE = 10  # times as long takes a product in float64 on a card


def costs_of(A: Operator) -> Costs:
    """Return what products with A and factors beside it cost where it lives: on a CPU, torch's too, or a card.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import costs_of
    >>> from gramian.operators import Data
    >>> costs_of(Data(np.eye(2)))
    Costs(product=4.5e-10, factor=1.2e-10, eigen=0.0)
    """
    if getattr(A.device, "type", "cpu") == "cpu":
        return CPU
    return CARD if A.dtype == A.xp.float32 else replace(CARD, product=DOUBLE * CARD.product)


def factor_bytes(A: Operator) -> float:
    """Return how much memory a factor may take with all that is made of it: 2 GiB, or half of a card.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import factor_bytes
    >>> from gramian.operators import Data
    >>> factor_bytes(Data(np.eye(2))) / 2**30
    2.0
    """
    return float(BYTES if A.device is None else max(BYTES, ROOMS * A.room))


def first_rank(n: int, products: float = 3.0, costs: Costs = CPU) -> int:
    """The rank to begin with: its factor costs as much as a few products with K.

    Examples
    --------
    >>> from gramian.linear.preconditioners import first_rank
    >>> first_rank(50_000), first_rank(10_000), first_rank(100)
    (750, 335, 33)
    """
    most = min(n, int(math.sqrt(products * n * costs.product / costs.factor)))
    if costs.eigen > 0:
        allowed = products * costs.product * n**2
        most = bisect_right(range(1, most + 1), allowed, key=lambda r: costs.factoring(n, r))
    return max(1, most)


def largest_rank(n: int, nbytes: float = float(BYTES)) -> int:
    """The rank for which F in float64, the same weighted and centred, and U in float32 take so many bytes.

    A sixth of them is spare.

    Examples
    --------
    >>> from gramian.linear.preconditioners import largest_rank
    >>> largest_rank(50_000), largest_rank(200_000), largest_rank(100)
    (1789, 447, 100)
    """
    return max(1, min(n, int(nbytes / (24 * max(1, n)))))


def pays_to_double(
    n: int, values: Vector, rate: float, steps_left: float, most: int | None = None, costs: Costs = CPU
) -> bool:
    r"""Whether a factor of twice the rank would save more than it costs.

    From the rate ρ at which residuals fall follows κ = ((1+ρ)/(1−ρ))², the condition number of the preconditioned
    system, as if conjugate gradients were no faster than their bound. κ − 1 = ‖K − FFᵀ‖/λ falls, with twice the rank,
    about as the eigenvalues s of FFᵀ do: by s at ¾ of the rank over s at ⅜ of it (the last ones are too small, because
    FFᵀ lies below K). That gives the rate to come and the products saved. A factor of rank 2r costs about 4nr²·0.12 ns
    on a CPU, a product n²·0.45 ns: a decision that no clock takes part in, so that the same data give the same result.

    Parameters
    ----------
    n : int
        Rows.
    values : ndarray of shape (r,)
        Eigenvalues s of FFᵀ, in descending order.
    rate : float
        What one iteration leaves of the residual of the slowest column.
    steps_left : float
        Iterations that remain at this rate.
    most : int, optional
        The largest rank there is room for; n where not given.
    costs : Costs, optional
        Of the machine; a CPU's where not given.

    Returns
    -------
    bool
        The answer.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import pays_to_double
    >>> falling = 1000 * 0.99 ** np.arange(500)
    >>> pays_to_double(50_000, falling, 0.9, 100), pays_to_double(50_000, falling, 0.5, 5)
    (True, False)
    """
    r = len(values)
    larger = min(2 * r, n if most is None else most)
    if r < 8 or larger <= r or not 0.0 < rate < 1.0:
        return False
    decay = min(1.0, float(values[3 * r // 4] / values[3 * r // 8])) ** (larger / r - 1)
    kappa = ((1 + rate) / (1 - rate)) ** 2
    root = math.sqrt(1 + (kappa - 1) * decay)
    better = (root - 1) / (root + 1)
    after = steps_left * math.log(rate) / math.log(better) if better > 0 else 1.0
    return (steps_left - after) * costs.product * n**2 > costs.factoring(n, larger)
