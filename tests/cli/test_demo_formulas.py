"""Formulas and listings of the gallery: well-formed, readable as text, and refused where they are not understood."""

import ast
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.cli.story import contents, likelihoods
from gramian.cli.story.code import coloured, listing
from gramian.cli.story.formula import formula
from gramian.cli.story.page import APART
from gramian.cli.story.words import certified
from gramian.results import Optimum, Residual, SpectralCertificate

PLATES = [plate for chapter in contents.CHAPTERS for plate in chapter.plates]
PARTS = [part for plate in PLATES for part in plate.equation.split(APART)]
CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "mover": 2, "munder": 2, "msubsup": 3, "munderover": 3, "msqrt": 1}


@pytest.mark.parametrize("tex", PARTS)
def test_formulas_are_well_formed(tex):
    root = ET.fromstring(formula(tex).mathml)
    assert root.tag == "math"
    assert root.get("alttext") == formula(tex).text
    assert [node.tag for node in root.iter() if len(node) != CHILDREN.get(node.tag, len(node))] == []
    assert not set("\\{}^_") & set("".join(root.itertext()))


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"z_{ij} = (x_i-\bar{x})^\top v_j", "z_(ij) = (x_i − x\u0304)ᵀv_j"),
        (r"\exp(-\gamma\|x-x'\|^2)", "exp (−γ‖x − x′‖²)"),
        (r"\max_{V^\top V = I} \|X V\|^2", "max_(VᵀV = I) ‖XV‖²"),
        (r"\frac{e_i}{1-H_{ii}}", "(e_i)/(1 − H_(ii))"),
        (r"\Lambda^{-1/2} V", "Λ^(−1/2)V"),
        (r"2\sqrt{\lambda}", "2√λ"),
        (r"P(x \in b \mid \mu_k)", "P(x ∈ b | μ_k)"),
    ],
)
def test_formulas_as_text(tex, text):
    assert formula(tex).text == text


@pytest.mark.parametrize("tex", ["{x", "x}", r"\frac{1}", r"\unknown", "x_"])
def test_what_is_no_formula_is_refused(tex):
    with pytest.raises(ValueError, match="formula"):
        formula(tex)


@given(st.text(alphabet="ab1+=-<&>\"'()|,_^{} ", max_size=12))
def test_whatever_is_written_is_escaped_or_refused(tex):
    try:
        made = formula(tex)
    except ValueError:
        return
    assert ET.fromstring(made.mathml).get("alttext") == made.text


def test_a_listing_has_the_imports_and_constants_it_needs_and_no_others():
    code = listing(likelihoods.crabs)
    names = [node.names[0].name for node in ast.parse(code).body if isinstance(node, ast.ImportFrom)]
    assert names == ["GaussianMixture", "BinnedMixtureDisplay"]
    assert "fit(" not in code
    space = {}
    exec(code.partition("\n\ndef ")[0], space)
    assert space["COUNTS"] == likelihoods.COUNTS
    assert np.array_equal(space["EDGES"], likelihoods.EDGES)


def test_a_listing_shows_the_call_that_was_made():
    code = listing(PLATES[-1].draw, {"people": 400})
    assert "picture, model, alignment = europe(people=400)\n" in code


def test_a_function_that_returns_no_picture_is_refused():
    with pytest.raises(TypeError, match="returning a picture"):
        listing(test_a_listing_shows_the_call_that_was_made)


@pytest.mark.parametrize("plate", PLATES, ids=lambda plate: plate.key)
def test_colours_change_no_letter(plate):
    code = listing(plate.draw)
    root = ET.fromstring(f"<pre>{coloured(code)}</pre>")
    assert "".join(root.itertext()).rstrip("\n") == code.rstrip("\n")
    assert {node.get("class") for node in root} <= set("ksnc")


@pytest.mark.parametrize(
    ("proof", "sentence"),
    [
        (
            SpectralCertificate("power", "", 1, np.array([2.0]), np.array([1e-8]), 2.0, 0.0, tolerance=1e-6),
            "The component, put back into the data, misses being one by at most 1·10⁻⁸ of the largest singular value "
            "(1·10⁻⁶ was asked for).",
        ),
        (
            Optimum("EM", "", 1, 1, np.array([1.0]), 2e-3, tolerance=1e-3),
            "One more step would move the estimates by 0.002 of their standard errors "
            "(0.001 was asked for and NOT met).",
        ),
        (
            Residual(
                "CG", "", 1, 1, np.array([1e-9]), tolerance=1e-8, error_bounds=np.array([3e-7]), bounded="‖ŵ − w‖"
            ),
            "Put back into its equations, the solution misses them by 1·10⁻⁹ of their size (1·10⁻⁸ was asked for), so "
            "the coefficients, all together, are within 3·10⁻⁷ of the exact ones.",
        ),
    ],
)
def test_certificates_in_a_sentence(proof, sentence):
    assert certified(proof) == sentence
