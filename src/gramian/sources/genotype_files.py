"""Genotypes in the files of other programs, packed to two bits while they are read once: PGEN, BGEN, VCF, EIGENSTRAT.

Every format is a stream of blocks of SNPs; :func:`open_genotypes` chooses by the name, packs the blocks into an unnamed
temporary file, and hands out the same :class:`Genotypes` as for a ``.bed`` file. The allele that is counted, A1, is the
alternative one, and in EIGENSTRAT files the first: what PLINK's ``--make-bed`` makes of the same file.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute import genotypes as loops
from gramian.sources.base import reading
from gramian.sources.errors import SourceError
from gramian.sources.files import load_bgen, load_cyvcf2, load_pgenlib
from gramian.sources.genotype_names import (
    EIGENSTRAT,
    READ,
    VCF,
    VCF_ZARR,
    explain_conversion,
    find_ending,
    list_genotype_files,
)
from gramian.sources.plink import (
    Genotypes,
    Samples,
    Snps,
    chromosome_name,
    leave_out_negative,
    open_bed,
    read_bim,
    read_fam,
    sex_codes,
    spool_bytes,
    stack_genotypes,
    text_array,
)
from gramian.sources.zarr import is_zarr, open_store

Calls = npt.NDArray[np.int8]

BLOCK = 2**22  # genotypes that are packed together
UNIT = 16384  # parts of a copy that a dosage is told by, as in PLINK 2
NEAR = 1638  # of them: a dosage within 0.1 of 0, 1 or 2 is that call, any other is missing (--hard-call-threshold 0.1)
CHROMOSOME = re.compile(rb"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")  # as the standard has them
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def round_dosages(dosages: npt.NDArray[np.floating[Any]]) -> Calls:
    """The call that a dosage is within 0.1 of; −1 where there is none, or no dosage (NaN).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources.genotype_files import round_dosages
    >>> round_dosages(np.array([0.05, 1.1, 1.2, 1.95, np.nan]))
    array([ 0,  1, -1,  2, -1], dtype=int8)
    """
    known = np.isfinite(dosages)
    parts = np.floor(np.where(known, dosages, 0.0).astype(np.float64) * UNIT + 0.5).astype(np.int64)
    nearest = (parts + UNIT // 2) // UNIT
    good = known & (np.abs(parts - nearest * UNIT) <= NEAR) & (nearest >= 0) & (nearest <= 2)
    return np.where(good, nearest, -1).astype(np.int8)


@dataclass
class CallStream:
    """SNPs on their way from a file: who the samples are, how calls and names come, and what had to be changed.

    ``blocks`` yields calls (SNPs × samples, −1 where missing) or packed bytes (uint8), and the SNPs.
    """

    samples: Samples
    blocks: Callable[[CallStream], Iterator[tuple[npt.NDArray[Any], Snps]]]
    changed: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)


def open_genotypes(path: str | os.PathLike[str]) -> Genotypes:
    r"""Open genotypes by how the name ends: a file, or several that hold the SNPs of the same samples.

    Parameters
    ----------
    path : path
        ``.bed`` (also gzipped), ``.pgen``, ``.bgen``, ``.vcf``, ``.vcf.gz``, ``.bcf``, a VCF-Zarr store (``.vcz``) or
        ``.geno`` of EIGENSTRAT. ``{1..22}``, ``{X,Y}`` and the marks ``*``, ``?`` stand for several files, which are
        read as one: ``"cohort_chr{1..22}.bed"``. PGEN, BGEN, VCF and BCF need the ``genetics-files`` extra, VCF-Zarr
        the ``arrays`` extra.

    Returns
    -------
    Genotypes
        A ``.bed`` file is mapped where it lies; of others the calls are packed, two bits each, into a temporary
        file once. Dosages and probabilities without calls are rounded to the call within 0.1, else missing, as in
        PLINK 2. Records that no two alleles describe are left out, and counted in ``notes``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.sources.genotype_files import open_genotypes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "x.geno").write_text("012\n290\n")
    ...     _ = Path(folder, "x.snp").write_text("rs1 1 0.0 100 A G\nrs2 1 0.0 200 C T\n")
    ...     _ = Path(folder, "x.ind").write_text("a M p\nb F p\nc U q\n")
    ...     open_genotypes(Path(folder, "x.geno")).calls(0, 2).tolist()
    [[0, 1, 2], [2, -1, 0]]
    """
    files = list_genotype_files(path)
    opened = [_open_one(file) for file in files]
    return opened[0] if len(opened) == 1 else stack_genotypes(opened, [str(file) for file in files])


def _open_one(path: Path) -> Genotypes:
    """One file, by how its name ends."""
    remedy = explain_conversion(str(path))
    if remedy:
        raise SourceError(f"genotypes of this kind are not read. {remedy}", path=path)
    ending = find_ending(path.name)
    if ending in (".bed", ".bed.gz", "") and not (path.is_dir() and is_zarr(path)):
        return open_bed(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    if path.is_dir() != (path.is_dir() and is_zarr(path)):
        raise IsADirectoryError(f"{path} is a folder; name a file that ends in {', '.join(READ)}.")
    openers: dict[str, Callable[[Path], Any]] = {
        ".pgen": _stream_pgen,
        ".bgen": _stream_bgen,
        **dict.fromkeys(VCF, _stream_vcf),
        **dict.fromkeys(EIGENSTRAT, _stream_eigenstrat),
        **dict.fromkeys((*VCF_ZARR, ""), _stream_vcf_zarr),
    }
    what = f"a whole {ending or 'VCF-Zarr'} file"
    with ExitStack() as stack, reading(path, what):
        stream: CallStream = stack.enter_context(contextmanager(openers[ending])(path))
        snps: list[Snps] = []

        def packed() -> Iterator[Any]:
            for block, names in stream.blocks(stream):
                snps.append(names)
                yield np.ascontiguousarray(block if block.dtype == np.uint8 else loops.pack(block)).data

        if not len(stream.samples):
            raise SourceError("the file has no samples.")
        table = spool_bytes(packed(), path)
        if not table.size:
            skipped = "; ".join(f"{count} {why}" for why, count in stream.changed.items())
            raise SourceError(f"no SNP is left in the file{f': {skipped}' if skipped else ''}.")
        columns = {name: np.concatenate([getattr(part, name) for part in snps]) for name in Snps.__dataclass_fields__}
        remarks = [*stream.remarks, *(f"{count:,} {why}." for why, count in stream.changed.items() if count)]
        held = table.reshape(len(columns["id"]), -1)
        return leave_out_negative(Genotypes(held, stream.samples, Snps(**columns), remarks=remarks))


def _rows(n: int) -> int:
    """SNPs of n samples that are packed together."""
    return max(1, BLOCK // max(1, n))


def _name_snps(chromosome: Any, names: Any, position: Any, a1: Any, a2: Any, cm: Any = None) -> Snps:
    """SNPs from columns as another program names them."""
    known = {code: chromosome_name(str(code)) for code in set(chromosome)}
    return Snps(
        text_array([known[code] for code in chromosome]),
        text_array([str(name) if name else "." for name in names]),
        np.zeros(len(names)) if cm is None else np.asarray(cm, np.float64),
        np.asarray(position, np.int64),
        text_array([str(allele) if allele else "." for allele in a1]),
        text_array([str(allele) if allele else "." for allele in a2]),
    )


def _list_samples(names: Any, sex: Any = None) -> Samples:
    """Samples of whom nothing but the name is known, and the sex perhaps."""
    iid = text_array([str(name) for name in names])
    zero = text_array(["0"] * len(iid))
    sexes = np.zeros(len(iid), np.int8) if sex is None else sex
    return Samples(zero, iid, zero, zero, sexes, text_array(["-9"] * len(iid)))


MULTIALLELIC = (
    "records with more than two alleles are left out (bcftools norm -m-any splits them, if they are to be kept)"
)
HALF = "calls of which only one allele is known (0/.) count as missing"
HAPLOID = "calls of one allele on chromosomes 1 to 22 count as two copies of it"
POLYPLOID = "calls of more than two alleles count as missing"
ROUNDED = "dosages lie farther than 0.1 from 0, 1 and 2, and count as missing"
UNCALLED = "records have neither calls nor dosages, and are missing in everybody"


def diploid_calls(alleles: npt.NDArray[np.signedinteger[Any]], autosomal: bool, changed: Counter[str]) -> Calls:
    """Copies of the alternative allele of calls, each of some alleles: −1 unknown, −2 none where others have one.

    A single allele counts twice, as PLINK does it; half a call is missing, and so are calls of more than two alleles.

    Examples
    --------
    >>> import numpy as np
    >>> from collections import Counter
    >>> from gramian.sources.genotype_files import diploid_calls
    >>> diploid_calls(np.array([[0, 1], [1, -2], [1, -1], [-1, -1]]), False, Counter())
    array([ 1,  2, -1, -1], dtype=int8)
    """
    there, unknown = alleles != -2, alleles == -1
    ploidy, absent = there.sum(axis=-1), unknown.sum(axis=-1)
    copies = np.where(alleles > 0, 1, 0).sum(axis=-1)
    single = (ploidy == 1) & (absent == 0)
    calls = np.where(single, 2 * copies, copies)
    calls[(absent > 0) | (ploidy == 0) | (ploidy > 2)] = -1
    changed[HALF] += int(np.sum((absent > 0) & (absent < ploidy)))
    changed[POLYPLOID] += int(np.sum((ploidy > 2) & (absent < ploidy)))
    changed[HAPLOID] += int(single.sum()) if autosomal else 0
    return np.asarray(calls, np.int8)


def _on_autosome(code: str) -> bool:
    return chromosome_name(code).isdecimal()


# PLINK 2: .pgen with .pvar (or .pvar.zst, .bim) and .psam (or .fam)


def _stream_pgen(path: Path) -> Iterator[CallStream]:
    """Hard calls, as the file has them."""
    pgenlib = load_pgenlib()
    base = path.with_suffix("")
    psam, fam = base.with_name(base.name + ".psam"), base.with_name(base.name + ".fam")
    if not psam.exists() and not fam.exists():
        raise FileNotFoundError(f"{psam}: no such file; a .pgen file needs its .pvar and .psam beside it.")
    samples = _read_psam(psam) if psam.exists() else read_fam(fam)
    pvar = next(
        (p for p in (base.with_name(base.name + e) for e in (".pvar", ".pvar.zst", ".bim")) if p.exists()), None
    )
    if pvar is None:
        raise FileNotFoundError(f"{base}.pvar: no such file; a .pgen file needs its .pvar and .psam beside it.")
    n = len(samples)
    more: dict[str, Any] = {}
    if pvar.suffix == ".bim":
        snps = read_bim(pvar)
        biallelic = np.ones(len(snps), bool)
    else:
        with reading(pvar, "a whole .pvar file"):
            names = pgenlib.PvarReader(os.fsencode(pvar))
            p, offsets = names.get_variant_ct(), names.get_allele_idx_offsets()
            chromosome, ids = (
                [f(i).decode() for i in range(p)] for f in (names.get_variant_chrom, names.get_variant_id)
            )
            position = [names.get_variant_pos(i) for i in range(p)]
            ref, alt = ([names.get_allele_code(i, j).decode() for i in range(p)] for j in (0, 1))
            biallelic = np.array([names.get_allele_ct(i) == 2 for i in range(p)], dtype=bool)
            names.close()
        snps = _name_snps(chromosome, ids, position, alt, ref)
        if not biallelic.all():
            more = {"allele_idx_offsets": offsets}
    reader = pgenlib.PgenReader(os.fsencode(path), raw_sample_ct=n, variant_ct=len(snps), **more)
    if (reader.get_raw_sample_ct(), reader.get_variant_ct()) != (n, len(snps)):
        raise SourceError(
            f"it holds {reader.get_raw_sample_ct()} samples × {reader.get_variant_ct()} variants, .psam and .pvar list "
            f"{n} × {len(snps)}. Use the three files that were written together."
        )

    def blocks(stream: CallStream) -> Iterator[tuple[npt.NDArray[Any], Snps]]:
        step = _rows(n)
        calls = np.empty((min(step, len(snps)), n), np.int8)
        for start in range(0, len(snps), step):
            stop = min(start + step, len(snps))
            block = calls[: stop - start]
            reader.read_range(start, stop, block)
            block[block < 0] = -1
            kept = np.asarray(biallelic[start:stop])
            stream.changed[MULTIALLELIC] += int(np.sum(~kept))
            yield block[kept], snps.take(slice(start, stop)).take(kept)

    try:
        yield CallStream(samples, blocks)
    finally:
        reader.close()


def _read_psam(path: Path) -> Samples:
    """A .psam file: columns under the names #FID, IID, SEX and more; without a header as a .fam file."""
    lines = [line.split() for line in path.read_text("utf-8-sig").splitlines() if line.strip() and line[:2] != "##"]
    if not lines or lines[0][0] not in ("#FID", "#IID"):
        return read_fam(path)
    head = [name.lstrip("#") for name in lines.pop(0)]
    for row in lines:
        if len(row) < len(head):
            raise SourceError(f"the row of {row[0]} has {len(row)} fields; {len(head)} were expected.", path=path)
    columns = {name: text_array([row[j] for row in lines]) for j, name in enumerate(head)}
    found = _list_samples(columns["IID"], sex_codes(columns["SEX"]) if "SEX" in columns else None)
    later = head[len({"FID", "IID", "SID", "PAT", "MAT", "SEX"} & {*head}) :]
    return Samples(
        columns.get("FID", found.fid),
        found.iid,
        columns.get("PAT", found.father),
        columns.get("MAT", found.mother),
        found.sex,
        columns[later[0]] if later else found.phenotype,
    )


