"""A data set as a table of numbers, with its origin."""

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
        'file', 'cache', 'download' or 'simulated'.
    """

    name: str
    columns: tuple[str, ...]
    values: Floats
    origin: str

    @property
    def simulated(self) -> bool:
        """Whether it is simulated; results computed from it must be marked."""
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
    """Each column scaled to [0, 1] by its own minimum and maximum.

    As in the paper's experiments. A real release must not do this: the range of private data is private.

    Examples
    --------
    >>> scale_to_unit(np.array([[2.0], [4.0], [3.0]])).ravel().tolist()
    [0.0, 1.0, 0.5]
    """
    low, high = values.min(axis=0), values.max(axis=0)
    return np.asarray((values - low) / (high - low))
