"""Many draws of the noise in the adjusted moments of a table at once, for the coordinates that an answer needs.

`ConsistentMoments` has the law: the share of the records, the means of the coordinates and the products of two of them
have independent noise. So only what is needed is drawn, and the same seed gives the same noise up to its scale.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.table_view import TableView
from matrixdp.types import Floats

_SEED = 0


class SimulatedNoise:
    """Noise of releases of the same law as that in a view of a table.

    Parameters
    ----------
    view : TableView
    count : int
        How many releases are simulated.
    """

    def __init__(self, view: TableView, count: int) -> None:
        self.view, self.count = view, count
        self._rng = np.random.default_rng(_SEED)  # the noise is simulated and public
        self._unit = np.sqrt(view.merged)
        self._law = view.consistent
        variance = self._law.size_variance * view.size_kept
        self.size = self._rng.standard_normal(count) * np.sqrt(variance) * self._unit
        self.squares = self._draw_squares()
        self.first = self._draw_first()

    def _draw_squares(self) -> Floats:
        """Noise in the squares of indicators and values, of shape (count, q)."""
        root = np.linalg.cholesky(self._law.square_covariance)
        return np.asarray(self._rng.standard_normal((self.count, len(root))) @ root.T * self._unit)

    def _draw_first(self) -> Floats:
        """Noise in the means of the coordinates, those of levels without that in the share of all records."""
        drawn = self._rng.standard_normal((self.count, len(self._law.first_row_precisions))) * self._unit
        drawn /= np.sqrt(self._law.first_row_precisions)
        drawn[:, self._law.observed] = self.squares[:, self._law.observed_squares]
        drawn[:, 0] = 0.0
        return self._law.centre(drawn.T).T

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Position of each coordinate among those whose squares are drawn, or -1."""
        places = np.full(self._law.layout.size, -1)
        places[self._law.own] = np.arange(self._law.own.size)
        return places

    def draw_block(self, chosen: NDArray[np.intp]) -> Floats:
        """Noise in the products of the constant and numbers, of shape (m, m, count).

        Parameters
        ----------
        chosen : int array of shape (m,)
            Coordinates, the constant first, then values and indicators of numbers; with a value also its indicator.
        """
        layout, m = self._law.layout, chosen.size
        where = layout.number_of[np.ix_(chosen, chosen)]
        block = np.empty((m, m, self.count))
        below = np.tril_indices(m, -1)
        drawn = self._rng.standard_normal((below[0].size, self.count))
        drawn *= self._unit / np.sqrt(self._law.noise.precisions[where[below]])[:, None]
        block[below] = drawn
        block[below[::-1]] = drawn
        block[0] = block[:, 0] = self.first[:, chosen].T
        block[0, 0] = self.size
        rows = np.arange(1, m)
        block[rows, rows] = self.squares[:, self._places[chosen[1:]]].T
        for i, j in np.argwhere((where == where[0]) & (np.arange(m) > 0) & (np.arange(m)[:, None] > 0)):
            block[i, j] = block[j, i] = block[0, j]  # the number beside the constant once more
        return block

    def draw_levels(self, levels: slice, chosen: NDArray[np.intp]) -> Floats:
        """Noise in the products of the levels of one category with the coordinates of `draw_block`.

        Returns
        -------
        float64 array of shape (levels, m, count)
        """
        layout, width = self._law.layout, levels.stop - levels.start
        precisions = self._law.noise.precisions[layout.number_of[levels][:, chosen]]
        drawn = self._rng.standard_normal((width, chosen.size, self.count))
        drawn *= (self._unit / np.sqrt(precisions))[:, :, None]
        drawn -= drawn.mean(axis=0)
        drawn += self.first[:, chosen].T / width
        drawn[:, 0] = self.first[:, levels].T + self.size / width
        return np.asarray(drawn)
