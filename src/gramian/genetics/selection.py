"""SNPs that a component moves more than drift does: scans for selection from the loadings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from gramian.compute.devices import to_numpy
from gramian.genetics.genotypes import standardise
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.quality import TableFile
from gramian.genetics.robust import robust_distances
from gramian.sources.plink import Genotypes, Snps

Array = npt.NDArray[np.float64]

METHODS = ("galinsky", "pcadapt")


@dataclass(frozen=True, eq=False)
class SelectionScan(TableFile):
    """Statistics of SNPs, χ² distributed where nothing but drift moved them.

    Attributes
    ----------
    snps : Snps
        Those of the model.
    names : list of str
        PC1, PC2, … or ``all``: what each column is of.
    statistics, p_values : ndarray of shape (SNPs, columns)
        Before and after division by λ.
    inflation : ndarray of shape (columns,)
        λ_GC, the median statistic divided by the median of its distribution.
    degrees : int
        Degrees of freedom.
    """

    snps: Snps
    names: list[str]
    statistics: Array
    p_values: Array
    inflation: Array
    degrees: int

    def table(self) -> dict[str, Any]:
        """Return the SNPs with statistic and p-value of each column, ready for ``pandas.DataFrame``."""
        snps = self.snps
        found: dict[str, Any] = {"CHROM": snps.chromosome, "POS": snps.position, "ID": snps.id, "A1": snps.a1}
        for j, name in enumerate(self.names):
            found |= {f"{name}_CHISQ": self.statistics[:, j], f"{name}_P": self.p_values[:, j]}
        return found


def selection_scan(
    model: GenotypePCA, source: Genotypes | None = None, *, method: str = "galinsky", components: int | None = None
) -> SelectionScan:
    r"""Which SNPs differ along components by more than all others do.

    ``galinsky``: with loadings v of length 1 over M SNPs, :math:`M v_s^2` is χ² with one degree of freedom under drift,
    for each component (Galinsky et al. 2016). ``pcadapt``: z-scores of the regression of each SNP on all components,
    and their robust Mahalanobis distance, χ² with as many degrees as components (Luu et al. 2017). p-values are of the
    statistic divided by λ_GC for the second; the first is calibrated by itself, and its λ_GC is told.

    Parameters
    ----------
    model : GenotypePCA
        Fitted.
    source : Genotypes, optional
        The genotypes of the fit, which ``pcadapt`` needs for their variance.
    method : {"galinsky", "pcadapt"}, default="galinsky"
        Which.
    components : int, optional
        The first so many; by default those that stand out of the noise.

    Returns
    -------
    SelectionScan
        Of the SNPs of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, selection_scan
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(0.2, 0.8, (2000, 1))
    >>> p = np.clip(np.hstack([f, f + rng.normal(0, 0.05, f.shape)]), 0.01, 0.99)
    >>> p[7] = 0.05, 0.95
    >>> G = Genotypes.from_calls(rng.binomial(2, np.repeat(p, 100, axis=1)))
    >>> scan = selection_scan(GenotypePCA(2).fit(G), components=1)
    >>> int(scan.p_values[:, 0].argmin())
    7
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(METHODS)}.")
    most = len(model.components_)
    k = min(model.n_separated_, most) if components is None else components
    if not 1 <= k <= most:
        raise ValueError(
            f"components={components!r}: {most} were computed, and {model.n_separated_} stand out of the noise."
        )
    V = to_numpy(model.components_)[:k].T.astype(np.float64)
    if method == "galinsky":
        statistics, degrees, names = len(V) * V**2, 1, [f"PC{j + 1}" for j in range(k)]
    else:
        if source is None:
            raise ValueError("method='pcadapt' needs the genotypes of the fit: source=.")
        if source.shape != (model.n_samples_, model.n_features_in_):
            raise ValueError(
                f"The model was fitted to {model.n_samples_} samples × {model.n_features_in_} SNPs; source has "
                f"{source.shape[0]} × {source.shape[1]}."
            )
        b = V * np.asarray(model.singular_values_, dtype=np.float64)[:k]
        squares = standardise(source.select(snps=model.snp_mask_).snp_counts(), model.scaling).squares
        rest = np.maximum(squares - (b**2).sum(axis=1), np.finfo(np.float64).tiny) / (model.n_samples_ - k - 1)
        statistics, degrees, names = robust_distances(b / np.sqrt(rest)[:, None])[:, None], k, ["all"]
    inflation = np.median(statistics, axis=0) / chi2.ppf(0.5, degrees)
    scaled = statistics / inflation if method == "pcadapt" else statistics
    return SelectionScan(model.snps_, names, statistics, chi2.sf(scaled, degrees), inflation, degrees)
