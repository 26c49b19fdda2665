r"""The hot loops of Gaussian mixtures for torch tensors: the sums of one expectation step, without the n×K shares.

The same two ways as on the CPU (:mod:`gramian.compute.mixture`), in two modes. *double* is float64 throughout: one
kernel forms the monomials of a tile of rows, their products with all components, the responsibilities and the sums.
*accurate* multiplies float32 numbers in three terms of tf32, the whitened way, with a relative error of at most 2e-6 in
the sums, and is for GPUs that are slow in float64. There is no faster mode: tf32 alone rounds the components
themselves, which shifts all responsibilities the same way, and no number of rows averages that out.

Sums are kept per program or slab of rows, in the precision of the mode, and added in float64.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gramian.compute.devices import refuse_beyond_device
from gramian.compute.gpu import mixture_torch as plain
from gramian.compute.gpu.launch import triton_for
from gramian.compute.mixture import Components, Expanded, Sums, Whitened

__all__ = ["ACCURATE", "Way", "describe", "expectation", "log_densities", "way_of", "weighted_sums"]

Array = npt.NDArray[np.float64]

ACCURATE = 2e-6  # relative error of the sums in float32
EXPANDED = 1e4  # times the rounding of float64 is what the expanded way may lose: 1e-12
SPARED = 1e9  # rounding size at which the expanded way in float64 is still accurate, if not double
QUICK_DOUBLE = ((8, 0), (9, 0), (10, 0))  # compute capabilities with tensor cores for float64
LEAST = 1e-30  # a share below this is nothing
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


class Way(NamedTuple):
    """How an expectation step is to be computed: see :func:`way_of`."""

    expanded: bool
    tolerance: float | None


def way_of(X: torch.Tensor, rounding: float, tolerance: float | None = None) -> Way:
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
    >>> from gramian.compute.gpu.mixture import way_of
    >>> way_of(torch.ones(3, 2), 100.0)
    Way(expanded=True, tolerance=None)
    """
    if not _may_be_single(X, tolerance):
        return Way(rounding < EXPANDED, None)
    if _quick_double(X) and rounding < SPARED:
        return Way(True, None)
    return Way(False, ACCURATE)


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
    if triton_for(X) and X.shape[0] > 0:
        w = None if w is None else w.contiguous()
        tile = _tile(X.device, parts) if expanded else None
        with torch.cuda.device_of(X):  # Triton launches on the current GPU
            if tile is not None:  # in float64 always: float32 would lose 6e-8 times the rounding size
                return _expanded(X, w, parts, torch.float64, *tile)
            if not expanded and _whitened_fits(parts):
                return _whitened(X, w, parts, T)
    return (plain.expanded if expanded else plain.whitened)(X, w, parts)


def log_densities(X: torch.Tensor, parts: Components) -> torch.Tensor:
    """ln π_k N(x; μ_k, Σ_k) in float64, for every component (rows of the answer) and row of X (columns)."""
    k, n = len(parts.constants), X.shape[0]
    if 8 * k * n > LARGE:
        what = f"Densities of {n:,} rows and {k} components"
        refuse_beyond_device(8 * k * n, X.device, what, "Ask for fewer rows at a time.")
    return plain.log_densities(X, parts)


def weighted_sums(
    X: torch.Tensor, given: torch.Tensor, w: torch.Tensor | None, origin: Array, centres: Array, *, full: bool
) -> Sums:
    """The same sums with shares that are given: labels (n,) or responsibilities (n, K)."""
    return plain.weighted_sums(X, given, w, origin, centres, full=full)


def _may_be_single(X: torch.Tensor, tolerance: float | None) -> bool:
    return X.dtype == torch.float32 and tolerance is not None and tolerance >= ACCURATE and triton_for(X)


def _quick_double(X: torch.Tensor) -> bool:
    return X.is_cuda and torch.cuda.get_device_capability(X.device) in QUICK_DOUBLE


def _padded(k: int) -> int:
    return max(16, int(2 ** (k - 1).bit_length()))


