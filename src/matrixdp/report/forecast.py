"""Errors that a release is expected to have, for data as a schema describes them. Reads no data."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.adaptive import Description, forecast
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import correlation, covariance
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.display import has_equal_rows
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.schema import Schema
from matrixdp.queries import Moments, TableMoments
from matrixdp.release.plan import Plan, refuse_extremes
from matrixdp.report.answers import MODELS, Answer, make_answers
from matrixdp.types import Floats

DATA_KINDS = {
    "friendly": "Gaussian numbers",
    "typical": "the mean over six shapes of data",
    "hostile": "the shape with the largest error, and a few records at the ends of their bounds",
}
EPSILON_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_NO_ERROR = 1e-100  # of the diagonal of a correlation


def describe_data(schema: Schema, bounds: Bounds) -> Description:
    """Description of the columns that `bounds` name; what the schema does not guess is typical of tables."""
    usual, width, guesses = Description(), 2 * bounds.halfwidths, schema.guesses
    spread, position = (np.full(bounds.size, value, dtype=np.float64) for value in (usual.spread, usual.position))
    for index, name in enumerate(bounds.names or ()):
        if name in guesses.means:
            position[index] = (guesses.means[name] - bounds.lower[index]) / width[index]
        if name in guesses.stds:
            spread[index] = guesses.stds[name] / width[index]
    correlated = usual.correlation if guesses.correlation is None else guesses.correlation
    return Description(np.minimum(spread, 0.5), np.clip(position, 0.0, 1.0), correlated)


def describe_moments(schema: Schema, bounds: Bounds) -> Floats:
    """Mean and second moment of the described data, as `Moments` releases them, of shape (m + 1, m + 1)."""
    mean, spread = describe_data(schema, bounds).moments(bounds.size)
    centre = np.concatenate([[1.0], mean])
    moments = np.multiply.outer(centre, centre)
    moments[1:, 1:] += spread
    scale = np.concatenate([[1.0], bounds.halfwidths])
    return np.asarray(moments * np.multiply.outer(scale, scale))


def let_fall(errors: Sequence[ArrayLike]) -> list[Floats]:
    """Errors by rising epsilon, each at least those at larger epsilons; NaN where noise hides an answer.

    A release with more budget is not worse. A prediction for one epsilon alone can be too small, where noise is larger
    than the numbers themselves, and by the chance of its simulation.
    """
    found = np.asarray(errors, dtype=np.float64)
    return list(np.where(np.isnan(found), found, np.fmax.accumulate(found[::-1])[::-1]))


def let_answers_fall(predicted: Sequence[dict[str, list[Answer]]]) -> list[dict[str, list[Answer]]]:
    """Predictions by rising epsilon, with errors that do not grow with it (`let_fall`); all have the same shapes."""
    changed: list[dict[str, list[Answer]]] = [{} for _ in predicted]
    for shape in predicted[0]:
        for answers in zip(*(one[shape] for one in predicted), strict=True):
            bars = let_fall([answer.estimate.std for answer in answers])
            for at, answer, std in zip(changed, answers, bars, strict=True):
                at.setdefault(shape, []).append(replace(answer, estimate=replace(answer.estimate, std=std)))
    return changed


def list_predictions(plan: Plan, *, data: str = "typical") -> list[Answer]:
    """What a report shows of all records, and of all groups in one table, with predicted errors.

    `data` is 'friendly', 'typical' or 'hostile': what is assumed where the schema has no guess.
    """
    request = plan.request
    answers = make_answers(forecast_table(plan, data), request.kind, request.target, request.on, groups=False)
    return list(answers[:1] if request.kind in MODELS else answers)  # how much a regression explains has no error


def forecast_table(plan: Plan, data: str = "typical") -> TableForecast:
    """What to expect of a release of the moments of a table, with the fit that has its correlations, if any."""
    assert plan.design is not None  # of the moments of a table
    beside = plan.beside
    fitted = None if beside is None else lambda kind: forecast_fit(beside)[kind]
    return TableForecast(plan.design, plan.request.schema.guesses, data, fitted)


def predict(plan: Plan, shapes: Sequence[str] = tuple(DATA_KINDS)) -> dict[str, list[Answer]]:
    """What a report would show, with predicted errors, for data of these shapes; one where errors do not depend on it.

    A table whose rows have equal errors has one row. Errors of a covariance or correlation of a plain release are for
    data as the schema expects.
    """
    kind, design, query = plan.request.kind, plan.design, plan.query
    if design is None:
        found, kind, names = forecast_fit(plan), judged_by(plan.request.question), plan.bounds.names or ()
        errors = {shape: found[shape] for shape in shapes}
        if kind == "means":
            return {shape: [_predicted("Means", std.T, names, ("mean",))] for shape, std in errors.items()}
        return {shape: [_predicted(kind.capitalize(), std, names, names)] for shape, std in errors.items()}
    if isinstance(query, TableMoments):
        return {shape: list_predictions(plan, data=shape) for shape in shapes}
    std, (rows, columns), title = design.std, query.entry_names, query.title[:1].upper() + query.title[1:]
    if kind != "matrix" and isinstance(query, Moments):
        read, title = covariance if kind == "covariance" else correlation, kind.capitalize()
        std = read(describe_moments(plan.request.schema, query.bounds), design).std
        rows, columns = rows[1:], columns[1:]
    if has_equal_rows(std):
        std, rows = std[:1], ("every row",)
    return {"typical": [_predicted(title, std, rows, columns)]}


def _predicted(title: str, std: Floats, rows: Sequence[str], columns: Sequence[str]) -> Answer:
    return Answer(title, "column", Estimate(np.zeros_like(std), std, tuple(rows), tuple(columns)), name=title.lower())


def judged_by(question: str) -> str:
    """The numbers whose errors are predicted for a fit: components and regressions follow from correlations."""
    return question if question in ("means", "covariance") else "correlation"


@lru_cache(maxsize=32)
def forecast_fit(plan: Plan) -> dict[str, Floats]:
    """Errors by which a fit is judged, by simulation, for each of `DATA_KINDS`: (1, m) for means, or (m, m)."""
    assert plan.records is not None  # of an adaptive fit
    with refuse_extremes():
        found = forecast(
            plan.bounds,
            plan.records,
            plan.request.privacy,
            description=describe_data(plan.request.schema, plan.bounds),
            aim=plan.recipe,
            neighbours=plan.neighbours,
            person=plan.query.person,
        )
    shown = judged_by(plan.request.question)
    name = "mean_std" if shown == "means" else f"{shown}_std"
    errors = {kind: np.atleast_2d(getattr(getattr(found, kind), name)) for kind in DATA_KINDS}
    return {kind: np.where(std > _NO_ERROR, std, 0.0) for kind, std in errors.items()}
