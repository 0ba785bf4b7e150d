"""Private covariance, principal components and regression, as scikit-learn estimators.

Beside each estimator stands a pure function. `docs/estimators.md` has the recipe and its proofs.
"""

from matrixdp.estimators.base import PrivateEstimator, RepeatedFitWarning
from matrixdp.estimators.covariance import PrivateCovariance
from matrixdp.estimators.kernel import FourierFeatures, PrivateKernelRidge
from matrixdp.estimators.moment import PrivateMoment, private_moment
from matrixdp.estimators.pca import Components, PrivatePCA, principal_components
from matrixdp.estimators.regression import PrivateLinearRegression, PrivateRidge, solve_regression
from matrixdp.estimators.scaler import PrivateScaler, Scales, private_scales
from matrixdp.estimators.spending import Step

__all__ = [
    "Components",
    "FourierFeatures",
    "PrivateCovariance",
    "PrivateEstimator",
    "PrivateKernelRidge",
    "PrivateLinearRegression",
    "PrivateMoment",
    "PrivatePCA",
    "PrivateRidge",
    "PrivateScaler",
    "RepeatedFitWarning",
    "Scales",
    "Step",
    "principal_components",
    "private_moment",
    "private_scales",
    "solve_regression",
]
