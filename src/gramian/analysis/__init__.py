"""What a PCA means and how far to trust it: functions on fitted models, and on spectra."""

__all__: list[str] = []
