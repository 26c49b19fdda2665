"""Several families fitted to one sample, ranked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.likelihood.families import as_family
from gramian.likelihood.families.base import Joint
from gramian.likelihood.fit import Estimate, fit
from gramian.likelihood.sample import as_sample
from gramian.results.tables import text_table

Array = npt.NDArray[np.float64]
CRITERIA = ("aic", "bic", "loglik")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    r"""Families ranked on one sample, the best first.

    Attributes
    ----------
    estimates : tuple of Estimate
        The fits.
    by : str
        The criterion.
    failed : dict of str to str
        Families that could not be fitted, and why.
    notes : tuple of str
        How families of counts and of continuous values were made comparable.

    Examples
    --------
    >>> from gramian.likelihood import compare
    >>> compare(["normal", "gamma"], [0.4, 1.1, 1.3, 2.5, 6.0]).best.family.name
    'gamma'
    """

    estimates: tuple[Estimate, ...]
    by: str
    failed: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Estimate:
        """The first of them."""
        return self.estimates[0]

    @property
    def criteria(self) -> Array:
        """The criterion of each: less is better."""
        return np.array([-e.loglik if self.by == "loglik" else getattr(e, self.by) for e in self.estimates])

    @property
    def weights(self) -> Array:
        r"""Akaike weights :math:`e^{-\Delta_i/2}/\sum_je^{-\Delta_j/2}` of the AIC: the evidence for each, of these."""
        aic = np.array([e.aic for e in self.estimates])
        shares = np.exp(-0.5 * (aic - aic.min()))
        return np.asarray(shares / shares.sum())

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.family.name == name:
                return estimate
        raise KeyError(f"{name!r} is none of {', '.join(e.family.name for e in self.estimates)}.")

    def table(self) -> dict[str, Any]:
        """Return the columns of the ranking, ready for ``pandas.DataFrame``."""
        found: dict[str, Any] = {"family": [e.family.name for e in self.estimates]}
        for name, attribute in (("parameters", "n_parameters"), ("loglik", "loglik"), ("aic", "aic"), ("bic", "bic")):
            found[name] = np.array([getattr(e, attribute) for e in self.estimates])
        return {**found, "difference": self.criteria - self.criteria[0], "weight": self.weights}

    def __repr__(self) -> str:
        head = f"{len(self.estimates)} families on {self.best.n:g} observations, by {self.by}:"
        lines = [head, text_table(self.table(), None, digits=6), *(f"  note: {note}" for note in self.notes)]
        for estimate in self.estimates:
            unmet = () if estimate.certificate.converged else ("NOT converged",)
            notes = (*unmet, *estimate.certificate.notes)
            lines += [f"  note ({estimate.family.name}): {note}" for note in notes]
        return "\n".join([*lines, *(f"  not {k}: {v}" for k, v in self.failed.items())])


def compare(
    families: str | Sequence[Any], data: Any, *, by: str = "aic", sample_weight: Any = None, truncated: Any = None
) -> Comparison:
    r"""Fit several families to one sample and rank them.

    Densities and probabilities are not comparable. Where families of both kinds are to be ranked, the values must be
    whole numbers, and a continuous family is fitted to them as values that were rounded,

    .. math:: \sum_i w_i\ln P(x_i-\tfrac12 < X \le x_i+\tfrac12),

    which is a probability as that of a count is; or every record must be an interval.

    Parameters
    ----------
    families : sequence of str or Family
        What to fit.
    data, sample_weight, truncated
        As in :func:`gramian.likelihood.fit`.
    by : {"aic", "bic", "loglik"}, default="aic"
        The criterion.

    Returns
    -------
    Comparison
        The fits, the best first; families that cannot have these data, or have no maximum, are listed with the reason.

    Examples
    --------
    >>> from gramian.likelihood import compare
    >>> table = compare(["normal", "lognormal", "beta"], [0.4, 1.1, 1.3, 2.5, 6.0]).table()
    >>> table["family"]
    ['lognormal', 'normal']
    >>> compare(["poisson", "normal"], [41, 52, 78, 79, 81, 84]).best.family.name
    'normal'
    """
    if by not in CRITERIA:
        raise ValueError(f"by must be one of {', '.join(CRITERIA)}; got {by!r}.")
    families = [families] if isinstance(families, str) else families
    laws = [as_family(family) for family in families]
    if not laws:
        raise ValueError("families is empty: name one at least.")
    if any(isinstance(law, Joint) for law in laws):
        raise ValueError("Families of labels or rows cannot be ranked with others: fit them by themselves.")
    sample = as_sample(data, sample_weight, truncated)
    kinds = {law.name for law in laws if law.discrete}, {law.name for law in laws if not law.discrete}
    seen, continuous = sample.observed(), sample
    notes: tuple[str, ...] = ()
    if all(kinds) and seen.exact.any():
        one, other = (", ".join(sorted(names)) for names in kinds)
        if not (seen.exact.all() and np.all(seen.lower == np.floor(seen.lower))):
            raise ValueError(
                f"Probabilities ({one}) and densities ({other}) of values that are no whole numbers cannot be ranked "
                "together: compare within one kind, or bin the data."
            )
        continuous = sample.rounded()
        notes = (f"values are whole numbers: {other} give each the probability of what is rounded to it, as {one} do",)
    found, failed = [], {}
    for law in laws:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # said in the table
                found.append(fit(law, sample if law.discrete else continuous))
        except ValueError as error:
            failed[law.name] = str(error)
    if not found:
        raise ValueError("No family could be fitted: " + " ".join(f"{k}: {v}" for k, v in failed.items()))
    order = np.argsort(Comparison(tuple(found), by).criteria, kind="stable")
    return Comparison(tuple(found[i] for i in order), by, failed, notes)
