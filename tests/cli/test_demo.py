"""The demo: its numbers agree with those in print and its page stands alone."""

import json
import re

import pytest
from click.testing import CliRunner

from gramian.cli import main
from gramian.cli.demo import FILES, digit_accuracy, published_numbers
from gramian.cli.kernel_demo import denoised_digits, published_projection
from gramian.cli.mixture_demo import crab_numbers, crabs
from gramian.cli.page import Number
from gramian.cli.regression_demo import regressions


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    return out, CliRunner().invoke(main, ["demo", "--out", str(out)])


def test_every_published_number_agrees():
    numbers = published_numbers()
    assert len(numbers) == 8
    assert [number for number in numbers if not number.agrees] == []


def test_a_number_that_differs_in_one_digit_does_not_agree():
    assert Number("x", "0.12345678", "0.12345679").verdict == "NO"


def test_demo_writes_its_files_and_says_which_to_open(demo):
    out, result = demo
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert result.output.rstrip().splitlines()[-1] == f"Open {out / 'index.html'} in a browser."


def test_demo_prints_certificates_and_the_comparison(demo):
    output = demo[1].output
    assert output.count("Certificate: converged") == 2
    assert "2.93035378" in output
    assert "NO" not in output


def test_page_stands_alone(demo):
    out, _ = demo
    page = (out / "index.html").read_text("utf-8")
    pictures = re.findall(r'<img src="([^"]+)" alt="[^"]+">', page)
    assert sorted(pictures) == sorted(name for name in FILES if name.endswith(".png"))
    assert all((out / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    assert not re.search(r"https?:|<script|\$[a-z]", page)
    assert "2.93035378" in page


def test_certificates_are_written(demo):
    certificates = json.loads((demo[0] / "certificates.json").read_text())
    wanted = ("iris", "digits", "denoised", "ridge", "kernel_ridge", "crabs")
    assert {name: item["converged"] for name, item in certificates.items()} == dict.fromkeys(wanted, True)


def test_the_published_projection_agrees():
    assert published_projection().agrees


def test_the_crabs_agree():
    numbers = crab_numbers(crabs())
    assert len(numbers) == 6
    assert [number for number in numbers if not number.agrees] == []


def test_the_regressions_find_the_noise():
    fitted = regressions()
    assert 0.08 < fitted.kernel.noise_variance_**0.5 < 0.12
    assert 0.5 < fitted.ridge.alpha_ < 50


def test_kernel_pca_cleans_digits_better_than_the_best_linear_pca():
    errors = denoised_digits().errors
    kernel = errors.pop("kernel PCA, 32")
    assert kernel < 0.8 * min(error for name, error in errors.items() if name != "original")


def test_pca_keeps_what_the_classifier_needs():
    reduced, full = digit_accuracy()
    assert reduced > 0.94
    assert reduced > full - 0.03


def test_demo_does_not_overwrite_unasked(demo):
    out, _ = demo
    assert CliRunner().invoke(main, ["demo", "--out", str(out)]).exit_code == 2
