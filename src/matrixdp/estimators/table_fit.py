"""One release of a table's moments, as the mean, covariance and joint moment that estimators are computed from."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from matrixdp.adaptive.error_bars import MomentErrors
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.regression import DRAWS, JointMoment, joint_moment
from matrixdp.adaptive.simulation import read_off
from matrixdp.answers.models import list_variables, pair_moments
from matrixdp.answers.noise_law import TableLaw, robust_spread
from matrixdp.answers.psd import nearest_psd
from matrixdp.answers.view import view_moments
from matrixdp.records.expanded_columns import ExpandedColumns
from matrixdp.release.result import Release
from matrixdp.types import Floats

_MANY = 200  # variables above which fewer draws of the noise must do for error bars of covariances
_FEW_DRAWS = 50


class TableFit:
    """The moments of a table, released once, for features and perhaps columns of targets that follow them.

    Means are over the records that have a value, covariances over those that have both. A target is a number, or a
    category with all levels. The `middle` and `half` the width of the bounds, of shape (d,), are 0 and 1 for a level.
    """

    def __init__(self, release: Release, features: ExpandedColumns, targets: tuple[str, ...] = ()) -> None:
        view, names = view_moments(release.matrix, release.design), [column.name for column in features.columns]
        self._view = view
        self._variables = list_variables(view, [*names, *targets], reference=names * features.reference)
        halves = dict(zip(view.numbers, view.halfwidths, strict=True))
        self.half = np.array([halves.get(name, 1.0) for name in self._variables.columns])
        self.middle = self._variables.middles(view)

    def _scaled(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of all variables, scaled by `half` about `middle`, for moments of shape (..., p, p)."""
        moments = pair_moments(replace(self._view, matrix=matrix), self._variables)
        return moments.mean / self.half, moments.covariance / np.multiply.outer(self.half, self.half)

    def draws(self, count: int = DRAWS) -> Iterator[tuple[Floats, Floats]]:
        """Scaled means and covariances with noise drawn again about the released moments."""
        for stack in self._view.law.stacks(self._view.matrix, count):
            yield from zip(*self._scaled(stack), strict=True)

    @cached_property
    def joint(self) -> JointMoment:
        """The joint moment of features and targets."""
        mean, covariance = self._scaled(self._view.matrix)
        places, observed, law = self._variables.values, self._variables.observed, self._view.law
        assert isinstance(law, TableLaw)
        scales, sizes = law.noise.scales, law.released[observed, observed]
        shares = np.maximum(self._view.read(observed, observed), np.sqrt(sizes))
        own = 1 / (scales[places] * self.half**2 * shares**2)
        # The noise of an entry has the variance 1/(2 s_i s_j), and that of the mean adds its product with the mean.
        shape = np.diag(own) + np.multiply.outer(mean, mean) / scales[0]
        mean_std = np.sqrt(law.released[places, observed] + (mean * self.half) ** 2 * sizes) / shares / self.half
        units, records = (self.middle, self.half), self._view.query.records
        return JointMoment(
            mean, covariance, mean_std, shape, math.sqrt(0.5), *units, records, math.inf, draws=self.draws
        )

    @cached_property
    def mean(self) -> Floats:
        """Mean of each variable within its bounds, of shape (d,)."""
        low = -np.equal(self._variables.names, self._variables.columns).astype(float)  # -1 for numbers, 0 for levels
        return np.asarray(self.middle + self.half * np.clip(self.joint.mean, low, 1.0))

    @cached_property
    def errors(self) -> MomentErrors:
        """Standard deviations of the noise: a plain release has no other errors, but that it is made possible."""
        draws = [read_off(mean, covariance, self.half) for mean, covariance in self.draws()]
        spreads = {name: robust_spread(np.array([draw[name] for draw in draws])) for name in draws[0]}
        return MomentErrors.in_units(spreads, self.half)

    @cached_property
    def covariance(self) -> Floats:
        """Covariances of all variables, of shape (d, d); positive semidefinite."""
        centre = self.joint.covariance
        first, second = np.zeros_like(centre), np.zeros_like(centre)
        count = DRAWS if len(centre) <= _MANY else _FEW_DRAWS
        for _, covariance in self.draws(count):
            first += covariance - centre
            second += (covariance - centre) ** 2
        std = np.sqrt(np.maximum(second / count - (first / count) ** 2, 0.0))
        return np.asarray(nearest_psd(centre, std) * np.multiply.outer(self.half, self.half))


def joint_of(fit: PrivateMoment | TableFit) -> JointMoment:
    """The joint moment of features and targets of a fit."""
    return fit.joint if isinstance(fit, TableFit) else joint_moment(fit)
