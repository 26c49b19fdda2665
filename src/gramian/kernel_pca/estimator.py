"""Kernel principal component analysis: the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like, to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_seed, check_weights
from gramian.inputs.devices import convert_to_numpy, like_input, store_like
from gramian.inputs.kernels import check_kernel_matrix, is_precomputed, open_points, take_points, warn_if_indefinite
from gramian.kernel_pca.preimages import METHODS, PreImages, fit_ridge_inverse, preimages, ridge_points
from gramian.kernel_pca.solve import (
    DENSE,
    LANDMARKS,
    CentredKernel,
    KernelComponents,
    LandmarkStream,
    choose_solver,
    find_features,
    solve_dense,
    solve_features,
    solve_krylov,
    solve_nystrom,
)
from gramian.kernels import Chi2, Gaussian, Kernel, Laplacian, Polynomial, Precomputed, Sigmoid, as_kernel
from gramian.operators import kernel_device, kernel_operator
from gramian.spectral.rayleigh import fix_signs

Array = npt.NDArray[np.float64]

ACCURATE = 2e-6  # relative error of products in float32 on a device
SOLVERS = ("auto", "dense", "krylov", "nystrom", "arpack", "randomized")


@dataclass(frozen=True, eq=False)
class Novelty:
    """How far rows lie from the training rows, in feature space.

    Attributes
    ----------
    t2 : ndarray of shape (n,)
        Σ z²/λ̄ with λ̄ the variance of each score: how far out within the components.
    spe : ndarray of shape (n,)
        ‖φ(x) − φ̄‖² − Σ z²: the squared distance from their span.
    """

    t2: Array
    spe: Array


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Principal components of features φ(x) known by their inner products k(x, z) = ⟨φ(x), φ(z)⟩ alone.

    .. math::
        \tilde K = K - 1K - K1 + 1K1,\qquad \tilde Ka=\lambda a,\quad \lambda a^Ta=1,\qquad
        z(x) = \sum_j a_j\tilde k(x,x_j)

    A drop-in for :class:`sklearn.decomposition.KernelPCA`: the same parameters, attributes and answers, with sample
    weights, every kernel of :mod:`gramian.kernels`, memory of n·k numbers where n² would not fit, and a certificate.

    Parameters
    ----------
    n_components : int, optional
        Number of components; all with a positive eigenvalue where None.
    kernel : str, callable or Kernel, default="linear"
        scikit-learn's name, a function of two rows, "precomputed", or a kernel of :mod:`gramian.kernels`.
    gamma, degree, coef0, kernel_params
        Parameters of a kernel given by name; of a callable.
    alpha : float, default=1.0
        Ridge parameter of the learned inverse.
    fit_inverse_transform : bool, default=False
        Learn a map back from scores to rows: what ``inverse="ridge"`` needs.
    eigen_solver : {"auto", "dense", "krylov", "nystrom", "arpack", "randomized"}, default="auto"
        See :func:`gramian.kernel_pca.solve.choose_solver`. "arpack" and "randomized" are "krylov" here.
    tol : float, default=0
        Residual to reach by iteration; 0 means 1e-6.
    max_iter : int, optional
        Most products with the kernel matrix; 300.
    iterated_power, copy_X, n_jobs
        Accepted for scikit-learn's sake.
    remove_zero_eig : bool, default=False
        Leave out components without variance.
    random_state : int, RandomState or None, default=None
        Seed; None is a fixed one.
    inverse : {"ridge", "fixed-point", "regularised", "mds"}, default="ridge"
        How :meth:`inverse_transform` finds rows for scores.
    centre : bool, default=True
        Whether features are centred.
    n_landmarks : int, optional
        Landmarks of "nystrom".
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (k,)
        Eigenvalues of K̃, descending.
    eigenvectors_ : ndarray of shape (n, k)
        Its unit eigenvectors; a = eigenvectors_/√eigenvalues_.
    X_fit_ : array
        The training rows, or the landmarks.
    kernel_ : Kernel
        The kernel with every parameter found.
    gamma_ : float
        Of a kernel given by name.
    dual_coefficients_ : ndarray of shape (m, k)
        α: z(x) = k(x, X_fit_) α − ``offset_``, with k about the mean of the rows where centring would cost it digits
        (:meth:`gramian.kernels.Kernel.about_mean`).
    offset_ : ndarray of shape (k,)
        What centring subtracts.
    certificate_ : SpectralCertificate
        Method, products, residuals and error bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_circles
    >>> from gramian import KernelPCA
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> z = KernelPCA(1, kernel="rbf", gamma=2.0).fit_transform(X)[:, 0]
    >>> bool(max(z[y == 0]) < min(z[y == 1]) or max(z[y == 1]) < min(z[y == 0]))
    True
    """

    _kept: Any  # rows of positive weight, where not all
    _root: Any  # √w of these
    _landmarks: Any
    _of_all: bool
    _precision: Any  # of products with new points

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        inverse: str = "ridge",
        centre: bool = True,
        n_landmarks: int | None = None,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.inverse = inverse
        self.centre = centre
        self.n_landmarks = n_landmarks
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Find the components of the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p); a kernel matrix; or a list of objects
            The points.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a weight of 2 is the row twice.

        Returns
        -------
        KernelPCA
            The estimator itself.
        """
        self._check_parameters()
        for name in ("dual_coef_", "X_transformed_fit_", "_stream"):
            self.__dict__.pop(name, None)
        points, n, origin = open_points(self, X, reset=True)
        if self._is_pairwise():
            points = check_kernel_matrix(points)
        w = None if sample_weight is None else check_weights(sample_weight, n)
        kept = None if w is None or np.all(w > 0) else np.flatnonzero(w > 0)
        if w is not None and kept is not None:  # a row of weight 0 is no row
            points, w = take_points(points, kept), w[kept]
            points, origin = points[:, kept] if self._is_pairwise() else points, None
        elif self.copy_X and not isinstance(points, tuple):
            points = points.copy()
        kernel = self._resolve_kernel(points)
        device = kernel_device(self.device, kernel, points, like=X)
        problem = CentredKernel(kernel, points, w, self.centre, device, origin)  # diag(√w) H K Hᵀ diag(√w)
        k = problem.n if self.n_components is None else min(problem.n, int(self.n_components))
        solver, reason = choose_solver(problem.n, k, self.eigen_solver, device)
        tol, seed = self.tol or 1e-6, check_seed(self.random_state)
        Phi = find_features(problem, k) if self.eigen_solver == "auto" else None
        if Phi is not None:
            reason = f"{n} rows, of which the kernel knows {Phi.shape[1]} features"
            found = solve_features(problem, Phi, k, tol, reason)
        elif solver == "nystrom":
            found = solve_nystrom(problem, k, tol, self.n_landmarks, seed, reason)
        elif solver == "dense":
            found = solve_dense(problem, k, tol, reason, iterate=self.eigen_solver == "auto")
        else:
            found = solve_krylov(problem, k, tol, self.max_iter, seed, reason)
        self._name_results(found, problem, kernel, n, kept, tol)
        warn_if_indefinite(found.smallest, found.values)
        if self.fit_inverse_transform:  # learn the map from scores back to rows
            if is_precomputed(kernel) or isinstance(points, (list, tuple)):
                raise ValueError(
                    "Cannot fit_inverse_transform with a precomputed kernel, or without rows to go back to."
                )
            if isinstance(kernel, (Gaussian, Laplacian)) and isinstance(kernel.rate, tuple):
                raise ValueError(
                    "A kernel with one parameter for each feature does not fit scores. Use inverse='regularised'."
                )
            rows = to_numpy(points) if sp.issparse(points) else points
            self.X_transformed_fit_ = self._training_scores()
            penalty = self.alpha if self._root is None else self.alpha / self._root[:, 0] ** 2
            self.dual_coef_ = fit_ridge_inverse(self._score_kernel(), self.X_transformed_fit_, rows, penalty)
        store_like(self, X)
        return self

    def _takes_batches(self) -> bool:
        return not self._is_pairwise() and not self.fit_inverse_transform

    @available_if(lambda self: self._takes_batches())  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Add a batch of rows to those of the calls before, by landmarks; a fit to all rows forgets them.

        At most ``n_landmarks`` rows are kept, 2,000 unless given, and a matrix of as many rows and columns. While all
        rows fit, the components are those of ``fit``; the certificate bounds what has been left out. Automatic
        parameters of the kernel are found from the first batch. ``eigenvectors_`` are those of the features of the
        landmarks. A kernel matrix has no batches, and ``fit_inverse_transform`` no way back from them: there is no such
        method then.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p)
            The batch.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies.

        Returns
        -------
        KernelPCA
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import KernelPCA
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> parts = KernelPCA(2, kernel="rbf", gamma=0.1)
        >>> for batch in np.split(X, 3):
        ...     parts = parts.partial_fit(batch)
        >>> whole = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)
        >>> bool(np.allclose(parts.eigenvalues_, whole.eigenvalues_))
        True
        """
        self._check_parameters()
        stream: LandmarkStream | None = self.__dict__.get("_stream")
        points, n, _ = open_points(self, X, reset=stream is None)
        if isinstance(points, list):
            raise ValueError("partial_fit needs rows of numbers, and X is a list of objects.")
        w = np.ones(n) if sample_weight is None else check_weights(sample_weight, n)
        if stream is None:
            for name in ("dual_coef_", "X_transformed_fit_"):
                self.__dict__.pop(name, None)
            self.kernel_ = self._resolve_kernel(points)
            if not self.kernel_.positive_semidefinite or self.kernel_.takes_objects:
                raise ValueError(
                    f"partial_fit needs a positive semidefinite kernel of rows, which {self.kernel_!r} is not."
                )
            stream = LandmarkStream.empty(points)
        with quiet_blas():
            stream = stream.absorb(self.kernel_, points, w, self.n_landmarks or LANDMARKS)
            k = len(stream.mean) if self.n_components is None else int(self.n_components)
            found = stream.solve(self.kernel_, k, self.centre, self.tol or 1e-6)
        self._stream = stream
        scores = stream.factor @ found.vectors - found.offset  # of the landmarks
        signs = np.where(np.sum(fix_signs(np, scores) * scores, axis=0) < 0, -1.0, 1.0)
        keep = found.values > 0 if self.remove_zero_eig or self.n_components is None else found.values >= 0
        signs = signs[keep]
        self.eigenvalues_, self.eigenvectors_ = found.values[keep], found.vectors[:, keep] * signs
        self.dual_coefficients_ = found.coefficients[:, keep] * signs
        self.offset_, self.mean_coefficients_ = found.offset[keep] * signs, found.share
        self.X_fit_, self._kernel_about = found.points, self.kernel_
        self.certificate_ = found.certificate.with_(
            values=found.certificate.values[keep], residuals=found.certificate.residuals[keep]
        )
        self._mean_square, self._means, self._weight = found.mean_square, found.means, stream.weight
        self._landmarks, self._kept, self._root, self._of_all = None, None, None, False
        self._narrow, self._precision = points.dtype == np.float32, np.float64
        store_like(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Array:
        """Fit and return the scores of X, √λ times the eigenvectors: no product with the kernel is needed."""
        own = convert_to_numpy(self.fit(X, y, **params))
        scores: Array = own._training_scores() if self._kept is None else own._scores(X)
        return like(X, self._in_precision(scores))  # type: ignore[no-any-return]

    @like_input
    def transform(self, X: Any) -> Array:
        """Scores of the rows of X, centred with the training means."""
        check_is_fitted(self)
        return self._in_precision(self._scores(X))

    @like_input
    def novelty(self, X: Any) -> Novelty:
        """T² within the components and squared distance from their span, in feature space, of the rows of X."""
        check_is_fitted(self)
        points, _, origin = open_points(self, X, reset=False)
        if is_precomputed(self.kernel_):
            raise ValueError("A precomputed kernel does not say k(x, x) of new rows, which distances need.")
        # scores, and ‖φ(x) − φ̄‖² = k(x, x) − 2φ(x)·φ̄ + ‖φ̄‖², from one product
        both = self._product(
            X, points, np.column_stack([self.dual_coefficients_, self.mean_coefficients_]), origin=origin
        )
        own = self._kernel_about.diagonal(points)
        Z, lengths = both[:, :-1] - self.offset_, own - 2 * both[:, -1] + self._mean_square if self.centre else own
        variances = self.eigenvalues_ / max(self._weight - 1.0, 1.0)
        t2 = np.sum(np.divide(Z**2, variances, out=np.zeros_like(Z), where=variances > 0), axis=1)
        return Novelty(t2, np.maximum(lengths - np.sum(Z**2, axis=1), 0.0))

    def reconstruction_error(self, X: Any) -> Array:
        """‖φ(x) − φ̄ − Σ z v‖² of each row: what the components leave of it in feature space."""
        return self.novelty(X).spe

    @like_input
    def inverse_transform(self, X: Any) -> Array:
        """Rows whose features are near those of the scores X: pre-images, by the method ``inverse``."""
        check_is_fitted(self)
        Z = self._check_scores(X)
        if self.inverse != "ridge":
            return self._in_precision(self.preimages(Z).points)
        self._refuse_without_inverse()
        with np.errstate(over="ignore", invalid="ignore"):
            rows = ridge_points(self._score_kernel(), self.X_transformed_fit_, self.dual_coef_, Z)
        if not np.all(np.isfinite(rows)):
            worst = int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise ValueError(f"The pre-image of row {worst + 1} overflows: its scores lie too far out.")
        return self._in_precision(rows)

    @like_input
    def preimages(self, Z: Any, start: Any = None, **options: Any) -> PreImages:
        """Pre-images of scores with the convergence of every row: :func:`preimages`.

        Parameters
        ----------
        Z : array-like of shape (m, k)
            Scores.
        start : array-like of shape (m, p), optional
            Rows to start from, such as those to be denoised.
        **options
            ``method`` (that of the estimator by default) and what it takes.
        """
        check_is_fitted(self)
        Z, start = self._check_scores(Z), to_numpy(start)
        method = options.pop("method", self.inverse)
        # P = φ̄ + Σ z v = Σ γ_i φ(x_i)
        # eq: kpca-span
        G = Z @ self.dual_coefficients_.T + (self.mean_coefficients_ if self.centre else 0.0)
        if method == "ridge":
            self._refuse_without_inverse()
            options |= {"targets": Z, "scores": self.X_transformed_fit_, "dual": self.dual_coef_}
            return preimages(self._score_kernel(), self.X_fit_, G, method=method, **options)
        offset, means, mean_square = self.offset_, self._means, self._mean_square
        if self._kernel_about is not self.kernel_:
            if not self._of_all:
                raise ValueError(
                    "Components of landmarks were found about the mean of the rows, which is not one of them. Subtract "
                    "the mean from the data, or use eigen_solver='krylov'."
                )
            # k(x, z) = k_o(x, z) + g(x) + g(z)
            g = (self.kernel_.diagonal(self.X_fit_) - self._kernel_about.diagonal(self.X_fit_)) / 2
            mean = float(g @ self.mean_coefficients_)
            offset, means, mean_square = offset + g @ self.dual_coefficients_, means + g + mean, mean_square + 2 * mean
        norms, products = np.sum(Z**2, axis=1), None  # ‖P‖² = ‖φ̄‖² + 2Σ z⟨v, φ̄⟩ + Σ z², for orthonormal v
        if self.centre:
            norms = norms + 2 * Z @ offset + mean_square
        if self._of_all:  # ⟨P, φ(x_i)⟩ of all training rows, where they are the points the components are made of
            products = Z @ (self._training_scores() + offset).T + (means if self.centre else 0.0)
        known = {"norms": norms, "products": products}
        return preimages(self.kernel_, self.X_fit_, G, method=method, start=start, **(known | options))

    @like_input
    def denoise(self, X: Any, **options: Any) -> Array:
        """Project rows on the components and find the pre-images, starting from the rows themselves."""
        Z = to_numpy(self.transform(X))
        if options.get("method", self.inverse) == "ridge":
            return self.inverse_transform(Z)
        return self._in_precision(self.preimages(Z, to_numpy(X, float), **options).points)

    def _check_parameters(self) -> None:
        check_choice("eigen_solver", self.eigen_solver, SOLVERS)
        check_choice("inverse", self.inverse, METHODS)
        if self.n_components is not None and not (int(self.n_components) == self.n_components >= 1):
            raise ValueError(f"n_components must be a positive whole number or None, got {self.n_components!r}.")
        for name in ("tol", "alpha"):
            if not (isinstance(getattr(self, name), Real) and 0.0 <= getattr(self, name) < np.inf):
                raise ValueError(f"{name} must be a number that is not negative, got {getattr(self, name)!r}.")
        if self.max_iter is not None and not self.max_iter >= 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")

    def _resolve_kernel(self, points: Any) -> Kernel:
        """The kernel with every parameter found; ``gamma_`` is that of a kernel given by name."""
        kernel = as_kernel(self.kernel, self.gamma, self.degree, self.coef0, **(self.kernel_params or {}))
        if isinstance(points, list) or is_precomputed(kernel):
            self.gamma_ = self.gamma
            return kernel
        kernel = kernel.resolved(points)
        self.gamma_ = 1 / points.shape[1] if self.gamma is None else self.gamma
        if isinstance(kernel, (Gaussian, Laplacian)):
            self.gamma_ = kernel.rate[0] if isinstance(kernel.rate, tuple) and len(kernel.rate) == 1 else kernel.rate
        elif isinstance(kernel, (Chi2, Polynomial, Sigmoid)):
            self.gamma_ = kernel.gamma
        return kernel

    def _name_results(
        self, found: KernelComponents, problem: CentredKernel, kernel: Kernel, n: int, kept: Any, tol: float
    ) -> None:
        """Keep the components, turned so that the score largest in size is positive, and what new points need."""
        keep = np.ones(len(found.values), dtype=bool)
        if self.remove_zero_eig or self.n_components is None:
            keep = found.values > 0
        root = None if problem.weights is None else np.sqrt(problem.weights)[:, None]
        Z = found.vectors if root is None else found.vectors / root  # the largest entry is that of the scores
        signs = np.where(np.sum(fix_signs(np, Z) * Z, axis=0) < 0, -1.0, 1.0)[keep]
        self.eigenvalues_ = found.values[keep]
        self.eigenvectors_ = np.zeros((n, int(keep.sum())))
        self.eigenvectors_[slice(None) if kept is None else kept] = found.vectors[:, keep] * signs
        self.dual_coefficients_ = found.coefficients[:, keep] * signs
        self.offset_ = found.offset[keep] * signs
        self.mean_coefficients_ = found.share
        self.X_fit_ = found.points
        self.kernel_, self._kernel_about = kernel, problem.kernel
        self.certificate_ = found.certificate.with_(
            values=found.certificate.values[keep], residuals=found.certificate.residuals[keep]
        )
        self._mean_square = found.mean_square
        self._means = found.means
        self._weight, self._root = float(problem.frequencies.sum()), root
        chosen = found.landmarks
        self._landmarks = chosen if kept is None else kept if chosen is None else kept[chosen]
        self._kept, self._of_all = kept, found.landmarks is None
        self._narrow = not isinstance(problem.points, list) and problem.points.dtype == np.float32
        self._precision = np.float64
        if problem.n > DENSE and found.landmarks is None and problem.kernel.normalised and tol >= 1e-6:
            # whether scores of products in float32 are as good as a residual of tol leaves the components anyway:
            # rounding errors of values k ≤ 1, as good as random, add up to some ε‖α‖; a score is of the size √(λ/n)
            unit = 2.0**-23 if problem.device is None else ACCURATE
            error = 10 * unit * np.linalg.norm(found.coefficients, axis=0)
            if np.all(error <= tol * np.sqrt(found.values / self._weight)):
                self._precision = np.float32

    def _refuse_without_inverse(self) -> None:
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The learned inverse was not fitted: set fit_inverse_transform=True, or inverse='fixed-point', "
                "'regularised' or 'mds', which need no fit."
            )

    def _check_scores(self, given: Any) -> Array:
        """Scores as an array of finite numbers, one column for each component."""
        Z = to_numpy(given, float)
        if Z.ndim != 2 or Z.shape[1] != len(self.eigenvalues_):
            raise ValueError(f"Scores of shape {Z.shape} do not fit {len(self.eigenvalues_)} components.")
        bad = np.argwhere(~np.isfinite(Z))
        if len(bad):
            i, j = bad[0]
            raise ValueError(f"Scores must be finite numbers; row {i + 1}, column {j + 1} is {Z[i, j]}.")
        return Z

    def _score_kernel(self) -> Kernel:
        """The kernel given by name, of scores: as scikit-learn, with γ as it was for the rows."""
        if isinstance(self.kernel, Kernel):
            return self.kernel_
        return as_kernel(self.kernel, self.gamma_, self.degree, self.coef0, **(self.kernel_params or {}))

    def _scores(self, X: Any) -> Array:
        points, _, origin = open_points(self, X, reset=False)
        # eq: kpca-projection
        return np.asarray(self._product(X, points, self.dual_coefficients_, self._precision, origin) - self.offset_)

    def _product(self, X: Any, points: Any, V: Array, dtype: Any = np.float64, origin: Any = None) -> Array:
        """k(x, X_fit_) V of the points of an input X, computed where that says."""
        if V.shape[1] == 0:
            return np.zeros((len(points) if isinstance(points, list) else points.shape[0], 0))
        if is_precomputed(self.kernel_):
            K = points[:, self._landmarks] if self._landmarks is not None else points
            return np.asarray(K @ V, dtype=np.float64)
        where = kernel_device(self.device, self._kernel_about, points, like=X)
        about = self._kernel_about
        A = kernel_operator(about, points, self.X_fit_, dtype=dtype, store=False, device=where, origin=origin)
        return to_numpy(A.matmat(A.asarray(V)), float)

    def _training_scores(self) -> Array:
        """√λ u, divided by √w, of the rows that have weight."""
        # eq: kpca-codes
        Z = (self.eigenvectors_ if self._kept is None else self.eigenvectors_[self._kept]) * np.sqrt(self.eigenvalues_)
        return Z if self._root is None else np.asarray(Z / self._root)

    def _in_precision(self, Z: Array) -> Array:
        """Numbers in float32 where the training rows were."""
        return Z.astype(np.float32) if self._narrow else Z

    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self._is_pairwise()
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.eigenvalues_.shape[0])
