"""The lowest versions that pyproject.toml allows are those that ``make test-lowest`` runs with."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def test_the_lowest_versions_allowed_are_those_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = [*project["dependencies"], *(text for name in ("arrays", "report", "tables") for text in extras[name])]
    allowed = {}
    for requirement in map(Requirement, stated):
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        allowed[requirement.name] = Version(bound.version)
    lines = (ROOT / "constraints-lowest.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert len(allowed) > 10
    assert {name: Version(pinned[name]) for name in allowed} == allowed
