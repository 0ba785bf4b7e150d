"""Exact noise: random bits, Gaussian integers and the matrix-variate Gaussian."""

from matrixdp.noise.gaussian import draw_gaussian, draw_normal
from matrixdp.noise.matrix import Covariance, MatrixGaussian
from matrixdp.noise.stream import BlockKey, Stream
from matrixdp.noise.structure import EdgeNoise, NoiseStructure, Squares

__all__ = ["BlockKey", "Covariance", "EdgeNoise", "MatrixGaussian", "NoiseStructure", "Squares", "Stream"]
__all__ += ["draw_gaussian", "draw_normal"]
