"""All settings of the private moment: public, fixed for all data, one table for all aims."""

from __future__ import annotations

from dataclasses import dataclass, replace

from matrixdp.errors import ParameterError


@dataclass(frozen=True)
class Settings:
    """One field a setting. `python -m benchmarks.accuracy --ablation` measures what each is worth.

    Attributes
    ----------
    clip_factor : float
        Number of clipped records, relative to the number that balances clipping error and noise. Directions suffer less
        from clipping than variances do.
    first_count : float
        The balanced number for the first radius, in units of features/mu: there is no plan yet to derive it from.
    radius_share, usual_radius_share, least_radius_share : float
        Shares of ``mu^2`` for the counts of one radius: the largest, the largest with enough records, and the smallest.
        The budget is needed for the moments.
    count_precision : float
        features/mu records are this many standard deviations of a count's noise, if the shares allow: about as many are
        clipped.
    total_precision : float
        All records are this many standard deviations of a count's noise, if the shares allow: otherwise counts of few
        records are noise.
    search_precision : float
        Smallest number of records to search for, in standard deviations of a count's noise: below it, the bisection
        follows the noise.
    most_clipped : float
        Largest share of the records to search for: typical records should not be clipped.
    few_clipped : float
        Share of the records (times ``1 - 1/freedom``) below which a radius is not extrapolated: clipping so few costs
        less than a radius that is too long.
    first_bisections, second_bisections : int
        Number of counts for each radius: with more, each is noisier; with fewer, the bracket stays wide.
    first_span, second_span : float
        Largest over smallest radius of each search: the first must find data in a small part of their box; the second
        is centred at the expected length.
    lost_counts : float
        Noise of a count, as a share of the records, above which the first radius is public: counts would be lost in it.
    public_radius : float
        That radius, as a fraction of the longest possible record.
    coarse_share, coarse_counts, coarse_lost : float, int, float
        Share of ``mu^2`` for each of a few counts that then look for a much shorter radius, their largest number, and
        the noise of one, as a share of the records, above which none is taken.
    scarce : float
        ``features/(records mu)`` above which one moment gets the whole budget: a rough moment would be noise.
    doubtful : float
        ``records mu`` below which a regression goes on only if the rough moment shows a signal.
    signal : float
        Covariances of features and target must exceed their noise by this many standard deviations.
    rough_share : float
        Share of ``mu^2`` for the rough moment: enough to find the directions, and it is averaged with the final one.
    rough_ratio : float
        Square of the constant before each record of the rough moment, in units of the squared radius: with a smaller
        one the mean has more noise, with a larger one everything else.
    least_ratio : float
        Smallest such ratio for the final moment, where the centre is close to the mean.
    about_mean : bool
        Whether errors about the mean count rather than about the midpoint. About the midpoint, the final ratio is
        raised to balance the error of a mean that lies far from it.
    whole : float
        Squared first radius, in units of that of the box, above which the rough moment is of the whole box.
    plain_share : float
        Least share of what remains for a moment of the whole box, times the squared number of features; none for aims
        that need directions alone.
    check_share, check_below : float
        Least such share where ``features/(records mu)`` is below the second number: noise is small then, and what
        clipping takes may be more.
    only_ratio : float
        Square of the constant before each record where there is one feature, and a moment of its box is all.
    scaled : bool
        Whether errors count relative to the standard deviations of the features, as for correlations.
    one_sided : float
        How much of what clipping takes is expected to lie on one side of the centre, and so to move the mean.
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
    tail_limit : float
        Upper limit of that largest excess, in units of the squared radius: few records are longer.
    far_share : float
        Share of ``mu^2`` for the mean excess of far longer records, which decides whether their moment is measured.
    far_noise, far_least : float
        Noise of that excess, as a part of the mean squared length: sets the largest excess of one record. If that is
        less than the second number of squared radii, nothing is measured.
    far_evidence : float
        Standard deviations by which it must exceed what is usual.
    astray : float
        Part of it that is expected to lie along other directions than the covariance of clipped records.
    shrink : bool
        Whether eigenvalues are shrunk: it reduces the error of variances, but not of components.
    level : float
        How far eigenvalues that may be noise alone are moved to their mean: part of their differences is real.
    """

    clip_factor: float = 1.5
    first_count: float = 1.5
    radius_share: float = 0.06
    usual_radius_share: float = 0.03
    least_radius_share: float = 0.006
    count_precision: float = 4 / 3
    total_precision: float = 12.0
    search_precision: float = 2.25
    most_clipped: float = 0.5
    few_clipped: float = 0.075
    first_bisections: int = 5
    second_bisections: int = 4
    first_span: float = 64.0
    second_span: float = 16.0
    scarce: float = 0.5
    doubtful: float = 50.0
    signal: float = 0.5
    lost_counts: float = 0.25
    public_radius: float = 0.5
    coarse_share: float = 0.04
    coarse_counts: int = 3
    coarse_lost: float = 0.5
    rough_share: float = 0.15
    rough_ratio: float = 1 / 8
    least_ratio: float = 1 / 16
    about_mean: bool = False
    whole: float = 0.8
    plain_share: float = 2.0
    check_share: float = 0.1
    check_below: float = 0.002
    only_ratio: float = 0.2
    scaled: bool = False
    one_sided: float = 0.3
    floor: float = 0.2
    pull: float = 0.4
    tail_share: float = 0.02
    tail_noise: float = 0.15
    tail_limit: float = 1.25
    far_share: float = 0.0
    far_noise: float = 0.06
    far_least: float = 1.0
    far_evidence: float = 1.5
    astray: float = 0.5
    shrink: bool = True
    level: float = 0.5


_COVARIANCE = Settings()
_DIRECTIONS = replace(_COVARIANCE, clip_factor=4.0, scarce=1.0, floor=1.0, pull=0.0, about_mean=True)
_DIRECTIONS = replace(_DIRECTIONS, tail_share=0.0, plain_share=0.0)
_CORRELATION = replace(_COVARIANCE, clip_factor=4.0, floor=1.0, pull=0.0, about_mean=True, plain_share=0.0, scaled=True)
SETTINGS = {
    "covariance": _COVARIANCE,
    "correlation": _CORRELATION,
    "components": replace(_DIRECTIONS, shrink=False, far_share=0.02),
    "regression": _DIRECTIONS,
}


def settings_for(aim: str) -> Settings:
    """Settings for 'covariance', 'correlation', 'components' or 'regression'."""
    if aim not in SETTINGS:
        raise ParameterError(f"aim must be one of {', '.join(SETTINGS)}, got {aim!r} instead.")
    return SETTINGS[aim]
