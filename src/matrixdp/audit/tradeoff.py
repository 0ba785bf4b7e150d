"""A picture of trade-off curves: the one that is claimed beside the one that was measured."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from matrixdp.audit.measure import Measurement
from matrixdp.privacy import Privacy
from matrixdp.report.svg import Area, Drawing, Scale, draw_key, make_image
from matrixdp.types import Floats

_SIDE = 320.0


def tradeoff(claim: Privacy | float, alpha: Floats) -> Floats:
    """Least false negative rate that a guarantee allows at each false positive rate.

    Parameters
    ----------
    claim : Privacy or float
        (epsilon, delta), or mu.
    alpha : float64 array of shape (n,)
        Between 0 and 1.

    Examples
    --------
    >>> tradeoff(1.0, np.array([0.0, 0.5, 1.0])).round(4).tolist()
    [1.0, 0.1587, 0.0]
    """
    if not isinstance(claim, Privacy):
        return np.asarray(ndtr(-ndtri(alpha) - claim))
    growth = math.exp(min(claim.epsilon, 700.0))
    lines = [1 - claim.delta - growth * alpha, (1 - claim.delta - alpha) / growth]
    return np.maximum(np.maximum(*lines), 0.0)


def draw_tradeoff(measured: Measurement, *, inline: bool = False) -> str:
    """SVG of the error rates of the best test that was found, and of the least that the claim allows.

    Parameters
    ----------
    measured : Measurement
    inline : bool
        For an HTML page.
    """
    alpha = np.concatenate([np.logspace(-4, -2, 40), np.linspace(0.01, 1, 100)])
    area, ticks = Area(Scale(0.0, 1.0), Scale(0.0, 1.0), 44.0, 8.0, _SIDE, _SIDE), (0.0, 0.5, 1.0)
    elements = [
        *area.axes(("false positive rate", "false negative rate"), (ticks, ticks)),
        area.line(np.array([[0.0, 1.0], [1.0, 0.0]]), "p-guide"),
        area.line(measured.curve.T, "p-other p-line"),
        *draw_key(area.left + 88, 48, "measured", "p-other p-line"),
        *draw_key(area.left + 88, 66, "no information", "p-guide"),
    ]
    if measured.claim is not None:
        elements.append(area.line(np.stack([alpha, tradeoff(measured.claim, alpha)]), "p-mark p-line"))
        elements += draw_key(area.left + 88, 30, "claimed: no test may be below", "p-mark p-line")
    drawing = Drawing(tuple(elements), area.left + _SIDE, area.top + _SIDE + 40)
    return make_image([drawing], "Trade-off curve, claimed and measured", str(measured), inline=inline)
