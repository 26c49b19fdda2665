"""The HTML of blocks and the words about certificates, on values chosen at the edges where they change."""

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gramian.display.report.blocks import (
    ARITHMETIC,
    CertificateBlock,
    DataTable,
    Facts,
    Figure,
    QualityBlock,
    Row,
    Text,
    arithmetic_badge,
    explain_certificate,
    format_chance,
    format_value,
    is_missing,
    versions,
)
from gramian.results import FitLevel, Optimum, Quality, Residual, SpectralCertificate

PAGE: Any = SimpleNamespace(plot=lambda figure, label: f"[{figure}|{label}]")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1e-4, "0.0001"), (9.9e-5, "9.90e-05"), (999999.0, "1e+06"), (1e6, "1.00e+06"), (-2e6, "-2.00e+06"),
        (123456.7, "1.2346e+05"), (12345.6, "12346"),
        (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "–"), (None, "–"),
        (True, "yes"), (False, "no"), (3, "3"), (10**7, "10000000"), ("x", "x"),
    ],
)  # fmt: skip
def test_values_for_readers(value: Any, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0 %"), (0.00999, "1 %"), (0.01, "1.0 %"), (0.000123, "0.012 %"), (-0.005, "-0.5 %"), (1.0, "100.0 %")],
)
def test_shares_for_readers(value: float, text: str) -> None:
    assert format_value(value, percent=True) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(1.0, "1"), (0.0412, "0.041"), (1e-300, "1e-300"), (9e-301, "< 1e-300"), (0.0, "< 1e-300"), (math.nan, "–")],
)
def test_chances_for_readers(p: float, text: str) -> None:
    assert format_chance(p) == text


def test_what_is_missing() -> None:
    assert [is_missing(value) for value in (None, math.nan, 0.0, math.inf, "nan", 0)] == [True, True, *[False] * 4]


def cells(text: str) -> list[tuple[str, str]]:
    """Attributes and content of the cells of a table's body."""
    return re.findall(r"<t[dh]([^>]*)>(.*?)</t[dh]>", text.split("<tbody>")[1])


def test_the_cells_of_a_table() -> None:
    columns = {
        "name": ["a", "b", "=c"],
        "size": [2.0, -4.0, math.nan],
        "share": [0.25, 0.5, 1.0],
        "p": [0.0, 0.5, 1],
        "flag": [True, False, True],
        "text": ["x", "y", "z"],
    }
    table = DataTable("n<", "C&", columns, percent=("share",), shaded=("size", "flag"), chances=("p",), note="left")
    text = table.html(PAGE)
    found = [cells(text)[6 * i : 6 * i + 6] for i in range(3)]
    assert [row[0] for row in found] == [(' scope="row"', f"<bdi>{t}</bdi>") for t in ("a", "b", "&#x27;=c")]
    # as strong as |value| over the largest, of 0.32; blue above 0 and red below
    assert found[0][1] == (' class="num" data-v="2.0" style="background:rgba(51,34,136,0.16)"', "2")
    assert found[1][1] == (' class="num" data-v="-4.0" style="background:rgba(204,102,119,0.32)"', "-4")
    assert found[2][1] == (' class="num" data-v=""', "–")
    assert [row[2][1] for row in found] == ["25.0 %", "50.0 %", "100.0 %"]
    assert [row[3][1] for row in found] == ["&lt; 1e-300", "0.5", "1"]
    assert found[0][4] == (' class="num" data-v="yes"', "yes")  # a truth value has no size
    assert found[0][5] == ("", "<bdi>x</bdi>")
    heads = re.findall(r'<th scope="col"([^>]*)>', text)
    assert ["num" in head for head in heads] == [False, True, True, True, True, False]
    assert 'data-file="n&lt;.csv"' in text
    assert "<h3>C&amp;</h3>" in text
    assert '<p class="note">left</p>' in text
    zero = DataTable("n", "c", {"a": [0.0, -0.0]}, shaded=("a",)).html(PAGE)
    assert "style" not in zero
    nought = DataTable("n", "c", {"a": [0.0, 2.0]}, shaded=("a",)).html(PAGE)
    assert "rgba(51,34,136,0.00)" in nought
    none = DataTable("n", "c", {"a": []}, shaded=("a",)).html(PAGE)
    assert cells(none) == []
    mixed = DataTable("n", "c", {"a": [1.0, "x"]}).html(PAGE)
    assert 'class="num" aria' not in mixed
    first = DataTable("n", "c", {"a": ["x"], "b": ["y"]}).html(PAGE)
    assert cells(first) == [(' scope="row"', "<bdi>x</bdi>"), ("", "<bdi>y</bdi>")]


