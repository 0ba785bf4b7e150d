"""The cheapest set of releases whose predicted errors are those that are wanted. Reads no data."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.checks import check_number
from matrixdp.domain.columns import MISSING
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import parse_toml
from matrixdp.errors import BudgetExceededError, ParameterError, show
from matrixdp.gdp import gdp_epsilon
from matrixdp.ledger import Plan as Events
from matrixdp.ledger import Remaining
from matrixdp.privacy import Privacy
from matrixdp.queries import TableMoments
from matrixdp.release.charging import Account, digest
from matrixdp.release.options import MATRICES, parse_options
from matrixdp.release.plan import Plan, plan
from matrixdp.release.request import Request
from matrixdp.report.answers import Answer, answer_groups, answer_matrix, answer_means, answer_regression, answer_table
from matrixdp.report.forecast import forecast_table, predict
from matrixdp.types import Floats

_OF = {  # what a want is of, by its question: a field of the request
    "means": "columns",
    "table": "cells",
    "covariance": "columns",
    "correlation": "columns",
    "regression": "target",
}
_EXAMPLES = "means of stay, age by ward ± 0.5; table of ward and smoker ± 20; regression of stay on age, ward ± 0.1"
_SIGN = re.compile(r"\s*(?:±|\+/?-)\s*")
_LEAST = 1e-4  # of the largest epsilon, below which none is looked for
_MOST_WANTS = 20


@dataclass(frozen=True, kw_only=True)
class Want:
    """A question, and the error that each number of its answer may have: one standard deviation, in its own unit.

    The question is means, table, covariance, correlation or regression. Of a regression the error is that of all
    coefficients but the intercept, and of a table that of its counts. Levels for missing values may have larger ones.
    """

    question: str
    error: float
    of: Sequence[str] = ()
    by: Sequence[str] = ()
    on: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.question not in _OF:
            raise ParameterError(f"{show(self.question)} is not a question that can be planned: {', '.join(_OF)}.")
        object.__setattr__(self, "error", check_number(self.error, "error", above=0))
        regression = self.question == "regression"
        of, other, none = (_OF[self.question], *(("on", "by") if regression else ("by", "on")))
        if getattr(self, none):
            raise ParameterError(f"{self.question} has no {none}; it has {of} and {other}.")
        for name, names in ((of, self.of), (other, getattr(self, other))):
            if name != "by" and not any(names):
                raise ParameterError(f"{self.question} needs {name}.")
            if "" in names:
                raise ParameterError(f"{name} must be a list of columns, as in stay, age.")
        if of == "cells" and len(set(self.of)) != 2:
            raise ParameterError("a table is of two different columns.")

    @classmethod
    def parse(cls, text: str) -> Self:
        """A want from a text, as in 'means of stay by ward ± 0.5'; ± may be written as +-."""
        try:
            return cls(**_split_want(text))
        except ParameterError as error:
            raise ParameterError(f"the want {show(text)}: {error} Examples: {_EXAMPLES}.", parameter="want") from None

    @property
    def words(self) -> str:
        """The question, as `parse` reads it."""
        parts = {"of": self.of, "on": self.on, "by": self.by}
        return " ".join([self.question, *(f"{word} {', '.join(names)}" for word, names in parts.items() if names)])

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that it is about."""
        return (*self.of, *self.on, *self.by)


def _split_want(text: str) -> dict[str, Any]:
    """The fields of a want, from its words."""
    asked, *errors = _SIGN.split(text.strip())
    if not asked or len(errors) != 1:
        raise ParameterError("it must be a question, ± and the wanted error.")
    (question, *rest), *parts = (part.split() for part in re.split(r"\s+(?=(?:of|on|by)\s)", asked))
    found: dict[str, Any] = {"question": question}
    if question in _OF and rest:
        raise ParameterError(f"{show(rest[0])} is not understood after {question}: write of, on or by.")
    for word, *names in parts:
        if word in found:
            raise ParameterError(f"{word!r} must be there once.")
        found[word] = tuple(re.split(r"\s*,\s*|\s+and\s+", " ".join(names)))
        if question == "regression" and word == "of" and len(found[word]) > 1:
            raise ParameterError(f"{show(found[word][1])} is not understood: a regression is of one column.")
    try:
        return found | {"error": float(errors[0])}
    except ValueError:
        rule = "the wanted error must be a number, with a decimal point"
        raise ParameterError(f"{rule}, got {show(errors[0])} instead.") from None


