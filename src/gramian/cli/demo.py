"""``gramian demo``: PCA, regressions and a mixture of small data sets, with numbers to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian.cli import kernel_demo, mixture_demo, regression_demo
from gramian.cli.kernel_demo import Denoised, denoised_digits, published_projection, shape_pictures
from gramian.cli.mixture_demo import crab_numbers, crabs
from gramian.cli.outputs import refuse_existing, staged, write_json
from gramian.cli.page import Number, demo_page
from gramian.cli.regression_demo import Regressions, regressions
from gramian.cli.show import certificate_panel, variance_table
from gramian.display import reconstruction_gallery, save_picture, score_plot, scree
from gramian.estimators import PCA, GaussianMixture
from gramian.results import Certificate, Optimum, Residual

__all__ = ["FILES", "demo"]

T = TypeVar("T")

FILES = (
    *kernel_demo.PICTURES,
    *mixture_demo.PICTURES,
    *regression_demo.PICTURES,
    "certificates.json",
    "digits_reconstruction.png",
    "digits_scores.png",
    "digits_scree.png",
    "index.html",
    "iris_scores.png",
    "iris_scree.png",
)

# S. Raschka, "Principal Component Analysis in 3 simple steps" (2015), printed to eight decimals.
PUBLISHED = {
    "standardised covariance": ("2.93035378", "0.92740362", "0.14834223", "0.02074601"),
    "correlation matrix": ("2.91081808", "0.92122093", "0.14735328", "0.02060771"),
}
# Those numbers come from the UCI repository's edition of iris, which mistypes two flowers of Fisher's table.
UCI_ROWS = {34: (4.9, 3.1, 1.5, 0.1), 37: (4.9, 3.1, 1.5, 0.1)}

CLASSIFIER_COMPONENTS = 30
SHOWN_DIGITS = (0, 11, 22, 63)


@dataclass(frozen=True)
class Study:
    """A data set, its fitted PCA and the scores."""

    name: str
    X: NDArray[Any]
    labels: NDArray[Any]
    model: PCA
    scores: NDArray[Any]


@click.command()
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Folder.")
@click.option("--force", is_flag=True, help="Replace an earlier demo.")
@click.pass_context
def demo(context: click.Context, out: Path, force: bool) -> None:
    """PCA, regressions and a mixture of small data sets: published numbers, certificates and pictures."""
    refuse_existing(out, FILES, force)
    console = Console()
    with _progress() as progress, staged(out) as folder:
        step = _stepper(progress)
        iris = step("PCA of iris, standardised", _iris)
        digits = step("PCA of 1,797 digits of 8 × 8 pixels", _digits)
        pearson = step("Two normal curves for Pearson's crabs", lambda: crabs(folder))
        numbers = step(
            "Published numbers", lambda: [*published_numbers(), published_projection(), *crab_numbers(pearson)]
        )
        accuracy = step("PCA → logistic regression", digit_accuracy)
        step("Pictures", lambda: _pictures(folder, iris, digits))
        step("Kernel PCA of moons, circles and swiss roll", lambda: shape_pictures(folder))
        denoised = step("Kernel PCA → digits without noise", lambda: denoised_digits(folder))
        fitted = step("Ridge and kernel ridge regression", lambda: regressions(folder))
        certificates = _certificates(iris, digits, denoised, fitted, pearson)
        step("Page", lambda: _page(folder, digits, certificates, numbers, accuracy, denoised))
    _report(console, (iris, digits), numbers, accuracy, denoised)
    console.print(_regression_line(fitted), highlight=False)
    console.print(f"Open {out / 'index.html'} in a browser.", highlight=False, soft_wrap=True)
    certified = all(certificate.converged for certificate in certificates.values())
    context.exit(0 if certified and all(number.agrees for number in numbers) else 1)


def _progress() -> Progress:
    bar = (SpinnerColumn(), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    text = TextColumn("{task.description}")
    return Progress(*bar, text, console=console, transient=True, disable=not console.is_terminal)


def _stepper(progress: Progress) -> Callable[[str, Callable[[], Any]], Any]:
    task = progress.add_task("", total=10)

    def step(text: str, work: Callable[[], T]) -> T:
        progress.update(task, description=text)
        result = work()
        progress.advance(task)
        return result

    return step


def _iris() -> Study:
    data = load_iris()
    model = PCA(scale=True)
    scores = model.fit_transform(data.data)
    return Study("iris", data.data, data.target_names[data.target], model, scores)


def _digits() -> Study:
    data = load_digits()
    model = PCA()
    scores = model.fit_transform(data.data)
    return Study("digits", data.data, data.target, model, scores)


def published_numbers() -> list[Number]:
    """Compare eigenvalues of the iris data with those in print, digit by digit.

    Standardising divides by the standard deviation with divisor n and the covariance divides by n − 1, so the
    first set is n / (n − 1) times the second, which is that of the correlation matrix.
    """
    X = load_iris().data.copy()
    for row, values in UCI_ROWS.items():
        X[row] = values
    ours = (PCA().fit(StandardScaler().fit_transform(X)), PCA(scale=True).fit(X))
    return [
        Number(f"iris, {matrix}, λ{j}", text, f"{value:.8f}")
        for (matrix, texts), model in zip(PUBLISHED.items(), ours, strict=True)
        for j, (text, value) in enumerate(zip(texts, model.explained_variance_, strict=True), start=1)
    ]


def digit_accuracy() -> tuple[float, float]:
    """Return the share of unseen digits that logistic regression names from 30 scores, and from 64 pixels."""
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    first = PCA(n_components=CLASSIFIER_COMPONENTS, whiten=True)
    pipelines = [make_pipeline(step, LogisticRegression(max_iter=2000)) for step in (first, StandardScaler())]
    reduced, full = (float(pipeline.fit(train, y_train).score(test, y_test)) for pipeline in pipelines)
    return reduced, full


def _pictures(folder: Path, iris: Study, digits: Study) -> None:
    for study in (iris, digits):
        save_picture(scree(study.model), folder / f"{study.name}_scree.png")
        plot = score_plot(study.scores, study.model, study.labels)
        save_picture(plot, folder / f"{study.name}_scores.png")
    rows = digits.X[list(SHOWN_DIGITS)]
    gallery = reconstruction_gallery(digits.model, rows, image_shape=(8, 8), counts=(1, 2, 4, 8, 16, 32))
    save_picture(gallery, folder / "digits_reconstruction.png")


def _certificates(
    iris: Study, digits: Study, denoised: Denoised, fitted: Regressions, pearson: GaussianMixture
) -> dict[str, Certificate | Optimum | Residual]:
    return {
        "iris": iris.model.certificate_,
        "digits": digits.model.certificate_,
        "denoised": denoised.model.certificate_,
        "ridge": fitted.ridge.certificate_,
        "kernel_ridge": fitted.kernel.certificate_,
        "crabs": pearson.certificate_,
    }


def _page(
    folder: Path,
    digits: Study,
    certificates: dict[str, Certificate | Optimum | Residual],
    numbers: list[Number],
    accuracy: tuple[float, float],
    denoised: Denoised,
) -> None:
    write_json(folder / "certificates.json", {name: item.as_dict() for name, item in certificates.items()})
    captions = {"digits_components": components_for(digits.model, 0.95), "classifier": CLASSIFIER_COMPONENTS}
    page = demo_page(certificates, numbers, accuracy, captions, denoised.errors)
    (folder / "index.html").write_text(page, encoding="utf-8")


def _regression_line(fitted: Regressions) -> str:
    return (
        f"Ridge regression of diabetes: leave-one-out chooses λ = {fitted.ridge.alpha_:.3g} of 60. Kernel ridge of a "
        f"curve: γ = {fitted.kernel.gamma_:.3g}, λ = {fitted.kernel.alpha_:.3g} of 100 pairs, from 5 decompositions.\n"
    )


def components_for(model: PCA, share: float) -> int:
    """Return how many leading components hold at least this share of the variance."""
    return int(np.searchsorted(np.cumsum(model.explained_variance_ratio_), share)) + 1


def _report(
    console: Console,
    studies: tuple[Study, ...],
    numbers: list[Number],
    accuracy: tuple[float, float],
    denoised: Denoised,
) -> None:
    for study in studies:
        n, p = study.X.shape
        console.print(variance_table(study.model, f"{study.name}: {n} rows, {p} columns", most=4))
        console.print(certificate_panel(study.model.certificate_))
    table = Table(title="\nNumbers in print", box=rich.box.SIMPLE_HEAD, title_justify="left")
    for name in ("what", "published", "ours", "agree?"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for number in numbers:
        table.add_row(number.what, number.published, number.ours, number.verdict)
    console.print(table)
    reduced, full = accuracy
    console.print(
        f"Digits named right by logistic regression: {reduced:.1%} from {CLASSIFIER_COMPONENTS} scores, "
        f"{full:.1%} from all 64 pixels.",
        highlight=False,
    )
    errors = ", ".join(f"{name} {error:.4f}" for name, error in denoised.errors.items() if name != "original")
    console.print(f"Mean squared error of digits with noise: {errors}.\n", highlight=False)
