"""Figures on a GPU: ``python -m bench.gpu``."""
