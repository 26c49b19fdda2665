r"""How much of a trait the SNPs explain, and what they predict of it.

The model is :math:`y = C\beta + g + e` with :math:`g \sim N(0, \sigma_g^2 K)`, :math:`e \sim N(0, \sigma_e^2 I)`, fixed
covariates C and the relationship matrix :math:`K = ZZ^T/M` of standardised genotypes. By one eigendecomposition of K
outside the span of C the residual likelihood is a function of the heritability alone, whose highest point is proved;
from products with K alone the method of moments has estimates that need no decomposition.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.optimize
from scipy import stats

from gramian.compute.devices import refuse_beyond_device
from gramian.compute.factor import eigh
from gramian.genetics.genotypes import Standard, as_genotypes, select_usable_snps, standardise
from gramian.genetics.relatives import Relationships
from gramian.inputs.checks import check_choice, check_integer, check_seed, fetch_numbers
from gramian.inputs.progress import Progress
from gramian.operators.genotype import GenotypeOperator
from gramian.results import Optimum
from gramian.sources.plink import Genotypes

Array = npt.NDArray[np.float64]

EXACT_PEOPLE = 6000  # up to which "auto" decomposes the matrix: about a minute on two cores
LARGEST = 1 - 1e-6  # of h²: at 1 a zero eigenvalue leaves no density
LEAST_TRAIT = 1e-40  # by which a trait varies: of less, the cube of a variance underflows
LIKELIHOOD_TOLERANCE = 1e-8  # of the highest log-likelihood, proved
MOST_INTERVALS = 20_000  # looked at before the proof is given up
METHODS = ("auto", "reml", "haseman-elston")


@dataclass(frozen=True, eq=False, repr=False)
class Heritability:
    r"""The share of a trait's variance that goes with the relationship matrix.

    Attributes
    ----------
    h2 : float
        :math:`h^2 = \sigma_g^2\bar k/(\sigma_g^2\bar k + \sigma_e^2)`, with :math:`\bar k` the mean diagonal of K. Of
        ``haseman-elston`` it may lie outside 0 to 1: the estimate has no bias because it is not cut off.
    standard_error : float
        From the average information (``reml``), or of the moments under normality, random probes included.
    interval : tuple of float
        95 %: by the profile of the residual likelihood (``reml``), or two standard errors to either side.
    genetic_variance, residual_variance : float
        :math:`\sigma_g^2\bar k` and :math:`\sigma_e^2`, in the square of the trait's unit.
    p_value : float
        Of no heritability: by the likelihood ratio, half of which is at zero (``reml``), or by the standard error
        that the moments have where there is none.
    method : str
        What was used.
    log_likelihood : float or None
        Residual log-likelihood at the estimate.
    probe_error : float
        The part of the standard error that more probes would take away.
    samples : ndarray of int
        Rows of the genotypes that have the trait and all covariates.
    n_snps : int
        SNPs of K.
    certificate : Optimum or None
        Of ``reml``: that no other h² is likelier.
    breeding_values : ndarray of shape (n,), or None
        :math:`\hat g`, the best linear unbiased predictions of the samples (GBLUP); of ``reml``.
    left_out : ndarray of shape (n,), or None
        The trait of each sample as the others predict it, covariates included, exactly; of ``reml``.
    fixed : ndarray or None
        :math:`\hat\beta`, the intercept first; of ``reml``.
    """

    h2: float
    standard_error: float
    interval: tuple[float, float]
    genetic_variance: float
    residual_variance: float
    p_value: float
    method: str
    log_likelihood: float | None
    probe_error: float
    samples: npt.NDArray[np.intp]
    n_snps: int
    certificate: Optimum | None = None
    breeding_values: Array | None = None
    left_out: Array | None = None
    fixed: Array | None = None
    _dual: Array | None = field(default=None)  # V⁻¹(y − Cβ̂)
    _source: Genotypes | None = field(default=None)
    _standard: Standard | None = field(default=None)
    _diagonal: float = field(default=1.0)

    def effects(self) -> Array:
        r"""Effect of one copy of A1 at each SNP used, :math:`\sigma_g^2 Z^T V^{-1}(y - C\hat\beta)/(M s)`: one pass."""
        if self._dual is None or self._source is None or self._standard is None:
            raise ValueError("Effects of SNPs need method='reml' and genotypes, not a matrix alone.")
        A = GenotypeOperator(self._source, self._standard.mean, self._standard.scale, dtype=np.float64)
        sigma = self.genetic_variance / self._diagonal
        return np.asarray(sigma / self.n_snps * (A.T @ self._dual[:, None])[:, 0] / self._standard.scale)

    def predict(self, X: Any) -> Array:
        """Genetic value of other people at the SNPs of the fit, missing calls at their mean: two passes.

        Parameters
        ----------
        X : path, Genotypes or array
            The same SNPs with the same alleles, in the same order.
        """
        effects = self.effects()
        assert self._source is not None
        assert self._standard is not None
        source, own = as_genotypes(X), self._source.snps
        if source.shape[1] != len(own) or not all(
            np.array_equal(getattr(source.snps, name), getattr(own, name)) for name in ("id", "a1", "a2")
        ):
            raise ValueError(
                f"The {source.shape[1]:,} SNPs given are not the {len(own):,} of the fit, with the same names and "
                "alleles in the same order: genetics.match_snps finds them, and select takes them."
            )
        A = GenotypeOperator(source, self._standard.mean, np.ones(len(own)), dtype=np.float64)
        return np.asarray((A @ effects[:, None])[:, 0])

    def on_liability_scale(self, prevalence: float, share_of_cases: float) -> float:
        r"""h² of the liability behind a disease, by Lee et al. (2011).

        .. math:: h^2_l = h^2 \frac{K^2(1-K)^2}{z^2 P(1-P)},

        with K the prevalence, P the share of cases among the samples and z the normal density at the threshold.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.genetics import heritability
        >>> calls = np.random.default_rng(0).binomial(2, 0.4, (60, 200))
        >>> found = heritability(calls, (calls @ np.ones(200) > 160).astype(float))
        >>> bool(np.isclose(found.on_liability_scale(0.5, 0.5), found.h2 * np.pi / 2))
        True
        """
        if not (0 < prevalence < 1 and 0 < share_of_cases < 1):
            raise ValueError(
                f"prevalence={prevalence!r} and share_of_cases={share_of_cases!r} must lie between 0 and 1."
            )
        height = stats.norm.pdf(stats.norm.isf(prevalence))
        spread = prevalence * (1 - prevalence)
        return float(self.h2 * spread**2 / (height**2 * share_of_cases * (1 - share_of_cases)))

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Heritability: {self.h2:.4f} ± {self.standard_error:.4f} ({low:.3f} to {high:.3f}), "
            f"p = {self.p_value:.2g}; {len(self.samples):,} samples, {self.n_snps:,} SNPs, {self.method}"
        )


def heritability(
    X: Any,
    y: npt.ArrayLike,
    covariates: npt.ArrayLike | None = None,
    *,
    method: str = "auto",
    n_probes: int = 50,
    random_state: int | None = None,
    progress: Progress | None = None,
) -> Heritability:
    r"""Share of a trait's variance that SNPs explain, by residual maximum likelihood or the method of moments.

    ``"reml"`` decomposes K once. With δ and η the eigenvalues of K, its mean diagonal 1, and the coordinates of y,
    both outside the span of the covariates, and :math:`d_i = h^2\delta_i + 1 - h^2`, the residual log-likelihood is

    .. math:: -\frac12\left[\sum\log d_i + N\log\Big(\frac1N\sum\frac{\eta_i^2}{d_i}\Big) + N(1 + \log 2\pi)\right].

    On an interval the first sum is concave in h² and the second convex, so that a chord and two tangents bound it from
    above: intervals are halved until no h² can be likelier by 1e-8.

    ``"haseman-elston"`` solves the two equations of yᵀKy and yᵀy, y outside the span of the covariates, for the two
    variances. The traces they need come from random probes, in the one pass that Ky takes.

    Parameters
    ----------
    X : path, Genotypes, array of samples × SNPs, or Relationships
        Genotypes, or the matrix K that :func:`read_grm` has read.
    y : array-like of shape (n,)
        The trait, NaN where it is not known.
    covariates : array-like of shape (n, c), optional
        Fixed effects, NaN where not known; an intercept is there in any case.
    method : {"auto", "reml", "haseman-elston"}, default="auto"
        REML up to 6,000 people.
    n_probes : int, default=50
        Random vectors of the method of moments.
    random_state : int, optional
        Seed of the probes.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    Heritability
        With a standard error, an interval and a p-value; of ``"reml"`` with breeding values and effects of SNPs.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import heritability
    >>> rng = np.random.default_rng(0)
    >>> calls = rng.binomial(2, 0.3, (400, 150))
    >>> z = (calls - 0.6) / np.sqrt(0.42)
    >>> y = z @ rng.normal(size=150) * np.sqrt(0.5 / 150) + rng.normal(size=400) * np.sqrt(0.5)
    >>> found = heritability(calls, y)
    >>> found.interval[0] < 0.5 < found.interval[1], found.certificate.converged
    (True, True)
    """
    check_choice("method", method, METHODS)
    check_integer("n_probes", n_probes, 3)
    given = X if isinstance(X, Relationships) else as_genotypes(X)
    n = len(given.samples)
    y = _column("y", y, n)
    C = read_covariates(covariates, n)
    samples = np.flatnonzero(np.isfinite(y) & np.isfinite(C).all(axis=1))
    y, C = y[samples], C[samples]
    Q = covariate_basis(C)
    if len(y) < Q.shape[1] + 3:
        raise ValueError(f"{len(y)} samples have the trait and all covariates: {Q.shape[1] + 3} are needed at least.")
    origin = float(y[0])  # without it digits of a trait far from 0 are kept; the intercept takes it back
    y = y - origin
    size = float(np.abs(y).max())
    if size and not LEAST_TRAIT < size < 1 / LEAST_TRAIT:
        raise ValueError(f"y varies by {size:.1g}, which is no usual size: give it in another unit.")
    rest = y - Q @ (Q.T @ y)
    if not np.any(np.abs(rest) > 1e-10 * max(1e-300, size)):
        raise ValueError("The trait does not vary beyond what the covariates explain: there is nothing to share out.")
    chosen = method if method != "auto" else "reml" if len(y) <= EXACT_PEOPLE else "haseman-elston"
    if isinstance(given, Relationships):
        K, M, source, standard = given.matrix[np.ix_(samples, samples)], int(given.counts.max(initial=0)), None, None
        if not np.isfinite(K).all():
            raise ValueError("The matrix has entries that are not finite: two people share no SNP.")
        total, k_bar = float(np.trace(K)), float(np.trace(K)) / len(y)
        multiply: Any = lambda V: K @ V  # noqa: E731
    else:
        source = given if len(samples) == given.shape[0] else given.select(samples=samples)
        source, _, _ = select_usable_snps(source, autosomes=False)
        M = source.shape[1]
        standard = standardise(source.snp_counts(), "plink")
        report = None if progress is None else _Counted(progress, M)
        A = GenotypeOperator(source, standard.mean, standard.scale, dtype=np.float64, progress=report)
        total = float(standard.squares.sum()) / M
        k_bar = total / len(y)
        multiply = lambda V: A.conormal(V) / M  # noqa: E731
        K = None
        if chosen == "reml":
            what = "The eigendecomposition of the relationship matrix"
            refuse_beyond_device(32.0 * len(y) ** 2, None, what, ("Use ", ("method", METHODS[2]), "."))
            K = A.cogram() / M
    if chosen == "haseman-elston":
        found = _moments(rest, Q, multiply, total, n_probes, check_seed(random_state))
        return _describe_moments(found, k_bar, samples, M)
    assert K is not None
    best = _maximise(y, C, Q, K / k_bar, k_bar, samples, M, source, standard)
    assert best.left_out is not None
    assert best.fixed is not None
    return replace(best, left_out=best.left_out + origin, fixed=best.fixed + origin * np.eye(1, C.shape[1])[0])


class _Counted:
    """Progress by SNPs, of tiles that end in any order."""

    def __init__(self, progress: Progress, snps: int) -> None:
        self.progress, self.snps, self.done = progress, snps, 0

    def __call__(self, count: int, _: int) -> None:
        self.done = min(self.done + count, self.snps)
        self.progress(self.done, self.snps, "SNPs")


def _column(name: str, values: npt.ArrayLike, n: int) -> Array:
    """A trait of n samples, NaN where it is not known."""
    found = np.asarray(fetch_numbers(values, name), dtype=np.float64)
    found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
    if found.shape != (n,):
        raise ValueError(f"{name} has the shape {np.shape(values)}; there are {n} samples.")
    if np.isinf(found).any():
        raise ValueError(f"{name}: row {int(np.flatnonzero(np.isinf(found))[0]) + 1} is infinite.")
    return found


def read_covariates(covariates: npt.ArrayLike | None, n: int) -> Array:
    """An intercept and the covariates of n samples, NaN where not known."""
    if covariates is None:
        return np.ones((n, 1))
    extra = np.asarray(fetch_numbers(covariates, "covariates"), dtype=np.float64)
    extra = extra[:, None] if extra.ndim == 1 else extra
    if extra.ndim != 2 or len(extra) != n:
        raise ValueError(f"covariates have the shape {extra.shape}; there are {n} samples.")
    if np.isinf(extra).any():
        raise ValueError(f"covariates: row {int(np.argwhere(np.isinf(extra))[0][0]) + 1} is infinite.")
    return np.hstack([np.ones((n, 1)), extra])


def covariate_basis(C: Array) -> Array:
    """Orthonormal basis of the span of the covariates, of which some may depend on others."""
    lengths = np.linalg.norm(C, axis=0)
    U, s, _ = np.linalg.svd(C[:, lengths > 0] / lengths[lengths > 0], full_matrices=False)
    return np.asarray(U[:, s > 1e-10 * s[0]])


@dataclass(frozen=True)
class _Likelihood:
    """−2 times the residual log-likelihood as a function of h², up to its constant; δ has the mean diagonal 1."""

    delta: Array
    squares: Array

    def __call__(self, h: float) -> float:
        d = self.spread(h)
        return float(np.log(d).sum() + len(d) * np.log(np.sum(self.squares / d) / len(d)))

    def spread(self, h: float) -> Array:
        return np.asarray(h * self.delta + (1 - h))

    def parts(self, h: float) -> tuple[float, float, float]:
        """Σ log d, S = Σ η²/d and dS/dh."""
        d = self.spread(h)
        return (
            float(np.log(d).sum()),
            float(np.sum(self.squares / d)),
            float(-np.sum(self.squares * (self.delta - 1) / d**2)),
        )

    def slope(self, h: float) -> float:
        d = self.spread(h)
        _, S, dS = self.parts(h)
        return float(np.sum((self.delta - 1) / d) + len(d) * dS / S)

    def lower_bound(
        self, a: float, b: float, left: tuple[float, float, float], right: tuple[float, float, float]
    ) -> float:
        """Least value on [a, b]: the chord of the concave sum of logarithms, N log of the tangents of the convex S.

        Chord plus the logarithm of a straight line is concave, so that it is least at an end of its piece.
        """
        N, (ga, sa, da), (gb, sb, db) = len(self.delta), left, right
        ends = min(ga + N * np.log(sa / N), gb + N * np.log(sb / N))
        if db <= da:  # the tangents are parallel: S is a straight line
            return float(ends)
        x = min(b, max(a, (sa - sb + db * b - da * a) / (db - da)))  # where they meet
        S = max(sa + da * (x - a), sb + db * (x - b))
        if S <= 0:
            return -np.inf
        middle = ga + (gb - ga) * (x - a) / (b - a) + N * np.log(S / N)
        return float(min(ends, middle))

    def minimise(self) -> tuple[float, float, int]:
        """h² of the least value, how far below it any other could be, and how many intervals were looked at."""
        grid = np.append(np.linspace(0.0, 1.0, 65)[:-1], LARGEST)
        parts = [self.parts(h) for h in grid]
        N = len(self.delta)
        values = [g + N * np.log(s / N) for g, s, _ in parts]
        best, low = float(grid[int(np.argmin(values))]), float(min(values))
        heap = [
            (
                self.lower_bound(grid[i], grid[i + 1], parts[i], parts[i + 1]),
                grid[i],
                grid[i + 1],
                parts[i],
                parts[i + 1],
            )
            for i in range(len(grid) - 1)
        ]
        heapq.heapify(heap)
        looked = len(heap)
        rounding = 4 * N * np.finfo(float).eps * (1 + abs(low) / N)
        while heap and heap[0][0] < low - 2 * LIKELIHOOD_TOLERANCE - rounding and looked < MOST_INTERVALS:
            _, a, b, left, right = heapq.heappop(heap)
            middle = (a + b) / 2
            at = self.parts(middle)
            value = at[0] + N * np.log(at[1] / N)
            if value < low:
                best, low = middle, float(value)
            heapq.heappush(heap, (self.lower_bound(a, middle, left, at), a, middle, left, at))
            heapq.heappush(heap, (self.lower_bound(middle, b, at, right), middle, b, at, right))
            looked += 2
        gap = max(0.0, low - heap[0][0]) / 2 if heap else 0.0
        best = self._polish(best)
        return best, gap, looked

    def _polish(self, h: float) -> float:
        """The zero of the slope next to h, where there is one; an end of the range stays."""
        step = 1e-3
        a, b = max(0.0, h - step), min(LARGEST, h + step)
        if not self.slope(a) < 0 < self.slope(b):
            return h
        root = float(scipy.optimize.brentq(self.slope, a, b, xtol=1e-14, rtol=1e-14))
        return root if self(root) <= self(h) + 1e-12 * abs(self(h)) else h


def _maximise(
    y: Array,
    C: Array,
    Q: Array,
    K: Array,
    k_bar: float,
    samples: npt.NDArray[np.intp],
    M: int,
    source: Genotypes | None,
    standard: Standard | None,
) -> Heritability:
    """REML; K has the mean diagonal 1."""
    n, c = Q.shape
    N = n - c
    KQ = K @ Q
    inner = Q.T @ KQ
    K_star = K - Q @ KQ.T
    K_star -= (KQ - Q @ inner) @ Q.T  # (I − QQᵀ) K (I − QQᵀ)
    shift = 1.0 + float(np.abs(K_star).sum(axis=1).max())
    K_star -= shift * (Q @ Q.T)  # the span of Q goes below all others
    values, U = eigh((K_star + K_star.T) / 2, overwrite=True)
    delta, U = np.maximum(values[c:], 0.0), U[:, c:]
    U -= Q @ (Q.T @ U)
    eta = U.T @ y
    likelihood = _Likelihood(delta, eta**2)
    h, gap, looked = likelihood.minimise()
    d = likelihood.spread(h)
    variance = float(np.sum(eta**2 / d) / N)  # σg² + σe², K having the mean diagonal 1
    v = variance * d
    information = 0.5 * np.array(
        [
            [np.sum(eta**2 * delta**2 / v**3), np.sum(eta**2 * delta / v**3)],
            [np.sum(eta**2 * delta / v**3), np.sum(eta**2 / v**3)],
        ]
    )
    slope = np.array([1 - h, -h]) / variance  # of h² in the two variances
    with np.errstate(all="ignore"):
        try:
            error = float(np.sqrt(slope @ np.linalg.solve(information, slope)))
        except np.linalg.LinAlgError:
            error = np.inf
    error = error if np.isfinite(error) else np.inf
    least, null = likelihood(h), likelihood(0.0)
    gradient = likelihood.slope(h) / 2 * (error if np.isfinite(error) else 1.0)
    at_end = (h == 0.0 and gradient >= 0) or (h == LARGEST and gradient <= 0)
    ratio = max(0.0, null - least)
    constant = N * (1 + np.log(2 * np.pi))
    notes = [
        f"no h² between 0 and 1 is likelier by more than {max(gap, LIKELIHOOD_TOLERANCE):.1g} in log-likelihood, "
        f"proved on {looked:,} intervals, with the eigenvalues as they were computed"
    ]
    if at_end:
        notes.append(f"the highest likelihood is at the end of the range, h² = {h:.6g}")
    proved = gap <= 10 * LIKELIHOOD_TOLERANCE
    certificate = Optimum(
        "REML by one eigendecomposition",
        f"{n} people",
        1,
        looked,
        np.array([null + constant, least + constant]) / 2,
        0.0 if at_end else abs(gradient),
        determined=bool(np.ptp(delta) > 1e-10 * max(1.0, float(delta.max()))) and proved,
        tolerance=1e-6,
        notes=tuple(notes),
    )
    certificate.warn_unless_converged(
        "The eigenvalues of the relationship matrix hardly differ: more people, or more unequal relatives, would tell."
    )
    dual = U @ (eta / v)
    diagonal = np.einsum("ij,ij->i", U / v, U)
    genetic = variance * h
    values_of = genetic * (K @ dual)
    fixed = np.asarray(np.linalg.lstsq(C, y - values_of - variance * (1 - h) * dual, rcond=None)[0], dtype=np.float64)
    return Heritability(
        h,
        error,
        _profile(likelihood, h, least),
        genetic,
        variance * (1 - h),
        float(0.5 * stats.chi2.sf(ratio, 1)) if ratio > 0 else 0.5,
        "reml",
        -(least + constant) / 2,
        0.0,
        samples,
        M,
        certificate,
        values_of,
        y - dual / diagonal,
        fixed,
        dual,
        source,
        standard,
        k_bar,
    )


def _profile(likelihood: _Likelihood, h: float, least: float) -> tuple[float, float]:
    """Between which h² twice the log-likelihood is within the 95 % point of χ² of the highest."""
    limit = least + float(stats.chi2.isf(0.05, 1))
    grid = np.unique(np.concatenate([np.linspace(0.0, 1.0, 257)[:-1], [h, LARGEST]]))
    within = np.flatnonzero(np.array([likelihood(x) for x in grid]) <= limit)
    first, last = int(within[0]), int(within[-1])

    def cross(a: float, b: float) -> float:
        return float(scipy.optimize.brentq(lambda x: likelihood(x) - limit, a, b, xtol=1e-10))

    low = 0.0 if first == 0 else cross(grid[first - 1], grid[first])
    high = 1.0 if last == len(grid) - 1 else cross(grid[last], grid[last + 1])
    return low, high


@dataclass(frozen=True)
class _Moments:
    """Solution of the two moment equations, and the traces they were solved with."""

    variances: Array  # σg², σe²
    covariance: Array
    probe_variance: Array
    traces: Array  # [[tr K*², tr K*], [tr K*, N]]
    null: float  # variance of σ̂g² where σg² = 0


def _moments(rest: Array, Q: Array, multiply: Any, total: float, probes: int, seed: int) -> _Moments:
    r"""Solve E yᵀK*y = σg² tr K*² + σe² tr K*, E yᵀy = σg² tr K* + σe² N with K* = (I − QQᵀ) K (I − QQᵀ).

    One product with K serves y, Q and the probes b of independent signs: the trace of K* is exact, that of K*² is the
    mean of |K*b|², and pairs of probes, :math:`E\,(b_i^TAb_j)(b_j^TBb_i) = \operatorname{tr}AB`, give those of K*³ and
    K*⁴, which the standard error needs.
    """
    n, c = Q.shape
    N = n - c
    B = np.random.default_rng(seed).choice([-1.0, 1.0], (n, probes))
    B -= Q @ (Q.T @ B)
    W = np.asarray(multiply(np.hstack([rest[:, None], Q, B])), dtype=np.float64)
    t1 = total - float(np.sum(Q * W[:, 1 : 1 + c]))
    W -= Q @ (Q.T @ W)
    KB = W[:, 1 + c :]
    each = np.einsum("ij,ij->j", KB, KB)
    G1, G2 = B.T @ KB, KB.T @ KB
    off = ~np.eye(probes, dtype=bool)
    t2, t3, t4 = float(each.mean()), float(np.mean((G1 * G2)[off])), float(np.mean((G2**2)[off]))
    T = np.array([[t2, t1], [t1, float(N)]])
    if not t2 * N - t1**2 > 1e-9 * t2 * N:
        raise ValueError(
            "The relationship matrix is the same for every pair of people, up to rounding: its share of the variance "
            "cannot be told from the rest."
        )
    inverse = np.linalg.inv(T)
    q, s = float(rest @ W[:, 0]), float(rest @ rest)
    sigma = inverse @ np.array([q, s])
    g, e = max(sigma[0], 0.0), max(sigma[1], 0.0)
    spread = 2 * np.array(
        [
            [g * g * t4 + 2 * g * e * t3 + e * e * t2, g * g * t3 + 2 * g * e * t2 + e * e * t1],
            [g * g * t3 + 2 * g * e * t2 + e * e * t1, g * g * t2 + 2 * g * e * t1 + e * e * N],
        ]
    )
    drawn = float(each.var(ddof=1)) / probes
    turn = inverse[:, 0] * sigma[0]  # by how much the variances fall as tr K*² grows
    return _Moments(
        sigma, inverse @ spread @ inverse, np.outer(turn, turn) * drawn, T, float(2 * (s / N) ** 2 * inverse[0, 0])
    )


def _describe_moments(found: _Moments, k_bar: float, samples: npt.NDArray[np.intp], M: int) -> Heritability:
    g, e = float(found.variances[0]) * k_bar, float(found.variances[1])
    whole = g + e
    slope = np.array([e * k_bar, -g]) / whole**2
    drawn = float(slope @ found.probe_variance @ slope)
    error = float(np.sqrt(slope @ found.covariance @ slope + drawn))
    h = g / whole
    width = float(stats.norm.isf(0.025)) * error
    return Heritability(
        h,
        error,
        (h - width, h + width),
        g,
        e,
        float(stats.norm.sf(float(found.variances[0]) / np.sqrt(found.null))),
        "haseman-elston",
        None,
        float(np.sqrt(drawn)),
        samples,
        M,
    )
