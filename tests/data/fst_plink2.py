"""Make fst_plink2.json: F_ST by plink2 of a few made-up genotypes. Needs plink2 on the path; run from this folder."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from gramian.genetics.bed_writer import write_bed

SIZES = {"east": 14, "north": 9, "west": 25}
SNPS = 120
METHODS = {"hudson": "hudson", "weir-cockerham": "wc"}


def summary(folder: Path, method: str) -> list[list[str]]:
    command = ["plink2", "--bfile", "x", "--pheno", "groups.txt", "--fst", "group", f"method={method}", "--out", method]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return [line.split() for line in (folder / f"{method}.fst.summary").read_text().splitlines()[1:]]


def main() -> None:
    rng = np.random.default_rng(2013)
    labels = [name for name, size in SIZES.items() for _ in range(size)]
    p = rng.uniform(0.05, 0.6, (SNPS, 1))
    groups = np.repeat(rng.beta(9 * p, 9 * (1 - p), (SNPS, len(SIZES))), list(SIZES.values()), axis=1)
    calls = rng.binomial(2, groups).astype(np.int8)
    calls[rng.random(calls.shape) < 0.05] = -1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_bed(folder / "x.bed", calls)
        lines = ["#IID\tgroup", *(f"s{i + 1}\t{label}" for i, label in enumerate(labels))]
        (folder / "groups.txt").write_text("\n".join(lines) + "\n")
        version = subprocess.run(["plink2", "--version"], capture_output=True, text=True, check=True).stdout.split()
        found = {ours: summary(folder, theirs) for ours, theirs in METHODS.items()}
    made = {
        "source": f"PLINK {version[1]}, plink2 --bfile x --pheno groups.txt --fst group method=hudson|wc, of the "
        "genotypes below: a text for each SNP, copies of A1 of the samples, 9 for missing",
        "labels": labels,
        "calls": ["".join("9" if call < 0 else str(call) for call in row) for row in calls],
        "pairs": [row[:2] for row in found["hudson"]],
        **{method: [float(row[2]) for row in rows] for method, rows in found.items()},
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
