r"""From components to groups and classes: merging by entropy, and discriminant analysis by a mixture for each class.

A group that is not normal takes several components. Where groups are not known, components are merged two by two, those
whose union lowers the entropy of the responsibilities most (Baudry et al. 2010); where they are, each class has a
mixture of its own (Hastie and Tibshirani 1996; Fraley and Raftery 2002).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import is_tensor, like, to_numpy
from gramian.inputs.checks import check_choice, check_integer, check_labels, check_weights
from gramian.inputs.opening import open_input
from gramian.mixture.choose import select_mixture
from gramian.mixture.diagnose import diagnose
from gramian.mixture.em import Maximiser, step_length
from gramian.mixture.estimator import GaussianMixture, make_blocks, make_random_state
from gramian.mixture.models import MODELS, covariance_parameters, resolve_model
from gramian.mixture.parameters import Mixture, Prior, as_floats
from gramian.mixture.rows import MixtureRows
from gramian.results import NumericalWarning, Optimum, caller_level
from gramian.results.tables import Tabular
from gramian.sources import DenseSource, Source
from gramian.sources.devices import source_to_numpy

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class MergedComponents(Tabular):
    """Components merged two by two, from all of them to one.

    Attributes
    ----------
    entropies : ndarray of shape (K,)
        −Σ r ln r of the responsibilities of 1, 2, …, K groups.
    n_groups : int
        Where a line in two pieces fits the entropies best: mclust's ``clustCombiOptim``.
    mergers : list of tuple of int
        The two components, or groups named by their first component, merged in each step.
    responsibilities : ndarray of shape (n, K)
        Of the components.
    sample_weight : ndarray of shape (n,)
        Weights of the rows.
    """

    entropies: Array
    n_groups: int
    mergers: list[tuple[int, int]]
    responsibilities: Array
    sample_weight: Array

    def groups(self, n_groups: int | None = None) -> Labels:
        """The group of each component, where there are so many groups; ``n_groups`` of them unless given."""
        k = self.responsibilities.shape[1]
        asked = self.n_groups if n_groups is None else check_integer("n_groups", n_groups)
        if asked > k:
            raise ValueError(f"n_groups={asked} is more than the {k} components.")
        member = np.arange(k)
        for kept, gone in self.mergers[: k - asked]:
            member[member == member[gone]] = member[kept]
        return np.asarray(np.unique(member, return_inverse=True)[1], dtype=np.intp)

    def predict_proba(self, n_groups: int | None = None) -> Array:
        """Responsibilities of the groups, for the rows they were merged with."""
        member = self.groups(n_groups)
        return np.asarray(self.responsibilities @ (member[:, None] == np.arange(member.max() + 1)))

    def predict(self, n_groups: int | None = None) -> Labels:
        """The group of each of these rows."""
        return np.asarray(self.predict_proba(n_groups).argmax(axis=1), dtype=np.intp)

    def table(self) -> dict[str, Any]:
        """Return number of groups, entropy and what was merged, as columns: for ``pandas.DataFrame``."""
        k = len(self.entropies)
        merged = [f"{a + 1} and {b + 1}" for a, b in reversed(self.mergers)]
        return {"groups": np.arange(1, k + 1), "entropy": self.entropies, "made by merging": [*merged, ""]}

    def _title(self) -> str:
        return f"{len(self.entropies)} components merged by entropy: {self.n_groups} groups"


def merge_components(model: Any, X: Any, sample_weight: Any = None) -> MergedComponents:
    r"""Merge the components of a mixture into groups, by entropy.

    In each step the two are merged for which :math:`-\sum_i(r_{ia}+r_{ib})\ln(r_{ia}+r_{ib})` is most below
    :math:`-\sum_ir_{ia}\ln r_{ia}-\sum_ir_{ib}\ln r_{ib}`: those that overlap most. The density stays as it is.

    Parameters
    ----------
    model : GaussianMixture, BayesianGaussianMixture or RobustMixture
        A fitted mixture; noise is no component.
    X : array-like, frame, tensor, path or Source of shape (n, d)
        Rows, mostly those of the fit.
    sample_weight : array-like of shape (n,), optional
        Frequencies.

    Returns
    -------
    MergedComponents
        Entropies, groups for any number of them, and where the entropies bend.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.analysis import merge_components
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 1, (300, 2)), rng.uniform(0, 1, (300, 2)) + [3, 0]])
    >>> merged = merge_components(GaussianMixture(5).fit(X), X)
    >>> merged.n_groups, np.bincount(merged.predict())
    (2, array([300, 300]))
    """
    check_is_fitted(model)
    k = len(model.weights_)
    R = np.array(to_numpy(model.predict_proba(X), float)[:, :k])
    w = check_weights(sample_weight, len(R))

    def entropies(Z: Array) -> Array:
        return np.asarray(-(w @ xlogy(Z, Z)))

    groups, names, found, mergers = R.copy(), list(range(k)), [float(entropies(R).sum())], list[tuple[int, int]]()
    while len(names) > 1:
        alone = entropies(groups)
        best, pair = -math.inf, (0, 1)
        for a in range(len(names) - 1):
            gain = alone[a] + alone[a + 1 :] - entropies(groups[:, [a]] + groups[:, a + 1 :])
            b = int(np.argmax(gain))
            if gain[b] > best:
                best, pair = float(gain[b]), (a, a + 1 + b)
        a, b = pair
        mergers.append((names[a], names[b]))
        groups[:, a] += groups[:, b]
        groups, names = np.delete(groups, b, axis=1), [*names[:b], *names[b + 1 :]]
        found.append(float(entropies(groups).sum()))
    return MergedComponents(np.array(found[::-1]), _find_bend(np.array(found[::-1])), mergers, R, w)


def _find_bend(y: Array) -> int:
    """Where a line in two pieces fits best, counted from 1; of one or two values the last."""
    x, best, bend = np.arange(1.0, len(y) + 1), math.inf, len(y)
    for c in range(2, len(y)):
        error = 0.0
        for part in (slice(0, c), slice(c - 1, None)):
            u, v = x[part] - x[part].mean(), y[part] - y[part].mean()
            error += float(np.sum((v - (u @ v) / (u @ u) * u) ** 2))
        if error < best:
            best, bend = error, c
    return bend


class MixtureDiscriminant(ClassifierMixin, BaseEstimator):
    r"""Discriminant analysis with a mixture of normals for each class.

    .. math:: P(c\mid x) \propto \tau_c\sum_k\pi_{ck}N(x;\mu_{ck},\Sigma_{ck})

    Number of components and covariance model are chosen for each class by a criterion: mclust's ``MclustDA``. With
    ``shared=True`` each class is one normal and all have the same covariance model, of the fourteen: ``EDDA``, of which
    "EEE" is linear and "VVV" quadratic discriminant analysis.

    Parameters
    ----------
    n_components : int or iterable of int, default=(1, 2, 3, 4, 5)
        Among which the number of each class is chosen; a class of few rows has no more than a quarter of them.
    covariance_types : sequence of str, optional
        Models among which to choose: all fourteen unless given.
    shared : bool, default=False
        One normal for each class, under one model.
    criterion : {"bic", "aic", "icl"}, default="bic"
        What to choose by.
    priors : array-like of shape (C,), optional
        τ; the shares of the classes unless given.
    random_state : int, RandomState, Generator or None, default=None
        Seed of starts; None is a fixed seed.

    Attributes
    ----------
    classes_, priors_ : ndarray of shape (C,)
        Labels, and τ.
    mixtures_ : list of Mixture
        The distribution of each class; ``mixtures_[c].model`` is the covariance model that was chosen for class c.
    log_likelihood_, n_parameters_, bic_ : float, int, float
        Σ ln Σ_c τ_c p_c(x) over the rows; parameters of the mixtures; −2ℓ + p ln n. They are mclust's, but for the
        sign of the last.
    certificate_ : Optimum
        Of the class whose gradient is largest.
    n_features_in_, feature_names_in_
        Columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import MixtureDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureDiscriminant((1, 2), covariance_types=("EEE", "VVV")).fit(X, y)
    >>> round(model.score(X, y), 3), [mixture.n_components for mixture in model.mixtures_]
    (0.98, [2, 1, 1])
    """

    def __init__(
        self,
        n_components: Any = (1, 2, 3, 4, 5),
        *,
        covariance_types: Sequence[str] | None = None,
        shared: bool = False,
        criterion: str = "bic",
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_types = covariance_types
        self.shared = shared
        self.criterion = criterion
        self.priors = priors
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MixtureDiscriminant:
        """Find the mixture of each class.

        Parameters
        ----------
        X : array-like, frame, tensor, path or Source of shape (n, d)
            Rows; NaN cells are missing (not with ``shared``).
        y : array-like of shape (n,)
            Their classes.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a weight of 2 is the row twice.

        Returns
        -------
        MixtureDiscriminant
            The estimator itself.
        """
        check_choice("criterion", self.criterion, ("bic", "aic", "icl"))
        sizes = [self.n_components] if not isinstance(self.n_components, Iterable) else list(self.n_components)
        sizes = sorted({check_integer("n_components", size) for size in sizes})
        source = self._open(X, reset=True)
        n, d = source.shape
        if n < 2:
            raise ValueError(f"Found array with {n} sample(s), n_samples={n}, while a minimum of 2 is required.")
        self.classes_, labels = check_labels(self, to_numpy(y) if is_tensor(y) else y)
        if len(labels) != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n} rows, y {len(labels)}."
            )
        w = np.ones(n) if sample_weight is None else check_weights(as_floats("sample_weight", sample_weight), n)
        counts: Array = np.bincount(labels, weights=w, minlength=len(self.classes_)).astype(np.float64)
        if not (counts > 0).all():  # classes without weight are not there
            labels = np.where(w > 0, np.cumsum(counts > 0)[labels] - 1, 0)
            self.classes_, counts = self.classes_[counts > 0], counts[counts > 0]
        c = len(self.classes_)
        if c < 2:
            raise ValueError(f"There is one class alone, {self.classes_[0]!r}: nothing can be told apart.")
        if self.priors is None:
            self.priors_ = counts / counts.sum()
        else:
            given = as_floats("priors", self.priors)
            if given.shape != (c,) or not (given >= 0).all() or not given.sum() > 0:
                raise ValueError(f"priors must be {c} numbers of at least 0, got {self.priors!r}.")
            self.priors_ = given / given.sum()
        every = ["E", "V"] if d == 1 else list(MODELS)
        names = every if self.covariance_types is None else [str(name) for name in self.covariance_types]
        fit = self._fit_shared if self.shared else self._fit_each
        fit(source, labels, w, names, sizes)
        self.bic_ = -2.0 * self.log_likelihood_ + self.n_parameters_ * math.log(float(w.sum()))
        return self

    def _fit_each(self, source: Source, labels: Labels, w: Array, names: list[str], sizes: list[int]) -> None:
        """A mixture for each class, chosen among sizes and models."""
        self.mixtures_, certificates, self.n_parameters_ = [], list[Optimum](), 0
        whole = source.values if isinstance(source, DenseSource) and isinstance(source.values, np.ndarray) else None
        seed = make_random_state(self.random_state).randint(2**31 - 1)
        for j in range(len(self.classes_)):
            mine = (labels == j) & (w > 0)
            few = max(1, int(w[mine].sum()) // 4)
            rows, weights = (source, np.where(mine, w, 0.0)) if whole is None else (whole[mine], w[mine])
            plain = None if np.all(weights == 1.0) else weights
            prototype = GaussianMixture(random_state=int(seed))
            among: dict[str, Any] = {
                "n_components": [size for size in sizes if size <= few] or [1],
                "covariance_types": names,
                "criterion": self.criterion,
            }
            try:
                if np.count_nonzero(weights) < 2:
                    raise ValueError("There is one row.")
                best = select_mixture(prototype, rows, sample_weight=plain, **among).best
            except ValueError:
                best = self._fit_flat(source, labels == j, w, names)
            self.mixtures_.append(best.mixture_)
            certificates.append(best.certificate_)
            self.n_parameters_ += int(best.n_parameters_)
        self.log_likelihood_ = self._measure(source, w, self.mixtures_)
        self.certificate_ = max(certificates, key=lambda found: found.worst)

    def _fit_flat(self, source: Source, mine: Any, w: Array, names: list[str]) -> GaussianMixture:
        """One normal for a class that does not vary in all directions: with a millionth of the variances added."""
        spread = float(MixtureRows.of(source, w, "cpu").variances.mean())
        if not spread > 0:
            raise ValueError("No column varies: classes cannot be told apart.")
        name = next((name for name in ("VVV", "EEE", "VVI", "EEI") if name in names), names[0])
        flat = GaussianMixture(1, covariance_type=name, reg_covar=1e-6 * spread)
        warnings.warn(
            f"MixtureDiscriminant: the rows of a class ({int(np.count_nonzero(mine & (w > 0)))}) do not vary in all "
            "directions, or are too few for components; it has one normal, a millionth of the variances added.",
            NumericalWarning,
            stacklevel=caller_level(),
        )
        return flat.fit(source, sample_weight=np.where(mine, w, 0.0))

    def _fit_shared(self, source: Source, labels: Labels, w: Array, names: list[str], sizes: list[int]) -> None:
        """One normal for each class under one model: a maximisation step."""
        data, (c, d) = MixtureRows.of(source, w, "cpu"), (len(self.classes_), source.shape[1])
        if data.incomplete:
            raise ValueError("Input X contains NaN: with shared=True complete rows are needed.")
        best, prior, failure = None, Prior.floor(data), None
        for name in names:
            letters = resolve_model(name, d)
            maximise, stats = Maximiser(letters, prior), data.assign(labels, c, letters)
            try:
                with np.errstate(all="ignore"):
                    mixture, gradient = maximise(stats), math.inf
                    for _ in range(100):  # shapes and axes in common are found step by step
                        following = maximise(stats, mixture)
                        gradient, mixture = step_length(mixture, following, data.weight), following
                        if gradient <= 1e-8:
                            break
                found = diagnose(mixture, stats, prior)
            except (ValueError, np.linalg.LinAlgError) as error:  # rounding has left it no covariance
                failure = error
                continue
            alone = [mixture.reorder([j]) for j in range(c)]
            parts = [Mixture(np.ones(1), one.centres, one.covariances, letters, one.origin) for one in alone]
            height = self._measure(source, w, parts)
            if not math.isfinite(height):
                failure = ValueError(f"{letters} gives the rows no density.")
                continue
            free = c * d + covariance_parameters(letters, c, d)
            penalty = 2.0 * free if self.criterion == "aic" else free * math.log(data.weight)
            # a class that has collapsed has a likelihood without meaning: such a model is kept if there is no other
            rank = (bool(found), penalty - 2.0 * height)
            if best is None or rank < best[0]:
                best = (rank, height, free, parts, gradient, letters, found)
        if best is None:
            raise ValueError(f"No model can be fitted; of the last, {failure}") from failure
        _, self.log_likelihood_, self.n_parameters_, self.mixtures_, gradient, letters, found = best
        notes = tuple(dict.fromkeys(item.message for item in found))
        for message in dict.fromkeys(item.message for item in found if item.kind != "spurious"):
            warnings.warn(
                f"MixtureDiscriminant, a component for each class: {message}.",
                NumericalWarning,
                stacklevel=caller_level(),
            )
        self.certificate_ = Optimum(
            "one maximisation step",
            f"maximum likelihood of a normal for each class, model {letters}",
            1,
            1,
            np.array([-self.log_likelihood_]),
            gradient,
            tolerance=1e-5,
            notes=notes,
        )

    def _measure(self, source: Source, w: Array, parts: list[Mixture]) -> float:
        """Σw ln Σ_c τ_c p_c(x)."""
        total = 0.0
        with np.errstate(divide="ignore"):
            shares = np.log(self.priors_)
        for start, stop, rows in make_blocks(source_to_numpy(source), max(part.n_components for part in parts)):
            each = np.stack([part.log_density(rows) for part in parts], axis=1) + shares
            total += float(w[start:stop] @ logsumexp(each, axis=1))
        return total

    def _open(self, X: Any, *, reset: bool) -> Source:
        source = open_input(self, X, reset=reset)
        if source.sparse:
            raise TypeError("Sparse data was passed to MixtureDiscriminant, which takes dense rows. Use X.toarray().")
        return source

    def predict_log_proba(self, X: Any) -> Any:
        """ln P(c | x), of shape (n, C)."""
        check_is_fitted(self)
        source = self._open(X, reset=False)
        out = np.empty((source.shape[0], len(self.classes_)))
        with np.errstate(divide="ignore"):
            shares = np.log(self.priors_)
        for start, stop, rows in make_blocks(source_to_numpy(source), max(m.n_components for m in self.mixtures_)):
            if self.shared and np.isnan(rows).any():
                raise ValueError("Input X contains NaN: with shared=True complete rows are needed.")
            out[start:stop] = np.stack([mixture.log_density(rows) for mixture in self.mixtures_], axis=1) + shares
        return like(source, out - logsumexp(out, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Any:
        """P(c | x), of shape (n, C)."""
        found = self.predict_log_proba(X)
        return found.exp() if is_tensor(found) else np.exp(found)

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row."""
        check_is_fitted(self)
        return self.classes_[to_numpy(self.predict_log_proba(X)).argmax(axis=1)]

    def cross_validate(self, X: Any, y: Any, n_folds: int = 10) -> dict[str, float]:
        """Error and Brier score of rows held out, by folds with classes in proportion; choices are made anew in each.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Their classes.
        n_folds : int, default=10
            Number of folds.

        Returns
        -------
        dict
            "error", the share of rows given to a wrong class; "brier", half the mean squared distance between
            probabilities and classes, as mclust's; "standard_error" of the error over rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from gramian import MixtureDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> MixtureDiscriminant(1, covariance_types=["EEE"], shared=True).cross_validate(X, y)["error"]
        0.02
        """
        X, y = to_numpy(X) if is_tensor(X) else np.asarray(X), to_numpy(y) if is_tensor(y) else np.asarray(y)
        folds = StratifiedKFold(check_integer("n_folds", n_folds, 2), shuffle=True, random_state=0)
        wrong, squares = np.zeros(len(y)), np.zeros(len(y))
        for train, test in folds.split(X, y):
            model = clone(self).fit(X[train], y[train])
            P = model.predict_proba(X[test])
            wrong[test] = model.classes_[P.argmax(axis=1)] != y[test]
            squares[test] = 0.5 * np.sum((P - (y[test][:, None] == model.classes_)) ** 2, axis=1)
        error = float(wrong.mean())
        spread = math.sqrt(error * (1 - error) / len(y))
        return {"error": error, "brier": float(squares.mean()), "standard_error": spread}

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not self.shared
        return tags
