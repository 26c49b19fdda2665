"""Who is related to whom: KING-robust kinship of pairs, and a largest set of people without relatives."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import TooLargeError
from gramian.compute.genotypes import Decoder
from gramian.compute.memory import available_memory, gibibytes
from gramian.genetics.text import one_field, write_rows
from gramian.inputs.progress import Progress
from gramian.sources import memory_budget
from gramian.sources.plink import Genotypes, Samples
from gramian.sources.writing import write_whole_folder

Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int32]

DEGREES = ("duplicate", "first", "second", "third")
LIMITS = (2.0**-1.5, 2.0**-2.5, 2.0**-3.5, 2.0**-4.5)  # kinship above which a pair is of each degree
CUTOFF = 0.0884  # 2^-3.5, as it is usually written: second degree and closer
SNPS = 4096  # decoded at a time: with fewer, adding up the products takes as long as making them
EXACT = 2**24  # counts up to which float32 is exact
PAIR_BYTES = 40  # of a pair in the table


@dataclass(frozen=True, eq=False, repr=False)
class Kinship:
    r"""Pairs of people, and how related they are.

    Over the SNPs that both were read at, let ``hethet`` be those at which both are heterozygous, ``ibs0`` those at
    which they are homozygous for different alleles, :math:`h_1, h_2` those at which only the one, only the other is
    heterozygous. KING's estimate, which is robust to population structure, is

    .. math:: \varphi = \frac12 - \frac{4\,\mathrm{ibs0} + h_1 + h_2}{4\,(\mathrm{hethet} + \min(h_1, h_2))}.

    Attributes
    ----------
    samples : Samples
        All people who were compared.
    first, second : ndarray of int
        Rows of ``samples``: the later and the earlier of each pair.
    n_snps, hethet, ibs0, first_het, second_het : ndarray of int
        Counts of each pair.
    snps : int
        SNPs that were compared.
    least : float or None
        Pairs below this kinship were left out.
    """

    samples: Samples
    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    n_snps: Counts
    hethet: Counts
    ibs0: Counts
    first_het: Counts
    second_het: Counts
    snps: int
    least: float | None

    @property
    def kinship(self) -> npt.NDArray[np.float64]:
        """φ of each pair, NaN where neither has a heterozygous call that the other shares."""
        return _kinship(self.hethet, self.ibs0, self.first_het, self.second_het)

    def degrees(self) -> dict[str, int]:
        """Pairs of each degree that the table has all pairs of, duplicates (or identical twins) first."""
        phi, found, above = self.kinship, {}, 0
        for name, limit in zip(DEGREES, LIMITS, strict=True):
            if self.least is not None and self.least > limit + 1e-4:  # 0.0884 is meant to be 2^-3.5
                break
            count = int(np.count_nonzero(phi > limit))
            found[name], above = count - above, count
        return found

    def table(self) -> dict[str, Any]:
        """Return the columns of KING's table, ready for ``pandas.DataFrame``."""
        snps = np.where(self.n_snps > 0, self.n_snps, np.nan)
        return {
            "FID1": self.samples.fid[self.first],
            "IID1": self.samples.iid[self.first],
            "FID2": self.samples.fid[self.second],
            "IID2": self.samples.iid[self.second],
            "NSNP": self.n_snps,
            "HETHET": self.hethet / snps,
            "IBS0": self.ibs0 / snps,
            "KINSHIP": self.kinship,
        }

    def __repr__(self) -> str:
        found = ", ".join(f"{count:,} {name}" for name, count in self.degrees().items())
        return f"Kinship: {len(self.first):,} pairs of {len(self.samples):,} people, {self.snps:,} SNPs; {found} degree"


def write_king_table(path: Path, found: Kinship) -> None:
    """The table of all pairs, with six digits as PLINK 2 writes them."""
    columns = found.table()
    for name in ("HETHET", "IBS0", "KINSHIP"):
        columns[name] = round_like_plink(columns[name])
    heads = "\t".join(columns)
    kinds = ["%s" if c.dtype == object else "%d" if c.dtype.kind == "i" else "%.6g" for c in columns.values()]
    fields = [one_field(c) if c.dtype == object else c for c in columns.values()]
    write_rows(path, "\t".join(kinds) + "\n", *fields, heads=[f"#{heads}"])


