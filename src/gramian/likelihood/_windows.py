"""Data seen as other data were."""

from __future__ import annotations

from typing import Any

from gramian.likelihood.sample import Sample, as_sample

__all__ = ["seen_alike"]


def seen_alike(data: Any, seen: Sample) -> Sample:
    """Return data as records, seen through the window of another sample unless they bring their own.

    Parameters
    ----------
    data : array-like or Sample
        What was observed.
    seen : Sample
        Whose window it is.

    Returns
    -------
    Sample
        The records.
    """
    sample = as_sample(data)
    if not seen.truncated or sample.truncated:
        return sample
    if len(seen.left) > 1 or len(seen.right) > 1:
        raise ValueError(
            "The fit has truncation limits for each record, which other data need too: as_sample(x, truncated=...)."
        )
    return as_sample(sample, truncated=(seen.left[0], seen.right[0]))
