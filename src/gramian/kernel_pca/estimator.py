"""Kernel principal component analysis."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like
from gramian.inputs.checks import check_choice, check_seed, check_weights
from gramian.inputs.devices import convert_to_numpy, like_input, store_like
from gramian.inputs.kernels import check_kernel_matrix, chosen_points, is_precomputed, points_of, warn_if_indefinite
from gramian.kernel_pca.preimages import METHODS, Inverse
from gramian.kernel_pca.scores import Novelty, signs_of
from gramian.kernel_pca.solve import DENSE, Decomposition, Task, decompose
from gramian.kernels import Kernel, Precomputed, as_kernel
from gramian.operators import kernel_device
from gramian.results import SpectralCertificate

__all__ = ["KernelPCA", "Novelty"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ACCURATE = 2e-6  # relative error of products in float32 on a device
SOLVERS = ("auto", "dense", "krylov", "nystrom", "arpack", "randomized")


class KernelPCA(Inverse, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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
        See :func:`gramian.kernel_pca.solve.choose`. "arpack" and "randomized" are "krylov" here.
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
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one.

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
        α: z(x) = k(x, X_fit_) α − ``offset_``.
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
        for name in ("dual_coef_", "X_transformed_fit_"):
            self.__dict__.pop(name, None)
        every, n = points_of(self, X, reset=True)
        w = None if sample_weight is None else check_weights(sample_weight, n)
        kept = None if w is None or np.all(w > 0) else np.flatnonzero(w > 0)  # a row of weight 0 is no row
        if self._is_pairwise():
            every = check_kernel_matrix(every)
        points = every if kept is None else chosen_points(every, kept)
        points = points[:, kept] if kept is not None and self._is_pairwise() else points
        points = points.copy() if self.copy_X and kept is None and hasattr(points, "copy") else points
        size = n if kept is None else len(kept)
        kernel = self._resolved(points)
        task = Task(
            kernel,
            points,
            w if w is None or kept is None else w[kept],
            size if self.n_components is None else min(size, int(self.n_components)),
            self.eigen_solver,
            self.tol or 1e-6,
            self.max_iter,
            self._seed(),
            self.centre,
            self.n_landmarks,
            kernel_device(self.device, kernel, points, like=X),
        )
        found = decompose(task)
        self._name(found, task, n, kept)
        warn_if_indefinite(found.low, found.values)
        if self.fit_inverse_transform:
            self._learn_inverse(points)
        store_like(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Matrix:
        """Fit and return the scores of X, √λ times the eigenvectors: no product with the kernel is needed."""
        own = convert_to_numpy(self.fit(X, y, **params))
        scores: Matrix = own._training_scores() if self._kept is None else own._scores(X)
        return like(X, self._like(scores))  # type: ignore[no-any-return]

    @like_input
    def transform(self, X: Any) -> Matrix:
        """Scores of the rows of X, centred with the training means."""
        check_is_fitted(self)
        return self._like(self._scores(X))

    def _resolved(self, points: Any) -> Kernel:
        kernel = as_kernel(self.kernel, self.gamma, self.degree, self.coef0, **(self.kernel_params or {}))
        if isinstance(points, list) or is_precomputed(kernel):
            self.gamma_ = self.gamma
            return kernel
        kernel = kernel.resolved(points)
        width = getattr(kernel, "bandwidth", None)
        gamma = getattr(kernel, "gamma", None) if width is None else tuple(0.5 / np.square(np.atleast_1d(width)))
        gamma = gamma[0] if isinstance(gamma, tuple) and len(gamma) == 1 else gamma
        self.gamma_ = gamma or (1 / points.shape[1] if self.gamma is None else self.gamma)
        return kernel

    def _name(self, found: Decomposition, task: Task, n: int, kept: Any) -> None:
        keep = np.ones(len(found.values), dtype=bool)
        if self.remove_zero_eig or self.n_components is None:
            keep = found.values > 0
        signs = signs_of(found.vectors, task.w)[keep]
        self.eigenvalues_ = found.values[keep]
        self.eigenvectors_ = np.zeros((n, int(keep.sum())))
        self.eigenvectors_[slice(None) if kept is None else kept] = found.vectors[:, keep] * signs
        self.dual_coefficients_ = found.coefficients[:, keep] * signs
        self.offset_ = found.offset[keep] * signs
        self.mean_coefficients_ = found.share
        self.X_fit_ = found.points
        self.kernel_ = task.kernel
        self.certificate_ = found.certificate.with_(
            values=found.certificate.values[keep], residuals=found.certificate.residuals[keep]
        )
        self._mean_square = found.mean_square
        self._means = found.means
        self._weight = float(task.n if task.w is None else task.w.sum())
        self._root = None if task.w is None else np.sqrt(task.w)[:, None]
        chosen = found.landmarks
        self._landmarks = chosen if kept is None else kept if chosen is None else kept[chosen]
        self._kept, self._of_all = kept, found.landmarks is None
        self._precision = np.float32 if self._narrow_enough(found, task) else np.float64
        self._narrow = getattr(task.X, "dtype", None) == np.float32

    def _narrow_enough(self, found: Decomposition, task: Task) -> bool:
        """Whether scores of products in float32 are as good as a residual of ``tol`` leaves the components anyway.

        Rounding errors of values k ≤ 1, as good as random, add up to some ε‖α‖; a score is of the size √(λ/n).
        """
        if task.n <= DENSE or found.landmarks is not None or not task.kernel.normalised or task.tol < 1e-6:
            return False
        unit = 2.0**-23 if task.device is None else ACCURATE
        error = 10 * unit * np.linalg.norm(found.coefficients, axis=0)
        return bool(np.all(error <= task.tol * np.sqrt(found.values / task.frequencies.sum())))

    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    def _like(self, Z: Matrix) -> Matrix:
        return Z.astype(np.float32) if self._narrow else Z

    def _seed(self) -> int:
        return check_seed(self.random_state)

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

    certificate_: SpectralCertificate
    _narrow: bool
