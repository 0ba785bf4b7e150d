"""All settings of the private moment: fixed for all data, and chosen without them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from matrixdp.errors import ParameterError


@dataclass(frozen=True)
class Settings:
    """One field a setting; `SETTINGS` has the values for each aim."""

    # Steps 1 and 4: clipping norms
    clip_factor: float = 1.5  # records clipped, as a multiple of the number that balances clipping and noise
    first_count: float = 1.5  # that number for the first radius, times features/mu
    surplus_factor: float = 4 / 3  # more records are clipped where their excess is measured
    radius_share: float = 0.06  # largest share of mu^2 for the counts of one radius
    least_radius_share: float = 0.1  # smallest, as a fraction of the largest
    near_radius_share: float = 0.5  # largest for the precision of expected counts, as a fraction of the largest
    count_precision: float = 3.0  # an expected count should be as many standard deviations of its noise
    expected_count: float = 2.25  # expected count, times features/mu
    total_precision: float = 12.0  # all records should be as many standard deviations of a count's noise
    search_precision: float = 2.25  # least count to search for, in standard deviations of its noise
    most_clipped: float = 0.5  # largest share of the records to search for
    few_clipped: float = 0.075  # share of clipped records below which a radius is not extrapolated
    lost_counts: float = 0.25  # counts with this noise, as a share of the records, are not made
    public_radius: float = 0.5  # radius then, as a fraction of the longest record
    first_steps: int = 5  # bisections for the first radius
    first_span: float = 64.0  # longest over shortest radius of the first search
    second_steps: int = 4  # bisections for the second radius
    second_span: float = 16.0  # longest over shortest radius of the second search
    extrapolate: bool = True  # whether a radius is moved on from the count searched for to the one wanted

    # Step 2: rough moment
    scarce: float = 0.5  # features/(records mu) above which one moment takes everything
    rough_share: float = 0.15  # largest share of mu^2 for the rough moment
    least_rough_share: float = 0.06  # smallest
    rough_scale: float = 0.6  # in between, times sqrt(features/(records mu))
    rough_ratio: float = 0.125  # squared constant before each record, in squares of the radius

    # Step 3: plan
    rough_level: float = 1.0  # how far eigenvalues that may be noise are moved to their mean
    floor: float = 0.2  # added to rough variances, in standard deviations of their noise
    power: float = 0.22  # coordinates are divided by variances to this power
    pull: float = 0.4  # how far the centre moves to the midpoint, in standard deviations of the data
    about_mean: bool = False  # whether errors of the mean do not count
    least_ratio: float = 2.0**-4  # squared constant before each record, in squares of the radius, from
    most_ratio: float = 2.0  # to
    ratio_step: float = 0.25  # in steps of its logarithm to the base 2
    lopsided: float = 0.5  # fraction of the worst-case mean shift that clipping is assumed to cause
    stretch_targets: bool = False  # whether targets are given more room in the ball
    least_target_weight: float = 1.5  # least square of the stretch

    # Step 4: excess of clipped records
    tail_share: float = 0.02  # share of mu^2 for the excess
    tail_noise: float = 0.15  # its noise, as a fraction of that of the final moment
    tail_limit: float = 1.25  # largest excess of one record, in squares of the radius
    restore_second: bool = False  # whether the second moment about the midpoint always gets it back

    # Step 5: post-processing
    shrink: bool = True  # whether eigenvalues are shrunk
    final_level: float = 0.5  # how far eigenvalues that may be noise are moved to their mean
    mean_growth: float = 0.1  # growth of the mean beside the centre, times the share of clipped records
    spikes: bool = True  # whether a single moment keeps only eigenvalues that stand out from noise
    wiener: bool = True  # whether a single moment is shrunk by the noise in its trace

    # Regression
    noise_ridge: float = 0.3  # ridge, times noise_std sqrt(features)
    posterior_weight: float = 0.5  # weight of the posterior mean beside the ridge solution
    prior_levels: int = 5  # numbers of prior variances, from all of the target's down by factors of two
    posterior_rounds: int = 3  # iterations for noise that depends on the coefficients


_COVARIANCE = Settings()
SETTINGS = {
    "covariance": _COVARIANCE,
    "components": replace(
        _COVARIANCE,
        clip_factor=4.0,
        rough_share=0.2,
        least_rough_share=0.2,
        floor=1.0,
        power=0.25,
        pull=0.0,
        about_mean=True,
        tail_share=0.0,
        shrink=False,
    ),
    "regression": replace(
        _COVARIANCE,
        clip_factor=4.0,
        scarce=1.0,
        rough_share=0.2,
        least_rough_share=0.2,
        rough_level=0.5,
        floor=1.0,
        power=0.5,
        pull=0.0,
        about_mean=True,
        stretch_targets=True,
        tail_share=0.0,
        final_level=0.0,
        mean_growth=0.0,
        spikes=False,
    ),
}


def settings_for(aim: str) -> Settings:
    """The settings for 'covariance', 'components' or 'regression'."""
    if aim not in SETTINGS:
        raise ParameterError(f"aim must be one of {', '.join(SETTINGS)}, got {aim!r} instead.")
    return SETTINGS[aim]
