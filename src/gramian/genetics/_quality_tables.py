"""Tables of statistics as files of text between tabs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gramian.genetics._staging import PREFIX, install, refuse_existing

__all__ = ["write_tsv"]


def write_tsv(path: str | os.PathLike[str], columns: Mapping[str, Any], overwrite: bool) -> None:
    r"""Write columns between tabs under their names, with all digits and NA for NaN; the file is whole or absent.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics._quality_tables import write_tsv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tsv(Path(folder, "t.tsv"), {"id": ["rs1"], "p": [0.1]}, overwrite=False)
    ...     Path(folder, "t.tsv").read_text()
    'id\tp\nrs1\t0.1\n'
    """
    target = Path(path)
    refuse_existing([target], overwrite)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=target.parent) as name:
        rows = zip(*(_texts(column) for column in columns.values()), strict=True)
        with Path(name, target.name).open("w", encoding="utf-8", newline="\n") as file:
            file.write("\t".join(columns) + "\n")
            file.writelines("\t".join(row) + "\n" for row in rows)
        install(Path(name), [target])


def _texts(column: Any) -> list[str]:
    values = np.asarray(column)
    texts = [str(x) for x in values.tolist()]
    return ["NA" if text == "nan" else text for text in texts] if values.dtype.kind == "f" else texts