# BGEN, with a .sample file perhaps


def _stream_bgen(path: Path) -> Iterator[CallStream]:
    """Calls within 0.1 of the dosage of the second allele."""
    bgen = load_bgen()
    with bgen.BgenReader(os.fspath(path), delay_parsing=True) as file:
        sibling = path.with_suffix(".sample")
        samples = _read_oxford_samples(sibling) if sibling.exists() else _list_samples(file.samples)
        count = int(file.header.nsamples)
        if len(samples) != count:
            raise SourceError(f"it holds {count} samples, {sibling.name} lists {len(samples)}.")
        if not sibling.exists() and not file.header.has_sample_ids:
            remarks = ["The file names no samples, and there is no .sample file: they are numbered."]
            samples = Samples.numbered(count)
        else:
            remarks = []
        expected = int(file.header.nvariants)

        def blocks(stream: CallStream) -> Iterator[tuple[npt.NDArray[Any], Snps]]:
            step, seen = _rows(count), 0
            dosages: list[Any] = []
            names: list[tuple[Any, ...]] = []
            for variant in file:
                seen += 1
                alleles = variant.alleles
                if len(alleles) != 2:
                    stream.changed[MULTIALLELIC] += 1
                    continue
                dosage = np.asarray(variant.alt_dosage)
                dosages.append(dosage)
                names.append((variant.chrom, variant.rsid or variant.varid, variant.pos, alleles[1], alleles[0]))
                if len(names) == step:
                    yield _round(stream, dosages), _name_snps(*zip(*names, strict=True))
                    dosages, names = [], []
            if seen != expected:
                raise SourceError(f"cut short: {seen} of the {expected} variants that its header names are there.")
            if names:
                yield _round(stream, dosages), _name_snps(*zip(*names, strict=True))

        yield CallStream(samples, blocks, remarks=remarks)


