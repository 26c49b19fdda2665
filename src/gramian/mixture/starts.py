"""Mixtures to start from: of partitions of the rows, of a hierarchy, of five moments, or as given."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from gramian.compute.devices import is_tensor, to_device, to_numpy
from gramian.mixture.binned import Bins
from gramian.mixture.diagnose import diagnose
from gramian.mixture.em import Maximiser, MixtureAscent, MixtureFit, MixtureIterate, fit_mixture
from gramian.mixture.missing import impute
from gramian.mixture.models import DIAGONAL, SPHERICAL
from gramian.mixture.parameters import Mixture, Prior, as_floats, free_parameters, invert_precisions
from gramian.mixture.rows import MixtureRows
from gramian.sources import DenseSource

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

FEW_POINTS = 2_000  # rows that starts race on
MOST_POINTS = 10_000  # rows that a start is found from, or 100 for each component: beyond, a sample of them
MOST_LEAVES = 1_000  # points that are agglomerated: beyond, a sample of them, and the others go to the nearest cluster
FILLING = 50  # iterations of the one normal distribution that missing cells are filled from, for a start
ROUNDS = 50  # of k-means: a start needs no more
TRIES = 2  # of k-means, in each of two metrics, before the first start
FEW = 50  # points whose k-means is tried four times as often: chance seeds weigh more, and a try costs next to nothing
FEW_LEAVES = 500  # points that are linked for one fit alone
MOST_TREE = 2**20  # leaves times the cube of the columns: a tree of more takes longer than the fits
WHITE = {"half": 0.25, "white": 0.5}  # powers of the eigenvalues that principal axes are divided by
# where and how rows are partitioned, kinds that are most unlike first
KINDS = (
    ("half", "tree"),
    ("bimodal", "ward"),
    ("white", "ward"),
    ("standard", "kmeans"),
    ("raw", "ward"),
    ("half", "ward"),
    ("white", "complete"),
    ("white", "kmeans"),
    ("half", "kmeans"),
    ("standard", "ward"),
    ("raw", "kmeans"),
)
KINDS_OF_ONE = (("raw", "ward"), ("raw", "quantiles"), ("raw", "kmeans"), ("raw", "complete"), ("raw", "average"))
AGREE = 3  # starts that, if they meet, are all
APART = 2.4  # times the sum of their spreads along the line between them, that centres of plain clusters are apart
BIMODAL = 0.6  # of (skewness² + 1)/kurtosis: 1/3 of a normal, 5/9 of a uniform, 1 of two groups far apart
LEAST_CLUSTER = 5  # points of a plain cluster
FREE = 24.0  # points for each parameter of a component in a column, from which on no more is asked
ALIKE = 0.95  # of the weight in the same clusters: partitions that start one and the same fit
SHORT, LONG = 6, 100  # steps of a start before it is compared with others, and of the finalists
FINALISTS = 4  # beyond those asked for
CHALLENGERS = 1  # the same, where one fit is asked for and not a choice between many
MET = 1e-2  # standard errors: a step so short is near an optimum
NEAR = 0.1  # units of log-likelihood between starts that are about to meet
LEVEL = 1e-7  # of the weight, that is rounding
LEAST_START = 1e-3  # of the columns' variances, that a component starts with


def find_starts(
    model: Any,
    data: MixtureRows | Bins,
    maximiser: Maximiser,
    rng: np.random.RandomState,
    pool: StartPool | None = None,
    more: Sequence[Mixture] = (),
) -> Iterator[Mixture]:
    """Yield ``n_init`` mixtures; one alone where everything is given; for ``init_params="auto"`` some more, best first.

    Parameters
    ----------
    model : GaussianMixture
        Its ``init_params``, ``n_init`` and ``*_init``.
    data : MixtureRows or Bins
        What is to be fitted.
    maximiser : Maximiser
        Covariance model, prior and constraints.
    rng : RandomState
        Where draws come from.
    pool : StartPool, optional
        Partitions of the same data that another fit has made.
    more : sequence of Mixture, optional
        Solutions of neighbouring models, which "auto" compares too.
    """
    k, d, letters = model.n_components, len(data.origin), maximiser.model
    weights, means, precisions = model.weights_init, model.means_init, model.precisions_init
    if weights is not None:
        weights = as_floats("weights_init", weights)
        if weights.shape != (k,) or not (weights >= 0).all() or not np.isclose(weights.sum(), 1.0):
            raise ValueError(f"weights_init must be {k} numbers of at least 0 that sum to 1, got {weights}.")
    if means is not None:
        means = as_floats("means_init", means)
        if means.shape != (k, d) or not np.isfinite(means).all():
            raise ValueError(f"means_init must be finite and of shape ({k}, {d}); its shape is {means.shape}.")
        means = means - data.origin
    try:
        spread = None if precisions is None else invert_precisions(precisions, model.covariance_type, letters, k, d)
    except ValueError as error:
        raise ValueError(f"precisions_init: {error}") from None
    given = (weights, means, spread)
    if all(part is not None for part in given):
        yield Mixture.of(*given, letters, data.origin)
        return
    auto = model.init_params == "auto" and means is None
    alone = pool is None and model.n_init == 1
    if pool is None:  # one fit alone starts from all rows, unless they are many
        many = not isinstance(data, Bins) and data.source.shape[0] > MOST_POINTS
        pool = StartPool(data, k, rng, FEW_POINTS if auto and (many or not alone) else MOST_POINTS)
    points = pool.points(letters)
    if len(points.weights) < k:
        things = "bins" if isinstance(data, Bins) else "rows"
        raise ValueError(
            f"n_components={k} exceeds the {len(points.weights)} distinct {things} with weight: each component needs "
            f"{things} of its own. Fit fewer components."
        )

    def complete(start: Mixture) -> Mixture:
        own = (start.weights, start.centres, start.covariances)
        parts = [mine if part is None else part for mine, part in zip(own, given, strict=True)]
        return Mixture.of(parts[0], parts[1], parts[2], letters, data.origin)

    def start_from(shares: Any) -> Mixture:
        return _mixture_of_shares(points, shares, k, letters)

    def likeliest(made: list[Any]) -> int:
        """The first that no other beats by more than rounding: the same one in other units."""
        rows = points.rows
        heights = np.array([rows.expect(start_from(one).shift_origin(rows.origin)).log_likelihood for one in made])
        return int(np.argmax(heights > heights.max() - LEVEL * rows.weight))

    own = maximiser.prior  # reg_covar is a penalty whose weight in the sums grows with theirs
    penalty = None
    if own is not None and not own.hard and own.centre is None:
        penalty = replace(own, scale=own.scale * points.rows.weight / data.weight)
    if auto and alone and k > 1:  # those of many kinds follow where all of these collapse
        found = pool.find_unlike(k, letters, rng, likeliest)
        few = [complete(start_from(shares)) for shares in found]
        yield from few if len(few) == 1 else race(few, points.rows, maximiser, data.origin, 1, 1, CHALLENGERS, penalty)
    if auto:
        kinds = pool.partitions(k, letters in SPHERICAL)
        # solutions of neighbours and mclust's own start, plain as it is, are followed to their end
        first = [shares for _, shares in zip(range(int(pool.tree and k > 1)), kinds, strict=False)]
        plain = [complete(_mixture_of_shares(points, shares, k, letters, plain=True)) for shares in first]
        drawn = (complete(_mixture_of_shares(points, shares, k, letters)) for shares in chain(first, kinds))
        starts, sure = chain(more, plain, drawn), len(more) + len(plain)
        raced = (points.rows, maximiser, data.origin, model.n_init, sure, FINALISTS, penalty)
        yield from starts if k == 1 else race(starts, *raced)
        return
    for turn in range(model.n_init):
        if means is not None:
            partitions = [nearest(points.scaled, means / points.units)[0]]
        else:
            partitions = _partition(points, k, model.init_params, letters in SPHERICAL, turn, rng)
        yield complete(start_from(partitions[likeliest(partitions) if len(partitions) > 1 else 0]))


def race(
    starts: Iterable[Mixture],
    rows: MixtureRows,
    maximiser: Maximiser,
    origin: Array,
    most: int,
    sure: int = 0,
    finalists: int = FINALISTS,
    penalty: Prior | None = None,
) -> Iterator[Mixture]:
    """Yield starts after steps of EM on some rows, measured from the origin of the data; the best first.

    Each makes a few steps; where the first few of unlike kinds have met by then, or all have collapsed, there are no
    others. Else the highest few go on to an optimum: EM rests on plateaus, and who is highest after a few steps need
    not be so in the end. Those in which a component has collapsed come last. A ``penalty`` of the user's keeps them
    from it, as it will in the fit.
    """
    zero, floor = np.zeros(len(origin)), penalty or Prior.floor(rows)
    maximise = Maximiser(maximiser.model, floor, maximiser.constraints)
    runners, begun = list[MixtureIterate](), list[Mixture]()

    def climb(starts: list[Mixture], steps: int) -> list[MixtureIterate]:
        """Where some steps lead: of few rows all starts make theirs at once."""
        free = maximise.is_free and all(each.model == maximise.model and rows.is_kept(each) for each in starts)
        together = rows.climb(starts, MET, steps) if free and starts else None
        found = list[MixtureIterate]()
        for i, start in enumerate(starts):
            ascent, made = MixtureAscent(rows, maximise), 0
            if together is not None:
                start, made = together[i].mixture, together[i].passes
            found.append(ascent.run(start, MET, steps - made, True, None)[0])
        return found

    def has_collapsed(i: int) -> bool:
        return penalty is None and bool(diagnose(runners[i].mixture, runners[i].stats, floor))

    def rank() -> tuple[list[int], list[int]]:
        """The sound ones and the others by height; of those that have met, the first to come as high as rounding."""
        ranked = list[int](), list[int]()
        collapsed = [has_collapsed(i) for i in range(len(runners))]
        for ill, order in enumerate(ranked):
            group = list[int]()
            for i in sorted(
                (i for i, is_ill in enumerate(collapsed) if is_ill == ill), key=lambda i: -runners[i].height
            ):
                if group and runners[group[-1]].height - runners[i].height <= NEAR:
                    group.append(i)
                    if runners[group[0]].height - runners[i].height <= LEVEL * rows.weight:
                        order[-1] = min(order[-1], i)
                else:
                    group = [i]
                    order.append(i)
        return ranked

    rest = iter(starts)
    for some in (sure + AGREE, None):
        drawn = list(islice(rest, some))
        begun += drawn
        runners += climb([replace(start, origin=zero).shift_origin(rows.origin) for start in drawn], SHORT)
        met = np.ptp([at.height for at in runners]) <= NEAR
        if len(drawn) == some and (met or all(map(has_collapsed, range(len(runners))))):
            break
    sound, collapsed = rank()
    if not sound:  # at this floor; the fit begins anew with its own, or without one
        yield begun[collapsed[0]]
        return
    if len(sound) + len(collapsed) > 1:
        chosen = sorted({*sound[: most + finalists], *(i for i in sound if i < sure)})
        runners, begun = climb([runners[i].mixture for i in chosen], LONG), [begun[i] for i in chosen]
        sound, collapsed = rank()
    for i in sound:
        yield replace(runners[i].mixture.shift_origin(zero), origin=origin)
    yield from (begun[i] for i in collapsed)


def count_tries(points: int) -> int:
    """How often k-means is tried in one metric."""
    return TRIES if points > FEW else 4 * TRIES


class StartPool:
    """Partitions of the rows of data into any number of clusters, of several kinds; what they share is made once.

    Parameters
    ----------
    data : MixtureRows or Bins
        What is to be fitted.
    k : int
        The most components.
    rng : RandomState
        Where draws come from.
    most : int
        Rows that starts are found from, or 100 for each component: beyond, a sample of them.
    tree : bool, default=False
        Whether to agglomerate by the likelihood of clusters with their own covariances too, which takes longest.
    """

    def __init__(
        self, data: MixtureRows | Bins, k: int, rng: np.random.RandomState, most: int, *, tree: bool = False
    ) -> None:
        self._points, self.tree = find_points(data, "VVV", max(most, 100 * k), rng), tree
        self.seed = int(rng.randint(2**31 - 1))
        self._made: dict[Any, Any] = {}

    def points(self, model: str) -> StartPoints:
        """The points, in units that suit a model."""
        own = self._points
        if model not in SPHERICAL:
            return own
        return StartPoints(own.rows, own.weights, np.ones_like(own.units), own.scaled * own.units)

    def partitions(self, k: int, spherical: bool) -> Iterator[Labels]:
        """Labels of the points by one kind after the other, of kinds as unlike as can be first; none twice."""
        points, seen = self._points, set[bytes]()
        Z, d = points.scaled, points.scaled.shape[1]
        if k == 1:
            yield np.zeros(len(Z), dtype=np.intp)
            return
        # units of columns count in spherical models alone; white points that are few lie equally far from each other
        left_out = {"raw": not spherical, "tree": not self.tree or len(Z) * d**3 > MOST_TREE, "white": len(Z) <= 2 * d}
        kinds = [kind for kind in KINDS if not any(left_out.get(part, False) for part in kind)]
        kinds = list(KINDS_OF_ONE) if d == 1 else kinds
        for space, way in kinds:
            labels = self._cluster(space, way, k)
            if labels.tobytes() not in seen:
                seen.add(labels.tobytes())
                yield labels

    def find_unlike(
        self, k: int, model: str, rng: np.random.RandomState, choose: Callable[[list[Labels]], int]
    ) -> list[Labels]:
        """Partitions by k-means in three metrics, and where they differ by linkage of few points too; no two alike.

        The first is that of ``init_params="kmeans"``, which ``choose`` finds among its tries, unless all are alike. A
        plain one is all: other starts lead there, or lower.
        """
        points, spherical = self.points(model), model in SPHERICAL
        Z, w, d = points.scaled, points.weights, len(points.units)
        freedom = free_parameters(model, k, d) / (k * d)
        tries, count = list[Labels](), count_tries(len(Z))
        for _ in range(count):
            tries.append(by_kmeans(Z, w, k, rng))
            if is_plain(Z, w, tries[-1], k, freedom):
                return tries[-1:]
        others = [self._cluster(space, "kmeans", k) for space in WHITE] if len(Z) > 2 * d > 2 else []
        if len(Z) > FEW and others and all(is_alike(tries[0], labels, w, k) for labels in others):
            return tries[:1]
        Y = Z if spherical else self._turn("half")
        tries += [by_kmeans(Y, w, k, rng) for _ in range(count)]
        kinds = KINDS_OF_ONE[:2] if d == 1 else (("half", "ward"), ("bimodal", "ward"))
        others += [self._cluster(*kind, k) for kind in kinds if len(Z) <= FEW_LEAVES or kind[1] == "quantiles"]
        tries = [one for i, one in enumerate(tries) if not any(is_alike(one, each, w, k, 1.0) for each in tries[:i])]
        found = [tries[choose(tries)]]
        for labels in others + tries:
            if not any(is_alike(labels, other, w, k) for other in found):
                found.append(labels)
        return found

    def _turn(self, space: str) -> Any:
        """The points in one of the metrics that they are partitioned in."""
        Z, w = self._points.scaled, self._points.weights
        if space == "bimodal":
            return self._once(space, lambda: find_bimodal(Z, w))
        if space in WHITE:
            return self._once(space, lambda: half_whiten(Z, w, WHITE[space]))
        return Z * self._points.units if space == "raw" else Z

    def _cluster(self, space: str, way: Any, k: int) -> Any:
        """Labels of one kind, with clusters in the order of their first points."""
        if (space, way, k) in self._made:
            return self._made[space, way, k]
        Y, Z, w = self._turn(space), self._points.scaled, self._points.weights
        if way == "kmeans":
            labels = by_kmeans(Y, w, k, np.random.RandomState([self.seed, k]))
        elif way == "quantiles":  # points of one column are in order
            labels = np.minimum(np.cumsum(w) * (k / w.sum()) - 1e-9, k - 1).astype(np.intp)
        else:
            some: Any = slice(None)
            rng = np.random.RandomState(self.seed)
            if len(Z) > MOST_LEAVES:  # a sample, the other points going to the nearest centre
                some = self._once("some", lambda: np.unique(_draw(w, rng.random_sample(MOST_LEAVES))))
            if way == "tree":
                labels = by_agglomeration(Y[some], w[some], k, spheres=False)
            else:
                tree = self._once((space, way), lambda: linkage(Y[some], way))
                labels = fcluster(tree, float(k), "maxclust").astype(np.intp) - 1
            if len(labels) < len(Z):
                labels = nearest(Y, _cluster_means(Y[some], w[some], labels, labels.max() + 1))[0]
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        return self._once((space, way, k), lambda: np.argsort(np.argsort(first))[inverse])

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def fit_one_normal(data: MixtureRows | Bins, max_iter: int = 1000) -> MixtureFit:
    """One normal distribution fitted to data: for complete rows one step, their mean and covariance."""
    variances = np.where(data.variances > 0, data.variances, 1.0)
    start = Mixture.of([1.0], np.zeros((1, len(variances))), np.diag(variances), "EEE", data.origin)
    return fit_mixture(data, start, Maximiser("EEE", Prior.floor(data)), max_iter=max_iter)


@dataclass(frozen=True, eq=False)
class StartPoints:
    """Distinct points, in a fixed order whatever the order and repetition of the rows they come from.

    Attributes
    ----------
    rows : MixtureRows
        The points, measured from the data's origin, as data for a fit.
    weights : ndarray of shape (m,)
        How often each was seen.
    units : ndarray of shape (d,)
        What distances are measured in: standard deviations of the columns, or 1 where the model is spherical.
    scaled : ndarray of shape (m, d)
        The points in these units.
    """

    rows: MixtureRows
    weights: Array
    units: Array
    scaled: Array


def find_points(data: MixtureRows | Bins, model: str, most: int, rng: np.random.RandomState) -> StartPoints:
    """Return the distinct rows of data, or of a sample where they are many; of bins, the middles.

    A weight is the row so many times: the points and the draws from them are the same either way.
    """
    if isinstance(data, Bins):
        taken = np.flatnonzero(data.counts > 0)
        D, w = _middles(data.lower[taken] - data.origin, data.upper[taken] - data.origin)[0], data.counts[taken]
    else:
        n = data.source.shape[0]
        w = np.ones(n) if data.sample_weight is None else data.sample_weight
        if n > most:
            w = np.bincount(_draw(w, rng.random_sample(most)), minlength=n).astype(np.float64)
        taken = np.flatnonzero(w > 0)
        D, w = np.empty((len(taken), len(data.origin))), w[taken]
        for block in data.source.blocks():
            first, last = np.searchsorted(taken, (block.start, block.stop))
            X, mine = block.values, taken[first:last] - block.start
            # rows are gathered on their device: only those taken leave it
            D[first:last] = to_numpy(X[to_device(mine, X.device)]) if is_tensor(X) else X[mine]
        D -= data.origin
    if np.isnan(D).any():  # missing cells as one normal distribution expects them, given those that are there
        D = impute(D, fit_one_normal(MixtureRows.of(DenseSource(D), w), FILLING).mixture)[0]
    # equal rows together, so that repeated rows and weights give the same start; few differ in other columns alone
    order = np.argsort(D[:, 0], kind="stable")
    if np.any(np.diff(D[order, 0]) == 0):
        order = np.lexsort(D.T[::-1])
    D, w = D[order], w[order]
    new = np.concatenate([[True], (D[1:] != D[:-1]).any(axis=1)])
    D, w = np.ascontiguousarray(D[new]), np.asarray(np.bincount(np.cumsum(new) - 1, w), dtype=np.float64)
    spread = np.sqrt(np.maximum(w @ (D - w @ D / w.sum()) ** 2 / w.sum(), 0.0))
    units = np.ones(D.shape[1]) if model in SPHERICAL else np.where(spread > 0, spread, 1.0)
    return StartPoints(MixtureRows.of(DenseSource(D), w), w, units, np.asarray(D / units))


def _middles(low: Array, high: Array) -> tuple[Array, Array]:
    """The middles of boxes, and the median width in each column, which open boxes count as wide as."""
    width = high - low
    known = np.isfinite(width)
    typical = np.array([np.median(x[i]) if i.any() else 0.0 for x, i in zip(width.T, known.T, strict=True)])
    low = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high) - typical, low)
    high = np.where(np.isinf(high), low + typical, high)
    return low + 0.5 * (high - low), typical


def _partition(
    points: StartPoints, k: int, how: str, spherical: bool, turn: int, rng: np.random.RandomState
) -> list[Any]:
    """Labels of the points, or shares in them: several for the first start by k-means, to take the likeliest."""
    Z, w = points.scaled, points.weights
    if how == "k-means++":
        return [nearest(Z, Z[seeds(Z, w, k, rng)])[0]]
    if how == "random":  # responsibilities, uniform before they are made to sum to 1, as scikit-learn's
        R = rng.random_sample((len(Z), k))
        return [R / R.sum(axis=1, keepdims=True)]
    if how == "random_from_data":  # every point to the nearest of k rows, each other than the ones before
        chosen, left = list[int](), w.copy()
        for _ in range(k):
            chosen.append(int(_draw(left, rng.random_sample())))
            left[chosen[-1]] = 0.0
        return [nearest(Z, Z[chosen])[0]]
    tree = how == "hierarchical" and (turn == 0 or len(Z) > MOST_LEAVES)
    if not tree and (turn > 0 or k == 1):  # there is one hierarchy of few points: other starts are by k-means
        return [by_kmeans(Z, w, k, rng)]
    Y = Z if spherical else half_whiten(Z, w)
    if not tree:
        return [by_kmeans(X, w, k, rng) for X in (Z, Y) for _ in range(count_tries(len(Z)))]
    if len(Z) <= MOST_LEAVES:
        return [by_agglomeration(Y, w, k, spheres=spherical)]
    some, count = np.unique(_draw(w, rng.random_sample(MOST_LEAVES)), return_counts=True)
    few = count.astype(np.float64)  # of some points, the others going to the nearest centre
    return [nearest(Y, _cluster_means(Y[some], few, by_agglomeration(Y[some], few, k, spheres=spherical), k))[0]]


def is_alike(one: Labels, other: Labels, w: Array, k: int, share: float = ALIKE) -> bool:
    """Whether two partitions put a share of the weight into the same clusters, whatever these are called.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.starts import is_alike
    >>> is_alike(np.array([0, 0, 1]), np.array([1, 1, 0]), np.ones(3), 2)
    True
    """
    shared = np.bincount(k * one + other, w, minlength=k * k).reshape(k, k)
    whose = shared.argmax(axis=1)
    return len(set(whose.tolist())) == k and bool(shared.max(axis=1).sum() >= share * w.sum())


def is_plain(Z: Array, w: Array, labels: Labels, k: int, freedom: float = 1.0) -> bool:
    """Whether all clusters lie far apart from each other, and none of them falls apart into two.

    Then the components hardly share a point, so that EM stays there, and a better optimum would need two groups that
    look like one. Halves of one group do not lie apart: those of a normal one by 1.3 of the measure in few columns, and
    at best by about √(2d/m + 2.5)/2 with m points each in d columns, for which more is asked. So it is where points
    are few for a model's parameters, ``freedom`` for each component and column: then it may fit chance even better.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.starts import is_plain
    >>> Z = np.random.default_rng(0).standard_normal((60, 2)) + 20.0 * (np.arange(60)[:, None] >= 30)
    >>> halves = (np.arange(60) >= 30).astype(np.intp)
    >>> is_plain(Z, np.ones(60), halves, 2), is_plain(Z, np.ones(60), 0 * halves, 1)
    (True, False)
    """
    sizes, d = np.bincount(labels, minlength=k), Z.shape[1]
    if sizes.min() < LEAST_CLUSTER:
        return False
    apart = APART * math.sqrt(max(1.0, (2 * d / sizes.min() + 2.5) / 6.5) * max(1.0, FREE * freedom / sizes.min()))
    order, ends = np.argsort(labels, kind="stable"), np.cumsum(sizes)
    groups = [order[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    shares = [w[rows] / w[rows].sum() for rows in groups]
    C = np.stack([v @ Z[rows] for v, rows in zip(shares, groups, strict=True)])
    lengths, spread = np.empty((k, k)), np.empty((k, k))
    for a, (v, rows) in enumerate(zip(shares, groups, strict=True)):
        lines = C[a] - C
        lengths[a] = np.sqrt(np.einsum("ij,ij->i", lines, lines))
        off = Z[rows] @ (lines / np.where(lengths[a] > 0, lengths[a], 1.0)[:, None]).T
        off -= v @ off
        spread[a] = np.sqrt(v @ off**2)
    if not np.all((lengths > apart * (spread + spread.T)) | np.eye(k, dtype=bool)):
        return False
    for a, (v, rows) in enumerate(zip(shares, groups, strict=True)):
        D = Z[rows] - C[a]
        D = D / (float(np.abs(D).max()) or 1.0)
        t = D @ D[np.argmax(np.einsum("ij,ij->i", D, D))]
        for _ in range(3):  # towards the longest axis, along which two groups would lie apart
            t = D @ ((v * t) @ D)
            t /= float(np.abs(t).max()) or 1.0
        squares = v @ t**2
        if not (v @ t**3) ** 2 / (squares or 1.0) + squares**2 <= BIMODAL * (v @ t**4):
            return False
    return True


def by_kmeans(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> Labels:
    """Lloyd's iterations from seeds of k-means++.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.starts import by_kmeans
    >>> labels = by_kmeans(np.array([[0.0], [1.0], [8.0], [9.0]]), np.ones(4), 2, np.random.RandomState(0))
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    C, numbers = Z[seeds(Z, w, k, rng)], np.arange(k)[:, None]

    def assign() -> Labels:
        D = Z @ (-2.0 * C.T)
        D += np.einsum("ij,ij->i", C, C)
        return np.asarray(np.argmin(D, axis=1))

    def fill() -> Labels:  # distances are looked at only where a cluster is empty
        full = np.bincount(labels, minlength=k).all()
        return labels if full else _fill_empty(labels, nearest(Z, C)[1], k)

    labels = assign()
    for _ in range(ROUNDS):
        filled = fill()
        own = (filled == numbers) * w
        C = own @ Z / own.sum(axis=1)[:, None]
        new = assign()
        if np.array_equal(new, labels):
            break
        labels = new
    return fill()


