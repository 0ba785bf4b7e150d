"""Streams of releases: what was published, with all answers that can be read from it, and the one that publishes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.linalg import toeplitz

from matrixdp.answers.series import Series, make_series
from matrixdp.checks import check_integer
from matrixdp.domain.file_rules import DEFAULT_RULES
from matrixdp.errors import LedgerError, ParameterError, show
from matrixdp.ledger import Ledger, Step
from matrixdp.ledger.entries import check_name
from matrixdp.mechanisms.mechanism import add_keyed_noise, prepare, unwhiten_coordinates
from matrixdp.noise import Stream
from matrixdp.records import as_records, is_out_of_core, open_records
from matrixdp.records.ids import IdHash
from matrixdp.records.people import count_rows_by_id
from matrixdp.records.periods import InPeriod, OfPeople, Period, choose_rows, parse_delay
from matrixdp.release.charging import Account, Price, digest, open_account
from matrixdp.release.output_folder import write_file
from matrixdp.release.released import reading, require
from matrixdp.release.result import Release, StreamPart
from matrixdp.release.stream_plan import GRID_BITS, StreamPlan
from matrixdp.release.stream_state import StreamState
from matrixdp.sensitivity.stream_change import BITS, WEIGHT_BITS, Integers
from matrixdp.serialise import from_json_content, to_json_content
from matrixdp.types import Floats
from matrixdp.version import __version__

FORMAT = "matrixdp stream 1"
_NO_PEOPLE = np.empty(0, np.uint64)
_LOW = (1 << 30) - 1  # mask of the low bits of an integer


@dataclass(frozen=True)
class PublishedStep:
    """What a step published: integers, the sums of all steps since `start` with their coefficients, and noise."""

    name: str
    start: int
    noisy: tuple[int, ...]

    @property
    def digest(self) -> str:
        """SHA-256 hash, as the ledger has it."""
        return digest([self.name, self.start, list(self.noisy)])


@dataclass(frozen=True, eq=False, repr=False)
class PublishedStream:
    """What a stream published so far, and the answers that anybody can read from it. Nothing in it is private.

    Attributes
    ----------
    name : str
    plan : StreamPlan
    published : tuple of PublishedStep
    simulation : bool
        Whether the noise can be repeated by whoever knows the seed: then nothing is protected.
    """

    name: str
    plan: StreamPlan
    published: tuple[PublishedStep, ...] = ()
    simulation: bool = False

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PublishedStream:
        """Read the public file of a stream, ``NAME.json``."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise ParameterError(f"{path} must be the public file of a stream, NAME.json; it cannot be read.") from None

    @classmethod
    def from_json(cls, text: str) -> PublishedStream:
        """The stream that `to_json` wrote."""
        with reading("text must be the public file of a stream, as matrixdp wrote it."):
            content = json.loads(text)
            plan = from_json_content(content["plan"])
            if content["format"] != FORMAT or not isinstance(plan, StreamPlan):
                raise KeyError("format")
            plan.check()
            found = tuple(
                PublishedStep(str(s["name"]), int(s["start"]), tuple(map(int, s["noisy"]))) for s in content["steps"]
            )
            starts = [one.start for one in found]
            follow = all(one in (number, starts[max(number - 1, 0)]) for number, one in enumerate(starts))
            require(follow, "its steps must follow each other")
            planned = all(len(one.noisy) == plan.dimension for one in found) and len(found) <= plan.most
            require(planned, "its steps must have the numbers of its plan")
            return PublishedStream(str(content["name"]), plan, found, bool(content["simulation"]))

    def to_json(self) -> str:
        """All that was published, as JSON text."""
        steps = [{"name": one.name, "start": one.start, "noisy": one.noisy} for one in self.published]
        facts = {"format": FORMAT, "version": __version__, "name": self.name, "simulation": self.simulation}
        content = {**facts, "mu": self.plan.mu, "plan": to_json_content(self.plan), "steps": steps}
        return json.dumps(content, allow_nan=False)

    _request = property(lambda self: name_request(self.name), doc="The request id of its charge.")

    @cached_property
    def noisy(self) -> Floats:
        """What was published, in standard deviations of its noise, of shape (steps, numbers)."""
        rows = [[value / 2 ** (BITS + GRID_BITS) for value in one.noisy] for one in self.published]
        return np.array(rows).reshape(-1, self.plan.dimension)

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps, in order."""
        return tuple(one.name for one in self.published)

    @property
    def next_step(self) -> str | None:
        """The name of the next step, where the last one says it."""
        if self.plan.every == "step" or not self.steps:
            return None
        return Period.parse(self.steps[-1], self.plan.every).following(self.plan.every).name

    def upcoming(self, now: datetime | None = None) -> list[tuple[str, datetime]]:
        """The steps from the next one up to the first that is not over, each with when it can be published.

        None for a stream that has ended, that has no steps so far, or whose steps are no periods.
        """
        plan, present, name = self.plan, now or datetime.now(), self.next_step
        found: list[tuple[str, datetime]] = []
        while name is not None and len(self) + len(found) < plan.most and (not found or found[-1][1] <= present):
            period = Period.parse(name, plan.every)
            found.append((name, _ready_at(plan, period)))
            name = period.following(plan.every).name
        return found

    def require_steps(self) -> None:
        """Raise a `ParameterError` if nothing was published so far."""
        if not self.published:
            raise ParameterError("the stream has no steps so far: publish the first one.")

    def weigh(self, chosen: Floats) -> Floats:
        """Weights of what was published in a weighted sum of the periods, both of shape (steps,).

        The noise of the sum is the norm of the weights times that of a step.
        """
        found = np.zeros(len(self))
        for block in self._blocks():
            found[block] = self.plan.answer_weights(chosen[block], block.start)
        return found

    def _blocks(self) -> list[slice]:
        """The steps from each start to the next one."""
        return [slice(start, start + count) for start, count in Counter(one.start for one in self.published).items()]

    def period(self, step: str | None = None) -> Release:
        """The release of one period, by default of the last one."""
        number = len(self) - 1 if step is None else self._find(step)
        return self._sum(number, number + 1)

    def last(self, periods: int) -> Release:
        """The release of the last few periods together."""
        check_integer(periods, "«last»", at_least=1, at_most=len(self) or None)
        return self._sum(len(self) - periods, len(self))

    def between(self, first: str, last: str) -> Release:
        """The release of all periods from one to another, both included."""
        i, j = self._find(first), self._find(last)
        if i > j:
            raise ParameterError(f"first must not be after last: {first!r} is.")
        return self._sum(i, j + 1)

    def total(self) -> Release:
        """The release of all periods so far together."""
        return self._sum(0, len(self))

    def _find(self, step: str) -> int:
        if step not in self.steps:
            known = f"{self.steps[0]} to {self.steps[-1]}" if self.steps else "none so far"
            raise ParameterError(f"«step» must be one that was published ({known}), got {show(step)} instead.")
        return self.steps.index(step)

    def _sum(self, first: int, end: int) -> Release:
        """The release of a sum of periods."""
        self.require_steps()
        chosen = np.zeros(len(self))
        chosen[first:end] = 1.0
        weights = self.weigh(chosen)
        noise = float(np.linalg.norm(weights))
        plan = self.plan
        design = plan.scaled_design(end - first, noise)
        matrix = design.query.finish(unwhiten_coordinates(design, weights @ self.noisy / noise))
        names = self.steps[first] if end - first == 1 else f"{self.steps[first]} to {self.steps[end - 1]}"
        part = StreamPart(self.name, names, plan.mu, plan.neighbours)
        return Release(matrix, design, simulation=self.simulation, missing=plan.missing, part=part)

    def series(self, column: str | None = None, by: str | None = None, *, smooth: bool = False) -> Series:
        """Means of a number in each period, or without a column the number of records, with error bars.

        Parameters
        ----------
        column : str, optional
        by : str, optional
            A category: a line for each level.
        smooth : bool
            Assume that numbers change slowly, as a random walk whose step is averaged over by its likelihood. Bars are
            shorter, and rest on this assumption; the result is marked.

        Notes
        -----
        Bars of two periods are correlated: `Series.difference` has the bar of a difference.
        """
        self.require_steps()
        inverse, design = self._inverse(), self.plan.scaled_design(1, 1.0)
        matrices = [unwhiten_coordinates(design, row) for row in inverse @ self.noisy]
        return make_series(matrices, design, self.steps, inverse, column=column, by=by, smooth=smooth)

    def _inverse(self) -> Floats:
        """Weights of what was published in each period, of shape (periods, steps)."""
        found = np.zeros((len(self), len(self)))
        for block in self._blocks():
            inverse = self.plan.inverse_coefficients(block.stop - block.start)
            found[block, block] = toeplitz(inverse, np.zeros_like(inverse))
        if self.plan.weights is not None:
            found /= (self.plan.weights[: len(self)] / 2.0**WEIGHT_BITS)[:, None]
        return found

    def verify(self, ledger: Ledger, dataset: str, *, latest: bool = True) -> None:
        """Raise a `LedgerError` unless the ledger has the charge for this plan, and the same steps with their hashes.

        Without `latest`, it may have later ones.
        """
        _require_charge(Account(ledger, dataset, self._request), self)
        recorded = _list_hashes(ledger.steps(dataset, self._request))
        if _list_hashes(self.published) != (recorded if latest else recorded[: len(self)]):
            raise LedgerError(
                f"the public file of the stream does not have the {len(recorded)} steps of the ledger. Restore it from "
                "a copy; anybody may have one, since it is public."
            )

    def __len__(self) -> int:
        return len(self.published)

    def __repr__(self) -> str:
        mark = ", A SIMULATION THAT PROTECTS NOTHING" if self.simulation else ""
        return f"<{type(self).__name__} {self.name!r} of {self.plan.query.summary}, {len(self)} steps{mark}>"

    def __str__(self) -> str:
        periods = f", {self.steps[0]} to {self.steps[-1]}" if self.steps else ""
        paid = f"charged once: mu {self.plan.mu:.6g}"
        return f"Stream {self.name!r} of {self.plan.query.summary}, {len(self)} steps{periods}, {paid}"


class MatrixStream(PublishedStream):
    """A stream that is open: `publish` reads the private records of a step. All answers of `PublishedStream`, too.

    Privacy
    -------
    `plan.mu`-GDP for all steps together, charged when the stream was opened. A step is durable and repeatable: killed
    anywhere and called again, it publishes the same bits. A state that is not that of the steps so far is refused.
    """

    path: Path
    _state: StreamState
    _account: Account | None

    def __init__(self, path: Path, public: PublishedStream, state: StreamState, account: Account | None) -> None:
        super().__init__(public.name, public.plan, public.published, public.simulation)
        vars(self).update(path=path, _state=state, _account=account)
        self._finish(check=True)

    @property
    def public(self) -> PublishedStream:
        """What was published so far, as in the public file."""
        return PublishedStream(self.name, self.plan, self.published, self.simulation)

    @classmethod
    def open(cls, name: str | os.PathLike[str], *, ledger: Any = None, dataset: str | None = None) -> Self:
        """Open a stream again that `StreamPlan.open` created.

        Parameters
        ----------
        name : str or path
            As given to `StreamPlan.open`.
        ledger, dataset
            Where it was charged; both must be left out for a stream without a ledger.
        """
        path, account, public = _find_stream(name, ledger, dataset)
        return cls(path, public, _open_state(path, public.plan, account), account)

    @classmethod
    def restart(cls, name: str | os.PathLike[str], *, ledger: Any = None, dataset: str | None = None) -> Self:
        """Continue a stream whose state was lost or is too old, with a new state and no charge.

        Totals then add the noise of both parts. The public file must have all steps of the ledger. The old state, if
        there is one, is renamed. Not for people, since the steps that they were in are lost with the state.
        """
        path, account, public = _find_stream(name, ledger, dataset)
        if public.plan.query.person is not None:
            raise ParameterError(
                "a stream of people cannot be restarted: in which steps they were is lost with its state. Open a new "
                "stream, which is charged anew."
            )
        if account is not None:
            public.verify(account.ledger, account.dataset)
        file = _file(path, "state")
        if file.exists():
            file.rename(file.with_name(f"{file.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%f}.old"))
        key = Stream(seed=len(public)).words(4).tobytes() if public.simulation else None
        identity = _identify(path, public.plan, account)
        return cls(path, public, StreamState.create(file, stream=identity, start=len(public), key=key), account)

    def publish(
        self,
        records: Any,
        *,
        step: str,
        now: datetime | None = None,
        ready: Callable[[], object] | None = None,
        **reading: Any,
    ) -> Release:
        """Publish a step, and return the release of its period. Costs nothing: the stream was charged when opened.

        A step that was published before is returned as it is, and the records are not read.

        Parameters
        ----------
        records : array, table, path, or what open_records takes
            With `when`, all records that there are, of which those of the period are taken; otherwise new ones only.
        step : str
            Name of the step, such as 2031-w05; the one after the last.
        now : datetime, optional
            The present, in the time of the dates; by default that of the clock.
        ready : callable, optional
            Called when the data have been checked, before anything is stored.
        **reading
            How files are read, as for `open_records`: workers, rules, sql.
        """
        self._finish()
        if step in self.steps:
            return self.period(step)
        period = self._check_step(step, now)
        plan, state, number = self.plan, self._state, len(self)
        content = state.hash_files(records) if plan.when is None else None
        if content is not None and (before := state.find_file(content)) is not None:
            raise ParameterError(f"records: this file was published in step {before!r}; give one with new records.")
        data = open_records(records, **reading) if is_out_of_core(records) else records
        if plan.when is not None and period is not None:
            rules = reading.get("rules") or DEFAULT_RULES
            chosen = InPeriod(plan.when, period.start, period.end, rules.date(plan.when))
            data = choose_rows(as_records(data), chosen)
        people, person = _NO_PEOPLE, plan.query.person
        if person is not None:
            data, key = as_records(data), IdHash(person.column, state.derive(b"people"))
            people = state.choose_people(count_rows_by_id(data, key).hashes, number, steps=plan.steps, apart=plan.apart)
            data = choose_rows(data, OfPeople(key, people))
        with np.errstate(all="ignore"):  # a warning could reveal private data
            prepared = prepare(plan.design, data, clip=True, missing=plan.missing)
        sums = round_step(plan, prepared, number)
        if ready is not None:
            ready()
        state.add(number, step, sums, people, content)
        self._finish()
        return self.period(step)

    def _check_step(self, step: str, now: datetime | None) -> Period | None:
        """The period of a new step, or a `ParameterError` if it is not the next one, or not over."""
        plan, last = self.plan, self.steps[-1] if self.steps else None
        check_name(step, "step")
        if len(self) >= plan.most:
            raise ParameterError(f"«step»: the stream has ended, after {len(self)} steps. Open a new one.")
        if plan.every == "step":
            return None
        period = Period.parse(step, plan.every)
        if last is not None:
            following = self.next_step
            early = period.start < Period.parse(last, plan.every).end
            if early or (plan.when is not None and step != following):
                raise ParameterError(
                    f"«step» must be {following!r}, the one after {last!r} (number {len(self) + 1}), got {step!r} "
                    "instead."
                )
        if plan.when is not None:
            end = _ready_at(plan, period)
            present = datetime.now() if now is None else now.replace(tzinfo=None)
            if present < end:
                raise ParameterError(f"«step» {step!r} can be published from {end:%Y-%m-%d %H:%M} on, when it is over.")
        return period

    def _finish(self, *, check: bool = False) -> None:
        """Publish the steps that are stored and were not published, unless ledger or public file have others.

        With `check`, the last step is drawn again, which shows whether the state has the sums of all steps so far.
        """
        state, account, known = self._state, self._account, self.published
        stored, start = state.steps(), state.start
        first = len(known) - start  # number of the stored steps that were published
        last = stored[first - 1 : first] if check and first > 0 else []
        if not 0 <= first <= len(stored) or any(draw_step(self.plan, state, *one) != known[-1] for one in last):
            raise LedgerError(
                f"{state.path} is not the state after the {len(known)} steps of {_file(self.path, 'json')}: one of "
                "them is an older copy, or of another stream. Use the latest ones, or continue with restart."
            )
        made = [*known, *(draw_step(self.plan, state, *one) for one in stored[first:])]
        if account is not None:
            steps, recorded = _list_hashes(made), _list_hashes(account.ledger.steps(account.dataset, self._request))
            if steps[: len(recorded)] != recorded:
                raise LedgerError(
                    f"{state.path} does not have the {len(recorded)} steps of the ledger: it is older than the ledger, "
                    "or the stream was continued elsewhere. Nothing was published. Use the latest state, or continue "
                    "with restart."
                )
            for number, (step, digest) in list(enumerate(steps))[len(recorded) :]:
                account.ledger.add_step(account.dataset, self._request, number=number, step=step, digest=digest)
        if len(made) > len(known):
            write_file(_file(self.path, "json"), replace(self.public, published=tuple(made)).to_json())
            vars(self)["published"] = tuple(made)
            vars(self).pop("noisy", None)


def round_step(plan: StreamPlan, prepared: Integers, number: int) -> Integers:
    """The integers of a step from what `prepare` returned: times the step's weight, in steps of 2^-28. Private."""
    shift = plan.design.grid.bits - GRID_BITS
    weight = 1 << WEIGHT_BITS if plan.weights is None else int(plan.weights[number])
    half = 1 << (shift + WEIGHT_BITS - 1)
    return np.array([(value * weight + half) >> (shift + WEIGHT_BITS) for value in prepared.ravel().tolist()], np.int64)


