"""What every test shares: one thread of torch, one Hypothesis profile, and a torch that may be absent."""

import os
from typing import Any

# Before torch is loaded: its threads beside those of other workers make small tensors two to four times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run and machine: a red test is a bug, never a draw of the lot.
settings.register_profile(
    "gramian",
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("gramian")


@pytest.fixture
def torch() -> Any:
    """Give the torch module, or skip the test and say why."""
    return pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")
