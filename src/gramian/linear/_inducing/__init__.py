"""The steps of an inducing-point regression, one file each; :mod:`gramian.linear.inducing` puts them together."""
