"""Principal components of genotypes, straight from the packed file."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import host, is_tensor, resolve
from gramian.estimators._devices import at_home, home_of, settle
from gramian.genetics._inputs import (
    aligned,
    as_genotypes,
    check_parameters,
    check_size,
    column_names,
    is_table,
    located,
    seed_of,
    usable,
)
from gramian.genetics._progress import Progress, Tracker, teller
from gramian.genetics._refitting import least_squares_vectors
from gramian.genetics._solving import Found, Problem, exact, krylov, rule
from gramian.genetics._standardise import SCALES, standardise
from gramian.operators import genotype_operator
from gramian.spectral.auto import Choice

__all__ = ["GenotypePCA", "Progress"]

SINGLE = 1e11  # operations n²M of the exact way from which it is taken in float32: a second or two in float64
FINE = 1e-6  # tolerance that products in float32, which round to half of it, cannot be held to
DEVICE_FINE = 1e-5  # the same on a card, whose products in float32 have an error of up to 2e-6


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
    tol : float, default=1e-4
        Residual to reach, relative to the largest singular value.
    max_passes : int, default=200
        Passes after which ``krylov`` stops short, with a warning; two more certify what was found.
    precision : {"auto", "single", "double"}, default="auto"
        Of the multiplications; sums over blocks are in float64 always. ``auto`` is single for ``krylov``, and for the
        exact way where it would take long, unless the tolerance is below 1e-6 (1e-5 on a card).
    random_state : int, RandomState or None, default=0
        Seed of the start vectors.
    verbose : bool or callable, default=False
        Whether to show progress on standard error, or what to call with a :class:`Progress`: one call at a time, from
        any thread.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one. Genotypes that do
        not fit on a card are streamed through it.

    Attributes
    ----------
    eigenvectors_ : ndarray of shape (n, k)
        U, columns of length 1: what ``.eigenvec`` files hold. The largest entry of each row of V is positive.
    eigenvalues_ : ndarray of shape (k,)
        λ, in the scale that ``eigenvalue_scale_`` names.
    singular_values_, components_ : ndarray of shape (k,), (k, p)
        Σ and Vᵀ, of the SNPs used.
    score_lengths_ : ndarray of shape (k,)
        What scores are divided by to be ``eigenvectors_``: Σ, or the lengths of scores fitted by least squares.
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
    statistic_errors_ : ndarray
        What this makes of the statistics in the table: their standard errors, 0 if exact.
    n_separated_ : int
        Components that stand out of the noise, as far as they were computed.
    certificate_ : Certificate
        Method, passes, residual of each component, and whether the tolerance was met.
    n_samples_, n_features_in_ : int
        Samples, and SNPs given.
    feature_names_in_ : ndarray of str
        Names of the columns, where a data frame was given.

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
        tol: float = 1e-4,
        max_passes: int = 200,
        precision: str = "auto",
        random_state: int = 0,
        verbose: Any = False,
        device: Any = None,
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
        self.device = device

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
        check_parameters(self)
        source, device = located(X, self.device, self.n_components)
        teller(self.verbose)(Progress("counting", 0.0, None, None))
        kept, mask, dropped = usable(source, self.chromosomes == "autosomes")
        check_size(*kept.shape, self.n_components)
        standard = standardise(kept.snp_counts(), self.scaling)
        found = self._solve(kept, standard, device)
        self.snp_mask_, self.dropped_ = mask, dropped
        self.n_samples_, self.n_features_in_ = source.shape
        self.samples_, self.snps_ = kept.samples, kept.snps
        self.mean_, self.scale_, self.allele_frequency_ = standard.mean, standard.scale, standard.frequency
        self._name(found, kept.shape[1])
        self._remember_columns(X)
        if self.missing == "least-squares":
            self._refit(kept, device)
        if self.verbose is True:
            sys.stderr.write("\n")
        settle(self, home_of(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[Any]:
        """Find the components and return the scores UΣ of the samples, in the scale of :meth:`transform`."""
        self.fit(X)
        return self.transform(X) if self.missing != "mean" else self.eigenvectors_ * self.singular_values_

    @at_home
    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Scores ZVᵀ of samples at the same SNPs, standardised as the samples of the fit.

        Scores of new people shrink towards 0; :func:`gramian.genetics.project` corrects for it, and matches SNPs that
        are not the same.
        """
        check_is_fitted(self)
        unnamed = column_names(X) is None or not hasattr(self, "feature_names_in_")
        by_place = getattr(self, "_of_table", False) and is_table(X) and unnamed
        source = aligned(as_genotypes(X), self.snp_mask_, self.snps_, by_place)
        device = resolve(self.device, X if is_tensor(X) else source.values)
        options = {
            "dtype": self.components_.dtype,
            "device": "cpu" if device is None else device,
            "tolerance": self.tol,
        }
        A = genotype_operator(source, self.mean_, self.scale_, **options)
        return np.asarray(host(A.matmat(A.asarray(np.ascontiguousarray(self.components_.T)))))

    @property
    def eigenvalue_scale_(self) -> str:
        """What ``eigenvalues_`` are the eigenvalues of."""
        check_is_fitted(self)
        pairs = "; each pair divided by the SNPs at which both have calls, not by M"
        return SCALES[self.scaling] + (pairs if self.missing == "pairwise" else "")

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # copies of an allele, not any numbers
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _solve(self, kept: Any, standard: Any, device: Any) -> Found:
        (n, p), pairwise = kept.shape, self.missing == "pairwise"
        choice = rule(n, p, self.n_components)
        if self.solver != "auto":
            choice = Choice(self.solver, "asked for")
        elif pairwise:
            choice = Choice("exact", "counts of pairs need the whole matrix")
        operations = float(n) * n * p if choice.solver == "exact" else np.inf
        fine = self.tol < (FINE if device is None else DEVICE_FINE)
        double = self.precision == "double" or (self.precision == "auto" and (operations <= SINGLE or fine))
        tracker, dtype = Tracker(teller(self.verbose), choice.solver, p), np.float64 if double else np.float32
        problem = Problem(
            A=_operator(kept, standard.mean, standard.scale, dtype, device, self.tol, tracker.block),
            k=self.n_components,
            total=float(standard.squares.sum()),
            tol=float(self.tol),
            max_passes=int(self.max_passes),
            seed=seed_of(self.random_state),
            pairwise=pairwise,
            watch=tracker.watch,
        )
        return exact(problem, choice.reason) if choice.solver == "exact" else krylov(problem, choice)

    def _name(self, found: Found, M: int) -> None:
        """Fitted attributes from what was found."""
        U, Vt = host(found.spectrum.left), host(found.spectrum.right).T
        self.eigenvectors_, self.components_ = svd_flip(U, np.ascontiguousarray(Vt), u_based_decision=False)
        self.singular_values_ = self.score_lengths_ = found.spectrum.values
        self.eigenvalues_ = found.spectrum.eigenvalues / M
        self.total_variance_ = found.noise.total / M
        self.explained_variance_ratio_ = self.eigenvalues_ / self.total_variance_
        self.all_eigenvalues_ = None if found.all_eigenvalues is None else found.all_eigenvalues / M
        table = found.tracy_widom
        self.tracy_widom_ = type(table)(table.eigenvalues / M, table.statistics, table.p_values, table.effective_n)
        self.n_separated_ = found.separated
        self.effective_markers_error_ = found.noise.error
        self.statistic_errors_ = found.noise.statistic_errors(table.eigenvalues)
        self.certificate_ = found.spectrum.certificate.with_(divisor=float(M))

    def _refit(self, kept: Any, device: Any) -> None:
        """Scores fitted to the genotypes seen, in place of those that take the mean for the others."""
        U, V = self.eigenvectors_, self.components_
        self.eigenvectors_, self.score_lengths_ = least_squares_vectors(kept, U, self.singular_values_, V, device)

    def _remember_columns(self, X: Any) -> None:
        """The names of a data frame's columns, as scikit-learn has them."""
        self._of_table, names = is_table(X), column_names(X)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _operator(source: Any, mean: Any, scale: Any, dtype: Any, device: Any, tol: float, progress: Any = None) -> Any:
    """Z on a device that is settled: None is NumPy, wherever the genotypes are."""
    where = "cpu" if device is None else device
    return genotype_operator(source, mean, scale, dtype=dtype, device=where, tolerance=tol, progress=progress)
