r"""The Gaussian model behind a PCA: covariance C = Vᵀ diag(λ − σ²) V + σ² I, its inverse and its likelihood."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like, to_numpy
from gramian.inputs.checks import check_weights
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.opening import has_missing, open_input
from gramian.pca import conditional
from gramian.pca.conditional import (
    Conditional,
    Imputations,
    Latent,
    impute,
    impute_to,
    log_densities,
    multiple_imputation,
)
from gramian.sources import Source
from gramian.sources.devices import source_to_device, source_to_numpy

__all__ = ["ProbabilisticModel", "as_like"]

Array = Any


class ProbabilisticModel:
    """Methods that read the fitted attributes of a PCA as a probabilistic model (Tipping and Bishop 1999)."""

    components_: Array
    explained_variance_: Array
    noise_variance_: float
    scale_: Array | None
    explained_variance_ratio_: Array
    singular_values_: Array
    mean_: Array
    n_components_: int
    n_features_in_: int
    n_samples_: int
    rank_: int
    device: Any
    whiten: bool
    _weight: float
    _missing_method: str

    def get_covariance(self) -> Array:
        r"""Covariance of the model, in the data's own units.

        Returns
        -------
        array of shape (p, p)
            diag(s)(Vᵀ diag(λ − σ²) V + σ²I)diag(s), s = 1 without ``scale``.
        """
        check_is_fitted(self)
        xp, V, variances = self._model()
        noise = self.noise_variance_
        C = (V.T * _positive(xp, variances - noise)) @ V + noise * _eye(xp, V)
        return self._in_units(C, 1.0)

    def get_precision(self) -> Array:
        r"""Inverse of the covariance, by the matrix inversion lemma.

        Returns
        -------
        array of shape (p, p)
            (I − Vᵀ diag(1 − σ²/λ) V)/σ² with noise, Vᵀ diag(1/λ) V without.
        """
        check_is_fitted(self)
        xp, V, variances = self._model()
        noise = self.noise_variance_
        if noise == 0.0:
            self._refuse_singular(V.shape[1])
            return self._in_units((V.T / variances) @ V, -1.0)
        lam = noise + _positive(xp, variances - noise)
        P = (_eye(xp, V) - (V.T * (1 - noise / lam)) @ V) / noise
        return self._in_units(P, -1.0)

    def score_samples(self, X: Any) -> Array:
        r"""Log-likelihood of each row under the model.

        .. math:: -\tfrac12\left(p\ln 2\pi + \ln|C| + (x-\mu)^TC^{-1}(x-\mu)\right)

        Parameters
        ----------
        X : array-like, path or Source of shape (n, p)
            The rows; of a row with NaN cells, the density of those that are observed.

        Returns
        -------
        array of shape (n,)
            Log-likelihoods.
        """
        check_is_fitted(self)
        k, p = self.components_.shape
        noise = self.noise_variance_
        if noise == 0.0:
            self._refuse_singular(p)
        given = open_input(self, X, reset=False)
        source = source_to_device(given, self.device)
        if has_missing(source):
            return like(given, like(source, log_densities(convert_to_numpy(self), source_to_numpy(source))))
        Z, errors = self._scores_and_errors(source)
        xp = array_namespace(Z)
        lam = noise + _positive(xp, as_like(Z, self.explained_variance_) - noise)
        distance = xp.sum(Z**2 / lam, axis=1)
        log_det = float(xp.sum(xp.log(lam)))
        if k < p:
            distance = distance + errors / noise
            log_det += (p - k) * math.log(noise)
        if self.scale_ is not None:
            log_det += 2 * float(xp.sum(xp.log(as_like(Z, self.scale_))))
        return like(given, -0.5 * (p * math.log(2 * math.pi) + log_det + distance))

    def score(self, X: Any, y: Any = None) -> float:
        """Average log-likelihood of the rows of X."""
        return float(np.mean(to_numpy(self.score_samples(X))))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int or Generator, optional
            Of the draws; None draws anew each time.

        Returns
        -------
        array of shape (n_samples, p)
            Rows of N(mean, covariance), with the covariance of :meth:`get_covariance`, where the fitted attributes are.
        """
        check_is_fitted(self)
        return like(self.components_, conditional.sample(convert_to_numpy(self), n_samples, random_state))

    def latent(self, X: Any) -> Latent:
        """Posterior mean and covariance of the standardised latent variables of each row, complete or not."""
        check_is_fitted(self)
        given = self._open_dense(X)
        return like(given, conditional.latent(convert_to_numpy(self), source_to_numpy(given)))  # type: ignore[no-any-return]

    def condition(self, X: Any) -> Conditional:
        """Distribution of the NaN cells of each row given the observed ones: means, covariances, draws, in NumPy.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import PCA
        >>> rng = np.random.default_rng(0)
        >>> pca = PCA(1).fit(rng.normal(size=(900, 1)) + 0.1 * rng.normal(size=(900, 3)))
        >>> given = pca.condition([[1.0, 1.0, np.nan]])
        >>> bool(abs(given.mean[0, 2] - 1) < 0.05), bool(abs(given.variance[0, 2] - 0.015) < 0.003)
        (True, True)
        """
        check_is_fitted(self)
        return conditional.condition(convert_to_numpy(self), source_to_numpy(self._open_dense(X)))

    def impute(self, X: Any, out: str | os.PathLike[str] | None = None) -> Array:
        """Fill NaN cells with their conditional expectation.

        Parameters
        ----------
        X : array-like, path or Source of shape (n, p)
            The rows.
        out : path, optional
            An ``.npy`` file to write instead, block by block, for tables larger than memory.

        Returns
        -------
        array of shape (n, p), or the path
            The completed rows: a tensor where X is one.
        """
        check_is_fitted(self)
        given = self._open_dense(X)
        model, source = convert_to_numpy(self), source_to_numpy(given)
        return like(given, impute(model, source)) if out is None else impute_to(model, source, out)

    def multiple_imputation(self, X: Any, n: int = 20, **options: Any) -> Imputations:
        """Draw ``n`` completed tables; see :func:`gramian.analysis.multiple_imputation` for the options."""
        check_is_fitted(self)
        source = source_to_numpy(self._open_dense(X))
        w = options.pop("sample_weight", None)
        w = None if w is None else check_weights(w, source.shape[0])
        return multiple_imputation(self, source, n, sample_weight=w, **options)

    def _open_dense(self, X: Any) -> Source:
        source = open_input(self, X, reset=False)
        if source.sparse:
            raise ValueError("Sparse data have no missing cells: what is not stored is 0. Use X.toarray() with NaN.")
        return source

    def _model(self) -> tuple[Any, Array, Array]:
        """Namespace, components and variances, both in float64."""
        xp = array_namespace(self.components_)
        return xp, xp.astype(self.components_, xp.float64), xp.astype(self.explained_variance_, xp.float64)

    def _in_units(self, M: Array, power: float) -> Array:
        if self.scale_ is None:
            return M
        s = self.scale_**power
        return s[:, None] * M * s[None, :]

    def _refuse_singular(self, p: int) -> None:
        k = self.components_.shape[0]
        floor = max(p, 2) * np.finfo(float).eps * float(self.explained_variance_[0]) if k else 0.0
        if k < p or float(self.explained_variance_[-1]) <= floor:
            raise ValueError(
                "The model's covariance is singular: the noise variance is 0 and the components do not span all "
                f"{p} features, so there is no precision and no likelihood. Fit with fewer n_components."
            )

    def _scores_and_errors(self, source: Source) -> tuple[Array, Array]:
        """Unwhitened scores, and squared distance of each row from its reconstruction."""
        raise TypeError("an estimator supplies this")


def as_like(Z: Array, x: Array) -> Array:
    """X in the namespace, dtype and device of Z."""
    xp = array_namespace(Z)
    where = {} if is_numpy_namespace(xp) else {"device": Z.device}
    return xp.asarray(x if array_namespace(x) is xp else to_numpy(x), dtype=Z.dtype, **where)


def _eye(xp: Any, V: Array) -> Array:
    return xp.astype(as_like(V, np.eye(V.shape[1])), V.dtype)


def _positive(xp: Any, x: Array) -> Array:
    return xp.where(x > 0, x, 0.0 * x)
