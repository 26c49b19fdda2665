"""What a description of a PCA holds: its variances, its variables and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gramian.analysis._elements import Elements, text_table

__all__ = ["Columns", "Eigenvalues", "Reading", "Rows"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Eigenvalues:
    """The variances of the components, alone and beside the whole.

    Attributes
    ----------
    names : tuple of str
        The components.
    variances : ndarray of shape (k,)
        λ.
    percentages, cumulative : ndarray of shape (k,)
        100 λ/Σλ, with all variances in the sum, and the running sum of these.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.reading import Eigenvalues
    >>> Eigenvalues(("pca0", "pca1"), np.array([3.0, 1.0]), np.array([75.0, 25.0]), np.array([75.0, 100.0]))
    Eigenvalues:
      name  variance  percent  cumulative
      pca0         3       75          75
      pca1         1       25         100
    """

    names: tuple[str, ...]
    variances: Vector
    percentages: Vector
    cumulative: Vector

    def table(self) -> dict[str, Any]:
        """Return the columns name, variance, percent and cumulative, ready for ``pandas.DataFrame``."""
        numbers = {"variance": self.variances, "percent": self.percentages, "cumulative": self.cumulative}
        return {"name": list(self.names), **numbers}

    def __repr__(self) -> str:
        return f"Eigenvalues:\n{text_table(self.table())}"


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Elements):
    """The variables of a PCA, seen from its components.

    Attributes
    ----------
    names : tuple of str
        The variables.
    coordinates : ndarray of shape (p, k)
        Loadings v√λ.
    correlations : ndarray of shape (p, k)
        Correlation of each variable with each component; 0 for a constant variable.
    contributions : ndarray of shape (p, k)
        100 v²: the percentage of a component's variance that comes from a variable. Columns sum to 100.
    cos2 : ndarray of shape (p, k)
        Squared correlation: how much of a variable a component shows. Over all components they sum to 1.
    deviations : ndarray of shape (p,)
        Standard deviations of the variables as the PCA saw them: 1 where it scaled them.
    """

    kind: ClassVar[str] = "Columns"
    per_component: ClassVar[dict[str, str]] = {
        "coordinate": "coordinates",
        "correlation": "correlations",
        "contribution": "contributions",
        "cos2": "cos2",
    }
    overall: ClassVar[dict[str, str]] = {"deviation": "deviations"}
    order: ClassVar[str] = "contribution"

    names: tuple[str, ...]
    coordinates: Matrix
    correlations: Matrix
    contributions: Matrix
    cos2: Matrix
    deviations: Vector


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Elements):
    """The rows a PCA was fitted to, seen from its components.

    Attributes
    ----------
    names : tuple of str or None
        The rows, where they have names.
    coordinates : ndarray of shape (n, k)
        Scores z = Vᵀ(x − x̄)/s.
    contributions : ndarray of shape (n, k)
        100 wz²/Σwz²: the percentage of a component's variance that comes from a row. Columns sum to 100, or are 0 for
        a component without variance.
    cos2 : ndarray of shape (n, k)
        z²/d²: how much of the row's distance from the centre a component shows; 0 for a row at the centre.
    distances : ndarray of shape (n,)
        d = ‖(x − x̄)/s‖.
    """

    kind: ClassVar[str] = "Rows"
    per_component: ClassVar[dict[str, str]] = {
        "coordinate": "coordinates",
        "contribution": "contributions",
        "cos2": "cos2",
    }
    overall: ClassVar[dict[str, str]] = {"distance": "distances"}
    order: ClassVar[str] = "contribution"

    names: tuple[str, ...] | None
    coordinates: Matrix
    contributions: Matrix
    cos2: Matrix
    distances: Vector


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What :func:`~gramian.analysis.reading.describe` finds: ``columns``, ``rows`` and ``eigenvalues``."""

    columns: Columns
    rows: Rows
    eigenvalues: Eigenvalues

    def table(self) -> dict[str, Any]:
        """Return columns and rows below each other, in what they share, ready for ``pandas.DataFrame``."""
        parts = {"column": self.columns.table(), "row": self.rows.table()}
        kinds = [kind for kind, part in parts.items() for _ in part["name"]]
        shared = [key for key in parts["column"] if key in parts["row"]]
        return {"kind": kinds} | {key: [*parts["column"][key], *parts["row"][key]] for key in shared}

    def __repr__(self) -> str:
        return f"{self.eigenvalues!r}\n{self.columns!r}\n{self.rows!r}"
