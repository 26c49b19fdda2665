"""What is measured: the shapes, their spectra, the peers and the targets. Standard library only.

The parent process imports this module and must stay small: on Linux a child's ``ru_maxrss`` starts
at the resident size its parent had, so a parent holding arrays would spoil every memory figure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

# Part of the name of every cached file: raise it when a recipe in data.py or spectra.py changes.
RECIPE = 1

Kind = Literal["dense", "sparse", "map"]
Spectrum = Literal["slow", "fast", "topics", "random"]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One estimator to time: ``module.cls(n_components=k, **params)``.

    ``role`` is ``"ours"``, ``"peer"`` (eligible for the ratio) or ``"context"`` (measured and listed only).
    """

    name: str
    module: str = "sklearn.decomposition"
    cls: str = "PCA"
    params: Mapping[str, str | int | float] = field(default_factory=dict)
    role: Literal["ours", "peer", "context"] = "peer"


@dataclass(frozen=True)
class Skip:
    """A solver that is not run, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Route:
    """The cheapest known way through a workload, from which its floor is computed.

    ``passes == 1 and block == 0`` is the Gram route; otherwise block Krylov: every pass reads the data
    once and multiplies a block of ``block`` vectors by A and by Aᵀ.
    """

    passes: int = 1
    block: int = 0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A data set by its recipe, the number of components asked and who is compared on it.

    ``must_be_accurate=False`` compares with the peers even where they are inaccurate: nothing else in
    scikit-learn fits data out of core, and the table says how inaccurate they were.
    """

    name: str
    rows: int
    cols: int
    components: int | None
    kind: Kind
    spectrum: Spectrum
    target: float
    route: Route
    peers: tuple[Peer, ...]
    skipped: tuple[Skip, ...] = ()
    dtype: Literal["float64", "float32"] = "float64"
    density: float = 1.0
    seed: int = 20_240
    memory_target_mb: float | None = None
    must_be_accurate: bool = True

    @property
    def rank(self) -> int:
        """The number of components k, counted when all are asked."""
        return self.components or min(self.rows, self.cols)

    @property
    def key(self) -> str:
        """A file name for the data of this workload at this size."""
        return f"{self.name}-{self.rows}x{self.cols}-seed{self.seed}-recipe{RECIPE}"

    @property
    def latent(self) -> int:
        """The number of directions that stand out of the noise of a dense recipe."""
        return max(1, min(100, min(self.rows, self.cols) // 2))

    def scaled(self, factor: float) -> "Workload":
        """Return the same recipe with both sides multiplied by ``factor``, never too small for k."""
        if factor == 1.0:
            return self
        least = 2 * (self.components or 2) + 2
        rows, cols = max(4 * least, int(self.rows * factor)), max(least, int(self.cols * factor))
        return replace(self, rows=rows, cols=cols)


def _pca(solver: str) -> Peer:
    """Return scikit-learn's PCA with one of its solvers."""
    return Peer(name=f"sklearn {solver}", params={"svd_solver": solver, "random_state": 0})


def _skips(reason: str, *solvers: str) -> tuple[Skip, ...]:
    """Name the solvers left out for one reason."""
    return tuple(Skip(f"sklearn {solver}", reason) for solver in solvers)


CANDIDATES: Mapping[str, Peer] = {
    "gramian": Peer(name="gramian", module="gramian", params={"random_state": 0}, role="ours"),
    # scikit-learn against itself: the ratios should come out near one, which checks the harness.
    "sklearn": Peer(name="sklearn as ours", params={"random_state": 0}, role="ours"),
}

_TALL_PEERS = tuple(_pca(s) for s in ("auto", "full", "covariance_eigh"))
_TALL = Workload(
    name="dense-100000x200-slow",
    rows=100_000,
    cols=200,
    components=None,
    kind="dense",
    spectrum="slow",
    target=1.0,
    route=Route(),
    peers=_TALL_PEERS,
    skipped=_skips("a truncated solver, and all components are asked", "arpack", "randomized"),
)
_MIDDLE = Workload(
    name="dense-20000x2000-slow",
    rows=20_000,
    cols=2_000,
    components=10,
    kind="dense",
    spectrum="slow",
    target=1.5,
    route=Route(passes=14, block=10),
    peers=tuple(_pca(s) for s in ("auto", "full", "covariance_eigh", "arpack", "randomized")),
)
_WIDE = Workload(
    name="dense-5000x20000-slow",
    rows=5_000,
    cols=20_000,
    components=20,
    kind="dense",
    spectrum="slow",
    target=2.0,
    route=Route(passes=18, block=10),
    peers=tuple(_pca(s) for s in ("auto", "arpack", "randomized")),
    skipped=(
        *_skips("all 5,000 components, some 4·10¹² flops, where 20 are asked", "full"),
        *_skips("a 20,000×20,000 covariance, 3.2 GB, and all of its eigenvectors", "covariance_eigh"),
    ),
)
_SPARSE = Workload(
    name="sparse-100000x20000-topics",
    rows=100_000,
    cols=20_000,
    components=20,
    kind="sparse",
    spectrum="topics",
    density=0.005,
    target=2.0,
    route=Route(passes=11, block=10),
    peers=tuple(_pca(s) for s in ("auto", "arpack")),
    skipped=(
        *_skips("refuses sparse data", "full", "randomized"),
        *_skips("a dense 20,000×20,000 covariance, 3.2 GB, and all of its eigenvectors", "covariance_eigh"),
    ),
)
_MAP = Workload(
    name="map-5000000x200-slow",
    rows=5_000_000,
    cols=200,
    components=10,
    kind="map",
    spectrum="slow",
    dtype="float32",
    target=15.0,
    memory_target_mb=1_000.0,
    route=Route(),
    must_be_accurate=False,
    peers=(
        Peer(name="sklearn IncrementalPCA", cls="IncrementalPCA"),
        # Not out of core: it holds the whole file in memory, and is listed to say what that buys.
        Peer(name="sklearn auto (in memory)", params={"random_state": 0}, role="context"),
    ),
)

WORKLOADS: tuple[Workload, ...] = (
    _TALL,
    replace(_TALL, name="dense-100000x200-fast", spectrum="fast"),
    _MIDDLE,
    replace(_MIDDLE, name="dense-20000x2000-fast", spectrum="fast", route=Route(passes=5, block=10)),
    _WIDE,
    replace(_WIDE, name="dense-5000x20000-fast", spectrum="fast", route=Route(passes=5, block=10)),
    _SPARSE,
    replace(_SPARSE, name="sparse-100000x20000-random", spectrum="random", route=Route(passes=53, block=40)),
    _MAP,
)


def find(name: str) -> Workload:
    """Return the workload called ``name``.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    return {workload.name: workload for workload in WORKLOADS}[name]
