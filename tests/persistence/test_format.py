"""The file read by others: safetensors itself, and a reader written from the page that describes the format."""

import hashlib
import json
import os
import stat
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open

from gramian import PCA, KernelPCA, KernelRidgeClassifier, Ridge
from gramian.persistence import inspect, load, save
from gramian.persistence.encode import Encoder, ModelDecoder

HERE = Path(__file__).parent
X = np.random.default_rng(0).standard_normal((30, 4))


def parts(path):
    """Header, document and data of a file, by the description in docs/model-files.md alone."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    document = json.loads(header.pop("__metadata__")["gramian"])
    return header, document, raw[8 + length :]


def test_safetensors_reads_the_arrays_under_the_names_of_the_attributes(tmp_path):
    pca = PCA(2).fit(X)
    save(pca, tmp_path / "m")
    with safe_open(tmp_path / "m", framework="np") as file:
        assert set(file.metadata()) == {"gramian"}
        np.testing.assert_array_equal(file.get_tensor("components_"), pca.components_)
        np.testing.assert_array_equal(file.get_tensor("certificate_.residuals"), pca.certificate_.residuals)


def test_the_checksum_is_that_of_the_file_with_zeros_in_its_place(tmp_path):
    save(PCA(2).fit(X), tmp_path / "m", metadata={"sha256": "0" * 64})
    raw = (tmp_path / "m").read_bytes()
    digits = parts(tmp_path / "m")[1]["sha256"].encode()
    assert raw.count(digits) == 1
    assert hashlib.sha256(raw.replace(digits, b"0" * 64)).hexdigest().encode() == digits


def test_arrays_in_another_order_texts_and_sparse_matrices_are_as_described(tmp_path):
    names = np.array(["no", "größer", ""], dtype=object)
    model = KernelRidgeClassifier().fit(np.abs(X), names[np.arange(30) % 3])
    model.order_ = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    save(model, tmp_path / "m")
    header, document, data = parts(tmp_path / "m")
    state = document["model"]["state"]
    tensor = {name: data[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}
    said = state["order_"]
    stored = np.frombuffer(tensor[said["tensor"]]).reshape(header[said["tensor"]]["shape"])
    assert np.array_equal(stored, model.order_.transpose(said["axes"]))
    said = state["classes_"]
    ends = np.frombuffer(tensor[said["offsets"]], np.int64)
    read = [tensor[said["tensor"]][i:j].decode() for i, j in pairwise(ends)]
    assert read == model.classes_.tolist()
    assert (said["kind"], said["shape"]) == ("object", [3])


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save(Ridge().fit(X, X[:, 0]), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_of_format_1_is_read_by_every_version():
    # Written when the format was made: PCA(2, scale=True) of numpy's sin(0), sin(1), … in 6 rows and 3 columns.
    path = HERE / "pca_format_1.gramian"
    model = load(path)
    known = json.loads((HERE / "pca_format_1.json").read_text())
    assert inspect(path).metadata == {"data": "sines"}
    assert model.get_params()["scale"] is True
    for name, values in known["attributes"].items():
        np.testing.assert_array_equal(getattr(model, name), values)
    np.testing.assert_allclose(model.transform(np.sin(np.arange(18.0)).reshape(6, 3)), known["scores"], rtol=1e-12)


LETTERS = st.characters(exclude_categories=["Cs"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(LETTERS)
DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
    hnp.complex_number_dtypes(sizes=(64, 128), endianness="?"),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
)
# NumPy drops NUL at the end of a text, so that an array cannot hold what Hypothesis would draw
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5)
TEXTS = hnp.arrays("U5", hnp.array_shapes(min_dims=0, min_side=0, max_side=3), elements=WORDS)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
VALUES = st.recursive(
    SCALARS | ARRAYS | ARRAYS.map(np.transpose) | TEXTS | TEXTS.map(lambda a: a.astype(object)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(SCALARS.filter(lambda key: key == key), inner, max_size=3)
    ),
    max_leaves=6,
)


def alike(a, b):
    if isinstance(a, np.ndarray):
        same = a.tolist() == b.tolist() if a.dtype.kind in "OU" else a.tobytes() == b.tobytes()
        return same and (a.dtype, a.shape) == (b.dtype, b.shape) and (not a.flags.f_contiguous or b.flags.f_contiguous)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(alike, a.values(), b.values()))
    return type(a) is type(b) and repr(a) == repr(b)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_any_value_comes_back_as_it_was(value):
    encoder = Encoder("test")
    text = json.dumps(encoder.node(value), allow_nan=False)
    assert all(tensor.flags.c_contiguous for tensor in encoder.tensors.values())
    assert alike(value, ModelDecoder(encoder.tensors).value(json.loads(text)))


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "m"
    save(PCA(1).fit(X), path)
    before = path.read_bytes()

    def fails(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fails)
        with pytest.raises(OSError, match="disk"):
            save(PCA(2).fit(X), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    save(PCA(2).fit(X), path)
    assert load(path).n_components_ == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="there are no modes and few links on Windows")
def test_modes_and_links_are_the_usual_ones(tmp_path):
    path, link = tmp_path / "m", tmp_path / "link"
    link.symlink_to(path)
    save(PCA(1).fit(X), link)
    (tmp_path / "other").touch()
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_a_summary_says_what_is_there_and_reads_no_array(tmp_path, monkeypatch):
    model = KernelPCA(2, kernel="rbf", random_state=3).fit(X)
    save(model, tmp_path / "m", metadata={"rows": 30, "from": ["a", "b"]})
    monkeypatch.setattr("gramian.persistence.file.read_tensors", None)
    found = inspect(str(tmp_path / "m"))
    assert (found.kind, found.format, found.bytes) == ("KernelPCA", 1, (tmp_path / "m").stat().st_size)
    assert found.parameters == model.get_params()
    assert found.attributes["eigenvalues_"].shape == (2,)
    assert found.attributes["dual_coefficients_"].shape == model.dual_coefficients_.shape
    assert repr(found.attributes["X_fit_"]) == "float64 (30, 4)"
    assert found.attributes["n_features_in_"] == 4
    assert found.metadata == {"rows": 30, "from": ["a", "b"]}
    lines = repr(found).split("\n")
    assert lines[1] == "  KernelPCA(n_components=2, kernel='rbf', random_state=3)"
    assert "  certificate_        Certificate" in lines


def test_a_summary_follows_references(tmp_path):
    save(KernelRidgeClassifier().fit(X, X[:, 0] > 0), tmp_path / "m")
    found = inspect(tmp_path / "m")
    assert repr(found.attributes["X_fit_"]) == "float64 (30, 4)"
    assert repr(found.attributes["certificate_"]) == "Residual"
    assert repr(found.attributes["classes_"]) == "bool (2,)"
