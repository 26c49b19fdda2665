"""Where there is no GPU, Triton's kernels run in its interpreter: slowly, with the same arithmetic."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

REQUIRED = os.environ.get("GRAMIAN_REQUIRE_TRITON") == "1"

for name in ("torch", "triton"):
    if REQUIRED and not find_spec(name):
        raise ModuleNotFoundError(f"GRAMIAN_REQUIRE_TRITON=1 and {name} is not installed")

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


@pytest.fixture
def interpreter() -> Iterator[None]:
    """Run Triton's kernels in its interpreter, or say why not."""
    if not find_spec("triton"):
        pytest.skip("triton is not installed (gramian[gpu])")
    if torch.cuda.is_available():
        pytest.skip("the kernels are compiled for the GPU here")
    from gramian.compute.gpu.launch import interpret_kernels

    with interpret_kernels():
        yield


@pytest.fixture(params=["torch", "triton", "cuda"])
def implementation(request: Any) -> Any:
    """Give the device of tensors that plain torch, Triton's interpreter or the GPU works on, or say why not."""
    if request.param == "triton":
        request.getfixturevalue("interpreter")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return torch.device("cuda" if request.param == "cuda" else "cpu")
