"""Make plink_quality.json with plink1.9 and plink2: python plink_quality.py HAPMAP, where HAPMAP.bed is HapMap 3."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
CODE = np.array([1, 3, 2, 0], dtype=np.uint8)  # of −1, 0, 1, 2 copies of A1
N = 83
CHROMOSOMES = ["0"] * 4 + [str(1 + j // 16) for j in range(352)] + ["X"] * 24 + ["Y"] * 8 + ["XY"] * 6 + ["MT"] * 6
FILTERS = {
    "missing": "--autosome --mind 0.1 --geno 0.05",
    "hwe": "--autosome --hwe 0.01",
    "mid-p": "--autosome --hwe 0.01 midp",
    "maf": "--autosome --maf 0.05",
    "all": "--autosome --mind 0.1 --geno 0.05 --hwe 0.001 --maf 0.1",
    "range": "--chr 2 --from-bp 25000 --to-bp 32000 --maf 0.05",
    "sex": "--chr 22-24,26 --mind 0.12 --geno 0.1 --maf 0.15",
}


def simulate() -> tuple[Array, Array]:
    rng = np.random.default_rng(7)
    p = len(CHROMOSOMES)
    sex = rng.integers(1, 3, N)
    sex[::20] = 0
    f = rng.uniform(0.02, 0.98, p)
    inbred = rng.choice([0.0, 0.0, 0.4, -0.3], p)[:, None]
    q = f[:, None]
    het = np.clip(2 * q * (1 - q) * (1 - inbred), 0, 2 * np.minimum(q, 1 - q))
    u = rng.uniform(size=(p, N))
    calls = np.where(u < q - het / 2, 2, np.where(u < q + het / 2, 1, 0)).astype(np.int8)
    calls[rng.choice(p, 6, replace=False)] = 0
    calls[rng.choice(p, 4, replace=False)] = 2
    lost = rng.choice([0.0, 0.01, 0.08], p)[:, None] + np.where(rng.uniform(size=N) < 0.06, 0.3, 0.0)
    calls[rng.uniform(size=calls.shape) < lost] = -1
    calls[rng.choice(p, 5, replace=False)] = -1
    one = np.isin(CHROMOSOMES, ["Y", "MT"])[:, None] | (np.array(CHROMOSOMES) == "X")[:, None] & (sex == 1)
    haploid = one & (calls == 1) & (rng.uniform(size=calls.shape) < 0.9)
    calls[haploid] = 2 * rng.integers(0, 2, int(haploid.sum()))
    return calls, sex


def write_bed(prefix: Path, calls: Array, sex: Array) -> bytes:
    p, n = calls.shape
    codes = np.zeros((p, -(-n // 4) * 4), np.uint8)
    codes[:, :n] = CODE[calls + 1]
    packed = (codes[:, 0::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4 | codes[:, 3::4] << 6).tobytes()
    prefix.with_suffix(".bed").write_bytes(b"\x6c\x1b\x01" + packed)
    fam = [f"F{i // 2} I{i} 0 0 {sex[i]} -9" for i in range(n)]
    bim = [f"{c}\trs{j}\t0\t{1000 * (j + 1)}\tA\tG" for j, c in enumerate(CHROMOSOMES)]
    prefix.with_suffix(".fam").write_text("\n".join(fam) + "\n")
    prefix.with_suffix(".bim").write_text("\n".join(bim) + "\n")
    return packed


def run(program: str, flags: str, bfile: Path, out: Path) -> None:
    command = [program, "--bfile", str(bfile), *flags.split(), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr)


def columns(path: Path, wanted: str, step: int = 1) -> dict[str, list[str]]:
    """Some columns of a report, of every so manieth row."""
    head, *lines = [line.split() for line in path.read_text().splitlines()]
    lines = [line for line in lines if "AFF" not in line and "UNAFF" not in line]  # PLINK 1.9 also tests by phenotype
    return {name: [line[head.index(name)] for line in lines[::step]] for name in wanted.split()}


def reports(bfile: Path, out: Path, snps: int = 1, people: int = 1) -> dict[str, dict[str, list[str]]]:
    """PLINK's reports on frequencies, missing calls, Hardy-Weinberg and heterozygosity."""
    run("plink1.9", "--freq --missing --hardy --allow-no-sex --keep-allele-order", bfile, out / "p1")
    run("plink1.9", "--hardy midp --allow-no-sex --keep-allele-order", bfile, out / "p1m")
    run("plink2", "--hardy", bfile, out / "p2")
    run("plink2", "--autosome --het", bfile, out / "p2")
    run("plink2", "--hardy midp", bfile, out / "p2m")
    return {
        "p1.frq": columns(out / "p1.frq", "MAF NCHROBS", snps),
        "p1.lmiss": columns(out / "p1.lmiss", "N_MISS N_GENO", snps),
        "p1.hwe": columns(out / "p1.hwe", "GENO O(HET) E(HET) P", snps),
        "p1m.hwe": columns(out / "p1m.hwe", "P", snps),
        "p2.hardy": columns(out / "p2.hardy", "ID HOM_A1_CT HET_A1_CT TWO_AX_CT P", snps),
        "p2m.hardy": columns(out / "p2m.hardy", "MIDP", snps),
        "p1.imiss": columns(out / "p1.imiss", "N_MISS N_GENO", people),
        "p2.het": columns(out / "p2.het", "O(HOM) E(HOM) OBS_CT F", people),
    }


def filtered(bfile: Path, out: Path) -> dict[str, dict[str, object]]:
    """What is left after filters, on which both programs agree: numbers of SNPs and samples, counted from 0."""
    found: dict[str, dict[str, object]] = {}
    for name, flags in FILTERS.items():
        left = []
        for program, extra in (("plink1.9", "--allow-no-sex"), ("plink2", "")):
            run(program, f"{flags} --write-snplist --make-just-fam {extra}", bfile, out / "f")
            snps = [int(name[2:]) for name in (out / "f.snplist").read_text().split()]
            samples = [int(line.split()[1][1:]) for line in (out / "f.fam").read_text().splitlines()]
            left.append({"flags": flags, "snps": snps, "samples": samples})
        assert left[0] == left[1], name
        found[name] = left[0]
    return found


def main(hapmap: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        calls, sex = simulate()
        packed = write_bed(out / "study", calls, sex)
        content: dict[str, object] = {
            "source": "tests/data/plink_quality.py: a simulated study in the bytes of its .bed file, and the reports "
            "of PLINK v1.90b6.26 and v2.00a3.5 on it and on every 300th SNP of HapMap 3 (957 people, 14079 SNPs), "
            "with the flags given there",
            "n": N,
            "sex": sex.tolist(),
            "chromosomes": CHROMOSOMES,
            "packed": packed.hex(),
            "reports": reports(out / "study", out),
            "filters": filtered(out / "study", out),
        }
        if hapmap:
            content["hapmap"] = reports(Path(hapmap), out, snps=300, people=40)
    Path(__file__).with_suffix(".json").write_text(json.dumps(content) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
