"""Rows of a source as data for a mixture, on the CPU or on a device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute import dense as cpu
from gramian.compute import reference
from gramian.compute.devices import describe, gpu, is_tensor, load_torch, resolve, to_device, to_numpy, torch_dtype
from gramian.compute.mixture import Sums, expectation, rounding_size, weighted_sums
from gramian.compute.moments import Moments, block_moments
from gramian.mixture import missing
from gramian.mixture.parameters import DIAGONAL, Mixture, numbers
from gramian.mixture.statistics import Statistics
from gramian.pca.factor import survey
from gramian.sources import Block, Source, memory_budget
from gramian.sources.devices import source_to_device, source_to_numpy

__all__ = ["Card", "Host", "Rows", "located"]

Array = npt.NDArray[np.float64]

EXPANDED = 1e4  # times the rounding of float64 is what the expanded way may lose: 1e-12


class Host:
    """Loops in NumPy, always in float64."""

    def rough(self, mixture: Mixture, size: Array) -> float | None:
        """A relative error of the statistics that would make them quicker; none here."""
        return None

    def moments(self, values: Any, w: Array | None) -> Moments:
        """Weight, mean and scatter of the columns of a block."""
        X = _numpy(values)
        return block_moments(cpu, X, w, np.empty((0, X.shape[1])), full=False)

    def expectation(self, values: Any, w: Array | None, mixture: Mixture, size: Array, tolerance: float | None) -> Sums:
        """One expectation step on complete rows."""
        parts = mixture.components
        return expectation(_numpy(values), w, parts, expanded=rounding_size(parts, size) < EXPANDED)

    def incomplete(self, values: Any, w: Array | None, mixture: Mixture, size: Array, tolerance: float | None) -> Sums:
        """One expectation step on rows of which some lack cells: those that are complete take the short way."""
        X = _numpy(values)
        partial = np.isnan(X).any(axis=1)
        if w is not None:
            partial &= w > 0
            X, w, partial = X[w > 0], w[w > 0], partial[w > 0]
        whole = expectation(X[~partial], None if w is None else w[~partial], mixture.components)
        rest = missing.expectation(X[partial], None if w is None else w[partial], mixture)
        return Sums(
            whole.counts + rest.counts,
            whole.first + rest.first,
            whole.second + rest.second,
            whole.log_likelihood + rest.log_likelihood,
        )

    def assigned(
        self,
        values: Any,
        given: Array,
        w: Array | None,
        origin: Array,
        centres: Array,
        filling: Array | None,
        *,
        full: bool,
    ) -> Sums:
        """Sums of rows whose shares are given; missing cells count as ``filling``."""

        def shares(rows: slice) -> Array:
            return _shares(given[rows], len(centres), None if w is None else w[rows])

        X = _numpy(values)
        X = X if filling is None else np.where(np.isnan(X), filling, X)
        return weighted_sums(X, shares, origin, centres, full=full)

    def describe(self, tolerance: float | None) -> str:
        """Nothing to say."""
        return ""


class Card(Host):
    """Loops in torch on a device; rows with missing cells never come here.

    Parameters
    ----------
    device : torch.device
        Where the rows are.
    dtype : torch.dtype
        Of the rows: float32 and float64 are worked on as they are, all else as float64.
    """

    def __init__(self, device: Any, dtype: Any) -> None:
        torch = load_torch(device)
        self.device, self.dtype = device, dtype if dtype == torch.float32 else torch.float64
        self.like = torch.empty((0, 1), dtype=self.dtype, device=device)

    def rough(self, mixture: Mixture, size: Array) -> float | None:
        """The error of the accurate mode, where that is another way to the statistics of this mixture than double's."""
        loops, rounding = gpu().mixture, rounding_size(mixture.components, size)
        same = loops.choose_step(self.like, rounding, loops.ACCURATE) == loops.choose_step(self.like, rounding)
        return None if same else float(loops.ACCURATE)

    def moments(self, values: Any, w: Any) -> Moments:
        """Weight, mean and scatter of the columns of a block, summed on the device."""
        X = values.to(self.dtype)
        like = load_torch(self.device).empty((0, X.shape[1]), dtype=torch_dtype("float64"), device=self.device)
        seen = block_moments(reference, X, w, like, full=False)
        return Moments(seen.weight, seen.rows, to_numpy(seen.mean), to_numpy(seen.low), to_numpy(seen.scatter))

    def expectation(self, values: Any, w: Any, mixture: Mixture, size: Array, tolerance: float | None) -> Sums:
        """One expectation step, of which only the sums come to the host."""
        X, parts, loops = values.to(self.dtype), mixture.components, gpu().mixture
        expanded, tolerance = loops.choose_step(X, rounding_size(parts, size), tolerance)
        sums: Sums = loops.expectation(X, w, parts, expanded=expanded, tolerance=tolerance)
        return sums

    def assigned(
        self, values: Any, given: Array, w: Any, origin: Array, centres: Array, filling: Array | None, *, full: bool
    ) -> Sums:
        """Sums of rows whose shares are given."""
        shares = to_device(given, self.device)
        sums: Sums = gpu().mixture.weighted_sums(values.to(self.dtype), shares, w, origin, centres, full=full)
        return sums

    def describe(self, tolerance: float | None) -> str:
        """The device and the mode."""
        return f"statistics on {describe(self.device)} in {gpu().mixture.describe(self.like, tolerance)}"


