"""Make king_plink2.json: kinship and GRM by plink2 of made-up families. Needs plink2; run from this folder."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "genetics"))
from test_relatives import draw_families

from gramian.genetics.bed_writer import write_bed


def main() -> None:
    G = draw_families(2010, n=54, p=150)
    with tempfile.TemporaryDirectory() as name:
        write_bed(Path(name, "x.bed"), G)

        def run(*options: str) -> None:
            subprocess.run(
                ["plink2", "--bfile", "x", *options, "--out", "x"], cwd=name, check=True, capture_output=True
            )

        run("--make-king-table")
        table = Path(name, "x.kin0").read_text().splitlines()
        removed = {}
        for cutoff in (0.177, 0.0884, 0.02, 0.0):
            run("--king-cutoff", str(cutoff))
            lines = Path(name, "x.king.cutoff.out.id").read_text().splitlines()[1:]
            removed[str(cutoff)] = [line.split()[1] for line in lines]
        run("--make-grm-bin")
        matrix, counts = (np.fromfile(Path(name, f"x.grm.{end}"), "<f4").tolist() for end in ("bin", "N.bin"))
        version = subprocess.run(["plink2", "--version"], capture_output=True, text=True, check=True).stdout.split()
    made = {
        "source": f"PLINK {version[1]} --make-king-table, --king-cutoff and --make-grm-bin of the genotypes below: a "
        "text for each SNP, copies of A1 of the samples, 9 for missing",
        "calls": ["".join("9" if call < 0 else str(call) for call in row) for row in G.calls(0, G.shape[1])],
        "table": table,
        "removed": removed,
        "matrix": [round(value, 7) for value in matrix],
        "counts": counts,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(made) + "\n", "utf-8")


if __name__ == "__main__":
    main()