def test_texts_facts_rows_and_pictures() -> None:
    assert Text("").html(PAGE) == ""
    assert Text(["a", "b<"], "k").html(PAGE) == '<p class="k">a</p><p class="k">b&lt;</p>'
    assert Facts([("a", "<1"), ("b", "<2")], code=("b",)).html(PAGE) == (
        '<dl class="facts"><div><dt>a</dt><dd><bdi>&lt;1</bdi></dd></div>'
        "<div><dt>b</dt><dd><code>&lt;2</code></dd></div></dl>"
    )
    assert Row([Text("a"), Text("b")], "many").html(PAGE) == '<div class="row many"><p>a</p><p>b</p></div>'
    picture = Figure("T", lambda: "drawn", "N").html(PAGE)
    assert "[drawn|T. N]" in picture
    assert "<h3>T</h3><p>N</p>" in picture
    block = QualityBlock(Quality("r2", "R²", -0.1, "no better", FitLevel.POOR))
    assert '<p class="badge fit poor">Fit: <bdi>R²</bdi>, ' in block.badge
    assert block.badge in block.html(PAGE)


def test_badges() -> None:
    met, unmet = arithmetic_badge(True, 1e-6), arithmetic_badge(False, 1e-6)
    assert ('class="badge met"' in met, "✓" in met, "✗" in met) == (True, True, False)
    assert ('class="badge unmet"' in unmet, "✓" in unmet, "✗" in unmet) == (True, False, True)


def residual(**given: Any) -> Residual:
    fields = {"residuals": np.array([1e-9, 3e-9]), "tolerance": 1e-8, **given}
    return Residual("Cholesky", "asked for", fields.pop("passes", 2), fields.pop("iterations", 0), **fields)


def test_words_about_a_residual() -> None:
    text = explain_certificate(residual())
    assert text == (
        "The equations were solved by Cholesky in 2 passes over the data. Put back into the equations, the solution "
        f"misses their right-hand side by 3.0·10⁻⁹ of its size; 1.0·10⁻⁸ was asked for, so the tolerance is met. "
        f"{ARITHMETIC}"
    )
    assert "in 1 pass over" in explain_certificate(residual(passes=1))
    assert "is NOT met, and the numbers on this page are to be used with care" in explain_certificate(
        residual(tolerance=1e-10)
    )
    unproved = explain_certificate(residual(proved=False))
    assert "met, but the error of the answer is not proved to be as small, and the numbers" in unproved
    exact = explain_certificate(residual(tolerance=3e-9))  # as large as the tolerance is met
    assert "tolerance is met." in exact
    bounds = np.array([2e-5, 0.5])
    for bounded, words in (
        ("‖ŵ − w‖", "the coefficients, all together, are within 0.5 of the exact ones"),
        ("|f̂(x) − f(x)|/‖φ(x)‖", "all predictions, wherever they are made, are within 0.5 of the exact ones"),
        ("other", "other is at most 0.5"),
        ("", "the error is at most 0.5"),
    ):
        assert f"It follows that {words}" in explain_certificate(residual(error_bounds=bounds, bounded=bounded))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1e-3, "0.001"),
        (9.94e-4, "9.9·10⁻⁴"),
        (9999.0, "1e+04"),
        (1e4, "1.0·10⁴"),
        (0.0, "0"),
        (math.inf, "inf"),
        (0.25, "0.25"),
    ],
)
def test_powers_as_people_write_them(size: float, text: str) -> None:
    assert f"right-hand side by {text} of" in explain_certificate(residual(residuals=np.array([size])))


