"""``python -m benchmarks.streams``: noise of streams beside other ways, their errors, bars, cost, size and kills.

Noise is in units of one release with the whole budget, for a record that is in one step. Parts by name: noise, people,
ward, coverage, cost, state, kills.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import matrixdp as mdp
from benchmarks.sizes import few, size
from benchmarks.timing import compare
from matrixdp.display import format_table
from matrixdp.mechanisms.mechanism import prepare
from matrixdp.noise import draw_gaussian
from matrixdp.release.stream import PublishedStep, PublishedStream, add_steps, draw_step, round_step
from matrixdp.release.stream_plan import GRID_BITS, StreamPlan
from matrixdp.release.stream_state import StreamState
from matrixdp.sensitivity.stream_change import BITS

ADD_REMOVE = mdp.Neighbours.ADD_REMOVE
PRIVACY = mdp.Privacy(epsilon=1, delta=1e-6)
HORIZONS = few([7, 52, 365, 3650])
WEEKS, ROWS, NUMBERS = size(52, 4), size(5000, 200), size(10, 2)
WARDS = [f"w{i}" for i in range(5)]
SHARES = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
KILLS = size(200, 2)


def fix_beta(plan: StreamPlan, beta: float) -> StreamPlan:
    """A plan with another exponent, for what needs no guarantee: noise relative to its own kappa."""
    return replace(plan, beta=beta)


def plan_for(last: int | None, **options: Any) -> StreamPlan:
    query = mdp.SecondMoment(mdp.Bounds([-1], [1]), records=100, neighbours=ADD_REMOVE)
    return mdp.make_stream(query, PRIVACY, every="step", last=last, **options)


def totals(plan: StreamPlan, horizon: int) -> tuple[float, float]:
    """Root mean square and largest noise of totals after up to `horizon` steps."""
    inverse = plan.inverse_coefficients(horizon)
    ends = np.unique(np.geomspace(1, horizon, 60).astype(int)) if horizon > 400 else np.arange(1, horizon + 1)
    weights = np.ones(horizon) if plan.weights is None else 2.0**16 / plan.weights[:horizon]
    found = [np.linalg.norm(np.convolve(weights[:end][::-1], inverse[:end])[:end]) * plan.kappa for end in ends]
    values = np.interp(np.arange(1, horizon + 1), ends, found)
    return float(np.sqrt((values**2).mean())), float(values.max())


def period(plan: StreamPlan, horizon: int) -> float:
    """Root mean square noise of single periods."""
    inverse = np.cumsum(plan.inverse_coefficients(horizon) ** 2)
    weights = np.ones(horizon) if plan.weights is None else 2.0**16 / plan.weights[:horizon]
    return float(plan.kappa * np.sqrt((inverse * weights**2).mean()))


def nuclear_bound(horizon: int) -> float:
    """A root mean square of totals that no Gaussian noise is below: a nuclear norm, for the worst weights of steps.

    Beyond 400 steps for equal weights, which is a little lower.
    """
    angles = (2 * np.arange(1, horizon + 1) - 1) * math.pi / (2 * (2 * horizon + 1))
    equal = float((0.5 / np.sin(angles)).sum() / horizon)
    if horizon > 400:
        return equal
    below = np.tri(horizon)
    gram, weights, best = below.T @ below / horizon, np.full(horizon, 1 / horizon), equal
    for _ in range(60):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(gram * root * root[:, None])
        diagonal = (vectors**2) @ np.sqrt(np.maximum(values, 0.0))
        best, weights = max(best, float(diagonal.sum())), diagonal / diagonal.sum()
    return best


def show_noise() -> None:
    lines: dict[str, list[str]] = {}
    for horizon in HORIZONS:
        known = plan_for(horizon)
        rows = {"no Gaussian noise has less, totals": f"{nuclear_bound(horizon):.3g}"}
        for beta in (0.5, 0.3):
            plan = fix_beta(known, beta)
            mean, largest = totals(plan, horizon)
            rows[f"beta {beta}, end known: totals; period"] = f"{mean:.3g}/{largest:.3g}; {period(plan, horizon):.3g}"
        endless = fix_beta(plan_for(None), 0.3)
        kappa, inverse = endless.kappa, endless.inverse_coefficients(horizon)
        after = kappa * np.linalg.norm(np.cumsum(inverse))
        rows["beta 0.3, no end: total after all; period"] = f"{after:.3g}; {kappa * np.linalg.norm(inverse):.3g}"
        steps = np.arange(1, horizon + 1)
        rows["periods apart: totals; period"] = f"{math.sqrt(steps.mean()):.3g}/{math.sqrt(horizon):.3g}; 1"
        rows["total anew: total; period"] = f"{math.sqrt(horizon):.3g}; {math.sqrt(2 * horizon):.3g}"
        levels = horizon.bit_length()
        ones = np.array([int(step).bit_count() for step in steps])
        tree = f"{math.sqrt(levels * ones.mean()):.3g}/{math.sqrt(levels * ones.max()):.3g}; {math.sqrt(levels):.3g}"
        rows["binary tree: totals; period"] = tree
        for what, words in rows.items():
            lines.setdefault(what, []).append(words)
    print(format_table(("noise", *(f"T = {one:,}" for one in HORIZONS)), [[k, *v] for k, v in lines.items()]))


def show_people() -> None:
    query = mdp.SecondMoment(
        mdp.Bounds([-1], [1], names=["x"]), records=100, neighbours=ADD_REMOVE, person=mdp.Person("id")
    )
    rows = []
    for steps, apart in few([(1, 1), (2, 1), (4, 1), (4, 13), (12, 1), (52, 1)]):
        words = [f"{steps}" + f", {apart} apart" * (apart > 1)]
        independent = math.sqrt(steps)
        words.append(f"{independent * math.sqrt(26.5):.3g}; {independent:.3g}")
        for aim in ("both", "total"):
            plan = mdp.make_stream(query, PRIVACY, every="step", last=52, steps=steps, apart=apart, aim=aim)
            words.append(f"beta {plan.beta:.2f}: {totals(plan, 52)[0]:.3g}; {period(plan, 52):.3g}")
        rows.append(words)
    print(format_table(("people in k of 52 weeks", "independent", "aim both", "aim total"), rows))


def publish_all(plan: StreamPlan, tables: list[Any], seed: int) -> PublishedStream:
    """A simulated stream of tables, without files."""
    noise, sums, published = mdp.Stream(seed=seed), [], []
    for number, table in enumerate(tables):
        sums.append(round_step(plan, prepare(plan.design, table, clip=True, missing="error"), number))
        drawn = draw_gaussian(noise, BITS + GRID_BITS, shape=plan.dimension).tolist()
        noisy = tuple(a + b for a, b in zip(add_steps(plan, sums), drawn, strict=True))
        published.append(PublishedStep(f"s{number}", 0, noisy))
    return PublishedStream("ward", plan, tuple(published), simulation=True)


def make_ward(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    common = rng.normal(size=(rows, 1))
    values = np.clip(0.6 * common + 0.8 * rng.normal(size=(rows, NUMBERS)), -4, 4)
    names = {f"x{i}": values[:, i] for i in range(NUMBERS)}
    return {**names, "ward": rng.choice(WARDS, rows, p=SHARES)}


def ward_query(records: int) -> mdp.TableMoments:
    columns = mdp.Columns([*(mdp.Number(f"x{i}", -4, 4) for i in range(NUMBERS)), mdp.Category("ward", WARDS)])
    return mdp.TableMoments(columns, records=records, neighbours=ADD_REMOVE)


def show_ward() -> None:
    """Mean absolute errors of cumulative correlations, and of this week's means, in standard deviations."""
    rng = np.random.default_rng(0)
    tables = [make_ward(rng, ROWS) for _ in range(WEEKS)]
    known = mdp.make_stream(ward_query(ROWS), PRIVACY, every="step", last=WEEKS)
    weeks = sorted({min(one, WEEKS) for one in (4, 13, 26, 52)})
    values = [np.column_stack([table[f"x{i}"] for i in range(NUMBERS)]) for table in tables]

    def measure(read: Callable[[int], Any], week: Callable[[int], Any]) -> list[str]:
        lower, errors = np.tril_indices(NUMBERS, -1), []
        for end in weeks:
            truth = np.corrcoef(np.concatenate(values[:end]), rowvar=False)
            errors.append(np.nanmean(np.abs(read(end).correlation().value - truth)[lower]))
        all_records = np.abs(week(WEEKS).means().value[:, 0] - values[-1].mean(axis=0)).mean()
        truth = np.array([values[-1][tables[-1]["ward"] == ward].mean(axis=0) for ward in WARDS])
        found = week(WEEKS).means(by="ward").value[:, 1:]
        wards = np.nanmean(np.abs(found - truth), axis=1)
        return [", ".join(f"{one:.3f}" for one in errors), f"{all_records:.3f}, {wards[0]:.3f}, {wards.mean():.3f}"]

    rows = []
    for name, beta in (("beta 0.3", 0.3), ("beta 0.5", 0.5), ("periods apart", 0.0)):
        plan = calibrated(known, beta)
        stream = publish_all(plan, tables, seed=1)
        rows.append(
            [name, *measure(lambda end, s=stream: s.between("s0", f"s{end - 1}"), lambda _, s=stream: s.period())]
        )
    share = 1 / WEEKS
    weekly = mdp.make_design(ward_query(ROWS), PRIVACY, share=share)
    noise = math.sqrt(WEEKS)
    plan = calibrated(known, 0.0)
    released = [weekly.release(t, stream=mdp.Stream(seed=i), simulation=True).matrix for i, t in enumerate(tables)]

    def add_up(end: int) -> mdp.Release:
        design = plan.scaled_design(end, noise * math.sqrt(end))
        return mdp.Release(np.mean(released[:end], axis=0), design, simulation=True)

    def only_last(end: int) -> mdp.Release:
        return mdp.Release(released[end - 1], plan.scaled_design(1, noise), simulation=True)

    rows.append([f"as without streams, mu/sqrt({WEEKS})", *measure(add_up, only_last)])
    head = (
        f"ward table, {ROWS:,} rows a week",
        "correlations after " + ", ".join(map(str, weeks)),
        "means of this week",
    )
    print(format_table(head, rows))


