"""How a PCA is fitted: to whole rows, to rows with gaps, and to rows that come a block at a time."""

from __future__ import annotations

import warnings
from typing import Any, Self

from sklearn.utils import check_random_state

from gramian.analysis.rank_rules import DATA_RULES
from gramian.compute.rowspace import RowSpace
from gramian.estimators import _stream as stream
from gramian.estimators._devices import bring_home, home_of, placed
from gramian.estimators._fitted import FITTED, Fitted, Options
from gramian.estimators._fitting import fit
from gramian.estimators._incomplete import LIKELIHOOD, fit_incomplete
from gramian.estimators._inputs import MissingValuesError, check_weights, open_input
from gramian.estimators._parameters import check_parameters
from gramian.linear._caller import caller_level
from gramian.results import NumericalWarning
from gramian.sources import Source
from gramian.sources.devices import to_host

__all__ = ["Fits"]

Array = Any


class Fits:
    """What stands between the parameters of a PCA and its fitted attributes."""

    n_components: Any
    whiten: bool
    svd_solver: str
    tol: float
    iterated_power: int | str
    n_oversamples: int
    random_state: Any
    scale: bool
    device: Any
    _rowspace: RowSpace
    _like: Source

    def fit_incomplete(
        self,
        X: Any,
        y: Any = None,
        *,
        method: str = LIKELIHOOD,
        sample_weight: Any = None,
        tol: float | None = None,
        max_iterations: int = 2000,
    ) -> Self:
        """Find the components of rows of which some cells are NaN, by a method of choice.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`; dense, in memory or in a file.
        method : {"likelihood", "regularised", "least-squares"}, default="likelihood"
            Maximum likelihood of the observed cells under probabilistic PCA, which is what :meth:`fit` does; or
            iterative PCA with shrinkage or without, which missMDA calls "Regularized" and "EM".
        tol : float, optional
            Gradient to reach (see :class:`gramian.results.Optimum`): 1e-5 standard errors by likelihood; by the others
            a last change of the filled cells of 1e-6 of their spread. :meth:`fit` takes the constructor's.
        max_iterations : int, default=2000
            Most iterations; too few for the tolerance is warned about.

        Returns
        -------
        PCA
            The estimator itself; ``certificate_`` is an :class:`~gramian.results.Optimum`.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import PCA
        >>> X = np.outer(np.arange(6.0), [1.0, 2.0, -1.0]) + 0.1 * np.sin(np.arange(18.0)).reshape(6, 3)
        >>> X[2, 1] = np.nan
        >>> pca = PCA(n_components=1).fit_incomplete(X, method="regularised")
        >>> bool(abs(pca.impute(X)[2, 1] - 4.0) < 0.2)
        True
        """
        given = self._opened(X)
        self._name(fit_incomplete(self, *_near(given, sample_weight), self._options(), method, tol, max_iterations))
        bring_home(self, home_of(given), FITTED)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the fit; after the last block the answer is that of a fit on all rows.

        Exact while p rows of p numbers take no more than an eighth of ``working_memory``; otherwise only the leading
        directions are kept and the certificate bounds what that can have changed. The decomposition itself is made when
        a fitted attribute is first read. After :meth:`fit`, which keeps no rows, partial_fit starts anew. The rows that
        are kept are worked on by the CPU, whatever the device.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        PCA
            The estimator itself.
        """
        check_parameters(self)
        first = "_rowspace" not in vars(self)
        source = open_input(self, X, reset=first)
        w = check_weights(sample_weight, to_host(source))
        state = RowSpace.empty(source.shape[1]) if first else self._rowspace
        self._forget(rowspace=False)
        self._rowspace = stream.absorb(state, to_host(source), w, self._options())
        self._like = stream.template(source)
        return self

    def _opened(self, X: Any) -> Source:
        """Open the rows of a new fit, and forget the last one."""
        check_parameters(self)
        self._forget()
        return open_input(self, X, reset=True)

    def _fit(self, given: Source, sample_weight: Any) -> Source:
        """Fit where ``device`` says and bring the results home; return the rows where they were worked on."""
        source = placed(given, self.device)
        w, options, rule = check_weights(sample_weight, source), self._options(), self.n_components
        choice = None
        if isinstance(rule, str) and rule in DATA_RULES:
            choice = DATA_RULES[rule](self, *_near(given, sample_weight))
        try:
            self._name(fit(source, w, options, choice))
        except MissingValuesError:
            if source.sparse:
                raise
            self._name(fit_incomplete(self, *_near(given, sample_weight), options, LIKELIHOOD, options.tol))
        bring_home(self, home_of(given), FITTED)
        return source

    def _options(self) -> Options:
        rng = self.random_state
        seed = 0 if rng is None else int(check_random_state(rng).randint(2**31 - 1))
        cap = None if self.iterated_power == "auto" else int(self.iterated_power)
        return Options(
            self.n_components,
            self.svd_solver,
            self.tol or None,
            cap,
            self.n_oversamples,
            seed,
            self.scale,
            self.whiten,
        )

    def _name(self, result: Fitted) -> None:
        """Give the results their scikit-learn names, in the array type of the data."""
        for name, value in result.attributes.items():
            setattr(self, name, value)
        for message in result.warnings:
            warnings.warn(message, NumericalWarning, stacklevel=caller_level())

    def _forget(self, rowspace: bool = True) -> None:
        for name in FITTED:
            self.__dict__.pop(name, None)
        if rowspace:
            self.__dict__.pop("_rowspace", None)

    def __getattr__(self, name: str) -> Any:
        """Decompose what partial_fit gathered when a fitted attribute is first read."""
        if name in FITTED and "_rowspace" in vars(self):
            try:
                self._name(stream.conclude(self._rowspace, self._like, self._options()))
            except ValueError as error:  # too few rows so far, say: the attribute is not there yet
                raise AttributeError(str(error)) from error
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is something to transform with."""
        return "components_" in vars(self) or "_rowspace" in vars(self)


def _near(given: Source, sample_weight: Any) -> tuple[Source, Array | None]:
    """Rows and weights for what is written in NumPy, and not for a card."""
    source = to_host(given)
    return source, check_weights(sample_weight, source)
