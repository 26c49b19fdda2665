r"""Gaussian mixtures from sufficient statistics: rows, weights, bins and missing cells share one core.

.. math:: p(x) = \sum_k\pi_kN(x;\mu_k,\Sigma_k)

An expectation step turns data and a :class:`Mixture` into :class:`SufficientStatistics` (Σr, Σrx, Σrxxᵀ and the
log-likelihood), block by block, never with the n×K responsibilities of all rows; a maximisation step turns statistics
into a mixture.
What differs between kinds of data is the first alone, what differs between models the second alone.

* ``Mixture.of(weights, means, covariances, model)``: the parameters; densities, responsibilities, samples, marginals
  and conditionals follow from them.
* ``MixtureRows.of(source, sample_weight)``: rows of a source; NaN cells are missing, by exact marginal likelihood.
  ``MixtureRows.assign(labels, k, model)``: statistics of rows that are given to components, for a start.
* ``Bins.of(edges, counts)``, ``Bins.intervals(lower, upper, counts)``: counts in intervals or boxes.
* ``Maximiser(model, prior, constraints)``: statistics → mixture, for 14 covariance models; ``Prior.floor(data)`` and
  ``Prior.conjugate(...)`` keep components from collapsing, ``Constraints`` hold parameters or make them equal.
* ``fit_mixture(data, start, maximiser)``: monotone, accelerated EM → ``MixtureFit`` (mixture, statistics, certificate,
  diagnoses). ``Stepwise(maximiser).step(mixture, statistics)``: the same in mini-batches.
* ``standard_errors(data, mixture, constraints)``: from the observed information. ``regress``: mixture regression.
* ``two_normals(*central_moments(data))``: Pearson's solution from five moments.
"""

from gramian.mixture.bayesian import BayesianGaussianMixture
from gramian.mixture.binned import BinnedGoodness, Bins
from gramian.mixture.classes import MergedComponents, MixtureDiscriminant, merge_components
from gramian.mixture.diagnose import Diagnosis, Landscape, diagnose
from gramian.mixture.em import Maximiser, MixtureFit, Stepwise, fit_mixture
from gramian.mixture.errors import Chart, StandardErrors, is_flat, observed_information, standard_errors
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.models import MODELS, covariance_parameters, maximise_covariances, resolve_model
from gramian.mixture.parameters import Constraints, Mixture, Prior, SufficientStatistics, free_parameters, regress
from gramian.mixture.robust import HeavyMixture, RobustMixture
from gramian.mixture.rows import MixtureRows
from gramian.mixture.starts import TwoNormals, central_moments, two_normals

__all__ = [
    "MODELS",
    "BayesianGaussianMixture",
    "BinnedGoodness",
    "Bins",
    "Chart",
    "Constraints",
    "Diagnosis",
    "GaussianMixture",
    "HeavyMixture",
    "Landscape",
    "Maximiser",
    "MergedComponents",
    "Mixture",
    "MixtureDiscriminant",
    "MixtureFit",
    "MixtureRows",
    "Prior",
    "RobustMixture",
    "StandardErrors",
    "Stepwise",
    "SufficientStatistics",
    "TwoNormals",
    "central_moments",
    "covariance_parameters",
    "diagnose",
    "fit_mixture",
    "free_parameters",
    "is_flat",
    "maximise_covariances",
    "merge_components",
    "observed_information",
    "regress",
    "resolve_model",
    "standard_errors",
    "two_normals",
]
