"""Models fitted by maximum likelihood: a source in, an estimate and its certificate out."""

from gramian.likelihood.ppca import Factor, fit_factor

__all__ = ["Factor", "fit_factor"]
