"""Make smartpca_tracy_widom.json from smartpca's log and eigenvalues: python smartpca_tracy_widom.py sm.log sm.eval."""

import json
import re
import sys
from pathlib import Path

TABLE = re.compile(r"^\s+(\d+)\s+([\d.]+)\s+(?:NA|-?[\d.]+)\s+(-?[\d.]+)\s+(\S+)\s+([\d.]+)$", re.MULTILINE)
KEPT = (1, 2, 3, 6, 12, 20, 30, 38, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 55, 60)


def main(log: str, evals: str) -> None:
    values = [float(line) for line in Path(evals).read_text("utf-8").split()]
    rows = [match.groups() for match in TABLE.finditer(Path(log).read_text("utf-8"))]
    kept = [row for row in rows if int(row[0]) in KEPT]
    made = {
        "source": "smartpca (EIGENSOFT) version 18140, `smartpca -p par`, numoutlieriter: 0, 957 people and 14079 "
        "SNPs of HapMap 3; the Tracy-Widom table of its log and its file of eigenvalues",
        "eigenvalues": [value for value in values if value > 0],
        "component": [int(row[0]) for row in kept],
        "statistic": [float(row[2]) for row in kept],
        "p_value": [float(row[3]) for row in kept],
        "effective_n": [float(row[4]) for row in kept],
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(made) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
