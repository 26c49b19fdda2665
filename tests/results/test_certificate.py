"""What certificates say, number by number, and who is warned where."""

import json
import math
import re
import warnings

import numpy as np
import pytest
from mpmath import mp, mpf
from sklearn.exceptions import ConvergenceWarning

from gramian import PCA
from gramian.results import Optimum, Residual, SpectralCertificate
from gramian.results.certificate import caller_level


def spectral(values=(5.0, 3.0, 1.0), residuals=(1e-9, 4e-9, 2e-3), **changes):
    fields = {"norm": 7.0, "orthogonality": 3e-16, "tolerance": 1e-8, **changes}
    return SpectralCertificate("krylov", "few components", 6, np.array(values), np.array(residuals), **fields)


def residual(residuals=(1e-12, 3e-11), **changes):
    return Residual("cg", "large", 4, 17, np.array(residuals), **{"tolerance": 1e-10, **changes})


def optimum(gradient=2e-5, **changes):
    return Optimum("EM", "missing", 9, 8, np.array([9.0, 8.5, 5.25]), gradient, **{"tolerance": 1e-4, **changes})


@pytest.mark.parametrize("make", [spectral, residual, optimum])
def test_the_tolerance_is_met_by_equality_and_never_by_nan(make):
    worst = make().worst
    assert make(tolerance=worst).converged
    assert not make(tolerance=np.nextafter(worst, 0)).converged
    assert not make(tolerance=math.nan).converged


@pytest.mark.parametrize("make", [spectral, residual])
def test_one_unmet_residual_among_several_is_enough(make):
    for place in range(3):
        rho = np.full(3, 1e-12)
        rho[place] = 1.0
        assert not make(residuals=rho, **({"values": np.ones(3)} if make is spectral else {})).converged
        rho[place] = np.nan
        assert not make(residuals=rho, **({"values": np.ones(3)} if make is spectral else {})).converged


@pytest.mark.parametrize("make", [spectral, residual])
def test_rounding_that_is_not_known_is_not_met(make):
    assert not make(residuals=np.zeros(3), rounding=math.nan, tolerance=1.0).converged


@pytest.mark.parametrize(("judged", "worst"), [(None, 2e-3), (3, 2e-3), (2, 4e-9), (1, 1e-9), (0, 0.0)])
def test_worst_is_the_largest_residual_judged(judged, worst):
    assert spectral(judged=judged).worst == worst
    assert spectral(judged=judged, rounding=1e-9).worst == max(worst, 1e-9)
    assert spectral(judged=judged, rounding=0.5).worst == 0.5


def test_worst_of_equations_counts_rounding():
    assert residual().worst == 3e-11
    assert residual(rounding=1e-3).worst == 1e-3
    assert residual(residuals=()).worst == 0.0
    assert optimum(0.25).worst == 0.25


def test_what_is_not_said_has_no_effect():
    """Without a divisor eigenvalues are σ², without rounding errors nothing is added, and no matrix is indefinite."""
    plain = spectral()
    assert (plain.divisor, plain.rounding, plain.judged) == (1.0, 0.0, None)
    assert (residual().rounding, residual().indefinite, residual().condition) == (0.0, False, None)
    assert (optimum().determined, optimum().has_maximum) == (True, True)
    assert residual(residuals=(-0.0,)).worst == 0.0


@pytest.mark.parametrize("rounding", [0.0, 1e-9, 0.3])
@pytest.mark.parametrize("divisor", [1.0, 149.0])
def test_bounds_are_those_of_the_formula(rounding, divisor):
    """‖A‖(√(Σ ρ²/2) + rounding), the sum over the first i, and δ(2σ + δ)/divisor, in 40 digits."""
    c = spectral(rounding=rounding, divisor=divisor)
    mp.dps = 40
    total = mpf(0)
    for sigma, rho, value, eigenvalue in zip(c.values, c.residuals, c.value_bounds, c.eigenvalue_bounds, strict=True):
        total += mpf(float(rho)) ** 2 / 2
        delta = mpf(7) * (mp.sqrt(total) + mpf(rounding))
        assert value == pytest.approx(float(delta), rel=1e-14)
        assert eigenvalue == pytest.approx(float(delta * (2 * mpf(float(sigma)) + delta) / mpf(divisor)), rel=1e-14)


