"""Landmarks: the few rows whose coefficients stand for all, how they are chosen, and the model of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from numpy.random import Generator

from gramian.compute.devices import free_bytes, refuse_beyond_device
from gramian.compute.memory import available_memory
from gramian.inputs.checks import check_weights
from gramian.inputs.kernels import dense_kernel, dense_matrix, kernel_diagonal, load_points, read_rows
from gramian.kernel_ridge.landmark_fit import (
    Decomposed,
    LandmarkFit,
    LandmarkSolver,
    choose_method,
    is_on_gpu,
    predict_bytes,
)
from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernel_ridge.solve import Report
from gramian.kernels import Kernel
from gramian.linear.systems import dots, triangular
from gramian.operators import kernel_operator
from gramian.sources import Source
from gramian.spectral.rpcholesky import rp_cholesky

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

HOW = ("rpcholesky", "leverage", "uniform")
FEWEST, MOST = 1000, 10_000  # landmarks, where no number is given
PER_ROOT = 10  # ... times √n in between
PILOT_PART, PILOT_LEAST = 4, 256  # rows of the pilot set of leverage scores: m/4, and no fewer than 256
PER_LANDMARK = 20  # rows of a sample for each landmark that randomly pivoted Cholesky is to choose
MEMORY_PART = 4  # its factor may take one part in so many of the memory there is
GPU_PART = 2  # ... and on a GPU, where nothing else is yet


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows chosen as landmarks; ``indices, points = landmarks`` unpacks the two that a model needs.

    Attributes
    ----------
    indices, points : ndarray of shape (m,); array, sparse matrix or list
        Which rows; the rows themselves, in memory, in that order.
    note : str
        How they were chosen.
    """

    indices: Index
    points: Any
    note: str

    def __iter__(self) -> Iterator[Any]:
        return iter((self.indices, self.points))

    def __repr__(self) -> str:
        return f"Landmarks({len(self.indices)}: {self.note})"


def default_landmarks(n: int) -> int:
    """Return min(n, max(1000, 10√n)), but no more than 10,000, whose matrices of m×m numbers take 0.8 GB each.

    Some √n·ln n landmarks keep the rate of the error of exact kernel ridge (Rudi, Camoriano and Rosasco, 2015).

    Examples
    --------
    >>> from gramian.kernel_ridge.landmarks import default_landmarks
    >>> [default_landmarks(n) for n in (500, 5_000, 250_000, 10**8)]
    [500, 1000, 5000, 10000]
    """
    return min(n, MOST, max(FEWEST, ceil(PER_ROOT * sqrt(n))))


