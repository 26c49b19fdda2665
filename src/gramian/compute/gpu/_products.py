r"""Kernel products by the Triton kernels: sizes of tiles, columns in groups, pieces of V, and sums put together."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from gramian.compute.gpu import _triton_tiles as kernels
from gramian.compute.gpu._pairs import powers
from gramian.compute.gpu._points import BLOCK, BLOCK64, PAD, UNROLL
from gramian.compute.gpu._precision import Arithmetic
from gramian.compute.gpu.dense import every_digit

__all__ = ["Loops"]

Tensor = Any

LIFT = 2.0**15  # what the largest number of a tile, and of a column of V, is brought to below as fp16 pieces
GROUPS = {0: 16, 1: 64, 2: 32}  # columns at a time, by pieces
CHUNK_ROWS, CHUNK_COLUMNS = 2**17, 2**11  # of what is written down: longer sums in float32 would round too much
MANY = 256  # features beyond which the sum of their differences in float32 rounds too much for single values
SMALL = 2**16  # rows below which symmetric tiles are too few to keep a card busy


class Loops:
    """The products of one formula with prepared points.

    Parameters
    ----------
    formula : Formula
        Of the kernel.
    chosen : Arithmetic
        How.
    X, Z : tensors (n, p), (m, p); Z may be None
        Points.
    """

    def __init__(self, formula: Any, chosen: Arithmetic, X: Tensor, Z: Tensor | None) -> None:
        self.formula, self.chosen, self.X, self.Z = formula, chosen, X, Z
        self.n, self.m = len(X), len(X if Z is None else Z)
        self.p = X.shape[1]
        self._kept: dict[str, Tensor] = {}

    def times(self, V: Tensor) -> Tensor:
        """K V."""
        return self._grouped(V, self.n, lambda part, group: self._multiply("left", "right", self.n, part, group))

    def transposed_times(self, U: Tensor) -> Tensor:
        """Kᵀ U."""
        return self._grouped(U, self.m, lambda part, group: self._multiply("right", "left", self.m, part, group))

    def symmetric_times(self, V: Tensor) -> Tensor:
        """K V, with tiles that serve twice for one column of many rows."""
        if V.shape[1] != 1 or self.n < SMALL:
            return self.times(V)
        return self._grouped(V, self.n, lambda part, group: self._symmetric(part))

    def _grouped(self, V: Tensor, n: int, multiply: Callable[[Tensor, int], Tensor]) -> Tensor:
        """All columns, as many at a time as a tile is multiplied by, each scaled to the range of the arithmetic."""
        out = V.new_empty((n, V.shape[1]))
        most = GROUPS[self.chosen.pieces]
        for first in range(0, V.shape[1], most):
            part = V[:, first : first + most].double()
            sizes = powers(part)
            with _on(V.device):
                total = multiply(part / sizes, part.shape[1])
            out[:, first : first + most] = total * (sizes * self.formula.factor)
        return out

    def _multiply(self, here: str, there: str, n: int, V: Tensor, group: int) -> Tensor:
        """One group of columns by the tiles of all rows."""
        if self._kind == "long" and group > 1:
            return self._written(here, there, n, V)
        stored, lift = self._stored(V)
        X, Z, width = self._points(here), self._points(there), stored.shape[1]
        rows, columns, warps, stages = _tile(self._kind, width)
        across = stored.shape[0]
        splits = max(1, min(-(-kernels.PROGRAMS // -(-n // rows)), across // columns))
        span = -(-across // (columns * splits)) * columns
        splits = -(-across // span)
        out = torch.zeros((splits, n, width), dtype=torch.float64, device=V.device)
        kernels.multiply[(-(-n // rows), splits)](
            X, Z, stored, out, self._parameters(lift), n, across, *self._strides(X, Z), span, min(span, kernels.FLUSH),
            **self._constants(X), C=width, PIECES=self._pieces(width), BM=rows, BN=columns, STAGES=stages,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        total = out.sum(dim=0)
        if self._pieces(width):
            total = (total[:, : width // 2] + total[:, width // 2 :]) / (lift * LIFT)
        return total[:, :group]

    def _written(self, here: str, there: str, n: int, V: Tensor) -> Tensor:
        """The same for points of many features: chunks of K are written down and multiplied by the library.

        A kernel that multiplies blocks of points inside its loop over columns, and then the tile, gives wrong numbers
        on an H200 with Triton 3.6, with and without pipelining; each of the two products by itself does not.
        """
        X, Z, m = self._points(here), self._points(there), len(V)
        constants, parameters = self._constants(X), self._parameters(1.0)
        high, wide, warps = kernels.WRITE
        total, V = V.new_zeros((n, V.shape[1])), V.float()
        room = torch.empty((min(n, CHUNK_ROWS), min(m, CHUNK_COLUMNS)), dtype=torch.float32, device=V.device)
        names = ("PROFILE", "DEGREE", "KD", "BK")
        for i in range(0, n, CHUNK_ROWS):
            for j in range(0, m, CHUNK_COLUMNS):
                rows, columns = min(CHUNK_ROWS, n - i), min(CHUNK_COLUMNS, m - j)
                kernels.write[(-(-rows // high) * -(-columns // wide),)](
                    X[i:], Z[j:], room, parameters, rows, columns, room.stride(0),
                    **{name: constants[name] for name in names}, BM=high, BN=wide, num_warps=warps,
                )  # fmt: skip
                with every_digit():
                    total[i : i + rows] += room[:rows, :columns] @ V[j : j + columns]
        return total

    def _symmetric(self, V: Tensor) -> Tensor:
        """One column by the tiles on and above the diagonal."""
        X, Z = self._points("left"), self._points("right")
        stored, lift = self._stored(V)
        side, warps, stages = kernels.SYMMETRIC[self._kind]
        blocks, ldx = -(-self.n // side), self._strides(X, Z)[0]
        out = torch.zeros(self.n, dtype=torch.float64, device=V.device)
        kernels.multiply_symmetric[(blocks,)](
            X, Z, stored, out, self._parameters(lift), self.n, ldx, self.p, blocks, max(1, kernels.FLUSH // side),
            **self._constants(X), B=side, STAGES=stages, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out[:, None]

    def fill(self, rows: Any, columns: Any, out: Tensor) -> None:
        """Write k(X[rows], Z[columns])."""
        dtype = torch.float64 if self.p > MANY else self.chosen.dtype
        X, Z = (_some(self._features(name, dtype), part) for name, part in (("left", rows), ("right", columns)))
        n, m = out.shape
        high, wide, warps = kernels.FILL
        constants = self._constants(X, apart=True)
        names = ("GEOMETRY", "PROFILE", "DEGREE", "UNROLL")
        with _on(out.device):
            kernels.fill[(-(-n // high) * -(-m // wide),)](
                X, Z, out, self._parameters(self.formula.factor, apart=True).to(dtype), n, m, X.stride(0), Z.stride(0),
                out.stride(0), X.shape[0], **{name: constants[name] for name in names}, BM=high, BN=wide,
                num_warps=warps,
            )  # fmt: skip

    # what the kernels are handed

    @property
    def _kind(self) -> str:
        """Which sizes of tiles."""
        wide = self.chosen.dtype == torch.float64
        if not self.chosen.parts:
            return "float64" if wide else "float32"
        if wide:
            return "wide"
        return "fp16" if self._points("left").shape[1] <= 2 * BLOCK else "long"

    def _pieces(self, width: int) -> int:
        return self.chosen.pieces if width > 1 else 0

    def _stored(self, V: Tensor) -> tuple[Tensor, float]:
        """V padded with zeros, as two fp16 pieces side by side where it is multiplied so; and the tile's factor."""
        (m, k), high = V.shape, -(-max(len(V), 1) // PAD) * PAD
        if not self._pieces(k):
            width = 1 if k == 1 else max(16, 2 ** math.ceil(math.log2(k)))
            out = torch.zeros((high, width), dtype=self.chosen.dtype, device=V.device)
            out[:m, :k] = V
            return out, 1.0
        # two pieces of V even where the tile is one: its rounding is the same for all rows, and does not average out
        half, raised = max(8, 2 ** math.ceil(math.log2(k))), V * LIFT
        out = torch.zeros((high, 2 * half), dtype=torch.float16, device=V.device)
        out[:m, :k] = raised
        out[:m, half : half + k] = raised - out[:m, :k].double()
        return out, 2.0 ** math.floor(math.log2(LIFT / max(self.chosen.bound, 1e-30)))

    def _points(self, side: str) -> Tensor:
        """The points of a side as the products want them, made once."""
        if not self.chosen.parts:
            return self._features(side)
        points = self.X if side == "left" or self.Z is None else self.Z
        parts = 0 if self.chosen.dtype == torch.float64 else self.chosen.parts
        return self._once(f"{side} rows", lambda: self.chosen.frame.by_rows(points, parts, side == "left"))

    def _features(self, side: str, dtype: Any = None) -> Tensor:
        """The points of a side for differences, made once."""
        side, dtype = "left" if self.Z is None else side, dtype or self.chosen.dtype
        points = self.X if side == "left" else self.Z
        return self._once(f"{side} features, {dtype}", lambda: self.chosen.frame.by_features(points, dtype))

    def _once(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def _strides(self, X: Tensor, Z: Tensor) -> tuple[int, int, int]:
        """From feature to feature, and how many there are."""
        return (1, 1, self.p) if self.chosen.parts else (X.stride(0), Z.stride(0), X.shape[0])

    def _parameters(self, factor: float, apart: bool = False) -> Tensor:
        """The tile's factor, the profile's two numbers, a one the compiler does not know of, and k(x, x) or NaN."""
        f, a, b = self.formula, 1.0, 0.0
        if f.geometry == "inner":
            together = self.chosen.parts and not apart
            a, b = (self.chosen.frame.gain**-2 if together else 1.0), f.parameters[-1]
        elif f.parameters:
            a = f.parameters[0]
        known = math.nan if f.geometry == "inner" or f.profile == "identity" else 1.0
        return torch.tensor([factor, a, b, 1.0, known], dtype=self.chosen.dtype, device=self.X.device)

    def _constants(self, X: Tensor, apart: bool = False) -> dict[str, Any]:
        """What the compiler is to know."""
        f, together = self.formula, self.chosen.parts and not apart
        width = X.shape[1] if together else 0
        if self.chosen.dtype == torch.float64:
            block = width if width <= BLOCK64 else BLOCK64
        else:
            block = width if width <= 2 * BLOCK else BLOCK
        return {
            "GEOMETRY": "dot" if together else f.geometry,
            "PROFILE": f.profile,
            "DEGREE": int(f.parameters[0]) if f.profile == "power" else 0,
            "KD": width,
            "BK": block,
            "UNROLL": 1 if f.geometry == "chi2" else UNROLL,
        }


def _tile(kind: str, width: int) -> tuple[int, int, int, int]:
    """The sizes measured for the next smaller number of columns."""
    sizes = kernels.TILES[kind]
    return sizes[max(columns for columns in sizes if columns <= width)]


def _some(F: Tensor, part: Any) -> Tensor:
    """Some columns of features: a view for slices without steps, else a copy."""
    if part is None:
        return F
    if isinstance(part, slice):
        F = F[:, part]
        return F if F.stride(1) == 1 else F.contiguous()
    return F[:, part].contiguous()


def _on(device: Any) -> Any:
    """Triton launches on the current device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
