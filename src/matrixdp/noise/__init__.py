"""Exact noise: random bits, Gaussian integers, the matrix-variate Gaussian; and exact sums of integers."""

from matrixdp.noise.covariance import Covariance
from matrixdp.noise.edges import EdgeNoise
from matrixdp.noise.gaussian import draw_gaussian, draw_normal
from matrixdp.noise.matrix import MatrixGaussian, apply_factors
from matrixdp.noise.stream import BlockKey, Stream
from matrixdp.noise.structure import NoiseStructure, Squares
from matrixdp.noise.sums import GramSum

__all__ = [
    "BlockKey",
    "Covariance",
    "EdgeNoise",
    "GramSum",
    "MatrixGaussian",
    "NoiseStructure",
    "Squares",
    "Stream",
    "apply_factors",
    "draw_gaussian",
    "draw_normal",
]