def seeds(Z: Array, w: Array, k: int, rng: np.random.RandomState) -> list[int]:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007): of a few candidates, the one that leaves least."""
    chosen: list[int] = []
    left, mass = np.full(len(Z), np.inf), w  # squared distances from those chosen
    squares = np.einsum("ij,ij->i", Z, Z)
    for turn in range(k):
        candidates = _draw(mass, rng.random_sample(2 + int(np.log(k)) if turn else 1))
        after = (-2.0 * Z[candidates]) @ Z.T
        after += squares
        after += squares[candidates][:, None]
        np.clip(after, 0.0, left, out=after)
        after[np.arange(len(candidates)), candidates] = 0.0  # whatever rounding has left
        best = int(np.argmin(after @ w))
        chosen.append(int(candidates[best]))
        left, mass = after[best], w * after[best]
        if not mass.sum() > 0:
            mass = np.where(np.isin(np.arange(len(Z)), chosen), 0.0, w)
    return chosen


def nearest(Z: Array, C: Array) -> tuple[Labels, Array]:
    """The nearest of the centres for each point, and its squared distance, from ‖z‖² − 2zᵀc + ‖c‖²."""
    D = Z @ (-2.0 * C.T)
    D += np.einsum("ij,ij->i", C, C)
    labels = np.argmin(D, axis=1)
    best = D[np.arange(len(Z)), labels] + np.einsum("ij,ij->i", Z, Z)
    return labels, np.maximum(best, 0.0)


def _draw(mass: Array, u: Any) -> Any:
    """The indices at which cumulative mass passes shares u of all."""
    ends = np.cumsum(mass)
    return np.minimum(np.searchsorted(ends, u * ends[-1], side="right"), np.flatnonzero(mass)[-1])


def _cluster_means(Z: Array, w: Array, labels: Labels, k: int) -> Array:
    totals = np.bincount(labels, w, minlength=k)
    return np.stack([np.bincount(labels, w * z, minlength=k) / totals for z in Z.T], axis=1)


def _fill_empty(labels: Labels, distances: Array, k: int) -> Labels:
    """Give each empty cluster the point that lies farthest from its own, of a cluster that has others."""
    sizes = np.bincount(labels, minlength=k)
    if sizes.all():
        return labels
    labels, order = labels.copy(), iter(np.argsort(-distances, kind="stable"))
    for j in np.flatnonzero(sizes == 0):
        i = next(i for i in order if sizes[labels[i]] > 1)
        sizes[labels[i]] -= 1
        labels[i], sizes[j] = j, 1
    return labels


def _mixture_of_shares(points: StartPoints, shares: Any, k: int, letters: str, *, plain: bool = False) -> Mixture:
    """The mixture of points given to components, measured from their origin.

    Covariances are drawn to that of the columns within clusters, as if each cluster had d + 1 rows more of it: one of
    a few rows would else start in a collapse that the data need not lead to. ``plain`` leaves them as they are.
    """
    rows, Z, d = points.rows, points.scaled, len(points.units)
    if shares.ndim == 1:
        sizes = np.bincount(shares, minlength=k)
        centres = np.stack([Z[shares == j].sum(axis=0) / max(size, 1) for j, size in enumerate(sizes)])
        shares = _fill_empty(shares, np.sum((Z - centres[shares]) ** 2, axis=1), k)
    stats = rows.assign(shares, k, letters, np.zeros(d))
    if plain:
        return Maximiser(letters, Prior.floor(rows))(stats)
    scatter = stats.second.sum(axis=0)
    within = (scatter if stats.diagonal else np.diag(scatter)) / stats.weight
    floor = Prior.floor(rows, LEAST_START).scale
    c = (d + 1.0) * stats.weight / len(points.weights)
    prior = Prior(c * np.maximum(within, floor), c)
    # models that are maximised by iterations begin them at one covariance for all: a start needs no more than a step
    pooled = Maximiser("EEI" if letters in DIAGONAL else "EEE", prior)(stats).embed(letters)
    return Maximiser(letters, prior)(stats, pooled)


def half_whiten(Z: Array, w: Array, power: float = 0.25) -> Array:
    r"""Standardised columns, turned to principal axes and divided by the root of the singular value of each.

    With X = UDVᵀ the points are XVD^{-1/2}, half way between the data and white: the transformation that Scrucca and
    Raftery (2015) found to lead to the best starts; with ``power=0.5`` they are white. Directions without variance are
    left out.
    """
    D = Z - w @ Z / w.sum()
    spread = np.sqrt(w @ D**2 / w.sum())
    D = D / np.where(spread > 0, spread, 1.0)
    squares, axes = np.linalg.eigh((w[:, None] * D).T @ D)
    keep = squares > 1e-12 * squares[-1]
    return np.asarray(D @ axes[:, keep] / squares[keep] ** power)


def find_bimodal(Z: Array, w: Array) -> Array:
    """The two of the columns and principal axes that have the smallest kurtosis: two equal groups in one make it 1."""
    w = w / w.max()  # kurtosis has no units, and sums of tiny weights have no room
    both = np.concatenate([Z, half_whiten(Z, w, 0.5)], axis=1)
    D = both - w @ both / w.sum()
    squares = w @ D**2 / w.sum()
    kurtosis = np.divide(w @ D**4 / w.sum(), squares**2, out=np.full(len(squares), np.inf), where=squares > 0)
    best = np.argsort(np.round(kurtosis, 6), kind="stable")[:2]  # rounding does not choose
    return np.asarray(D[:, best] / np.sqrt(np.where(squares > 0, squares, 1.0))[best])


def by_agglomeration(Z: Array, w: Array, k: int, *, spheres: bool) -> Labels:
    """Partition the points into k clusters by model-based agglomeration (Fraley 1998).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.starts import by_agglomeration
    >>> by_agglomeration(np.array([[0.0], [8.0], [0.1], [8.2], [0.3]]), np.ones(5), 2, spheres=False)
    array([0, 1, 0, 1, 0])
    """
    points, weights = np.ascontiguousarray(Z, dtype=np.float64), np.asarray(w, dtype=np.float64)
    owner = np.arange(len(Z), dtype=np.intp)
    for i, j in _mergers(points.tobytes(), weights.tobytes(), points.shape[1], spheres)[: len(Z) - k]:
        owner[owner == j] = i
    return np.unique(owner, return_inverse=True)[1].astype(np.intp)


@lru_cache(maxsize=4)  # one tree serves every number of components, and every model but the spherical ones
def _mergers(points: bytes, weights: bytes, d: int, spheres: bool) -> list[tuple[int, int]]:
    """All mergers of a tree, in order, j into i: always of the two clusters that lose least by it."""
    count, total = np.frombuffer(weights).copy(), float(np.frombuffer(weights).sum())
    centre = np.frombuffer(points).reshape(-1, d)
    centre = centre - count @ centre / total
    base = float(count @ np.sum(centre**2, axis=1)) / (total * d)
    m = len(count)
    scatter, loss = np.zeros((m, d, d)), np.full((m, m), np.inf)

    def cost(count: Array, scatter: Array) -> Array:
        trace = np.trace(scatter, axis1=1, axis2=2)
        if spheres:
            return np.asarray(trace)
        volume = np.maximum(np.linalg.det(scatter / count[:, None, None]), 0.0)
        return np.asarray(count * np.log(volume + (trace + base) / count))

    def merge(i: int, others: Labels) -> tuple[Array, Array, Array]:
        """Counts, centres and scatter matrices of cluster i merged with each of the others."""
        a, b = count[i], count[others]
        away, share = centre[others] - centre[i], b / (a + b)
        both = scatter[i] + scatter[others] + (a * share)[:, None, None] * away[:, :, None] * away[:, None, :]
        return a + b, centre[i] + share[:, None] * away, both

    def compare(i: int, others: Labels) -> None:
        """Write what cluster i and each of the others would lose by a merger."""
        merged, _, both = merge(i, others)
        loss[i, others] = loss[others, i] = cost(merged, both) - own[i] - own[others]

    own = cost(count, scatter)
    for i in range(m - 1):
        compare(i, np.arange(i + 1, m))
    least, alive, mergers = np.argmin(loss, axis=1), np.arange(m), []
    while len(alive) > 1:
        i = int(alive[np.argmin(loss[alive, least[alive]])])
        i, j = min(i, int(least[i])), max(i, int(least[i]))
        mergers.append((i, j))
        count[i], centre[i], scatter[i] = (part[0] for part in merge(i, np.array([j])))
        own[i] = cost(count[i : i + 1], scatter[i : i + 1])[0]
        alive = alive[alive != j]
        loss[j, :] = loss[:, j] = np.inf
        others = alive[alive != i]
        if len(others):
            compare(i, others)
            least[i] = np.argmin(loss[i])
            stale = others[np.isin(least[others], (i, j))]
            least[stale] = np.argmin(loss[stale], axis=1)
            least[others[loss[others, i] < loss[others, least[others]]]] = i
    return mergers


@dataclass(frozen=True, eq=False, repr=False)
class TwoNormals:
    """Mixtures of two normals with given moments.

    Attributes
    ----------
    solutions : tuple of Mixture
        All of them, the smaller mean first in each; the one to prefer comes first.
    sixth : tuple of float
        Sixth central moment of each.
    roots : ndarray
        Negative real roots of the nonic, in units of the variance.
    """

    solutions: tuple[Mixture, ...]
    sixth: tuple[float, ...]
    roots: Array

    def __repr__(self) -> str:
        lines = [
            f"weights {m.weights.round(4)}, means {m.means[:, 0]}, deviations {np.sqrt(m.covariances[:, 0])}"
            for m in self.solutions
        ]
        return "\n".join([f"TwoNormals: {len(lines)} solution{'s' * (len(lines) != 1)}", *lines])


def central_moments(data: Any, *, sheppard: bool = True) -> tuple[float, Array]:
    """The mean, and the central moments 2 to 6.

    Parameters
    ----------
    data : Bins of one column, or array-like
        Bins count at their midpoints, open ones as if they were as wide as their neighbours.
    sheppard : bool, default=True
        Whether to take out what rounding to bins of one width adds to moments (Sheppard 1898).

    Returns
    -------
    mean : float
        The mean.
    moments : ndarray of shape (5,)
        Central moments 2 to 6.

    Examples
    --------
    >>> from gramian.mixture import central_moments
    >>> central_moments([1.0, 2.0, 3.0])[1].round(4)
    array([0.6667, 0.    , 0.6667, 0.    , 0.6667])
    """
    h = 0.0
    if isinstance(data, Bins):
        if data.lower.shape[1] != 1:
            raise ValueError(f"Moments are taken of one column; the boxes have {data.lower.shape[1]}.")
        width = data.upper - data.lower
        if not np.isfinite(width).any():
            raise ValueError("All bins are open: they have no midpoints.")
        middle, typical = _middles(data.lower, data.upper)
        x, w = middle[:, 0], data.counts
        h = float(typical[0]) if np.allclose(width[np.isfinite(width)], typical[0], rtol=1e-6) else 0.0
    else:
        x = np.asarray(data, dtype=np.float64).ravel()
        w = np.ones(len(x))
    w = w / w.sum()
    mean = float(x[0] + w @ (x - x[0]))
    m = np.array([w @ (x - mean) ** j for j in range(2, 7)])
    if not sheppard or h == 0.0:
        return mean, m
    added = [
        h**2 / 12,
        0.0,
        h**2 * m[0] / 2 - 7 * h**4 / 240,
        5 * h**2 * m[1] / 6,
        5 * h**2 * m[2] / 4 - 7 * h**4 * m[0] / 16 + 31 * h**6 / 1344,
    ]
    return mean, m - np.array(added)


def two_normals(mean: float, moments: npt.ArrayLike) -> TwoNormals:
    """Mixtures of two normals that have a mean and central moments 2 to 5 (and nearly the sixth, where given).

    Pearson's solution (1894): the product of the two means, in units of a variance of 1, is a root of a polynomial of
    degree nine in the cumulants.

    Parameters
    ----------
    mean : float
        The mean.
    moments : array-like of length 4 or 5
        Central moments 2 to 5, and the sixth where it is known.

    Returns
    -------
    TwoNormals
        The mixtures that have them, the best by the sixth moment first.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import two_normals
    >>> found = two_normals(2.0, [5.0, 0.0, 43.0, 0.0, 499.0]).solutions[0]  # ½N(0, 1) + ½N(4, 1)
    >>> found.weights.round(6), found.means.ravel().round(6), found.covariances.ravel().round(6)
    (array([0.5, 0.5]), array([0., 4.]), array([1., 1.]))
    """
    given = np.asarray(moments, dtype=np.float64)
    if given.shape not in ((4,), (5,)) or not given[0] > 0:
        raise ValueError(f"Give the central moments 2 to 5, or 2 to 6, of which the first is positive; got {given}.")
    unit = math.sqrt(given[0])
    nu = given / unit ** np.arange(2, len(given) + 2)
    k3, k4, k5 = nu[1], nu[2] - 3.0, nu[3] - 10 * nu[1]
    nonic = [
        24.0,
        0.0,
        84 * k4,
        36 * k3**2,
        90 * k4**2 + 72 * k5 * k3,
        444 * k4 * k3**2 - 18 * k5**2,
        288 * k3**4 - 108 * k3 * k4 * k5 + 27 * k4**3,
        -(63 * k4**2 + 72 * k3 * k5) * k3**2,
        -96 * k3**4 * k4,
        -24 * k3**6,
    ]
    every = np.roots(nonic)
    roots = every[np.abs(every.imag) < 1e-6 * np.maximum(np.abs(every), 1e-12)].real
    for _ in range(5):  # real ones, polished by a few steps of Newton's
        steep = np.polyval(np.polyder(np.array(nonic)), roots)
        step = np.divide(np.polyval(nonic, roots), steep, out=np.zeros_like(roots), where=np.abs(steep) > 1e-8)
        roots = roots - np.where(np.abs(step) < 1e-3 * np.abs(roots), step, 0.0)
    roots = np.sort(roots[roots < -1e-9])
    roots = roots[np.diff(roots, prepend=-np.inf) > 1e-7 * np.abs(roots)]  # double ones once
    found = []
    for v in roots:
        below = 2 * v**3 + 3 * k4 * v + 4 * k3**2
        if below == 0.0:
            continue
        total = (-8 * k3 * v**3 + 3 * k5 * v**2 + 6 * k3 * k4 * v + 2 * k3**3) / below / v
        gap = math.sqrt(total**2 - 4 * v)
        m = np.array([total - gap, total + gap]) / 2
        s = m * (2 * total - k3 / v) / 3 + 1.0 - m**2  # variances
        if (s > 0).all():
            weights = np.array([m[1], -m[0]]) / gap
            sixth = float(weights @ (m**6 + 15 * m**4 * s + 45 * m**2 * s**2 + 15 * s**3))
            found.append((sixth, Mixture.of(weights, unit * m[:, None], unit**2 * s, "V", [mean])))
    if len(nu) == 5:
        found.sort(key=lambda pair: abs(pair[0] - nu[4]))
    return TwoNormals(tuple(pair[1] for pair in found), tuple(pair[0] * unit**6 for pair in found), roots)
