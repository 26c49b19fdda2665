"""Work shared between threads: every item once, sums with the same bits for any number of them, errors and limits."""

from __future__ import annotations

from operator import add
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from gramian.compute import dense, mixture, sparse, tiles
from gramian.compute.threads import (
    add_to,
    n_threads,
    parallel,
    parallel_sum,
    quiet_blas,
)
from gramian.kernels import Gaussian


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 17, 100])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_summed_once_and_in_order(count: int, threads: int) -> None:
    with threadpool_limits(threads):
        found = parallel_sum(list, [[i] for i in range(count)], add)
    assert [i for (i,) in found] == list(range(count))


@pytest.mark.parametrize("count", [2, 5, 16, 31])
def test_the_tree_of_a_sum_depends_on_the_items_alone(count: int) -> None:
    def work(share: Any) -> str:
        return "".join(chr(65 + i) for i in share)

    def merge(one: str, other: str) -> str:
        return f"({one}{other})"

    trees = set()
    for threads in (1, 2, 3, 8):
        with threadpool_limits(threads):
            trees |= {parallel_sum(work, range(count), merge) for _ in range(5)}
    assert len(trees) == 1


def test_an_error_in_one_share_ends_the_sum() -> None:
    def work(share: Any) -> int:
        if 7 in list(share):
            raise ZeroDivisionError("seven")
        return 0

    with threadpool_limits(2), pytest.raises(ZeroDivisionError):
        parallel_sum(work, range(40), add)


def test_blas_is_quiet_within_and_as_before_after() -> None:
    with threadpool_limits(2):
        before = [lib["num_threads"] for lib in blas()]
        with quiet_blas():
            assert {lib["num_threads"] for lib in blas()} == {1}
            assert n_threads() == max(before)
            assert parallel(lambda share: {lib["num_threads"] for lib in blas()}, range(4))[0] == {1}
        assert [lib["num_threads"] for lib in blas()] == before


def blas() -> list[dict[str, Any]]:
    return [lib for lib in threadpool_info() if lib["user_api"] == "blas"]


RNG = np.random.default_rng(0)
X = RNG.standard_normal((5000, 130))
V, U, W = RNG.standard_normal((130, 9)), RNG.standard_normal((5000, 9)), RNG.uniform(size=5000)
S = sp.csr_array(np.where(RNG.uniform(size=X.shape) < 0.2, X, 0.0))
PARTS = mixture.Components(np.zeros(5), RNG.standard_normal((3, 5)), np.tile(np.eye(5), (3, 1, 1)), np.zeros(3))
PAIRS = Gaussian(0.1).pairs(X[:1500, :4])


@pytest.mark.parametrize(
    "loop",
    [
        lambda: dense.product(X, V),
        lambda: dense.adjoint(X, U, X[:1]),
        lambda: dense.normal(X, V, W),
        lambda: dense.conormal(X, U),
        lambda: dense.scatter(X, W, X),
        lambda: dense.spread(X, W, X),
        lambda: dense.triangle(X),
        lambda: dense.scatter(X[:600], None, X),
        lambda: sparse.adjoint(S, U),
        lambda: sparse.normal(S, V, W),
        lambda: sparse.conormal(S, U),
        lambda: sparse.spread(S, W, X),
        lambda: tiles.product(PAIRS, U[:1500]),
        lambda: tiles.symmetric_product(PAIRS, U[:1500]),
        lambda: mixture.expectation(X[:, :5], W, PARTS),
        lambda: mixture.expectation(X[:, :5], None, PARTS, expanded=True),
    ],
)
def test_loops_give_the_same_bits_for_any_number_of_threads(loop: Any) -> None:
    found = []
    for threads in (1, 2, 3, 4):
        with threadpool_limits(threads):
            found.append(loop())
    for other in found[1:]:
        for one, another in zip(*(r if isinstance(r, tuple) else (r,) for r in (found[0], other)), strict=True):
            np.testing.assert_array_equal(one, another)


def test_sums_that_overflow_are_infinite_without_a_warning() -> None:
    total = np.array([1e308, 1.0])
    assert add_to(total, total.copy()) is total
    np.testing.assert_array_equal(total, [np.inf, 2.0])