def _chunks(parts: Components) -> int:
    """Groups of monomials."""
    d = int(parts.centres.shape[1])
    count = 1 + d + (d * (d + 1) // 2 if parts.roots.ndim == 3 else d)
    return -(-count // CHUNK)


def _tile(device: torch.device, parts: Components) -> tuple[int, int] | None:
    """Rows and warps of a program whose sums fit its registers, and whose monomials fit the memory it shares."""
    tall, wide = _padded(len(parts.constants)), _chunks(parts) * CHUNK
    if tall * wide > MOST_SUMS:
        return None
    cuda = device.type == "cuda"
    room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin if cuda else np.inf
    return next((tile for tile in TILES if 8 * (tile[0] * (wide + CHUNK) + tall * wide) <= room), None)


def _whitened_fits(parts: Components) -> bool:
    k, d = parts.centres.shape
    return bool(k <= MOST_COMPONENTS and _padded(d) <= WIDEST)


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


def _sent(values: npt.ArrayLike, like: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(np.asarray(values)).to(device=like.device, dtype=dtype)


def _expanded(
    X: torch.Tensor, w: torch.Tensor | None, parts: Components, T: torch.dtype, rows: int = 64, warps: int = 8
) -> Sums:
    """The sums about the origin of one kernel, moved to the centres."""
    way = Expanded(parts)
    (k, d), (n, count) = parts.centres.shape, (X.shape[0], way.map.shape[1])
    chunks, tall = _chunks(parts), _padded(k)
    table = np.zeros((tall, chunks * CHUNK))
    table[:k, :count], table[k:, 0] = way.map, NEVER
    table[:, 0] = np.maximum(table[:, 0], NEVER)
    one = np.full(chunks * CHUNK, d)  # the number of the factor that is 1
    first, second = one.copy(), one.copy()
    first[1 : d + 1], first[d + 1 : count] = np.arange(d), way.rows
    second[d + 1 : count] = way.columns
    offsets = np.zeros(_padded(d + 1))
    offsets[:d], offsets[d] = -parts.origin, 1.0
    tiles = -(-n // rows)
    programs = _programs(tiles, X.device)
    out = torch.empty((programs, tall, chunks * CHUNK), dtype=T, device=X.device)
    heights = torch.empty(programs, dtype=torch.float64, device=X.device)
    _kernels().expanded_sums[(programs,)](
        X,
        X if w is None else w,
        _sent(LOG2E * table, X, T),
        _sent(first, X, torch.int32),
        _sent(second, X, torch.int32),
        _sent(offsets, X, T),
        out,
        heights,
        n,
        d,
        X.stride(0),
        X.stride(1),
        tiles,
        LEAST,
        K=tall,
        D=len(offsets),
        CHUNK=CHUNK,
        CHUNKS=chunks,
        ROWS=rows,
        WEIGHTED=w is not None,
        num_warps=warps,
        **_single(T),
    )
    total = out.sum(dim=0, dtype=torch.float64)[:k, :count].cpu().numpy()
    return way.finish(Sums(np.zeros(0), np.zeros(0), total, float(heights.sum()) / LOG2E))


class _Tables(NamedTuple):
    """Components as the kernels of the whitened way take them: padded, with what rounding to T loses of the means."""

    roots: torch.Tensor
    means: torch.Tensor
    shifts: torch.Tensor

    @classmethod
    def of(cls, parts: Components, like: torch.Tensor, T: torch.dtype) -> _Tables:
        (k, d), origin, centres = parts.centres.shape, parts.origin, parts.centres
        D, narrow = _padded(d), np.float64 if T.itemsize == 8 else np.float32
        means = origin + centres
        back = means - origin  # the rounding of a sum, exactly (Knuth)
        lost = (origin - (means - back)) + (centres - back)
        kept = means.astype(narrow)
        roots = parts.roots if parts.roots.ndim == 3 else parts.roots[:, :, None] * np.eye(d)
        shifts = -np.einsum("kij,kj->ki", roots, (means - kept) + lost)
        wide = np.zeros((k, D, D))
        wide[:, :d, :d] = roots
        rest = ((0, 0), (0, D - d))
        return cls(*(_sent(x, like, T) for x in (wide, np.pad(kept, rest), np.pad(shifts, rest))))


def _whitened(
    X: torch.Tensor, w: torch.Tensor | None, parts: Components, T: torch.dtype, rows: int = 64, warps: int = 4
) -> Sums:
    """Shares of a slab of rows, then the sums of each component over it."""
    (k, d), tables = parts.centres.shape, _Tables.of(parts, X, T)
    D = tables.means.shape[1]
    constants = _sent(LOG2E * np.maximum(parts.constants, NEVER), X, T)
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
            x, v, *tables, constants, shares, heights, *place, k, LEAST, K=_padded(k), WEIGHTED=w is not None, **common
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
