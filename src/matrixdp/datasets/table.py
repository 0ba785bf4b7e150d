"""A data set as a table of numbers, with where it came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers.

    Attributes
    ----------
    name : str
    columns : tuple of str
    values : float64 array of shape (records, columns)
    origin : str
        'file', 'cache', 'download', or 'simulated' for a stand-in that no one ever measured.
    """

    name: str
    columns: tuple[str, ...]
    values: Floats
    origin: str

    @property
    def simulated(self) -> bool:
        """Whether it is a stand-in; whatever is computed from it must say so."""
        return self.origin == "simulated"

    def take(self, *columns: str) -> Floats:
        """The named columns, of shape (records, len(columns)).

        Examples
        --------
        >>> Table("toy", ("a", "b"), np.array([[1.0, 2.0], [3.0, 4.0]]), "file").take("b").tolist()
        [[2.0], [4.0]]
        """
        unknown = [name for name in columns if name not in self.columns]
        if unknown:
            raise ParameterError(f"columns must be among {', '.join(self.columns)}, got {', '.join(unknown)} instead.")
        return self.values[:, [self.columns.index(name) for name in columns]]


def scale_to_unit(values: Floats) -> Floats:
    """Each column moved and stretched to [0, 1] by its own least and largest value.

    The paper's experiments do this, so they are repeated with it. A real release never would: the range of private
    data is private.

    Examples
    --------
    >>> scale_to_unit(np.array([[2.0], [4.0], [3.0]])).ravel().tolist()
    [0.0, 1.0, 0.5]
    """
    low, high = values.min(axis=0), values.max(axis=0)
    return np.asarray((values - low) / (high - low))