def _round(stream: CallStream, dosages: list[Any]) -> Calls:
    """Dosages of some SNPs as calls; those that are none are counted."""
    found = np.stack(dosages)
    calls = round_dosages(found)
    stream.changed[ROUNDED] += int(np.sum((calls < 0) & np.isfinite(found)))
    return calls


def _read_oxford_samples(path: Path) -> Samples:
    """A .sample file: two lines of names and types, then ID_1, ID_2, missing, and sex perhaps."""
    lines = [line.split() for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    if len(lines) < 2 or lines[0][:2] != ["ID_1", "ID_2"] or set(lines[1][:2]) != {"0"}:
        raise SourceError("a .sample file begins with a line ID_1 ID_2 missing …, and one of types 0 0 0 …", path=path)
    head, rows = [name.lower() for name in lines[0]], lines[2:]
    for i, row in enumerate(rows):
        if len(row) != len(head):
            raise SourceError(f"line {i + 3} has {len(row)} fields; {len(head)} were expected.", path=path)
    sex = sex_codes(text_array([row[head.index("sex")] for row in rows])) if "sex" in head else None
    found = _list_samples([row[1] for row in rows], sex)
    fid = text_array([row[0] for row in rows])
    return Samples(fid, found.iid, found.father, found.mother, found.sex, found.phenotype)


# VCF and BCF


def _stream_vcf(path: Path) -> Iterator[CallStream]:
    """GT; where a record has none, DS or GP within 0.1 of a call."""
    _refuse_cut_vcf(path)
    file = load_cyvcf2().VCF(os.fspath(path))
    n = len(file.samples)
    if not n:
        raise SourceError("the file has no samples: sites without genotypes have no components.")
    if not path.name.endswith(".bcf"):
        _declare_chromosomes(path, file)

    def blocks(stream: CallStream) -> Iterator[tuple[npt.NDArray[Any], Snps]]:
        step = _rows(n)
        calls = np.empty((step, n), np.int8)
        names: list[tuple[Any, ...]] = []
        for record in file:
            if len(record.ALT) > 1:
                stream.changed[MULTIALLELIC] += 1
                continue
            calls[len(names)] = _read_record(record, stream, n)
            alt = record.ALT[0] if record.ALT else "."
            names.append((record.CHROM, record.ID, record.POS, alt, record.REF))
            if len(names) == step:
                yield calls, _name_snps(*zip(*names, strict=True))
                names = []
        if names:
            yield calls[: len(names)], _name_snps(*zip(*names, strict=True))

    try:
        yield CallStream(_list_samples(file.samples), blocks)
    finally:
        file.close()


def _read_record(record: Any, stream: CallStream, n: int) -> Calls:
    """The calls of a record of VCF."""
    formats = record.FORMAT or []
    if "GT" in formats:
        return diploid_calls(record.genotype.array()[:, :-1], _on_autosome(record.CHROM), stream.changed)
    if "DS" in formats or "GP" in formats:
        found = np.asarray(record.format("DS" if "DS" in formats else "GP"), np.float64)
        dosage = found[:, 0] if "DS" in formats else found[:, 1] + 2 * found[:, 2]
        return np.asarray(_round(stream, [dosage])[0])
    stream.changed[UNCALLED] += 1
    return np.full(n, -1, np.int8)


def _refuse_cut_vcf(path: Path) -> None:
    """Refuse a file that does not end as one: htslib reads such files to the cut, and says so on the screen only."""
    with path.open("rb") as file:
        head = file.read(18)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(BGZF_END)))
        tail = file.read()
    if head[:2] != b"\x1f\x8b":
        cut = head[:2] == b"##" and tail[-1:] != b"\n"
    elif head[12:14] == b"BC":
        cut = tail != BGZF_END
    else:  # plain gzip: known by its end only
        try:
            with gzip.open(path) as file:
                while file.read(1 << 20):
                    pass
            cut = False
        except (EOFError, zlib.error, gzip.BadGzipFile):
            cut = True
    if cut:
        raise SourceError("cut short: the file does not end as it should. Copy or download it again.")


