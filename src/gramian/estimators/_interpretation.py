"""The thin methods by which a PCA is read, watched and doubted; the functions are in :mod:`gramian.analysis`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from gramian import analysis
from gramian.analysis import (
    AsymptoticErrors,
    Biplot,
    Bootstrap,
    Categories,
    Monitor,
    Reading,
    Rotation,
    SupplementaryColumns,
    SupplementaryRows,
)

__all__ = ["Interpretation"]

Matrix = npt.NDArray[np.float64]


class Interpretation:
    """Methods that hand a fitted PCA to the function of the same name in :mod:`gramian.analysis`."""

    def encode(self, X: Any) -> Any:
        """Return the codes of the rows: another name for ``transform``."""
        return self._fitted().transform(X)

    def decode(self, X: Any) -> Any:
        """Return the rows of codes: another name for ``inverse_transform``."""
        return self._fitted().inverse_transform(X)

    def loadings(self) -> Matrix:
        """Loadings V√λ of the variables: :func:`gramian.analysis.loadings`."""
        return analysis.loadings(self._fitted())

    def correlations(self, X: Any = None, sample_weight: Any = None) -> Matrix:
        """Correlations of the variables with the components: :func:`gramian.analysis.correlations`."""
        return analysis.correlations(self._fitted(), X, sample_weight)

    def describe(self, X: Any, sample_weight: Any = None, *, row_labels: Sequence[Any] | None = None) -> Reading:
        """Coordinates, contributions and cos² of rows and variables: :func:`gramian.analysis.describe`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from gramian import PCA
        >>> X = load_iris().data
        >>> reading = PCA(n_components=2, scale=True).fit(X).describe(X)
        >>> reading.columns.contributions[:, 0].sum().round(6)
        np.float64(100.0)
        """
        return analysis.describe(self._fitted(), X, sample_weight, row_labels=row_labels)

    def supplementary_rows(self, X: Any, *, row_labels: Sequence[Any] | None = None) -> SupplementaryRows:
        """Place rows that took no part in the fit: :func:`gramian.analysis.supplementary_rows`."""
        return analysis.supplementary_rows(self._fitted(), X, row_labels=row_labels)

    def supplementary_columns(
        self, X: Any, Y: Any, names: Sequence[str] | None = None, sample_weight: Any = None
    ) -> SupplementaryColumns:
        """Correlate other variables with the components: :func:`gramian.analysis.supplementary_columns`."""
        return analysis.supplementary_columns(self._fitted(), X, Y, names, sample_weight)

    def supplementary_categories(self, X: Any, labels: Any, sample_weight: Any = None) -> Categories:
        """Place the categories of labels, with test values: :func:`gramian.analysis.supplementary_categories`."""
        return analysis.supplementary_categories(self._fitted(), X, labels, sample_weight)

    def rotate(
        self,
        method: str = "varimax",
        *,
        normalize: bool = True,
        power: float = 4.0,
        n_components: int | None = None,
        tol: float = 1e-10,
        max_iterations: int = 1000,
        n_starts: int = 1,
        random_state: int | None = None,
    ) -> Rotation:
        """Rotate the loadings towards simple structure: :func:`gramian.analysis.rotate`.

        Parameters
        ----------
        method : {"varimax", "quartimax", "equamax", "promax"}, default="varimax"
            The criterion; promax lets the factors correlate.
        normalize : bool, default=True
            Kaiser's normalisation: variables count equally.
        power : float, default=4
            Power of promax.
        n_components : int, optional
            Rotate the first so many components only; by default all that have variance.
        tol : float, default=1e-10
            Stationarity to reach.
        max_iterations : int, default=1000
            Most sweeps over all pairs of factors.
        n_starts : int, default=1
            Starts, the first from the loadings and others from random rotations, of which the best is kept.
        random_state : int, optional
            Seed of these starts; None is a fixed one.

        Returns
        -------
        Rotation
            Rotated loadings, the rotation, and whether it converged.
        """
        return analysis.rotate(
            self._fitted(), method, normalize=normalize, power=power, n_components=n_components, tol=tol,
            max_iterations=max_iterations, n_starts=n_starts, random_state=random_state,
        )  # fmt: skip

    def rotated_scores(self, X: Any, rotation: Rotation) -> Matrix:
        """Standardised scores of rotated factors: :func:`gramian.analysis.rotated_scores`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p)
            The rows.
        rotation : Rotation
            What :meth:`rotate` returned.

        Returns
        -------
        ndarray of shape (n, k)
            Scores.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from gramian import PCA
        >>> X = load_iris().data
        >>> pca = PCA(n_components=2, scale=True).fit(X)
        >>> bool(np.allclose(np.cov(pca.rotated_scores(X, pca.rotate()).T), np.eye(2)))
        True
        """
        return analysis.rotated_scores(self._fitted(), X, rotation)

    def biplot(
        self, X: Any, alpha: float | str = 1.0, components: Sequence[int] = (0, 1), *, deviations: bool = False
    ) -> Biplot:
        """Coordinates of rows and variables in one plane: :func:`gramian.analysis.biplot`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p)
            The rows to draw.
        alpha : float or {"form", "covariance", "symmetric"}, default=1.0
            1 or "form" keeps distances between rows, 0 or "covariance" the covariances between variables; 0.5 is
            "symmetric".
        components : sequence of int, default=(0, 1)
            Which components, counted from 0.
        deviations : bool, default=False
            Use the standard deviations √λ in the place of the singular values.

        Returns
        -------
        Biplot
            Coordinates, with what may be read from them in words.
        """
        return analysis.biplot(self._fitted(), X, alpha, components, deviations=deviations)

    def monitor(
        self, X: Any, *, alpha: float = 0.01, sample_weight: Any = None, t2: str = "F", q: str = "exact"
    ) -> Monitor:
        """Control limits for T² and Q from the training rows: :func:`gramian.analysis.monitor`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows of the fit.
        alpha : float, default=0.01
            Share of normal rows above each of the two limits.
        sample_weight : array-like of shape (n,), optional
            The frequencies of the fit.
        t2 : {"F", "beta", "chi2"}, default="F"
            ``F`` for new rows, ``beta`` for the training rows themselves, ``chi2`` where n is large.
        q : {"exact", "jackson-mudholkar", "box", "moments"}, default="exact"
            Where the limit of Q comes from: the variances left out, or with ``moments`` Q over the training rows.

        Returns
        -------
        Monitor
            The limits; its ``check`` and ``contributions`` take new rows.
        """
        return analysis.monitor(self._fitted(), X, alpha=alpha, sample_weight=sample_weight, t2=t2, q=q)

    def bootstrap(
        self,
        X: Any,
        *,
        n_replicates: int = 1000,
        level: float = 0.95,
        align: str = "order",
        method: str = "percentile",
        scores: bool = True,
        sample_weight: Any = None,
        random_state: Any = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> Bootstrap:
        """Bootstrap intervals of variances, components, loadings and scores: :func:`gramian.analysis.bootstrap`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows of the fit.
        n_replicates : int, default=1000
            Samples to draw.
        level : float, default=0.95
            Coverage of the intervals.
        align : {"order", "rotation"}, default="order"
            How components are matched: ``order`` says how well each direction is known, ``rotation`` the plane.
        method : {"percentile", "bc"}, default="percentile"
            Quantiles of the replicates, or the bias-corrected ones.
        scores : bool, default=True
            Whether to find intervals for the scores too; not where the fit had missing cells.
        sample_weight : array-like of shape (n,), optional
            The frequencies of the fit.
        random_state : int, RandomState, Generator or None, default=None
            Seed; None is a fixed one.
        progress : callable, optional
            Called as ``progress(done, total)`` from time to time.

        Returns
        -------
        Bootstrap
            Intervals, standard errors and biases.
        """
        return analysis.bootstrap(
            self._fitted(), X, n_replicates=n_replicates, level=level, align=align, method=method, scores=scores,
            sample_weight=sample_weight, random_state=random_state, progress=progress,
        )  # fmt: skip

    def eigenvalue_errors(self, level: float = 0.95, *, form: str = "ratio") -> AsymptoticErrors:
        """Anderson's asymptotic standard errors: :func:`gramian.analysis.eigenvalue_errors`."""
        return analysis.eigenvalue_errors(self._fitted(), level, form=form)

    def principal_angles(self, other: Any) -> Matrix:
        """Angles between the subspaces of two fits: :func:`gramian.analysis.principal_angles`."""
        return analysis.principal_angles(self._fitted(), other)

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self
