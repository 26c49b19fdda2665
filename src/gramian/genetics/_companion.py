"""What stands beside the tables of a genotype PCA: what their numbers mean, and the exact numbers."""

from __future__ import annotations

import json
import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics._fitted import FittedGenotypePCA, plink_eigenvalues, score_lengths, smartpca_eigenvalues
from gramian.genetics._text_files import text

__all__ = ["FORMAT", "read_arrays", "write_arrays", "write_companion"]

FORMAT = "gramian genotype PCA 1"
SEPARATOR = "\n"  # of strings kept as one: no field of a text file can hold it


def write_companion(path: Path, model: FittedGenotypePCA, files: dict[str, str]) -> None:
    """Write the scale of every number, the counts, the certificate and the versions as strict JSON."""
    content = {
        "format": FORMAT,
        "samples": len(model.samples_),
        "snps": len(model.snps_),
        "dropped": model.dropped_,
        "components": len(model.components_),
        "scaling": model.scaling,
        "missing": model.missing,
        "total_variance": model.total_variance_,
        "eigenvalue_scale": model.eigenvalue_scale_,
        "eigenvalues": model.eigenvalues_,
        "eigenvalues_plink": plink_eigenvalues(model),
        "eigenvalues_smartpca": smartpca_eigenvalues(model)[: len(model.components_)],
        "singular_values": model.singular_values_,
        "score_lengths": score_lengths(model),
        "files": files,
        "certificate": model.certificate_.as_dict(),
        "versions": {
            "gramian": version("gramian"),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    path.write_text(json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n", "utf-8")


def _plain(value: Any) -> Any:
    """Python values that JSON knows: NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write arrays to an ``.npz`` file; strings as one string of bytes, so that none is padded or pickled."""
    kept = {name: _bytes(a) if np.asarray(a).dtype.kind == "O" else np.asarray(a) for name, a in arrays.items()}
    with path.open("wb") as file:
        np.savez(file, **kept)  # type: ignore[arg-type]  # the names are not those of its own arguments


def _bytes(strings: npt.NDArray[np.object_]) -> npt.NDArray[np.uint8]:
    joined = SEPARATOR.join(strings.tolist())
    if joined.count(SEPARATOR) != len(strings) - 1:
        bad = next(name for name in strings if SEPARATOR in name)
        raise ValueError(f"The name {bad!r} has a line break in it, which no file of results can hold.")
    return np.frombuffer(joined.encode("utf-8"), dtype=np.uint8)


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read what :func:`write_arrays` wrote."""
    with path.open("rb") as file:  # opened here, since NumPy leaves a damaged file open
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array")
        arrays = {name: found[name] for name in found.files}
    return {name: _strings(a) if a.dtype == np.uint8 else a for name, a in arrays.items()}


def _strings(kept: npt.NDArray[np.uint8]) -> npt.NDArray[np.object_]:
    return text(kept.tobytes().decode("utf-8").split(SEPARATOR))
