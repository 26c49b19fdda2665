"""Kernels by their formulas in 120 digits, and eigenvalues of their centred matrices in long doubles."""

from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

from gramian.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from oracles import Array

DIGITS = 120


def exact_value(kernel: Kernel, x: list[Any], z: list[Any]) -> Any:
    """k(x, z) by its formula, in the precision of mpmath."""
    dot, squares = mp.fdot(x, z), mp.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True))
    if isinstance(kernel, Linear):
        return dot
    if isinstance(kernel, Polynomial):
        return (mp.mpf(kernel.gamma) * dot + mp.mpf(kernel.coef0)) ** kernel.degree
    if isinstance(kernel, Sigmoid):
        return mp.tanh(mp.mpf(kernel.gamma) * dot + mp.mpf(kernel.coef0))
    if isinstance(kernel, Cosine):
        norms = mp.sqrt(mp.fdot(x, x) * mp.fdot(z, z))
        return dot / norms if norms else mp.mpf(0)
    if isinstance(kernel, Gaussian):
        return mp.exp(-mp.mpf(kernel.gamma) * squares)
    if isinstance(kernel, Laplacian):
        return mp.exp(-mp.mpf(kernel.gamma) * mp.fsum(abs(a - b) for a, b in zip(x, z, strict=True)))
    if isinstance(kernel, (Chi2, AdditiveChi2)):
        u = mp.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)
        return mp.exp(-mp.mpf(kernel.gamma) * u) if isinstance(kernel, Chi2) else -u
    length = mp.mpf(kernel.length_scale)  # type: ignore[attr-defined]
    if isinstance(kernel, RationalQuadratic):
        return (1 + squares / (2 * mp.mpf(kernel.alpha) * length**2)) ** (-mp.mpf(kernel.alpha))
    assert isinstance(kernel, Matern)
    s = mp.sqrt(2 * mp.mpf(kernel.nu) * squares) / length
    return {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[kernel.nu] * mp.exp(-s)


def exact_matrix(kernel: Kernel, X: Array, Z: Array | None = None) -> Array:
    """k(X, Z) or k(X, X) as an array of mpmath's numbers."""
    rows = [[mp.mpf(float(v)) for v in x] for x in X]
    if Z is not None:
        columns = [[mp.mpf(float(v)) for v in z] for z in Z]
        return np.array([[exact_value(kernel, x, z) for z in columns] for x in rows], dtype=object)
    K = np.empty((len(X), len(X)), dtype=object)
    for i in range(len(X)):
        for j in range(i + 1):
            K[i, j] = K[j, i] = exact_value(kernel, rows[i], rows[j])
    return K


def exact_eigenvalues(K: Array, weights: Array | None = None, centre: bool = True) -> Array:
    """Eigenvalues, descending, of diag(√w) H K Hᵀ diag(√w) for K in mpmath's numbers."""
    n, before = len(K), max(abs(v) for v in K.flat)
    w = np.array([mp.mpf(float(v)) for v in (np.ones(n) if weights is None else weights)], dtype=object)
    if centre:
        share = w / mp.fsum(w)
        K = K - (share @ K)[None, :]
        K = K - (K @ share)[:, None]
    root = np.array([mp.sqrt(v) for v in w], dtype=object)
    B = K * root[:, None] * root
    size = max(abs(v) for v in B.flat)
    if size <= mp.mpf(10) ** (40 - DIGITS) * before:  # rounding of 120 digits
        return np.zeros(n, dtype=np.longdouble)
    unit = mp.mpf(2) ** int(mp.floor(mp.log(size, 2)))
    high = np.array([[float(v / unit) for v in row] for row in B])
    low = np.array([[float(v / unit - h) for v, h in zip(*rows, strict=True)] for rows in zip(B, high, strict=True)])
    return _jacobi(high.astype(np.longdouble) + low.astype(np.longdouble)) * np.longdouble(float(unit))


def _jacobi(A: Array) -> Array:
    """Eigenvalues of a symmetric matrix of long doubles, descending: Jacobi's rotations, n/2 of them at a time."""
    n = len(A)
    if n % 2:  # an even number of rows is paired off; a row of zeros has an eigenvalue below or above, and is taken out
        padded = np.zeros((n + 1, n + 1), dtype=np.longdouble)
        padded[:n, :n] = A
        padded[n, n] = -4.0 * n * np.max(np.abs(A))
        return _jacobi(padded)[:-1]
    players = np.arange(n)
    for _ in range(40):
        off = A - np.diag(np.diag(A))
        if np.max(np.abs(off)) <= 2e-19 * np.max(np.abs(A)):
            break
        for _ in range(n - 1):
            p, q = players[: n // 2], players[n // 2 :][::-1]
            difference, across = A[q, q] - A[p, p], 2 * A[p, q]
            angle = np.where(across == 0, np.longdouble(0), np.arctan2(across, difference) / 2)
            angle = np.where(
                np.abs(angle) > np.pi / 4, angle - np.sign(angle) * (np.arctan2(np.longdouble(0), -1) / 2), angle
            )
            c, s = np.cos(angle), np.sin(angle)
            rows_p, rows_q = A[p].copy(), A[q].copy()
            A[p], A[q] = c[:, None] * rows_p - s[:, None] * rows_q, s[:, None] * rows_p + c[:, None] * rows_q
            columns_p, columns_q = A[:, p].copy(), A[:, q].copy()
            A[:, p], A[:, q] = columns_p * c - columns_q * s, columns_p * s + columns_q * c
            players = np.concatenate([players[:1], players[-1:], players[1:-1]])
    return np.sort(np.diag(A))[::-1]
