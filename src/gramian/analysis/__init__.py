"""What a PCA means and how far to trust it: functions on fitted models, and on spectra."""

from gramian.analysis._interval import Interval
from gramian.analysis.alarms import Alarms, Contributions
from gramian.analysis.asymptotic import AsymptoticErrors, EqualityTest, eigenvalue_errors, equality_test
from gramian.analysis.biplot import Biplot, biplot
from gramian.analysis.bootstrap import Bootstrap, bootstrap
from gramian.analysis.categories import Categories, supplementary_categories
from gramian.analysis.conditional import Conditional, Latent
from gramian.analysis.cross_validation import CrossValidation, cross_validate_rank
from gramian.analysis.eigenvalue_tests import TracyWidomTable, tracy_widom_statistics
from gramian.analysis.imputation import Imputations, Pooled, multiple_imputation, pool
from gramian.analysis.iterative import Completion, iterative_pca
from gramian.analysis.limits import q_limit, t2_limit
from gramian.analysis.mixtures import (
    LikelihoodRatioTest,
    MixtureBootstrap,
    MixtureChoice,
    bootstrap_lrt,
    bootstrap_mixture,
    select_mixture,
)
from gramian.analysis.monitoring import Monitor, monitor
from gramian.analysis.parallel_analysis import parallel_analysis
from gramian.analysis.rank import (
    RankAdvice,
    RankChoice,
    broken_stick,
    gavish_donoho,
    tracy_widom_rank,
    variance_fraction,
)
from gramian.analysis.reading import Columns, Eigenvalues, Reading, Rows, correlations, describe, loadings
from gramian.analysis.rotation import Rotation, rotate, rotated_scores
from gramian.analysis.rv import RV, rv_coefficient
from gramian.analysis.subspaces import Procrustes, principal_angles, procrustes, subspace_distance
from gramian.analysis.supplementary import (
    SupplementaryColumns,
    SupplementaryRows,
    supplementary_columns,
    supplementary_rows,
)
from gramian.analysis.tracy_widom import tracy_widom_cdf, tracy_widom_quantile, tracy_widom_sf

__all__ = [
    "RV",
    "Alarms",
    "AsymptoticErrors",
    "Biplot",
    "Bootstrap",
    "Categories",
    "Columns",
    "Completion",
    "Conditional",
    "Contributions",
    "CrossValidation",
    "Eigenvalues",
    "EqualityTest",
    "Imputations",
    "Interval",
    "Latent",
    "LikelihoodRatioTest",
    "MixtureBootstrap",
    "MixtureChoice",
    "Monitor",
    "Pooled",
    "Procrustes",
    "RankAdvice",
    "RankChoice",
    "Reading",
    "Rotation",
    "Rows",
    "SupplementaryColumns",
    "SupplementaryRows",
    "TracyWidomTable",
    "biplot",
    "bootstrap",
    "bootstrap_lrt",
    "bootstrap_mixture",
    "broken_stick",
    "correlations",
    "cross_validate_rank",
    "describe",
    "eigenvalue_errors",
    "equality_test",
    "gavish_donoho",
    "iterative_pca",
    "loadings",
    "monitor",
    "multiple_imputation",
    "parallel_analysis",
    "pool",
    "principal_angles",
    "procrustes",
    "q_limit",
    "rotate",
    "rotated_scores",
    "rv_coefficient",
    "select_mixture",
    "subspace_distance",
    "supplementary_categories",
    "supplementary_columns",
    "supplementary_rows",
    "t2_limit",
    "tracy_widom_cdf",
    "tracy_widom_quantile",
    "tracy_widom_rank",
    "tracy_widom_sf",
    "tracy_widom_statistics",
    "variance_fraction",
]
