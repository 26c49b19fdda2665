"""Categories of the rows as points in the picture of a PCA, and whether chance would put them there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gramian.analysis._cards import ground
from gramian.analysis._elements import Elements, component_names, ratio, text_table
from gramian.analysis._labels import Coding, coded
from gramian.analysis._model import FittedPCA, variable_scale
from gramian.analysis._scored import scored, standardised
from gramian.sources import open_source

__all__ = ["Categories", "supplementary_categories"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Categories(Elements):
    """Categories as the barycentres of their rows.

    Attributes
    ----------
    variables, names : tuple of str
        For each category the variable it belongs to, and its own name.
    coordinates, cos2, v_test : ndarray of shape (g, k)
        Mean score of the rows; its square over the squared distance; and by how many standard deviations it is from
        the mean of as many rows drawn without replacement.
    distances, weights : ndarray of shape (g,)
        Distance of the barycentre from the centre; how many rows the category has (sum of their weights).
    eta2 : ndarray of shape (variables, k)
        Correlation ratio η² of each categorical variable with each component: between-category share of its variance.
    eta2_names : tuple of str
        The categorical variables, in the order of ``eta2``.
    """

    kind: ClassVar[str] = "Categories"
    per_component: ClassVar[dict[str, str]] = {"coordinate": "coordinates", "cos2": "cos2", "v_test": "v_test"}
    overall: ClassVar[dict[str, str]] = {"distance": "distances", "weight": "weights"}
    order: ClassVar[str] = "v_test"

    variables: tuple[str, ...]
    names: tuple[str, ...]
    coordinates: Matrix
    cos2: Matrix
    v_test: Matrix
    distances: Vector
    weights: Vector
    eta2: Matrix
    eta2_names: tuple[str, ...]

    def labels(self) -> dict[str, Sequence[Any]]:
        """Return the columns that say which category a line is about."""
        return {"name": list(self.names), "variable": list(self.variables)}

    def eta2_table(self) -> dict[str, Any]:
        """Return η² as columns, ready for ``pandas.DataFrame``."""
        components = component_names(self.eta2.shape[1])
        return {"variable": list(self.eta2_names)} | {pc: self.eta2[:, j] for j, pc in enumerate(components)}

    def __repr__(self) -> str:
        return f"{super().__repr__()}\nη² of the variables:\n{text_table(self.eta2_table())}"


def supplementary_categories(pca: FittedPCA, X: Any, labels: Any, sample_weight: Any = None) -> Categories:
    r"""Place categories at the barycentres of their rows, and test them against chance.

    .. math::
        \bar z_g = \frac1{n_g}\sum_{i\in g}w_iz_i,\qquad
        v_g = \bar z_g\Big/\sqrt{\frac{s^2}{n_g}\,\frac{n-n_g}{n-1}},\qquad
        \eta^2 = \frac{\sum_g n_g\bar z_g^2}{\sum_i w_iz_i^2}

    with n the sum of the weights, :math:`n_g` that of category g, and s² = Σwz²/n; scores are taken about their mean
    over these rows, which is 0 for those of the fit. |v| > 1.96 is what chance alone exceeds once in twenty times.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p)
        Rows in the model's variables, as a rule those it was fitted to. Read twice.
    labels : array-like of shape (n,) or (n, variables), frame or Series
        A category for each row, any hashable values; several categorical variables as columns. None and NaN are
        refused: give missing ones a name of their own.
    sample_weight : array-like of shape (n,), optional
        Frequencies of the rows. A category whose rows have no weight is left out.

    Returns
    -------
    Categories
        Coordinates, squared cosines, tests, distances and η².

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.categories import supplementary_categories
    >>> iris = load_iris()
    >>> species = iris.target_names[iris.target]
    >>> supplementary_categories(PCA(2, scale=True).fit(iris.data), iris.data, species)
    Categories: 3 on 2 components; on pca0, by v_test:
      name        variable  coordinate    cos2  v_test  distance  weight
      setosa        label0      -2.217   0.983  -11.24     2.236      50
      virginica     label0       1.723  0.9715   8.732     1.748      50
      versicolor    label0      0.4948  0.4407   2.508    0.7454      50
    η² of the variables:
      variable    pca0    pca1
      label0    0.9346  0.1657
    """
    pca, X = ground(pca), ground(X)
    seen = scored(pca, X, sample_weight)
    w = seen.weights
    coding, D = coded(ground(labels), w), standardised(seen.scores, w)
    n, n_g = float(w.sum()), coding.weights
    means = coding.sums(w[:, None] * D.values) / n_g[:, None]  # in standard deviations of the scores
    v = ratio(1.0, np.sqrt(ratio(n - n_g, n_g * max(n - 1.0, 1.0))))[:, None] * means
    coordinates = means * D.spread + D.mean
    distances = _barycentre_distances(pca, X, coding, w)
    cos2 = np.minimum(np.square(ratio(np.abs(coordinates), distances[:, None])), 1.0)
    eta2 = coding.by_variable(n_g[:, None] * means**2 / n)
    return Categories(
        coding.variables, coding.names, coordinates, cos2, v, distances, n_g, np.minimum(eta2, 1.0), coding.columns
    )


def _barycentre_distances(pca: FittedPCA, X: Any, coding: Coding, w: Vector) -> Vector:
    """Distance ‖(x̄_g − x̄)/s‖ of each category's mean row, from a pass over the rows."""
    source = open_source(X)
    mean, scale = np.asarray(pca.mean_, dtype=np.float64), variable_scale(pca)
    sums = np.zeros((len(coding.weights), source.shape[1]))
    for block in source.blocks():
        part = slice(block.start, block.stop)
        sums += coding.block_sums(block.values, part, mean, w[part])
    barycentres = sums / coding.weights[:, None] / scale
    peak = float(np.abs(barycentres).max(initial=0.0)) or 1.0  # so that no square overflows
    return np.asarray(peak * np.linalg.norm(barycentres / peak, axis=1))