def add_steps(plan: StreamPlan, sums: Sequence[Integers]) -> list[int]:
    """The sum of the integers of steps, each times its coefficient, as Python integers. Private."""
    low, high = np.zeros((2, plan.dimension), np.int64)
    # For beta up to 1/2 all coefficients add up to less than 2^28, so that neither sum reaches 2^62.
    for coefficient, one in zip(plan.coefficients[: len(sums)][::-1], sums, strict=True):
        low += coefficient * (one & _LOW)
        high += coefficient * (one >> 30)
    return [(h << 30) + v for h, v in zip(high.tolist(), low.tolist(), strict=True)]


def draw_step(plan: StreamPlan, state: StreamState, number: int, name: str) -> PublishedStep:
    """What a stored step publishes: the same bits each time."""
    sums, key, content = state.read(number)
    noisy = add_keyed_noise(add_steps(plan, sums), key, number, content, BITS + GRID_BITS)
    return PublishedStep(name, state.start, noisy)


def create_stream(
    plan: StreamPlan, name: Any, ledger: Any, dataset: str | None, allowance: str | None, stream: Any, simulation: bool
) -> MatrixStream:
    """`StreamPlan.open`: find the stream, or charge it and create its files, in this order."""
    plan.check()
    path = Path(name)
    check_name(path.name, "name")
    if simulation and stream is None:
        raise ParameterError("stream must be given for a simulation, such as Stream(seed=1).")
    request = None if ledger is None else name_request(path.name)
    account = open_account(ledger, dataset, request, allowance, stream=stream, simulation=simulation)
    state, file, public = _file(path, "state"), _file(path, "json"), PublishedStream(path.name, plan, (), simulation)
    if account is not None and account.stored(_price(public)) is None:
        if state.exists() or file.exists():
            raise ParameterError(f"{state} or {file} is there already; choose another name for the stream.")
        account.charge_or_find(_price(public), public.to_json())
    if state.exists():
        _open_state(path, plan, account)
    else:
        recorded = [] if account is None else account.ledger.steps(account.dataset, public._request)
        if recorded or (file.exists() and len(PublishedStream.open(file))):
            raise LedgerError(f"{state} is missing, and the stream has steps. Continue with restart.")
        key = None if stream is None else stream.words(4).tobytes()
        StreamState.create(state, stream=_identify(path, plan, account), key=key)
    if not file.exists():
        write_file(file, public.to_json())
    return MatrixStream.open(path, ledger=None if account is None else account.ledger, dataset=dataset)


