"""Private covariance, principal components, regression and discriminant analysis, as scikit-learn estimators.

The functions behind them are in `matrixdp.adaptive`; `docs/adaptive.md` describes the method, and
`docs/adaptive-privacy.md` proves its guarantee.
"""

from matrixdp.estimators.base import MomentEstimator, PrivateEstimator
from matrixdp.estimators.covariance import PrivateCovariance, PrivatePCA, PrivateScaler
from matrixdp.estimators.discriminant import PrivateLinearDiscriminant
from matrixdp.estimators.regression import PrivateKernelRidge, PrivateLinearRegression, PrivateRidge
from matrixdp.estimators.search import RepeatedFitWarning, SearchCost, search_cost

__all__ = [
    "MomentEstimator",
    "PrivateCovariance",
    "PrivateEstimator",
    "PrivateKernelRidge",
    "PrivateLinearDiscriminant",
    "PrivateLinearRegression",
    "PrivatePCA",
    "PrivateRidge",
    "PrivateScaler",
    "RepeatedFitWarning",
    "SearchCost",
    "search_cost",
]
