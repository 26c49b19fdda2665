"""Files that are damaged, foreign, newer, or made to do harm: refused, with the reason, and without harm."""

import contextlib
import hashlib
import json
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from scipy import sparse

from gramian import PCA, GaussianMixture, KernelRidge, PolynomialMap, kernels
from gramian.persistence import ModelFile, ModelFileError, container, inspect, load, save
from gramian.persistence.encode import ModelDecoder

X = np.random.default_rng(0).standard_normal((12, 3))
ZEROS = "0" * 64
SPARSE = KernelRidge(kernel="rbf").fit(sparse.csr_array(np.abs(X)), X[:, 0])
TAGS = sorted(ModelDecoder({})._makers)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "m"
    save(PolynomialMap().fit(X), path)
    return path.read_bytes()


def split(raw):
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    return header, json.loads(header.pop("__metadata__")["gramian"]), raw[8 + length :]


def joined(header, document, data, text=None):
    """A file with a proper checksum, whatever is in it."""
    text = json.dumps({**document, "sha256": ZEROS}, separators=(",", ":")) if text is None else text
    head = json.dumps({"__metadata__": {"gramian": text}, **header}, separators=(",", ":")).encode()
    raw = len(head).to_bytes(8, "little") + head + data
    mark = b'\\"sha256\\":\\"'
    return raw.replace(mark + ZEROS.encode(), mark + hashlib.sha256(raw).hexdigest().encode(), 1)


@pytest.fixture
def forge(tmp_path):
    """Save a PCA, change what it declares, and write it with a proper checksum."""
    path = tmp_path / "forged"

    def make(change, model=None):
        save(PCA(2).fit(X) if model is None else model, path)
        header, document, data = split(path.read_bytes())
        document = {"sha256": ZEROS, **document}
        changed = change(header, document, data)
        data = data if changed is None else changed
        path.write_bytes(joined(header, document, data))
        return path

    return make


def refused(path, match="is damaged|cannot be read|is no"):
    """The error is ours, says so in one line, and no memory was asked for."""
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_forged_file_that_is_not_changed_is_read(forge):
    assert load(forge(lambda *_: None)).n_components_ == 2


def test_every_flipped_byte_is_noticed(whole, tmp_path):
    path = tmp_path / "m"
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load(path)


def test_flipped_bytes_in_arrays_are_noticed(tmp_path):
    path = tmp_path / "m"
    save(PCA(2).fit(X), path)
    raw = bytearray(path.read_bytes())
    raw[-5] ^= 1
    path.write_bytes(raw)
    refused(path, "checksum")
    with pytest.raises(ModelFileError, match="checksum"):
        inspect(path)
    assert inspect(path, verify=False).kind == "PCA"


def test_every_truncation_is_noticed(whole, tmp_path):
    path = tmp_path / "m"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            load(path)


def test_a_cut_file_says_so(tmp_path):
    path = tmp_path / "m"
    save(PCA(2).fit(X), path)
    path.write_bytes(path.read_bytes()[:-100])
    refused(path, "cut off: its tensors take .* bytes")
    path.write_bytes(path.read_bytes()[:50])
    refused(path, "declares a header of .* bytes and has 50 in all")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("any") / "m"
    path.write_bytes(raw)
    with pytest.raises(ModelFileError):
        load(path)


class Harm:
    """Would leave a mark if it were unpickled."""

    done = False

    def __reduce__(self):
        return setattr, (Harm, "done", True)


def test_a_pickle_is_never_read(tmp_path):
    (tmp_path / "m").write_bytes(pickle.dumps(Harm()))
    refused(tmp_path / "m", "seems to be a pickle")
    assert not Harm.done


def test_foreign_files_are_named(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"")
    refused(path, "it is empty")
    path.write_text("a,b\n1,2\n3,4\n")
    refused(path, "does not begin as a safetensors file does")
    with path.open("wb") as file:
        np.savez(file, a=X)
    refused(path, "does not begin as a safetensors file does")
    save_file({"a": X}, path, metadata={"format": "np"})
    refused(path, "lacks the entry 'gramian'")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="no model file"):
        inspect(path)


def test_a_newer_file_says_what_to_do(forge):
    def newer(header, document, data):
        document |= {"format": 2, "gramian": "9.0", "model": "in some other way"}

    path = forge(newer)
    refused(path, r"format 2, written by Gramian 9\.0; this version reads formats up to 1. Upgrade")
    with pytest.raises(ModelFileError, match="Upgrade"):
        inspect(path)


