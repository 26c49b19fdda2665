"""A GPU that is not there: tensors in ordinary memory that behave as CUDA tensors do where that differs.

What is on the pretended GPU does not mix with what is not, NumPy cannot look at it, and it says that it is on cuda:0.
Code that passes here has no hidden transfers and forgets no device: that is all it shows, the numbers are the CPU's.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

HERE = torch.device("cpu")
GPU = torch.device("cuda", 0)
LEAVING = {"cpu", "to", "__float__", "__int__", "__bool__", "__index__", "item", "tolist"}
EITHER = {"asarray", "as_tensor", "copy_", "to", "__getitem__", "__setitem__"}  # take tensors from both sides


class GPUTensor(torch.Tensor):
    """A tensor on the pretended GPU."""

    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def record_stream(self, stream: Any) -> None:
        """Do nothing: there is one stream."""


class _Rules(TorchFunctionMode):
    """Every call of torch passes here."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(function, "__name__", ""), dict(kwargs or {})
        if function is torch.device:
            return function(*args, **kwargs)
        tensors = [x for x in _flat((args, tuple(kwargs.values()))) if isinstance(x, torch.Tensor)]
        there = any(isinstance(x, GPUTensor) for x in tensors)
        if there and name not in EITHER and any(not isinstance(x, GPUTensor) and x.ndim > 0 for x in tensors):
            raise RuntimeError(f"Expected all tensors to be on the same device, but {name} got cuda:0 and cpu.")
        args, kwargs, wanted = _without_gpu(args, kwargs)
        kwargs.pop("pin_memory", None)
        out = function(*args, **kwargs)
        if name == "__get__" and not isinstance(out, (torch.Tensor, tuple)):
            return out
        goes = GPU if wanted == GPU or (there and wanted is None and name not in {"cpu"}) else HERE
        return _placed(out, goes)


def _flat(x: Any) -> Iterator[Any]:
    if isinstance(x, (tuple, list)):
        for part in x:
            yield from _flat(part)
    else:
        yield x


def _without_gpu(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
    """The arguments with the CPU in the place of the GPU, and the device that was asked for."""
    wanted = None
    given = kwargs.get("device")
    if given is not None:
        wanted = torch.device(given)
        wanted = GPU if wanted.type == "cuda" else wanted
        kwargs["device"] = HERE if wanted == GPU else wanted
    for x in args:
        if isinstance(x, torch.device) or (isinstance(x, str) and x.partition(":")[0] in ("cpu", "cuda")):
            wanted = GPU if torch.device(x).type == "cuda" else HERE
    return tuple(HERE if isinstance(x, (torch.device, str)) and wanted else x for x in args), kwargs, wanted


def _placed(out: Any, where: torch.device) -> Any:
    if isinstance(out, torch.Tensor):
        return out.as_subclass(GPUTensor if where == GPU else torch.Tensor)
    if isinstance(out, tuple) and any(isinstance(x, torch.Tensor) for x in out):
        parts = [_placed(x, where) for x in out]
        return type(out)(parts) if hasattr(out, "n_fields") else tuple(parts)
    return out


class _Event:
    def record(self, stream: "_Stream") -> None:
        assert isinstance(stream, _Stream)

    def synchronize(self) -> None:
        """Nothing is ever behind."""


class _Stream:
    def __init__(self, *args: Any) -> None:
        pass

    def record_event(self) -> _Event:
        return _Event()

    def wait_event(self, event: _Event) -> None:
        assert isinstance(event, _Event)


@contextmanager
def pretend_gpu(free: int = 2**33) -> Iterator[torch.device]:
    """Pretend that there is one GPU, with so many bytes free."""
    fakes = {
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "get_device_name": lambda *args: "a pretended GPU",
        "mem_get_info": lambda *args: (free, 2 * free),
        "memory_reserved": lambda *args: 0,
        "memory_allocated": lambda *args: 0,
        "Event": _Event,
        "Stream": _Stream,
        "current_stream": lambda *args: _Stream(),
        "stream": lambda *args: nullcontext(),
        "synchronize": lambda *args: None,
        "device": lambda *args: nullcontext(),
    }
    # Triton's kernels need a GPU that is there: plain torch stands in for them, as where Triton is not installed
    with patch.multiple(torch.cuda, **fakes), patch("gramian.compute.gpu.launch._has_triton", lambda: False), _Rules():
        yield GPU