def calibrated(known: StreamPlan, beta: float) -> StreamPlan:
    """The plan with another exponent and noise that fits it."""
    plan = replace(known, beta=beta)
    share = plan.kappa**-2
    for _ in range(20):
        plan = replace(plan, design=mdp.make_design(plan.query, PRIVACY, share=min(share, 1.0)))
        if plan.mu <= PRIVACY.mu:
            break
        share *= (PRIVACY.mu / plan.mu) ** 2 * (1 - 1e-13)
    return plan


def count_coverage(streams: int, steps: int = 12, rows: int = 400) -> dict[str, float]:
    """Shares of 95% intervals that cover: of means in periods, windows and totals, and of differences of means."""
    rng, columns = np.random.default_rng(5), mdp.Columns([mdp.Number("x", -4, 4), mdp.Category("ward", ["a", "b"])])
    query = mdp.TableMoments(columns, records=rows, neighbours=ADD_REMOVE)
    plan = mdp.make_stream(query, mdp.Privacy(2, 1e-6), every="step", last=steps)
    hits: dict[str, list[bool]] = {"period": [], "window": [], "total": [], "difference": []}
    for number in range(streams):
        values = rng.normal(size=(steps, rows)).clip(-4, 4)
        wards = rng.choice(["a", "b"], (steps, rows))
        stream = publish_all(plan, [{"x": x, "ward": w} for x, w in zip(values, wards, strict=True)], seed=number)

        def note(kind: str, estimate: Any, truth: list[float]) -> None:
            low, high = estimate.interval()
            hits[kind] += [bool(a <= t <= b) for a, b, t in zip(low.ravel(), high.ravel(), truth, strict=True)]

        means = [[values[t][wards[t] == w].mean() for w in "ab"] for t in range(steps)]
        series = stream.series("x", by="ward")
        note("period", series.to_estimate(), [one for pair in means for one in pair])
        for i, j in ((1, 0), (steps - 1, steps - 2), (steps - 1, 0)):
            note(
                "difference",
                series.difference(f"s{i}", f"s{j}"),
                [a - b for a, b in zip(means[i], means[j], strict=True)],
            )
        for kind, first in (("window", steps - 4), ("total", 0)):
            release = stream.between(f"s{first}", f"s{steps - 1}")
            chosen = [values[first:][wards[first:] == w].mean() for w in "ab"]
            note(kind, release.means(by="ward").column("x"), chosen)
    return {kind: float(np.mean(found)) for kind, found in hits.items()}


