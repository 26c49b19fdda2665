"""Components as covariates of an association study, in the files that regenie, SAIGE and PLINK 2 read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics.text import as_text, component_names, list_few, one_field, write_rows
from gramian.sources.plink import Samples
from gramian.sources.writing import write_whole

PROGRAMS = ("regenie", "saige", "plink2")
HEADS = {"regenie": ("FID", "IID"), "saige": ("FID", "IID"), "plink2": ("#FID", "IID")}


def write_covariates(
    path: str | os.PathLike[str],
    samples: Samples,
    scores: npt.ArrayLike,
    program: str = "regenie",
    *,
    columns: Mapping[str, npt.ArrayLike] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write components, and other columns, as covariates.

    regenie (``--covarFile``) refuses a header that does not begin with ``FID IID``; SAIGE takes phenotypes and
    covariates as columns of one table (``--phenoFile``, ``--covarColList``, ``--sampleIDColinphenoFile=IID``); PLINK 2
    (``--covar``) knows a header by its ``#``. Components are divided by their standard deviation, so that none is lost
    among numbers of another size; an association does not change by it.

    Parameters
    ----------
    path : path
        The file.
    samples : Samples
        Who.
    scores : array-like of shape (n, k)
        Their components.
    program : {"regenie", "saige", "plink2"}, default="regenie"
        Who will read it.
    columns : mapping of str to array-like, optional
        Others, a phenotype or age and sex, by name; NaN is written as NA.
    overwrite : bool, default=False
        Whether a file of this name may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics import write_covariates
    >>> from gramian.sources.plink import Samples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     two, scores = Samples.numbered(2), [[1.0], [3.0]]
    ...     file = write_covariates(Path(folder, "c.txt"), two, scores, columns={"age": [40, 50]})
    ...     print(file.read_text().rstrip())
    FID IID PC1 age
    0 s1 -1 40
    0 s2 1 50
    """
    if program not in PROGRAMS:
        raise ValueError(f"program={program!r} must be one of {', '.join(PROGRAMS)}.")
    U = np.asarray(scores, dtype=np.float64)
    n = len(samples)
    if U.ndim != 2 or len(U) != n or not np.isfinite(U).all():
        raise ValueError(f"scores has the shape {U.shape}, or values that are not finite; {n} samples need a row each.")
    pairs = list(zip(samples.fid, samples.iid, strict=True))
    if len(set(pairs)) < n:
        twice = sorted({" ".join(pair) for pair in pairs if pairs.count(pair) > 1})
        raise ValueError(f"Samples are given more than once, their rows could not be told apart: {list_few(twice)}.")
    spread = U.std(axis=0)
    U = (U - U.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    names = component_names(U.shape[1])
    others: dict[str, Any] = {}
    for name, given in (columns or {}).items():
        column = np.asarray(given)
        if column.shape != (n,) or name in names or len(name.split()) != 1:
            raise ValueError(f"columns: {name!r} must be one word, no component, and have {n} values.")
        numeric = column.dtype.kind in "fiub"
        texts = [f"{value:.10g}" if value == value else "NA" for value in column] if numeric else list(column)
        others[name] = one_field(as_text(texts), "NA")
    gap = "\t" if program == "plink2" else " "
    row = gap.join(["%s", "%s", *["%.8g"] * U.shape[1], *["%s"] * len(others)]) + "\n"
    head = gap.join([*HEADS[program], *names, *others])
    with write_whole(path, overwrite=overwrite) as part:
        write_rows(part, row, one_field(samples.fid), one_field(samples.iid), U, *others.values(), heads=[head])
    return Path(path)
