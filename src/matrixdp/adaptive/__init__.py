"""Adaptive fits: a part of the budget learns where the data lie, the rest measures them there.

Pure functions on NumPy arrays, without scikit-learn; `matrixdp.estimators` wraps them. `docs/adaptive.md` has the
method and its proofs.
"""

from matrixdp.adaptive.budget import Step
from matrixdp.adaptive.coordinates import FourierFeatures
from matrixdp.adaptive.error_bars import Description, Forecast, MomentErrors, error_bars, forecast
from matrixdp.adaptive.moment import Components, PrivateMoment, principal_components, private_moment
from matrixdp.adaptive.regression import solve_regression
from matrixdp.adaptive.scales import Scales, private_scales
from matrixdp.adaptive.settings import MethodChoice, choose_method

__all__ = [
    "Components",
    "Description",
    "Forecast",
    "FourierFeatures",
    "MethodChoice",
    "MomentErrors",
    "PrivateMoment",
    "Scales",
    "Step",
    "choose_method",
    "error_bars",
    "forecast",
    "principal_components",
    "private_moment",
    "private_scales",
    "solve_regression",
]
