r"""EM of several mixtures of the same few rows at once, with mixed steps.

Of few rows a step is shorter than the calls that make it up, so all starts make theirs together: parameters and sums
have a leading axis of starts. Sums are those of the monomials :math:`1, d_i, d_id_j` about the data's origin, one array
T of shape (starts, K, monomials). One step of EM is T ↦ G(T), and the next T is

.. math:: G(T_j)-\sum_i\gamma_i\bigl(G(T_{i+1})-G(T_i)\bigr),\qquad
    \gamma=\arg\min\bigl\|f_j-\sum_i\gamma_i(f_{i+1}-f_i)\bigr\|,\quad f=G(T)-T,

Anderson's mixing (1965), which near an optimum is a quasi-Newton method (Fang and Saad 2009). A step that lowers the
likelihood, or leads to no mixture, is replaced by EM's own, and what was remembered is forgotten.

A start whose covariances are too narrow for these sums, or that loses a component, is left where it was: the ascent of
:mod:`gramian.mixture.em`, which loses no digits, goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gramian.compute.mixture import KeptRows, normalise
from gramian.mixture.models import maximise_covariances, maximise_together
from gramian.mixture.parameters import Mixture

Array = npt.NDArray[np.float64]

MEMORY = 8  # steps that are mixed
LEAST_COUNT = 1e-6  # of the total weight: a component with less is left to the careful ascent
LEAST_SHARE = 0.1  # of the counts before, that a mixed step must leave
DAMPING = 1e-10  # of the squares of remembered differences
LONGEST = 1024.0  # times a step that may be extrapolated
CLOSE = 0.3  # standard errors: shorter steps are mixed, longer ones extrapolated
NARROW = 1e4  # times the rounding of float64 is what these sums may lose
ROUNDING = 1e-13  # of the likelihood, that a step may lose
MOST_CELLS = 2**19  # rows × components of all starts that step together


@dataclass(eq=False)
class Climb:
    """Where a start has come to.

    Attributes
    ----------
    mixture : Mixture
        Its parameters.
    height : float
        The log-likelihood there.
    slope : float
        Length of the next step of EM, in standard errors of complete data; infinite where it is not known.
    heights : list of float
        After each step; they never fall.
    passes : int
        Steps made or tried.
    """

    mixture: Mixture
    height: float
    slope: float = math.inf
    heights: list[float] = field(default_factory=list)
    passes: int = 0


def climb_together(
    rows: KeptRows, size: Array, weight: float, starts: Sequence[Mixture], *, tol: float, most: int
) -> list[Climb]:
    """Steps from every start until its gradient is small, or there were ``most``.

    Parameters
    ----------
    rows : KeptRows
        The rows with their monomials.
    size : ndarray of shape (d,)
        Standard deviations of the columns.
    weight : float
        Σw.
    starts : sequence of Mixture
        Of one model and one number of components, measured from the origin of the rows.
    tol : float
        Gradient to reach, in standard errors.
    most : int
        Most steps of each.

    Returns
    -------
    list of Climb
        In the order of the starts.
    """
    together = max(1, MOST_CELLS // (rows.F.shape[1] * starts[0].n_components))
    if len(starts) > together:
        parts = [starts[i : i + together] for i in range(0, len(starts), together)]
        return [one for part in parts for one in climb_together(rows, size, weight, part, tol=tol, most=most)]
    with np.errstate(all="ignore"):  # a trial may lead to no mixture, and is then not taken
        return _Batch(rows, size, weight, starts[0]).run(starts, tol, most)


class _Batch:
    """The steps of starts of one model."""

    def __init__(self, rows: KeptRows, size: Array, weight: float, like: Mixture) -> None:
        self.rows, self.size, self.weight, self.like = rows, size, weight, like
        self.model, self.k, self.d = like.model, *like.centres.shape
        units = [np.ones(1), 1 / size, math.sqrt(0.5) / (size[rows.rows] * size[rows.columns])]
        self.units = np.concatenate(units)
        w = rows.w
        self.even = (
            rows.F.sum(axis=1) if w is None else rows.F @ w
        ) / self.k  # sums of some mixture: rows shared evenly

    def run(self, starts: Sequence[Mixture], tol: float, most: int) -> list[Climb]:
        climbs = [Climb(start, -np.inf) for start in starts]
        at = _Parameters(*(np.stack([getattr(s, n) for s in starts]) for n in ("weights", "centres", "covariances")))
        fine, P, maps = self._prepare(at)
        live = np.flatnonzero(fine)
        if not len(live):
            return climbs
        T, height = self._expect(maps[live])
        for i, mine in enumerate(live):
            climbs[mine].height, climbs[mine].passes = float(height[i]), 1
            climbs[mine].heights.append(float(height[i]))
        at = at.take(live)
        # of each live start: the parameters and height it has, the sums that led there (T) and that it leads to (G)
        G, trial = T, T
        known = np.zeros(len(live), dtype=bool)  # whether T is there too: not of parameters that were given
        plain = np.ones(len(live), dtype=bool)  # whether the next step is EM's own
        slopes = np.full(len(live), np.inf)
        past: list[tuple[Array, Array, npt.NDArray[np.bool_]]] = []  # differences of f, of G, and whether they count
        f, zero = np.zeros_like(G), np.zeros(len(live))
        longest, close = zero + 1.0, zero + CLOSE  # how far a step may be extrapolated, and where mixing begins
        jumped, phase = zero, 0
        for step in range(1, most + 1):
            if not len(live):
                break
            new, possible = self._maximise(trial, at)
            fine, P, maps = self._prepare(new)
            fine &= possible
            sums, reached = self._expect(maps)
            up = fine & (reached >= height - ROUNDING * (np.abs(height) + self.weight))
            after = sums - trial
            past = [*past, (after - f, sums - G, up & known)][-MEMORY:]
            length = self._slopes(new, P, after)
            if up.all():
                f, G, at, height, slopes = after, sums, new, np.maximum(reached, height), length
                known, done = up, length <= tol
            else:
                where = up[:, None, None]
                f, G, slopes = np.where(where, after, f), np.where(where, sums, G), np.where(up, length, slopes)
                at, height = at.choose(up, new), np.where(up, np.maximum(reached, height), height)
                known = known | up
                done = (~up & plain) | (up & (slopes <= tol))  # EM's own step gains nothing, or these sums fail it
                # a step that failed is shortened from now on
                longest = np.where((jumped > 0) & ~up, np.maximum(1.0, jumped / 4), longest)
                close = np.where(up | plain | (jumped > 0), close, close / 10)
            mixes = up & (slopes <= close)
            trial, plain, jumped = G, np.ones(len(live), dtype=bool), np.zeros(len(live))
            phase = (phase + 1) % 3
            if mixes.any():
                trial, plain = np.where(mixes[:, None, None], self._mix(G, f, past), G), ~mixes
            leaps = up & ~mixes & past[-1][2]
            if phase == 2 and leaps.any():
                trial, jumped, longest = self._extrapolate(G, f, past[-1][0], longest, leaps, trial)
                plain = plain & ~(jumped > 0)
            for i, mine in enumerate(live):
                one = climbs[mine]
                one.passes += 1
                if up[i]:
                    one.heights.append(float(height[i]))
                if done[i] or step == most:
                    one.mixture, one.height, one.slope = self._mixture(at, i), float(height[i]), float(slopes[i])
            if done.any():
                left = np.flatnonzero(~done)
                live, at, G, f, trial = live[left], at.take(left), G[left], f[left], trial[left]
                height, known, plain, slopes = height[left], known[left], plain[left], slopes[left]
                longest, close, jumped = longest[left], close[left], jumped[left]
                past = [(a[left], b[left], c[left]) for a, b, c in past]
        return climbs

    def _extrapolate(
        self, G: Array, f: Array, v: Array, longest: Array, leaps: npt.NDArray[np.bool_], trial: Array
    ) -> tuple[Array, Array, Array]:
        """Sums beyond two steps of EM, T + 2a f₀ + a² v with f₀ = f − v the first of them; how far each went."""
        scale = self._scale(G)
        first = f - v
        size, curve = (np.sqrt(np.sum((x * scale) ** 2, axis=(1, 2))) for x in (first, v))
        far = np.divide(size, curve, out=np.ones_like(size), where=curve > 0)
        a = np.where(leaps, np.clip(far, 1.0, longest), 1.0)
        jumped = np.where(a > 1.0, a, 0.0)
        T = G - f + ((2 * a - 1)[:, None, None]) * first + (a**2)[:, None, None] * v
        longest = np.where(leaps & (far >= longest), np.minimum(4 * longest, LONGEST), longest)
        return np.where((jumped > 0)[:, None, None], T, trial), jumped, longest

    def _scale(self, G: Array) -> Array:
        """What differences of sums are measured in: standard errors, were components as wide as the data."""
        return np.asarray(self.units / np.sqrt(np.maximum(G[..., :1], LEAST_COUNT * self.weight)))

    def _mixture(self, at: _Parameters, i: int) -> Mixture:
        spread = np.ascontiguousarray(at.covariances[i])
        return Mixture(at.weights[i].copy(), at.centres[i].copy(), spread, self.model, self.like.origin)

    def _maximise(self, T: Array, at: _Parameters) -> tuple[_Parameters, npt.NDArray[np.bool_]]:
        """Parameters of sums, and whether there are such: elsewhere they are the old ones."""
        d, full = self.d, self.rows.full
        N = T[..., 0]
        least = self.weight * np.maximum(LEAST_COUNT, LEAST_SHARE * at.weights)
        fine = np.asarray((least < N).all(axis=1))
        if not fine.all():
            T = np.where(fine[:, None, None], T, self.even)
            N = T[..., 0]
        centres = T[..., 1 : d + 1] / N[..., None]
        if full:
            scatter = T[..., d + 1 :][..., self.rows.place]
            scatter -= N[..., None, None] * (centres[..., :, None] * centres[..., None, :])
        else:
            scatter = T[..., d + 1 :] - N[..., None] * centres**2
        model, known = self.model, at.covariances
        if model in ("VVV", "VVI"):
            spread = scatter / N[..., None, None] if full else scatter / N[..., None]
        elif model in ("EEE", "EEI"):
            spread = np.broadcast_to(scatter.sum(axis=1, keepdims=True) / self.weight, scatter.shape)
        elif model == "VII":
            spread = np.broadcast_to((scatter.mean(axis=2) / N)[..., None], scatter.shape)
        elif model == "EII":
            pooled = scatter.sum(axis=(1, 2), keepdims=True) / (self.weight * d)
            spread = np.broadcast_to(pooled, scatter.shape)
        else:
            try:
                spread = maximise_together(model, N, scatter, known)
            except np.linalg.LinAlgError:  # of one of them, which the others are not to suffer from
                spread = np.empty_like(scatter)
                for s in range(len(T)):
                    try:
                        spread[s] = maximise_covariances(model, N[s], scatter[s], known[s])
                    except np.linalg.LinAlgError:
                        fine[s], spread[s] = False, known[s]
        weights = N / N.sum(axis=1, keepdims=True)
        return _Parameters(weights, centres, spread), fine

    def _prepare(self, at: _Parameters) -> tuple[npt.NDArray[np.bool_], Array, Array]:
        """Whether covariances are wide enough; precisions; and exponents as linear functions of the monomials."""
        d, S = self.d, at.covariances
        if self.rows.full:
            try:
                L, fine = np.linalg.cholesky(S), np.ones(len(S), dtype=bool)
            except np.linalg.LinAlgError:
                fine = np.array([_is_definite(each) for each in S])
                L = np.linalg.cholesky(np.where(fine[:, None, None, None], S, np.eye(d)))
            R = np.linalg.inv(L)
            P = np.swapaxes(R, -1, -2) @ R
            logs = np.log(np.diagonal(L, axis1=2, axis2=3)).sum(axis=2)
            slope = (P @ at.centres[..., None])[..., 0]
            squares = P[..., self.rows.rows, self.rows.columns] * self.rows.twice
            loss = (np.abs(P) @ self.size) @ self.size
        else:
            fine = np.asarray((S > 0).all(axis=(1, 2)))
            P = 1.0 / S
            logs, slope, squares, loss = 0.5 * np.log(S).sum(axis=2), P * at.centres, -0.5 * P, P @ self.size**2
        fine = fine & (loss.max(axis=1) < NARROW) & (at.weights > 0).all(axis=1)
        constant = np.log(at.weights) - logs - 0.5 * (slope * at.centres).sum(axis=2)
        maps = np.concatenate([(constant - 0.5 * d * math.log(2 * math.pi))[..., None], slope, squares], axis=2)
        if not fine.all():
            maps = np.where(fine[:, None, None], maps, 0.0)
        return fine, P, maps

    def _expect(self, maps: Array) -> tuple[Array, Array]:
        """The sums that mixtures lead to, and their log-likelihoods."""
        s, k, m = maps.shape
        F, w = self.rows.F, self.rows.w
        R = (maps.reshape(s * k, m) @ F).reshape(s, k, F.shape[1])
        top = normalise(R)
        if w is not None:
            R *= w
        heights = top.sum(axis=1) if w is None else top @ w
        return (R.reshape(s * k, -1) @ self.rows.Ft).reshape(s, k, m), heights

    def _slopes(self, at: _Parameters, P: Array, f: Array) -> Array:
        """Lengths of the steps of EM, to first order, in standard errors of complete data."""
        d, n = self.d, self.weight * at.weights
        c, zero = at.centres, f[..., 0]
        one = f[..., 1 : d + 1] - zero[..., None] * c  # about the centres
        if self.rows.full:
            two = f[..., d + 1 :][..., self.rows.place] - c[..., :, None] * one[..., None, :]
            two -= (one + zero[..., None] * c)[..., :, None] * c[..., None, :] + zero[..., None, None] * at.covariances
            first = ((P @ one[..., None])[..., 0] * one).sum(axis=2)
            A = P @ two
            second = np.einsum("skij,skji->sk", A, A)
        else:
            two = f[..., d + 1 :] - c * (2 * one + zero[..., None] * c) - zero[..., None] * at.covariances
            first, second = (P * one**2).sum(axis=2), ((P * two) ** 2).sum(axis=2)
        return np.asarray(np.sqrt(((zero**2 + first + 0.5 * np.maximum(second, 0.0)) / n).sum(axis=1)))

    def _mix(self, G: Array, f: Array, past: list[tuple[Array, Array, npt.NDArray[np.bool_]]]) -> Array:
        """The next sums to try: those that EM leads to, less what the differences so far explain of the residual."""
        scale, s, m = self._scale(G), len(G), len(past)
        D = np.stack([(a * scale).reshape(s, -1) for a, _, _ in past], axis=1)
        norms = np.sqrt(np.einsum("smi,smi->sm", D, D))
        counts = np.stack([c for _, _, c in past], axis=1) & (norms > 0)
        share = counts / np.where(counts, norms, 1.0)
        D *= share[..., None]
        H = D @ D.transpose(0, 2, 1) + np.where(counts, DAMPING, 1.0)[:, :, None] * np.eye(m)
        gamma = np.linalg.solve(H, D @ (f * scale).reshape(s, -1, 1))[..., 0] * share
        out = G.copy()
        for i, (_, b, _) in enumerate(past):
            out -= gamma[:, i, None, None] * b
        return out


@dataclass(eq=False)
class _Parameters:
    """Weights, centres and covariances of mixtures, the first axis that of starts."""

    weights: Array
    centres: Array
    covariances: Array

    def take(self, index: npt.NDArray[np.intp]) -> _Parameters:
        """Those of some starts."""
        return _Parameters(self.weights[index], self.centres[index], self.covariances[index])

    def choose(self, new: npt.NDArray[np.bool_], other: _Parameters) -> _Parameters:
        """Those of another where ``new``, else these."""
        if new.all():
            return other
        shape = (-1, *(1,) * (self.covariances.ndim - 1))
        return _Parameters(
            np.where(new[:, None], other.weights, self.weights),
            np.where(new[:, None, None], other.centres, self.centres),
            np.where(new.reshape(shape), other.covariances, self.covariances),
        )


def _is_definite(S: Array) -> bool:
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(S).all())