def round_like_plink(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Six digits of each value; what lies half-way between two, up to 5e-9 of the last, goes to the even one, as PLINK.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.relatives import round_like_plink
    >>> ["%.6g" % value for value in round_like_plink(np.array([0.009140625, 0.009140635]))]
    ['0.00914062', '0.00914064']
    """
    size = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = 10.0 ** (np.floor(np.log10(size)) - 5)
        scaled = size / unit
        whole = np.floor(scaled)
        digits = np.floor(scaled + np.where(whole % 2 == 1, 0.500000005, 0.499999995))
        return np.where(size > 0, np.copysign(digits * unit, values), values)


def king(source: Genotypes, *, least: float | None = None, progress: Progress | None = None) -> Kinship:
    """Kinship of all pairs of people, by KING's robust estimate.

    Counts are exact: products of zeros and ones in float32. With ``least`` the first pass bounds every pair's kinship
    from above by one product, missing calls taken as badly as they can be, and only people with a pair that may reach
    it are compared in full.

    Parameters
    ----------
    source : Genotypes
        People and autosomal SNPs.
    least : float, optional
        Only pairs whose kinship is at least this; all by default.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    Kinship
        Pairs, by rows of the lower triangle.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import king
    >>> from gramian.sources.plink import Genotypes
    >>> calls = np.random.default_rng(0).binomial(2, 0.4, (500, 4))
    >>> calls[:, 3] = calls[:, 1]
    >>> king(Genotypes.from_calls(calls), least=0.2).table()["IID1"].tolist()
    ['s4']
    """
    n, p = source.shape
    sexes = sorted({"X", "Y", "MT"} & set(source.snps.chromosome))
    if sexes:
        raise ValueError(
            f"Kinship is of autosomes, and SNPs on {', '.join(sexes)} are among those given: leave them out (Filters)."
        )
    if least is not None and not -1 <= least <= 0.5:
        raise ValueError(f"least={least!r} must lie between −1 and 0.5, the kinship of twins.")
    chosen = np.arange(n) if least is None else _may_be_related(source, least, progress)
    pairs = len(chosen) * (len(chosen) - 1) // 2
    if least is None and pairs * PAIR_BYTES > available_memory():
        raise TooLargeError(
            f"A table of {pairs:,} pairs takes {gibibytes(pairs * PAIR_BYTES)}. Ask for related pairs only: ",
            ("least", 0.0442),
            ".",
        )
    view = source if len(chosen) == n else source.select(samples=chosen)
    parts: list[tuple[Any, ...]] = []
    for start, stop, counts in _shared_counts(view, progress):
        i, j = np.nonzero(np.arange(stop) < np.arange(start, stop)[:, None])
        found = [count[i, j].astype(np.int32) for count in counts]
        i += start
        if least is not None:
            kept = _kinship(*found[1:]) >= least
            i, j, found = i[kept], j[kept], [count[kept] for count in found]
        parts.append((chosen[i], chosen[j], *found))
    empty = np.zeros(0, np.int32)
    columns: Any = [np.concatenate(part) for part in zip(*parts, strict=True)] if parts else [empty] * 7
    first, second, n_snps, hethet, ibs0, row, column = columns
    return Kinship(source.samples, first, second, n_snps, hethet, ibs0, row, column, p, least)


def _kinship(hethet: Any, ibs0: Any, first: Any, second: Any) -> npt.NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            0.5 - (4.0 * ibs0 + first + second) / (4.0 * (hethet + np.minimum(first, second).astype(np.float64)))
        )


def decode_blocks(view: Genotypes, stop: int, lines: Any, progress: Progress | None = None) -> Iterator[list[Any]]:
    """Yield, for blocks of SNPs × the first ``stop`` people, a·g + b for each of the lines (a, b), 0 where missing.

    A line is one for all SNPs, or one for each.
    """
    held, place, width = view.bytes_of(0, stop)
    in_order, p = np.array_equal(place, np.arange(stop)), view.shape[1]
    rows = min(p, max(64, min(SNPS, memory_budget() // (64 * width))))
    decoders = [Decoder(rows, width, np.float32) for _ in lines]
    for lo, hi in view.spans(rows):
        packed = view.packed(lo, hi)[:, held]
        found = []
        for decode, line in zip(decoders, lines, strict=True):
            matrix = decode(packed, np.broadcast_to(line, (p, 2))[lo:hi])
            found.append(matrix[:, :stop] if in_order else matrix[:, place])
        yield found
        view.give_back()
        if progress is not None:
            progress(hi, p, "SNPs")


SIGN, SEEN = (1.0, -1.0), (0.0, 1.0)  # +1, 0, −1 for 2, 1, 0 copies of A1; 1 where a call is there


def _may_be_related(source: Genotypes, least: float, progress: Progress | None) -> npt.NDArray[np.intp]:
    """People with a pair whose kinship may reach ``least``.

    With missing calls m, and a pair's calls that differ, Σ(xᵢ − xⱼ)² ≥ Aᵢ − mⱼ + Aⱼ − mᵢ − 2 xᵢ·xⱼ, A being the number
    of homozygous calls; the denominator is at most 4 min(Hᵢ, Hⱼ), H being the heterozygous ones.
    """
    two, one, none, missing = source.counts().by_sample.T.astype(np.float64)
    own = two + none - missing
    found = np.zeros(source.shape[0], np.bool_)
    for start, stop in stripes(source.shape[0], 2):
        products = np.zeros((stop - start, stop), np.float64 if source.shape[1] >= EXACT else np.float32)
        for (x,) in decode_blocks(source, stop, [SIGN], progress):
            products += x[:, start:].T @ x
        differ = np.maximum(0.0, own[start:stop, None] + own[:stop] - 2.0 * products)
        smaller = np.minimum(one[start:stop, None], one[:stop])
        near = 2.0 * smaller - differ >= 4.0 * (least - 1e-9) * smaller
        near &= np.arange(stop) < np.arange(start, stop)[:, None]
        found[start:stop] |= near.any(axis=1)
        found[:stop] |= near.any(axis=0)
    return np.flatnonzero(found)


def stripes(n: int, matrices: int) -> list[tuple[int, int]]:
    """(start, stop) of rows, of which so many matrices of rows × n numbers fit in the working memory."""
    rows = max(64, memory_budget() // max(1, 8 * matrices * n))
    return [(start, min(start + rows, n)) for start in range(0, n, rows)]


def _shared_counts(view: Genotypes, progress: Progress | None) -> Iterator[tuple[int, int, list[Any]]]:
    """Yield start, stop and the counts of pairs (rows start to stop) × (all before stop).

    SNPs that both have, hethet, ibs0, het of the row alone, het of the column alone.
    """
    n, p = view.shape
    whole = len(stripes(n, 6)) == 1
    for start, stop in stripes(n, 6):
        shape, kind = (stop - start, stop), np.float64 if p >= EXACT else np.float32
        both, hets, same, row = (np.zeros(shape, kind) for _ in range(4))
        column = row if whole else np.zeros(shape, kind)
        for x, o in decode_blocks(view, stop, [SIGN, SEEN], progress):
            h = o - x * x
            both += o[:, start:].T @ o
            hets += h[:, start:].T @ h
            same += x[:, start:].T @ x
            row += h[:, start:].T @ o
            if not whole:
                column += o[:, start:].T @ h
        row, column = row - hets, (row.T if whole else column) - hets
        yield start, stop, [both, hets, (both - hets - row - column - same) / 2, row, column]


def unrelated(found: Kinship, cutoff: float = CUTOFF) -> Mask:
    """People of whom no two are related: as many as PLINK 2's rule finds (``--king-cutoff``).

    While a pair above the cutoff is left, the partner of the first person with one relative goes; where nobody has
    just one, the first person with the most.

    Parameters
    ----------
    found : Kinship
        Pairs, with ``least`` not above the cutoff.
    cutoff : float, default=0.0884
        Kinship above which two people are related: 0.354, 0.177, 0.0884 and 0.0442 part duplicates, first, second and
        third degree from what is more distant.

    Returns
    -------
    ndarray of bool
        Those who stay.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import king, unrelated
    >>> from gramian.sources.plink import Genotypes
    >>> calls = np.random.default_rng(0).binomial(2, 0.4, (500, 4))
    >>> calls[:, 3] = calls[:, 1]
    >>> unrelated(king(Genotypes.from_calls(calls)))
    array([ True,  True,  True, False])
    """
    if found.least is not None and found.least > cutoff:
        raise ValueError(f"cutoff={cutoff!r}: pairs below {found.least:g} were left out of the table.")
    related = found.kinship > cutoff * (1 + 2.0**-44)
    relatives: dict[int, set[int]] = {}
    for i, j in zip(found.first[related].tolist(), found.second[related].tolist(), strict=True):
        relatives.setdefault(i, set()).add(j)
        relatives.setdefault(j, set()).add(i)
    kept = np.ones(len(found.samples), np.bool_)
    single = [i for i, others in relatives.items() if len(others) == 1]
    most = [(-len(others), i) for i, others in relatives.items()]
    heapq.heapify(single)
    heapq.heapify(most)
    while relatives:
        while single and len(relatives.get(single[0], ())) != 1:
            heapq.heappop(single)
        if single:
            (gone,) = relatives[single[0]]
        else:
            while -most[0][0] != len(relatives.get(most[0][1], ())):  # of before others went
                heapq.heappop(most)
            gone = most[0][1]
        kept[gone] = False
        for other in relatives.pop(gone):
            relatives[other].discard(gone)
            left = len(relatives[other])
            if not left:
                del relatives[other]
                continue
            heapq.heappush(most, (-left, other))
            if left == 1:
                heapq.heappush(single, other)
    return kept


def write_king_files(
    found: Kinship, prefix: str | os.PathLike[str], kept: Mask | None = None, *, overwrite: bool = False
) -> list[Path]:
    """Write PREFIX.kin0 and, given who stays, PREFIX.king.cutoff.in.id and .out.id as PLINK 2 does; all or none."""
    home = Path(prefix)
    names = [home.name + ending for ending in (".kin0", ".king.cutoff.in.id", ".king.cutoff.out.id")]
    names = names if kept is not None else names[:1]
    with write_whole_folder(home.parent, names, overwrite=overwrite) as folder:
        write_king_table(folder / names[0], found)
        for name, mask in zip(names[1:], () if kept is None else (kept, ~kept), strict=True):
            ids = (one_field(column[mask]) for column in (found.samples.fid, found.samples.iid))
            write_rows(folder / name, "%s\t%s\n", *ids, heads=["#FID\tIID"])
    return [home.parent / name for name in names]
