"""The genetic relationship matrix, and the files in which GCTA, PLINK and others exchange it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics.pruning import founder_mask
from gramian.genetics.relatives import SEEN, decode_blocks, stripes
from gramian.genetics.text import one_field, write_rows
from gramian.inputs.progress import Progress
from gramian.sources.plink import Genotypes
from gramian.sources.writing import write_whole_folder

Array = npt.NDArray[np.float64]

ENDINGS = (".grm.bin", ".grm.N.bin", ".grm.id")


def grm_rows(source: Genotypes, progress: Progress | None = None) -> Iterator[tuple[int, int, Any, Any]]:
    r"""Yield start, stop, and rows start to stop of the relationship matrix and of its counts, up to column stop.

    .. math:: K_{ij} = \frac{1}{N_{ij}} \sum_s \frac{(g_{is} - 2f_s)(g_{js} - 2f_s)}{2 f_s (1 - f_s)},

    the sum being over the :math:`N_{ij}` SNPs at which both were read and f the frequency among founders. SNPs that do
    not vary among them add nothing to the sum and, as in PLINK 2, one to N.
    """
    sexes = sorted({"X", "Y", "MT"} & set(source.snps.chromosome))
    if sexes:
        raise ValueError(
            f"The matrix is of autosomes, and SNPs on {', '.join(sexes)} are among those given: leave them out."
        )
    founders = founder_mask(source)
    if not founders.any():
        raise ValueError("Nobody is a founder, without parents in the .fam file: there is nobody to count alleles in.")
    counts = source.select(samples=founders).snp_counts()
    alleles = 2.0 * counts[:, :3].sum(axis=1)
    f = (2 * counts[:, 0] + counts[:, 1]) / np.maximum(alleles, 1)
    varies = (f > 0) & (f < 1)
    if not varies.any():
        raise ValueError("No SNP varies among the founders.")
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, 2 * f * (1 - f), 1)), 0.0)
    lines = [np.stack([scale, -2 * f * scale], axis=1), np.broadcast_to(SEEN, (len(f), 2))]
    for start, stop in stripes(source.shape[0], 5):
        sums, both = np.zeros((stop - start, stop)), np.zeros((stop - start, stop))
        for z, o in decode_blocks(source, stop, lines, progress):
            sums += z[:, start:].T @ z
            both += o[:, start:].T @ o
        with np.errstate(divide="ignore", invalid="ignore"):
            yield start, stop, sums / both, both


@dataclass(frozen=True, eq=False)
class Relationships:
    """A genetic relationship matrix as it is stored.

    Attributes
    ----------
    samples : ndarray of shape (n, 2)
        FID and IID.
    matrix : ndarray of shape (n, n)
        K.
    counts : ndarray of shape (n, n)
        SNPs that each pair was read at.
    """

    samples: npt.NDArray[np.object_]
    matrix: Array
    counts: Array


def write_grm(
    source: Genotypes,
    prefix: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Write the relationship matrix as GCTA and ``plink2 --make-grm-bin`` do, without holding all of it.

    PREFIX.grm.bin is the lower triangle with the diagonal, by rows, in float32; PREFIX.grm.N.bin the numbers of SNPs
    in the same form; PREFIX.grm.id has FID and IID. All three appear together.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from gramian.genetics import read_grm, write_grm
    >>> from gramian.sources.plink import Genotypes
    >>> G = Genotypes.from_calls(np.random.default_rng(0).binomial(2, 0.4, (500, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_grm(G, Path(folder, "x"))
    ...     read_grm(Path(folder, "x")).matrix.shape
    (3, 3)
    """
    home = Path(prefix)
    names = [home.name + ending for ending in ENDINGS]
    with write_whole_folder(home.parent, names, overwrite=overwrite) as folder:
        with (folder / names[0]).open("wb") as values, (folder / names[1]).open("wb") as counts:
            for start, stop, matrix, both in grm_rows(source, progress):
                lower = np.arange(stop) <= np.arange(start, stop)[:, None]
                values.write(matrix[lower].astype("<f4").tobytes())
                counts.write(both[lower].astype("<f4").tobytes())
        ids = one_field(source.samples.fid), one_field(source.samples.iid)
        write_rows(folder / names[2], "%s\t%s\n", *ids)
    return [home.parent / name for name in names]


def read_grm(prefix: str | os.PathLike[str]) -> Relationships:
    """Read PREFIX.grm.bin, .grm.N.bin and .grm.id, of which the sizes must agree."""
    home = Path(prefix)
    paths = [home.with_name(home.name + ending) for ending in ENDINGS]
    rows = [line.split() for line in paths[2].read_text("utf-8").splitlines() if line.strip()]
    bad = next((i for i, row in enumerate(rows) if len(row) != 2), None)
    if bad is not None:
        raise ValueError(f"{paths[2]}: line {bad + 1} has {len(rows[bad])} fields; FID and IID were expected.")
    n = len(rows)
    found = []
    for path in paths[:2]:
        expected = 4 * (n * (n + 1) // 2)
        if path.stat().st_size != expected:
            raise ValueError(
                f"{path}: {path.stat().st_size} bytes; the triangle of {n} samples ({paths[2].name}) takes {expected}."
            )
        full = np.zeros((n, n))
        full[np.tril_indices(n)] = np.fromfile(path, "<f4")
        found.append(np.tril(full) + np.tril(full, -1).T)
    return Relationships(np.array(rows, dtype=object), *found)
