"""Base class of the estimators that are computed from one private moment, of numbers or of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment, prepare_fit
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Column, Columns
from matrixdp.errors import ParameterError
from matrixdp.estimators.base import PrivateEstimator
from matrixdp.estimators.inputs import is_read_in_parts
from matrixdp.estimators.table_fit import TableFit, fit_table
from matrixdp.records import Blocks, Records, as_records, require_rereadable, with_ids
from matrixdp.records.expanded_columns import ExpandBlock, ExpandedColumns, ExpandedRecords, read_table
from matrixdp.records.records import MappedRecords
from matrixdp.release.charging import release_fit
from matrixdp.types import Floats


@dataclass(kw_only=True, eq=False, repr=False)
class MomentEstimator(PrivateEstimator):
    """Base class of the estimators that are computed from one private moment.

    Parameters that are not listed here are those of `PrivateEstimator`.

    With ``bounds=Columns(...)`` the features are the numbers of a table and an indicator for each level of a category.
    If numbers may be missing, the moment is one release of `TableMoments`, and means and covariances are those of the
    records that have the values.

    Parameters
    ----------
    directions : 'learned', 'standard' or array_like of shape (m, m)
        Along which the final noise is shaped; a matrix has orthonormal columns, for features scaled to [-1, 1]. Not
        used where numbers may be missing.

    Attributes
    ----------
    expanded_names_ : array of str
        Names of the features of a fit to a table: those of numbers, and "column=level".
    release_ : Release
        The moments of a table whose numbers may be missing, from which further answers follow at no cost.

    Notes
    -----
    **Privacy.** See `PrivateEstimator`.
    """

    directions: Any = "learned"

    def _is_expanded(self, features: ExpandedColumns) -> bool:
        """Whether a table is fitted as expanded records, not by the moments of a table.

        Those are for missing numbers, and for people with several rows.
        """
        return features.complete and self.person is None

    def _expanded(self, *, reference: bool) -> ExpandedColumns | None:
        """The features of a table with categories or missing values; None for numbers alone."""
        columns = self._table_columns
        return None if columns is None else ExpandedColumns(columns, reference)

    def _read_expanded(
        self, X: Any, parts: Sequence[ExpandedColumns], values: Mapping[str, Any] | None = None
    ) -> Records:
        """Records of a table, expanded block by block.

        Parameters
        ----------
        X
            As given to `fit`.
        parts : sequence of ExpandedColumns
            The features, and perhaps the targets.
        values : mapping of str, optional
            Columns of the targets, unless the records are outside of memory.
        """
        if is_read_in_parts(X):
            columns = Columns([column for part in parts for column in part.columns])
            return MappedRecords(_select(X, columns), ExpandBlock(tuple(parts)))
        records = ExpandedRecords({**read_table(X, parts[0].columns), **(values or {})}, parts)
        return Blocks(records.blocks)

    def _fit_moment(
        self,
        records: Floats | Records,
        bounds: Bounds,
        aim: str,
        features: ExpandedColumns | None = None,
        ids: Any = None,
        targets: int = 1,
    ) -> PrivateMoment:
        """Spend the budget on a private moment, and set the attributes of the guarantee.

        `features` are those of a table; its records are expanded. `ids` say whose rows records in memory are. `targets`
        is the number of last columns that a regression predicts.
        """
        records = records if ids is None else with_ids(records, ids)
        options, account = self._fit_options(), self._account_options()
        self._warn_if_repeated()
        prepared = prepare_fit(records, bounds, aim=aim, targets=targets, directions=self.directions, **options)
        prepared.warn()
        moment: PrivateMoment = release_fit(prepared, **account)
        self._set_guarantee(moment)
        self._set_expanded(features)
        self.__dict__.pop("release_", None)  # of an earlier fit
        return moment

    def _fit_table(
        self,
        X: Any,
        features: ExpandedColumns,
        targets: Sequence[Column] = (),
        values: Mapping[str, Any] | None = None,
        **design: Any,
    ) -> TableFit:
        """Spend the budget on the moments of a table with missing numbers, and set the attributes of the guarantee."""
        columns = Columns((*features.columns, *targets))
        options = self._fit_options() | self._account_options()
        data: Any
        if is_read_in_parts(X):
            data = _select(X, columns, self.person)
        else:
            ids = {} if self.person is None else {self.person: self._read_ids(X)}
            data = {**read_table(X, features.columns), **(values or {}), **ids}
        self._warn_if_repeated()
        release = fit_table(data, columns, **options, **design)
        fit = TableFit(release, features, tuple(column.name for column in targets))
        self._set_guarantee(fit)
        self._set_expanded(features, fit.mean)
        self.release_ = release
        return fit

    def _set_expanded(self, features: ExpandedColumns | None, fill: Floats | None = None) -> None:
        self._features, self._fill = features, fill
        if features is None:
            self.__dict__.pop("expanded_names_", None)  # of an earlier fit
            return
        self._set_features(len(features.columns.names), features.columns.names)
        self.expanded_names_ = np.array(features.names, dtype=object)

    def _apply(self, X: Any, function: Callable[[Floats], Floats]) -> Floats:
        """Result of a function on records X, with the features that the fit had."""
        features = self._features
        if features is None:
            return function(self._validate_features(X, reset=False))
        if is_read_in_parts(X):
            raise ParameterError("X must be in memory to be transformed or predicted from; give it batch by batch.")
        return features.apply(X, function, fill=self._fill)


def _select(X: Any, columns: Columns, person: str | None = None) -> Records:
    """The described columns of records outside of memory, and the ids of people."""
    ids = () if person is None else (person,)
    texts = (*(column.name for column in columns.categories), *ids)
    return require_rereadable(as_records(X)).select((*columns.names, *ids), texts=texts)