def choose_landmarks(
    kernel: Kernel,
    X: Any,
    m: int | None = None,
    how: Any = "rpcholesky",
    *,
    lam: float = 1.0,
    weights: Any = None,
    seed: int = 0,
    device: Any = None,
) -> Landmarks:
    r"""Choose m rows of X; a row of weight 2 is the row twice, and a row of weight 0 is never chosen.

    * "rpcholesky": randomly pivoted Cholesky of √w K √w, each row drawn in proportion to what the rows before leave of
      its feature. Of a random sample of up to 20m where a factor of all would not fit in a quarter of free memory, or
      half of a GPU's.
    * "leverage": in proportion to approximate ridge leverage scores at λ (:func:`ridge_leverage`), without replacement.
    * "uniform": in proportion to the weights, without replacement: evenly where there are none.

    Parameters
    ----------
    kernel : Kernel
        With every parameter found.
    X : array, sparse matrix, list, path, memory map or Source
        Rows; of a file only those chosen, or a sample, are kept.
    m : int, optional
        How many; :func:`default_landmarks` where None. All rows with weight where there are no more.
    how : {"rpcholesky", "leverage", "uniform"} or array of row numbers
        How, or the rows themselves.
    lam : float, default=1.0
        λ > 0 of the leverage scores.
    weights : array-like of shape (n,), optional
        Of the rows, not negative.
    seed : int, default=0
        For the draws.
    device : torch.device, optional
        Where kernel and factor are; in NumPy where not given. The same rows are drawn as far as rounding allows.

    Returns
    -------
    Landmarks
        Index, points, and how they were chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.landmarks import choose_landmarks
    >>> from gramian.kernels import Gaussian
    >>> X = np.repeat(np.arange(3.0), 100)[:, None]  # three points, a hundred times each
    >>> indices, points = choose_landmarks(Gaussian(1.0), X, 10)
    >>> sorted(points[:, 0].tolist())
    [0.0, 1.0, 2.0]
    """
    X, n = load_points(X)
    w = check_weights(weights, n)
    if not isinstance(how, str):
        return _check_given(X, how, w)
    if how not in HOW:
        raise ValueError(f"landmarks must be one of {', '.join(HOW)}, or an array of row numbers; got {how!r}.")
    if m is not None and m < 1:
        raise ValueError(f"The number of landmarks must be at least 1, got {m}.")
    alive, rng = int(np.count_nonzero(w)), np.random.default_rng(seed)
    m = default_landmarks(alive) if m is None else min(int(m), alive)
    if m < alive and how != "uniform" and not kernel.positive_semidefinite:
        raise ValueError(f"{kernel!r} is not positive semidefinite, which landmarks={how!r} needs. Use 'uniform'.")
    if m == alive:
        indices, note = np.flatnonzero(w), "all rows"
    elif how == "uniform":
        indices, note = draw(w, m, rng), "drawn evenly"
    elif how == "leverage":
        s = min(alive, max(PILOT_LEAST, m // PILOT_PART))
        pilot = draw((w > 0).astype(np.float64), s, rng)
        indices = draw(ridge_leverage(kernel, X, lam, pilot, w, device), m, rng)
        note = f"drawn by ridge leverage scores at λ = {lam:.3g}, from a pilot set of {s} rows"
    else:
        indices, note = _choose_by_cholesky(kernel, X, w, m, rng, device)
    return Landmarks(indices, read_rows(X, indices), note)


def draw(p: Array, m: int, rng: Generator) -> Index:
    """Draw m indices one after another in proportion to p, without replacement; never one with p = 0.

    Exponential variables divided by p race, and the first m to arrive are those of successive draws.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.landmarks import draw
    >>> sorted(draw(np.array([0.2, 0.0, 3.0]), 2, np.random.default_rng(0)).tolist())
    [0, 2]
    """
    times = np.full(len(p), np.inf)
    np.divide(rng.exponential(size=len(p)), p, out=times, where=p > 0)
    m = min(m, int(np.count_nonzero(p > 0)))
    first = np.argpartition(times, m - 1)[:m] if m < len(p) else np.flatnonzero(p > 0)
    return np.asarray(first[np.argsort(times[first], kind="stable")], dtype=np.intp)


def ridge_leverage(kernel: Kernel, X: Any, lam: float, pilot: Any, weights: Any = None, device: Any = None) -> Array:
    r"""Approximate ridge leverage scores of B = √w K √w from the rows S of a pilot set, in one pass.

    .. math:: \ell_i = \big(B(B+\lambda I)^{-1}\big)_{ii}\approx
        \frac1\lambda\Big(B_{ii}-B_{iS}\big(B_{SS}+\tfrac sn\lambda I\big)^{-1}B_{Si}\Big)

    between 0 and 1: B_SS, for s of n rows drawn evenly, stands for s/n of all (Musco and Musco, 2017), but a row of S
    for itself alone in its own score. Exact where S is all rows; scores sum to the effective degrees of freedom.

    Parameters
    ----------
    kernel, X, weights, device
        As for :func:`choose_landmarks`.
    lam : float
        λ > 0.
    pilot : array-like of int
        S.

    Returns
    -------
    ndarray of shape (n,)
        Scores; 0 for rows of weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.landmarks import ridge_leverage
    >>> from gramian.kernels import Linear
    >>> ridge_leverage(Linear(), np.array([[1.0], [2.0]]), 1.0, [0, 1]).round(4)  # x²/(1 + λ + 4)
    array([0.1667, 0.6667])
    """
    if not lam > 0:
        raise ValueError(f"Leverage scores need λ > 0, got {lam!r}: choose landmarks='rpcholesky'.")
    X, n = load_points(X)
    w, S = check_weights(weights, n), np.asarray(pilot, dtype=np.intp)
    Z = read_rows(X, S)
    # (√w_S K_SS √w_S + ...)⁻¹ between √w_S on both sides is (K_SS + .../w_S)⁻¹
    inner, alone = dense_kernel(kernel, Z), lam / w[S]
    shared = alone * len(S) / np.count_nonzero(w)
    inner[np.diag_indices(len(S))] += shared
    L = scipy.linalg.cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
    left = kernel_diagonal(kernel, X)
    A = kernel_operator(kernel, X, Z, dtype=np.float64, store=False, device=device)
    there = A.asarray(L)
    for start, stop, K in A.rows():
        F = triangular(there, K.T)
        left[start:stop] -= dots(F, F)
    # K − K(K + D)⁻¹K = D − D(K + D)⁻¹D, with one entry of D changed: Sherman and Morrison
    inverse = np.sum(scipy.linalg.lapack.dtrtri(L, lower=1)[0] ** 2, axis=0)
    left[S] = alone - alone**2 * inverse / (1.0 + (alone - shared) * inverse)
    return np.asarray(np.where(w > 0, np.clip(w * left / lam, np.finfo(float).eps, 1.0), 0.0))


def _check_given(X: Any, rows: Any, w: Array) -> Landmarks:
    """The rows that the user names, once they are checked."""
    indices = np.asarray(rows)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not len(indices):
        raise ValueError("landmarks must be a vector of row numbers, at least one.")
    beyond = (indices < 0) | (indices >= len(w))
    if np.any(beyond):
        raise ValueError(f"landmarks names row {indices[beyond][0]}; there are rows 0 to {len(w) - 1}.")
    values, times = np.unique(indices, return_counts=True)
    if np.any(times > 1):
        raise ValueError(f"landmarks names row {values[np.argmax(times)]} more than once.")
    if np.any(w[indices] == 0):
        raise ValueError(f"landmarks names row {indices[w[indices] == 0][0]}, whose weight is 0.")
    indices = indices.astype(np.intp)
    return Landmarks(indices, read_rows(X, indices), "given")


def _choose_by_cholesky(kernel: Kernel, X: Any, w: Array, m: int, rng: Generator, device: Any) -> tuple[Index, str]:
    """Rows by randomly pivoted Cholesky, of a sample where the factor of all would not fit; and how, in words."""
    rows = np.flatnonzero(w)
    gpu = getattr(device, "type", "cpu") != "cpu"
    room = free_bytes(device) // GPU_PART if gpu else available_memory() // MEMORY_PART
    fit = max(m, int(room // (8 * m)))
    if isinstance(X, Source) or len(rows) > fit:
        rows = np.sort(rng.choice(rows, size=min(len(rows), fit, PER_LANDMARK * m), replace=False))
    points, root = X if len(rows) == len(w) else read_rows(X, rows), np.sqrt(w[rows])
    K = kernel_operator(kernel, points, dtype=np.float64, store=False, device=device)
    own = root**2 * kernel_diagonal(kernel, points)
    there, weighted = K.asarray(root), not np.all(root == 1.0)

    def columns(j: Index, i: Any = None) -> Any:
        """Of √w K √w, where K lives."""
        if not weighted:
            return K.columns(j, i)
        left = there if i is None else K.asarray(root[i])
        return K.columns(j, i) * left[:, None] * K.asarray(root[j])[None, :]

    found = rp_cholesky(own, columns, m, seed=int(rng.integers(2**31)))
    if not len(found.indices):
        return draw(w, 1, rng), "one row drawn evenly, since every k(x, x) is 0"
    alive = np.count_nonzero(w)
    of = f" of a random sample of {len(rows)} of {alive} rows" if len(rows) < alive else ""
    fewer = f"; {len(found.indices)} span the features of all" if len(found.indices) < m else ""
    return rows[found.indices], f"by randomly pivoted Cholesky{of}{fewer}"


def fit_landmarks(
    problem: KernelProblem,
    landmarks: Landmarks,
    reason: str,
    *,
    tol: float,
    max_iter: int | None = None,
    report: Report | None = None,
) -> LandmarkFit:
    """Fit the coefficients of the landmarks by passes over all rows; what is not converged is left to the caller."""
    A = problem.between(problem.points, landmarks.points)
    method, _ = choose_method(*A.shape, problem.Y.shape[1], resident=A.resident, on_gpu=is_on_gpu(A))
    solver = LandmarkSolver(tol=tol, max_iterations=max_iter, report=report)
    inner, known = _inner(problem, landmarks, method), _describe_rows(problem, landmarks)
    return solver(A, inner, problem.Y, problem.lam, reason=reason, warn=False, **known)


def decompose_landmarks(problem: KernelProblem, landmarks: Landmarks, copies: Array | None) -> Decomposed:
    """Decompose the model of the landmarks: every λ from two passes over the rows."""
    A, inner = problem.between(problem.points, landmarks.points), _inner(problem, landmarks, "direct")
    return LandmarkSolver().decompose(A, inner, problem.Y, copies=copies, **_describe_rows(problem, landmarks))


def _inner(problem: KernelProblem, landmarks: Landmarks, method: str) -> Any:
    """k(Z, Z) of the landmarks where it is evaluated, unless matrices of that size do not fit there."""
    m, gpu = len(landmarks.indices), getattr(problem.device, "type", "cpu") != "cpu"
    what, remedy = (
        (("solver", "landmarks"), f" with {m} landmarks"),
        ("Use fewer landmarks: ", ("n_landmarks", None), "."),
    )
    refuse_beyond_device(predict_bytes(m, method, gpu), problem.device, what, remedy)
    return dense_matrix(problem.between(landmarks.points))


def _describe_rows(problem: KernelProblem, landmarks: Landmarks) -> dict[str, Any]:
    """What the solver is to know of the rows."""
    rows = {"weights": problem.w, "counts": problem.counts, "intercept": problem.intercept}
    return {**rows, "indices": landmarks.indices, "diagonal": problem.squared_lengths}