def test_value_bounds_hold_the_change_that_a_residual_allows_and_half_of_them_does_not():
    """A perturbation of the largest singular pair whose residual is attained: the bound is sharp up to √2."""
    A, sigma = np.diag([2.0, 1.0]), 2.0 - 1e-3
    u = v = np.array([1.0, 0.0])
    rho = np.hypot(np.linalg.norm(A @ v - sigma * u), np.linalg.norm(A.T @ u - sigma * v)) / 2.0
    bound = spectral([sigma], [rho], norm=2.0).value_bounds[0]
    assert abs(2.0 - sigma) <= bound * (1 + 1e-12)
    assert abs(2.0 - sigma) > 0.999 * bound


def test_bounds_of_huge_values_do_not_warn():
    assert spectral([1e200], [1e-9], norm=1e200).eigenvalue_bounds[0] == np.inf
    assert spectral([1e-200], [1e-9], norm=1e-200).eigenvalue_bounds[0] >= 0.0


@pytest.mark.parametrize("make", [spectral, residual, optimum])
def test_as_dict_is_json_and_says_what_the_fields_say(make):
    c = make(notes=("one", "two"), device="cuda:0", precision="float32 sums")
    found = json.loads(json.dumps(c.as_dict()))
    assert found["converged"] is c.converged
    assert found["notes"] == ["one", "two"]
    assert [found[name] for name in ("passes", "device", "precision", "tolerance")] == [
        c.passes, "cuda:0", "float32 sums", c.tolerance,
    ]  # fmt: skip


def test_as_dict_of_a_spectrum_holds_the_bounds():
    c = spectral(judged=2)
    found = c.as_dict()
    assert found["value_bounds"] == c.value_bounds.tolist()
    assert found["eigenvalue_bounds"] == c.eigenvalue_bounds.tolist()
    assert (found["judged"], spectral().as_dict()["judged"]) == (2, 3)


def rows(certificate):
    return dict(certificate.summary())


@pytest.mark.parametrize("make", [spectral, residual, optimum])
def test_the_summary_holds_the_common_numbers(make):
    c = make(notes=("a note",), precision="float32")
    found = rows(c)
    assert (found["method"], found["why"], found["passes over the data"]) == (c.method, c.reason, str(c.passes))
    assert (found["note"], found["precision"]) == ("a note", "float32")
    assert "precision" not in rows(make())
    text = repr(c)
    assert all(f"  {name} " in text and value in text for name, value in found.items())
    starts = {line.index(value) for line, value in zip(text.splitlines()[1:], found.values(), strict=True)}
    assert len(starts) == 1  # one column
    assert text.startswith("Certificate: converged") is c.converged


def test_the_summary_of_a_spectrum():
    found = rows(spectral())
    assert found["components"] == "3"
    assert found["largest residual"].startswith("2.0e-03 (tolerance 1.0e-08 NOT met")
    assert found["singular values within"] == f"{7 * 2e-3 / math.sqrt(2):.1e}"
    assert found["orthogonality |VᵀV − I|"] == "3.0e-16"
    assert rows(spectral(judged=0))["singular values within"] == "0.0e+00"
    some = rows(spectral(judged=2))
    assert some["components"].startswith("3")
    assert "2" in some["components"][1:]
    assert some["largest residual"].startswith("4.0e-09 (tolerance 1.0e-08 met")
    assert some["singular values within"] == f"{7 * 4e-9 / math.sqrt(2):.1e}"


def test_the_summary_of_equations():
    found = rows(residual(condition=2.5e7, error_bounds=np.array([1e-6, 3e-6]), bounded="‖ŵ − w‖"))
    assert (found["iterations"], found["right-hand sides"]) == ("17", "2")
    assert found["largest residual"].startswith("3.0e-11")
    assert found["condition number, about"] == "2.5e+07"
    assert found["‖ŵ − w‖"] == "at most 3.0e-06"
    assert rows(residual(error_bounds=np.empty(0)))["error"] == "at most 0.0e+00"
    assert set(rows(residual())) == {
        "method", "why", "passes over the data", "iterations", "right-hand sides", "largest residual",
    }  # fmt: skip


