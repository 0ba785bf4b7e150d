"""All settings of the private moment: public, fixed for all data, one table for all aims; and when to use it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from matrixdp.checks import check_integer, check_number
from matrixdp.errors import ParameterError


@dataclass(frozen=True)
class Settings:
    """The settings of a fit. `python -m benchmarks.accuracy --ablation` measures what each is worth.

    Shares are of ``mu^2``; ratios are squares of the constant before each record, in units of the squared radius.
    """

    clip_factor: float = 1.5  # clipped records, over the number that balances noise and clipping; directions bear more
    radius_share: float = 0.03  # for the counts of one radius: the budget is needed for the moments
    bisections: int = 5  # counts for each radius: with more, each is noisier; with fewer, the bracket stays wide
    lost_counts: float = 0.25  # noise of a count, as a share of the records, above which the first radius is public
    public_radius: float = 0.5  # that radius, as a fraction of the longest possible record
    locate_share: float = 0.0  # for means and spreads of all features, which give the first coordinates
    prior: float = 0.33  # of these means, in halfwidths about the midpoint: answers that are noise change little
    filled: float = 0.0  # mean square of located records, times 1 + 2/features, above which no ball is smaller
    scarce: float = 0.5  # features/(records mu) above which one moment gets everything: a rough one would be noise
    rough_share: float = 0.15  # enough to find the directions, and the rough moment is averaged with the final one
    rough_moments: int = 1  # located records have a second one, along the directions of the first
    ratio: float = 1 / 8  # least of the final moment; a smaller one adds noise to the mean, a larger one to the rest
    about_mean: bool = False  # errors about the mean count; if not, a mean far from the midpoint raises the final ratio
    one_sided: float = 0.3  # how much of what clipping takes lies on one side of the centre, and so moves the mean
    scaled: bool = False  # errors count relative to the standard deviations of features, as for correlations
    floor: float = 0.2  # added to rough variances, in deviations of their noise: too small ones stretch coordinates
    pull: float = 0.4  # deviations by which the centre moves to the midpoint, on whose side most long records lie
    tail_share: float = 0.02  # for the mean excess of clipped records, which is added back: only variances need it
    tail_noise: float = 0.15  # of the excess, relative to that of the final moment: sets the largest of one record
    clipping: float = 0.3  # its expected error, over the largest it can have; 0 for no moment of the box beside
    shrink: bool = True  # eigenvalues are shrunk: it reduces the error of variances, but not of components
    level: float = 0.5  # how far eigenvalues that may be noise move to their mean: part of their differences is real


_DIRECTIONS = Settings(
    locate_share=0.02, rough_moments=2, clip_factor=4.0, pull=0.0, about_mean=True, clipping=0.0, floor=1.0
)
_LOCATED = Settings(locate_share=0.02, rough_moments=2, about_mean=True, floor=1.0, ratio=1 / 5)
SETTINGS = {
    "second moment": Settings(locate_share=0.02, filled=0.8),
    "covariance": _LOCATED,
    "means": replace(_LOCATED, ratio=1.0, clipping=0.0),
    "correlation": replace(_DIRECTIONS, scaled=True),
    "components": replace(_DIRECTIONS, tail_share=0.0, shrink=False),
    "regression": replace(_DIRECTIONS, tail_share=0.0),
}


def settings_for(aim: str) -> Settings:
    """Settings for 'means', 'second moment', 'covariance', 'correlation', 'components' or 'regression'."""
    if aim not in SETTINGS:
        raise ParameterError(f"aim must be one of {', '.join(SETTINGS)}, got {aim!r} instead.")
    return SETTINGS[aim]


class MethodChoice(NamedTuple):
    """'adaptive' or 'plain', and why, as a sentence."""

    method: str
    reason: str


def choose_method(features: int, records: int, mu: float, aim: str, counted: str = "records") -> MethodChoice:
    """Method with the smaller expected error for so many features and records.

    Parameters
    ----------
    features, records : int
        Public numbers.
    mu : float
        Gaussian differential privacy of the whole release; where k rows of a person count, over k.
    aim : str
        As for `private_moment`.
    counted : str
        What `records` is the number of: 'records', 'people', or 'rows' of people.

    Privacy
    -------
    A function of public numbers alone.

    Examples
    --------
    >>> choose_method(10, 5000, 0.2, "covariance").method
    'adaptive'
    >>> choose_method(1, 5000, 0.2, "covariance").method
    'plain'
    """
    settings_for(aim)
    check_integer(features, "features", at_least=1)
    check_integer(records, "records", at_least=1)
    check_number(mu, "mu", above=0)
    if features == 1:
        return MethodChoice(
            "plain", "With one feature there are no directions to learn, and a plain release has no bias."
        )
    why = "noise along learned directions is expected to be smaller."
    return MethodChoice("adaptive", f"With {features} features and {records} {counted}, {why}")
