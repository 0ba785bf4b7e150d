"""How much more noise the paper's Theorem 2 needs than the exact condition: one table, and its range.

``python -m benchmarks.calibrations``. Root mean square noise with Theorem 2 as printed, over that with the exact
calibration, for the same query, budget and allocation; delta is one over the number of records.
"""

from __future__ import annotations

from itertools import product

from benchmarks.sizes import size
from matrixdp import Bounds, Identity, Moments, Privacy, SecondMoment, make_design

EPSILONS = (0.1, 1.0, 10.0)
QUERIES = {"moments": Moments, "second moment": SecondMoment, "records": Identity}
FEATURES, RECORDS = size((1, 10, 100), (1, 3)), size((100, 10_000), (100,))


def ratio(query: str, features: int, records: int, epsilon: float) -> float:
    """Noise of Theorem 2 as printed over that of the exact condition."""
    bounds = Bounds([0] * features, [1] * features)
    design = make_design(QUERIES[query](bounds, records), Privacy(epsilon, 1 / records))
    return design.alternatives()["theorem2"] / design.rmse


def main() -> None:
    print(f"| release of | features | records | {' | '.join(f'epsilon {epsilon:g}' for epsilon in EPSILONS)} |")
    print("| --- " * (3 + len(EPSILONS)) + "|")
    found = []
    for query, features, records in product(QUERIES, FEATURES, RECORDS):
        ratios = [ratio(query, features, records, epsilon) for epsilon in EPSILONS]
        found += ratios
        print(f"| {query} | {features} | {records:,} | {' | '.join(f'{one:.2g}' for one in ratios)} |")
    print(f"\nFrom {min(found):.2g} to {max(found):.2g} times.")


if __name__ == "__main__":
    main()
