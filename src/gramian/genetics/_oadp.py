"""OADP: new samples where a PCA that had seen them would put them, in the axes of the reference."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["augmented_scores"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

TOGETHER = 1 << 20  # numbers in the small matrices that are decomposed in one call


def augmented_scores(projected: Matrix, residual: Vector, singular_values: Vector) -> Matrix:
    r"""Online augmentation, decomposition and Procrustes, for each new sample on its own.

    The reference is :math:`UDV^T` and a new sample z has the projection :math:`\ell = V^Tz` and a rest of length r.
    Both together have the principal components of

    .. math:: Q = \begin{pmatrix} D & \ell\\ 0 & r\end{pmatrix} = PSW^T,

    k + 1 wide: the reference gets the scores :math:`U A`, :math:`A = D P_{1:k,1:k}`, the new sample
    :math:`y = (\ell, r) P_{:,1:k}`. The similarity that takes UA to the reference's own scores UD, with
    :math:`A^TD = L\Sigma R^T`, takes y to

    .. math:: \frac{\operatorname{tr}\Sigma}{\|A\|_F^2}\; y\,L R^T.

    U is orthonormal and centred, so that neither it nor a translation is needed (Zhang, Dey and Lee 2020).

    Parameters
    ----------
    projected : ndarray of shape (m, k)
        ℓ of each new sample.
    residual : ndarray of shape (m,)
        r of each.
    singular_values : ndarray of shape (k,)
        D, descending.

    Returns
    -------
    ndarray of shape (m, k)
        Scores in the axes and the scale of the reference.

    References
    ----------
    Zhang D., Dey R., Lee S. (2020). Fast and robust ancestry prediction using principal component analysis.
    Bioinformatics 36, 3439–3446.

    Privé F., Luu K., Blum M. G. B., McGrath J. J., Vilhjálmsson B. J. (2020). Efficient toolkit implementing best
    practices for principal component analysis of genetic data. Bioinformatics 36, 4449–4457.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics._oadp import augmented_scores
    >>> augmented_scores(np.array([[3.0]]), np.array([0.0]), np.array([10.0]))     # nothing new, nothing moves
    array([[3.]])
    >>> augmented_scores(np.array([[3.0]]), np.array([4.0]), np.array([10.0])).round(3)
    array([[3.508]])
    """
    m, k = projected.shape
    out = np.empty((m, k))
    step = max(1, TOGETHER // (k + 1) ** 2)
    for start in range(0, m, step):
        part = slice(start, start + step)
        out[part] = _moved(projected[part], residual[part], singular_values)
    return out


def _moved(projected: Matrix, residual: Vector, d: Vector) -> Matrix:
    m, k = projected.shape
    Q = np.zeros((m, k + 1, k + 1))
    Q[:, np.arange(k), np.arange(k)] = d
    Q[:, :k, k], Q[:, k, k] = projected, residual
    P = np.linalg.svd(Q)[0][:, :, :k]
    A = d[:, None] * P[:, :k]
    new = np.einsum("mi,mij->mj", Q[:, :, k], P)
    L, Sigma, Rt = np.linalg.svd(A.transpose(0, 2, 1) * d)
    scale = Sigma.sum(axis=1) / np.einsum("mij,mij->m", A, A)
    return np.asarray(scale[:, None] * np.einsum("mi,mij,mjl->ml", new, L, Rt))
