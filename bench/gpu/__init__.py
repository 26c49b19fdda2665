"""Figures on a graphics card: ``python -m bench.gpu``."""
