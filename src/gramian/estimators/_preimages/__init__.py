"""Pre-images: rows whose features are nearest to a combination of training features, one method per file."""

from gramian.estimators._preimages.result import PreImages
from gramian.estimators._preimages.ridge import fit_ridge_inverse, ridge_points
from gramian.estimators._preimages.search import METHODS, preimages

__all__ = ["METHODS", "PreImages", "fit_ridge_inverse", "preimages", "ridge_points"]
