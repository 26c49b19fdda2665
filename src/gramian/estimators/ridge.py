"""Ridge regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from gramian.estimators._devices import bring_home
from gramian.estimators._ridge_fitting import Options, Solved, fit_ridge
from gramian.estimators._ridge_inference import ARRAYS, LinearPredictions
from gramian.estimators._ridge_inputs import check_ridge, open_ridge, penalties
from gramian.linear._caller import caller_level
from gramian.results import NumericalWarning, Residual

__all__ = ["Ridge"]

Array = Any


class Ridge(LinearPredictions, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Linear least squares with a penalty on the coefficients, with a certificate.

    .. math:: \min_{w,b}\ \sum_i \omega_i\,(y_i - x_i^Tw - b)^2 + \lambda\|w\|^2,\qquad
        \hat w = (\tilde X^T\tilde X+\lambda I)^{-1}\tilde X^T\tilde y

    with X̃ = diag(√ω)(X − 1μᵀ). A drop-in for :class:`sklearn.linear_model.Ridge`. Takes NumPy arrays, scipy.sparse
    matrices, data frames, torch tensors, paths of ``.npy`` and ``.csv`` files, memory maps and Sources.

    Parameters
    ----------
    alpha : float or array-like of shape (t,), default=1.0
        λ, for all targets or for each. 0 is ordinary least squares.
    fit_intercept : bool, default=True
        Whether to fit b, which is not penalised.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: the data are never changed, and never copied whole.
    max_iter : int, optional
        Most steps of ``cg``; too few for the tolerance is warned about.
    tol : float, default=1e-4
        What ‖X̃ᵀ(ỹ − X̃w) − λw‖/‖X̃ᵀỹ‖ is to meet by ``cg``; 0 means 1e-10. The other solvers are direct.
    solver : {"auto", "svd", "cholesky", "primal", "dual", "cg", "lsqr", "sparse_cg", "sag", "saga"}, default="auto"
        ``cholesky`` (or ``primal``) factors X̃ᵀX̃ + λI, ``dual`` X̃X̃ᵀ + λI, both only where the condition number makes
        that safe and else as ``svd``, which decomposes the data; ``cg`` and the names after it are conjugate gradients.
        ``auto`` takes the smaller matrix, and ``cg`` where neither has a bearable size.
    positive : bool, default=False
        Not offered; see the error it raises for what to use.
    random_state : int, RandomState or None, default=None
        Accepted for scikit-learn's sake: nothing is random.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one.

    Attributes
    ----------
    coef_ : array of shape (p,) or (t, p)
        w.
    intercept_ : float or array of shape (t,)
        b.
    n_iter_ : int or ndarray of shape (t,)
        Steps taken by ``cg``; 1 for direct solvers.
    solver_ : str
        "cholesky", "dual", "svd" or "cg": what was done.
    dof_ : float or ndarray of shape (t,)
        Effective degrees of freedom Σσ²/(σ²+λ), one more for an intercept; NaN by ``cg``, which does not know them.
    noise_variance_ : float or ndarray of shape (t,)
        RSS/(N − dof), for the variances of :meth:`predict`; NaN by ``cg``, or where nothing is left over.
    rank_ : int or None
        Numerical rank of X̃ as far as the method can see it.
    n_features_in_, feature_names_in_
        Columns of X, and their names.
    certificate_ : Residual
        Method, passes, the gradient measured with the data, and a bound on ‖ŵ − w‖.

    Notes
    -----
    Weights that are all whole numbers are counts: a weight of 2 is the row twice. Others are precisions.

    Dense rows are centred before anything is multiplied. Sparse ones are centred afterwards, which costs about as many
    digits as the means are longer than the spread, in a fit as in a prediction; the bound knows of it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Ridge
    >>> X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 5.0]])
    >>> model = Ridge(alpha=1.0).fit(X, [1.0, 2.0, 3.0, 5.0])
    >>> model.coef_.round(4), round(float(model.intercept_), 4)
    (array([0.7345, 0.3805]), 0.6018)
    >>> model.certificate_.converged
    True
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Find the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : float or array-like of shape (n,), optional
            Weights of the rows: counts where all are whole numbers, else precisions; 0 is the row left out.

        Returns
        -------
        Ridge
            The estimator itself.
        """
        check_ridge(self)
        inputs = open_ridge(self, X, y, sample_weight).at(self.device)
        lam = penalties(self.alpha, inputs.Y.shape[1])
        options = Options(self.solver, bool(self.fit_intercept), float(self.tol), self.max_iter)
        self._name(fit_ridge(inputs, lam, options), inputs.ndim)
        bring_home(self, inputs.home, ARRAYS)
        return self

    def _name(self, solved: Solved, ndim: int) -> None:
        self._take(solved, ndim)
        self.rank_ = solved.rank
        self.certificate_: Residual = solved.certificate
        steps = solved.certificate.iterations
        self.n_iter_ = np.full(solved.coef.shape[1], max(steps, 1)) if solved.solver == "cg" else 1
        for message in solved.warnings:
            warnings.warn(message, NumericalWarning, stacklevel=caller_level())

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
