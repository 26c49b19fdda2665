"""Files of genotypes, known by their names: which are read, which are to be converted, which belong together."""

from __future__ import annotations

import glob
import os
import re
from itertools import product
from pathlib import Path

from gramian.sources.errors import SourceError

PLINK = (".bed", ".bed.gz", ".pgen")
VCF = (".vcf", ".vcf.gz", ".vcf.bgz", ".bcf")
VCF_ZARR = (".vcz", ".vcz.zip")
EIGENSTRAT = (".geno", ".geno.gz")
READ = (*PLINK, ".bgen", *VCF, *VCF_ZARR, *EIGENSTRAT)
# what is not read, and how to convert it
CONVERT = {
    ".ped": "plink1.9 --file {name} --make-bed --out {name}",
    ".tped": "plink1.9 --tfile {name} --make-bed --out {name}",
    ".lgen": "plink1.9 --lfile {name} --make-bed --out {name}",
    ".gen": "plink2 --gen {file} ref-first --sample {name}.sample --make-bed --out {name}",
    ".gen.gz": "plink2 --gen {file} ref-first --sample {name}.sample --make-bed --out {name}",
    ".haps": "plink2 --haps {file} ref-first --sample {name}.sample --make-bed --out {name}",
    ".sav": "sav export {file} {name}.bcf",
    ".gds": "snpgdsGDS2BED(snpgdsOpen('{file}'), '{name}') of R's SNPRelate",
    ".mt": "hail.export_plink(hail.read_matrix_table('{file}'), '{name}')",
}
BRACES = re.compile(r"\{([^{}]*)\}")
DIGITS = re.compile(r"(\d+)")


def find_ending(name: str, endings: tuple[str, ...] = READ) -> str:
    """The longest of the endings that a name has; "" where it has none.

    Examples
    --------
    >>> from gramian.sources.genotype_names import find_ending
    >>> find_ending("a/cohort.VCF.gz"), find_ending("table.csv")
    ('.vcf.gz', '')
    """
    return max((ending for ending in endings if name.lower().endswith(ending)), key=len, default="")


def is_genotype_name(name: str) -> bool:
    """Whether a name is that of a file of genotypes, of one that is to be converted, or of a VCF-Zarr store."""
    return bool(find_ending(name, (*READ, *CONVERT))) or Path(name, "call_genotype").is_dir()


def explain_conversion(name: str) -> str:
    """How a file that is not read becomes one that is; "" where it is read, or not known.

    Examples
    --------
    >>> from gramian.sources.genotype_names import explain_conversion
    >>> explain_conversion("study.ped")
    'Convert it: plink1.9 --file study --make-bed --out study.'
    """
    ending = find_ending(name, tuple(CONVERT))
    if not ending:
        return ""
    return f"Convert it: {CONVERT[ending].format(name=name[: -len(ending)], file=name)}."


def list_genotype_files(name: str | os.PathLike[str]) -> list[Path]:
    """The files that a name stands for: ``{1..22}`` and ``{X,Y}`` as they stand, ``*``, ``?``, ``[…]`` in order.

    Examples
    --------
    >>> from gramian.sources.genotype_names import list_genotype_files
    >>> [str(path) for path in list_genotype_files("chr{9..11}.bed")]
    ['chr9.bed', 'chr10.bed', 'chr11.bed']
    """
    text = os.fspath(name)
    if Path(text).exists():
        return [Path(text)]
    found: list[Path] = []
    for one in _expand_braces(text):
        matches = glob.glob(one, recursive=True) if glob.has_magic(one) else [one]
        if not matches:
            raise SourceError("the pattern matches no file.", path=one)
        found += map(Path, sorted(matches, key=_natural))
    twice = sorted({str(path) for path in found if found.count(path) > 1})
    if twice:
        raise SourceError(f"the file {twice[0]} is named more than once.", path=text)
    return found


def complete_name(word: str) -> str:
    """The name of a file of genotypes that is there, given without its ending; "" where there is none."""
    if word.startswith("-") or Path(word).exists():
        return ""
    return next((f"{word}{ending}" for ending in READ if Path(f"{word}{ending}").exists()), "")


def join_names(names: list[str]) -> str:
    """One name that :func:`list_genotype_files` takes for all of these.

    Examples
    --------
    >>> from gramian.sources.genotype_names import join_names
    >>> join_names(["a/chr1.bed", "a/chr2.bed"])
    'a/chr{1,2}.bed'
    """
    if len(names) == 1:
        return names[0]
    head = _common_start(names)
    rest = [name[len(head) :] for name in names]
    tail = _common_start([name[::-1] for name in rest])[::-1]
    return f"{head}{{{','.join(name[: len(name) - len(tail)] for name in rest)}}}{tail}"


def _common_start(names: list[str]) -> str:
    return names[0][: next((i for i, letters in enumerate(zip(*names, strict=False)) if len({*letters}) > 1), 0)]


def _expand_braces(text: str) -> list[str]:
    """Every name that braces stand for."""
    parts = BRACES.split(text)
    choices: list[list[str]] = []
    for i, part in enumerate(parts):
        ends = re.fullmatch(r"(\d+)\.\.(\d+)", part) if i % 2 else None
        if ends is not None:
            first, last = int(ends[1]), int(ends[2])
            step = 1 if first <= last else -1
            choices.append([str(k).zfill(len(ends[1])) for k in range(first, last + step, step)])
        elif i % 2 and "," in part:
            choices.append(part.split(","))
        else:
            choices.append([f"{{{part}}}" if i % 2 else part])
    return ["".join(words) for words in product(*choices)]


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Key by which chr2 is before chr10, and numbers before letters."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in DIGITS.split(name) if part]
