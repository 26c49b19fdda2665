"""Operators made of operators: centring, scaling, weighting, Gram, shift. Each is written once, here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gramian.operators.base import Composed, Operator
from gramian.operators.data import Data
from gramian.sources import Source

Array = Any


class Centred(Composed):
    r"""A − ℓ mᵀ: a rank-one part removed, never formed; with ℓ = 1 and m the column means, centring.

    .. math::
        (A-\ell m^T)^TW(A-\ell m^T)V = A^TWAV - s(m^TV) - m(s^TV) + c\,m(m^TV),
        \qquad s=A^TW\ell,\ c=\ell^TW\ell

    Parameters
    ----------
    A : Operator
        Of shape (n, p).
    mean : array of shape (p,)
        m.
    left : array of shape (n,), optional
        ℓ, all ones where not given; √w for rows weighted by √w.
    sums : array of shape (p,), optional
        Aᵀℓ where it is known already: saves a pass.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Centred, Data
    >>> X = np.array([[1.0, 5.0], [3.0, 9.0]])
    >>> Centred(Data(X), X.mean(axis=0)).to_dense()
    array([[-1., -2.],
           [ 1.,  2.]])
    """

    def __init__(self, A: Operator, mean: Any, left: Any = None, sums: Any = None) -> None:
        super().__init__(A)
        self.mean = A.asarray(mean)
        self._plain = left is None
        self.left = A.xp.ones(A.shape[0], dtype=A.dtype, **A.placement) if left is None else A.asarray(left)
        self._sums = None if sums is None else A.asarray(sums)
        self._cosums: Array | None = None
        self.offset = A.offset + float(self.left @ self.left) * float(self.mean @ self.mean)

    def matmat(self, V: Array) -> Array:
        """A V − ℓ (mᵀV)."""
        return self.A.matmat(V) - self.left[:, None] * (self.mean @ V)[None, :]

    def rmatmat(self, U: Array) -> Array:
        """Aᵀ U − m (ℓᵀU)."""
        return self.A.rmatmat(U) - self.mean[:, None] * (self.left @ U)[None, :]

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """The normal product by two rank-one corrections."""
        m, s, c = self.mean, *self._corrections(w)
        mV, sV = m @ V, s @ V
        return self.A.normal(V, w) - s[:, None] * mV[None, :] + m[:, None] * (c * mV - sV)[None, :]

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """The same for A diag(w) Aᵀ, with t = A diag(w) m."""
        left, t, c = self.left, *self._cocorrections(w)
        lU, tU = left @ U, t @ U
        return self.A.conormal(U, w) - t[:, None] * lU[None, :] + left[:, None] * (c * lU - tU)[None, :]

    def gram(self, w: Array | None = None) -> Array:
        """AᵀWA − s mᵀ − m sᵀ + c m mᵀ."""
        return _correct_gram(self.A.gram(w), self.mean, *self._corrections(w))

    def cogram(self, w: Array | None = None) -> Array:
        """A W Aᵀ − t ℓᵀ − ℓ tᵀ + c ℓ ℓᵀ."""
        return _correct_gram(self.A.cogram(w), self.left, *self._cocorrections(w))

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Rows of A V less their share of the rank-one part."""
        if V is None and self.sparse:
            V = self.eye(self.shape[1])
        m = self.mean if V is None else self.mean @ V
        for start, stop, block in self.A.rows(V):
            part = m[None, :] if self._plain else self.left[start:stop, None] * m[None, :]
            if V is None:  # perhaps a view of the data
                yield start, stop, block - part
            else:
                block -= part
                yield start, stop, block

    def _corrections(self, w: Array | None) -> tuple[Array, float]:
        if w is None:
            if self._sums is None:
                self._sums = self.A.rmatmat(self.left[:, None])[:, 0]
            return self._sums, float(self.left @ self.left)
        weighted = w * self.left
        return self.A.rmatmat(weighted[:, None])[:, 0], float(self.left @ weighted)

    def _cocorrections(self, w: Array | None) -> tuple[Array, float]:
        if w is None:
            if self._cosums is None:
                self._cosums = self.A.matmat(self.mean[:, None])[:, 0]
            return self._cosums, float(self.mean @ self.mean)
        weighted = w * self.mean
        return self.A.matmat(weighted[:, None])[:, 0], float(self.mean @ weighted)


