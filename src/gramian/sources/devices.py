"""Data on a graphics card, as torch tensors."""

from __future__ import annotations

import numpy as np

from gramian.compute.devices import load_torch
from gramian.sources.arrays import TensorSource
from gramian.sources.base import Source

__all__ = ["to_device"]


def to_device(source: Source, device: str) -> TensorSource:
    """Return all rows of a dense source as one tensor on a device.

    Parameters
    ----------
    source : Source
        What is read, whole.
    device : str
        "cuda", "cuda:1", "mps", …; "cpu" is a tensor of torch's own on the CPU.

    Returns
    -------
    TensorSource
        The same numbers, in the same precision where the device has it.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.devices import to_device
    >>> to_device(gramian.open(np.ones((3, 2))), "cpu")  # doctest: +SKIP
    TensorSource(3 x 2, torch.float64)
    """
    torch = load_torch(device)
    if source.sparse:
        raise ValueError(f"sparse data are fitted on the CPU; device {device!r} takes dense ones.")
    narrow = source.dtype == np.float32 or device.startswith("mps")
    try:
        out = torch.empty(source.shape, dtype=torch.float32 if narrow else torch.float64, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device!r} cannot be used: {str(error).splitlines()[0]}") from error
    for block in source.blocks():
        values = np.array(block.values, dtype=np.float32 if narrow else np.float64)
        out[block.start : block.stop] = torch.from_numpy(values).to(device)
    return TensorSource(out, source.feature_names)