def read_wants(path: Path) -> list[Want]:
    """The wants in a TOML file: ``want``, a list of texts that `Want.parse` reads."""
    try:
        content = parse_toml(path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeError) as error:
        raise ParameterError(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}.") from None
    texts = content.get("want")
    if set(content) != {"want"} or not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise ParameterError(f'{path} must have a list of texts and nothing else: want = ["means of stay ± 0.5", ...]')
    return list(map(Want.parse, texts))


# The errors of a release


def predict_error(want: Want, made: Plan) -> float:
    """The largest error, for typical data, of the numbers that a want asks for; infinite where noise hides one."""
    if isinstance(made.query, TableMoments):
        answers = list(_ask(want, forecast_table(made)))
    else:
        answers = predict(made, ("typical",))["typical"]
    absent = [column.name for column in made.request.schema.require_columns().categories if column.missing]
    errors = np.concatenate([_select(want, answer.estimate, absent).ravel() for answer in answers])
    return float(np.where(np.isfinite(errors), errors, np.inf).max())


def _ask(want: Want, release: TableForecast) -> Iterator[Answer]:
    """The answers to a want: one, or one for each group."""
    query: Any = release.design.query
    if want.question == "means":
        grouped = want.by and want.by == query.by
        yield answer_groups(release) if grouped else answer_means(release, want.by[0] if want.by else None)
        return
    for group in query.group_levels if want.by else (None,):
        if want.question == "table":
            yield answer_table(release, want.of[0], want.of[1], group)
        elif want.question == "regression":
            yield answer_regression(release, want.of[0], want.on, group)
        else:
            yield answer_matrix(release, want.question, group)


def _select(want: Want, found: Estimate, absent: Sequence[str]) -> Floats:
    """The errors of the numbers that a want asks for; not those of missing values in the columns `absent`."""
    if want.question == "table":
        return found.std
    if want.question == "regression":
        left_out = {"intercept", *(f"{name}={MISSING}" for name in absent)}
        return found.std[[row not in left_out for row in found.rows], 0]
    names = found.rows if want.question == "means" and not want.by else found.columns
    for name in want.of:
        if name not in names:
            raise ParameterError(f"{want.question} needs columns of numbers, and {show(name)} is none.")
    kept = [name in want.of for name in names]
    if want.question == "means":
        there = [row != MISSING or want.by[0] not in absent for row in found.rows] if want.by else []
        return found.std[there][:, kept] if want.by else found.std[kept, 0]
    return found.std[:, kept][kept if len(found.rows) > 1 else [True]]  # equal rows are one


# The releases


@dataclass(frozen=True, eq=False)
class PlannedRelease:
    """A release, and the wants that it answers."""

    plan: Plan
    wants: tuple[Want, ...]

    @property
    def mu_squared(self) -> float:
        """What it costs."""
        return self.plan.event.mu**2

    @cached_property
    def errors(self) -> tuple[float, ...]:
        """The predicted error of each want."""
        return tuple(predict_error(want, self.plan) for want in self.wants)

    def name(self, prefix: str) -> Self:
        """The same with a request id that follows from everything that decides the release."""
        request, facts = self.plan.request, self.plan.description
        asked = digest([[*sorted(request.to_options().items())], facts.get("design", facts.get("inputs"))])
        return replace(self, plan=replace(self.plan, request=replace(request, id=f"{prefix}-{asked[:16]}")))


