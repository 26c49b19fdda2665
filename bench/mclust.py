"""Sweeps over mixtures against R's mclust: ``python -m bench.mclust``.

Both fit all models with 1 to 5 components to the numeric columns of data sets that come with R and mclust, each from
the starts it chooses. Of every cell BIC is compared (relative difference above 1e-3) where both have a proper
solution, then the seconds of processors that the sweeps took. Without Rscript and mclust nothing is measured, and a
line says so.
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from time import process_time

import numpy as np

from gramian import GaussianMixture
from gramian.analysis import select_mixture

APART = 1e-3  # relative difference of BIC that counts
TABLES = """
faithful = faithful
iris = iris[, 1:4]
diabetes = mclust::diabetes[, -1]
banknote = mclust::banknote[, -1]
acidity = mclust::acidity
precip = as.numeric(precip)
thyroid = mclust::thyroid[, -1]
trees = trees
swiss = swiss
stackloss = stackloss
attitude = attitude
quakes = quakes[, 1:4]
rock = rock
mtcars = mtcars[, c(1, 3, 4, 5, 6, 7)]
airquality = na.omit(airquality[, 1:4])
USArrests = USArrests
women = women
cars = cars
pressure = pressure
attenu = na.omit(attenu[, c(2, 4, 5)])
rivers = as.numeric(rivers)
islands = as.numeric(islands)
longley = longley[, 1:6]
ChickWeight = ChickWeight[, 1:2]
Orange = Orange[, 2:3]
EuroUnemployment = mclust::EuroUnemployment
LifeCycleSavings = LifeCycleSavings
state = state.x77
infert = infert[, c(2, 7, 8)]
nottem = as.numeric(nottem)
lh = as.numeric(lh)
eurodist = as.numeric(eurodist)
"""
SCRIPT = """
suppressMessages(library(mclust))
folder <- commandArgs(trailingOnly = TRUE)[1]
for (name in names(tables)) {
  X <- data.matrix(tables[[name]])
  write.table(format(X, digits = 17), file.path(folder, paste0(name, ".txt")), row.names = FALSE, col.names = FALSE,
    quote = FALSE)
  if (ncol(X) == 1) X <- X[, 1]
  start <- proc.time()
  bic <- mclustBIC(X, G = 1:5, verbose = FALSE)
  seconds <- sum((proc.time() - start)[1:2])
  for (model in colnames(bic)) for (k in rownames(bic))
    cat(name, model, k, format(bic[k, model], digits = 12), seconds, sep = ",", fill = TRUE)
}
"""


# of cells in which ours is worse: the parameters of mclust's, to see whether they are a proper solution
AGAIN = """
cells <- read.csv(file.path(folder, "cells.csv"), stringsAsFactors = FALSE)
for (i in seq_len(nrow(cells))) {
  X <- data.matrix(tables[[cells$name[i]]])
  if (ncol(X) == 1) X <- X[, 1]
  fit <- Mclust(X, G = cells$k[i], modelNames = cells$model[i], verbose = FALSE)
  d <- NCOL(X)
  sigma <- if (d == 1) rep(fit$parameters$variance$sigmasq, length.out = cells$k[i]) else fit$parameters$variance$sigma
  values <- c(fit$parameters$pro, t(matrix(fit$parameters$mean, d)), sigma)
  write(format(values, digits = 17), file.path(folder, paste0("cell", i, ".txt")), ncolumns = 1)
}
"""


def main() -> int:
    """Run both over all tables and print what differs."""
    if shutil.which("Rscript") is None:
        print("Rscript is not installed: nothing was measured (Debian: r-base-core, r-cran-mclust).")
        return 0
    listed = ",\n".join(TABLES.strip().splitlines())
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "sweep.R")
        script.write_text(f"suppressMessages(library(mclust))\ntables <- list({listed})\n{SCRIPT}", encoding="utf-8")
        run = subprocess.run(["Rscript", str(script), folder], capture_output=True, text=True, check=False)
        if run.returncode:
            print(f"R has no mclust, or failed: {run.stderr.strip()[-300:]}")
            return 0
        theirs: dict[str, dict[tuple[str, int], float]] = {}
        clock: dict[str, float] = {}
        for name, model, k, value, seconds in csv.reader(run.stdout.splitlines()):
            number = np.nan if value.strip() == "NA" else float(value)
            theirs.setdefault(name, {})[model, int(k)] = number
            clock[name] = float(seconds)
        return compare(theirs, clock, Path(folder), listed)


def judge(worse: list[tuple[str, str, int]], folder: Path, tables: str) -> list[str]:
    """What is wrong with the optima that mclust's solutions of some cells lead to; "" where nothing is."""
    lines = ["name,model,k", *(",".join(map(str, cell)) for cell in worse)]
    (folder / "cells.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    script = folder / "again.R"
    start = (
        f"suppressMessages(library(mclust))\ntables <- list({tables})\nfolder <- commandArgs(trailingOnly = TRUE)[1]\n"
    )
    script.write_text(start + AGAIN, encoding="utf-8")
    subprocess.run(["Rscript", str(script), str(folder)], check=True, capture_output=True)
    said = []
    for i, (name, model, k) in enumerate(worse, start=1):
        X = np.loadtxt(folder / f"{name}.txt", ndmin=2)
        d, values = X.shape[1], np.loadtxt(folder / f"cell{i}.txt")
        weights, means = values[:k], values[k : k + k * d].reshape(d, k, order="C").T
        spread = values[k + k * d :].reshape(k, d, d)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = {"weights_init": weights / weights.sum(), "means_init": means}
            precisions = np.linalg.inv(spread)
            same = GaussianMixture(k, covariance_type=model, precisions_init=precisions, **given).fit(X)
        problem = same.landscape_.problems[same.landscape_.kept]
        said.append(problem)
        print(f"  worse: {name} {model} {k}: mclust's has {problem or 'nothing wrong'}")
    return said


def compare(theirs: dict[str, dict[tuple[str, int], float]], clock: dict[str, float], folder: Path, tables: str) -> int:
    """Print each cell that is worse than mclust's, then the counts and the seconds."""
    fates, ours, worse = Counter[str](), 0.0, list[tuple[str, str, int]]()
    for name, cells in theirs.items():
        X = np.loadtxt(folder / f"{name}.txt", ndmin=2)
        start = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = select_mixture(GaussianMixture(), X, n_components=range(1, 6))
        seconds = process_time() - start
        ours += seconds
        print(f"{name}: {len(X)} × {X.shape[1]}, {seconds:.2f} s, mclust {clock[name]:.2f} s", flush=True)
        for (model, k), value in cells.items():
            i, j = found.n_components.index(k), found.covariance_types.index(model)
            gap = (value + found.bic[i, j]) / abs(value)
            if np.isnan(value):
                fate = "mclust has none"
            elif found.problems[i][j]:
                fate = "ours collapsed or spurious"
            else:
                fate = "worse" if gap > APART else "better" if gap < -APART else "equal"
            fates[fate] += 1
            if fate == "worse":
                worse.append((name, model, k))
                print(f"  worse: {name} {model} {k}: {-found.bic[i, j]:.2f}, mclust {value:.2f}")
        for inversion in found.inversions:
            print(f"  {name}: {inversion}")
    improper = sum(bool(problem) for problem in judge(worse, folder, tables)) if worse else 0
    fates["worse"] -= improper
    fates["mclust's is improper"] += improper
    print(
        f"{len(theirs)} tables, {sum(fates.values())} cells: " + ", ".join(f"{n} {fate}" for fate, n in fates.items())
    )
    print(
        f"seconds of processors: gramian {ours:.1f}, mclust {sum(clock.values()):.2f}, "
        f"ratio {ours / sum(clock.values()):.1f}; {os.cpu_count()} cores"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
