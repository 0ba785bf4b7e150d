"""Answers: statistics computed from a released matrix by post-processing, with error bars."""

from matrixdp.answers.moments import Estimate, correlation, covariance, mean
from matrixdp.answers.psd import nearest_psd, shrink_psd

__all__ = ["Estimate", "correlation", "covariance", "mean", "nearest_psd", "shrink_psd"]
