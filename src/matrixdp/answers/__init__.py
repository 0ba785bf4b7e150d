"""Answers: what can be read off a noisy matrix at no further cost, with error bars."""

from matrixdp.answers.moments import Estimate, correlation, covariance, mean, nearest_psd

__all__ = ["Estimate", "correlation", "covariance", "mean", "nearest_psd"]
