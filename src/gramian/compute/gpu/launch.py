"""Whether Triton is there, and what its kernels are run on."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

_interpreting = False


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def uses_triton(x: torch.Tensor) -> bool:
    """Whether Triton's kernels serve a tensor: on a GPU, or on the CPU inside :func:`interpret_kernels`."""
    return _has_triton() and (x.is_cuda or (_interpreting and x.device.type == "cpu"))


@contextmanager
def interpret_kernels() -> Iterator[None]:
    """Run Triton's kernels on CPU tensors in its interpreter: slow, and the same arithmetic; for tests.

    ``TRITON_INTERPRET=1`` must be set before the kernels are first imported.
    """
    global _interpreting
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise RuntimeError("Set TRITON_INTERPRET=1 before the kernels are first imported.")
    before, _interpreting = _interpreting, True
    try:
        yield
    finally:
        _interpreting = before
