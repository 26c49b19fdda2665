r"""Formulas of the page: a little TeX becomes MathML, which browsers draw without scripts, and plain text beside it."""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

__all__ = ["Formula", "formula"]

NAMES = {
    "alpha": "α", "beta": "β", "gamma": "γ", "lambda": "λ", "Lambda": "Λ", "mu": "μ", "phi": "φ", "pi": "π", "rho": "ρ",
    "sigma": "σ", "theta": "θ", "Sigma": "Σ", "top": "T", "infty": "∞",
}  # fmt: skip
OPERATORS = {
    "le": "≤", "ge": "≥", "in": "∈", "to": "→", "cdot": "·", "approx": "≈", "sim": "∼", "|": "‖", "pm": "±",
}  # fmt: skip
WORDS = ("df", "diag", "exp", "ln")
LIMITS = ("sum", "max", "min")
ACCENTS = {"hat": ("ˆ", "\u0302"), "bar": ("¯", "\u0304"), "tilde": ("˜", "\u0303")}
SPACED = "=≤≥∈→+−≈∼±<>"
FENCES = "|‖()"
RAISED = str.maketrans("0123456789-−+n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁺ⁿ")
TOKEN = re.compile(r"\\text\{[^}]*\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S")


class Formula(NamedTuple):
    """A formula as MathML and as a line of text."""

    mathml: str
    text: str


def formula(tex: str) -> Formula:
    r"""Translate a formula: letters, numbers, ``_``, ``^``, ``\frac``, ``\sqrt``, accents, Greek, sums and limits.

    Examples
    --------
    >>> from gramian.cli.story.formula import formula
    >>> formula(r"S v_j = \lambda_j v_j").text
    'Sv_j = λ_j v_j'
    >>> formula(r"\frac{1}{n}\sum_i x_i^2").text
    '1/n Σ_i x_i²'
    """
    tokens = TOKEN.findall(tex)[::-1]
    parts = _sequence(tokens)
    if tokens:
        raise ValueError(f"The formula {tex!r} closes a brace that it did not open.")
    text = _tidy(_text(parts))
    row = "".join(part.mathml for part in parts)
    return Formula(f'<math display="block" alttext="{escape(text)}"><mrow>{row}</mrow></math>', text)


def _tidy(text: str) -> str:
    """One space at most, and none inside brackets."""
    return re.sub(r" ([,)])", r"\1", " ".join(text.split())).replace("( ", "(")


def _text(parts: list[Formula]) -> str:
    """Parts one after the other; a letter that follows an index stands apart from it."""
    text = ""
    for part in parts:
        apart = re.search(r"_(\w|\([^()]*\))$", text) and re.match(r"\w|√", part.text)
        text += (" " if apart else "") + part.text
    return text


def _sequence(tokens: list[str]) -> list[Formula]:
    """Translate up to a closing brace or the end; tokens are taken from the end of the list."""
    parts: list[Formula] = []
    while tokens and tokens[-1] != "}":
        if tokens[-1] == "-" and (not parts or parts[-1].text == "("):  # a sign, not a difference
            parts.append(Formula('<mo form="prefix">−</mo>', "−"))
            tokens.pop()
        else:
            parts.append(_scripted(tokens))
    return parts


def _group(tokens: list[str]) -> Formula:
    """One token, or what stands in braces."""
    if not tokens:
        raise ValueError("A formula ends where something is to follow.")
    if tokens[-1] != "{":
        return _atom(tokens)
    tokens.pop()
    parts = _sequence(tokens)
    if not tokens:
        raise ValueError("A formula leaves a brace open.")
    tokens.pop()
    return Formula(f"<mrow>{''.join(part.mathml for part in parts)}</mrow>", _tidy(_text(parts)))


def _scripted(tokens: list[str]) -> Formula:
    """Something with what stands below and above it."""
    limits = tokens[-1].removeprefix("\\") in LIMITS
    base = _group(tokens)
    below: Formula | None = None
    above: Formula | None = None
    while tokens and tokens[-1] in "_^'":
        mark = tokens.pop()
        if mark == "_":
            below = _group(tokens)
        elif mark == "^":
            above = _group(tokens)
        else:
            base = Formula(f'<mrow>{base.mathml}<mo lspace="0" rspace="0">′</mo></mrow>', f"{base.text}′")
    return _with_scripts(base, below, above, limits)


