"""Run the workloads and write the report: ``python -m bench.gpu [--only NAME ...] [--uci FOLDER] [--out FILE]``.

Each workload warms up with a small problem first, so that compiling is not counted; the data are on the GPU, and times
run until the results are on the host. What fails is written down as it failed, and the others go on.
"""

import argparse
import platform
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from bench.gpu import fits, genotypes, products, start
from bench.gpu.timing import Ceilings, Row, ceilings

WORKLOADS: dict[str, Callable[[Ceilings], Iterator[Row]]] = {
    "products": products.rows,
    "pca": fits.pca,
    "mixture": fits.mixture,
    "genotypes": genotypes.rows,
    "kinship": genotypes.kinship,
    "kernel-pca": fits.kernel_pca,
    "kernel-ridge": fits.kernel_ridge,
    "uploads": fits.uploads,
    "start": start.rows,
}
HEAD = ["| work | time | how good | limit by bytes or arithmetic (share) | peer in this run |", "|---|---|---|---|---|"]


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=[*WORKLOADS, "uci"])
    parser.add_argument("--uci", type=Path, help="folder of the UCI sets")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no CUDA GPU on this machine.")
    most = ceilings()
    chosen = dict(WORKLOADS)
    if given.uci is not None:
        chosen["uci"] = lambda _: fits.uci(given.uci)
    lines = [*head(), *most.lines(), "", *HEAD]
    print("\n".join(lines), flush=True)
    for name, workload in chosen.items():
        if given.only is None or name in given.only:
            lines += list(shown(name, partial(workload, most)))
            if given.out is not None:
                given.out.write_text("\n".join(lines) + "\n", "utf-8")


def head() -> list[str]:
    """What ran, and on what."""
    gpu = torch.cuda.get_device_properties(0)
    said = " ".join(["python -m bench.gpu", *sys.argv[1:]])
    return [
        f"# On a GPU, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`{said}` on {gpu.name}, {gpu.total_memory / 2**30:.0f} GiB, {gpu.multi_processor_count} multiprocessors; "
        f"Python {platform.python_version()}, torch {torch.__version__}, Triton {_version('triton')}, CUDA "
        f"{torch.version.cuda}, scikit-learn {_version('scikit-learn')}, NumPy {_version('numpy')}.",
        "",
    ]


def shown(name: str, workload: Callable[[], Iterator[Row]]) -> Iterator[str]:
    """The lines of a workload, printed as they come; what fails says so."""
    try:
        for row in workload():
            print(row.line(), flush=True)
            yield row.line()
    except Exception as error:  # the report says what failed, and the next workload runs
        traceback.print_exc()
        yield f"| {name} | | failed: {type(error).__name__}: {str(error).splitlines()[0]} | | |"
    torch.cuda.empty_cache()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


if __name__ == "__main__":
    main()
