"""Make pruning_plink.json: lists by PLINK of made-up genotypes. Needs plink1.9 and plink2; run from this folder."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "genetics"))
from test_pruning import SETTINGS, draw_cohort, run_plink

from gramian.genetics.bed_writer import write_bed


def main() -> None:
    G = draw_cohort(2014, n=90, p=160)
    with tempfile.TemporaryDirectory() as name:
        bed = write_bed(Path(name, "x.bed"), G)
        removed = {" ".join(map(str, each)): run_plink("plink1.9", bed, *each)[1] for each in SETTINGS}
        assert all(run_plink("plink2", bed, *each)[1] == removed[" ".join(map(str, each))] for each in SETTINGS)
        version = subprocess.run(["plink1.9", "--version"], capture_output=True, text=True, check=True).stdout.split()
    made = {
        "source": f"PLINK {version[1]} --indep-pairwise WINDOW STEP R2, the same as by PLINK v2.00a3.5, of the "
        "genotypes below: a text for each SNP, copies of A1 of the samples, 9 for missing; .prune.out by setting",
        "calls": ["".join("9" if call < 0 else str(call) for call in row) for row in G.calls(0, G.shape[1])],
        "chromosome": G.snps.chromosome.tolist(),
        "position": G.snps.position.tolist(),
        "father": G.samples.father.tolist(),
        "removed": removed,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(made) + "\n", "utf-8")


if __name__ == "__main__":
    main()
