"""What a certificate certifies, in one sentence."""

from __future__ import annotations

import numpy as np

from gramian.results import Optimum, Residual, SpectralCertificate

__all__ = ["Proof", "certified"]

Proof = SpectralCertificate | Optimum | Residual

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def certified(proof: Proof) -> str:
    """Return one sentence that says how far the computed answer can be from the exact one.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.cli.story.words import certified
    >>> from gramian.results import Residual
    >>> certified(Residual("Cholesky", "asked for", 1, 0, np.array([1e-15]), tolerance=1e-10))
    'Put back into its equations, the solution misses them by 1·10⁻¹⁵ of their size (1·10⁻¹⁰ was asked for).'
    """
    asked = f"({_power(proof.tolerance)} was asked for{'' if proof.converged else ' and NOT met'})"
    if isinstance(proof, SpectralCertificate):
        return _components(proof, asked)
    if isinstance(proof, Optimum):
        return f"One more step would move the estimates by {_power(proof.gradient)} of their standard errors {asked}."
    bound = "" if proof.error_bounds is None else _bound(proof)
    return (
        f"Put back into its equations, the solution misses them by {_power(proof.worst)} of their size {asked}{bound}."
    )


def _components(proof: SpectralCertificate, asked: str) -> str:
    k = len(proof.values) if proof.judged is None else proof.judged
    which = "The component" if k == 1 else f"Each of {k} components"
    miss = f"misses being one by at most {_power(proof.worst)} of the largest singular value"
    return f"{which}, put back into the data, {miss} {asked}."


def _bound(proof: Residual) -> str:
    largest = _power(float(np.max(proof.error_bounds if proof.error_bounds is not None else 0.0, initial=0.0)))
    if proof.bounded.startswith("|f̂(x) − f(x)|"):
        return f", so every prediction f(x) is within {largest}·‖φ(x)‖ of the exact one"
    if proof.bounded == "‖ŵ − w‖":
        return f", so the coefficients, all together, are within {largest} of the exact ones"
    return f", so {proof.bounded or 'the error'} is at most {largest}"


def _power(value: float) -> str:
    """A small number as people write it.

    Examples
    --------
    >>> _power(2.5e-9), _power(0.25), _power(0.0)
    ('2.5·10⁻⁹', '0.25', '0')
    """
    if not np.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.2g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}·10{str(int(power)).translate(RAISED)}"
