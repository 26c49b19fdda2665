r"""Kernel PCA that chooses its kernel and the number of its components by rows that it has not seen.

**Reconstruction.** A fifth of the rows is held out and a third of the cells of each is hidden, drawn once for all. The
hidden cells begin at the means of their columns; then the row is projected on the components of the other rows, and the
hidden cells are replaced by those of the pre-image, a few times. What is compared is the mean squared error of the
hidden cells, in variances of their columns: a map that gives back whatever it is given leaves them at the means and has
an error of about 1, however many components it has.

**Novelty.** The share of pairs of a held-out row and a novel one in which the novel one lies farther from the span of
the components (the area under the curve of ROC). Novel rows are those given; otherwise rows held out whose columns are
shuffled one by one, so that only what columns have to do with each other can tell them apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from gramian.compute.devices import to_numpy
from gramian.inputs.checks import check_choice, check_integer, check_seed
from gramian.inputs.devices import convert_to_numpy, copy_with, store_like
from gramian.inputs.kernels import is_precomputed, open_points
from gramian.inputs.progress import show_progress
from gramian.kernel_pca.estimator import KernelPCA
from gramian.kernels import Gaussian, Kernel, Linear, as_kernel
from gramian.kernels.distance import EqualRowsError, median_distance
from gramian.results import NumericalWarning

Array = npt.NDArray[np.float64]

CRITERIA = ("reconstruction", "novelty")
MOST_ROWS, JUDGED = 1_000, 200  # rows that a choice is made on, and most of those that it is made by
HELD_OUT, HIDDEN = 5, 3  # one row in so many, and of it one cell in so many
FILLS, MOST_STEPS = 6, 30  # how often hidden cells are filled, and steps of a pre-image each time
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the median distance
COMPONENTS = (1, 2, 3, 5, 8, 12, 20, 30, 50)
WORTH = 1e-3  # of the best score: fewer components are taken for that


class KernelPCACV(KernelPCA):
    r"""Kernel PCA whose kernel and number of components are chosen by rows held out.

    By "reconstruction" those are chosen that fill hidden cells of rows held out best; by "novelty" those that tell rows
    held out from novel ones best (:mod:`gramian.kernel_pca.choose`). Then all rows are fitted.

    Parameters
    ----------
    n_components : int or sequence of int, optional
        Numbers of components to choose from; None is 1, 2, 3, 5, 8, 12, 20, 30 and 50, as far as there are rows.
    kernel : str, callable, Kernel, or a list of these, default="rbf"
        As in :class:`KernelPCA`; of a list the best is chosen.
    gamma : float, "scale", "median", or a list of these, optional
        Of a kernel given by name. None is, for "rbf", a quarter to four times the median distance for a width.
    degree, coef0, kernel_params
        Parameters of a kernel given by name; of a callable.
    criterion : {"reconstruction", "novelty"}, default="reconstruction"
        What rows held out are judged by.
    alpha : float, default=1e-3
        Ridge parameter of the learned inverse: of other kernels than Gaussian and linear ones rows are reconstructed by
        it.
    inverse : {"ridge", "fixed-point", "regularised", "mds"}, default="regularised"
        As in :class:`KernelPCA`, for :meth:`inverse_transform` of the fit.
    eigen_solver, tol, n_landmarks, centre, device
        As in :class:`KernelPCA`.
    random_state : int, RandomState or None, default=None
        Seed of what is held out, hidden and shuffled; None is a fixed one.
    verbose : bool or callable, default=False
        Show the best score of each kernel, or call a function with (done, total, message).

    Attributes
    ----------
    n_components_ : int
        Components chosen.
    kernels_, candidates_ : list of Kernel, ndarray of shape (c,)
        What was chosen from.
    scores_ : ndarray of shape (kernels, c)
        Larger is better: minus the mean squared error of hidden cells, in variances; or the area under the curve. NaN
        where a kernel has fewer components.
    best_score_ : float
        The largest of them, at the pair chosen or at most a thousandth better.
    kernel_, eigenvalues_, eigenvectors_, dual_coefficients_, offset_, X_fit_, gamma_, certificate_
        As in :class:`KernelPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelPCACV
    >>> t = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> X = np.column_stack([np.cos(t), np.sin(t)]) + 0.05 * np.random.default_rng(1).normal(size=(200, 2))
    >>> model = KernelPCACV(criterion="novelty").fit(X)
    >>> inside, on = model.novelty([[0.0, 0.0], [1.0, 0.0]]).spe
    >>> bool(inside > on), bool(model.best_score_ > 0.8)
    (True, True)
    """

    fit_inverse_transform = False  # what KernelPCA asks of itself

    def __init__(
        self,
        n_components: Any = None,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        criterion: str = "reconstruction",
        alpha: float = 1e-3,
        inverse: str = "regularised",
        eigen_solver: str = "auto",
        tol: float = 0,
        centre: bool = True,
        n_landmarks: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel, self.gamma, self.degree = kernel, gamma, degree
        self.coef0, self.kernel_params = coef0, kernel_params
        self.criterion, self.alpha, self.inverse = criterion, alpha, inverse
        self.eigen_solver, self.tol = eigen_solver, tol
        self.centre, self.n_landmarks = centre, n_landmarks
        self.random_state, self.verbose, self.device = random_state, verbose, device

    def fit(self, X: Any, y: Any = None, *, novel: Any = None) -> KernelPCACV:  # type: ignore[override]
        """Choose the kernel and the number of components, and fit to all rows.

        Parameters
        ----------
        X : array-like, frame, path or Source of shape (n, p)
            The rows.
        y : ignored
            For scikit-learn's sake.
        novel : array-like of shape (m, p), optional
            Rows known to be novel, which "novelty" tells from and which are not fitted.

        Returns
        -------
        KernelPCACV
            The estimator itself.
        """
        check_choice("criterion", self.criterion, CRITERIA)
        points, n, _ = open_points(self, X, reset=True)
        if isinstance(points, list) or any(is_precomputed(name) for name in self._names()):
            raise ValueError("KernelPCACV needs rows of numbers: a kernel of objects or a matrix is one kernel to fit.")
        if sp.issparse(points):
            raise TypeError("Sparse data were passed, but cells are hidden and shuffled: give X.toarray().")
        rows = np.asarray(points, dtype=np.float64)
        others = np.zeros((0, rows.shape[1]))
        if novel is not None:
            others = np.asarray(open_points(self, novel, reset=False)[0], dtype=np.float64)
        if n < HELD_OUT:
            raise ValueError(f"n_samples={n} are too few to hold out one in {HELD_OUT}: use KernelPCA.")
        if self.criterion == "reconstruction" and rows.shape[1] < 2:
            raise ValueError("With 1 feature(s) there is no cell to reconstruct another by: use criterion='novelty'.")
        which = self._choose(rows, others)
        model = KernelPCA(
            self.n_components_,
            kernel=self.kernels_[which],
            eigen_solver=self.eigen_solver,
            tol=self.tol,
            centre=self.centre,
            n_landmarks=self.n_landmarks,
            inverse=self.inverse,
            random_state=self.random_state,
            device=self.device,
        ).fit(X)
        own = set(model.get_params(deep=False)) | {"n_features_in_", "feature_names_in_", "_numpy_attributes"}
        found = convert_to_numpy(model).__dict__
        self.__dict__.update({name: value for name, value in found.items() if name not in own})
        note = f"kernel and components chosen by {self.criterion} of rows held out: {self.best_score_:.4g}"
        self.certificate_ = self.certificate_.with_(notes=(*self.certificate_.notes, note))
        store_like(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Array:
        """Fit and return the scores of X: the same as ``fit(X).transform(X)``."""
        return self.fit(X, y, **params).transform(X)

    def _takes_batches(self) -> bool:
        """What is held out has to be known before."""
        return False

    def __sklearn_tags__(self) -> Any:
        """Dense rows alone."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _names(self) -> list[Any]:
        return list(self.kernel) if isinstance(self.kernel, (list, tuple)) else [self.kernel]

    def _score_kernel(self) -> Kernel:
        return self.kernel_

    def _resolve_kernels(self, rows: Array) -> list[Kernel]:
        """The kernels to choose from."""
        gammas: Sequence[Any] = [self.gamma]
        if isinstance(self.gamma, (list, tuple, np.ndarray)):
            gammas = list(self.gamma)
        every: list[Kernel] = []
        for name in self._names():
            if name == "rbf" and self.gamma is None:
                try:
                    middle = median_distance(rows)
                except EqualRowsError:
                    middle = 1.0
                every += [Gaussian(bandwidth=width * middle) for width in WIDTHS]
                continue
            extra = self.kernel_params or {}
            every += [as_kernel(name, gamma, self.degree, self.coef0, **extra).resolved(rows) for gamma in gammas]
        if not every:
            raise ValueError("There is nothing to choose from: kernel and gamma must not be empty lists.")
        return [kernel for k, kernel in enumerate(every) if kernel not in every[:k]]

    def _choose(self, rows: Array, novel: Array) -> int:
        """Which kernel; ``scores_`` and ``n_components_`` are kept."""
        rng = np.random.default_rng(check_seed(self.random_state))
        order = rng.permutation(len(rows))[:MOST_ROWS]
        judge, fit = rows[order[::HELD_OUT][:JUDGED]], rows[np.delete(order, np.s_[::HELD_OUT])]
        given = COMPONENTS if self.n_components is None else np.atleast_1d(np.asarray(self.n_components, dtype=object))
        counts = sorted({check_integer("n_components", int(k) if isinstance(k, np.integer) else k) for k in given})
        most = len(fit) - 1
        self.candidates_ = np.array([k for k in counts if k <= most] or [min(counts[0], most)])
        self.kernels_ = self._resolve_kernels(rows)
        hidden = rng.random(judge.shape).argsort(axis=1) < max(1, judge.shape[1] // HIDDEN)
        if self.criterion == "novelty" and not len(novel):
            novel = np.column_stack([rng.permutation(column) for column in judge.T])
        self.scores_ = np.full((len(self.kernels_), len(self.candidates_)), np.nan)
        with show_progress(self.verbose, type(self).__name__) as progress:
            for i, kernel in enumerate(self.kernels_):
                with warnings.catch_warnings():  # pre-images are judged as they are
                    warnings.simplefilter("ignore", NumericalWarning)
                    self.scores_[i] = self._score(kernel, fit, judge, hidden, novel)
                if progress is not None:
                    progress(i + 1, len(self.kernels_), f"{kernel!r}: {np.nanmax(self.scores_[i]):.4g}")
        self.best_score_ = float(np.nanmax(self.scores_))
        enough = self.scores_ >= self.best_score_ - WORTH * abs(self.best_score_)
        j = int(np.flatnonzero(enough.any(axis=0))[0])
        self.n_components_ = int(self.candidates_[j])
        return int(np.nanargmax(np.where(enough[:, j], self.scores_[:, j], np.nan)))

    def _score(self, kernel: Kernel, fit: Array, judge: Array, hidden: npt.NDArray[np.bool_], novel: Array) -> Array:
        """The score of each number of components of one kernel."""
        learns = self.criterion == "reconstruction" and not isinstance(kernel, (Gaussian, Linear))
        out = np.full(len(self.candidates_), np.nan)
        model = KernelPCA(int(self.candidates_[-1]), kernel=kernel, centre=self.centre, eigen_solver="dense").fit(fit)
        there = int(np.count_nonzero(model.eigenvalues_ > 0))
        mean, variance = fit.mean(axis=0), np.maximum(fit.var(axis=0), np.finfo(np.float64).tiny)
        counts = hidden & (fit.var(axis=0) > 0)  # a constant column tells nothing
        for j, k in enumerate(self.candidates_):
            if k > max(there, int(self.candidates_[0])):
                continue
            part = _first(model, int(k))
            if self.criterion == "novelty":
                spe = np.concatenate([part.novelty(rows).spe for rows in (judge, novel)])
                out[j] = roc_auc_score(np.repeat([0, 1], [len(judge), len(novel)]), spe)
                continue
            if learns:
                part = KernelPCA(
                    int(k),
                    kernel=kernel,
                    centre=self.centre,
                    alpha=self.alpha,
                    fit_inverse_transform=True,
                    eigen_solver="dense",
                ).fit(fit)
            filled = np.where(hidden, mean, judge)
            for _ in range(FILLS):
                if learns:
                    back = part.inverse_transform(part.transform(filled))
                else:
                    Z = to_numpy(part.transform(filled))
                    back = part.preimages(Z, filled, method="fixed-point", max_iter=MOST_STEPS).points
                filled = np.where(hidden & np.isfinite(back), back, judge)
            errors = ((filled - judge) ** 2 / variance)[counts]
            out[j] = -float(np.mean(errors)) if errors.size else 0.0
        return out


def _first(model: KernelPCA, k: int) -> KernelPCA:
    """The model of the first k components."""
    some = {name: getattr(model, name)[..., :k] for name in ("eigenvalues_", "eigenvectors_", "dual_coefficients_")}
    return copy_with(model, {**some, "offset_": model.offset_[:k], "n_components": k})  # type: ignore[no-any-return]