def _with_scripts(base: Formula, below: Formula | None, above: Formula | None, limits: bool) -> Formula:
    names = ("munder", "mover", "munderover") if limits else ("msub", "msup", "msubsup")
    scripts = ("" if below is None else _index(below.text)) + ("" if above is None else _power(above.text))
    word = base.text.endswith(" ") and bool(scripts)  # of a sum or a maximum: what follows stands apart
    text = f"{base.text.rstrip()}{scripts} " if word else base.text + scripts
    if below is not None and above is not None:
        return Formula(f"<{names[2]}>{base.mathml}{below.mathml}{above.mathml}</{names[2]}>", text)
    if below is not None:
        return Formula(f"<{names[0]}>{base.mathml}{below.mathml}</{names[0]}>", text)
    if above is not None:
        return Formula(f"<{names[1]}>{base.mathml}{above.mathml}</{names[1]}>", text)
    return base


def _index(text: str) -> str:
    return f"_{text}" if len(text) == 1 else f"_({text})"


def _power(text: str) -> str:
    if text == "T":
        return "ᵀ"
    raised = text.replace(" ", "").translate(RAISED)
    return raised if all(letter in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ" for letter in raised) else f"^{_in_line(text)}"


def _atom(tokens: list[str]) -> Formula:
    token = tokens.pop()
    if token.startswith("\\text{"):
        inner = token[6:-1]
        return Formula(f"<mtext>{escape(inner)}</mtext>", inner)
    if token.startswith("\\"):
        return _command(token[1:], tokens)
    if token[0].isdigit():
        return Formula(f"<mn>{token}</mn>", token)
    if token.isalpha():
        return Formula(f"<mi>{token}</mi>", token)
    return _operator("−" if token == "-" else token)


def _operator(sign: str) -> Formula:
    shape = ' stretchy="false" lspace="0" rspace="0"' if sign in FENCES else ""
    text = f" {sign} " if sign in SPACED else f"{sign} " if sign in ",;" else sign
    return Formula(f"<mo{shape}>{escape(sign)}</mo>", text)


def _command(name: str, tokens: list[str]) -> Formula:
    if name == "frac":
        over, under = _group(tokens), _group(tokens)
        return Formula(f"<mfrac>{over.mathml}{under.mathml}</mfrac>", f"{_in_line(over.text)}/{_in_line(under.text)} ")
    if name == "sqrt":
        inner = _group(tokens)
        return Formula(f"<msqrt>{inner.mathml}</msqrt>", f"√{_in_line(inner.text)}")
    if name in ACCENTS:
        (sign, mark), inner = ACCENTS[name], _group(tokens)
        accented = f'<mover accent="true">{inner.mathml}<mo stretchy="false">{sign}</mo></mover>'
        return Formula(accented, inner.text + mark)
    if name == "sum":
        return Formula('<mo class="big" largeop="false" movablelimits="false">∑</mo>', " Σ ")
    return _named(name)


def _named(name: str) -> Formula:
    if name in NAMES:
        sign = NAMES[name]
        upright = ' mathvariant="normal"' if sign in "TΣΛ∞" else ""
        return Formula(f"<mi{upright}>{sign}</mi>", sign)
    if name in LIMITS:
        return Formula(f'<mo movablelimits="false">{name}</mo>', f" {name} ")
    if name in WORDS:
        return Formula(f'<mrow><mi>{name}</mi><mspace width="0.16em"/></mrow>', f" {name} ")
    if name == "mid":
        return Formula('<mo lspace="0.25em" rspace="0.25em" stretchy="false">|</mo>', " | ")
    if name in OPERATORS:
        return _operator(OPERATORS[name])
    raise ValueError(f"\\{name} is not among the commands that formulas know.")


def _in_line(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"
