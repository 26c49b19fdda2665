r"""The names of the covariance models and how many parameters each has free.

A covariance is :math:`\Sigma_k=\lambda_kD_kA_kD_k^T` (Banfield and Raftery 1993; Celeux and Govaert 1995): volume λ,
shape A with :math:`|A|=1`, orientation D. Three letters say of each whether it is equal between components (E), varies
(V), or is the identity (I).
"""

from __future__ import annotations

__all__ = ["DIAGONAL", "MODELS", "NAMES", "covariance_parameters", "free_parameters", "resolve_model"]

MODELS = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
DIAGONAL = frozenset(MODELS[:6])
NAMES = {"spherical": "VII", "diag": "VVI", "tied": "EEE", "full": "VVV"}
UNIVARIATE = {"E": "EII", "V": "VII"}


def resolve_model(name: str, d: int) -> str:
    """Return the three letters of a model, given those, scikit-learn's name, or E or V for one column.

    Examples
    --------
    >>> from gramian.likelihood.mixture import resolve_model
    >>> resolve_model("tied", 3), resolve_model("V", 1), resolve_model("EVE", 2)
    ('EEE', 'VII', 'EVE')
    """
    if name in UNIVARIATE and d != 1:
        raise ValueError(f"Model {name!r} is for one column, and the data have {d}. Use one of {', '.join(MODELS)}.")
    found = NAMES.get(name, UNIVARIATE.get(name, name))
    if found not in MODELS:
        raise ValueError(
            f"There is no covariance model {name!r}. Use one of {', '.join(MODELS)}; {', '.join(NAMES)}; "
            "or E, V for one column."
        )
    return found


def covariance_parameters(model: str, k: int, d: int) -> int:
    """Return how many free parameters k covariances of d columns have together.

    Examples
    --------
    >>> from gramian.likelihood.mixture import covariance_parameters
    >>> covariance_parameters("VVV", 3, 2), covariance_parameters("EEE", 3, 2)
    (9, 3)
    """
    times = {"I": 0, "E": 1, "V": k}
    return times[model[0]] + times[model[1]] * (d - 1) + times[model[2]] * (d * (d - 1) // 2)


def free_parameters(model: str, k: int, d: int) -> int:
    """Return how many parameters a mixture has free: k − 1 weights, kd means, and its covariances, as mclust counts.

    Examples
    --------
    >>> from gramian.likelihood.mixture import free_parameters
    >>> free_parameters("VVV", 3, 2), free_parameters("VII", 2, 1)
    (17, 5)
    """
    return k - 1 + k * d + covariance_parameters(resolve_model(model, d), k, d)
