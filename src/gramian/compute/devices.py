"""Devices: which there are, moving arrays to them and back, their free memory, and the loops that serve an array."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from types import ModuleType
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from array_api_compat import is_array_api_obj, is_numpy_namespace, is_torch_namespace

from gramian.compute import dense as cpu
from gramian.compute import reference
from gramian.compute.memory import available_memory, gibibytes, working_memory

Device = Any  # torch.device, or None for NumPy on the CPU
Array = npt.NDArray[Any]

KNOWN = ("cpu", "cuda")  # kinds of devices: others, as Apple's, have no float64 or no Triton


def load_torch(device: Any = "cuda") -> Any:
    """Return torch, or say which extra to install."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'device {str(device)!r} needs torch: pip install "gramian[gpu]".') from error
    return torch


def gpu() -> ModuleType:
    """Return the hot loops for torch tensors, which load torch: so they are imported when asked for, and not before."""
    load_torch()
    return importlib.import_module("gramian.compute.gpu")


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor of torch, wherever it lives; torch is not loaded to find out."""
    return type(x) is not np.ndarray and any(
        cls.__name__ == "Tensor" and cls.__module__ == "torch" for cls in type(x).__mro__
    )


def resolve(device: Any, like: Any = None) -> Device:
    """Return the device to work on: a ``torch.device``, or None for NumPy on the CPU.

    Parameters
    ----------
    device : None, "cpu", "auto", "cuda", "cuda:1", … or torch.device
        None is where the data are: the GPU of a CUDA tensor, otherwise the CPU. "auto" is the GPU of the data or the
        first GPU there is, otherwise the CPU. "cpu" is NumPy; ``torch.device("cpu")`` is torch on the CPU, which
        runs the loops of the GPU without one.
    like : array, optional
        The data.

    Examples
    --------
    >>> from gramian.compute.devices import resolve
    >>> resolve("cpu") is None, resolve(None) is None
    (True, True)
    """
    own = like.device if is_tensor(like) and like.device.type != "cpu" else None
    if own is not None and (device is None or (isinstance(device, str) and device == "auto")):
        return _check_device(own)
    if device is None or (isinstance(device, str) and device == "cpu"):
        return None
    if isinstance(device, str) and device == "auto":
        try:
            torch = load_torch()
        except ImportError:
            return None
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None
    return _check_device(device)


def _check_device(device: Any) -> Device:
    """The device, if it is one that we know and this machine has it."""
    torch, found = load_torch(device), None
    try:
        found = torch.device(device) if isinstance(device, (str, torch.device)) else None
        reason = _why_not(torch, found)
        if not reason:
            torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        known = str(device).partition(":")[0] in KNOWN
        reason = str(error).splitlines()[0].rstrip(".") + "." if known else _why_not(torch, None)
    if reason:
        raise ValueError(
            f"device {str(device)!r} cannot be used: {reason} Use 'cpu', or 'auto' for a GPU if there is one."
        )
    return torch.device("cuda", torch.cuda.current_device()) if found == torch.device("cuda") else found


def _why_not(torch: Any, found: Device) -> str:
    """Why a device is not for us; nothing where it is."""
    if found is None or found.type not in KNOWN:
        return "devices are None, 'auto', 'cpu', 'cuda', 'cuda:0', 'cuda:1', … and torch.device of these."
    if found.type == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        without = "finds no GPU" if built else "was built without CUDA, and one with it is to be installed"
        return f"torch {torch.__version__} {without}."
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        return "there is one GPU, 'cuda:0'." if last == 0 else f"the last GPU is 'cuda:{last}'."
    return ""


def describe(device: Device) -> str:
    """Name a device as a certificate does.

    Examples
    --------
    >>> from gramian.compute.devices import describe
    >>> describe(None)
    'the CPU'
    """
    if device is None:
        return "the CPU"
    if device.type != "cuda":
        return f"torch on {device}"
    return f"{device} ({load_torch().cuda.get_device_name(device)})"


ALWAYS_TRIED = 2**24  # bytes that a machine on which Python runs has to spare


def free_bytes(device: Device) -> int:
    """Bytes that can be had on a device now; what torch keeps for its own next allocation counts as free."""
    if device is None or device.type != "cuda":
        return available_memory()
    torch = load_torch()
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free + kept)


def vector_bytes(device: Device) -> int:
    """Bytes that a solver may keep its vectors in: a quarter of ``working_memory``, or an eighth of a GPU."""
    least = int(working_memory() * 2**18)
    return max(least, free_bytes(device) // 8) if getattr(device, "type", "") == "cuda" else least


TextParts = tuple[str | tuple[str, Any], ...]


class TooLargeError(MemoryError):
    """Something that does not fit in memory: what it is, and which arguments would help.

    Parameters
    ----------
    *parts : str or (str, value)
        The text. An argument stands in it by its name and the value that is meant, or None, so that a command line can
        name its options instead.

    Examples
    --------
    >>> from gramian.compute.devices import TooLargeError
    >>> error = TooLargeError("The matrix is large. Use ", ("svd_solver", "krylov"), ".")
    >>> print(error)
    The matrix is large. Use svd_solver='krylov'.
    >>> error.text(lambda name, value: f"--{name} {value}")
    'The matrix is large. Use --svd_solver krylov.'
    """

    def __init__(self, *parts: str | tuple[str, Any]) -> None:
        super().__init__(*parts)
        self.parts = parts

    def text(self, spell: Callable[[str, Any], str] | None = None) -> str:
        """The text, its arguments spelled by ``spell``."""
        spell = spell or (lambda name, value: name if value is None else f"{name}={value!r}")
        return "".join(part if isinstance(part, str) else spell(*part) for part in self.parts)

    def __str__(self) -> str:
        return self.text()


def refuse_beyond_device(nbytes: float, device: Device, what: str | TextParts, remedy: str | TextParts) -> None:
    """Raise an error that says what would take how much of a device, or of this machine, unless it can be had.

    What and the remedy are text, or parts of it in which arguments stand as a name and a value. On the CPU what takes
    less than ``ALWAYS_TRIED`` is not asked for: reading the system's tables takes as long as a small fit.
    """
    if nbytes <= ALWAYS_TRIED and (device is None or device.type != "cuda"):
        return
    free = free_bytes(device)
    if nbytes > free:
        left = f", and {gibibytes(free)} are available"
        if device is not None:
            left = f" on {describe(device)}, where {gibibytes(free)} are free"
        before, after = ((text,) if isinstance(text, str) else text for text in (what, remedy))
        raise TooLargeError(*before, f" would take {gibibytes(nbytes)}{left}. ", *after)


def torch_dtype(dtype: Any) -> Any:
    """The dtype of torch for one of NumPy, or for its name; one of torch's own stays."""
    torch = load_torch()
    return dtype if isinstance(dtype, torch.dtype) else getattr(torch, np.dtype(dtype).name)


