"""Genotypes: quality, principal components, projection, and the files other programs read."""

from gramian.genetics.pca import GenotypePCA, Progress

__all__ = ["GenotypePCA", "Progress"]
