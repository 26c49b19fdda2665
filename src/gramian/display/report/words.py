"""A certificate in plain words: one paragraph that a reader of the results, not of the method, understands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramian.results import Certificate, Optimum, Residual

__all__ = ["Proof", "in_words", "verdict"]

Proof = Certificate | Optimum | Residual

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ARITHMETIC = (
    "This is about the arithmetic: how close the computed answer is to the exact one for these data. It says nothing "
    "of how the answer would change with other data."
)


def verdict(proofs: Sequence[Proof]) -> bool:
    """Whether every tolerance was met."""
    return all(proof.converged for proof in proofs)


def in_words(proof: Proof) -> str:
    """Say what a certificate certifies.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.display.report.words import in_words
    >>> from gramian.results import Residual
    >>> in_words(Residual("Cholesky", "asked for", 1, 0, np.array([1e-15]), 1e-10)).split(".")[0]
    'The equations were solved by Cholesky in 1 pass over the data'
    """
    if isinstance(proof, Certificate):
        return _spectrum(proof)
    return _optimum(proof) if isinstance(proof, Optimum) else _system(proof)


def _passes(passes: int) -> str:
    return f"{passes} pass{'es' * (passes != 1)} over the data"


def _steps(steps: int) -> str:
    return f"{steps} step{'s' * (steps != 1)}"


def _met(proof: Proof) -> str:
    asked = f"{_power(proof.tolerance)} was asked for"
    if proof.converged:
        return f"{asked}, so the tolerance is met"
    return f"{asked}, so the tolerance is NOT met, and the numbers on this page are to be used with care"


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
    return f"{digits}·10{str(int(power)).translate(RAISED)}"


def _digits(relative: float) -> str:
    """How many leading digits a relative error leaves."""
    return "15 or more" if relative < 1e-15 else str(max(0, int(np.floor(-np.log10(relative)))))


def _spectrum(proof: Certificate) -> str:
    k = len(proof.values)
    if proof.judged == 0:
        return f"{k} components were computed by {proof.method}; none of them stands out of the noise. {ARITHMETIC}"
    if not k:
        return f"No component was computed ({proof.method}). {ARITHMETIC}"
    bound = float(np.max(proof.value_bounds[: proof.judged], initial=0.0))
    relative = bound / proof.norm if proof.norm > 0 else 0.0
    how = f"computed by {proof.method} in {_passes(proof.passes)}"
    return (
        f"{k} component{'s were' if k != 1 else ' was'} {how}, and each was then put back into the data to see by how "
        f"much it misses being a component. The largest miss is {_power(proof.worst)} of the largest singular value; "
        f"{_met(proof)}. It follows that {_certified(proof)} is within {_power(bound)} of an exact one, which is "
        f"{_digits(relative)} correct digits of the largest. {ARITHMETIC}"
    )


def _certified(proof: Certificate) -> str:
    """Which singular values the bound is for."""
    if proof.judged is None or proof.judged == len(proof.values):
        return "every singular value"
    return f"each of the first {proof.judged} singular values, those that stand out of the noise,"


def _optimum(proof: Optimum) -> str:
    if proof.iterations:
        how = f"The fit was improved step by step ({proof.method}): {_steps(proof.iterations)}, {_passes(proof.passes)}"
    else:
        how = f"The best fit was found by {proof.method} in {_passes(proof.passes)}"
    text = (
        f"{how}. Where it ended, one more step would move the estimates by {_power(proof.gradient)} of their own "
        f"standard errors; {_met(proof)}."
    )
    if proof.converged:
        text += " What is left to gain is far smaller than the uncertainty that the data themselves leave."
    if proof.iterations:
        text += " Where there are several maxima, no certificate can say that this one is the highest."
    return text


def _system(proof: Residual) -> str:
    bound = "" if proof.error_bounds is None else f" {_bound(proof)}"
    return (
        f"The equations were solved by {proof.method} in {_passes(proof.passes)}. Put back into the equations, the "
        f"solution misses their right-hand side by {_power(proof.worst)} of its size; {_met(proof)}."
        f"{bound} {ARITHMETIC}"
    )


def _bound(proof: Residual) -> str:
    """What follows for what the reader wants: coefficients, or predictions."""
    bounds = () if proof.error_bounds is None else proof.error_bounds
    largest = _power(float(np.max(bounds, initial=0.0)))
    if proof.bounded == "‖ŵ − w‖":
        return f"It follows that the coefficients, all together, are within {largest} of the exact ones."
    if proof.bounded.startswith("|f̂(x) − f(x)|/‖φ(x)‖"):
        than = "those of exact kernel ridge regression on all rows" if "against" in proof.bounded else "the exact ones"
        return (
            f"It follows that all predictions, wherever they are made, are within {largest} of {than} (times √k(x, x), "
            "which is 1 for a Gaussian kernel)."
        )
    return f"It follows that {proof.bounded or 'the error'} is at most {largest}."
