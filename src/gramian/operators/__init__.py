"""Linear maps that are never formed, and the compositions that make new ones of them."""

from gramian.operators.base import Operator, Transposed
from gramian.operators.compose import Centred, Gram, Known, RowWeighted, Scaled, Shifted
from gramian.operators.data import Data

__all__ = ["Centred", "Data", "Gram", "Known", "Operator", "RowWeighted", "Scaled", "Shifted", "Transposed"]