def show_cost() -> None:
    """Time of a step of many rows relative to a plain release, and of a late step of a long stream."""
    rows = size(10**6, 1000)
    bounds = mdp.Bounds([-4] * 10, [4] * 10)
    data = np.random.default_rng(0).normal(size=(rows, 10))
    query = mdp.Moments(bounds, records=rows, neighbours=ADD_REMOVE)
    plan = mdp.make_stream(query, PRIVACY, every="step", last=100)
    with tempfile.TemporaryDirectory() as folder:
        stream = plan.open(Path(folder, "cost"), stream=mdp.Stream(seed=1), simulation=True)
        numbers = iter(range(100))
        design = mdp.make_design(query, PRIVACY)
        ours, peer = compare(
            lambda: stream.publish(data, step=f"s{next(numbers)}"),
            lambda: design.release(data, stream=mdp.Stream(seed=1), simulation=True),
        )
    print(f"a step of {rows:,} rows takes {ours / peer:.2f} times a plain release ({ours:.3f} s, {peer:.3f} s)")


def show_state() -> None:
    """Size of the state of a long stream, and the time of its last step."""
    steps, query = size(3650, 20), mdp.SecondMoment(mdp.Bounds([-1] * 44, [1] * 44), 1000, neighbours=ADD_REMOVE)
    plan = mdp.make_stream(query, PRIVACY, every="step", last=steps)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        state = StreamState.create(Path(folder, "long"), stream="long")
        for number in range(steps):
            sums = rng.integers(-(2**40), 2**40, plan.dimension)
            state.add(number, f"s{number}", sums, np.empty(0, np.uint64), None)
        megabytes = Path(folder, "long").stat().st_size / 2**20
        begin = time.perf_counter()
        draw_step(plan, state, steps - 1, "last")
        took = time.perf_counter() - begin
    print(
        f"{steps:,} steps of {plan.dimension:,} numbers: a state of {megabytes:.1f} MiB, and {took:.3f} s for the last"
    )