def _numpy(values: Any) -> Array:
    """The values of a block as NumPy has them, in whichever precision."""
    X = np.asarray(to_numpy(values) if is_tensor(values) else values)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _shares(given: Array, k: int, w: Array | None) -> Array:
    """Responsibilities of shape (k, t) from labels or from responsibilities (t, k), times weights."""
    R = (given == np.arange(k)[:, None]).astype(np.float64) if given.ndim == 1 else np.array(given.T, dtype=np.float64)
    if w is not None:
        R *= w
    return R


TEMPORARIES = 6  # copies of a block that rows with missing cells take


def located(source: Source, device: Any) -> tuple[Source, Any]:
    """A source where it is to be worked on, and that device: the card it is on, or the one asked for; None is NumPy."""
    own = None if getattr(source.device, "type", "cpu") == "cpu" else source.device
    place = own if device is None else resolve(device, getattr(source, "values", None))
    if place is None:
        return source_to_numpy(source), None
    return (source if source.device == place else source_to_device(source, place)), place


@dataclass(frozen=True, eq=False)
class Rows:
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
        Where statistics are computed; None is NumPy.
    tolerance : float or None
        Relative error that statistics may have; None is that of float64.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Mixture, Rows
    >>> data = Rows.of(gramian.open(np.array([[0.0], [1.0], [5.0]])))
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
    def of(cls, source: Source, sample_weight: Any | None = None, device: Any = None) -> Rows:
        """Look at a source: where its columns lie, how wide they are, whether cells are missing.

        Rows that are on a card are worked on there, or else on the device given, which they are sent to. Rows with
        missing cells go to the CPU: they are worked on in small groups that lack the same cells.
        """
        w = None if sample_weight is None else numbers("sample_weight", sample_weight)
        if source.sparse:
            raise ValueError(
                "Mixtures take dense data: the responsibilities of sparse rows are dense. Use X.toarray()."
            )
        there, place = located(source, device)
        blank = cls(there, w, np.zeros(0), np.zeros(0), 0.0, False, place)
        with np.errstate(all="ignore"):
            seen = there.reduce(lambda b: blank._loops.moments(b.values, blank._part(b)), Moments.merge)
        if np.isfinite(float(np.sum(seen.scatter))):
            return replace(blank, origin=seen.mean, variances=seen.scatter / seen.weight, weight=seen.weight)
        local = source_to_numpy(there)
        cells = survey(local, w)  # names what cannot be used; otherwise NaN, if only in rows without weight
        return cls(local, w, cells.mean, cells.scatter / cells.count, cells.weight, True)

    @cached_property
    def _loops(self) -> Host | Card:
        return Host() if self.device is None else Card(self.device, self.source.dtype)

    @cached_property
    def _weights(self) -> Any:
        """The weights where the rows are."""
        none = self.sample_weight is None or self.device is None
        return self.sample_weight if none else to_device(self.sample_weight, self.device)

    @property
    def precision(self) -> str:
        """Where statistics are computed and how precisely, as a sentence; "" for NumPy in float64."""
        return self._loops.describe(self.tolerance)

    def rough(self, mixture: Mixture) -> Rows | None:
        """The same rows with statistics in a quicker mode of their device; none where it has no quicker one."""
        tolerance = self._loops.rough(mixture, self._size(mixture))
        return None if tolerance is None or self.tolerance is not None else replace(self, tolerance=tolerance)

    def expect(self, mixture: Mixture) -> Statistics:
        """One expectation step: one pass."""
        size = self._size(mixture)

        def statistic(block: Block) -> Statistics:
            w = self._part(block)
            weight = float(block.stop - block.start if w is None else w.sum())
            step = self._loops.incomplete if self.incomplete else self._loops.expectation
            sums = step(block.values, w, mixture, size, self.tolerance)
            return Statistics.of(sums, mixture.centres, mixture.origin, weight)

        rows = max(1, memory_budget() // 8 // (8 * TEMPORARIES * len(self.origin))) if self.incomplete else None
        return self.source.reduce(statistic, Statistics.merge, rows)

    def assigned(self, shares: Any, k: int, model: str, origin: Array | None = None) -> Statistics:
        """Statistics of rows that are given to components, by labels (n,) or by responsibilities (n, K): for a start.

        Missing cells count as the mean of their column.
        """
        given, start = np.asarray(shares), self.origin if origin is None else origin
        full = model not in DIAGONAL
        if given.shape[0] != self.source.shape[0]:
            raise ValueError(f"There are {given.shape[0]} labels for {self.source.shape[0]} rows.")
        rough = self._assigned(given, np.zeros((k, len(start))), start, full=False)
        found = self._assigned(given, rough.centres, start, full=full)  # squares about the means: no digits are lost
        return found.moved(found.centres)

    def _assigned(self, given: Array, centres: Array, origin: Array, *, full: bool) -> Statistics:
        filling = self.origin if self.incomplete else None

        def statistic(block: Block) -> Statistics:
            part = given[block.start : block.stop]
            sums = self._loops.assigned(block.values, part, self._part(block), origin, centres, filling, full=full)
            return Statistics.of(sums, centres, origin, float(np.sum(sums.counts)))

        return self.source.reduce(statistic, Statistics.merge)

    def _size(self, mixture: Mixture) -> Array:
        """Root mean square of the columns, measured from the mixture's origin."""
        return np.asarray(np.sqrt(self.variances + (self.origin - mixture.origin) ** 2))

    def _part(self, block: Block) -> Any:
        return None if self._weights is None else self._weights[block.start : block.stop]
