"""What a fitted mixture says of rows, and how good it is: methods of the estimator that fit nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import host, is_tensor
from gramian.estimators._devices import home_of, hosted, sent
from gramian.estimators._mixture_cells import expected_cells
from gramian.estimators._mixture_inputs import each_block, on_rows, open_data
from gramian.estimators._mixture_names import PARAMETERS, attributes, mixture_from
from gramian.estimators._mixture_options import seeded
from gramian.likelihood.mixture import (
    Bins,
    Diagnosis,
    Goodness,
    Mixture,
    Rows,
    StandardErrors,
    diagnose,
    standard_errors,
)
from gramian.likelihood.mixture.given import column_numbers, numbers

__all__ = ["MixtureQueries"]

Array = npt.NDArray[np.float64]


class MixtureQueries:
    """Densities, clusters, criteria and errors of a fitted mixture."""

    @property
    def mixture_(self) -> Mixture:
        """The fitted distribution as one object; made anew where someone has set ``means_`` and the like."""
        check_is_fitted(self)
        mine = hosted(self)
        fit = getattr(mine, "_fit", None)
        if fit is not None and fit.mixture.n_components == len(mine.weights_):
            known = attributes(fit.mixture, mine._kind)
            if all(np.array_equal(known[name], getattr(mine, name)) for name in PARAMETERS if name != "precisions_"):
                return fit.mixture  # type: ignore[no-any-return]
        return mixture_from(mine)

    def predict(self, X: Any) -> Any:
        """The component of largest responsibility, for each row."""
        mixture = self.mixture_
        return on_rows(self, X, lambda x: mixture.joint_log_density(x).argmax(1))

    def predict_proba(self, X: Any) -> Any:
        r"""Responsibilities :math:`\pi_kN(x;\mu_k,\Sigma_k)/p(x)` of the components, for each row."""
        return on_rows(self, X, self.mixture_.responsibilities)

    def score_samples(self, X: Any) -> Any:
        """Log-density ln p(x) of each row; of its observed cells where some are NaN."""
        return on_rows(self, X, self.mixture_.log_density)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a row, or of an observation that was counted in a bin."""
        height, weight = self._height(X, sample_weight)
        return height / weight

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion −2ℓ + 2p: the lower the better."""
        return -2.0 * self._height(X, sample_weight)[0] + 2.0 * self._n_parameters()

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion −2ℓ + p ln n, with n the sum of weights: the lower the better.

        mclust prints the same number with the other sign.
        """
        height, weight = self._height(X, sample_weight)
        return -2.0 * height + self._n_parameters() * float(np.log(weight))

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        r"""Integrated complete-data likelihood: :math:`BIC-2\sum_iw_i\ln\max_kr_{ik}`, the lower the better.

        It asks for components that can be told apart, where BIC asks for a density (Biernacki, Celeux and Govaert
        2000; as in mclust, but for the sign).
        """
        mixture, data = self.mixture_, open_data(self, X, sample_weight, reset=False)
        if isinstance(data, Bins):
            singles = [replace(mixture.ordered([j]), weights=np.ones(1)) for j in range(mixture.n_components)]
            shares = np.stack([data.probabilities(one) for one in singles], axis=1) * mixture.weights
            taken = data.counts > 0
            blurred = float(data.counts[taken] @ np.log(shares[taken].max(axis=1) / shares[taken].sum(axis=1)))
        else:
            blurred = 0.0
            for start, stop, rows in each_block(data.source, mixture.n_components, data.device):
                R = mixture.responsibilities(rows)
                each = np.log(host(R.amax(1) if is_tensor(R) else R.max(axis=1)))
                blurred += float(each.sum() if data.sample_weight is None else data.sample_weight[start:stop] @ each)
        return self.bic(X, sample_weight) - 2.0 * blurred

    def sample(self, n_samples: int = 1) -> tuple[Any, Any]:
        """Draw rows from the mixture, and the component of each; sorted by component, as scikit-learn has them.

        They are tensors where the fit was to tensors. With ``random_state=None`` every call draws other rows.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1, got {n_samples!r}.")
        state = self.random_state
        rng = np.random.default_rng(None if state is None else seeded(state).randint(2**31 - 1))
        X, labels = self.mixture_.sample(int(n_samples), rng)
        order = np.argsort(labels, kind="stable")
        home = home_of(self.means_)
        return sent(X[order], home), sent(labels[order], home)

    def marginal(self, columns: Sequence[int | str]) -> Mixture:
        """The distribution of some columns, by number or name.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.estimators.mixture import GaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> GaussianMixture().fit(X).marginal([0, 2])
        Mixture(VVV, 1 component, 2 columns): weights 1
        """
        return self.mixture_.marginal(self._columns(columns))

    def conditional(self, columns: Sequence[int | str], values: Any) -> Mixture:
        """The distribution of the other columns where these have these values: a regression with all its uncertainty.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.estimators.mixture import GaussianMixture
        >>> x = np.linspace(0.0, 1.0, 50)
        >>> model = GaussianMixture().fit(np.column_stack([x, 3.0 * x + 0.1 * np.sin(40 * x)]))
        >>> model.conditional([0], [0.5]).means.round(2)
        array([[1.5]])
        """
        given = self._columns(columns)
        point = numbers("values", values).reshape(-1)
        if len(point) != len(given):
            raise ValueError(f"There are {len(given)} columns and {len(point)} values.")
        if len(given) >= self.n_features_in_:  # type: ignore[attr-defined]
            raise ValueError("All columns are given: there is none left to have a distribution.")
        return self.mixture_.conditional(given, point)

    def impute(self, X: Any, *, return_std: bool = False) -> Any:
        """X with NaN cells replaced by their expectation given the row's other cells; and how uncertain they are.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, of which some cells are NaN.
        return_std : bool, default=False
            Whether to return the standard deviations of the cells too, 0 where they are observed.
        """
        mixture = self.mixture_
        if not return_std:
            return on_rows(self, X, lambda x: expected_cells(x, mixture)[0], cells=True)
        both = on_rows(self, X, lambda x: np.concatenate(expected_cells(x, mixture), axis=1), cells=True)
        d = len(mixture.origin)
        return both[:, :d], both[:, d:]

    def standard_errors(self, X: Any, sample_weight: Any = None) -> StandardErrors:
        """Standard errors of weights, means and covariances from the observed information, by Louis's formula.

        Parameters
        ----------
        X, sample_weight
            The data of the fit. :func:`gramian.analysis.mixtures.bootstrap_mixture` resamples them instead.
        """
        data = open_data(self, X, sample_weight, reset=False)
        return standard_errors(data, self.mixture_, self.constraints)  # type: ignore[attr-defined]

    def goodness(self, bins: Bins) -> Goodness:
        """Deviance and X² of counts in bins against those expected, with their degrees of freedom."""
        data = open_data(self, bins, None, reset=False)
        if not isinstance(data, Bins):
            raise ValueError("Goodness of fit compares counts: give Bins (gramian.likelihood.mixture.Bins.of).")
        return data.goodness(self.mixture_, self._n_parameters())

    def diagnose(self, X: Any, sample_weight: Any = None) -> tuple[Diagnosis, ...]:
        """Components that are empty or have collapsed on these data, each with a remedy; none where all is well."""
        data, mixture = open_data(self, X, sample_weight, reset=False), self.mixture_
        return diagnose(mixture, data.expect(mixture), self._maximiser(data).prior)  # type: ignore[attr-defined]

    def _height(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        mixture = self.mixture_
        data: Rows | Bins = open_data(self, X, sample_weight, reset=False)
        return data.expect(mixture).log_likelihood, data.weight

    def _n_parameters(self) -> int:
        return int(getattr(self, "n_parameters_", None) or self.mixture_.free_parameters)

    def _columns(self, columns: Sequence[int | str]) -> list[int]:
        check_is_fitted(self)
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        d = self.n_features_in_  # type: ignore[attr-defined]
        found: list[Any] = []
        for column in [columns] if isinstance(columns, (int, str)) else columns:
            if isinstance(column, str) and column not in names:
                raise ValueError(
                    f"There is no column {column!r}; there are {', '.join(names) or f'{d}, without names'}."
                )
            found.append(names.index(column) if isinstance(column, str) else column)
        return [int(j) for j in column_numbers(found, d)]