def test_a_class_of_a_newer_version_says_what_to_do(forge):
    def newer(header, document, data):
        document["gramian"] = "9.0"
        document["kind"] = document["model"]["class"] = "SparsePCA"

    refused(forge(newer), r"'SparsePCA' is unknown. It was written by Gramian 9\.0: use that version")


def test_a_class_that_is_gone_is_named(forge):
    def older(header, document, data):
        document["model"]["state"]["_stepwise"]["class"] = "mixture.Stream"

    model = GaussianMixture(2).partial_fit(X).partial_fit(X)
    refused(forge(older, model), r"'mixture\.Stream' is unknown. It was written by Gramian")


def change_state(**nodes):
    def change(header, document, data):
        document["model"]["state"] |= nodes

    return change


def call(name):
    return {"$": "partial", "function": name, "arguments": ["touch harm"]}


@pytest.mark.parametrize(
    "node",
    [
        {"$": "object", "class": "subprocess.Popen", "state": {"args": "true"}},
        {"$": "object", "class": "os.system", "state": {}},
        {"$": "object", "class": "gramian.pca.estimator.PCA", "state": {}},
        {"$": "object", "class": ["PCA"], "state": {}},
        {"$": "object", "class": "PCA", "state": {"__class__": {"$": "type", "name": "float"}}},
        {"$": "object", "class": "PCA", "state": {"transform": 1}},
        {"$": "object", "class": "PCA", "state": {"a b": 1}},
        {"$": "object", "class": "results.Certificate", "state": {"method": "a"}},
        {"$": "object", "class": "kernels.Gaussian", "state": {"pairs": 1}},
        {"$": "object", "class": "kernels.Callable", "state": {"function": 1}},
        call("os.system"),
        call("eval"),
        {"$": "type", "name": "object"},
        {"$": "type", "name": "subprocess.Popen"},
        {"$": "dtype", "name": "O"},
        {"$": "dtype", "name": "f8,O"},
        {"$": "dtype", "name": "V1000000000"},
        {"$": "distribution", "name": "os"},
        {"$": "distribution", "name": "rv_continuous"},
        {"$": "distribution", "name": 7},
        {"$": "scalar", "dtype": "object", "value": 1},
        {"$": "float", "value": "1e5"},
        {"$": "ref", "id": 12345},
        {"$": "dict", "items": [[[], 1]]},
        {"$": "dict", "items": 3},
        {"$": "array", "tensor": "nowhere"},
        {"$": "array", "tensor": "components_"},
        {"$": "array", "tensor": "mean_", "dtype": "O"},
        {"$": "array", "tensor": "mean_", "axes": [1]},
        {"$": "pickle", "bytes": "gASVDgAAAA=="},
        {"$": "value"},
        {"$": None},
        {"no tag": 1},
    ],
    ids=str,
)
def test_names_outside_the_list_and_parts_that_do_not_fit_are_refused(forge, node, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(forge(change_state(extra_=node)))
    assert [path.name for path in tmp_path.iterdir()] == ["forged"]


def test_a_model_is_an_estimator(forge):
    def kernel(header, document, data):
        document["kind"] = "kernels.Linear"
        document["model"] = {"$": "object", "class": "kernels.Linear", "state": {}}
        header.clear()
        return b""

    refused(forge(kernel), "'kernels.Linear' is unknown")


def edit_tensor(**entry):
    def change(header, document, data):
        header["components_"] |= entry

    return change


@pytest.mark.parametrize(
    "change",
    [
        edit_tensor(shape=[2**40, 2**40]),
        edit_tensor(shape=[-2, -3]),
        edit_tensor(shape=[2.0, 3.0]),
        edit_tensor(shape=[True, 6]),
        edit_tensor(shape="23"),
        edit_tensor(shape=None),
        edit_tensor(dtype="F128"),
        edit_tensor(dtype="O"),
        edit_tensor(dtype=["F64"]),
        edit_tensor(dtype="F32"),
        edit_tensor(data_offsets=[0]),
        edit_tensor(data_offsets=[0, 2**62], shape=[2**59]),
        edit_tensor(data_offsets=[2**70, 2**70 + 48]),
        edit_tensor(data_offsets=[-48, 0]),
        lambda header, document, data: header["components_"].clear(),
        lambda header, document, data: header.update(more={"dtype": "F64", "shape": [], "data_offsets": [0, 8]}),
        lambda header, document, data: header.update(components_=[1, 2, 3]),
        lambda header, document, data: data + b"\0" * 8,
        lambda header, document, data: data[:-8],
        lambda header, document, data: (
            header.update(gap={"dtype": "F64", "shape": [1], "data_offsets": [len(data) + 8, len(data) + 16]})
            or data + b"\0" * 16
        ),
    ],
)
def test_declared_sizes_are_checked_before_anything_is_read(forge, change, monkeypatch):
    path = forge(change)
    monkeypatch.setattr("gramian.persistence.file.check_sum", None)
    monkeypatch.setattr("gramian.persistence.file.read_tensors", None)
    refused(path, "damaged|cut off")


def test_tensors_that_nothing_names_are_refused(forge):
    def more(header, document, data):
        header["hidden"] = {"dtype": "F64", "shape": [1], "data_offsets": [len(data), len(data) + 8]}
        return data + b"\0" * 8

    refused(forge(more), "do not fit together")


def head(length, content=b"{"):
    return length.to_bytes(8, "little") + content


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        (head(2**63), "declares a header of 9223372036854775808 bytes"),
        (head(2**25 + 1, b"{" + b" " * 2**25), "at most 33554432"),
        (head(40_000, b'{"a":' + b"[" * 39_995), "cannot be read"),
        (head(6, b'{"a":1'), "cannot be read"),
        (head(9, b'{"a":NaN}'), "NaN is no JSON"),
        (head(13, b'{"a":1,"a":2}'), "twice"),
        (head(5, b'{"\xff"}'), "cannot be read"),
        (head(5007, b'{"a":' + b"9" * 5000 + b"}" + b" "), "cannot be read"),
        (head(2, b"{}"), "lacks the entry"),
        (head(19, b'{"__metadata__":[]}'), "lacks the entry"),
        (head(29, b'{"__metadata__":{"gramian":1}}'[:29]), "cannot be read"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_headers_that_cannot_be_are_refused(tmp_path, raw, match):
    (tmp_path / "m").write_bytes(raw)
    with pytest.raises(ModelFileError, match=match):
        load(tmp_path / "m")


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 9000, '{"sha256":1}', '{"format":true,"sha256":"a"}'])
def test_documents_that_cannot_be_are_refused(tmp_path, text):
    (tmp_path / "m").write_bytes(joined({}, {}, b"", text))
    with pytest.raises(ModelFileError, match="damaged"):
        load(tmp_path / "m")