def spectral(values: Any, *, residuals: Any = None, **given: Any) -> SpectralCertificate:
    values = np.asarray(values, dtype=float)
    residuals = np.full(len(values), 1e-9) if residuals is None else np.asarray(residuals)
    norm = given.pop("norm", float(values[0]) if len(values) else 0.0)
    return SpectralCertificate("Krylov", "auto", 3, values, residuals, norm, 0.0, tolerance=1e-6, **given)


def test_words_about_a_spectrum() -> None:
    one, two = explain_certificate(spectral([2.0])), explain_certificate(spectral([2.0, 1.0]))
    assert one.startswith("1 component was computed by Krylov in 3 passes over the data, and each")
    assert two.startswith("2 components were computed")
    assert (
        "The largest miss is 1.0·10⁻⁹ of the largest singular value; 1.0·10⁻⁶ was asked for, so the tolerance is met."
        in two
    )
    assert "that every singular value is within" in two
    bound = float(np.max(spectral([2.0, 1.0]).value_bounds))
    digits = math.floor(-math.log10(bound / 2.0))
    assert f"which is {digits} correct digits of the largest." in two
    assert "overlooked" not in two
    assert two.endswith(ARITHMETIC)
    likely = explain_certificate(spectral([2.0, 1.0], overlooked=1e-24))
    assert "the chance that one of twice the size of the smallest was overlooked is below 1.0·10⁻²⁴." in likely
    assert "15 or more correct digits" in explain_certificate(spectral([2.0], residuals=[0.0]))
    assert explain_certificate(spectral([])) == f"No component was computed (Krylov). {ARITHMETIC}"
    rough = explain_certificate(spectral([2.0], residuals=[3.0]))
    assert "which is 0 correct digits" in rough
    assert "NOT met" in rough
    zero = explain_certificate(spectral([0.0], residuals=[0.0], norm=0.0))
    assert "within 0 of an exact one, which is 15 or more" in zero
    some = explain_certificate(spectral([3.0, 2.0, 1.0], residuals=[1e-9, 1e-9, 0.5], judged=2))
    assert "each of the first 2 singular values, those that stand out of the noise, is within" in some
    assert "every" not in some.split("It follows")[1].split("is within")[0]
    assert "every singular value" in explain_certificate(spectral([3.0, 2.0], judged=2))
    none = explain_certificate(spectral([3.0, 2.0], judged=0))
    assert none == f"2 components were computed by Krylov; none of them stands out of the noise. {ARITHMETIC}"


def test_words_about_an_optimum() -> None:
    def words(iterations: int, gradient: float) -> str:
        return explain_certificate(
            Optimum("EM", "asked for", 4, iterations, np.array([2.0, 1.0]), gradient, tolerance=1e-4)
        )

    assert words(1, 1e-5).startswith("The fit was improved step by step (EM): 1 step, 4 passes over the data. Where")
    assert "(EM): 2 steps, 4 passes" in words(2, 1e-5)
    closed = words(0, 1e-5)
    assert closed.startswith(
        "The best fit was found by EM in 4 passes over the data. Where it ended, one more step would"
    )
    assert "maxima" not in closed
    assert "Where there are several maxima" in words(1, 1e-5)
    gain = "What is left to gain is far smaller"
    assert "by 1.0·10⁻⁵ of their own standard errors; 1.0·10⁻⁴ was asked for, so the tolerance is met." in words(
        1, 1e-5
    )
    assert gain in words(1, 1e-5)
    assert gain not in words(1, 1e-3)
    assert "NOT met" in words(1, 1e-3)


def test_a_certificate_on_the_page() -> None:
    for proof, kind in ((residual(), "met"), (residual(tolerance=1e-12), "unmet")):
        text = CertificateBlock(proof, "of <a>").html(PAGE)
        assert text.startswith(f'<div class="certificate {kind}"><h3><bdi>of &lt;a&gt;</bdi></h3>')
        assert all(f"<th scope='row'>{name}</th>" in text for name, _ in proof.summary())
        assert "<h3>" not in CertificateBlock(proof).html(PAGE)


def test_versions_are_those_that_run() -> None:
    found = versions()
    assert found["numpy"] == np.__version__
    assert next(iter(found)) == "Python"
