"""Fits that survive: the result of every pass is kept in a folder, and a fit that was ended takes them from there.

Between two passes a fit does nothing but small, deterministic work. It is therefore begun again from its first line,
and each pass that was made already is read instead of made: basis, directions, generators and all other state come out
as they were, to the last bit, whatever the method.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shlex
import struct
import types
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy
import scipy.sparse as sp

from gramian.compute.devices import is_tensor, to_device, to_numpy
from gramian.compute.executor import saved_as
from gramian.sources.writing import claim

T = TypeVar("T")

NAMES = "[0-9]" * 8 + ".npz"  # of the records of passes, in their order
NEXT = ".next"  # what is being written
PLAIN = (str, int, float, bool, complex, bytes, type(None), np.generic)


class CheckpointError(ValueError):
    """A folder holds the passes of another fit, or what is no record of a pass."""


@contextmanager
def checkpoint(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Keep the result of every pass of the fits in this block, so that they can be resumed where they were ended.

    After each pass its result is written to a temporary file, synced and renamed. Run the same lines again after the
    process was ended, by whatever: passes that were made are read from the folder, the others are made, and the model
    has the bits of one that was never interrupted. When the block ends well, its records are removed; when an exception
    leaves it, they stay. Data are read once more at the beginning, to know them again.

    Parameters
    ----------
    folder : path-like
        Where to keep them; made where it is missing. One run at a time can use it.

    Raises
    ------
    CheckpointError
        Where the folder holds passes over other data, or with other parameters or versions.

    Examples
    --------
    >>> import numpy as np, os, tempfile, gramian
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> folder = tempfile.mkdtemp()
    >>> try:
    ...     with gramian.checkpoint(folder):
    ...         model = gramian.PCA(2).fit(X)
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(len(os.listdir(folder)) > 1)
    True
    >>> with gramian.checkpoint(folder):
    ...     resumed = gramian.PCA(2).fit(X)
    >>> bool(np.array_equal(model.components_, resumed.components_))
    True
    """
    home = Path(os.path.abspath(folder))
    if home.exists() and not home.is_dir():
        raise NotADirectoryError(f"checkpoint={str(folder)!r} is a file: give a folder to keep passes in.")
    home.mkdir(parents=True, exist_ok=True)
    with claim(home):
        journal = Journal(home)
        token = _journal.set(journal)
        try:
            with saved_as(journal.describe):
                yield
        finally:
            _journal.reset(token)
        for record in sorted(home.glob(NAMES), reverse=True):  # the last first: what is left is still a beginning
            record.unlink()
        (home / NEXT).unlink(missing_ok=True)
    with suppress(OSError):  # there are other files
        home.rmdir()


def is_recorded() -> bool:
    """Whether passes are kept in a folder now: :func:`remember` of others is to do them."""
    return _journal.get() is not None


def remember(step: str, inputs: Any, work: Callable[[], T]) -> T:
    """Return ``work()``, or what it returned when it was done for the same inputs before; passes inside are not kept.

    Parameters
    ----------
    step : str
        What is done, for errors.
    inputs : object
        All that the result depends on besides the data of the fit: arrays, numbers, functions with what they enclose.
    work : callable
        Does it.

    Examples
    --------
    >>> from gramian.sources.checkpoint import remember
    >>> remember("a sum", [1, 2], lambda: 3)
    3
    """
    journal = _journal.get()
    if journal is None or not journal.begun:  # of data that nobody has identified nothing is kept
        return work()
    return journal.take(lambda: {"step": step, "inputs": digest(inputs)}, work)


def begin_checkpoint(estimator: Any, source: Any, step: str = "fit") -> None:
    """Let a fit go on only with the estimator, the parameters, the data and the versions that it was begun with.

    So too a ``step`` that is no fit: what is made of other data with a fitted model makes passes as well.
    """
    journal = _journal.get()
    if journal is None:
        return

    def identify() -> dict[str, str]:
        asked = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {"model": estimator}
        told = {name: value for name, value in asked.items() if name != "verbose"}  # who hears of it changes nothing
        given = {f"parameter {name}": digest(value) for name, value in told.items()}
        version = importlib.import_module("gramian").__version__
        facts = {"step": f"{step} of {type(estimator).__name__}", "data": digest_rows(source), **given}
        return facts | {"version of Gramian, NumPy or SciPy": f"{version} {np.__version__} {scipy.__version__}"}

    journal.begun = True
    journal.take(identify, lambda: None)