@dataclass(frozen=True, eq=False)
class WantsPlan:
    """The cheapest releases for some wants, and what others would cost, as squares of mu."""

    releases: tuple[PlannedRelease, ...]
    separate: float  # a release for each want
    together: float  # one release that answers all; infinite where there is none

    @property
    def mu_squared(self) -> float:
        """What they cost."""
        return sum(one.mu_squared for one in self.releases)


def plan_wants(wants: Sequence[Want], schema: Schema, total: Privacy, left: float, **options: Any) -> WantsPlan:
    """The cheapest releases, of those that are compared, whose predicted errors are at most those wanted.

    Compared are a release for each want, and one release for all. What is found does not depend on what was spent
    before. One release may have `total`, whose delta is that of all; if a want cannot be reached with it, a
    `BudgetExceededError` says which error could be with the epsilon that is `left`. `options` are further fields of
    every `Request`.

    Privacy
    -------
    Reads no data. The releases compose as every sequence of Gaussian releases: squares of mu add up.
    """
    wants = tuple(dict.fromkeys(wants))
    if not 0 < len(wants) <= _MOST_WANTS:
        rule = f"there must be 1 to {_MOST_WANTS} wants, got {len(wants)} instead."
        raise ParameterError(f"{rule} Examples: {_EXAMPLES}.")

    def make(wants: tuple[Want, ...], asked: Mapping[str, Any], epsilon: float) -> PlannedRelease:
        request = Request(schema=schema, epsilon=epsilon, delta=total.delta, **asked, **options)
        return PlannedRelease(plan(request), wants)

    alone = {want: _find_cheapest((want,), make, total.epsilon) for want in wants}
    best = [one for one in alone.values() if one is not None]
    if missed := [want for want, one in alone.items() if one is None]:
        raise BudgetExceededError("\n".join(_explain(want, make, left) for want in missed))
    whole = best[0] if len(best) == 1 else _find_cheapest(wants, make, total.epsilon)
    separate, together = sum(one.mu_squared for one in best), math.inf if whole is None else whole.mu_squared
    best = [whole] if whole is not None and together < separate else best
    return WantsPlan(tuple(best), separate, together)


_Make = Callable[[tuple[Want, ...], Mapping[str, Any], float], PlannedRelease]


def _find_cheapest(wants: tuple[Want, ...], make: _Make, most: float) -> PlannedRelease | None:
    """The cheapest of the releases that meet all of `wants` with an epsilon of at most `most`, if there is one."""
    found: list[PlannedRelease | None] = []
    problem: ParameterError | None = None
    for asked in list_requests(wants):
        try:
            found.append(_find_least(partial(make, wants, asked), most))
        except ParameterError as error:  # it cannot be asked in this way
            problem = problem or error
    if len(wants) == 1 and not found and problem is not None:
        raise problem.within(wants[0].words)
    return min(filter(None, found), key=lambda one: one.mu_squared, default=None)


def _explain(want: Want, make: _Make, left: float) -> str:
    """The least error that could be reached, in a sentence."""
    least = math.inf
    for asked in list_requests((want,)) if left > 0 else ():
        try:
            least = min(least, *make((want,), asked, left).errors)
        except ParameterError:
            continue
    reach = f"the least error is {least:.3g}" if least < math.inf else "noise hides the answer"
    return f"{want.words} ± {want.error:g} cannot be reached: with all that is left (epsilon {left:.4g}), {reach}."


def _find_least(make: Callable[[float], PlannedRelease], most: float) -> PlannedRelease | None:
    """The release that meets its wants with the least epsilon, of three digits, or None if `most` does not."""

    def meets(release: PlannedRelease) -> bool:
        return all(error <= want.error for error, want in zip(release.errors, release.wants, strict=True))

    found, low = make(most), most * _LEAST
    if not meets(found):
        return None
    while low < (middle := float(f"{math.sqrt(low * found.plan.request.epsilon):.3g}")) < found.plan.request.epsilon:
        try:
            tried = make(middle)
            found, low = (tried, low) if meets(tried) else (found, middle)
        except ParameterError:  # no release can be made with so little
            low = middle
    return found


