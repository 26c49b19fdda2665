"""People who stand so far out that a component shows them alone: found, left out, and the components found again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from gramian.genetics.pca import GenotypePCA
from gramian.genetics.quality import TableFile
from gramian.genetics.robust import upper_fence
from gramian.sources.plink import Genotypes

Mask = npt.NDArray[np.bool_]

RULES = ("deviations", "neighbours")
NEIGHBOURS = 5


@dataclass(frozen=True, eq=False)
class Outliers(TableFile):
    """People who were left out, round by round.

    Attributes
    ----------
    source : Genotypes
        Everybody.
    kept : ndarray of bool
        Who is left.
    rounds, rows, components, values
        Of everybody left out: the round from 1, the row of ``source.samples``, the component from 1 that condemned
        them (0 where all did together), and by how much.
    model : GenotypePCA
        Fitted to those who are left.
    """

    source: Genotypes
    kept: Mask
    rounds: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    components: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    model: GenotypePCA

    def table(self) -> dict[str, Any]:
        """Return FID, IID, round, component and value, ready for ``pandas.DataFrame``."""
        samples = self.source.samples
        found = {"FID": samples.fid[self.rows], "IID": samples.iid[self.rows], "round": self.rounds}
        return {**found, "component": self.components, "value": self.values}


def find_outliers(
    source: Genotypes,
    pca: GenotypePCA | None = None,
    *,
    rule: str = "deviations",
    sigma: float = 6.0,
    alpha: float = 0.05,
    max_rounds: int = 5,
) -> Outliers:
    r"""Leave out people far from all others, and find the components again, until nobody is.

    Parameters
    ----------
    source : Genotypes
        People and SNPs.
    pca : GenotypePCA, optional
        Settings of the fits; 10 components by default.
    rule : {"deviations", "neighbours"}, default="deviations"
        smartpca's rule: more than ``sigma`` standard deviations (divided by n, not n − 1) from the mean of a component.
        Or the logarithm of the mean distance to the 5 nearest neighbours in all components, against the skew-adjusted
        fence of :func:`~gramian.genetics.robust.upper_fence`, which outliers do not move.
    sigma : float, default=6
        For the first rule.
    alpha : float, default=0.05
        Of the fence of the second.
    max_rounds : int, default=5
        Fits after which it ends.

    Returns
    -------
    Outliers
        Who is left, who is not and why, and the model of those left.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, find_outliers
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(0.2, 0.8, (3000, 1))
    >>> calls = rng.binomial(2, np.hstack([np.repeat(f, 99, axis=1), rng.permutation(f)]))
    >>> find_outliers(Genotypes.from_calls(calls), GenotypePCA(4)).table()["IID"].tolist()
    ['s100']
    """
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} must be one of {', '.join(RULES)}.")
    if not sigma > 0 or not 0 < alpha < 1 or max_rounds < 0:
        raise ValueError(
            f"sigma={sigma!r}, alpha={alpha!r} or max_rounds={max_rounds!r} is no positive number, or no α."
        )
    pca = GenotypePCA() if pca is None else pca
    kept = np.ones(source.shape[0], np.bool_)
    found: list[tuple[int, int, int, float]] = []
    model = clone(pca).fit(source)
    for number in range(1, max_rounds + 1):
        rows = np.flatnonzero(kept)
        if rule == "deviations":
            U = np.asarray(model.eigenvectors_, dtype=np.float64)
            z = np.abs(U - U.mean(axis=0)) / U.std(axis=0)
            worst = z.argmax(axis=1)
            value = z[np.arange(len(z)), worst]
            far, component = value > sigma, worst + 1
        else:
            scores = np.asarray(model.eigenvectors_ * model.singular_values_, dtype=np.float64)
            near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(scores) - 1)).fit(scores)
            value = np.log(np.maximum(near.kneighbors()[0].mean(axis=1), np.finfo(np.float64).tiny))
            far, component = value > upper_fence(value, alpha), np.zeros(len(value), np.int64)
        if not far.any():
            break
        found += [(number, int(rows[i]), int(component[i]), float(value[i])) for i in np.flatnonzero(far)]
        kept[rows[far]] = False
        model = clone(pca).fit(source.select(samples=kept))
    columns = list(zip(*found, strict=True)) if found else [(), (), (), ()]
    rounds, at, components = (np.array(column, dtype=np.int64) for column in columns[:3])
    return Outliers(source, kept, rounds, at, components, np.array(columns[3], dtype=np.float64), model)
