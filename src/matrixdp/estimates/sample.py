"""A made-up adaptive release, to try whether a release can be shown before anything is charged."""

from __future__ import annotations

import numpy as np

from matrixdp.adaptive.budget import Step
from matrixdp.adaptive.method import MethodChoice
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.settings import settings_for
from matrixdp.domain.bounds import Bounds
from matrixdp.estimates.adaptive_release import AdaptiveRelease
from matrixdp.estimates.result import find_recipe
from matrixdp.privacy import Neighbours, Privacy


def make_sample_release(
    bounds: Bounds, privacy: Privacy, records: int, neighbours: Neighbours, *, aim: str = "covariance"
) -> AdaptiveRelease:
    """A release of uncorrelated numbers that fill their bounds evenly, marked as a simulation. Reads no data.

    Examples
    --------
    >>> sample = make_sample_release(Bounds([0], [6]), Privacy(1, 1e-6), 100, Neighbours.REPLACE)
    >>> sample.moment.mean.tolist(), sample.moment.covariance.round(3).tolist()
    ([3.0], [[3.0]])
    """
    d, recipe = bounds.size, find_recipe(aim)
    settings_for(recipe)
    even = np.eye(d) / 3
    fitted = Fitted(
        mean=np.zeros(d),
        covariance=even,
        mean_std=np.full(d, 0.01),
        std=np.full((d, d), 0.01),
        unshrunk=even,
        noise_shape=np.eye(d),
        noise_std=0.01,
        radius=1.0,
        learned=True,
    )
    steps = (Step("moment", privacy.mu, 1.0, 1),)
    moment = PrivateMoment(
        fitted=fitted,
        bounds=bounds,
        privacy=privacy,
        neighbours=neighbours,
        mu=privacy.mu,
        steps=steps,
        simulation=True,
        records=records,
        aim=recipe,
    )
    return AdaptiveRelease(moment, MethodChoice("adaptive", "This is an example."), aim)