def test_deep_nesting_is_refused(forge):
    def deep(header, document, data):
        node = 1
        for _ in range(300):
            node = {"$": "tuple", "items": [node]}
        document["model"]["state"]["extra_"] = node

    refused(forge(deep), "levels deep")


def doubled(levels, make):
    """Nodes of which each holds the one before it twice: 2 to the power of ``levels`` parts in a few kilobytes."""
    node = make({"$": "object", "class": "kernels.Linear", "state": {}}, 0)
    for level in range(1, levels):
        again = {"$": "ref", "id": level - 1}
        node = make({"$": "tuple", "items": [node, again]}, level)
    return node


def as_kernel(node, level):
    first, second = node["items"] if node["$"] == "tuple" else [node, 1]
    return {"$": "object", "class": "kernels.Sum", "state": {"first": first, "second": second}, "id": level}


@pytest.mark.parametrize("make", [lambda node, level: {**node, "id": level}, as_kernel], ids=["tuples", "kernels"])
@pytest.mark.parametrize("as_key", [False, True])
def test_parts_that_are_shared_again_and_again_are_refused(forge, make, as_key):
    node = doubled(50, make)
    if as_key:
        node = {"$": "dict", "items": [[node, 1]]}
    path = forge(change_state(extra_=node))
    assert path.stat().st_size < 10_000
    refused(path)
    try:
        inspect(path)
    except ModelFileError:
        pass
    else:
        assert not as_key or make is as_kernel  # parts of objects are not shown
    few = load(forge(change_state(extra_=doubled(5, as_kernel)))).extra_
    assert few.first is few.second


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    kernel = kernels.Linear()
    for _ in range(40):
        kernel = kernels.Sum(kernel, kernel)
    model = PCA(2).fit(X)
    model.extra_ = kernel
    with pytest.raises(ValueError, match="extra_"):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [[0, 2**62], [0, 2**70], [2**31, 0, 2**33]])
def test_empty_tensors_of_any_shape_are_read_or_refused(forge, shape):
    def change(header, document, data):
        header["extra_"] = {"dtype": "F64", "shape": shape, "data_offsets": [len(data), len(data)]}
        document["model"]["state"]["extra_"] = {"$": "array", "tensor": "extra_"}

    with contextlib.suppress(ModelFileError):
        assert load(forge(change)).extra_.shape == tuple(shape)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_components_that_are_no_numbers_are_refused(forge, value):
    def change(header, document, data):
        start = header["components_"]["data_offsets"][0]
        return data[:start] + np.float64(value).tobytes() + data[start + 8 :]

    refused(forge(change), "components_")