class Journal:
    """The passes of a fit in a folder, one file each, in their order.

    Parameters
    ----------
    folder : Path
        Theirs alone.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.count, self.begun = folder, 0, False

    def describe(self) -> str:
        """Say what is kept, and how to go on from it."""
        kept = f"{self.count or 'No'} {'step' if self.count < 2 else 'steps'} of the fit"
        return (
            f"{kept} {'is' if self.count < 2 else 'are'} saved in {self.folder}. To go on from there, run the same "
            f"lines in gramian.checkpoint({str(self.folder)!r}), or with --checkpoint {shlex.quote(str(self.folder))}."
        )

    def take(self, identify: Callable[[], dict[str, str]], work: Callable[[], T]) -> T:
        """Return the next result: from its record, which must be of the same step, or by work."""
        path = self.folder / f"{self.count:08d}.npz"
        token = _journal.set(None)
        try:
            asked = identify()
            if not path.exists():
                result = work()
                arrays: list[Any] = []
                try:
                    value = encode(result, arrays)
                except TypeError:  # not of numbers alone: it is to be made again
                    value, arrays = {"again": True}, []
                whole = digest([json.dumps([asked, value]), *arrays])
                self._write(path, json.dumps({"asked": asked, "value": value, "digest": whole}), arrays)
            found, value, arrays = _read(path)
            self._compare(path, asked, found)
            self.count += 1
            # what was just written is read too, so that an uninterrupted fit goes on from the same memory layout
            if "again" in value:
                return work()
            with _refuse_damage(path):
                made: T = decode(value, arrays)
            return made
        finally:
            _journal.reset(token)

    def _write(self, path: Path, text: str, arrays: list[Any]) -> None:
        part = self.folder / NEXT
        with part.open("wb") as file:
            np.savez(
                file, text=np.frombuffer(text.encode(), dtype=np.uint8), **{f"a{i}": a for i, a in enumerate(arrays)}
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        with suppress(OSError):  # folders cannot be opened everywhere
            handle = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _compare(self, path: Path, asked: dict[str, str], found: dict[str, str]) -> None:
        if asked == found:
            return
        if asked["step"] == found["step"] and "inputs" in asked:
            what = (
                "pass was made with other numbers: other targets, weights or options, or another machine's arithmetic"
            )
        elif asked["step"] != found["step"]:
            what = f"step was the {found['step']}, and now it is the {asked['step']}"
        else:
            names = sorted(name for name in asked.keys() | found.keys() if asked.get(name) != found.get(name))
            what = f"fit had other {', '.join(name.removeprefix('parameter ') for name in names)}"
        raise CheckpointError(
            f"{self.folder} holds the passes of another fit ({path.name}): the {what}. Resume with the data and "
            "parameters that it was begun with, or remove the folder to begin anew."
        )


_journal: ContextVar[Journal | None] = ContextVar("gramian_journal", default=None)


DAMAGES = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    OSError,
    MemoryError,
    RuntimeError,
    ImportError,
)


@contextmanager
def _refuse_damage(path: Path) -> Iterator[None]:
    """What zipfile, NumPy and json say of a damaged file, as one error that names it."""
    try:
        yield
    except CheckpointError:
        raise
    except (*DAMAGES, SyntaxError, struct.error, zipfile.BadZipFile, zlib.error) as error:
        raise CheckpointError(
            f"{path} is damaged, or no record of a pass: {error}. Remove it and those after it."
        ) from error


def _read(path: Path) -> tuple[dict[str, str], Any, list[Any]]:
    with _refuse_damage(path), path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        record = json.loads(file["text"].tobytes())
        asked, value, arrays = record["asked"], record["value"], [file[f"a{i}"] for i in range(len(file.files) - 1)]
        # the sums of a zip file are of what is stored: a shape or type that was damaged reads less of it, unnoticed
        if digest([json.dumps([asked, value]), *arrays]) != record["digest"]:
            raise ValueError("its numbers are not those that were written")
        return asked, value, arrays


def encode(value: Any, arrays: list[Any]) -> Any:
    """Return a value as JSON, its arrays apart; TypeError where it has other things than numbers in it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources.checkpoint import decode, encode
    >>> arrays = []
    >>> decode(encode((1.5, [np.arange(2), None]), arrays), arrays)
    (1.5, [array([0, 1]), None])
    """
    if value is None or type(value) in (str, bool, int):
        return {"plain": value}
    if type(value) is float:
        return {"float": value.hex()}
    if is_tensor(value):
        arrays.append(to_numpy(value))
        return {"tensor": len(arrays) - 1, "device": str(value.device)}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        arrays.append(np.asarray(value))
        return {"array": len(arrays) - 1, "scalar": isinstance(value, np.generic)}
    if type(value) in (tuple, list):
        return {type(value).__name__: [encode(item, arrays) for item in value]}
    named = type(value).__module__.startswith("gramian.")
    if named and isinstance(value, tuple):
        parts = [encode(item, arrays) for item in value]
    elif named and is_dataclass(value):
        parts = [encode(getattr(value, field.name), arrays) for field in fields(value)]
    else:
        raise TypeError(type(value).__name__)
    return {"class": [type(value).__module__, type(value).__qualname__], "parts": parts}


def decode(value: Any, arrays: list[Any]) -> Any:
    """Return what :func:`encode` was given; of classes, only data classes and named tuples of Gramian are made."""
    if "plain" in value:
        return value["plain"]
    if "float" in value:
        return float.fromhex(value["float"])
    if "tensor" in value:
        device = importlib.import_module("torch").device(value["device"])
        return to_device(arrays[value["tensor"]], device)
    if "array" in value:
        array = arrays[value["array"]]
        return array[()] if value["scalar"] else array
    for kind in (tuple, list):
        if kind.__name__ in value:
            return kind(decode(item, arrays) for item in value[kind.__name__])
    module, name = value["class"]
    made = getattr(importlib.import_module(module), name) if module.startswith("gramian.") else None
    parts = [decode(part, arrays) for part in value["parts"]]
    if isinstance(made, type) and issubclass(made, tuple):
        return made(*parts)
    if not isinstance(made, type) or not is_dataclass(made):
        raise CheckpointError(f"{module}.{name} is no record of a pass.")
    new = object.__new__(made)
    for field, part in zip(fields(made), parts, strict=True):
        object.__setattr__(new, field.name, part)
    return new


def digest(value: Any) -> str:
    """Return a fingerprint of numbers, functions with what they enclose, and objects; of data, of their shape alone.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources.checkpoint import digest
    >>> digest([1, np.ones(2)]) == digest([1, np.ones(2)]), digest(1) == digest(1.0)
    (True, False)
    """
    total = hashlib.blake2b(digest_size=16)
    _update(total, value, frozenset())
    return total.hexdigest()


def _update(total: Any, value: Any, above: frozenset[int]) -> None:
    total.update(f"{type(value).__name__}\0".encode())
    if id(value) in above or len(above) > 20:
        return
    inside = above | {id(value)}
    if isinstance(value, PLAIN):
        total.update(repr(value).encode() + b"\0")
    elif hasattr(value, "row_spans") or hasattr(value, "matmat"):  # data are known by the fit that they belong to
        total.update(repr(value.shape).encode())
    elif is_tensor(value) or isinstance(value, np.ndarray):
        array = to_numpy(value)
        total.update(f"{array.dtype} {array.shape}".encode())
        if array.dtype.hasobject:
            _update(total, array.tolist(), inside)
        else:
            total.update(np.ascontiguousarray(array).data)
    elif sp.issparse(value):
        csr: Any = sp.csr_array(value)  # type: ignore[call-overload]
        _update(total, (csr.shape, csr.data, csr.indices, csr.indptr), inside)
    elif isinstance(value, tuple | list):
        for item in value:
            _update(total, item, inside)
    elif isinstance(value, dict):
        for key, item in value.items():
            _update(total, (key, item), inside)
    elif isinstance(value, set | frozenset):
        _update(total, sorted(map(digest, value)), inside)
    elif isinstance(value, partial):
        _update(total, (value.func, value.args, value.keywords), inside)
    elif isinstance(value, np.random.Generator):
        _update(total, value.bit_generator.state, inside)
    elif isinstance(value, np.random.RandomState):
        _update(total, value.get_state(legacy=False), inside)
    elif isinstance(value, types.FunctionType):
        enclosed = []
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # not yet known
                enclosed.append(cell.cell_contents)
        code = value.__code__
        told = [item for item in code.co_consts if not isinstance(item, types.CodeType)]
        nested = [item.co_code for item in code.co_consts if isinstance(item, types.CodeType)]
        parts = (code.co_code, code.co_names, told, nested, enclosed, value.__defaults__, value.__kwdefaults__)
        _update(total, (value.__module__, value.__qualname__, *parts), inside)
    elif isinstance(value, types.MethodType):
        _update(total, (value.__func__, value.__self__), inside)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _update(total, (field.name, getattr(value, field.name, None)), inside)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _update(total, value.get_params(deep=False), inside)
    elif isinstance(value, type | types.BuiltinFunctionType | types.ModuleType | np.ufunc | np.dtype):
        total.update(f"{getattr(value, '__module__', '')} {getattr(value, '__name__', value)}".encode())
    elif hasattr(value, "__dict__"):
        _update(total, vars(value), inside)
    else:  # nothing is known of it: a resumed fit must not take it for the same
        total.update(os.urandom(16))


def digest_rows(source: Any) -> str:
    """Return a fingerprint of all rows: one pass; of packed genotypes, of their bytes and which of them count."""
    total = hashlib.blake2b(digest_size=16)
    _update(total, (source.shape, source.feature_names), frozenset())
    if hasattr(source, "packed"):
        _update(total, (source.sample_index, source.snp_index), frozenset())
        for start, stop in source.spans(4096):
            _update(total, source.packed(start, stop), frozenset())
            source.give_back()
        return total.hexdigest()
    for block in source.blocks():
        _update(total, (block.start, block.values), frozenset())
    return total.hexdigest()