def list_requests(wants: Sequence[Want]) -> list[dict[str, Any]]:
    """Fields of requests that may answer all of some wants."""
    questions, groups = {want.question for want in wants}, dict.fromkeys(want.by for want in wants)
    first, names = wants[0], tuple(dict.fromkeys(name for want in wants for name in want.names))
    found: list[dict[str, Any]] = []
    if len(wants) == 1 and first.question == "table":
        found = [{"question": one, "cells": first.of} for one in ("table", *(() if first.by else ("counts",)))]
    elif len(wants) == 1 and first.question == "regression":  # of an adaptive fit, coefficients are not forecast
        found = [{"question": "regression", "target": first.of[0], "on": first.on, "method": "plain"}]
    elif len(questions) == len(groups) == 1 and first.question in ("means", *MATRICES):
        found = [{"question": first.question, "columns": [name for name in names if name not in first.by]}]
    if first.by:
        found = [one | {"by": first.by} for one in found]
    for by in dict.fromkeys([(), *groups]):
        if all(want.by in ((), by) or (want.question == "means" and len(want.by) == 1) for want in wants):
            columns = [name for name in names if name not in by]
            found.append({"question": "everything", "columns": columns, "by": by or None})
    return found


# What they cost in a ledger


@dataclass(frozen=True, eq=False, kw_only=True)
class PricedWants(WantsPlan):
    """The releases with request ids, and what the ledger says of them."""

    new: tuple[PlannedRelease, ...]  # not released before
    left: Remaining  # in the ledger now
    after: Remaining | None = None  # and after them; None where they do not fit
    problem: BudgetExceededError | None = None  # why they do not
    reachable: dict[Want, float] = field(default_factory=dict)  # then, errors if all that is left is divided alike

    @property
    def cost(self) -> float:
        """What the new releases cost, as a square of mu."""
        return sum(one.mu_squared for one in self.new)


def price_wants(
    wants: Sequence[Want], schema: Schema, account: Account, prefix: str, options: Mapping[str, Any]
) -> PricedWants:
    """Plan wants for a data set in a ledger: its neighbours, its unit, its delta and what it has left.

    `prefix` begins the request ids; `options` are further ones of all requests, as texts. Nothing is charged.
    """
    ledger, dataset, allowance = account.ledger, account.dataset, account.allowance
    registered, left = ledger.summary(dataset).registration, ledger.remaining(dataset, allowance=allowance)
    shared = parse_options(options, allowed=("records", "rows", "missing"))
    shared |= {"neighbours": str(registered.neighbours), "person": registered.unit.column}
    found = plan_wants(wants, schema, registered.privacy, left.epsilon, **shared)
    releases = tuple(one.name(prefix) for one in found.releases)
    for one in releases:
        ledger.require(dataset, neighbours=one.plan.neighbours, unit=one.plan.unit)
    new = tuple(one for one in releases if not replace(account, request=one.plan.request.id).was_charged())
    facts: dict[str, Any] = {"separate": found.separate, "together": found.together, "new": new, "left": left}
    try:
        events = Events([one.plan.event for one in new]) if new else None
        after = left if events is None else ledger.whatif(dataset, events, allowance=allowance)
        return PricedWants(releases, **facts, after=after)
    except BudgetExceededError as error:
        factor = left.mu / math.sqrt(sum(one.mu_squared for one in new))
        reachable: dict[Want, float] = {}
        for one in new:  # with so many times its mu
            mu = factor * one.plan.event.mu
            epsilon = gdp_epsilon(mu=mu, delta=registered.privacy.delta) if mu > 0 else 0.0
            made = one.plan.at(epsilon) if epsilon > 0 else None
            reachable |= {want: math.inf if made is None else predict_error(want, made) for want in one.wants}
        return PricedWants(releases, **facts, problem=error, reachable=reachable)
