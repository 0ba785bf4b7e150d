"""Differential privacy for matrices."""

from matrixdp.version import __version__

__all__ = ["__version__"]
