"""A picture of trade-off curves: the one that is claimed beside the one that was measured."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from matrixdp.audit.measure import Measurement
from matrixdp.privacy import Privacy
from matrixdp.report.svg import Drawing, element, make_image, text
from matrixdp.types import Floats

_SIDE = 320.0
_LEFT, _TOP = 44.0, 8.0


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
    elements = [
        element("rect", x=_LEFT, y=_TOP, width=_SIDE, height=_SIDE, class_="p-frame"),
        _line(np.array([[0.0, 1.0], [1.0, 0.0]]), "p-guide"),
        _line(measured.curve, "p-other p-line"),
        text(_LEFT + _SIDE / 2, _TOP + _SIDE + 34, "false positive rate", text_anchor="middle"),
        text(-_TOP - _SIDE / 2, 12, "false negative rate", text_anchor="middle", transform="rotate(-90)"),
        *_draw_key(40, "p-other p-line", "measured"),
        *_draw_key(58, "p-guide", "no information"),
    ]
    if measured.claim is not None:
        curve = np.column_stack([alpha, tradeoff(measured.claim, alpha)])
        elements += [
            _line(curve, "p-mark p-line"),
            *_draw_key(22, "p-mark p-line", "claimed: no test may be below"),
        ]
    for value in (0.0, 0.5, 1.0):
        elements += [
            text(_LEFT + value * _SIDE, _TOP + _SIDE + 16, f"{value:g}", size=11, text_anchor="middle"),
            text(_LEFT - 6, _TOP + (1 - value) * _SIDE + 4, f"{value:g}", size=11, text_anchor="end"),
        ]
    drawing = Drawing(tuple(elements), _LEFT + _SIDE, _TOP + _SIDE + 40)
    return make_image([drawing], "Trade-off curve, claimed and measured", str(measured), inline=inline)


def _draw_key(y: float, kind: str, words: str) -> list[str]:
    """A line of the legend."""
    line = element("line", x1=_LEFT + 88, x2=_LEFT + 112, y1=_TOP + y - 4, y2=_TOP + y - 4, class_=kind)
    return [line, text(_LEFT + 120, _TOP + y, words)]


def _line(points: Floats, kind: str) -> str:
    places = " ".join(f"{_LEFT + x * _SIDE:.1f},{_TOP + (1 - y) * _SIDE:.1f}" for x, y in points)
    return element("polyline", points=places, class_=kind)
