"""Private covariance, principal components and regression, as scikit-learn estimators.

The functions behind them are in `matrixdp.adaptive`; `docs/estimators.md` has the recipe and its proofs.
"""

from matrixdp.estimators.base import PrivateEstimator, RepeatedFitWarning
from matrixdp.estimators.covariance import PrivateCovariance
from matrixdp.estimators.kernel import PrivateKernelRidge
from matrixdp.estimators.pca import PrivatePCA
from matrixdp.estimators.regression import PrivateLinearRegression, PrivateRidge
from matrixdp.estimators.scaler import PrivateScaler

__all__ = [
    "PrivateCovariance",
    "PrivateEstimator",
    "PrivateKernelRidge",
    "PrivateLinearRegression",
    "PrivatePCA",
    "PrivateRidge",
    "PrivateScaler",
    "RepeatedFitWarning",
]