def _correct_gram(G: Array, m: Array, s: Array, c: float) -> Array:
    """G − s mᵀ − m sᵀ + c m mᵀ, symmetric to the last bit."""
    half = (s - (0.5 * c) * m)[:, None] * m[None, :]
    return G - (half + half.T)


class ColumnScaled(Composed):
    """A diag(1/scale): columns divided, as in correlation PCA.

    Parameters
    ----------
    A : Operator
        The map.
    scale : array-like of shape (p,)
        What columns are divided by.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data, ColumnScaled
    >>> ColumnScaled(Data(np.array([[2.0, 30.0]])), [2.0, 10.0]).to_dense()
    array([[1., 3.]])
    """

    def __init__(self, A: Operator, scale: Any) -> None:
        super().__init__(A)
        self.factor = 1.0 / A.asarray(scale)

    def matmat(self, V: Array) -> Array:
        """A (V / scale)."""
        return self.A.matmat(self.factor[:, None] * V)

    def rmatmat(self, U: Array) -> Array:
        """(Aᵀ U) / scale."""
        return self.factor[:, None] * self.A.rmatmat(U)

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """AᵀWA (V / scale) / scale."""
        return self.factor[:, None] * self.A.normal(self.factor[:, None] * V, w)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """A diag(w / scale²) Aᵀ U."""
        return self.A.conormal(U, self._weights(w))

    def gram(self, w: Array | None = None) -> Array:
        """AᵀWA with rows and columns divided by the scale."""
        return self.factor[:, None] * self.A.gram(w) * self.factor[None, :]

    def cogram(self, w: Array | None = None) -> Array:
        """A diag(w / scale²) Aᵀ."""
        return self.A.cogram(self._weights(w))

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Rows of A diag(1/scale) V."""
        if V is not None or self.sparse:
            V = self.eye(self.shape[1]) if V is None else V
            yield from self.A.rows(self.factor[:, None] * V)
            return
        for start, stop, block in self.A.rows():
            yield start, stop, block * self.factor[None, :]

    def _weights(self, w: Array | None) -> Array:
        return self.factor**2 if w is None else w * self.factor**2


class RowWeighted(Composed):
    """diag(r) A: row i multiplied by r_i; with r = √w, a weighted least-squares problem.

    Parameters
    ----------
    A : Operator
        The map.
    weights : array-like of shape (n,)
        r, what rows are multiplied by.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data, RowWeighted
    >>> RowWeighted(Data(np.ones((2, 2))), [1.0, 3.0]).gram()
    array([[10., 10.],
           [10., 10.]])
    """

    def __init__(self, A: Operator, weights: Any) -> None:
        super().__init__(A)
        self.weights = A.asarray(weights)

    def matmat(self, V: Array) -> Array:
        """Diag(r) (A V)."""
        return self.weights[:, None] * self.A.matmat(V)

    def rmatmat(self, U: Array) -> Array:
        """Aᵀ (diag(r) U)."""
        return self.A.rmatmat(self.weights[:, None] * U)

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """Aᵀ diag(w r²) A V."""
        return self.A.normal(V, self._square_weights(w))

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """Diag(r) A W Aᵀ diag(r) U."""
        return self.weights[:, None] * self.A.conormal(self.weights[:, None] * U, w)

    def gram(self, w: Array | None = None) -> Array:
        """Aᵀ diag(w r²) A."""
        return self.A.gram(self._square_weights(w))

    def cogram(self, w: Array | None = None) -> Array:
        """A W Aᵀ with rows and columns multiplied by r."""
        return self.weights[:, None] * self.A.cogram(w) * self.weights[None, :]

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Rows of A V, each multiplied by its weight."""
        for start, stop, block in self.A.rows(V):
            yield start, stop, self.weights[start:stop, None] * block

    def _square_weights(self, w: Array | None) -> Array:
        return self.weights**2 if w is None else w * self.weights**2


