r"""The floor: no variance of a component falls to where rounding would hide it.

The likelihood of a mixture is unbounded: a component that shrinks onto a row, a line or a plane raises it without end.
Covariances are therefore kept from falling below

.. math:: \Sigma_k\succeq\Lambda_k=\max\bigl(\epsilon\operatorname{diag}(s_1^2,\dots,s_d^2),\
    \rho\operatorname{diag}(T_k/N_k)\bigr)

with s² the variances of the columns and ε = 1e-22: a deviation of 1e-11 of the data's, some 50,000 times the rounding
of values that far apart. Clusters far apart and single outliers, which make s² large, do not come near it. The second
part, ρ = 1e-12, is for covariances that are not diagonal, which cannot be told from singular ones below that.

For EII, VII, EEI, VVI, EEE and VVV, cutting off the eigenvalues of
:math:`\Lambda_k^{-1/2}(T_k/N_k)\Lambda_k^{-1/2}` at 1 is the maximum above :math:`\Lambda_k`. For the others it is
applied to the scatter matrices before the maximisation step. A step that the floor would make one downwards is not
taken. Data in other units give the same fit in those units.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["POOLED", "SHARED_SHAPE", "in_units", "lowest", "raised"]

Array = npt.NDArray[np.float64]

POOLED = frozenset({"EII", "EEI", "EEE"})  # one covariance for all
SINGULAR = 1e-12  # ρ: smallest eigenvalue of a correlation matrix that is kept
SHARED_SHAPE = frozenset({"VEI", "VEE", "EEV", "VEV"})


def raised(model: str, N: Array, T: Array, scale: Array) -> Array:
    """Scatter matrices with T_k/N_k raised to the floor, each on its own or all together, as the model has it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture.floor import raised
    >>> raised("VVI", np.array([2.0]), np.array([[0.0, 8.0]]), np.array([0.5, 0.5]))
    array([[1., 8.]])
    """
    if model in POOLED:
        total = T.sum(axis=0, keepdims=True)
        more = _raised(model, np.array([N.sum()]), total, scale) - total
        return T + _like(N / N.sum(), T) * more if more.any() else T
    return _raised(model, N, T, scale)


def lowest(model: str, S: Array, scale: Array) -> Array:
    """The smallest variance of each covariance in units of the floor: 1 where the floor holds it."""
    if model[1] == "I":
        return np.asarray(S.mean(axis=1) / scale.mean())
    if S.ndim == 2:
        return np.asarray(np.min(S / scale, axis=1))
    return np.asarray(np.linalg.eigvalsh(in_units(S, scale))[:, 0])


def in_units(S: Array, scale: Array) -> Array:
    """Covariance matrices in units of the floor under each."""
    root = np.sqrt(np.maximum(scale, SINGULAR * np.diagonal(S, axis1=-2, axis2=-1)))
    return np.asarray(S / (root[..., :, None] * root[..., None, :]))


def _raised(model: str, N: Array, T: Array, scale: Array) -> Array:
    if model[1] == "I":
        low = T.mean(axis=1) < N * scale.mean()
        return np.where(low[:, None], N[:, None] * scale.mean(), T)
    if T.ndim == 2:
        return np.maximum(T, N[:, None] * scale)
    return np.stack([_cut(S, n, scale) for S, n in zip(T, N, strict=True)])


def _cut(S: Array, n: float, scale: Array) -> Array:
    """Eigenvalues below 1 raised to 1, in units of the floor; nothing is touched where there are none."""
    root = np.sqrt(np.maximum(n * scale, SINGULAR * np.diag(S)))
    whitened = S / (root[:, None] * root)
    try:
        np.linalg.cholesky(whitened - np.eye(len(S)))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(whitened)
        return np.asarray((vectors * np.maximum(values, 1.0)) @ vectors.T * (root[:, None] * root))
    return S


def _like(v: Array, T: Array) -> Array:
    return v.reshape(-1, *(1,) * (T.ndim - 1))
