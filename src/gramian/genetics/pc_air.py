"""Components where some people are related, and kinship where some are admixed: PC-AiR and PC-Relate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import project
from gramian.genetics.relatives import SEEN, Kinship, decode_blocks, stripes
from gramian.inputs.progress import Progress
from gramian.sources.plink import Genotypes

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEAR = 2.0**-5.5  # kinship above which two people are related, and below minus which they are of different ancestry
COPIES = (1.0, 0.0)  # copies of A1
LEAST_FREQUENCY = 0.01


@dataclass(frozen=True, eq=False)
class PcAir:
    """Components of a cohort with relatives.

    Attributes
    ----------
    scores : ndarray of shape (n, k)
        Of everybody: those of the unrelated as fitted, those of the related projected.
    unrelated : ndarray of bool
        Who the components were found from.
    model : GenotypePCA
        Fitted to them.
    """

    scores: Array
    unrelated: Mask
    model: GenotypePCA


def partition(found: Kinship, related: float = NEAR, divergent: float = -NEAR) -> Mask:
    """People of whom no two are related and who represent all ancestries, by the rule of PC-AiR.

    Whoever has the most relatives among those left goes; of equals, the one with fewer people of other ancestry, then
    the one whose kinship with all adds up to less, then the first.

    Parameters
    ----------
    found : Kinship
        All pairs.
    related, divergent : float
        Kinship above which two people are related, below which they are of different ancestry.

    Returns
    -------
    ndarray of bool
        The unrelated.
    """
    if found.least is not None:
        raise ValueError("PC-AiR needs all pairs, of negative kinship too: king(source) without least.")
    n = len(found.samples)
    phi = np.zeros((n, n))
    phi[found.first, found.second] = phi[found.second, found.first] = np.nan_to_num(found.kinship)
    near, other = phi > related, np.sum(phi < divergent, axis=1)
    total = np.where(near, phi, 0.0).sum(axis=1)
    kept, relatives = np.ones(n, np.bool_), near.sum(axis=1)
    while relatives.max(initial=0):
        gone = int(np.lexsort((np.arange(n), total, other, -relatives))[0])
        kept[gone] = False
        relatives = np.where(kept, relatives - near[gone], 0)
        relatives[gone] = 0
    return kept


def pc_air(source: Genotypes, found: Kinship, pca: GenotypePCA | None = None) -> PcAir:
    """Components of the unrelated, on which everybody else is projected.

    Parameters
    ----------
    source : Genotypes
        People and pruned SNPs.
    found : Kinship
        All their pairs, as :func:`~gramian.genetics.king` gives them.
    pca : GenotypePCA, optional
        Settings of the fit.

    Returns
    -------
    PcAir
        Scores of everybody, in the scale of ``transform``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, king, pc_air
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> calls = rng.binomial(2, np.repeat(rng.uniform(0.3, 0.7, (20_000, 2)), 20, axis=1))
    >>> calls[:, 39] = calls[:, 20]
    >>> G = Genotypes.from_calls(calls)
    >>> air = pc_air(G, king(G), GenotypePCA(2))
    >>> air.unrelated.sum(), air.scores.shape
    (np.int64(39), (40, 2))
    """
    if len(found.samples) != source.shape[0]:
        raise ValueError(f"Kinship is of {len(found.samples)} people, and the genotypes of {source.shape[0]}.")
    kept = partition(found)
    model = (pca or GenotypePCA()).fit(source.select(samples=kept))
    scores = np.empty((source.shape[0], len(model.components_)))
    scores[kept] = model.eigenvectors_ * model.score_lengths_
    if not kept.all():
        scores[~kept] = project(model, source.select(samples=~kept)).scores
    return PcAir(scores, kept, model)


def pc_relate(
    source: Genotypes, scores: npt.ArrayLike, *, training: Mask | None = None, progress: Progress | None = None
) -> Array:
    r"""Kinship of all pairs, ancestry taken out: PC-Relate, without its correction for small samples.

    Every person's allele frequencies are a linear function of their components, found by least squares from the
    ``training`` set:

    .. math:: 2\mu = g V (V^TV)^{-1} V^T,\qquad
        \varphi_{ij} = \frac{\sum_s (g_{is} - 2\mu_{is})(g_{js} - 2\mu_{js})}
        {4\sum_s \sqrt{\mu_{is}(1-\mu_{is})\,\mu_{js}(1-\mu_{js})}},

    V being the components and a column of ones, and the sums over SNPs at which both were read and both frequencies lie
    between 0.01 and 0.99.

    Parameters
    ----------
    source : Genotypes
        People and pruned SNPs.
    scores : array-like of shape (n, k)
        Components of everybody that stand for ancestry, as :func:`pc_air` gives them.
    training : ndarray of bool, optional
        Unrelated people, from whom frequencies are learnt; all by default.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    ndarray of shape (n, n)
        φ; on the diagonal ½(1 + the inbreeding coefficient).
    """
    n, U = source.shape[0], np.asarray(scores, dtype=np.float64)
    if U.ndim != 2 or len(U) != n or not np.isfinite(U).all():
        raise ValueError(f"scores has the shape {U.shape}, or values that are not finite; {n} people need a row each.")
    V = np.column_stack([np.ones(n), U])
    use = np.ones(n, np.bool_) if training is None else np.asarray(training, dtype=np.bool_)
    if use.shape != (n,) or use.sum() <= V.shape[1]:
        raise ValueError(f"training has {use.sum()} people of {use.shape}; more than {V.shape[1]} of {n} are needed.")
    weights = (np.linalg.pinv(V[use]) / 2).astype(np.float32)  # of calls, for coefficients of μ
    V32 = V.astype(np.float32)
    if len(stripes(n, 6)) > 1:
        raise MemoryError(f"Kinship of {n:,} people takes more than the working memory: take fewer.")
    top, bottom = np.zeros((n, n)), np.zeros((n, n))
    for g, o in decode_blocks(source, n, [COPIES, SEEN], progress):
        mean = (g[:, use].sum(axis=1) / np.maximum(1.0, o[:, use].sum(axis=1)))[:, None]
        filled = np.where(o > 0, g, mean)
        mu = (filled[:, use] @ weights.T) @ V32.T
        usable = (o > 0) & (mu >= LEAST_FREQUENCY) & (mu <= 1 - LEAST_FREQUENCY)
        rest = np.where(usable, g - 2 * mu, np.float32(0))
        spread = np.sqrt(np.where(usable, mu * (1 - mu), np.float32(0)))
        top += rest.T @ rest
        bottom += spread.T @ spread
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top / (4 * bottom))
