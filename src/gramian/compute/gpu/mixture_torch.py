"""The hot loops of Gaussian mixtures in plain torch: float64, in chunks of rows, on any device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from gramian.compute.mixture import Components, Expanded, Sums, Whitened

__all__ = ["expanded", "log_densities", "weighted_sums", "whitened"]

Array = npt.NDArray[np.float64]

CHUNK_BYTES = {"cuda": 2**28}  # of the widest matrix of a chunk
ELSEWHERE = 2**22  # bytes that stay in the caches of a CPU
LEAST = 1e-40  # a share below this is nothing


def expanded(X: torch.Tensor, w: torch.Tensor | None, parts: Components) -> Sums:
    """The sums, from the monomials 1, d_i and d_i d_j: one product each for densities and sums."""
    way = Expanded(parts)
    table, origin = _sent(way.map, X), _sent(parts.origin, X)
    i, j = _index(way.rows, X), _index(way.columns, X)
    total, height = torch.zeros_like(table), _zero(X)
    for x, v in _chunks(X, w, 2 * way.map.shape[1]):
        D = x.double() - origin
        F = torch.cat([torch.ones_like(D[:, :1]), D, D[:, i] * D[:, j]], dim=1)
        R, each = _shares(F @ table.T, v)
        height += each
        total += R.T @ F
    return way.finish(Sums(np.zeros(0), np.zeros(0), total.cpu().numpy(), float(height)))


def whitened(X: torch.Tensor, w: torch.Tensor | None, parts: Components) -> Sums:
    """The sums, from y_k = R_k(d − m_k) of each component."""
    (k, d), full = parts.centres.shape, parts.roots.ndim == 3
    tables = tuple(_sent(x, X) for x in parts)
    counts, first = _zero(X, k), _zero(X, k, d)
    second, height = _zero(X, k, d, d) if full else _zero(X, k, d), _zero(X)
    for x, v in _chunks(X, w, 3 * k * d):
        Y = _rows_of_components(x, *tables[:3])
        R, each = _shares(tables[3] - 0.5 * (Y * Y).sum(dim=2).T, v)
        height += each
        counts += R.sum(dim=0)
        Z = Y * R.T[:, :, None]
        first += Z.sum(dim=1)
        second += Z.transpose(1, 2) @ Y if full else (Z * Y).sum(dim=1)
    N, s, q = (t.cpu().numpy() for t in (counts, first, second))
    return Whitened(parts).finish(Sums(N, s, q, float(height)))


def log_densities(X: torch.Tensor, parts: Components) -> torch.Tensor:
    """ln π_k N(x; μ_k, Σ_k), of shape (K, n)."""
    k, d = parts.centres.shape
    tables = tuple(_sent(x, X) for x in parts)
    out = torch.empty((k, X.shape[0]), dtype=torch.float64, device=X.device)
    at = 0
    for x, _ in _chunks(X, None, 3 * k * d):
        Y = _rows_of_components(x, *tables[:3])
        out[:, at : at + len(x)] = tables[3][:, None] - 0.5 * (Y * Y).sum(dim=2)
        at += len(x)
    return out


def weighted_sums(
    X: torch.Tensor, given: torch.Tensor, w: torch.Tensor | None, origin: Array, centres: Array, *, full: bool
) -> Sums:
    """Sums about centres with shares that are given, by labels (n,) or responsibilities (n, K)."""
    k, d = centres.shape
    c, m = _sent(origin, X), _sent(centres, X)
    counts, first, second = _zero(X, k), _zero(X, k, d), _zero(X, k, d, d) if full else _zero(X, k, d)
    at = 0
    for x, v in _chunks(X, w, 3 * k * d):
        part = given[at : at + len(x)]
        at += len(x)
        R = (part[:, None] == torch.arange(k, device=X.device)).double() if part.ndim == 1 else part.double()
        R = R if v is None else R * v.double()[:, None]
        E = (x.double() - c)[None] - m[:, None]
        Z = E * R.T[:, :, None]
        counts += R.sum(dim=0)
        first += Z.sum(dim=1)
        second += Z.transpose(1, 2) @ E if full else (Z * E).sum(dim=1)
    N, s, q = (t.cpu().numpy() for t in (counts, first, second))
    return Sums(N, s, q, 0.0)


def _rows_of_components(
    x: torch.Tensor, origin: torch.Tensor, centres: torch.Tensor, roots: torch.Tensor
) -> torch.Tensor:
    """R_k(x − c − m_k), of shape (K, rows, d): the difference is taken first, so that nothing cancels."""
    E = (x.double() - origin)[None] - centres[:, None]
    return E @ roots.transpose(1, 2) if roots.ndim == 3 else E * roots[:, None]


def _shares(L: torch.Tensor, w: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Responsibilities times weights, and Σ w ln Σ exp, from ln π_k N_k of shape (rows, K)."""
    total = torch.logsumexp(L, dim=1)
    R = torch.exp(L - total[:, None])
    R = torch.where(R > LEAST, R, 0.0)
    if w is None:
        return R, total.sum()
    return R * w.double()[:, None], w.double() @ total


def _chunks(X: torch.Tensor, w: torch.Tensor | None, width: int) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
    """Rows and their weights, so few at a time that so many float64 numbers for each take little memory."""
    step = max(1, CHUNK_BYTES.get(X.device.type, ELSEWHERE) // (8 * width))
    for i in range(0, X.shape[0], step):
        yield X[i : i + step], None if w is None else w[i : i + step]


def _sent(values: Array, like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, device=like.device)


def _index(values: npt.NDArray[np.intp], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64, device=like.device)


def _zero(like: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.float64, device=like.device)
