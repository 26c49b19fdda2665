"""Principal components of rows that come in batches, under scikit-learn's name for it."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like
from gramian.compute.rowspace import RowSpace
from gramian.inputs.checks import check_integer
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.pca.estimator import PCA
from gramian.pca.solve import absorb_rows, empty_copy, solve_stream
from gramian.sources.devices import source_to_numpy

Array = Any


class IncrementalPCA(PCA):
    r"""Principal component analysis of rows that come a batch at a time, with a certificate.

    .. math:: B^TB = \sum_{\text{batches}}\ \sum_i (x_i-\bar x)(x_i-\bar x)^T,\qquad B = U\Sigma V^T

    A drop-in for :class:`sklearn.decomposition.IncrementalPCA`. That one keeps n_components directions from batch to
    batch and loses what the others would have added; this one keeps a row factor B of all p, as
    :meth:`gramian.PCA.partial_fit` does, and gives the components of all rows together. A batch may be smaller than
    n_components.

    Parameters
    ----------
    n_components : int or None, default=None
        Components to keep; None keeps as many as rows or columns, whichever is less.
    whiten : bool, default=False
        Divide the scores by their standard deviations.
    copy : bool, default=True
        Accepted for scikit-learn's sake: the data are never changed.
    batch_size : int or None, default=None
        Rows that ``fit`` takes at a time; None takes five times the columns.

    Attributes
    ----------
    components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_, noise_variance_, n_components_
        As in :class:`gramian.PCA`.
    var_ : array of shape (p,)
        Variances of the columns, divided by the number of rows.
    n_samples_seen_, batch_size_ : int
        Rows so far; rows taken at a time.
    certificate_ : SpectralCertificate
        Residuals and error bounds, with what directions that were cut off may have changed.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA, IncrementalPCA
    >>> X = np.random.default_rng(0).normal(size=(500, 6)) * np.arange(1, 7)
    >>> parts = IncrementalPCA(n_components=2)
    >>> for batch in np.split(X, 10):
    ...     parts = parts.partial_fit(batch)
    >>> bool(np.allclose(parts.components_, PCA(n_components=2).fit(X).components_)), parts.n_samples_seen_
    (True, 500)
    """

    # what PCA asks of itself and scikit-learn's class of this name has no argument for
    svd_solver = "auto"
    tol = 0.0
    iterated_power: int | str = "auto"
    n_oversamples = 10
    power_iteration_normalizer = "auto"
    random_state: Any = None
    scale = False
    device: Any = None

    def __init__(
        self, n_components: int | None = None, *, whiten: bool = False, copy: bool = True, batch_size: int | None = None
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.copy = copy
        self.batch_size = batch_size

    var_: Array
    n_samples_seen_: int
    batch_size_: int

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> IncrementalPCA:
        """Find the components of X, a batch at a time, and forget what came before.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies of the rows, as in :meth:`gramian.PCA.fit`.

        Returns
        -------
        IncrementalPCA
            The estimator itself.
        """
        source = self._open(X)
        size = self.batch_size
        self.batch_size_ = 5 * source.shape[1] if size is None else check_integer("batch_size", size)
        w = self._check_weights(source, sample_weight)
        state = absorb_rows(RowSpace.empty(source.shape[1]), source_to_numpy(source), w, self, self.batch_size_)
        self._rowspace, self._like = state, empty_copy(source)
        self._keep(solve_stream(state, self._like, self), self._like, self._like)
        return self._count()

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit and return the scores of X: the same as ``fit(X).transform(X)``."""
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: Any) -> Array:
        """Scores of the rows of X, as :meth:`gramian.PCA.transform` gives them; missing cells are refused."""
        check_is_fitted(self)
        refuse_non_finite(open_input(self, X, reset=False))
        return super().transform(X)

    def partial_fit(  # type: ignore[override]
        self, X: Any, y: Any = None, check_input: bool = True, sample_weight: Any = None
    ) -> IncrementalPCA:
        """Add a batch of rows to the fit; ``check_input`` is accepted for scikit-learn's sake."""
        super().partial_fit(X, y, sample_weight)
        return self._count()

    def _count(self) -> IncrementalPCA:
        self.n_samples_seen_ = int(self._rowspace.weight)
        self.var_ = like(self._like, self._rowspace.squares / max(self._rowspace.weight, 1.0))
        return self

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags
