"""What every test shares: one thread of torch, a Hypothesis profile, and a torch that may be absent."""

import os
from typing import Any

# Before torch is loaded: its threads beside those of other workers make small tensors two to four times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run and machine: a red test is a bug, never a draw of the lot. `make attack` looks for new
# ones instead, from the seed it prints; it asks for the second profile.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("gramian", derandomize=True, deadline=None, max_examples=25, suppress_health_check=SLOW)
settings.register_profile(
    "attack", deadline=None, max_examples=500, database=None, print_blob=True, suppress_health_check=SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gramian"))


@pytest.fixture
def torch() -> Any:
    """Give the torch module, or skip the test and say why."""
    return pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")


@pytest.fixture(params=["plain", "compiled"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Count bits of genotypes by NumPy alone, and by compiled loops where Numba is there, however little they are."""
    if request.param == "compiled":
        pytest.importorskip("numba", reason="numba is not installed (gramian[compiled])")
    monkeypatch.setattr("gramian.compute.bits.LONG", 0.0 if request.param == "compiled" else float("inf"))
    return str(request.param)
