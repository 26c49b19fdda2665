"""Linear maps that are never formed, and the compositions that make new ones of them."""

from gramian.operators.base import Operator, Transposed
from gramian.operators.compose import Centred, Gram, Known, Multiple, RowWeighted, Scaled, Shifted
from gramian.operators.data import Data
from gramian.operators.feature_space import FeatureCentred
from gramian.operators.genotype import GenotypeOperator
from gramian.operators.kernel import KernelOperator

__all__ = [
    "Centred",
    "Data",
    "FeatureCentred",
    "GenotypeOperator",
    "Gram",
    "KernelOperator",
    "Known",
    "Multiple",
    "Operator",
    "RowWeighted",
    "Scaled",
    "Shifted",
    "Transposed",
]
