"""Where there is no card, Triton's kernels run in its interpreter: slowly, with the same arithmetic."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("torch"):
    import torch

    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # before any kernel is imported


def count_with_any_numpy() -> None:
    """Make the interpreter's numbers bounds of loops: it converts arrays of one element, which NumPy 2.4 refuses."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched


if find_spec("torch") and find_spec("triton"):
    count_with_any_numpy()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors are worked on faster by one thread than by several that wait for each other."""
    if not find_spec("torch"):
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["torch", "triton", "cuda"])
def implementation(request: Any) -> Iterator[Any]:
    """Give the device of tensors that plain torch, Triton's interpreter or the card works on, or say why not."""
    card = torch.cuda.is_available()
    if request.param == "cuda" and not card:
        pytest.skip("there is no card")
    if request.param == "triton" and not find_spec("triton"):
        pytest.skip("triton is not installed (gramian[gpu])")
    if request.param == "triton" and card:
        pytest.skip("the kernels are compiled for the card here")
    from gramian.compute.gpu._launch import interpreted

    with interpreted() if request.param == "triton" else nullcontext():
        yield torch.device("cuda" if request.param == "cuda" else "cpu")
