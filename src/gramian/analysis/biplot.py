"""Rows and variables in one picture: coordinates whose inner products are the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._cards import ground
from gramian.analysis._elements import component_names, ratio, text_table
from gramian.analysis._model import FittedPCA, feature_names
from gramian.analysis._scored import component_scores, refuse_no_components, row_names

__all__ = ["Biplot", "biplot"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

FORM = "form biplot: distances between rows are those of the data, as far as these components show them"
COVARIANCE = "covariance biplot: inner products of columns are covariances, and their angles correlations"
SYMMETRIC = "symmetric biplot: the singular values are shared equally; neither distances nor angles are the data's"
ALPHAS = {"form": 1.0, "covariance": 0.0, "symmetric": 0.5}
BETWEEN = "biplot between form (alpha = 1) and covariance (alpha = 0)"


@dataclass(frozen=True, eq=False, repr=False)
class Biplot:
    """Coordinates of a biplot.

    Attributes
    ----------
    rows : ndarray of shape (n, m)
        Points.
    columns : ndarray of shape (p, m)
        Arrows.
    alpha : float
        Share of the singular values in the rows.
    components : tuple of int
        The components drawn, counted from 0.
    names : tuple of str
        The variables.
    row_names : tuple of str or None
        The rows, where they have names.
    explained : ndarray of shape (m,)
        Fractions of the variance that the components drawn explain.
    scaling : str
        What may be read from the picture, in words.
    """

    rows: Matrix
    columns: Matrix
    alpha: float
    components: tuple[int, ...]
    names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    explained: Vector
    scaling: str

    def table(self) -> dict[str, Any]:
        """Return rows and columns below each other, ready for ``pandas.DataFrame``."""
        points = list(range(len(self.rows)) if self.row_names is None else self.row_names)
        kinds = ["row"] * len(self.rows) + ["column"] * len(self.columns)
        both = np.concatenate([self.rows, self.columns])
        return {"name": [*points, *self.names], "kind": kinds} | self._axes(both)

    def _axes(self, values: Matrix) -> dict[str, Any]:
        every = component_names(max(self.components) + 1)
        return {every[c]: values[:, j] for j, c in enumerate(self.components)}

    def __repr__(self) -> str:
        share = ", ".join(f"{100 * x:.1f}%" for x in self.explained)
        head = f"Biplot of {len(self.rows)} rows and {len(self.columns)} columns (variance shown: {share})"
        return f"{head}\n  {self.scaling}\n{text_table({'name': list(self.names)} | self._axes(self.columns))}"


def biplot(
    pca: FittedPCA,
    X: Any,
    alpha: float | str = 1.0,
    components: Sequence[int] = (0, 1),
    *,
    deviations: bool = False,
) -> Biplot:
    r"""Coordinates of rows and variables whose inner products approximate the centred (and scaled) data.

    .. math:: G = Z\,\Sigma^{\alpha-1} = U\Sigma^\alpha,\qquad H = V\,\Sigma^{1-\alpha},\qquad
        GH^T = U\Sigma V^T \approx (X-1\bar x^T)\,\mathrm{diag}(1/s)

    (Gabriel 1971.) The product is the best approximation by as many dimensions where the components are the first.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p)
        The rows to draw.
    alpha : float or {"form", "covariance", "symmetric"}, default=1.0
        1 or "form" is the form biplot, which keeps distances between rows; 0 or "covariance" the covariance biplot,
        which keeps covariances between variables; 0.5 or "symmetric" the symmetric one.
    components : sequence of int, default=(0, 1)
        Which components, counted from 0.
    deviations : bool, default=False
        Use the standard deviations √λ = σ/√(n−1) in the place of the singular values. Products are the same; with
        ``alpha=0`` rows are then standardised scores, and columns the loadings, whose inner products are covariances
        and not n − 1 times that.

    Returns
    -------
    Biplot
        Coordinates, with what may be read from them in words. A component without variance has rows of 0.

    Notes
    -----
    R's ``biplot(prcomp(X), scale=1-alpha)`` uses √(nλ) where this uses σ = √((n−1)λ): its rows are smaller, and its
    columns larger, by (n/(n−1))^((1−α)/2). Its ``pc.biplot=TRUE`` is ``deviations=True`` for α = 0, and
    multiplies the rows by √n for every α.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.biplot import biplot
    >>> X = load_iris().data
    >>> pca = PCA(2).fit(X)
    >>> picture = biplot(pca, X, alpha="symmetric")
    >>> bool(np.allclose(picture.rows @ picture.columns.T, pca.inverse_transform(pca.transform(X)) - pca.mean_))
    True
    >>> print(picture.scaling)
    symmetric biplot: the singular values are shared equally; neither distances nor angles are the data's
    """
    pca, X = ground(pca), ground(X)
    refuse_no_components(pca)
    chosen = _chosen(components, pca.n_components_)
    alpha = _share(alpha)
    sigma = np.asarray(pca.singular_values_, dtype=np.float64)[list(chosen)]
    sigma = sigma / math.sqrt(pca._weight - 1.0) if deviations else sigma
    spread = sigma ** (1.0 - alpha)
    rows = component_scores(pca, X)[:, list(chosen)] * ratio(1.0, spread)
    columns = np.asarray(pca.components_, dtype=np.float64).T[:, list(chosen)] * spread
    explained = np.asarray(pca.explained_variance_ratio_, dtype=np.float64)[list(chosen)]
    words = {1.0: FORM, 0.0: COVARIANCE, 0.5: SYMMETRIC}.get(alpha, BETWEEN)
    return Biplot(rows, columns, alpha, chosen, feature_names(pca), row_names(X), explained, words)


def _share(alpha: float | str) -> float:
    """The exponent, given as a number or by the name of the biplot."""
    if isinstance(alpha, str) and alpha in ALPHAS:
        return ALPHAS[alpha]
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be between 0 and 1, or one of {', '.join(ALPHAS)}; got {alpha!r}.")
    return float(alpha)


def _chosen(components: Sequence[int], k: int) -> tuple[int, ...]:
    chosen = tuple(int(c) for c in components)
    wrong = [c for c in chosen if not 0 <= c < k]
    if wrong or not chosen:
        raise ValueError(f"components={tuple(components)}: the model has components 0 to {k - 1}.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"components={chosen} names one twice.")
    return chosen
