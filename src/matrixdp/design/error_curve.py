"""The error that a design predicts against epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import to_floats
from matrixdp.design.design import Design
from matrixdp.display import format_number, load_pandas, render_card, render_note, render_table, short_repr
from matrixdp.errors import ParameterError
from matrixdp.plots import BLUE, ORANGE, open_axes
from matrixdp.privacy import Privacy
from matrixdp.types import Floats

_POINTS, _FACTOR = 9, 10.0  # by default, from a tenth of the design's epsilon to ten times of it


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Noise of the same design at several epsilons.

    Attributes
    ----------
    design : Design
    epsilons : float64 array of shape (k,)
        Increasing; all at the delta of the design.
    rmse : float64 array of shape (k,)
        Root mean square of the standard deviations of all entries.
    median_std : float64 array of shape (k,)
        Median of the standard deviations of the entries that have noise.
    relative_error : float64 array of shape (k,)
        Root mean square of the standard deviations, each over the largest absolute value that its entry can have.
    """

    design: Design
    epsilons: Floats
    rmse: Floats
    median_std: Floats
    relative_error: Floats

    __repr__ = short_repr

    def to_frame(self) -> Any:
        """A pandas data frame with one row an epsilon."""
        columns = {"rmse": self.rmse, "median_std": self.median_std, "relative_error": self.relative_error}
        pandas = load_pandas()
        return pandas.DataFrame(columns, index=pandas.Index(self.epsilons, name="epsilon"))

    def plot(self, *, ax: Any = None) -> Any:
        """The relative error against epsilon, both on logarithmic scales; returns matplotlib axes."""
        ax = open_axes(ax)
        ax.loglog(self.epsilons, self.relative_error, marker="o", color=BLUE)
        own = self.design.privacy.epsilon
        ax.plot([own], [self.design.relative_error], marker="o", markersize=9, color=ORANGE, linestyle="none")
        ax.annotate(
            f"this design, epsilon {own:g}", (own, self.design.relative_error), (8, 8), textcoords="offset points"
        )
        ax.set_xlabel(f"epsilon, at delta {self.design.privacy.delta:.3g}")
        ax.set_ylabel("noise, share of the largest value possible")
        ax.grid(visible=True, alpha=0.3)
        return ax

    def _repr_html_(self) -> str:
        columns = zip(self.epsilons, self.rmse, self.median_std, self.relative_error, strict=True)
        rows = [[format_number(x, 4) for x in row] for row in columns]
        head = ("epsilon", "root mean square", "median std", "share of the largest value possible")
        delta = self.design.privacy.delta
        note = render_note(f"standard deviations of the noise, at delta {delta:.3g}; no data were used")
        return render_card("Predicted error against epsilon", render_table(head, rows), note)


def error_curve(design: Design, epsilons: ArrayLike | None = None) -> ErrorCurve:
    """The error of a design if it had another epsilon; its query, delta, directions and allocation stay.

    Parameters
    ----------
    design : Design
    epsilons : array_like of shape (k,), optional
        By default nine, from a tenth of the design's own to ten times of it.

    Privacy
    -------
    Looks at no data and costs nothing.

    Examples
    --------
    >>> from matrixdp import Bounds, Identity, make_design
    >>> design = make_design(Identity(Bounds([0], [1]), records=100), Privacy(epsilon=1, delta=1e-6))
    >>> error_curve(design, [0.5, 1, 2]).rmse.round(2).tolist()
    [8.06, 4.22, 2.23]
    """
    if not isinstance(design, Design):
        raise ParameterError(f"design must be a Design, got {type(design).__name__} instead.")
    own = design.privacy.epsilon
    given = own * np.geomspace(1 / _FACTOR, _FACTOR, _POINTS) if epsilons is None else to_floats(epsilons, "epsilons")
    if given.ndim != 1 or not given.size:
        raise ParameterError(f"epsilons must be a vector of at least one number, got shape {given.shape} instead.")
    points = np.unique(given)
    others = [Privacy(float(epsilon), design.privacy.delta) for epsilon in points]
    found = [design if privacy == design.privacy else design.remade(privacy=privacy) for privacy in others]
    errors = [(one.rmse, np.median(one.distinct_std[one.distinct_std > 0]), one.relative_error) for one in found]
    return ErrorCurve(design, points, *np.array(errors).T)
