"""What partial_fit keeps between batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramian.estimators._mixture_fitting import name_results
from gramian.estimators._mixture_options import maximiser_of
from gramian.likelihood.mixture import Bins, Fit, Maximiser, Rows, Stepwise, diagnose
from gramian.likelihood.mixture.maximise import step_length
from gramian.results import Optimum

__all__ = ["Stream", "changes", "refuse_changes"]


def changes(model: Any) -> list[str]:
    """The parameters that decide what kind of mixture is fitted and that are not those of the fit any more."""
    mixture = model._fit.mixture
    found = ["n_components"] if model.n_components != mixture.n_components else []
    if model.covariance_type != model._kind:
        found.append("covariance_type")
    return found


def refuse_changes(model: Any) -> None:
    """Refuse to go on from a fit of another kind."""
    for name in changes(model):
        before = model._kind if name == "covariance_type" else model._fit.mixture.n_components
        raise ValueError(
            f"{name} was {before!r} in the batches so far and is {getattr(model, name)!r} now: batches go on with one "
            "kind of mixture. Set it back, or start anew with fit or a clone."
        )


class Stream:
    """Statistics of the batches so far, and the mixture they have led to."""

    def __init__(self, first: Fit, maximiser: Maximiser, decay: float) -> None:
        self.steps = Stepwise(maximiser, decay)
        self.mixture = first.mixture
        self.heights = [first.log_likelihood / first.statistics.weight]
        self.steps.step(first.mixture, first.statistics)  # the first batch, at its own optimum

    def take(self, model: Any, data: Rows | Bins) -> None:
        """One batch: its statistics at the mixture, and the next mixture; named on the estimator."""
        at = self.mixture
        batch = data.expect(at)
        if model.reg_covar:  # is a variance: its weight in the sums grows with theirs
            self.steps.maximiser = maximiser_of(model, replace(data, weight=self.steps.seen + data.weight))
        self.mixture = self.steps.step(at, batch)
        self.heights.append(batch.log_likelihood / batch.weight)
        length = step_length(at, self.mixture, batch.weight)
        optimum = Optimum(
            "stepwise EM over batches",
            "partial_fit",
            len(self.heights),
            len(self.heights),
            -np.array(self.heights) * batch.weight,
            length,
            model.tol,
            ("the gradient is the last step, in standard errors of the last batch; the log-likelihood is its own",),
        )
        found = diagnose(self.mixture, batch, self.steps.maximiser.prior)
        name_results(model, [Fit(self.mixture, batch, optimum, found)], batch.weight, self.steps.maximiser)
