"""Centring in feature space: a kernel matrix about the mean of its features, never formed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gramian.compute import tiles
from gramian.compute.devices import refuse_beyond_device, to_numpy
from gramian.operators.base import Capability, Composed, Operator

Array = Any


class FeatureCentred(Composed):
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
        w = xp.ones(n, dtype=K.dtype, **K.placement) if weights is None else K.asarray(weights)
        self.root = None if weights is None else w**0.5
        self.share = w / xp.sum(w)
        self.centre = centre
        self.capabilities = K.capabilities & (Capability.DIAGONAL | Capability.TILES)
        self.capabilities |= Capability.FACTOR if self.uses_torch else Capability.NONE
        self._means: Array | None = None

    @property
    def means(self) -> Array:
        """K w̄: the inner products of the mean feature with every other; found with the first product."""
        if self._means is None:
            self._means = self.A.matmat(self.share[:, None])[:, 0]
        return self._means

    def project(self, U: Array) -> Array:
        """HᵀU = U − w̄(1ᵀU): coefficients of the same combination of centred features."""
        # eq: kpca-without-centring
        return U - self.share[:, None] * self.xp.sum(U, axis=0)[None, :] if self.centre else U

    def matmat(self, V: Array) -> Array:
        """√w H K Hᵀ √w V."""
        # eq: kpca-centring
        Y = self._product(self.project(self._apply_weights(V)))
        Y = Y - (self.share @ Y)[None, :] if self.centre else Y
        return self._apply_weights(Y)

    def rmatmat(self, U: Array) -> Array:
        """Multiply by the transpose: the matrix is symmetric."""
        return self.matmat(U)

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Rows of the matrix: those of K less m_i + m_j − w̄ᵀKw̄, with m = Kw̄, times √w on both sides."""
        if V is not None:
            yield from super().rows(V)
            return
        m, c = (self.means, self.share @ self.means) if self.centre else (None, 0.0)
        for start, stop, block in self.A.rows():
            block = block if m is None else block - (m[start:stop, None] + m[None, :] - c)
            yield start, stop, block if self.root is None else block * (self.root[start:stop, None] * self.root)

    def to_dense(self) -> Array:
        """The matrix, written once; one that does not fit on a device is refused with the figure."""
        if self.uses_torch:
            n, nbytes = self.shape[0], self.shape[0] ** 2 * int(self.dtype.itemsize)
            refuse_beyond_device(nbytes, self.device, f"A kernel matrix of {n} x {n}", "Use a krylov solver.")
        out = self.xp.empty(self.shape, dtype=self.dtype, **self.placement)
        for start, stop, block in self.rows():
            out[start:stop, :] = block
        return out

    def tile(self, rows: slice, columns: slice, dtype: Any = None) -> Array:
        """A new array of the entries in these rows and columns, centred and weighted while they are at hand."""
        tile = self.A.tile(rows, columns, dtype)
        if self.centre:
            m = self.means
            tile = tile - self._match_dtype(m[rows, None] + (m[columns] - self.share @ m), tile)
        if self.root is not None:
            tile = tile * self._match_dtype(self.root[rows, None] * self.root[columns], tile)
        return tile

    def diagonal(self) -> Array:
        """w_i(K_ii − 2m_i + w̄ᵀKw̄), of a K that knows its diagonal: squared lengths of weighted, centred features."""
        own = self.A.diagonal()
        if self.centre:
            own = own - (2 * self.means - self.share @ self.means)
        return own if self.root is None else self.root**2 * own

    def as_tiles(self, dtype: Any) -> tiles.Tiled:
        """Tiles of K, centred and weighted while they are at hand."""
        m = to_numpy(self.means, np.float64) if self.centre else None
        root = to_numpy(self.root, np.float64)
        middle = float(self.share @ self.means) if self.centre else 0.0
        return _CentredTiles(self.A.as_tiles(dtype), m, middle, root)

    def _product(self, V: Array) -> Array:
        """K V; the first time with one column more, w̄, which costs next to nothing."""
        if self._means is not None or not self.centre:
            return self.A.matmat(V)
        Y = self.A.matmat(self.xp.concat([V, self.share[:, None]], axis=1))
        self._means = Y[:, -1]
        return Y[:, :-1]

    def _match_dtype(self, x: Array, tile: Array) -> Array:
        return x if x.dtype == tile.dtype else self.xp.astype(x, tile.dtype)

    def _apply_weights(self, V: Array) -> Array:
        return V if self.root is None else self.root[:, None] * V


class _CentredTiles:
    """Tiles of K, centred and weighted while they are at hand."""

    symmetric, side = True, 0

    def __init__(self, K: tiles.Tiled, m: Any, c: float, root: Any) -> None:
        self.K, self.m, self.c, self.root = K, m, c, root
        self.shape, self.dtype, self.buffers, self.serial = K.shape, K.dtype, K.buffers, K.serial

    def fill(self, rows: slice, columns: slice, buffers: Sequence[Any]) -> Any:
        tile = self.K.fill(rows, columns, buffers)
        if self.m is not None:
            tile = tile - (self.m[rows, None] + (self.m[columns] - self.c)).astype(self.dtype)
        if self.root is not None:
            tile = tile * (self.root[rows, None] * self.root[columns]).astype(self.dtype)
        return tile
