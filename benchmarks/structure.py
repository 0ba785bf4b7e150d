"""Total noise before and after structure is used, beside a lower bound for Gaussian noise of any covariance.

``python -m benchmarks.structure``

Totals are sums of the variances of all entries (of one row, for kernels), in units of ``1/mu^2``. "before" is the noise
of version 0.1. The bound holds for additive Gaussian noise of every covariance; it is the dual value ``(tr M^1/2)^2``
for some distribution of neighbours, ``M = E DD'`` (`docs/mathematics.md`, section 3).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import matrixdp as mdp
from benchmarks.sizes import size
from matrixdp.sensitivity.limit import best_covariance
from matrixdp.types import Floats

PRIVACY = mdp.Privacy(1.0, 1e-6)
Row = tuple[str, float, float, float]


def total(design: mdp.Design) -> float:
    """Sum of the variances of all entries, at distance one."""
    return float(np.square(design.std).sum()) * design.distance**2


def dual_value(changes: Floats) -> float:
    """Lower bound for changes of shape (k, entries) that are drawn with equal probabilities."""
    return float(np.linalg.svd(changes / np.sqrt(len(changes)), compute_uv=False).sum()) ** 2


def counts() -> Iterator[Row]:
    """Tables of counts, a record replaced: the total is public."""
    for rows, columns in size(((2, 1), (2, 2), (2, 3), (3, 4), (10, 10)), ((2, 2),)):
        changes = np.array([a - b for a, b in itertools.permutations(np.eye(rows * columns), 2)])
        before, after = (
            mdp.make_design(
                mdp.ContingencyTable(tuple(range(rows)), tuple(range(columns)), 100, public_total=public), PRIVACY
            )
            for public in (False, True)
        )
        yield f"{rows} x {columns}", total(before), total(after), dual_value(changes)


def kernels() -> Iterator[Row]:
    """A row of a kernel against public points in a square; the bound is a solver's for pairs of 120 records."""
    bounds = mdp.Bounds([-1, -1], [1, 1])
    compared = (
        ("gaussian", 0.5, 2),
        ("gaussian", 0.5, 10),
        ("gaussian", 0.5, 50),
        ("gaussian", 0.5, 200),
        ("gaussian", 1.5, 50),
        ("gaussian", 5.0, 50),
        ("laplacian", 0.5, 50),
        ("laplacian", 5.0, 50),
    )
    for kernel, bandwidth, count in size(compared, compared[:1]):
        rng = np.random.default_rng(0)
        points = rng.uniform(-1, 1, (count, 2))
        options: dict[str, Any] = {"points": points, "kernel": kernel, "bandwidth": bandwidth}
        before = mdp.make_design(mdp.GramMatrix(bounds, 1, **options, row_change="box"), PRIVACY)
        after = mdp.make_design(mdp.GramMatrix(bounds, 1, **options), PRIVACY)
        records = np.concatenate([points[:60], rng.uniform(-1, 1, (40, 2)), rng.choice([-1.0, 1.0], (20, 2))])
        query = mdp.GramMatrix(bounds, len(records), **options)
        values = query.evaluate(records, clip=True, missing="error")
        pairs = rng.integers(0, len(records), (1500, 2))
        changes = values[pairs[:, 0]] - values[pairs[:, 1]]
        bound = best_covariance(changes[np.abs(changes).max(axis=1) > 0], np.ones(count), steps=60).bound
        yield f"{kernel}, bandwidth {bandwidth:g}, {count} points", total(before), total(after), bound


def laplacians() -> Iterator[Row]:
    """Laplacians of graphs, an edge changed: rows sum to zero."""
    for nodes in size((2, 3, 5, 10, 34, 100), (3,)):
        first, second = np.triu_indices(nodes, 1)
        ends = np.eye(nodes)[first] - np.eye(nodes)[second]
        changes = np.einsum("ki,kj->kij", ends, ends).reshape(len(ends), -1)
        before, after = (
            mdp.make_design(mdp.Laplacian(nodes), PRIVACY, allocation=rule) for rule in ("isotropic", None)
        )
        weights = np.linalg.eigvalsh(changes @ changes.T)  # squares of singular values, faster
        bound = float(np.sqrt(np.maximum(weights, 0.0)).sum()) ** 2 / len(changes)
        yield f"{nodes} nodes", total(before), total(after), bound


def show(title: str, rows: Iterator[Row]) -> None:
    """Print a table."""
    print(f"\n{title}\n\n| | before | after | bound | before/after | after/bound |")
    print("| --- | --- | --- | --- | --- | --- |")
    for what, before, after, bound in rows:
        print(f"| {what} | {before:.4g} | {after:.4g} | {bound:.4g} | {before / after:.3f} | {after / bound:.4f} |")


def main() -> None:
    """Print all tables."""
    show("Tables of counts (replace)", counts())
    show("Kernel values at public points, one row", kernels())
    show("Laplacians", laplacians())


if __name__ == "__main__":
    main()
