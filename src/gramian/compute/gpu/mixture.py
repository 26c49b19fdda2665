r"""The hot loops of Gaussian mixtures for torch tensors: the sums of one expectation step, without the n×K shares.

The same two ways as on the CPU (:mod:`gramian.compute.mixture`), in two modes. *double* is float64 throughout: one
kernel forms the monomials of a tile of rows, their products with all components, the responsibilities and the sums.
*accurate* multiplies float32 numbers in three terms of tf32, the whitened way, with a relative error of at most 2e-6 in
the sums, and is for GPUs that are slow in float64. There is no faster mode: tf32 alone rounds the components
themselves, which shifts all responsibilities the same way, and no number of rows averages that out.

Sums are kept per program or slab of rows, in the precision of the mode, and added in float64. Where Triton does not
serve, plain torch computes the same in float64, in chunks of rows, on any device.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gramian.compute.devices import refuse_beyond_device
from gramian.compute.gpu.launch import uses_triton
from gramian.compute.mixture import Components, Expanded, Sums, Whitened

Array = npt.NDArray[np.float64]

ACCURATE = 2e-6  # relative error of the sums in float32
EXPANDED = 1e4  # times the rounding of float64 is what the expanded way may lose: 1e-12
SPARED = 1e9  # rounding size at which the expanded way in float64 is still accurate, if not double
QUICK_DOUBLE = ((8, 0), (9, 0), (10, 0))  # compute capabilities with tensor cores for float64
LEAST = 1e-30  # a share below this is nothing
LEAST_SHARE = 1e-40  # ... in plain torch
CHUNK_BYTES = {"cuda": 2**28, "cpu": 2**22}  # of the widest matrix of a chunk in plain torch
NEVER = -1e30  # ln 0, for products with finite numbers
LOG2E = 1.4426950408889634
CHUNK = 64  # monomials multiplied at a time
MOST_SUMS = 2**13  # components times monomials that a program keeps in its registers
MOST_COMPONENTS = 128
LARGE = 2**28  # bytes of an answer from which on the room for it is looked up
WIDEST = 64  # columns, padded, whose products fit a program
TILES = ((32, 4), (16, 4))  # rows and warps of a program, the expanded way: the first that fits is taken
SLAB = 2**19  # rows whose shares are kept at a time, the whitened way
PER_CORE = 4  # programs for each multiprocessor: 8.7 ms for 10⁷ × 20 and 16 components on an H200; 2 take 12 ms
LONGEST = 1024  # tiles of a program, at most: float32 sums of more would round too much


class ExpectationStep(NamedTuple):
    """How an expectation step is computed: from monomials or whitened rows, and how precisely."""

    expanded: bool
    tolerance: float | None


def choose_step(X: torch.Tensor, rounding: float, tolerance: float | None = None) -> ExpectationStep:
    """The quickest way whose sums have a relative error of at most ``tolerance``, or of rounding to float64 for None.

    Parameters
    ----------
    X : tensor of shape (n, d)
        The rows: float64 ones are always summed in float64.
    rounding : float
        :func:`gramian.compute.mixture.rounding_size` of components and rows.
    tolerance : float, optional
        Relative error that the sums may have.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.mixture import choose_step
    >>> choose_step(torch.ones(3, 2), 100.0)
    ExpectationStep(expanded=True, tolerance=None)
    """
    if not _may_be_single(X, tolerance):
        return ExpectationStep(rounding < EXPANDED, None)
    quick = X.is_cuda and torch.cuda.get_device_capability(X.device) in QUICK_DOUBLE
    if quick and rounding < SPARED:
        return ExpectationStep(True, None)
    return ExpectationStep(False, ACCURATE)


def describe(X: torch.Tensor, tolerance: float | None = None) -> str:
    """Name the mode that a tolerance allows, as a certificate does.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.mixture import describe
    >>> describe(torch.ones(3, 2))
    'double mode: float64'
    """
    if not _may_be_single(X, tolerance):
        return "double mode: float64"
    return f"accurate mode: three-term tf32 or float64, relative error at most {ACCURATE:g}"


def expectation(
    X: torch.Tensor,
    w: torch.Tensor | None,
    parts: Components,
    *,
    expanded: bool = False,
    tolerance: float | None = None,
) -> Sums:
    """Sums of one expectation step over the rows of X, each counted w times, in NumPy's float64.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.compute.gpu.mixture import expectation
    >>> from gramian.compute.mixture import Components
    >>> parts = Components(np.zeros(1), np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1))
    >>> expectation(torch.tensor([[1.0], [3.0]]), None, parts)
    Sums(counts=array([2.]), first=array([[4.]]), second=array([[10.]]), log_likelihood=-5.0)
    """
    T = torch.float32 if _may_be_single(X, tolerance) else torch.float64
    if uses_triton(X) and X.shape[0] > 0:
        w = None if w is None else w.contiguous()
        tile = _tile(X.device, parts) if expanded else None
        with torch.cuda.device_of(X):  # Triton launches on the current GPU
            if tile is not None:  # in float64 always: float32 would lose 6e-8 times the rounding size
                return _triton_expanded(X, w, parts, torch.float64, *tile)
            k, d = parts.centres.shape
            if not expanded and k <= MOST_COMPONENTS and _pad(d) <= WIDEST:
                return _triton_whitened(X, w, parts, T)
    return (_plain_expanded if expanded else _plain_whitened)(X, w, parts)


def log_densities(X: torch.Tensor, parts: Components) -> torch.Tensor:
    """ln π_k N(x; μ_k, Σ_k) in float64, for every component (rows of the answer) and row of X (columns)."""
    (k, d), n = parts.centres.shape, X.shape[0]
    if 8 * k * n > LARGE:
        what = f"Densities of {n:,} rows and {k} components"
        refuse_beyond_device(8 * k * n, X.device, what, "Ask for fewer rows at a time.")
    tables = tuple(_tensor(x, X) for x in parts)
    out = torch.empty((k, n), dtype=torch.float64, device=X.device)
    at = 0
    for x, _ in _row_chunks(X, None, 3 * k * d):
        Y = _rows_of_components(x, *tables[:3])
        out[:, at : at + len(x)] = tables[3][:, None] - 0.5 * (Y * Y).sum(dim=2)
        at += len(x)
    return out


def weighted_sums(
    X: torch.Tensor, given: torch.Tensor, w: torch.Tensor | None, origin: Array, centres: Array, *, full: bool
) -> Sums:
    """Sums about centres with shares that are given, by labels (n,) or responsibilities (n, K)."""
    k, d = centres.shape
    c, m = _tensor(origin, X), _tensor(centres, X)
    counts, first, second = _zeros(X, k), _zeros(X, k, d), _zeros(X, k, d, d) if full else _zeros(X, k, d)
    at = 0
    for x, v in _row_chunks(X, w, 3 * k * d):
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


def _plain_expanded(X: torch.Tensor, w: torch.Tensor | None, parts: Components) -> Sums:
    """The sums, from the monomials 1, d_i and d_i d_j: one product each for densities and sums."""
    way = Expanded(parts)
    table, origin = _tensor(way.map, X), _tensor(parts.origin, X)
    i, j = _tensor(way.rows, X, torch.int64), _tensor(way.columns, X, torch.int64)
    total, height = torch.zeros_like(table), _zeros(X)
    for x, v in _row_chunks(X, w, 2 * way.map.shape[1]):
        D = x.double() - origin
        F = torch.cat([torch.ones_like(D[:, :1]), D, D[:, i] * D[:, j]], dim=1)
        R, each = _shares(F @ table.T, v)
        height += each
        total += R.T @ F
    return way.finish(Sums(np.zeros(0), np.zeros(0), total.cpu().numpy(), float(height)))


def _plain_whitened(X: torch.Tensor, w: torch.Tensor | None, parts: Components) -> Sums:
    """The sums, from y_k = R_k(d − m_k) of each component."""
    (k, d), full = parts.centres.shape, parts.roots.ndim == 3
    tables = tuple(_tensor(x, X) for x in parts)
    counts, first = _zeros(X, k), _zeros(X, k, d)
    second, height = _zeros(X, k, d, d) if full else _zeros(X, k, d), _zeros(X)
    for x, v in _row_chunks(X, w, 3 * k * d):
        Y = _rows_of_components(x, *tables[:3])
        R, each = _shares(tables[3] - 0.5 * (Y * Y).sum(dim=2).T, v)
        height += each
        counts += R.sum(dim=0)
        Z = Y * R.T[:, :, None]
        first += Z.sum(dim=1)
        second += Z.transpose(1, 2) @ Y if full else (Z * Y).sum(dim=1)
    N, s, q = (t.cpu().numpy() for t in (counts, first, second))
    return Whitened(parts).finish(Sums(N, s, q, float(height)))


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
    R = torch.where(R > LEAST_SHARE, R, 0.0)
    if w is None:
        return R, total.sum()
    return R * w.double()[:, None], w.double() @ total


def _row_chunks(
    X: torch.Tensor, w: torch.Tensor | None, width: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
    """Rows and their weights, so few at a time that so many float64 numbers for each take little memory."""
    step = max(1, CHUNK_BYTES["cuda" if X.is_cuda else "cpu"] // (8 * width))
    for i in range(0, X.shape[0], step):
        yield X[i : i + step], None if w is None else w[i : i + step]


def _may_be_single(X: torch.Tensor, tolerance: float | None) -> bool:
    return X.dtype == torch.float32 and tolerance is not None and tolerance >= ACCURATE and uses_triton(X)


def _pad(k: int) -> int:
    return max(16, int(2 ** (k - 1).bit_length()))


def _chunks(parts: Components) -> int:
    """Groups of monomials."""
    d = int(parts.centres.shape[1])
    count = 1 + d + (d * (d + 1) // 2 if parts.roots.ndim == 3 else d)
    return -(-count // CHUNK)


def _tile(device: torch.device, parts: Components) -> tuple[int, int] | None:
    """Rows and warps of a program whose sums fit its registers, and whose monomials fit the memory it shares."""
    tall, wide = _pad(len(parts.constants)), _chunks(parts) * CHUNK
    if tall * wide > MOST_SUMS:
        return None
    cuda = device.type == "cuda"
    room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin if cuda else np.inf
    return next((tile for tile in TILES if 8 * (tile[0] * (wide + CHUNK) + tall * wide) <= room), None)


def _programs(tiles: int, device: torch.device) -> int:
    """How many programs share the tiles: a few for each multiprocessor, more where they would sum too many."""
    cuda = device.type == "cuda"
    cores = int(torch.cuda.get_device_properties(device).multi_processor_count) if cuda else 1
    return min(tiles, max(PER_CORE * cores, -(-tiles // LONGEST)))


def _kernels() -> Any:
    return importlib.import_module("gramian.compute.gpu.triton_mixture")


def _single(T: torch.dtype) -> dict[str, Any]:
    """What the precision means to the kernels: the products of float32 numbers in three terms of tf32."""
    tl = importlib.import_module("triton.language")
    wide = T.itemsize == 8
    return {"T": tl.float64 if wide else tl.float32, "PRECISION": "ieee" if wide else "tf32x3"}


def _triton_expanded(
    X: torch.Tensor, w: torch.Tensor | None, parts: Components, T: torch.dtype, rows: int = 64, warps: int = 8
) -> Sums:
    """The sums about the origin of one kernel, moved to the centres."""
    way = Expanded(parts)
    (k, d), (n, count) = parts.centres.shape, (X.shape[0], way.map.shape[1])
    chunks, tall = _chunks(parts), _pad(k)
    table = np.zeros((tall, chunks * CHUNK))
    table[:k, :count], table[k:, 0] = way.map, NEVER
    table[:, 0] = np.maximum(table[:, 0], NEVER)
    one = np.full(chunks * CHUNK, d)  # the number of the factor that is 1
    first, second = one.copy(), one.copy()
    first[1 : d + 1], first[d + 1 : count] = np.arange(d), way.rows
    second[d + 1 : count] = way.columns
    offsets = np.zeros(_pad(d + 1))
    offsets[:d], offsets[d] = -parts.origin, 1.0
    tiles = -(-n // rows)
    programs = _programs(tiles, X.device)
    out = torch.empty((programs, tall, chunks * CHUNK), dtype=T, device=X.device)
    heights = torch.empty(programs, dtype=torch.float64, device=X.device)
    monomials = (_tensor(LOG2E * table, X, T), *(_tensor(x, X, torch.int32) for x in (first, second)))
    sizes = {"K": tall, "D": len(offsets), "CHUNK": CHUNK, "CHUNKS": chunks, "ROWS": rows, "num_warps": warps}
    _kernels().expanded_sums[(programs,)](
        *(X, X if w is None else w, *monomials, _tensor(offsets, X, T), out, heights),
        *(n, d, X.stride(0), X.stride(1), tiles, LEAST),
        WEIGHTED=w is not None,
        **sizes,
        **_single(T),
    )
    total = out.sum(dim=0, dtype=torch.float64)[:k, :count].cpu().numpy()
    return way.finish(Sums(np.zeros(0), np.zeros(0), total, float(heights.sum()) / LOG2E))


def _whitened_tables(parts: Components, X: torch.Tensor, T: torch.dtype) -> list[torch.Tensor]:
    """Roots, means and what rounding to T loses of the means, padded, as the kernels of the whitened way take them."""
    (k, d), origin, centres = parts.centres.shape, parts.origin, parts.centres
    D, narrow = _pad(d), np.float64 if T.itemsize == 8 else np.float32
    means = origin + centres
    back = means - origin  # the rounding of a sum, exactly (Knuth)
    lost = (origin - (means - back)) + (centres - back)
    kept = means.astype(narrow)
    roots = parts.roots if parts.roots.ndim == 3 else parts.roots[:, :, None] * np.eye(d)
    shifts = -np.einsum("kij,kj->ki", roots, (means - kept) + lost)
    wide = np.zeros((k, D, D))
    wide[:, :d, :d] = roots
    rest = ((0, 0), (0, D - d))
    return [_tensor(x, X, T) for x in (wide, np.pad(kept, rest), np.pad(shifts, rest))]


def _triton_whitened(
    X: torch.Tensor, w: torch.Tensor | None, parts: Components, T: torch.dtype, rows: int = 64, warps: int = 4
) -> Sums:
    """Shares of a slab of rows, then the sums of each component over it."""
    (k, d), tables = parts.centres.shape, _whitened_tables(parts, X, T)
    D = _pad(d)
    constants = _tensor(LOG2E * np.maximum(parts.constants, NEVER), X, T)
    common = {"D": D, "ROWS": rows, "num_warps": warps, **_single(T)}
    totals = [torch.zeros(shape, dtype=torch.float64, device=X.device) for shape in ((k,), (k, D), (k, D, D), ())]
    for start in range(0, X.shape[0], SLAB):
        x = X[start : start + SLAB]
        n, tiles = x.shape[0], -(-x.shape[0] // rows)
        shares = torch.empty((k, n), dtype=T, device=X.device)
        heights = torch.empty(tiles, dtype=torch.float64, device=X.device)
        place = (n, d, x.stride(0), x.stride(1))
        v = x if w is None else w[start : start + SLAB]
        _kernels().whitened_shares[(tiles,)](
            x, v, *tables, constants, shares, heights, *place, k, LEAST, K=_pad(k), WEIGHTED=w is not None, **common
        )
        programs = max(1, min(tiles, -(-8 * _programs(tiles, X.device) // k)))
        sums = [torch.empty((programs, *t.shape), dtype=T, device=X.device) for t in totals[:3]]
        _kernels().whitened_sums[(k, programs)](x, *tables, shares, *sums, *place, tiles, **common)
        for total, part in zip(totals, [*sums, heights], strict=True):
            total += part.sum(dim=0, dtype=torch.float64)
    N, first, second, height = (t.cpu().numpy() for t in totals)
    full = parts.roots.ndim == 3
    second = second[:, :d, :d] if full else np.diagonal(second, axis1=1, axis2=2)[:, :d]
    return Whitened(parts).finish(Sums(N, first[:, :d], second, float(height) / LOG2E))


def _tensor(values: npt.ArrayLike, X: torch.Tensor, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(np.asarray(values)).to(device=X.device, dtype=dtype)


def _zeros(X: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.float64, device=X.device)