def _price(public: PublishedStream) -> Price:
    """What a stream is charged, with its whole plan: another one is refused under the same name."""
    plan = public.plan
    description = {"query": type(plan.query).__name__, "stream": public.name, "every": plan.every, "beta": plan.beta}
    return Price(plan.event, plan.neighbours, plan.unit, description, {"plan": to_json_content(plan)})


def name_request(stream: str) -> str:
    """The request id of the charge for a stream."""
    return f"stream {stream}"


def _list_hashes(steps: Iterable[PublishedStep | Step]) -> list[tuple[str, str]]:
    return [(one.name, one.digest) for one in steps]


def _find_stream(
    name: str | os.PathLike[str], ledger: Any, dataset: str | None
) -> tuple[Path, Account | None, PublishedStream]:
    """A stream that was opened before: its place, where it was charged for this plan, and what it published."""
    path = Path(name)
    account = open_account(ledger, dataset, None if ledger is None else name_request(path.name))
    public = PublishedStream.open(_file(path, "json"))
    if account is not None:
        _require_charge(account, public)
    return path, account, public


def _require_charge(account: Account, public: PublishedStream) -> None:
    """Raise a `LedgerError` unless the ledger has a charge for the stream, and for this plan."""
    if account.stored(_price(public)) is None:
        raise LedgerError(
            f"the ledger has no charge {account.request!r} to {account.dataset!r}. Use the ledger that has it."
        )


def _open_state(path: Path, plan: StreamPlan, account: Account | None) -> StreamState:
    state = StreamState(_file(path, "state"))
    if state.stream != _identify(path, plan, account):
        raise ParameterError(f"{state.path} is the state of another stream, plan or ledger. Use its own.")
    return state


def _identify(path: Path, plan: StreamPlan, account: Account | None) -> str:
    """A hash of the plan and of where it was charged, by which a state knows its stream."""
    return digest([plan, "" if account is None else account.dataset, name_request(path.name)])


def _ready_at(plan: StreamPlan, period: Period) -> datetime:
    """The moment from which a period can be published."""
    return period.end + parse_delay(plan.delay or "0 hours")


def _file(path: Path, kind: str) -> Path:
    return path.with_name(f"{path.name}.{kind}")