def _declare_chromosomes(path: Path, file: Any) -> None:
    """Add chromosomes that the header does not name to it: at a record of another that is damaged, cyvcf2 crashes.

    It also crashes at lines after the header that are empty or comments, which are refused.
    """
    with path.open("rb") as raw:
        opened: Any = gzip.open if raw.read(2) == b"\x1f\x8b" else open
    known, last = {name.encode() for name in file.seqnames}, b""
    with opened(path, "rb") as lines:
        records = False
        for number, line in enumerate(lines, 1):
            if last and line.startswith(last):
                continue
            if line.startswith(b"#") or not line.strip():
                if records:
                    raise SourceError(f"line {number}: an empty line or a comment among the variants. Remove it.")
                records = line.startswith(b"#CHROM")
                continue
            name = line.partition(b"\t")[0]
            last = name + b"\t"
            if name in known:
                continue
            if not CHROMOSOME.fullmatch(name):
                raise SourceError(
                    f"line {number}: {name[:40].decode('utf-8', 'replace')!r} is no name of a chromosome."
                )
            file.add_to_header(f"##contig=<ID={name.decode()}>")
            known.add(name)


# VCF-Zarr


def _stream_vcf_zarr(path: Path) -> Iterator[CallStream]:
    """``call_genotype`` and the names of the VCF-Zarr specification."""
    with open_store(path) as root:
        lacking = [
            name
            for name in (
                "call_genotype",
                "variant_position",
                "variant_allele",
                "variant_contig",
                "contig_id",
                "sample_id",
            )
            if name not in root
        ]
        if lacking:
            raise SourceError(f"not a VCF-Zarr store: it has no {', '.join(lacking)}.")
        calls = root["call_genotype"]
        p, n = (int(size) for size in calls.shape[:2])
        contigs = [str(name) for name in root["contig_id"][:]]

        def blocks(stream: CallStream) -> Iterator[tuple[npt.NDArray[Any], Snps]]:
            chunk = int(calls.chunks[0])
            step = max(1, _rows(n) // chunk) * chunk
            for start in range(0, p, step):
                part = slice(start, min(start + step, p))
                alleles = np.asarray(root["variant_allele"][part]).astype(object)
                alleles = alleles if alleles.ndim == 2 else alleles[:, None]
                kept = np.array([sum(allele not in ("", None) for allele in row) <= 2 for row in alleles])
                stream.changed[MULTIALLELIC] += int(np.sum(~kept))
                chromosome = [contigs[i] for i in np.asarray(root["variant_contig"][part])[kept]]
                found = np.asarray(calls[part])[kept]
                on = np.array([_on_autosome(name) for name in chromosome], dtype=bool)
                out = np.empty(found.shape[:2], np.int8)
                for autosomal in (True, False):
                    out[on == autosomal] = diploid_calls(found[on == autosomal], autosomal, stream.changed)
                ids = root["variant_id"][part][kept] if "variant_id" in root else [""] * len(chromosome)
                alt = alleles[kept, 1] if alleles.shape[1] > 1 else [""] * len(chromosome)
                position = np.asarray(root["variant_position"][part])[kept]
                yield out, _name_snps(chromosome, ids, position, alt, alleles[kept, 0])

        yield CallStream(_list_samples(root["sample_id"][:]), blocks)


# EIGENSTRAT: .geno (text, packed, or packed by sample), .snp, .ind

CODES = {"90": "MT", "91": "XY"}


def _stream_eigenstrat(path: Path) -> Iterator[CallStream]:
    """Copies of the first allele of the .snp file."""
    base = path.with_suffix("") if path.suffix == ".gz" else path
    ind = _read_fields(base.with_suffix(".ind"), ("sample", "sex", "population"), 3)
    snp = _read_fields(base.with_suffix(".snp"), ("SNP", "chromosome", "Morgans", "position", "allele", "allele"), 4)
    samples = _list_samples([row[0] for row in ind], sex_codes(text_array([row[1] for row in ind])))
    samples = Samples(
        samples.fid, samples.iid, *(samples.father, samples.mother, samples.sex), text_array([row[2] for row in ind])
    )
    try:
        position, cm = ([float(row[j]) for row in snp] for j in (3, 2))
    except ValueError as error:
        raise SourceError(f"a position is not a number: {error}.", path=base.with_suffix(".snp")) from None
    snps = _name_snps(
        [CODES.get(row[1], row[1]) for row in snp],
        [row[0] for row in snp],
        position,
        [row[4] if len(row) > 5 else "." for row in snp],
        [row[5] if len(row) > 5 else "." for row in snp],
        100 * np.asarray(cm),
    )
    n, p = len(samples), len(snps)
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        head = file.read(48)
        kind = head.split()[0] if head.split() else b""
        if kind not in (b"GENO", b"TGENO"):
            file.seek(0)
            yield CallStream(samples, partial(_text_blocks, file=file, n=n, snps=snps))
            return
        fields = head.replace(b"\0", b" ").split()
        if [int(fields[1]), int(fields[2])] != [n, p]:
            raise SourceError(
                f"it holds {int(fields[1])} samples × {int(fields[2])} SNPs, .ind and .snp list {n} × {p}. "
                "Use the three files that were written together."
            )
        rows, row = (p, max(48, -(-n // 4))) if kind == b"GENO" else (n, max(48, -(-p // 4)))
        start = row if kind == b"GENO" else 48
        size = file.seek(0, os.SEEK_END)
        if size != start + rows * row:
            raise SourceError(f"cut short or damaged: {start + rows * row} bytes were expected, it has {size}.")
        hashes = [hash_names([row_[0] for row_ in table]) for table in (ind, snp)]
        differ = [
            f"The names in the {ending} file are not those that the .geno file was written with."
            for ending, own, found in zip((".ind", ".snp"), hashes, fields[3:5], strict=False)
            if int(found, 16) != own
        ]
        yield CallStream(
            samples, partial(_packed_blocks, file=file, start=start, row=row, kind=kind, snps=snps), remarks=differ
        )


def hash_names(names: list[str]) -> int:
    """The number by which EIGENSOFT's packed files know the names that they were written with."""
    found = 0
    for name in names:
        own = 0
        for letter in name.encode():
            own = (own * 23 + letter) & 0xFFFFFFFF
        found = ((found * 17) & 0xFFFFFFFF) ^ own
    return found


def _read_fields(path: Path, names: tuple[str, ...], least: int) -> list[list[str]]:
    """The lines of a text file of EIGENSTRAT, split at white space."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; a .geno file needs its .snp and .ind beside it.")
    rows = []
    for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), 1):
        fields = line.split()
        if fields and fields[0][0] != "#":
            if len(fields) < least:
                raise SourceError(
                    f"line {number} has {len(fields)} fields ({', '.join(names)} are expected).", path=path
                )
            rows.append(fields)
    return rows


def _text_blocks(stream: CallStream, *, file: Any, n: int, snps: Snps) -> Iterator[tuple[npt.NDArray[Any], Snps]]:
    """Lines of a digit for each sample: 0, 1, 2 copies, 9 missing."""
    table = np.full(256, -2, np.int8)
    table[[ord("0"), ord("1"), ord("2"), ord("9")]] = (0, 1, 2, -1)
    step, p = _rows(n), len(snps)
    for start in range(0, p, step):
        stop = min(start + step, p)
        lines = [file.readline().strip() for _ in range(start, stop)]
        for i, line in enumerate(lines, start + 1):
            if len(line) != n:
                raise SourceError(f"line {i} has {len(line)} genotypes; the .ind file lists {n} samples.")
        calls = table[np.frombuffer(b"".join(lines), np.uint8)].reshape(stop - start, n)
        if np.any(calls == -2):
            i, j = np.argwhere(calls == -2)[0]
            text = f"line {start + i + 1}, sample {j + 1}: {chr(lines[i][j])!r} is none of 0, 1, 2 and 9 (missing)."
            raise SourceError(text)
        yield calls, snps.take(slice(start, stop))
    if file.readline().strip():
        raise SourceError(f"there are more lines than the {p} SNPs of the .snp file.")


def _packed_blocks(
    stream: CallStream, *, file: Any, start: int, row: int, kind: bytes, snps: Snps
) -> Iterator[tuple[npt.NDArray[Any], Snps]]:
    """Two bits a genotype, the first sample (or SNP) in the highest: 0, 1, 2 copies, 3 missing."""
    n, p = len(stream.samples), len(snps)
    table = np.array([0, 1, 2, -1], np.int8)[(np.arange(256)[:, None] >> np.array([6, 4, 2, 0])) & 3]
    file.seek(start)
    if kind == b"GENO":
        step = _rows(n)
        for first in range(0, p, step):
            last = min(first + step, p)
            block = np.frombuffer(file.read((last - first) * row), np.uint8).reshape(last - first, row)
            yield table[block].reshape(last - first, -1)[:, :n], snps.take(slice(first, last))
        return
    spooled = spool_bytes(iter(partial(file.read, 1 << 24), b""), Path("TGENO")).reshape(n, row)
    step = -(-_rows(n) // 4)
    for first in range(0, -(-p // 4), step):
        calls = table[spooled[:, first : first + step]].reshape(n, -1)[:, : p - 4 * first]
        yield np.ascontiguousarray(calls.T), snps.take(slice(4 * first, 4 * first + calls.shape[1]))
