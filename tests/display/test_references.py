"""Every picture of two real tables is as it was when somebody looked at it: ``references`` holds them.

What is drawn is compared by its data: names, points, bars, curves and limits of the axes, which are the same with every
matplotlib. Pixels, which are not, are compared blurred, for what has vanished or lies elsewhere.
``python tests/display/test_references.py`` writes the references anew; look at what changed.
"""

import io
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter
from scipy.stats import norm
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine

from gramian import PCA, GaussianMixture, KernelPCA, KernelRidgeCV, Ridge, RidgeCV, display, rank_advice
from gramian.analysis import monitor, procrustes, select_mixture
from gramian.display import (
    BinnedMixtureDisplay,
    BiplotDisplay,
    ContributionsDisplay,
    CorrelationCircleDisplay,
    EmbeddingDisplay,
    FeatureSharesDisplay,
    FitDisplay,
    KernelFieldDisplay,
    LeaveOneOutDisplay,
    LoadingsDisplay,
    ManhattanDisplay,
    MapDisplay,
    MixtureChoiceDisplay,
    MixtureDisplay,
    MonitoringDisplay,
    PredictionBandDisplay,
    ProfileDisplay,
    QuantileDisplay,
    ReconstructionDisplay,
    ResidualsDisplay,
    RidgePathDisplay,
    ScoreDisplay,
    ScreeDisplay,
    UncertaintyDisplay,
)
from gramian.likelihood import fit

PLACE = Path(__file__).with_name("references")
ARTISTS = PLACE / "artists.json"
DPI, BLUR = 36, 5.0  # dots per inch, and the standard deviation of the blur in pixels
MEAN, WORST = 0.03, 0.2  # of the range from black to white; matplotlib 3.10 and 3.11 differ by 0.022 and 0.14


@cache
def table(name):
    """Columns of numbers, groups and a target of a real table, as frames where it has names."""
    pandas = pytest.importorskip("pandas")
    if name == "decathlon":
        frame = pandas.read_csv(Path(__file__).parents[1] / "data" / "decathlon.csv", index_col=0)
        return frame.iloc[:, :10], frame["Competition"], frame["Points"].astype(float)
    data = {"iris": load_iris, "wine": load_wine, "diabetes": load_diabetes}[name](as_frame=True)
    X = data.data.rename(columns=lambda column: column.removesuffix(" (cm)"))
    if name == "diabetes":
        return X, None, data.target.rename("progression")
    return X, data.target_names[data.target], X.iloc[:, 0]


@cache
def pca(name, k=3):
    return PCA(k, scale=True).fit(table(name)[0])


def two(name):
    """Two columns of a table, of unlike units where it has such."""
    X = table(name)[0]
    return X.iloc[:, [2, 3]] if name == "iris" else X.iloc[:, [0, 12]]


@cache
def mixture(name):
    X = two(name)
    return GaussianMixture(2, means_init=X.quantile([0.1, 0.9]).to_numpy()).fit(X)  # which keeps their order


def digits(kind):
    X, digit = load_digits(return_X_y=True)
    rows = X[digit == kind]
    return ReconstructionDisplay.from_estimator(PCA(8).fit(rows), rows[:3], image_shape=(8, 8), counts=[1, 4, 8])


def bins(name):
    x = two(name).iloc[:, 0]
    counts, edges = np.histogram(x, bins=14)
    model = GaussianMixture(2, means_init=x.quantile([0.1, 0.9]).to_numpy()[:, None])  # which keeps their order
    return BinnedMixtureDisplay.from_estimator(model.fit_binned(edges, counts), edges, counts, name=x.name)


def choice(name):
    return select_mixture(
        GaussianMixture(random_state=0), two(name), n_components=(1, 2, 3), covariance_types=("EII", "EEE", "VVV")
    )


def residuals(name):
    X, _, y = table(name)
    return ResidualsDisplay.from_estimator(Ridge(1.0).fit(X, y), X, y, left_out=True)