def test_names_in_a_summary_do_not_move_the_cursor(forge):
    def change(header, document, data):
        document["model"]["state"]["\x1b[31mred"] = 1
        document["metadata"]["\x1b]0;owned\x07"] = "a\nb"
        document["gramian"] = "1\r2"

    text = repr(inspect(forge(change)))
    assert all(line.isprintable() for line in text.splitlines())
    assert "red" in text


def test_texts_cannot_ask_for_more_memory_than_the_file_justifies(forge):
    model = PCA(2).fit(X)
    model.names_ = np.array(["a", "bc"])

    def wide(**change):
        return lambda header, document, data: document["model"]["state"]["names_"].update(change)

    assert load(forge(wide(kind="U9"), model)).names_.dtype == "U9"
    refused(forge(wide(kind="U999999999"), model), "2 texts of 999999999 characters each are declared")
    refused(forge(wide(kind="V8"), model), "no kind of text")
    refused(forge(wide(shape=[2**40, 2**40]), model), "do not fit the shape")
    refused(forge(wide(shape=[-1, -2]), model))
    refused(forge(wide(offsets="mean_"), model))


def test_offsets_of_texts_are_checked(forge):
    model = PCA(2).fit(X)
    model.names_ = np.array(["a", "bc", "d"])

    def moved(offsets):
        def change(header, document, data):
            start, stop = header["names_.offsets"]["data_offsets"]
            return data[:start] + np.array(offsets, np.int64).tobytes() + data[stop:]

        return change

    assert load(forge(moved([0, 2, 2, 4]), model)).names_.tolist() == ["ab", "", "cd"]
    for offsets in ([0, 3, 1, 4], [1, 2, 3, 4], [0, 1, 2, 2**62], [-4, 0, 0, 4]):
        refused(forge(moved(offsets), model), "offsets")


def test_indices_of_sparse_matrices_are_checked(forge):
    def beyond(header, document, data):
        start, stop = header["X_fit_.indices"]["data_offsets"]
        return data[:start] + np.full((stop - start) // 4, 10**6, np.int32).tobytes() + data[stop:]

    refused(forge(beyond, SPARSE))
    refused(forge(lambda h, d, data: d["model"]["state"]["X_fit_"].update(format="coo"), SPARSE))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$", "items", "tensor", "id", "class", "state", "x"]), inner, max_size=3)
        | st.fixed_dictionaries({"$": st.sampled_from(TAGS), "items": inner, "value": inner, "name": inner})
    ),
    max_leaves=6,
)


def places(node):
    """Every entry of a document, as the container and its key."""
    for key, item in node.items() if isinstance(node, dict) else enumerate(node):
        yield node, key
        if isinstance(item, (dict, list)):
            yield from places(item)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m"
    save(SPARSE, path)
    return path, path.read_bytes()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_change_of_the_document_is_read_or_refused(saved, data):
    path, raw = saved
    header, document, tensors = split(raw)
    document = {"sha256": ZEROS, **document}
    container, key = data.draw(st.sampled_from(list(places(document))))
    container[key] = data.draw(JSON)
    path.write_bytes(joined(header, document, tensors))
    for read, kind in ((load, KernelRidge), (inspect, ModelFile)):
        try:
            found = read(path)
        except ModelFileError:
            continue
        assert type(found) is kind


def test_a_file_replaced_while_it_is_read_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "m"
    save(PCA(2).fit(X), path)

    def replaced(file, header):
        save(PCA(2).fit(X + 1.0), path)

    monkeypatch.setattr("gramian.persistence.file.check_sum", replaced)
    with pytest.raises(ModelFileError, match="replaced"):
        load(path)


def test_headers_are_never_longer_than_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MOST", 1000)
    with pytest.raises(ValueError, match="model"):
        save(PCA(2).fit(X), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("components_", "text"),
        ("components_", [1.0, 2.0]),
        ("mean_", 3),
        ("n_features_in_", "2"),
        ("n_features_in_", True),
        ("n_components_", {"$": "float", "value": "nan"}),
        ("certificate_", 1.0),
        ("explained_variance_", {"$": "dict", "items": []}),
    ],
)
def test_attributes_of_another_type_are_refused_by_name(forge, name, node):
    def change(header, document, data):
        document["model"]["state"][name] = node

    refused(forge(change), name)
