"""Linear systems: a small frozen object of tolerances, called with an operator, returns a Solution."""

from gramian.linear.path import CRITERIA, Filter, RidgePath, leave_one_out
from gramian.results import Residual, Solution

__all__ = ["CRITERIA", "Filter", "Residual", "RidgePath", "Solution", "leave_one_out"]