def to_numpy(x: Any, dtype: Any = None) -> Array:
    """Return numbers of any library and device as a NumPy array, in ``dtype`` if given; None stays None.

    Examples
    --------
    >>> from gramian.compute.devices import to_numpy
    >>> to_numpy([1, 2], float)
    array([1., 2.])
    """
    if x is None:
        return None  # type: ignore[return-value]
    if is_tensor(x):
        x = x.detach().cpu()
        x = (x.float() if x.dtype == load_torch().bfloat16 else x).numpy()  # which NumPy does not have
    elif sp.issparse(x):
        matrix: Any = x
        x = matrix.toarray()
    elif not isinstance(x, np.ndarray) and is_array_api_obj(x):
        x = array_api_compat.to_device(x, "cpu")
    return np.asarray(x, dtype=dtype)


def to_device(x: Any, device: Device, dtype: Any = None) -> Any:
    """Return numbers as a tensor on a device, copied only where they are not there already; NumPy's for None."""
    if device is None:
        return to_numpy(x, dtype)
    torch = load_torch(device)
    if not is_tensor(x):
        x = np.asarray(x)
        x = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
        x = x if x.flags.writeable and min(x.strides, default=0) >= 0 else x.copy()
        x = torch.from_numpy(x)
    return x.to(device=device, dtype=None if dtype is None else torch_dtype(dtype))


def device_of(x: Any) -> Device:
    """Return the device of a tensor, or of the tensors of a source or an operator; None for all else, which is NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.devices import device_of
    >>> device_of(np.ones(2)) is None
    True
    """
    if is_tensor(x):
        return x.device
    device = getattr(x, "device", None)
    if type(device).__module__ == "torch":
        return device
    values: Any = getattr(x, "values", None)
    return values.device if is_tensor(values) else None


def like(given: Any, result: Any, dtype: Any = None) -> Any:
    """Return ``result`` where ``given`` lives: as NumPy's arrays, or as tensors on the device of ``given``.

    Parameters
    ----------
    given : array, tensor, Source or Operator
        What lives there; anything else lives in NumPy.
    result : Any
        An array or a tensor; tuples, lists and dataclasses of them. What is no number stays as it is.
    dtype : dtype, optional
        For a ``result`` that is one array: its dtype.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.compute.devices import like
    >>> like(torch.ones(1), (np.ones(2), "two"))
    (tensor([1., 1.], dtype=torch.float64), 'two')
    """
    device, xp = device_of(given), getattr(given, "xp", np)
    if device is None and isinstance(xp, ModuleType) and not is_numpy_namespace(xp):  # another library
        return result if result is None else xp.asarray(result, dtype=dtype)
    if dtype is not None or is_tensor(result):
        return to_numpy(result, dtype) if device is None else to_device(result, device, dtype)
    if isinstance(result, np.ndarray):
        return result if device is None or result.dtype.kind not in "fiub" else to_device(result, device)
    if type(result) in (tuple, list):
        parts = [like(given, part) for part in result]
        return result if all(a is b for a, b in zip(parts, result, strict=True)) else type(result)(parts)
    if is_dataclass(result) and not isinstance(result, type):
        moved = {f.name: like(given, getattr(result, f.name)) for f in fields(result) if f.init}
        moved = {name: part for name, part in moved.items() if part is not getattr(result, name)}
        return replace(result, **moved) if moved else result
    return result


def to_array(x: Any) -> Any:
    """Return an array or a tensor as it is, anything else as NumPy has it."""
    return x if is_array_api_obj(x) else np.asarray(x)


def is_numpy(x: Any) -> bool:
    """Whether an array is NumPy's."""
    return isinstance(x, np.ndarray) or is_numpy_namespace(array_api_compat.array_namespace(x))


def device_keyword(x: Any) -> dict[str, Any]:
    """Return the keyword that creates a new array on the device of x; NumPy needs none."""
    return {} if isinstance(x, np.ndarray) else {"device": x.device}


def dense_loops(xp: Any) -> ModuleType:
    """Return the loops for dense arrays of a namespace: tiles in cache for NumPy, chunks on its device for torch.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.devices import dense_loops
    >>> dense_loops(np).__name__
    'gramian.compute.dense'
    """
    if is_numpy_namespace(xp):
        return cpu
    if is_torch_namespace(xp):
        dense: ModuleType = gpu().dense
        return dense
    return reference
