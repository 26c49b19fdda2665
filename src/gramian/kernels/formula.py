"""Kernels as formulas: what a loop in another language or on another device needs to know of them, as plain data."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Formula"]


class Formula(NamedTuple):
    r"""k(x, z) = c f(u) with u a number made of s∘x and s∘z; or a sum or product of such.

    ============  ======================================  ==================================================
    ``geometry``  u                                       ``profile``: f(u), with its ``parameters``
    ============  ======================================  ==================================================
    "squared"     Σ (s_j x_j − s_j z_j)²                  "exp": e⁻ᵘ; "matern12", "matern32", "matern52":
                                                          e⁻ʳ, (1 + r)e⁻ʳ, (1 + r + r²/3)e⁻ʳ with r = √u;
                                                          "rational", (α,): (1 + u)^(−α)
    "absolute"    Σ \|s_j x_j − s_j z_j\|                 "exp": e⁻ᵘ
    "chi2"        Σ (s_j x_j − s_j z_j)²/(s_j x_j +       "exp": e⁻ᵘ; "identity": u
                  s_j z_j), where 0/0 counts as 0
    "inner"       Σ s_j x_j s_j z_j                       "identity": u; "power", (q, b): (u + b)^q;
                                                          "tanh", (b,): tanh(u + b)
    "cosine"      x·z/(‖x‖‖z‖), 0 where a norm is         "identity": u
    "sum"         of the values of ``parts``              "identity": u
    "product"     of the values of ``parts``              "identity": u
    ============  ======================================  ==================================================

    Attributes
    ----------
    geometry, profile : str
        As above.
    scale : float or ndarray (p,)
        s.
    parameters : tuple of float
        Of f.
    factor : float
        c.
    parts : tuple of Formula
        The kernels that are added or multiplied.

    Examples
    --------
    >>> from gramian.kernels import Gaussian
    >>> Gaussian(4.0).formula(3)
    Formula(geometry='squared', profile='exp', scale=2.0, parameters=(), factor=1.0, parts=())
    """

    geometry: str
    profile: str
    scale: Any = 1.0
    parameters: tuple[float, ...] = ()
    factor: float = 1.0
    parts: tuple[Formula, ...] = ()
