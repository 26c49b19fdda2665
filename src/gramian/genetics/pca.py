"""Principal components of genotypes, straight from the packed file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from gramian.genetics._inputs import aligned, as_genotypes, usable
from gramian.genetics._refitting import least_squares_vectors
from gramian.genetics._solving import Found, Problem, exact, krylov, rule
from gramian.genetics._standardise import SCALES, standardise
from gramian.operators import GenotypeOperator
from gramian.spectral.krylov import History

__all__ = ["GenotypePCA", "Progress"]

SINGLE = 1e11  # operations n²M of the exact way from which it is taken in float32: a second or two in float64


class Progress(NamedTuple):
    """Where a fit stands: what ``verbose`` is called with.

    Attributes
    ----------
    stage : str
        "counting", "iterating" or "exact".
    passes : float
        Passes over the genotypes so far, with the part of the present one.
    expected : float or None
        How many there may be in all, where that can be told.
    residual : float or None
        The largest residual waited for.
    """

    stage: str
    passes: float
    expected: float | None
    residual: float | None


class GenotypePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Principal components of 2-bit genotypes, in few passes over the packed file.

    .. math:: z_{ij} = \frac{g_{ij} - 2f_j}{s_j}\ (0\text{ where missing}),\qquad \tfrac1M ZZ^T u = \lambda u,\qquad
        Z = U\Sigma V^T

    with g copies of allele A1 in sample i at SNP j, f its frequency among the samples with a call, and M the SNPs used.
    Genotypes stay packed, two bits each, until the multiply.

    Parameters
    ----------
    n_components : int, default=10
        How many components.
    scaling : {"plink", "patterson", "smartpca", "none"}, default="plink"
        The divisor s: √(2f(1−f)); √(f(1−f)), with eigenvalues twice as large; √(q(1−q)) with smartpca's estimate
        q = (1+Σg)/(2+2n); or 1. The eigenvectors of the first two are the same.
    solver : {"auto", "exact", "krylov"}, default="auto"
        ``exact`` computes the n×n matrix ZZᵀ and all its eigenvalues; ``krylov`` iterates on the packed genotypes until
        every component that stands out of the noise meets the tolerance; ``auto`` takes the cheaper.
    missing : {"mean", "pairwise", "least-squares"}, default="mean"
        A missing genotype takes the mean of its SNP, so that z = 0, which draws the scores of samples with many of them
        towards 0. ``pairwise`` divides each entry of ZZᵀ by the number of SNPs at which both samples have calls instead
        of by M, as PLINK's exact ``--pca`` does (exact solver only): no longer a Gram matrix, and its eigenvalues are a
        little larger the more is missing. ``least-squares`` takes the components of the first, then fits each sample's
        scores to the genotypes it has and makes their columns of length 1, as smartpca does.
    chromosomes : {"autosomes", "all"}, default="autosomes"
        Whether SNPs on other chromosomes than 1 to 22 are left out, and counted in ``dropped_``.
    tol : float, default=1e-5
        Residual to reach, relative to the largest singular value.
    max_passes : int, default=200
        Most passes of ``krylov``.
    precision : {"auto", "single", "double"}, default="auto"
        Of the multiplications; sums over blocks are in float64 always. ``auto`` is single for ``krylov``, and for the
        exact way where it would take long.
    random_state : int, default=0
        Seed of the start vectors.
    verbose : bool or callable, default=False
        Whether to show progress on standard error, or what to call with a :class:`Progress`.

    Attributes
    ----------
    eigenvectors_ : ndarray of shape (n, k)
        U, columns of length 1: what ``.eigenvec`` files hold. The largest entry of each row of V is positive.
    eigenvalues_ : ndarray of shape (k,)
        λ, in the scale that ``eigenvalue_scale_`` names.
    singular_values_, components_ : ndarray of shape (k,), (k, p)
        Σ and Vᵀ, of the SNPs used.
    explained_variance_ratio_ : ndarray of shape (k,)
        λ/Σλ.
    total_variance_ : float
        Σλ of all eigenvalues.
    all_eigenvalues_ : ndarray of shape (n,) or None
        Every λ, from the exact solver.
    mean_, scale_, allele_frequency_ : ndarray of shape (p,)
        2f, s and f of the SNPs used.
    samples_, snps_ : Samples, Snps
        Who and which, in the order of the rows of U and V.
    snp_mask_ : ndarray of bool of shape (n_features_in_,)
        Which of the SNPs given were used.
    dropped_ : dict of str to int
        How many SNPs were left out, and why.
    tracy_widom_ : TracyWidomTable
        Statistic, p-value and effective number of markers of each component (all of them from the exact solver).
    effective_markers_error_ : float
        Standard error of the effective number of markers after the separated components, relative; 0 if exact.
    n_separated_ : int
        Components that stand out of the noise, as far as they were computed.
    certificate_ : Certificate
        Method, passes, residual of each component, and whether the tolerance was met.
    n_samples_, n_features_in_ : int
        Samples, and SNPs given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GenotypePCA
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(0.1, 0.9, (2, 500))
    >>> G = rng.binomial(2, np.repeat(f, 20, axis=0))            # two populations of 20 people
    >>> pca = GenotypePCA(n_components=2).fit(G)
    >>> first = pca.eigenvectors_[:, 0]
    >>> bool(first[:20].max() < first[20:].min() or first[20:].max() < first[:20].min())
    True
    >>> pca.n_separated_, pca.certificate_.converged
    (1, True)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        scaling: str = "plink",
        solver: str = "auto",
        missing: str = "mean",
        chromosomes: str = "autosomes",
        tol: float = 1e-5,
        max_passes: int = 200,
        precision: str = "auto",
        random_state: int = 0,
        verbose: Any = False,
    ) -> None:
        self.n_components = n_components
        self.scaling = scaling
        self.solver = solver
        self.missing = missing
        self.chromosomes = chromosomes
        self.tol = tol
        self.max_passes = max_passes
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> GenotypePCA:
        """Find the components.

        Parameters
        ----------
        X : path of a ``.bed`` file, Genotypes, or array of shape (n, p)
            Genotypes; an array holds 0, 1 or 2 copies of an allele, and NaN or −1 where missing.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        GenotypePCA
            The estimator itself.
        """
        self._check_parameters()
        source = as_genotypes(X)
        self._say("counting", 0.0, None, None)
        kept, self.snp_mask_, self.dropped_ = usable(source, self.chromosomes == "autosomes")
        self._check_size(*kept.shape)
        standard = standardise(kept.snp_counts(), self.scaling)
        found = self._solve(kept, standard)
        self.n_samples_, self.n_features_in_ = source.shape
        self.samples_, self.snps_ = kept.samples, kept.snps
        self.mean_, self.scale_, self.allele_frequency_ = standard.mean, standard.scale, standard.frequency
        self._name(found, kept.shape[1])
        if self.missing == "least-squares":
            self.eigenvectors_ = least_squares_vectors(
                kept, self.eigenvectors_, self.singular_values_, self.components_
            )
        return self

    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[Any]:
        """Find the components and return the scores UΣ of the samples, in the scale of :meth:`transform`."""
        self.fit(X)
        return self.transform(X) if self.missing != "mean" else np.asarray(self.eigenvectors_ * self.singular_values_)

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Scores ZVᵀ of samples at the same SNPs, standardised as the samples of the fit.

        Scores of new people shrink towards 0; :func:`gramian.genetics.project` corrects for it, and matches SNPs that
        are not the same.
        """
        check_is_fitted(self)
        source = aligned(as_genotypes(X), self.snp_mask_, self.snps_)
        A = GenotypeOperator(source, self.mean_, self.scale_, dtype=self.components_.dtype)
        return np.asarray(A.matmat(np.ascontiguousarray(self.components_.T)))

    @property
    def eigenvalue_scale_(self) -> str:
        """What ``eigenvalues_`` are the eigenvalues of."""
        check_is_fitted(self)
        pairs = (
            "; each pair divided by the SNPs at which both have calls, not by M" if self.missing == "pairwise" else ""
        )
        return SCALES[self.scaling] + pairs

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # copies of an allele, not any numbers
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _solve(self, kept: Any, standard: Any) -> Found:
        n, p = kept.shape
        choice = rule(n, p, self.n_components)
        asked = {"exact": "asked for", "krylov": "asked for"}.get(self.solver)
        solver = "exact" if self.missing == "pairwise" else choice.solver if asked is None else self.solver
        operations = float(n) * n * p if solver == "exact" else np.inf
        double = self.precision == "double" or (self.precision == "auto" and operations <= SINGLE)
        tracker = _Tracker(self._say, solver, p)
        problem = Problem(
            A=GenotypeOperator(
                kept, standard.mean, standard.scale, dtype=np.float64 if double else np.float32, progress=tracker.block
            ),
            k=self.n_components,
            total=float(standard.squares.sum()),
            tol=float(self.tol),
            max_passes=int(self.max_passes),
            seed=int(self.random_state),
            pairwise=self.missing == "pairwise",
            watch=tracker.watch,
        )
        if solver == "exact":
            return exact(problem, asked or choice.reason)
        return krylov(problem, choice if asked is None else type(choice)("krylov", asked))

    def _name(self, found: Found, M: int) -> None:
        """Fitted attributes from what was found."""
        U, Vt = np.asarray(found.spectrum.left), np.asarray(found.spectrum.right).T
        self.eigenvectors_, self.components_ = svd_flip(U, np.ascontiguousarray(Vt), u_based_decision=False)
        self.singular_values_ = found.spectrum.values
        self.eigenvalues_ = found.spectrum.eigenvalues / M
        self.total_variance_ = found.noise.total / M
        self.explained_variance_ratio_ = self.eigenvalues_ / self.total_variance_
        self.all_eigenvalues_ = None if found.all_eigenvalues is None else found.all_eigenvalues / M
        table = found.tracy_widom
        self.tracy_widom_ = type(table)(table.eigenvalues / M, table.statistics, table.p_values, table.effective_n)
        judged = found.spectrum.certificate.judged
        self.n_separated_ = min(table.significant(0.001), self.n_components) if judged is None else judged
        self.effective_markers_error_ = found.noise.error
        self.certificate_ = found.spectrum.certificate.with_(divisor=float(M))

    def _say(self, stage: str, passes: float, expected: float | None, residual: float | None) -> None:
        if callable(self.verbose):
            self.verbose(Progress(stage, passes, expected, residual))
        elif self.verbose:
            _print(Progress(stage, passes, expected, residual))

    def _check_parameters(self) -> None:
        choices = {
            "scaling": tuple(SCALES),
            "solver": ("auto", "exact", "krylov"),
            "missing": ("mean", "pairwise", "least-squares"),
            "chromosomes": ("autosomes", "all"),
            "precision": ("auto", "single", "double"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} is none of {', '.join(allowed)}.")
        if not isinstance(self.n_components, Integral) or self.n_components < 1:
            raise ValueError(f"n_components={self.n_components!r} must be a whole number from 1 on.")
        if not 1e-12 <= self.tol < 1:
            raise ValueError(f"tol={self.tol!r} must lie between 1e-12 and 1.")
        if self.missing == "pairwise" and self.solver == "krylov":
            raise ValueError(
                "missing='pairwise' needs the whole matrix: use solver='exact' or 'auto', or missing='mean'."
            )

    def _check_size(self, n: int, p: int) -> None:
        if n < 2:
            raise ValueError(f"Components need at least 2 samples; there is {n}.")
        if self.n_components > min(n - 1, p):
            raise ValueError(
                f"n_components={self.n_components}: {n} samples and {p} SNPs have at most {min(n - 1, p)} components."
            )


class _Tracker:
    """Turns finished blocks and residuals into progress."""

    def __init__(self, say: Callable[..., None], solver: str, p: int) -> None:
        self.say, self.solver, self.p = say, solver, p
        self.done, self.expected = 0, 3.0 if solver == "exact" else None
        self.residual: float | None = None
        self.told = 0.0

    def block(self, snps: int, _: int) -> None:
        """A block of SNPs was multiplied."""
        self.done += snps
        passes = self.done / self.p
        if passes - self.told >= 0.02:  # a callback for each of thousands of blocks would cost more than it tells
            self.told = passes
            self.say("exact" if self.solver == "exact" else "iterating", passes, self.expected, self.residual)

    def watch(self, history: History) -> None:
        """A residual is known."""
        self.residual = history[-1][1]


def _print(progress: Progress) -> None:
    residual = "" if progress.residual is None else f", residual {progress.residual:.1e}"
    sys.stderr.write(f"\rGenotypePCA: {progress.stage}, pass {progress.passes:.1f}{residual}   ")
    sys.stderr.flush()
