"""Model files with anything changed in them: read, or refused by name; no crash, no hang, no memory, nothing else."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest

from attack.harness import case_count, run_cases, seed
from gramian import PCA, GaussianMixture, KernelPCA, KernelRidge, Ridge
from gramian.likelihood.estimator import MaximumLikelihood
from gramian.persistence import ModelFileError, inspect, load, save

X = np.random.default_rng(0).gamma(2.0, size=(20, 3))
MODELS = {
    "pca": lambda: PCA(2).fit(X),
    "kernel_pca": lambda: KernelPCA(2, kernel="rbf").fit(X),
    "ridge": lambda: Ridge().fit(X, X[:, 0]),
    "kernel_ridge": lambda: KernelRidge(kernel="rbf").fit(X, X[:, 0]),
    "mixture": lambda: GaussianMixture(2).fit(X),
    "likelihood": lambda: MaximumLikelihood("gamma").fit(X[:, :1]),
}
ZEROS = "0" * 64
NODES = (
    *(None, True, -1, 2**70, 1e308, "", "nan", [], {}, [[]]),
    *({"$": "ref", "id": 0}, {"$": "tuple", "items": []}, {"$": "float", "value": "nan"}),
    *(
        {"$": "array", "tensor": "components_"},
        {"$": "object", "class": "PCA", "state": {}},
        {"$": "dict", "items": [[1]]},
    ),
    *({"$": "scalar", "dtype": "int8", "value": 10**9}, {"$": "dtype", "name": "<f8"}, {"$": "type", "name": "float"}),
)


def mutate_bytes(raw: bytes, rng: random.Random) -> bytes:
    """Flip, cut, repeat, remove or replace bytes."""
    changed = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(changed) + 1)
        size = rng.choice([1, 1, 4, 100])
        how = rng.randrange(4)
        if how == 0 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif how == 1:
            del changed[at : at + size]
        elif how == 2:
            changed[at:at] = changed[at : at + size]
        else:
            changed[at : at + size] = rng.randbytes(size)
    return bytes(changed)


def places(node: object) -> list[tuple[object, object]]:
    """Every entry of a document, as its container and its key."""
    found: list[tuple[object, object]] = []
    for key, item in node.items() if isinstance(node, dict) else enumerate(node):
        found.append((node, key))
        if isinstance(item, dict | list):
            found += places(item)
    return found


def mutate_document(raw: bytes, rng: random.Random) -> bytes:
    """Change what the file declares, and give it a proper checksum: only what it says is wrong."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    document = {"sha256": ZEROS, **json.loads(header.pop("__metadata__")["gramian"])}
    for _ in range(rng.choice([1, 1, 2])):
        every = places(document["model"]) + places(header)
        container, key = rng.choice(every)
        how = rng.randrange(4)
        if how == 0 and isinstance(container, dict):
            container.pop(key, None)
        elif how == 1:
            other, name = rng.choice(every)
            container[key] = json.loads(json.dumps(other[name])) if name in range(len(other)) or name in other else 0
        else:
            container[key] = json.loads(json.dumps(rng.choice(NODES)))
    document["sha256"] = ZEROS
    text = json.dumps(document, separators=(",", ":"))
    head = json.dumps({"__metadata__": {"gramian": text}, **header}, separators=(",", ":")).encode()
    made = len(head).to_bytes(8, "little") + head + raw[8 + length :]
    mark = b'\\"sha256\\":\\"'
    return made.replace(mark + ZEROS.encode(), mark + hashlib.sha256(made).hexdigest().encode(), 1)


def read(folder: str, name: str, number: int) -> str:
    """Load and inspect one changed file; anything but a model or a refusal is raised."""
    raw = Path(folder, name).read_bytes()
    rng = random.Random(f"{name} {number}")
    mutate = mutate_bytes if number % 2 else mutate_document
    path = Path(folder, "changed")
    path.write_bytes(mutate(raw, rng))
    outcome, said = "read", []
    for look in (load, inspect):
        try:
            repr(look(path)) if look is inspect else look(path)
        except ModelFileError as error:
            outcome = "refused"
            said.append(str(error))
    assert all(str(path) in text and "\n" not in text for text in said)
    if mutate is mutate_bytes and path.read_bytes() != raw:
        assert outcome == "refused", "a changed byte was not noticed"
    return outcome


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, make in MODELS.items():
        save(make(), folder / name)
    return folder


def test_changed_files_are_read_or_refused(saved: Path) -> None:
    numbers = range(seed() * 10**6, seed() * 10**6 + case_count(400))
    names = list(MODELS)
    cases = [(str(saved), names[number // 2 % len(names)], number) for number in numbers]
    outcomes = run_cases(read, cases, seconds=10)
    wrong = [(case[1:], outcome) for case, outcome in zip(cases, outcomes, strict=True) if outcome.how != "returned"]
    assert wrong == []
    assert {outcome.value for outcome in outcomes} == {"read", "refused"}
