"""Rows of a source as data for a mixture: the passes over them, on the CPU or on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gramian.compute import dense as cpu
from gramian.compute import mixture as cpu_loops
from gramian.compute import reference
from gramian.compute.devices import describe, gpu, load_torch, resolve, to_device, to_numpy, torch_dtype
from gramian.compute.mixture import KeptRows, rounding_size
from gramian.compute.moments import Moments, block_moments
from gramian.inputs.observed import summarise_observed
from gramian.mixture import missing
from gramian.mixture.batch import Climb, climb_together
from gramian.mixture.models import DIAGONAL
from gramian.mixture.parameters import LEAST_VARIANCE, Mixture, SufficientStatistics, as_floats, check_variances
from gramian.sources import Block, Source, memory_budget
from gramian.sources.devices import source_to_device, source_to_numpy

Array = npt.NDArray[np.float64]

T = TypeVar("T")

EXPANDED = 1e4  # times the rounding of float64 is what the expanded way may lose: 1e-12
MOST_KEPT = 2**18  # monomials of all rows, 2 MB, that are kept from step to step
TEMPORARIES = 6  # copies of a block that rows with missing cells take


def locate(source: Source, device: Any) -> tuple[Source, Any]:
    """A source where it is to be worked on, and that device: the GPU it is on, or the one asked for; None is NumPy."""
    own = None if getattr(source.device, "type", "cpu") == "cpu" else source.device
    place = own if device is None else resolve(device, getattr(source, "values", None))
    if place is None:
        return source_to_numpy(source), None
    return (source if source.device == place else source_to_device(source, place)), place


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Rows of a source with their weights, looked at once.

    Attributes
    ----------
    source : Source
        Where the rows are.
    sample_weight : ndarray of shape (n,) or None
        How often each counts.
    origin, variances : ndarray of shape (d,)
        Means and variances of the columns, over observed cells.
    weight : float
        Σw.
    incomplete : bool
        Whether any cell is NaN.
    device : torch.device or None
        Where statistics are computed; None is NumPy, always in float64.
    tolerance : float or None
        Relative error that statistics may have; None is that of float64.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Mixture, MixtureRows
    >>> data = MixtureRows.of(gramian.open(np.array([[0.0], [1.0], [5.0]])))
    >>> data.expect(Mixture.of([0.5, 0.5], [[0.0], [5.0]], [1.0, 1.0], "E", origin=[0.0])).counts.round(3)
    array([1.999, 1.001])
    """

    source: Source
    sample_weight: Array | None
    origin: Array
    variances: Array
    weight: float
    incomplete: bool
    device: Any = None
    tolerance: float | None = None

    @classmethod
    def of(cls, source: Source, sample_weight: Any | None = None, device: Any = None) -> MixtureRows:
        """Look at a source: where its columns lie, how wide they are, whether cells are missing.

        Rows that are on a GPU are worked on there, or else on the device given, which they are sent to. Rows with
        missing cells go to the CPU: they are worked on in small groups that lack the same cells.
        """
        w = None if sample_weight is None else as_floats("sample_weight", sample_weight)
        if source.sparse:
            raise ValueError(
                "Mixtures take dense data: the responsibilities of sparse rows are dense. Use X.toarray()."
            )
        there, place = locate(source, device)
        rows = cls(there, w, np.zeros(0), np.zeros(0), 0.0, False, place)
        none: Any = np.empty((0, source.shape[1]))
        loops: ModuleType = cpu
        if place is not None:
            none, loops = load_torch(place).empty(none.shape, dtype=torch_dtype("float64"), device=place), reference

        def moments(X: Any, w: Any, block: Block) -> Moments:
            seen = block_moments(loops, X, w, none, full=False)
            return Moments(seen.weight, seen.rows, to_numpy(seen.mean), to_numpy(seen.low), to_numpy(seen.scatter))

        with np.errstate(all="ignore"):
            seen = rows._reduce(moments, Moments.merge)
        check_variances(seen.scatter, np.isfinite(seen.mean) & ~(seen.scatter <= 1.0))
        if np.isfinite(float(np.sum(seen.scatter))):
            rows = replace(rows, origin=seen.mean, variances=seen.scatter / seen.weight, weight=seen.weight)
        else:
            local = source_to_numpy(there)
            # names what cannot be used; otherwise NaN, if only in rows without weight
            cells = summarise_observed(local, w)
            rows = cls(local, w, cells.mean, cells.scatter / cells.count, cells.weight, True)
        if (rows.variances < LEAST_VARIANCE).any():  # constant columns, or squares that underflow: look again

            def ends(X: Any, w: Any, block: Block) -> Array:
                X = to_numpy(X if w is None else X[w > 0])
                return np.stack([np.fmin.reduce(X, axis=0, initial=np.inf), np.fmax.reduce(X, axis=0, initial=-np.inf)])

            low, high = rows._reduce(ends, lambda a, b: np.stack([np.fmin(a[0], b[0]), np.fmax(a[1], b[1])]))
            check_variances(rows.variances, low < high)
        return rows

    def expect(self, mixture: Mixture) -> SufficientStatistics:
        """One expectation step: one pass; sums are about the centres, or where rows are few about the origin."""
        parts = mixture.components
        kept = self._kept(not mixture.diagonal)
        if kept is not None and (mixture.origin is self.origin or np.array_equal(mixture.origin, self.origin)):
            few = kept.expectation(parts, self._deviations, EXPANDED)
            if few is not None:
                about = self._at_origin.setdefault(mixture.n_components, np.zeros(mixture.centres.shape))
                return SufficientStatistics(*few, about, mixture.origin, self.weight)
        rounding = self._rounding(mixture)

        def statistics(X: Any, w: Any, block: Block) -> SufficientStatistics:
            if self.incomplete:
                sums = missing.expectation(X, w, mixture)
            elif self.device is None:
                expanded = rounding < EXPANDED and cpu_loops.prefers_expanded(parts)
                sums = cpu_loops.expectation(X, w, parts, expanded=expanded)
            else:
                loops = gpu().mixture
                expanded, tolerance = loops.choose_step(X, rounding, self.tolerance)
                sums = loops.expectation(X, w, parts, expanded=expanded, tolerance=tolerance)
            weight = float(block.stop - block.start if w is None else w.sum())
            return SufficientStatistics(*sums, mixture.centres, mixture.origin, weight)

        rows = max(1, memory_budget() // 8 // (8 * TEMPORARIES * len(self.origin))) if self.incomplete else None
        return self._reduce(statistics, SufficientStatistics.merge, rows)

    def is_kept(self, start: Mixture) -> bool:
        """Whether there are so few rows, complete and in memory, that several mixtures like this can climb at once."""
        return (
            start.n_components > 1
            and (start.origin is self.origin or np.array_equal(start.origin, self.origin))
            and self._kept(not start.diagonal) is not None
            and bool((self.variances > 0).all())
        )

    def climb(self, starts: Sequence[Mixture], tol: float, most: int) -> list[Climb]:
        """Steps of EM from several starts at once, of rows that are kept; all measured from the origin."""
        kept = self._kept(not starts[0].diagonal)
        assert kept is not None
        return climb_together(kept, self._deviations, self.weight, starts, tol=tol, most=most)

    def assign(self, shares: Any, k: int, model: str, origin: Array | None = None) -> SufficientStatistics:
        """Statistics of rows that are given to components, by labels (n,) or by responsibilities (n, K): for a start.

        Missing cells count as the mean of their column.
        """
        given, start = np.asarray(shares), self.origin if origin is None else origin
        if given.shape[0] != self.source.shape[0]:
            raise ValueError(f"There are {given.shape[0]} labels for {self.source.shape[0]} rows.")

        def sums_about(centres: Array, *, full: bool) -> SufficientStatistics:
            def statistics(X: Any, w: Any, block: Block) -> SufficientStatistics:
                part = given[block.start : block.stop]
                if self.device is None:
                    X = np.where(np.isnan(X), self.origin, X) if self.incomplete else X

                    def shares_of(rows: slice) -> Array:
                        R = part[rows] == np.arange(k)[:, None] if part.ndim == 1 else part[rows].T
                        return np.asarray(R * (1.0 if w is None else w[rows]))

                    labels = part if part.ndim == 1 else None
                    sums = cpu_loops.weighted_sums(X, shares_of, start, centres, full=full, labels=labels)
                else:
                    sums = gpu().mixture.weighted_sums(X, to_device(part, self.device), w, start, centres, full=full)
                return SufficientStatistics(*sums, centres, start, float(np.sum(sums.counts)))

            return self._reduce(statistics, SufficientStatistics.merge)

        rough = sums_about(np.zeros((k, len(start))), full=False)
        sums = sums_about(rough.centres, full=model not in DIAGONAL)  # squares about the means: no digits are lost
        return sums.shift(sums.centres)

    def describe_precision(self) -> str:
        """Where statistics are computed and how precisely, as a sentence; "" for NumPy in float64."""
        if self.device is None:
            return ""
        return f"statistics on {describe(self.device)} in {gpu().mixture.describe(self._no_rows, self.tolerance)}"

    def lower_precision(self, mixture: Mixture) -> MixtureRows | None:
        """The same rows with statistics in a quicker mode of their device; none where it has no quicker one."""
        if self.device is None or self.tolerance is not None:
            return None
        loops, rounding = gpu().mixture, self._rounding(mixture)
        accurate = loops.choose_step(self._no_rows, rounding, loops.ACCURATE)
        same = accurate == loops.choose_step(self._no_rows, rounding)
        return None if same else replace(self, tolerance=float(loops.ACCURATE))

    def _reduce(self, work: Callable[[Any, Any, Block], T], merge: Callable[[T, T], T], rows: int | None = None) -> T:
        """Results of ``work(X, w, block)`` for every block, merged: X in float32 or float64, where it is worked on."""

        def statistic(block: Block) -> T:
            w = None if self._weights is None else self._weights[block.start : block.stop]
            if self.device is not None:
                return work(block.values.to(self._no_rows.dtype), w, block)
            X = to_numpy(block.values)
            return work(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64), w, block)

        return self.source.reduce(statistic, merge, rows)

    @cached_property
    def _deviations(self) -> Array:
        return np.sqrt(self.variances)

    @cached_property
    def _at_origin(self) -> dict[int, Array]:
        """The origin for each of so many components: one and the same array, so that sums about it are added as is."""
        return {}

    @cached_property
    def _kept_rows(self) -> dict[bool, KeptRows]:
        return {}

    def _kept(self, full: bool) -> KeptRows | None:
        """The rows with their monomials, where they are complete, on the CPU, in memory and few."""
        n, d = self.source.shape
        size = n * (1 + d + (d * (d + 1) // 2 if full else d))
        if self.incomplete or self.device is not None or size > MOST_KEPT:
            return None
        if full not in self._kept_rows:
            X = np.concatenate([np.array(to_numpy(block.values, float)) for block in self.source.blocks()])
            self._kept_rows[full] = KeptRows(X, self.sample_weight, self.origin, full=full)
        return self._kept_rows[full]

    def _rounding(self, mixture: Mixture) -> float:
        """What the expanded way multiplies rounding by; columns are measured from the mixture's origin."""
        return rounding_size(mixture.components, np.sqrt(self.variances + (self.origin - mixture.origin) ** 2))

    @cached_property
    def _weights(self) -> Any:
        """The weights where the rows are."""
        if self.sample_weight is None or self.device is None:
            return self.sample_weight
        return to_device(self.sample_weight, self.device)

    @cached_property
    def _no_rows(self) -> Any:
        """A tensor without rows on the device, of the precision that rows are worked on in: their own or float64."""
        torch = load_torch(self.device)
        dtype = torch.float32 if self.source.dtype == torch.float32 else torch.float64
        return torch.empty((0, 1), dtype=dtype, device=self.device)
