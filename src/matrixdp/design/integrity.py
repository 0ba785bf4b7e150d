"""Whether a design is what `make_design` makes: its parts fit together, and its guarantee follows from its noise."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from matrixdp.design.allocation import Allocation
from matrixdp.design.calibration import CALIBRATIONS
from matrixdp.design.grid import Grid, fit_grid
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.structure import NoiseStructure
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery

if TYPE_CHECKING:
    from matrixdp.design.design import Design


def check_integrity(design: Design) -> None:
    """Raise a `ParameterError` unless the stored distance follows from query and noise, and the budget covers it."""
    if not _fits_together(design):
        raise ParameterError("the parts of the design do not fit together; it was altered.")
    with np.errstate(all="ignore"):
        ideal = design.ideal_distance()
        grid = fit_grid(design.query, design.noise, ideal.value, flat=design.flat, structure=design.structure)
    stored = design.grid
    # Eigenvalues differ a little between machines, and so may certified bounds for rotated noise.
    certain = design.rowcov.directions is None and design.colcov.directions is None
    loose = 1e-6 if certain else 1e-4
    if (grid.bits, grid.limit) != (stored.bits, stored.limit) or not (
        stored.distance * (1 - loose) <= grid.distance <= stored.distance * (1 + 1e-12)
        and stored.distance <= design.mu
        and 0 <= design.attained <= (ideal.attained if certain else ideal.value) * (1 + 1e-6)
    ):
        raise ParameterError("the design's guarantee does not follow from its query and its noise; it was altered.")


def _fits_together(design: Design) -> bool:
    """Whether all fields have their types, and the covariances have the size of the answer."""
    number = int | float
    kinds: tuple[Any, ...] = (
        MatrixQuery,
        Privacy,
        number,
        str,
        Allocation,
        Covariance,
        Covariance,
        Grid,
        number,
        bool,
        NoiseStructure | None,
    )
    values = [getattr(design, item.name) for item in fields(design)]
    matching = all(isinstance(value, kind) for value, kind in zip(values, kinds, strict=True))
    if not matching or design.calibration not in CALIBRATIONS:
        return False
    height, width = design.query.shape
    if design.structure is not None:
        alike = not design.query.symmetric or design.rowcov.same_as(design.colcov)
        if design.flat or not alike or not design.query.structured or not design.structure.fits(design.query.shape):
            return False
    sizes = (height * width, 1) if design.flat else (height, width)
    whole = {type(design.grid.bits), type(design.grid.limit)} == {int}
    return whole and (design.rowcov.size, design.colcov.size) == sizes
