"""All settings of the private moment: public, fixed for all data, one table for all aims."""

from __future__ import annotations

from dataclasses import dataclass, replace

from matrixdp.errors import ParameterError


@dataclass(frozen=True)
class Settings:
    """The settings of a fit. `python -m benchmarks.accuracy --ablation` measures what each is worth.

    Attributes
    ----------
    clip_factor : float
        Number of clipped records, relative to the number that balances clipping error and noise (features/mu for the
        first radius, where there is no plan yet to derive it from). Directions suffer less from clipping than variances
        do.
    radius_share : float
        Share of ``mu^2`` for the counts of one radius: the budget is needed for the moments.
    bisections : int
        Number of counts for each radius: with more, each is noisier; with fewer, the bracket stays wide.
    span : float
        Largest over smallest radius of each search: the first must find data in a small part of their box.
    search_precision : float
        Smallest number of records to search for, in standard deviations of a count's noise: below it, the bisection
        follows the noise.
    lost_counts : float
        Noise of a count, as a share of the records, above which the first radius is public: counts would be lost in it.
    public_radius : float
        That radius, as a fraction of the longest possible record.
    scarce : float
        ``features/(records mu)`` above which one moment gets the whole budget: a rough moment would be noise.
    rough_share : float
        Share of ``mu^2`` for the rough moment: enough to find the directions, and it is averaged with the final one.
    ratio : float
        Square of the constant before each record of a moment, in units of the squared radius: with a smaller one the
        mean has more noise, with a larger one everything else. The least one for the final moment.
    about_mean : bool
        Whether errors about the mean count rather than about the midpoint. About the midpoint, the final ratio is
        raised to balance the error of a mean that lies far from it.
    one_sided : float
        How much of what clipping takes is expected to lie on one side of the centre, and so to move the mean.
    scaled : bool
        Whether errors count relative to the standard deviations of the features, as for correlations.
    floor : float
        Added to the rough variances, in standard deviations of their noise: a variance that is too small by noise would
        stretch its coordinate.
    pull : float
        Distance by which the centre moves from the rough mean to the midpoint, in standard deviations of the data: the
        box extends further on that side, so most long records lie there.
    tail_share : float
        Share of ``mu^2`` for the mean excess of clipped records, which is added back: only variances need it.
    tail_noise : float
        Noise of the excess, relative to that of the final moment: sets the largest excess of one record.
    box : float
        Least share of what remains for a moment of the whole box, times the squared number of features: the fewer there
        are, the less is gained by clipping, and the more it can cost. None for aims that need directions alone.
    check_share, check_below : float
        Least share of what remains for that moment where ``features/(records mu)`` is below the second number: noise is
        small then, and what clipping takes may be more.
    shrink : bool
        Whether eigenvalues are shrunk: it reduces the error of variances, but not of components.
    level : float
        How far eigenvalues that may be noise alone are moved to their mean: part of their differences is real.
    """

    clip_factor: float = 1.5
    radius_share: float = 0.03
    bisections: int = 5
    span: float = 32.0
    search_precision: float = 2.25
    lost_counts: float = 0.25
    public_radius: float = 0.5
    scarce: float = 0.5
    rough_share: float = 0.15
    ratio: float = 1 / 8
    about_mean: bool = False
    one_sided: float = 0.3
    scaled: bool = False
    floor: float = 0.2
    pull: float = 0.4
    tail_share: float = 0.02
    tail_noise: float = 0.15
    box: float = 2.0
    check_share: float = 0.1
    check_below: float = 0.002
    shrink: bool = True
    level: float = 0.5


_COVARIANCE = Settings()
_CORRELATION = replace(_COVARIANCE, clip_factor=4.0, pull=0.0, about_mean=True, box=0.0, scaled=True, floor=1.0)
_REGRESSION = replace(_COVARIANCE, clip_factor=4.0, pull=0.0, about_mean=True, box=0.0, tail_share=0.0)
SETTINGS = {
    "covariance": _COVARIANCE,
    "correlation": _CORRELATION,
    "components": replace(_REGRESSION, shrink=False),
    "regression": _REGRESSION,
}


def settings_for(aim: str) -> Settings:
    """Settings for 'covariance', 'correlation', 'components' or 'regression'."""
    if aim not in SETTINGS:
        raise ParameterError(f"aim must be one of {', '.join(SETTINGS)}, got {aim!r} instead.")
    return SETTINGS[aim]
