"""Linear maps that are never formed, and the compositions that make new ones of them."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.operators.base import Capability, Operator, Transposed
    from gramian.operators.compose import Centred, ColumnScaled, Gram, Known, Multiple, RowWeighted, Shifted
    from gramian.operators.data import Data
    from gramian.operators.feature_space import FeatureCentred
    from gramian.operators.genotype import DeviceGenotypeOperator, GenotypeOperator, genotype_operator
    from gramian.operators.kernel import DeviceKernelOperator, KernelOperator, kernel_device, kernel_operator
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Capability",
    "Centred",
    "ColumnScaled",
    "Data",
    "DeviceGenotypeOperator",
    "DeviceKernelOperator",
    "FeatureCentred",
    "GenotypeOperator",
    "Gram",
    "KernelOperator",
    "Known",
    "Multiple",
    "Operator",
    "RowWeighted",
    "Shifted",
    "Transposed",
    "genotype_operator",
    "kernel_device",
    "kernel_operator",
]
