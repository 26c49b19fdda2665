"""The hot loops of mixtures as rows call them: NumPy's on the CPU, torch's on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute import cpu, reference
from gramian.compute.devices import describe, gpu, host, is_tensor, load_torch, put, torch_dtype
from gramian.compute.mixture import Sums, expectation, rounding_size, weighted_sums
from gramian.compute.moments import Moments, block_moments
from gramian.likelihood.mixture import missing
from gramian.likelihood.mixture.parameters import Mixture

__all__ = ["Card", "Host"]

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
        same = loops.way_of(self.like, rounding, loops.ACCURATE) == loops.way_of(self.like, rounding)
        return None if same else float(loops.ACCURATE)

    def moments(self, values: Any, w: Any) -> Moments:
        """Weight, mean and scatter of the columns of a block, summed on the device."""
        X = values.to(self.dtype)
        like = load_torch(self.device).empty((0, X.shape[1]), dtype=torch_dtype("float64"), device=self.device)
        seen = block_moments(reference, X, w, like, full=False)
        return Moments(seen.weight, seen.rows, host(seen.mean), host(seen.low), host(seen.scatter))

    def expectation(self, values: Any, w: Any, mixture: Mixture, size: Array, tolerance: float | None) -> Sums:
        """One expectation step, of which only the sums come to the host."""
        X, parts, loops = values.to(self.dtype), mixture.components, gpu().mixture
        expanded, tolerance = loops.way_of(X, rounding_size(parts, size), tolerance)
        sums: Sums = loops.expectation(X, w, parts, expanded=expanded, tolerance=tolerance)
        return sums

    def assigned(
        self, values: Any, given: Array, w: Any, origin: Array, centres: Array, filling: Array | None, *, full: bool
    ) -> Sums:
        """Sums of rows whose shares are given."""
        shares = put(given, self.device)
        sums: Sums = gpu().mixture.weighted_sums(values.to(self.dtype), shares, w, origin, centres, full=full)
        return sums

    def describe(self, tolerance: float | None) -> str:
        """The device and the mode."""
        return f"statistics on {describe(self.device)} in {gpu().mixture.describe(self.like, tolerance)}"


def _numpy(values: Any) -> Array:
    """The values of a block as NumPy has them, in whichever precision."""
    X = np.asarray(host(values) if is_tensor(values) else values)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _shares(given: Array, k: int, w: Array | None) -> Array:
    """Responsibilities of shape (k, t) from labels or from responsibilities (t, k), times weights."""
    R = (given == np.arange(k)[:, None]).astype(np.float64) if given.ndim == 1 else np.array(given.T, dtype=np.float64)
    if w is not None:
        R *= w
    return R
