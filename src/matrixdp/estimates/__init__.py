"""Mean, covariance, correlation, components and regression of a table by the method that suits it best.

`release_covariance` chooses between an adaptive fit (`matrixdp.adaptive`) and a plain release of moments by a public
rule. Both give a `CovarianceRelease`, which answers the same questions.
"""

from matrixdp.estimates.adaptive_release import AdaptiveRelease
from matrixdp.estimates.plain_release import PlainRelease
from matrixdp.estimates.reading import read_release
from matrixdp.estimates.release_covariance import release_covariance
from matrixdp.estimates.result import AIMS, METHODS, CovarianceRelease, choose_for

__all__ = [
    "AIMS",
    "METHODS",
    "AdaptiveRelease",
    "CovarianceRelease",
    "PlainRelease",
    "choose_for",
    "read_release",
    "release_covariance",
]