def band(name):
    X, _, y = table(name)
    x = X.iloc[:, [2]] if name == "diabetes" else X.iloc[:, [0]]
    return PredictionBandDisplay.from_estimator(Ridge(1e-3).fit(x, y), x, y)


def path(name, how):
    X, _, y = table(name)
    X = X / X.std()
    if how is RidgePathDisplay:
        return how.from_estimator(RidgeCV(np.geomspace(1e-2, 1e4, 25)).fit(X, y))
    model = KernelRidgeCV(np.geomspace(1e-3, 1e1, 9), kernel="rbf", gamma=[0.003, 0.03, 0.3])
    return how.from_estimator(model.fit(X.iloc[:120], y.iloc[:120]))


def shares(name):
    """Shares that follow from widths, the first column having the smallest."""
    names = table(name)[0].columns[:6]
    widths = np.geomspace(0.5, 50, len(names))
    return FeatureSharesDisplay(names, widths**-2 / np.sum(widths**-2), widths=widths).plot()


def field(name, how):
    X = two(name)
    return how.from_estimator(KernelPCA(2, kernel="rbf", gamma=1e-5 if name == "wine" else 0.5).fit(X), X)


def places(name):
    """Scores of some columns moved onto those of the others."""
    X, labels, _ = table(name)
    Z = (X - X.mean()) / X.std()
    known, found = PCA(2).fit_transform(Z.iloc[:, ::2]), PCA(2).fit_transform(Z)
    return MapDisplay.from_alignment(procrustes(found, known), found, known, labels=labels)


def fitted(name, how):
    x = two(name).iloc[:, 0] if name == "iris" else table(name)[0].iloc[:, 0]
    estimate = fit("gamma" if name == "iris" else "normal", x)
    return how.from_estimator(estimate, **({"name": x.name} if how is FitDisplay else {}))


def score_cells(name):
    """Two-sided p-values of every cell among those of its column, columns for chromosomes."""
    X = table(name)[0]
    z = np.abs((X - X.mean()) / X.std()).to_numpy()
    return np.repeat([str(j + 1) for j in range(X.shape[1])], len(X)), np.tile(np.arange(len(X)) + 1, X.shape[1]), z


def along_genome(name):
    chromosome, position, z = score_cells(name)
    return ManhattanDisplay(chromosome, position, 2 * norm.sf(z.T.ravel() ** 2), name=name).plot()


PICTURES = {
    "scree": lambda name: ScreeDisplay.from_estimator(pca(name), advice=rank_advice(table(name)[0], random_state=0)),
    "scores": lambda name: ScoreDisplay.from_estimator(pca(name), table(name)[0], labels=table(name)[1]),
    "loadings": lambda name: LoadingsDisplay.from_estimator(pca(name)),
    "biplot": lambda name: BiplotDisplay.from_estimator(pca(name, 2), table(name)[0], labels=table(name)[1]),
    "circle": lambda name: CorrelationCircleDisplay.from_estimator(pca(name)),
    "contributions": lambda name: ContributionsDisplay.from_estimator(pca(name), table(name)[0]),
    "monitoring": lambda name: MonitoringDisplay.from_estimator(monitor(pca(name), table(name)[0]), table(name)[0]),
    "reconstruction": lambda name: digits({"iris": 3, "decathlon": 8}[name]),
    "places": places,
    "path": lambda name: path(name, RidgePathDisplay),
    "choice-of-lambda": lambda name: path(name, LeaveOneOutDisplay),
    "residuals": residuals,
    "band": band,
    "shares-of-features": shares,
    "field": lambda name: field(name, KernelFieldDisplay),
    "embedding": lambda name: field(name, EmbeddingDisplay),
    "mixture": lambda name: MixtureDisplay.from_estimator(mixture(name), two(name)),
    "bins": bins,
    "uncertainty": lambda name: UncertaintyDisplay.from_estimator(mixture(name), two(name)),
    "choice-of-mixture": lambda name: MixtureChoiceDisplay.from_estimator(choice(name)),
    "fit": lambda name: fitted(name, FitDisplay),
    "profile": lambda name: fitted(name, ProfileDisplay),
    "tests-along-genome": along_genome,
    "quantiles-of-tests": lambda name: QuantileDisplay(2 * norm.sf(score_cells(name)[2]), name=name).plot(),
}
REGRESSIONS = ("path", "choice-of-lambda", "residuals", "band", "shares-of-features")
PLANES = ("field", "embedding", "mixture", "bins", "uncertainty", "choice-of-mixture", "fit", "profile")


