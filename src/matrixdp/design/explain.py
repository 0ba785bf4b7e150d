"""A design in a dozen lines that a statistician understands."""

from __future__ import annotations

import numpy as np

from matrixdp.design.design import Design

_ROWS = 8


def explain(design: Design) -> str:
    """What is released, with what guarantee and noise, and what the alternatives are."""
    query = design.query
    lines = [
        f"{type(query).__name__} of shape {query.shape[0]} x {query.shape[1]}",
        f"  guarantee    ({design.privacy.epsilon:g}, {design.privacy.delta:.3g})-DP, {query.neighbours} neighbours, "
        f"protects {query.protects}",
        f"  spends       mu {design.distance:.6g} of {design.mu:.6g}, which is epsilon {design.epsilon:.4g}; "
        + _tightness(design),
        f"  calibration  {design.calibration}" + _others(design),
        f"  noise        std {_range(design)}, root mean square {design.rmse:.4g}",
        f"  directions   {_directions(design)}, allocation {design.allocation.rule}",
        *_table(design),
        f"  gain         {_gain(design)}",
    ]
    return "\n".join(lines)


def _tightness(design: Design) -> str:
    if design.exact:
        return "exact"
    return f"an upper bound (neighbours at {design.attained / design.distance:.2%} of it are known)"


def _others(design: Design) -> str:
    ratios = {name: rmse / design.rmse for name, rmse in design.alternatives().items() if name != design.calibration}
    if not ratios:
        return ""
    return "; noise with " + ", ".join(f"{name} {ratio:.3g}x" for name, ratio in ratios.items())


def _range(design: Design) -> str:
    std = (
        design.std[design.std > 0]
        if design.query.public is not None
        else design.std[:1]
        if design.std.strides[0] == 0
        else design.std
    )
    return f"{std.min():.4g}" if std.min() == std.max() else f"{std.min():.4g} to {std.max():.4g}"


def _directions(design: Design) -> str:
    if design.flat:
        return "one covariance for all entries"
    return "standard basis" if design.directions is None else "given basis"


def _table(design: Design) -> list[str]:
    """Share and standard deviation of the first few directions."""
    if design.flat:
        return []
    side = design.rowcov if design.query.side == "rows" else design.colcov
    variances = side.variances[-design.query.features :]
    loss = design.query.extent(design.directions) ** 2 / variances
    std = variances if design.query.side == "both" else np.sqrt(variances)
    names = design.query.names if design.directions is None else None
    rows = [
        f"    {names[i] if names else f'direction {i}':<24.24} {loss[i] / loss.sum():>6.1%} of the privacy loss, "
        f"noise std {std[i]:.4g}"
        for i in range(min(_ROWS, variances.size))
    ]
    return rows + ([f"    ... and {variances.size - _ROWS} more"] if variances.size > _ROWS else [])


def _gain(design: Design) -> str:
    if design.query.sensitivity.ball:
        return "none possible: the changes form a ball, so no directional noise beats isotropic noise"
    if not design.directional and design.calibration == "exact":
        return "1: the noise is isotropic; the changes do not form a ball, so an allocation can favour some of them"
    ratio = design.isotropic.std / np.where(design.std > 0, design.std, np.nan)
    best, worst = float(np.nanmax(ratio)), float(np.nanmin(ratio))
    return (
        f"{_times(design.gain)} than isotropic noise over all entries, relative to their range; "
        f"from {_times(best)} to {_times(worst)}"
    )


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x less noise" if ratio >= 1 else f"{1 / ratio:.3g}x more noise"