def test_the_summary_of_an_optimum():
    found = rows(optimum())
    assert (found["iterations"], found["objective"]) == ("8", "5.25")
    assert found["gradient"].startswith("2.0e-05")
    assert rows(optimum().with_(objective=np.empty(0)))["objective"] == "none"


@pytest.mark.parametrize("good", [True, False])
def test_notebooks_show_the_same_rows_escaped(good):
    c = residual((1e-12 if good else 1.0,), notes=("<b> & more",))
    page = c._repr_html_()
    assert ("Certificate: converged" in page) is good
    assert ("#1b7837" in page) is good
    cells = re.findall(r"<t[hd] style='text-align:left'>(.*?)</t[hd]>", page)
    assert len(cells) == 2 * len(c.summary())
    assert "&lt;b&gt; &amp; more" in cells


def numbers(text):
    return re.findall(r"\d[\d.]*(?:e[+-]\d+)?", text)


@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        (spectral(), ["1", "3", "1.0e-08", "2.0e-03", "200000.0", "6"]),
        (spectral(residuals=(1.0, 2.0, 1e-9)), ["2", "3", "1.0e-08", "2.0e+00", "200000000.0", "6"]),
        (spectral(rounding=4e-8, judged=2), ["1.0e-08", "4.0e-08", "4.0", "6"]),
        (spectral(residuals=(1e-8, 2e-8, 1e-9)), ["1", "3", "1.0e-08", "2.0e-08", "2.0", "6"]),
        (residual((1e-10, 2e-10)), ["1", "2", "1.0e-10", "2.0e-10", "2.0", "17"]),
        (residual((1e-12, 2e-10)), ["1", "2", "1.0e-10", "2.0e-10", "2.0", "17"]),
        (residual((1e-12, 2e-12), rounding=5e-10), ["1.0e-10", "5.0e-10", "5.0", "17"]),
        (optimum(3e-3), ["3.0e-03", "8", "1.0e-04"]),
    ],
)  # fmt: skip
def test_the_warning_holds_the_shortfall_and_the_remedy(certificate, said):
    with pytest.warns(ConvergenceWarning) as caught:
        certificate.warn_unless_converged("Do more.")
    (warning,) = caught
    assert numbers(str(warning.message)) == said
    assert str(warning.message).startswith(certificate.method)
    assert str(warning.message).endswith("Do more.")
    assert warning.filename == __file__


def test_an_error_that_is_not_proved_is_not_converged():
    c = residual(proved=False, error_bounds=np.array([1.0, 3.0]), bounded="‖ŵ − w‖")
    assert not c.converged
    assert rows(c)["largest residual"].endswith("1.0e-10 met)")
    assert "not proved" in rows(c)["error"]
    with pytest.warns(ConvergenceWarning) as caught:
        c.warn_unless_converged("Do more.")
    assert numbers(str(caught[0].message)) == ["1.0e-10", "3.0e+00"]
    assert "NOT" not in rows(residual(tolerance=3e-11))["largest residual"]  # met by equality


@pytest.mark.parametrize("certificate", [spectral(judged=2), residual(), optimum()])
def test_nobody_is_warned_of_what_was_met(certificate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate.warn_unless_converged("Do more.")


def test_another_kind_of_warning():
    with pytest.warns(UserWarning, match="EM"):
        optimum(1.0).warn_unless_converged("Do more.", UserWarning)


def test_warnings_name_the_line_of_the_user():
    X = np.random.default_rng(0).normal(size=(60, 20))
    with pytest.warns(ConvergenceWarning) as caught:
        PCA(3, svd_solver="randomized", iterated_power=0, tol=1e-14).fit(X)
    assert {warning.filename for warning in caught} == {__file__}
    assert caller_level() == 1


def test_a_copy_changes_what_was_asked_alone():
    c = spectral()
    other = c.with_(method="dense", notes=("x",))
    assert (other.method, other.notes, other.passes) == ("dense", ("x",), c.passes)
    assert c.method == "krylov"
