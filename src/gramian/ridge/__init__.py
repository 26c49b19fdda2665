"""Ridge regression."""

from gramian.ridge.estimator import Ridge, RidgeCV

__all__ = ["Ridge", "RidgeCV"]