def show_kills() -> None:
    """Steps that SIGKILL stops at random moments: after the same call again, the same bits and one charge."""
    chance = random.Random(7)
    columns = mdp.Columns([mdp.Number("x", 0, 1)])
    plan = mdp.make_stream(mdp.TableMoments(columns, records=50, neighbours=ADD_REMOVE), PRIVACY, every="step")
    with tempfile.TemporaryDirectory() as folder:
        place, book = Path(folder, "ward"), Path(folder, "ledger.db")
        with mdp.Ledger.create(book) as ledger:
            ledger.register("clinic", mdp.Privacy(2, 1e-6), neighbours="add-remove")

        def run(step: int) -> None:
            with mdp.Ledger.open(book) as ledger:
                stream = plan.open(place, ledger=ledger, dataset="clinic")
                stream.publish({"x": np.full(50, step / (2 * KILLS))}, step=f"s{step}")

        run(0)
        begin = time.perf_counter()
        run(1)
        longest = time.perf_counter() - begin
        seen, stopped = 2, 0
        for number in range(2, KILLS + 2):
            child = os.fork()
            if not child:
                try:
                    run(number)
                finally:
                    os._exit(0)
            time.sleep(chance.uniform(0.0, longest))
            os.kill(child, signal.SIGKILL)
            stopped += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
            before = PublishedStream.open(f"{place}.json").published
            with mdp.Ledger.open(book) as ledger:
                recorded = ledger.steps("clinic", "stream ward")
            run(number)
            after = PublishedStream.open(f"{place}.json").published
            assert after[: len(before)] == before, "what was published has changed"
            assert [one.digest for one in recorded] == [one.digest for one in after[: len(recorded)]]
            seen = len(after)
        with mdp.Ledger.open(book) as ledger:
            ledger.verify()
            assert len(ledger.history("clinic")) == 1
        print(f"{KILLS} kills, {stopped} stopped a step; {seen} steps, the same bits, one charge")


def print_coverage() -> None:
    found = count_coverage(size(300, 2))
    print("95% intervals that cover: " + ", ".join(f"{kind} {100 * share:.1f}%" for kind, share in found.items()))


PARTS = {
    "noise": show_noise,
    "people": show_people,
    "ward": show_ward,
    "coverage": print_coverage,
    "cost": show_cost,
    "state": show_state,
    "kills": show_kills,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    for name in parser.parse_args().parts or PARTS:
        PARTS[name]()
        print(flush=True)


if __name__ == "__main__":
    main()
