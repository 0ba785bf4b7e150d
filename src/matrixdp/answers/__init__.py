"""Answers: statistics computed from a released matrix by post-processing, with error bars."""

from matrixdp.answers.moments import Estimate, correlation, covariance, mean, second_moment
from matrixdp.answers.psd import nearest_psd, shrink_psd

__all__ = ["Estimate", "correlation", "covariance", "mean", "nearest_psd", "second_moment", "shrink_psd"]