class Gram(Composed):
    """AᵀA as a symmetric p×p operator. It squares the condition number: use it where that is harmless.

    Parameters
    ----------
    A : Operator
        The map.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data, Gram
    >>> Gram(Data(np.array([[3.0], [4.0]]))) @ np.ones(1)
    array([25.])
    """

    def __init__(self, A: Operator) -> None:
        super().__init__(A)
        self.shape = (A.shape[1], A.shape[1])

    def matmat(self, V: Array) -> Array:
        """Aᵀ A V."""
        return self.A.normal(V)

    def rmatmat(self, U: Array) -> Array:
        """Aᵀ A U: the operator is symmetric."""
        return self.A.normal(U)


class Shifted(Composed):
    """A + μI for a square operator A, as in ridge regression.

    Parameters
    ----------
    A : Operator
        A square map.
    shift : float
        μ.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data, Shifted
    >>> Shifted(Data(np.eye(2)), 0.5).to_dense()
    array([[1.5, 0. ],
           [0. , 1.5]])
    """

    def __init__(self, A: Operator, shift: float) -> None:
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"Only a square operator can be shifted by a multiple of I; this one is {A.shape}.")
        super().__init__(A)
        self.shift = shift

    def matmat(self, V: Array) -> Array:
        """A V + μ V."""
        return self.A.matmat(V) + self.shift * V

    def rmatmat(self, U: Array) -> Array:
        """Aᵀ U + μ U."""
        return self.A.rmatmat(U) + self.shift * U


class Multiple(Composed):
    """cA for a number c.

    Parameters
    ----------
    A : Operator
        The map.
    factor : float
        c.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data, Multiple
    >>> Multiple(Data(np.eye(2)), -2.0).to_dense()
    array([[-2., -0.],
           [-0., -2.]])
    """

    def __init__(self, A: Operator, factor: float) -> None:
        super().__init__(A)
        self.factor = factor

    def matmat(self, V: Array) -> Array:
        """cA V."""
        return self.factor * self.A.matmat(V)

    def rmatmat(self, U: Array) -> Array:
        """cAᵀ U."""
        return self.factor * self.A.rmatmat(U)


class Known(Composed):
    """A with its Gram matrix AᵀA already at hand, as after one pass of moments.

    Parameters
    ----------
    A : Operator
        The map.
    gram : array of shape (p, p)
        AᵀA.
    """

    def __init__(self, A: Operator, gram: Array) -> None:
        super().__init__(A)
        self._gram = gram

    def matmat(self, V: Array) -> Array:
        """A V."""
        return self.A.matmat(V)

    def rmatmat(self, U: Array) -> Array:
        """Aᵀ U."""
        return self.A.rmatmat(U)

    def normal(self, V: Array, w: Array | None = None) -> Array:
        """AᵀWA V."""
        return self.A.normal(V, w)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """A W Aᵀ U."""
        return self.A.conormal(U, w)

    def gram(self, w: Array | None = None) -> Array:
        """The matrix given, where no weights are asked for."""
        return self._gram if w is None else self.A.gram(w)

    def cogram(self, w: Array | None = None) -> Array:
        """A W Aᵀ."""
        return self.A.cogram(w)

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Rows of A V."""
        return self.A.rows(V)


def centred_data(source: Source, mean: Array, scale: Array | None, dtype: Any) -> Operator:
    """(X − 1μᵀ)diag(1/s) for new rows X."""
    data = Data(source, origin=None if source.sparse else mean, dtype=dtype)
    A: Operator = data if scale is None else ColumnScaled(data, scale)
    # what rounding to the dtype took from the mean; all of it where zeros are not stored
    shift = mean if source.sparse else mean - source.xp.astype(data.asarray(mean), mean.dtype)
    if not source.sparse and float(source.xp.max(source.xp.abs(shift))) == 0.0:
        return A
    return Centred(A, shift if scale is None else shift / scale)
