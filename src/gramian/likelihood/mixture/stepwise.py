"""Mini-batches: expectation-maximisation on statistics that forget."""

from __future__ import annotations

from gramian.likelihood.mixture.maximise import Maximiser
from gramian.likelihood.mixture.parameters import Mixture
from gramian.likelihood.mixture.statistics import Statistics

__all__ = ["Stepwise"]


class Stepwise:
    r"""Mini-batches: statistics that forget, and a maximisation step after each batch (Cappé and Moulines 2009).

    .. math:: T \leftarrow (1-\eta_t)T + \eta_tT_{batch},\qquad \eta_t=(t+2)^{-\alpha}

    Parameters
    ----------
    maximiser : Maximiser
        Model, prior and constraints.
    alpha : float, default=0.6
        Between 0.5, which forgets fast, and 1, which weighs all batches alike.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.likelihood.mixture import Maximiser, Mixture, Rows, Stepwise
    >>> rng, fit = np.random.default_rng(0), Stepwise(Maximiser("V"))
    >>> at = Mixture.of([0.5, 0.5], [[-1.0], [7.0]], [4.0, 4.0], "V")
    >>> for _ in range(50):
    ...     X = np.concatenate([rng.normal(0, 1, (30, 1)), rng.normal(6, 1, (70, 1))])
    ...     at = fit.step(at, Rows.of(gramian.open(X)).expect(at))
    >>> at.means.round(0)
    array([[0.],
           [6.]])
    """

    def __init__(self, maximiser: Maximiser, alpha: float = 0.6) -> None:
        if not 0.5 <= alpha <= 1.0:
            raise ValueError(f"alpha must be between 0.5 and 1; got {alpha}.")
        self.maximiser, self.alpha = maximiser, alpha
        self.batches, self.seen = 0, 0.0
        self.statistics: Statistics | None = None

    def step(self, mixture: Mixture, batch: Statistics) -> Mixture:
        """Take in the statistics of a batch at a mixture; return the next mixture.

        Sums are kept per unit of weight and handed to the maximiser at the weight of all batches so far.
        """
        fresh = batch.scaled(1.0 / batch.weight)
        rate = 1.0 if self.statistics is None else (self.batches + 2.0) ** -self.alpha
        kept = fresh if self.statistics is None else self.statistics.scaled(1 - rate).merge(fresh.scaled(rate))
        self.statistics = kept.moved(mixture.centres)
        self.batches, self.seen = self.batches + 1, self.seen + batch.weight
        return self.maximiser(self.statistics.scaled(self.seen), mixture)
