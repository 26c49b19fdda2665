r"""Where people come from, by a labelled reference: the group of each, "unknown" where none fits, shares of several.

Groups are normal in the components of the reference, so that a person's posterior follows from predictive densities;
how far from its group a person may lie is calibrated by leaving each member of the reference out. Shares come from the
allele frequencies of the groups, by maximum likelihood with a proof of how near the highest point is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy import optimize, special, stats

from gramian.genetics.genotypes import as_genotypes, count_alleles
from gramian.inputs.checks import check_share, fetch_numbers
from gramian.inputs.progress import Progress
from gramian.sources.plink import Samples

Array = npt.NDArray[np.float64]
Text = npt.NDArray[np.object_]

UNKNOWN = "unknown"
PRIOR_PEOPLE = 5.0  # of the pooled covariance that a group's own is mixed with: as if so many more had been seen
BLOCK_ENTRIES = 2**24  # genotypes decoded at a time
MOST_STEPS = 200
PSEUDO = 0.5  # copies of each allele added to those counted, so that no allele is impossible in a group


@dataclass(frozen=True, eq=False, repr=False)
class Ancestry:
    """Groups of people by their scores on the components of a reference.

    Attributes
    ----------
    groups : tuple of str
        Of the reference, in order.
    assigned : ndarray of str
        The group of each person, "unknown" where none fits or two fit alike.
    posterior : ndarray of shape (m, g)
        Probabilities of the groups, each as likely as the others before.
    p_values : ndarray of shape (m,)
        Of the likeliest group: how often a member lies as far from its centre.
    calibration : dict of str to ndarray
        By group of the reference: how many members it has, and what became of them when each was left out: named
        right, named wrong, unknown.
    level, certainty : float
        Below which p-value, and below which posterior, a person is unknown.
    """

    groups: tuple[str, ...]
    assigned: Text
    posterior: Array
    p_values: Array
    calibration: dict[str, Any]
    level: float
    certainty: float

    def table(self) -> dict[str, Any]:
        """Columns by name: the group, its p-value, and the posterior of every group."""
        named = {"GROUP": self.assigned, "P": self.p_values}
        return named | {name: self.posterior[:, j] for j, name in enumerate(self.groups)}

    def __repr__(self) -> str:
        names, counts = np.unique(self.assigned.astype(str), return_counts=True)
        found = ", ".join(f"{count:,} {name}" for name, count in zip(names, counts, strict=True))
        right = int(np.sum(self.calibration["right"]))
        return f"Ancestry: {found}; {right:,} of {int(np.sum(self.calibration['members'])):,} left out were named right"


class _GroupDensity:
    """Predictive density of a group: Student-t about its mean, its covariance mixed with that of all groups."""

    def __init__(self, X: Array, pooled: Array) -> None:
        self.n, self.k = X.shape
        self.mean = X.mean(axis=0)
        self.D = X - self.mean
        self.pooled = pooled

    def measure(self, points: Array, without: int | None = None) -> tuple[Array, Array]:
        """Log densities and p-values of points, by the group without one of its members if asked."""
        n, mean, scatter = self.n, self.mean, self.D.T @ self.D
        if without is not None:
            d = self.D[without]
            scatter = scatter - np.outer(d, d) * n / (n - 1)
            mean = mean - d / (n - 1)
            n -= 1
        freedom = n - 1 + PRIOR_PEOPLE
        factor = scipy.linalg.cholesky((scatter + PRIOR_PEOPLE * self.pooled) / freedom * (1 + 1 / n), lower=True)
        z = scipy.linalg.solve_triangular(factor, (points - mean).T, lower=True)
        distance = np.sum(z**2, axis=0)
        logs = -0.5 * (freedom + self.k) * np.log1p(distance / freedom) - np.log(np.diagonal(factor)).sum()
        logs += special.gammaln((freedom + self.k) / 2) - special.gammaln(freedom / 2)
        logs -= self.k / 2 * np.log(freedom * np.pi)
        return logs, np.asarray(stats.f.sf(distance / self.k, self.k, freedom))


def classify_ancestry(
    reference: npt.ArrayLike,
    labels: Sequence[Any],
    scores: npt.ArrayLike,
    *,
    level: float = 0.001,
    certainty: float = 0.9,
) -> Ancestry:
    """Group of people by their scores, and "unknown" where they fit no group of the reference.

    The predictive density of a group of n people in k components is Student's t with n + 4 degrees of freedom about
    their mean, the covariance being theirs and, as if five more people had been seen, that within all groups. A
    person whose likeliest group would have a member so far out with a probability below ``level`` is unknown, and so is
    one of whom no group has the posterior ``certainty``. P-values are calibrated: where more members of a group than
    there should be have small ones, each left out in turn, as in groups with tails or of several clusters, the share
    of members with one as small is taken.

    Parameters
    ----------
    reference : array-like of shape (n, k)
        Scores of the reference.
    labels : sequence of length n
        Their groups; people without one are left out, groups of fewer than 3 people too.
    scores : array-like of shape (m, k)
        Scores of others on the same components, as :func:`~gramian.genetics.project` finds them.
    level : float, default=0.001
        P-value below which a person is unknown.
    certainty : float, default=0.9
        Posterior below which a person is unknown.

    Returns
    -------
    Ancestry
        Groups, posteriors, and what became of the reference's own people, each left out.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import classify_ancestry
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[0.0, 0.0], [9.0, 0.0]])
    >>> reference = np.repeat(centres, 40, axis=0) + rng.normal(size=(80, 2))
    >>> found = classify_ancestry(reference, ["A"] * 40 + ["B"] * 40, [[0.3, 0.2], [9.1, 1.0], [4.5, 20.0]])
    >>> found.assigned.tolist()
    ['A', 'B', 'unknown']
    """
    check_share("level", level)
    check_share("certainty", certainty)
    R, S = (
        np.asarray(fetch_numbers(values, name), dtype=np.float64)
        for values, name in ((reference, "reference"), (scores, "scores"))
    )
    if R.ndim != 2 or S.ndim != 2 or R.shape[1] != S.shape[1] or not R.shape[1]:
        raise ValueError(f"reference {R.shape} and scores {S.shape} must have the same components.")
    for name, values in (("reference", R), ("scores", S)):
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise ValueError(f"{name}: row {bad[0] + 1} is not finite.")
    if len(labels) != len(R):
        raise ValueError(f"{len(labels)} labels are given for {len(R)} people: one for each was expected.")
    text = np.array([_name_group(label) for label in labels], dtype=object)
    names = tuple(name for name in sorted(set(text) - {""}) if np.sum(text == name) >= 3)
    if len(names) < 2:
        raise ValueError(f"{len(names)} groups of at least 3 people are labelled; two are needed.")
    if UNKNOWN in names:
        raise ValueError(f"A group is called {UNKNOWN!r}, which stands for nobody's group here: rename it.")
    rows = [np.flatnonzero(text == name) for name in names]
    total = sum(len(r) for r in rows)
    if total - len(names) < R.shape[1]:
        raise ValueError(f"{total} people in {len(names)} groups do not determine {R.shape[1]} components: take fewer.")
    pooled = sum((R[r] - R[r].mean(axis=0)).T @ (R[r] - R[r].mean(axis=0)) for r in rows) / (total - len(names))
    if not np.all(np.linalg.eigvalsh(pooled) > 1e-12 * np.trace(pooled)):
        raise ValueError(
            "Groups do not vary in every component: people of a group have the same scores, or components do."
        )
    groups = [_GroupDensity(R[r], pooled) for r in rows]
    alone = [  # log densities and p-values of members, each by its group without it
        np.array([group.measure(R[r[i : i + 1]], without=i) for i in range(len(r))])[:, :, 0]
        for group, r in zip(groups, rows, strict=True)
    ]
    own_p = [found[:, 1] for found in alone]
    fates = np.zeros((len(names), 3), dtype=int)
    for g, r in enumerate(rows):
        by_all = [group.measure(R[r]) for group in groups]
        member_logs = np.stack([logs for logs, _ in by_all], axis=1)
        member_p = np.stack([_calibrate(p, own) for (_, p), own in zip(by_all, own_p, strict=True)], axis=1)
        member_logs[:, g] = alone[g][:, 0]
        member_p[:, g] = [_calibrate(p, np.delete(own_p[g], i)) for i, p in enumerate(own_p[g])]
        found, _, _ = _decide(member_logs, member_p, names, level, certainty)
        fates[g] = np.sum(found == names[g]), np.sum((found != names[g]) & (found != UNKNOWN)), np.sum(found == UNKNOWN)
    measured = [group.measure(S) for group in groups]
    logs = np.stack([logs for logs, _ in measured], axis=1)
    every = np.stack([_calibrate(p, own) for (_, p), own in zip(measured, own_p, strict=True)], axis=1)
    assigned, posterior, p_values = _decide(logs, every, names, level, certainty)
    calibration = {
        "group": np.array(names, dtype=object),
        "members": np.array([len(r) for r in rows]),
        "right": fates[:, 0],
        "wrong": fates[:, 1],
        "unknown": fates[:, 2],
    }
    return Ancestry(names, assigned, posterior, p_values, calibration, level, certainty)


def _name_group(label: Any) -> str:
    return "" if label is None or label != label else str(label)


def _calibrate(p: Any, own: Array) -> Any:
    """P-values that are not below what members of the group have, each left out.

    That of p is the share of members with one as small, p itself counted with them; below the smallest of theirs it
    falls in proportion.
    """
    ordered, n = np.sort(own), len(own)
    share = (1 + np.searchsorted(ordered, p, side="right")) / (n + 1)
    beyond = np.asarray(p) * max(1.0, 1 / ((n + 1) * max(float(ordered[0]), 1e-300)))
    return np.where(p < ordered[0], np.minimum(beyond, 1 / (n + 1)), np.maximum(p, share))


def _decide(logs: Array, p: Array, names: tuple[str, ...], level: float, certainty: float) -> tuple[Text, Array, Array]:
    """Groups, posteriors, and the p-value of the likeliest group."""
    posterior = special.softmax(logs, axis=1)
    best = np.argmax(posterior, axis=1)
    at = np.arange(len(best))
    own = p[at, best]
    found = np.array([*names, None], dtype=object)[best]
    found[(own < level) | (posterior[at, best] < certainty)] = UNKNOWN
    return found, posterior, own


@dataclass(frozen=True, eq=False, repr=False)
class AncestryShares:
    r"""Shares of the groups of a reference in the genomes of people.

    Attributes
    ----------
    samples : Samples
        The people.
    groups : tuple of str
        Of the reference.
    shares : ndarray of shape (m, g)
        Not negative, with the sum 1.
    gaps : ndarray of shape (m,)
        Proved: no other shares have a log-likelihood that is higher by more.
    log_likelihoods : ndarray of shape (m,)
        At the shares.
    snps_used : ndarray of int
        Genotypes of each person.
    converged : ndarray of bool
        Whether the gap is at most the tolerance.
    """

    samples: Samples
    groups: tuple[str, ...]
    shares: Array
    gaps: Array
    log_likelihoods: Array
    snps_used: npt.NDArray[np.int64]
    converged: npt.NDArray[np.bool_]

    def table(self) -> dict[str, Any]:
        """Columns by name: FID, IID and the shares."""
        named = {"FID": self.samples.fid, "IID": self.samples.iid}
        return named | {name: self.shares[:, j] for j, name in enumerate(self.groups)}

    def __repr__(self) -> str:
        mean = ", ".join(
            f"{name} {value:.3f}" for name, value in zip(self.groups, self.shares.mean(axis=0), strict=True)
        )
        return f"AncestryShares of {len(self.samples):,} people, on average {mean}; gaps at most {self.gaps.max():.1e}"


def group_frequencies(X: Any, labels: Sequence[Any]) -> tuple[tuple[str, ...], Array]:
    """Frequency of A1 in each group, half a copy of either allele added: names, and an array of groups × SNPs.

    Parameters
    ----------
    X : Genotypes or array-like of shape (n, M)
        Copies of A1; a negative number or NaN is missing.
    labels : sequence of length n
        The group of each person.

    Returns
    -------
    names : tuple of str
        The groups, in their order.
    frequencies : ndarray of shape (groups, M)
        Of A1.

    Examples
    --------
    >>> from gramian.genetics import group_frequencies
    >>> group_frequencies([[0, 2], [1, 2], [2, 0]], ["A", "A", "B"])
    (('A', 'B'), array([[0.3       , 0.9       ],
           [0.83333333, 0.16666667]]))
    """
    source = as_genotypes(X)
    if len(labels) != source.shape[0]:
        raise ValueError(f"{len(labels)} labels are given for {source.shape[0]} people: one for each was expected.")
    text = np.array([_name_group(label) for label in labels], dtype=object)
    names = tuple(sorted(set(text) - {""}))
    if not names:
        raise ValueError("Nobody has a label.")
    found = []
    for name in names:
        a1, alleles = count_alleles(source.select(samples=np.flatnonzero(text == name)))
        found.append((a1 + PSEUDO) / (alleles + 2 * PSEUDO))
    return names, np.stack(found)


def ancestry_shares(
    X: Any,
    frequencies: npt.ArrayLike,
    groups: Sequence[str],
    *,
    tol: float = 1e-3,
    progress: Progress | None = None,
) -> AncestryShares:
    r"""Shares of groups in each person's genome, from the allele frequencies of the groups.

    With f the frequencies of A1 and q a person's shares, a genotype is two draws with the probability
    :math:`p_j = \sum_k q_kf_{kj}`, and

    .. math:: \ell(q) = \sum_j g_j\log p_j + (2 - g_j)\log(1 - p_j)

    is concave. Without the condition that shares sum to 1, :math:`\ell(q) - 2M\sum_kq_k` with
    :math:`1 - p = \sum_kq_k(1 - f_k)` has its maximum where they do, so that each Newton step is a problem of least
    squares without negative numbers. For M genotypes, concavity proves that
    :math:`\max_k\partial\ell/\partial q_k - 2M` is more than any other shares could gain.

    Parameters
    ----------
    X : path, Genotypes or array of samples × SNPs
        The people.
    frequencies : array-like of shape (g, p)
        Of A1 at the same SNPs, strictly between 0 and 1: :func:`group_frequencies`.
    groups : sequence of str
        Their names.
    tol : float, default=1e-3
        Gap in log-likelihood to reach: a thousandth of what a standard error costs is 5e-4.
    progress : callable, optional
        Called with the people done, their number and a message.

    Returns
    -------
    AncestryShares
        With the gap of each person, which is a proof.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import ancestry_shares
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(0.05, 0.95, (2, 2000))
    >>> people = rng.binomial(2, np.array([[0.3, 0.7], [1.0, 0.0]]) @ f)
    >>> ancestry_shares(people, f, ["A", "B"]).shares.round(1)
    array([[0.3, 0.7],
           [1. , 0. ]])
    """
    F, source = np.asarray(fetch_numbers(frequencies, "frequencies"), dtype=np.float64), as_genotypes(X)
    if F.ndim != 2 or F.shape != (len(groups), source.shape[1]):
        raise ValueError(
            f"frequencies have the shape {F.shape}; {len(groups)} groups × {source.shape[1]} SNPs were expected."
        )
    if not ((F > 0) & (F < 1)).all():
        g, j = np.argwhere(~((F > 0) & (F < 1)))[0]
        raise ValueError(
            f"frequencies: {groups[g]} has {F[g, j]!r} at SNP {j + 1}. An allele that a group never has makes people "
            "impossible: group_frequencies adds half a copy of each."
        )
    if not tol > 0:
        raise ValueError(f"tol={tol!r} must be positive.")
    n = source.shape[0]
    shares, gaps, logs, used = np.empty((n, len(F))), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    rows = max(1, BLOCK_ENTRIES // max(1, source.shape[1]))
    for block in source.blocks(rows):
        for i, g in enumerate(np.asarray(block.values), block.start):
            seen = np.isfinite(g)
            used[i] = seen.sum()
            shares[i], logs[i], gaps[i] = _maximise_shares(g[seen], F[:, seen], tol)
        if progress is not None:
            progress(block.stop, n, "people")
    return AncestryShares(source.samples, tuple(map(str, groups)), shares, gaps, logs, used, gaps <= tol)


def _maximise_shares(g: Array, F: Array, tol: float) -> tuple[Array, float, float]:
    """Shares of one person, their log-likelihood, and the gap."""
    k, M = len(F), len(g)
    q = np.full(k, 1.0 / k)
    if M == 0:
        return q, 0.0, 0.0
    f, c = F.T, 1.0 - F.T

    def value(q: Array) -> float:
        return float(g @ np.log(f @ q) + (2 - g) @ np.log(c @ q))

    now, gap, best = value(q), np.inf, (np.inf, q, 0.0)
    for _ in range(MOST_STEPS):
        p, r = f @ q, c @ q
        a, b = g / p, (2 - g) / r
        slope = f.T @ a + c.T @ b  # Σ q·slope = 2M
        gap = max(0.0, float(slope.max()) - 2 * M)
        if gap < best[0]:
            best = gap, q, now
        if gap <= tol / 2:
            break
        A = (f * (a / p)[:, None]).T @ f + (c * (b / r)[:, None]).T @ c
        A[np.diag_indices(k)] += 1e-10 * np.trace(A) / k
        root = scipy.linalg.cholesky(A, check_finite=False)
        target = scipy.linalg.solve_triangular(root, A @ q + slope - 2 * M, trans="T", check_finite=False)
        aim = optimize.nnls(root, target)[0]
        step, moved = 1.0, False
        while step > 1e-8:
            new = q + step * (aim - q)
            new = new / new.sum()
            with np.errstate(all="ignore"):
                then = value(new)
            if then > now:
                q, now, moved = new, then, True
                break
            step /= 2
        if not moved:  # a step of EM, which never lowers the likelihood
            q = q * slope / (2 * M)
            q, now = q / q.sum(), value(q / q.sum())
    return best[1], best[2], best[0] + 64 * M * np.finfo(float).eps  # what rounding can do to a slope of M terms
