"""Models fitted by maximum likelihood: a source in, an estimate and its certificate out."""

from gramian.likelihood import families
from gramian.likelihood.estimator import MaximumLikelihood
from gramian.likelihood.families import *  # noqa: F403
from gramian.likelihood.fit import Comparison, Estimate, compare, fit
from gramian.likelihood.goodness import Goodness
from gramian.likelihood.intervals import ConfidenceIntervals
from gramian.likelihood.sample import Binned, Censored, Intervals, Sample, as_sample

__all__ = ["Binned", "Censored", "Comparison", "ConfidenceIntervals", "Estimate", "Goodness", "Intervals"]
__all__ += ["MaximumLikelihood", "Sample", "as_sample", "compare", "fit"]
__all__ += families.__all__
__all__.sort()
