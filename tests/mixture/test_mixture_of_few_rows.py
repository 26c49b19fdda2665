"""A handful of rows, where chance starts weigh most: the optimum of scikit-learn with its reg_covar."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Peer

from gramian import GaussianMixture

X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("start", ["auto", "kmeans"])
def test_six_rows_in_two_columns(covariance, start):
    ours = GaussianMixture(2, covariance_type=covariance, reg_covar=1e-6, init_params=start, random_state=0).fit(X)
    peer = Peer(2, covariance_type=covariance, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(ours.means_[:, 0]), np.sort(peer.means_[:, 0]), atol=1e-4)
