"""Principal components of genotypes, straight from the packed file."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import is_tensor, refuse_beyond_device, resolve, to_device, to_numpy
from gramian.compute.factor import eigvalsh
from gramian.compute.threads import quiet_blas
from gramian.genetics.genotypes import (
    SCALES,
    as_genotypes,
    column_names,
    is_table,
    open_on_device,
    select_fitted_snps,
    select_usable_snps,
    standardise,
)
from gramian.genetics.long_range import CarryingRegion, RegionWarning, carrying_regions, describe_regions
from gramian.genetics.text import list_few
from gramian.inputs.checks import check_choice, check_integer, check_seed
from gramian.inputs.devices import like_input, store_like
from gramian.inputs.progress import Progress, show_progress
from gramian.operators import Operator, genotype_operator
from gramian.pca.tracy_widom import (
    TracyWidomTable,
    tracy_widom_from_sums,
    tracy_widom_quantile,
    tracy_widom_sf,
    tracy_widom_statistics,
)
from gramian.results import FitLevel, Quality, Spectrum
from gramian.results.quality import SUSPECTED
from gramian.sources import memory_budget
from gramian.sources.checkpoint import begin_checkpoint
from gramian.sources.errors import Argument, SourceError
from gramian.sources.plink import Genotypes
from gramian.spectral import Krylov
from gramian.spectral.auto import HOPE, Choice, SpectralFacts, choose_spectral_solver, passes_to_go
from gramian.spectral.dense import eigen_of_gram
from gramian.spectral.krylov import History
from gramian.spectral.rayleigh import Triplets, count_roundings, finish, orthogonality, spectrum, thin_qr

__all__ = ["GenotypePCA", "choose_genotype_solver"]

Array = npt.NDArray[np.float64]

SINGLE = 1e11  # operations n²M of the exact way from which it is taken in float32: a second or two in float64
FINE = 1e-6  # tolerance that products in float32, which round to half of it, cannot be held to
DEVICE_FINE = 1e-5  # the same on a GPU, whose products in float32 have an error of up to 2e-6
CHOICES = {
    "scaling": tuple(SCALES),
    "solver": ("auto", "exact", "krylov"),
    "missing": ("mean", "pairwise", "least-squares"),
    "chromosomes": ("autosomes", "all"),
    "precision": ("auto", "single", "double"),
}


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
    scaling : {"plink", "patterson", "price", "none"}, default="plink"
        The divisor s: √(2f(1−f)); √(f(1−f)), with eigenvalues twice as large, which is what smartpca does;
        √(q(1−q)) with the estimate q = (1+Σg)/(2+2n) of Price et al. (2006), smartpca's with ``altnormstyle: NO``
        ("smartpca" is an older name of it here); or 1. The eigenvectors of the first two are the same.
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
        exact way where it would take long, unless the tolerance is below 1e-6 (1e-5 on a GPU), or below what sums
        of so many SNPs and samples in float32 may be off by.
    random_state : int, RandomState or None, default=None
        Seed of the start vectors; None is 0.
    verbose : bool or callable, default=False
        Whether to show progress on standard error, or what to call as ``progress(done, total, message)``: one call at
        a time, from any thread. The message says which pass of how many, and the largest residual waited for.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one. Genotypes that do
        not fit on a GPU are streamed through it.

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
    monomorphic_ : int
        SNPs left out as all have the same calls, or nobody one, which PLINK counts in M (its exact PCA the first only):
        its eigenvalues are smaller by as much, as are those in files of its formats.
    tracy_widom_ : TracyWidomTable
        Statistic, p-value and effective number of markers of each component (all of them from the exact solver).
    effective_markers_error_ : float
        Standard error of the effective number of markers after the separated components, relative; 0 if exact.
    statistic_errors_ : ndarray
        What this makes of the statistics in the table: their standard errors, 0 if exact.
    n_separated_ : int
        Components that stand out of the noise, as far as they were computed.
    carrying_regions_ : list of CarryingRegion
        Regions that hold much of a component, which then does not show ancestry; each is warned of.
    certificate_ : SpectralCertificate
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
        random_state: Any = None,
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
        self._check_parameters()
        source, device = open_on_device(X, self.device, self.n_components)
        begin_checkpoint(self, source)
        kept, mask, dropped = select_usable_snps(source, self.chromosomes == "autosomes")
        (n, M), k = kept.shape, self.n_components
        if n < 2:
            raise ValueError(f"Components need at least 2 samples; there is {n}.")
        if k > min(n - 1, M):  # the samples' mean is taken out, which leaves n − 1 directions
            raise ValueError(f"n_components={k}: {n} samples and {M} SNPs have at most {min(n - 1, M)} components.")
        standard = standardise(kept.snp_counts(), self.scaling)  # z = (g − 2f)/s
        choice = self._choose_solver(n, M)
        with show_progress(self.verbose, type(self).__name__) as report:
            counter = PassCounter(report, choice.solver == "exact", M, self.tol, self.max_passes)

            def operator(source: Genotypes, progress: Any) -> Any:
                return genotype_operator(
                    source,
                    standard.mean,
                    standard.scale,
                    dtype=self._dtype(n, M, choice, device),
                    device="cpu" if device is None else device,
                    tolerance=self.tol,
                    progress=progress,
                )

            Z = operator(kept, None if report is None else counter.count)
            if choice.solver == "exact":
                with quiet_blas():  # and with the same bits however many threads there are
                    solution = self._solve_exactly(Z, choice.reason)
            else:
                total = float(standard.squares.sum())
                solution = self._iterate(
                    Z, choice, total, counter, lambda people: operator(kept.select(samples=people), None)
                )
        self.snp_mask_, self.dropped_ = mask, dropped
        uncalled = 0 if self.missing == "pairwise" else dropped["without a call"]  # which no two people share
        self.monomorphic_ = uncalled + dropped["of one allele alone"]
        self.n_samples_, self.n_features_in_ = source.shape
        self.samples_, self.snps_ = kept.samples, kept.snps
        self.mean_, self.scale_, self.allele_frequency_ = standard.mean, standard.scale, standard.frequency
        self._store(solution, kept, device)
        if regions := self.carrying_regions_:
            warnings.warn(describe_regions(regions), RegionWarning, stacklevel=2)
        self._of_table, names = is_table(X), column_names(X)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        store_like(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[Any]:
        """Find the components and return the scores UΣ of the samples, in the scale of :meth:`transform`."""
        self.fit(X)
        return self.transform(X) if self.missing != "mean" else self.eigenvectors_ * self.singular_values_

    @like_input
    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Scores ZVᵀ of samples at the same SNPs, standardised as the samples of the fit.

        Scores of new people shrink towards 0; :func:`gramian.genetics.project` corrects for it, and matches SNPs that
        are not the same.
        """
        check_is_fitted(self)
        unnamed = column_names(X) is None or not hasattr(self, "feature_names_in_")
        by_place = getattr(self, "_of_table", False) and is_table(X) and unnamed
        source = select_fitted_snps(as_genotypes(X), self.snp_mask_, self.snps_, by_place)
        begin_checkpoint(self, source, "use")
        device = resolve(self.device, X if is_tensor(X) else source.values)
        Z = genotype_operator(
            source,
            self.mean_,
            self.scale_,
            dtype=self.components_.dtype,
            device="cpu" if device is None else device,
            tolerance=self.tol,
        )
        return to_numpy(Z.matmat(Z.asarray(np.ascontiguousarray(self.components_.T))))

    @property
    def eigenvalue_scale_(self) -> str:
        """What ``eigenvalues_`` are the eigenvalues of."""
        check_is_fitted(self)
        pairs = "; each pair divided by the SNPs at which both have calls, not by M"
        note, constant = "", getattr(self, "monomorphic_", 0)
        if constant and self.scaling == "plink":
            M = len(self.mean_)
            note = f", who divides by all {M + constant:,} SNPs and so prints {M / (M + constant):.4g} times these"
        return SCALES[self.scaling] + note + (pairs if self.missing == "pairwise" else "")

    @property
    def carrying_regions_(self) -> list[CarryingRegion]:
        """Regions of the genome that hold much of a component, which then does not show ancestry."""
        check_is_fitted(self)
        return carrying_regions(self.snps_, to_numpy(self.components_))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # copies of an allele, not any numbers
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_parameters(self) -> None:
        for name, allowed in CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        check_integer("n_components", self.n_components)
        check_integer("max_passes", self.max_passes)
        if not 1e-12 <= self.tol < 1:
            raise ValueError(f"tol={self.tol!r} must lie between 1e-12 and 1.")
        if isinstance(self.random_state, Integral) and self.random_state < 0:
            raise ValueError(f"random_state={self.random_state!r} must not be negative.")
        if self.missing == "pairwise" and self.solver == "krylov":
            raise ValueError(
                "missing='pairwise' needs the whole matrix: use solver='exact' or 'auto', or missing='mean'."
            )

    def _choose_solver(self, n: int, M: int) -> Choice:
        if self.solver != "auto":
            return Choice(self.solver, "asked for")
        if self.missing == "pairwise":
            return Choice("exact", "counts of pairs need the whole matrix")
        return choose_genotype_solver(n, M, self.n_components)

    def _dtype(self, n: int, M: int, choice: Choice, device: Any) -> Any:
        """The precision of products: double where asked for, where it costs little, or where the tolerance needs it."""
        little = choice.solver == "exact" and float(n) * n * M <= SINGLE
        # sums of so many terms in float32 may be off by more than the tolerance, and no residual would prove less
        fine = self.tol < max(FINE if device is None else DEVICE_FINE, 1.5 * count_roundings(n, M) * 2.0**-23)
        double = self.precision == "double" or (self.precision == "auto" and (little or fine))
        return np.float64 if double else np.float32

    def _solve_exactly(self, Z: Any, reason: str) -> GenotypeSolution:
        """Every eigenvalue, through the n×n matrix of the samples' products: one pass, n²M operations."""
        k, pairwise = self.n_components, self.missing == "pairwise"
        n, M = Z.shape
        nbytes, what = 32.0 * n * n, f"The exact way for {n} samples"  # four n×n matrices must be had
        also = (", and ", ("missing", "mean")) if pairwise else ()
        remedy = ("Use ", ("solver", "krylov"), ", which needs no such matrix", *also, ".")
        refuse_beyond_device(nbytes, Z.device, what, remedy)
        before = Z.passes
        K = Z.cogram()
        if pairwise:
            K *= M / _count_shared_calls(Z)
        every = eigvalsh(K) if Z.device is None else Z.xp.linalg.eigvalsh(K)
        lam = np.maximum(to_numpy(every, float)[::-1], 0.0)
        # eq: genotype-components
        values, U, residuals, _ = eigen_of_gram(Z.xp, K, k)  # all eigenvalues are known here
        if pairwise:
            V = Z.rmatmat(Z.asarray(U)) / Z.asarray(np.where(values > 0, values, 1.0))
            triplets = Triplets(values, V, U, residuals + 4 * Z.epsilon)
        else:  # residuals of Z itself
            turned = finish(Z.T, Z.asarray(U), k)
            triplets = Triplets(turned.values, turned.left, turned.right, turned.residuals)
        side = "ZZᵀ, each pair divided by its shared calls" if pairwise else "ZZᵀ"
        found = spectrum(
            Z,
            triplets,
            method=f"exact: eigenvectors of {side} ({str(Z.dtype).removeprefix('torch.')})",
            reason=reason,
            passes=Z.passes - before,
            tolerance=float(self.tol),
            left=True,
            notes=(PAIRWISE_NOTE,) if pairwise else (),
        )
        if pairwise:
            proof = found.certificate.with_(orthogonality=orthogonality(Z.xp, U))
            found = replace(found, certificate=proof)
        found.certificate.warn_unless_converged("Raise tol, or use precision='double'.")
        m = min(n - 1, M)
        noise = Noise(m, float(lam[:m].sum()), float(m * lam[:m].var()))
        # people who are in the data twice have eigenvalues of zero, which are not tested
        tested = lam[:m][lam[:m] > 4 * np.sqrt(n) * Z.epsilon * lam[0]]
        table = tracy_widom_statistics(tested) if len(tested) > 1 else _single_eigenvalue_table()
        return GenotypeSolution(found, table, noise, min(table.significant(ALPHA), k), lam)

    def _iterate(
        self, Z: Any, choice: Choice, total: float, counter: PassCounter, take: Callable[[Any], Any]
    ) -> GenotypeSolution:
        """Few passes: pairs of people first, which tell where the noise ends, then random directions as a start."""
        k, n, tol, before = self.n_components, Z.shape[0], float(self.tol), Z.passes
        state = self.random_state
        seed = int(state) if isinstance(state, Integral) else check_seed(state)
        columns = min(n, max(-(-(k + 2) // 8) * 8, 8))
        with Z.session():
            moment = SecondMoment.measure(Z, take, total, seed)
            start = draw_directions(Z, columns, seed)
        solver = Krylov(tol, max_passes=int(self.max_passes) - 1, seed=seed, left=True)
        budget = n / (7.6 * columns)  # passes that the Gram matrix costs

        def abandon(history: History) -> bool:
            counter.residual = history[-1][1]
            return choice.fallback and passes_to_go(history, tol) > HOPE * budget

        found = solver.attempt(
            Z, k, choice.reason, abandon, start=Z.asarray(start), count_required=moment.count_required
        )
        passes = Z.passes - before
        if not found.certificate.converged and choice.fallback:
            solution = self._solve_exactly(
                Z, f"after {passes} passes of block Krylov the Gram matrix was the shorter way"
            )
            proof = solution.spectrum.certificate.with_(passes=Z.passes - before)
            return solution._replace(spectrum=replace(solution.spectrum, certificate=proof))
        U, lam = Z.xp.asarray(found.left, dtype=Z.xp.float64), found.eigenvalues
        separated = moment.count_separated(lam, U)
        noise = moment.noise(lam[:separated], U[:, :separated])
        worst = float(found.certificate.residuals.max())
        # stopped while all were waited for, before they had had time to show: none may be called noise
        early = found.certificate.judged == k and not worst <= tol
        proof = found.certificate.with_(passes=passes, judged=k if early else separated)
        if separated < k and not early:
            one = k - separated == 1
            which = f"Component {k} lies" if one else f"Components {separated + 1} to {k} lie"
            note = NOISE_NOTE.format(which=which, they="it does not stand" if one else "they do not stand")
            if worst > tol:
                note += UNWAITED_NOTE.format(worst=worst, gap=resolution(n, columns, passes - 4))
            proof = proof.with_(notes=(note, *proof.notes))
        proof.warn_unless_converged(f"Raise tol={tol:g} or max_passes={self.max_passes}, or use solver='exact'.")
        return GenotypeSolution(replace(found, certificate=proof), noise.table(lam), noise, separated, None)

    def _store(self, solution: GenotypeSolution, kept: Genotypes, device: Any) -> None:
        """Fitted attributes, with eigenvalues of ZZᵀ/M."""
        (found, table, noise, self.n_separated_, every), M = solution, kept.shape[1]
        U, Vt = to_numpy(found.left), to_numpy(found.right).T
        self.eigenvectors_, self.components_ = svd_flip(U, np.ascontiguousarray(Vt), u_based_decision=False)
        self.singular_values_ = self.score_lengths_ = found.values
        self.eigenvalues_ = found.eigenvalues / M
        self.total_variance_ = noise.total / M
        self.explained_variance_ratio_ = self.eigenvalues_ / self.total_variance_
        self.all_eigenvalues_ = None if every is None else every / M
        self.tracy_widom_ = replace(table, eigenvalues=table.eigenvalues / M)
        self.effective_markers_error_ = noise.error
        self.statistic_errors_ = noise.statistic_errors(table.eigenvalues)
        self.certificate_ = found.certificate.with_(divisor=float(M))
        if self.missing == "least-squares":  # in place of scores that take the mean for the genotypes not seen
            U, V = self.eigenvectors_, self.components_
            self.eigenvectors_, self.score_lengths_ = fit_scores_to_calls(kept, U, self.singular_values_, V, device)


class GenotypeSolution(NamedTuple):
    """Triplets with their certificate, the test of the eigenvalues, how many of them stand out of the noise."""

    spectrum: Spectrum
    tracy_widom: TracyWidomTable
    noise: Noise
    separated: int
    all_eigenvalues: Array | None


def measure_components(model: GenotypePCA) -> list[Quality]:
    """How many components stand out of the noise by the Tracy–Widom test, and the share of the variance of all.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.pca import GenotypePCA, measure_components
    >>> rng = np.random.default_rng(0)
    >>> G = rng.binomial(2, np.repeat(rng.uniform(0.1, 0.9, (2, 300)), 20, axis=0))
    >>> [measure.name for measure in measure_components(GenotypePCA(4).fit(G))]
    ['significant_components', 'share_explained']
    """
    tests, k = model.tracy_widom_, len(model.eigenvalues_)
    count, share = tests.significant(SUSPECTED), float(np.sum(to_numpy(model.explained_variance_ratio_)))
    text = f"{count} component{'s' * (count != 1)}"
    if not len(tests.p_values):
        text = "not tested: too little is left to compare with"
    elif count == len(tests.p_values) == k < min(len(model.eigenvectors_) - 1, model.components_.shape[1]):
        text = f"all {k} that were computed, and perhaps more"
    elif count > k:
        text += f", {k} of them computed"
    text += f" (Tracy–Widom p < {SUSPECTED})" * bool(len(tests.p_values))
    if model.n_separated_ < min(count, k):
        text += f"; {model.n_separated_} beyond doubt (p < {ALPHA:g})"
    level = FitLevel.DOUBTFUL if len(tests.p_values) and not count else FitLevel.FACT
    meaning = (
        "Shares of the variance are small in genotypes, as most of it is chance; a component beyond the noise can "
        "still be a family, a batch or one region of the genome: see the SNPs."
    )
    held = f"{share:.2%} by {k} component{'s' * (k != 1)}"
    return [
        Quality("significant_components", "significant", float(count), text, level, meaning),
        Quality("share_explained", "variance explained", share, held),
    ]


def choose_genotype_solver(n: int, p: int, k: int) -> Choice:
    """The solver for n samples: by what their Gram matrix costs in passes, and whether it fits in memory."""
    facts = SpectralFacts(n=n, p=max(n, p), k=k, sparse=False, resident=True)  # the matrix is n×n whatever p
    choice = choose_spectral_solver(facts)
    few = choice.solver == "exact" and p < n
    return replace(choice, reason=f"{n} samples make a small Gram matrix") if few else choice


def _count_shared_calls(Z: Any) -> Any:
    """How many genotypes each two samples both have."""
    N = Z.calls().cogram()
    if not bool((N != 0).all()):
        i, j = np.argwhere(to_numpy(N, float) == 0)[0]
        names = Z.source.samples.names
        raise SourceError(
            f"{names[i]} and {names[j]} have no genotype in common: ",
            Argument("missing", "pairwise"),
            " has nothing to divide by. Use ",
            Argument("missing", "mean"),
            ", or leave one of them out.",
        )
    return N


# Progress

STEP = 0.02  # of a pass between two reports: one for each of thousands of blocks would cost more than it tells
USUAL, EARLY = 13.0, 0.5  # passes that a fit takes as a rule, and residuals that say nothing yet
SEEN = 10  # passes after which a component below the edge of the noise is no longer waited for


class PassCounter:
    """Turns finished blocks of SNPs and residuals into progress, one call at a time whichever thread did a block.

    Where the number of passes is not known it is guessed: the digits of the residual that are won so far, per pass.
    What is reported never runs backwards.

    Examples
    --------
    >>> from gramian.genetics.pca import PassCounter
    >>> counter = PassCounter(print, exact=True, n_snps=100, tol=1e-4, max_passes=200)
    >>> counter.count(50, 100)
    167 1000 pass 0.5 of 3
    """

    def __init__(self, report: Progress | None, exact: bool, n_snps: int, tol: float, max_passes: int) -> None:
        self.report, self.n_snps, self.tol, self.most = report, n_snps, tol, max_passes
        self.expected = 3.0 if exact else None
        self.residual: float | None = None
        self._done, self._told, self._reached = 0, 0.0, 0
        self._lock = threading.Lock()

    def count(self, snps: int, _: int) -> None:
        """A block of SNPs was multiplied."""
        with self._lock:
            self._done += snps
            passes = self._done / self.n_snps
            if self.report is None or passes - self._told < STEP:
                return
            self._told, expected, residual = passes, self.expected, self.residual
            if expected is None:
                expected = max(USUAL, passes + 1)
                if residual is not None and self.tol < residual < EARLY:
                    guess = passes * np.log(self.tol) / np.log(residual)
                    guess = min(guess, USUAL) if passes < SEEN else guess
                    expected = float(np.clip(guess, passes + 0.5, max(self.most, passes + 0.5)))
            self._reached = max(self._reached, min(round(1000 * passes / expected), 999))
            about = "" if self.expected else "about "
            waited = "" if residual is None else f", residual {residual:.1e}"
            self.report(self._reached, 1000, f"pass {passes:.1f} of {about}{expected:.0f}{waited}")


# Where the noise ends

NOISE_NOTE = "{which} inside the noise (Tracy–Widom p of 0.001 and more): {they} out of the rest of the spectrum."
UNWAITED_NOTE = (
    " Residuals there were not waited for (the largest is {worst:.1e}): programs that stop at such residuals each find "
    "other directions. A component more than {gap:.1%} above the edge would have shown."
)
PAIRWISE_NOTE = (
    "Eigenvectors of the matrix whose entries are divided by the calls that two samples share, as PLINK does; it is "
    "not ZZᵀ, so that the SNPs' loadings are orthogonal only nearly."
)

ALPHA = 0.001  # a component that noise exceeds less often than this is waited for


@dataclass(frozen=True, eq=False)
class Noise:
    """Sums over all eigenvalues of ZZᵀ that are not zero by construction.

    Attributes
    ----------
    count : int
        How many there are.
    total : float
        Σλ, exact: the sum of squares of Z.
    deviation : float
        Σ(λ − λ̄)².
    error : float
        Standard error, relative, of this sum over the eigenvalues that were not computed, and so of the effective
        number of markers; 0 where it is exact.
    spread : float
        This sum.
    """

    count: int
    total: float
    deviation: float
    error: float = 0.0
    spread: float = 0.0

    def statistic_errors(self, eigenvalues: Array) -> Array:
        """Standard errors of the statistics: half the change from one error less to one more."""
        if self.error in (0.0, np.inf):
            return np.full(len(eigenvalues), self.error)
        shift = min(self.error, 0.9) * self.spread
        less, more = (replace(self, deviation=self.deviation + by)._statistics(eigenvalues) for by in (-shift, shift))
        return np.asarray(np.abs(more.statistics - less.statistics) / 2)

    def table(self, eigenvalues: Array) -> TracyWidomTable:
        r"""Test the leading eigenvalues as far as some are left to compare with.

        A statistic s with a standard error δ is one of the law of s + δx, x being standard normal, so that noise falls
        below a p-value of α in a share α of all cases: :math:`p = E[1 - F_1(s + \delta x)]`.
        """
        found = self._statistics(eigenvalues)
        errors = self.statistic_errors(found.eigenvalues)
        if not errors.any() or not len(errors):
            return found
        if not np.isfinite(errors).all():
            return replace(found, p_values=np.ones(len(errors)))
        x, weights = np.polynomial.hermite_e.hermegauss(NODES)
        moved = tracy_widom_sf(found.statistics[:, None] + errors[:, None] * x) @ (weights / weights.sum())
        return replace(found, p_values=np.where(np.isnan(found.statistics), 1.0, moved))

    def is_exceeded(self, eigenvalues: Array) -> bool:
        r"""Whether noise exceeds the last of the eigenvalues, the others taken out, less often than ALPHA.

        With the mean c and spread S₂ of the m that are left, :math:`n' = (m + 2)mc^2/S_2`. A p-value takes longer than
        a pass on a GPU, and is computed where the statistic is not far from the edge alone.
        """
        before, last = eigenvalues[:-1], float(eigenvalues[-1])
        m = self.count - len(before)
        mean = (self.total - float(before.sum())) / m
        if not self.spread > 8 * np.finfo(float).eps * m * mean**2 or last <= 0 or self.error == np.inf:
            return False
        n = max((m + 2) * m * mean**2 / self.spread, 1.0 + 1e-9)
        a, b = np.sqrt(n - 1), np.sqrt(m)
        statistic = (last / mean - (a + b) ** 2 / n) / ((a + b) / n * np.cbrt(1 / a + 1 / b))
        if self.error == 0.0 or statistic < _critical_value():  # errors make p-values larger
            return bool(statistic > _critical_value())
        return bool(
            replace(self, count=m, total=m * mean, deviation=self.spread).table(eigenvalues[-1:]).p_values < ALPHA
        )

    def _statistics(self, eigenvalues: Array) -> TracyWidomTable:
        tested = eigenvalues[: self.count - 1]
        tested = tested[tested > 0]
        if not len(tested):
            return _single_eigenvalue_table()
        return tracy_widom_from_sums(tested, self.count, self.total, self.deviation)


NODES = 12  # of the average over a statistic's error, which is smooth
EXACT_WORK = 2e11  # products n²M up to which all pairs of people are multiplied: a few seconds
PEOPLE = 25.0  # times √n people otherwise: 310n pairs, which leave the first statistic an error of about 0.25
PAIR_MATRICES = 3  # of people × people that fit in the working memory


def pairs_compared(n: int, p: int) -> tuple[int, bool]:
    """How many people, or SNPs where True, are multiplied with each other to tell how unequal eigenvalues are."""
    most = int((memory_budget() / (8 * PAIR_MATRICES)) ** 0.5)
    if p < n and p <= most and float(p) * p * n <= EXACT_WORK:
        return p, True
    return min(n, most, n if float(n) * n * p <= EXACT_WORK else int(PEOPLE * n**0.5) + 1), False


@dataclass(frozen=True, eq=False)
class SecondMoment:
    r"""How unequal the eigenvalues of K = ZZᵀ are, from the products of pairs of people.

    Outside the span of components U with eigenvalues Λ lies D = K − UΛUᵀ, with a mean c of its m eigenvalues, and

    .. math:: \sum (\lambda - c)^2 = \sum_{i\ne j} d_{ij}^2 + n \operatorname{var}(d_{ii}) - m\,(n - m)\,c^2/n,

    in which nothing large cancels. With all people this is exact. Of more than a pass or two can compare, it is the
    sum over a random sample of people, times the share of the pairs that these have, and its standard error follows
    from the differences between people. Random directions in place of people would take four times the work for the
    same error: the test is of a difference in the seventh digit, which n/4 of them would be needed for. Where SNPs are
    fewer than people the sum of squares of ZᵀZ is exact and serves.

    Attributes
    ----------
    n, count : int
        People; eigenvalues that are not zero by construction, the smaller of n − 1 and the number of SNPs.
    total : float
        Their sum, exact.
    people : ndarray of int
        Who was compared; nobody where ``squares`` is known.
    products : ndarray of shape (r, r)
        Their K.
    squares : float or None
        ‖ZᵀZ‖².
    """

    n: int
    count: int
    total: float
    people: npt.NDArray[np.intp]
    products: Array
    squares: float | None = None

    @classmethod
    def measure(cls, Z: Any, take: Callable[[Any], Any], total: float, seed: int) -> SecondMoment:
        """Multiply all pairs, or those of some people, whose operator ``take`` makes: one pass."""
        n, p = Z.shape
        count, (r, by_snps) = min(n - 1, p), pairs_compared(n, p)
        if by_snps:
            squares = float(np.sum(to_numpy(Z.gram(), float) ** 2))
            return cls(n, count, total, np.zeros(0, np.intp), np.zeros((0, 0)), squares)
        people = np.arange(n)
        if r < n:
            people = np.sort(np.random.default_rng([seed, n]).permutation(n)[:r])
        return cls(n, count, total, people, to_numpy((Z if r == n else take(people)).cogram(), float))

    def noises(self, eigenvalues: Array, U: Any) -> Iterator[Noise]:
        """Yield the sums with none, one, … all of the components U (n, k) apart, as long as some eigenvalue is left."""
        K, people, n, r = self.products, self.people, self.n, len(self.people)
        u = to_numpy(U, float)[people]
        inner, moved = u.T @ u, K @ u
        rows, diagonal = np.einsum("ij,ij->i", K, K), np.diagonal(K)
        for j in range(min(len(eigenvalues), self.count - 1) + 1):
            lam, left = eigenvalues[:j], self.count - j
            mean = (self.total - float(lam.sum())) / left
            if self.squares is not None:
                spread, error = self.squares - float(np.sum(lam**2)) - left * mean**2, 0.0
            else:
                v = u[:, :j] * lam
                d = diagonal - np.einsum("ij,ij->i", v, u[:, :j])
                others = rows - 2 * np.einsum("ij,ij->i", v, moved[:, :j])
                others = (others + np.einsum("ij,ij->i", v @ inner[:j, :j], v) - d**2) / (r - 1)  # mean dᵢⱼ² of each i
                pair, share = float(others.mean()), r / n
                spread = n * (n - 1) * pair + n * float(d.var()) - left * (n - left) * mean**2 / n
                # of a mean over pairs: what people differ by, and what is left to the pairs, those of normal numbers
                pairs = 4 * pair**2 / (r * (r - 1))
                between = max(0.0, 4 * float(others.var(ddof=1)) / r - 2 * pairs)
                error = n * (n - 1) * (between * (1 - share) + pairs * (1 - share**2)) ** 0.5
            spread = max(spread, 0.0)
            deviation = spread + left * mean**2 + float(np.sum(lam**2)) - self.total**2 / self.count
            yield Noise(self.count, self.total, deviation, error / spread if spread > 0 else np.inf, spread)

    def noise(self, eigenvalues: Array, U: Any) -> Noise:
        """The sums, with what lies outside the span of the components U (n, j) from the pairs."""
        *_, last = self.noises(eigenvalues, U)
        return last

    def count_separated(self, eigenvalues: Array, U: Any) -> int:
        """How many leading components lie above the edge of the noise that remains when they are taken out."""
        for j, noise in enumerate(self.noises(eigenvalues, U)):
            if j == len(eigenvalues) or j >= self.count - 1:
                return j
            if not noise.is_exceeded(eigenvalues[: j + 1]):
                return j
        return len(eigenvalues)

    def count_required(self, eigenvalues: Array, vectors: Callable[[], Any], passes: int) -> int:
        """All components at first; when they have had time to show, those that lie above the noise."""
        if passes < SEEN:
            return len(eigenvalues)
        U = vectors()
        xp = array_namespace(U)
        return self.count_separated(eigenvalues, thin_qr(xp, xp.asarray(U, dtype=xp.float64))[0])


def draw_directions(A: Operator, columns: int, seed: int) -> Any:
    """ZZᵀ times random directions orthogonal to 1, the same ones on every device: one pass, where a fit starts."""
    drawn = np.random.default_rng(seed).standard_normal((A.shape[0], columns))
    drawn -= drawn.mean(axis=0)
    return A.conormal(drawn if A.device is None else A.asarray(to_device(drawn, A.device)))


def resolution(n: int, columns: int, passes: int) -> float:
    r"""How far above the edge, relative to it, a component must lie to be found in so many passes.

    From b random directions among n the Chebyshev polynomial of degree q raises a component that lies a fraction γ
    above the rest by :math:`\tfrac12 e^{2q\sqrt\gamma}`; it leads when the square of this exceeds n/b.
    """
    return float((np.log(4 * n / columns) / (4 * max(passes, 1))) ** 2)


def _single_eigenvalue_table() -> TracyWidomTable:
    """The table where there is but one eigenvalue, and nothing to compare it with."""
    return TracyWidomTable(*(np.empty(0) for _ in range(4)))


@cache
def _critical_value() -> float:
    """The Tracy–Widom statistic that noise exceeds with probability ALPHA."""
    return float(tracy_widom_quantile(ALPHA, upper=True))


# Scores of samples with missing genotypes

PAIR_BYTES = 2**28  # of products of pairs of loadings that are multiplied in one pass


def fit_scores_to_calls(
    source: Genotypes, U: Any, singular_values: Array, components: Any, device: Any = None
) -> tuple[Any, Array]:
    r"""Scores that fit each sample's own genotypes best, as columns of length 1, and the lengths they had.

    .. math::
        c_i = \arg\min_c \sum_{j\ \text{seen}} (z_{ij} - v_j^Tc)^2 = (V_i^TV_i)^{-1} V^Tz_i,\qquad V^Tz_i = \Sigma u_i

    with V_i the rows of V at the SNPs that sample i has. The k×k matrices are products of the table of calls with the
    products of pairs of loadings: one pass, or more where there are so many pairs that they would fill the memory.
    """
    k = components.shape[0]
    a, b = np.triu_indices(k)
    where = "cpu" if device is None else device
    seen = genotype_operator(source, np.zeros(source.shape[1]), dtype=components.dtype, device=where).calls()
    V, normal = components.T, np.empty((len(U), k, k))
    step = max(1, PAIR_BYTES // (V.shape[0] * V.dtype.itemsize))
    for i in range(0, len(a), step):
        first, second = a[i : i + step], b[i : i + step]
        sums = to_numpy(seen.matmat(seen.asarray(np.ascontiguousarray(V[:, first] * V[:, second]))))
        normal[:, first, second] = normal[:, second, first] = sums
    least = np.linalg.eigvalsh(normal)[:, 0]  # all genotypes make each matrix the identity
    bad = np.flatnonzero(~(least > 100 * np.finfo(components.dtype).eps))
    if len(bad):
        names = list_few(source.samples.take(bad).names)
        raise SourceError(
            f"{len(bad)} of {len(normal)} samples have too few genotypes to fit {k} scores to: {names}. "
            "Leave them out by a filter, as ",
            Argument("max_sample_missing", 0.5),
            ", or use ",
            Argument("missing", "mean"),
            ".",
        )
    scores = np.linalg.solve(normal, (U * singular_values)[:, :, None])[:, :, 0]
    lengths = np.linalg.norm(scores, axis=0)
    return np.asarray(scores / lengths, dtype=U.dtype), lengths