def tables_of(picture):
    if picture in REGRESSIONS:
        return ("diabetes", "decathlon")
    return ("iris", "wine") if picture in PLANES else ("iris", "decathlon")


CASES = [(picture, name) for picture in PICTURES for name in tables_of(picture)]


def draw(shown):
    buffer = io.BytesIO()
    shown.figure_.savefig(buffer, format="png", dpi=DPI)
    return Image.open(buffer).convert("RGB")


def moments(points):
    """How many points there are, their middle and their spread: in any order."""
    points = np.asarray(np.ma.filled(np.ma.asarray(points, dtype=float), np.nan)).reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    return [len(points), *points.mean(axis=0), *points.std(axis=0)] if len(points) else [0]


def artists(shown):
    """What each of the axes holds: its names, and in a row of numbers each line, cloud and bar, with the limits."""
    found = []
    for ax in shown.figure_.axes:
        legend = ax.get_legend()
        names = [ax.get_title(loc="left"), ax.get_title(), ax.get_xlabel(), ax.get_ylabel()]
        names += [] if legend is None else [text.get_text() for text in legend.get_texts()]
        rows = [[*ax.get_xlim(), *ax.get_ylim()]]
        rows += [moments(np.column_stack(np.broadcast_arrays(*line.get_data()))) for line in ax.get_lines()]
        rows += [moments(part.get_offsets()) for part in ax.collections if type(part).__name__ == "PathCollection"]
        bars = [bar.get_bbox().bounds for bar in ax.patches if type(bar).__name__ == "Rectangle"]
        rows += [list(bounds) for bounds in bars]
        rows += [[float(np.mean(image.get_array()))] for image in ax.images]
        found.append({"names": names, "rows": [[float(f"{x:.5g}") for x in row] for row in rows]})
    return found


@pytest.mark.parametrize(("picture", "name"), CASES)
def test_a_picture_is_as_it_was_looked_at(picture, name):
    shown, known = PICTURES[picture](name), json.loads(ARTISTS.read_text("utf-8"))[f"{picture}-{name}"]
    for ours, theirs in zip(artists(shown), known, strict=True):
        assert ours["names"] == theirs["names"]
        for row, before in zip(ours["rows"], theirs["rows"], strict=True):
            np.testing.assert_allclose(row, before, rtol=2e-3, atol=2e-3 * max(map(abs, before)))
    reference = Image.open(PLACE / f"{picture}-{name}.png").convert("RGB")
    both = (np.asarray(image.resize(reference.size), dtype=float) / 255 for image in (draw(shown), reference))
    off = np.abs(np.subtract(*(gaussian_filter(image, (BLUR, BLUR, 0)) for image in both))).max(axis=2)
    assert off.mean() < MEAN
    assert off.max() < WORST


def test_every_display_has_references():
    classes = {type(PICTURES[picture](name)) for picture, name in CASES if picture != "reconstruction"}
    assert {cls.__name__ for cls in classes} | {"ReconstructionDisplay", "Display"} == {
        name for name in display.__all__ if name.endswith("Display")
    }


if __name__ == "__main__":
    PLACE.mkdir(exist_ok=True)
    drawn = {f"{picture}-{name}": PICTURES[picture](name) for picture, name in CASES}
    ARTISTS.write_text(json.dumps({key: artists(shown) for key, shown in drawn.items()}, ensure_ascii=False) + "\n")
    for key, shown in drawn.items():
        draw(shown).quantize(48).save(PLACE / f"{key}.png", optimize=True)
