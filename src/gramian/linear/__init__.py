"""Linear systems: a small frozen object of tolerances, called with an operator, returns a Solution."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.linear.cg import ConjugateGradients
    from gramian.linear.cgls import CGLS
    from gramian.linear.cholesky import Cholesky
    from gramian.linear.path import CRITERIA, Filter, RidgePath, leave_one_out
    from gramian.linear.preconditioners import Nystrom
    from gramian.results import Residual, Solution
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CGLS",
    "CRITERIA",
    "Cholesky",
    "ConjugateGradients",
    "Filter",
    "Nystrom",
    "Residual",
    "RidgePath",
    "Solution",
    "leave_one_out",
]
