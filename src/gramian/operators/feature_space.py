"""Centring in feature space: a kernel matrix about the mean of its features, never formed."""

from __future__ import annotations

from typing import Any

from gramian.operators.base import Operator
from gramian.operators.compose import _Composed

__all__ = ["FeatureCentred"]

Array = Any


class FeatureCentred(_Composed):
    r"""The matrix diag(√w) H K Hᵀ diag(√w) of a symmetric K, with H = I − 1w̄ᵀ and w̄ = w/Σw.

    Without weights this is K̃ = K − 1K − K1 + 1K1, the kernel of the features φ(x) − φ̄; with weights it has the
    eigenvalues of K̃ for rows repeated w times. Two projections of vectors take the place of two corrections of K.

    Parameters
    ----------
    K : Operator
        Symmetric, of shape (n, n).
    weights : array of shape (n,), optional
        Frequencies w; all ones where not given.
    centre : bool, default=True
        Whether H is there; without it diag(√w) K diag(√w).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data, FeatureCentred
    >>> X = np.array([[1.0], [2.0], [6.0]])
    >>> FeatureCentred(Data(X @ X.T)).to_dense().round(6)
    array([[ 4.,  2., -6.],
           [ 2.,  1., -3.],
           [-6., -3.,  9.]])
    """

    def __init__(self, K: Operator, weights: Any = None, *, centre: bool = True) -> None:
        super().__init__(K)
        n, xp = K.shape[0], K.xp
        w = xp.ones(n, dtype=K.dtype, **K._where()) if weights is None else K.asarray(weights)
        self.root = None if weights is None else w**0.5
        self.share = w / xp.sum(w)
        self.centre = centre
        self._means: Array | None = None

    @property
    def means(self) -> Array:
        """K w̄: the inner products of the mean feature with every other; found beside the first product."""
        if self._means is None:
            self._means = self.A.matmat(self.share[:, None])[:, 0]
        return self._means

    def project(self, U: Array) -> Array:
        """HᵀU = U − w̄(1ᵀU): coefficients of the same combination of centred features."""
        return U - self.share[:, None] * self.xp.sum(U, axis=0)[None, :] if self.centre else U

    def matmat(self, V: Array) -> Array:
        """√w H K Hᵀ √w V."""
        Y = self._product(self.project(self._weighted(V)))
        Y = Y - (self.share @ Y)[None, :] if self.centre else Y
        return self._weighted(Y)

    def rmatmat(self, U: Array) -> Array:
        """Multiply by the transpose: the matrix is symmetric."""
        return self.matmat(U)

    def _product(self, V: Array) -> Array:
        """K V; the first time with one column more, w̄, which costs next to nothing."""
        if self._means is not None or not self.centre:
            return self.A.matmat(V)
        Y = self.A.matmat(self.xp.concat([V, self.share[:, None]], axis=1))
        self._means = Y[:, -1]
        return Y[:, :-1]

    def _weighted(self, V: Array) -> Array:
        return V if self.root is None else self.root[:, None] * V
