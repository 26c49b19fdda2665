"""A handful of rows, where chance starts weigh most: the optimum of scikit-learn with its reg_covar."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Peer

import gramian
from gramian import GaussianMixture
from gramian.mixture import Maximiser, MixtureRows, Prior, fit_mixture

X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("start", ["auto", "kmeans"])
def test_six_rows_in_two_columns(covariance, start):
    ours = GaussianMixture(2, covariance_type=covariance, reg_covar=1e-6, init_params=start, random_state=0).fit(X)
    peer = Peer(2, covariance_type=covariance, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(ours.means_[:, 0]), np.sort(peer.means_[:, 0]), atol=1e-4)


@pytest.mark.parametrize("model", ["EEI", "EEV", "VEV", "EVV", "VVV"])
def test_groups_that_do_not_vary_in_a_column_have_collapsed_whatever_their_axes(model):
    """A column that is 0 in one group and 1 in the other, as the transmission in mtcars."""
    rng = np.random.default_rng(3)
    scales = np.array([6.0, 120.0, 68.0, 0.5, 1.0, 1.8, 0.3, 0.7, 0.6, 2.0])
    correlated = rng.normal(size=(32, 10)) @ (np.eye(10) + 0.4 * rng.normal(size=(10, 10)))
    group = rng.permutation(np.repeat([0, 1], [19, 13]))
    data = MixtureRows.of(gramian.open(np.insert(correlated * scales + 20.1, 8, group, axis=1)))
    maximise = Maximiser(model, Prior.floor(data))
    start = maximise(data.assign(group, 2, model))
    fit = fit_mixture(data, start, maximise, max_iter=50)
    assert {(item.component, item.kind) for item in fit.diagnoses} == {(0, "collapsed"), (1, "collapsed")}
