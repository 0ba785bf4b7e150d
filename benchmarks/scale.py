"""Out-of-core records: threads compared with a lower limit, Dask and Spark with threads, and time by number of rows."""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import matrixdp as mdp
from benchmarks.sizes import size
from benchmarks.timing import compare, duration, peak_memory, row
from matrixdp.release.dataset import release_dataset

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from postgres_server import PostgresServer

FEATURES = 50
NAMES = [f"x{i}" for i in range(FEATURES)]
BOUNDS = mdp.Bounds([-6] * FEATURES, [6] * FEATURES, names=NAMES)
MILLION = size(10**6, 40)
RECORDS = 10 * MILLION
GROUP = MILLION // 4
SIZES = tuple(count * MILLION for count in size((1, 3, 10, 20, 40), (1, 10)))
_PEAK = """
import re, sys
import matrixdp as mdp
names = [f"x{i}" for i in range(50)]
query = mdp.SecondMoment(mdp.Bounds([-6] * 50, [6] * 50, names=names), int(sys.argv[2]))
query.evaluate(mdp.open_records(sys.argv[1]), clip=True, missing="error")
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def run() -> list[dict[str, Any]]:
    """Return all rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files = write_tables(place)
        rows = [*against_the_limit(files[RECORDS]), *memory(files), *growth(files)]
        rows += [*in_a_database(place)]
        rows += [*on_dask(files[SIZES[-1]]), *on_spark(files[SIZES[0]]), *data_sets(files[SIZES[0]], place / "noisy")]
    return rows


def write_tables(place: Path) -> dict[int, Path]:
    """Write folders of files of a million float32 records; larger folders link to the same ten files repeatedly."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float32()) for name in NAMES])
    (place / "files").mkdir()
    for number in range(RECORDS // MILLION):
        with pq.ParquetWriter(place / "files" / f"{number}.parquet", schema, use_dictionary=False) as writer:
            for _ in range(MILLION // GROUP):
                columns = [rng.standard_normal(GROUP, np.float32) for _ in NAMES]
                writer.write_table(pa.table(columns, schema=schema))
    made = {}
    for count in SIZES:
        made[count] = place / str(count)
        made[count].mkdir()
        for number in range(count // MILLION):
            source = place / "files" / f"{number % (RECORDS // MILLION)}.parquet"
            os.link(source, made[count] / f"{number:03d}.parquet")
    return made


def second_moment(folder: Path, records: int, **options: Any) -> Any:
    query = mdp.SecondMoment(BOUNDS, records)
    return query.evaluate(mdp.open_records(folder, **options), clip=True, missing="error")


def against_the_limit(folder: Path) -> list[dict[str, Any]]:
    """Compare with decoding, copying to float64 and multiplying each row group, on one thread per core."""

    def group(place: tuple[Path, int]) -> Any:
        table = pq.ParquetFile(place[0]).read_row_group(place[1], use_threads=False)
        columns = np.empty((FEATURES, table.num_rows))
        for j, column in enumerate(table.columns):
            columns[j] = column.to_numpy()
        return columns @ columns.T

    def limit() -> Any:
        places = [
            (path, i) for path in sorted(folder.iterdir()) for i in range(pq.ParquetFile(path).metadata.num_row_groups)
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return sum(pool.map(group, places))

    with threadpool_limits(1):
        ours, peer = compare(lambda: second_moment(folder, RECORDS), limit, rounds=5)
    what = f"second moment of {RECORDS:,} x {FEATURES} float32 from Parquet, against decode, float64 copy and syrk"
    return [row(what, ours, peer, "at most 1.3", slower=True), _rate("  rows a second by threads", RECORDS, ours)]


def in_a_database(place: Path) -> list[dict[str, Any]]:
    """Compare moments of a table in PostgreSQL and in DuckDB with reading the same columns and adding nothing."""
    import adbc_driver_postgresql.dbapi
    import duckdb

    rows, columns = size(10**7, 1000), ", ".join(f"random() AS x{i}" for i in range(5))
    filled = f"CREATE TABLE visits AS SELECT {columns} FROM generate_series(1, {rows})"
    bounds = mdp.Bounds([0] * 5, [1] * 5, names=NAMES[:5])
    query = mdp.Moments(bounds, rows)
    with duckdb.connect(str(place / "visits.duckdb")) as connection:
        connection.execute(filled)
    server = PostgresServer()
    with server.connect() as session:
        session.execute(filled)

    def read_duckdb() -> int:
        with duckdb.connect(str(place / "visits.duckdb"), read_only=True) as connection:
            return sum(batch.num_rows for batch in connection.sql("SELECT * FROM visits").to_arrow_reader())

    def read_postgres() -> int:
        with adbc_driver_postgresql.dbapi.connect(server.url()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM visits")
            return sum(batch.num_rows for batch in cursor.fetch_record_batch())

    urls = {"PostgreSQL": f"{server.url()}&table=visits", "DuckDB": f"duckdb:///{place}/visits.duckdb?table=visits"}
    found = []
    for name, peer in (("PostgreSQL", read_postgres), ("DuckDB", read_duckdb)):
        data = urls[name]
        ours, theirs = compare(lambda data=data: query.evaluate(data, clip=True, missing="error"), peer, rounds=3)
        wanted = "at most 1.2" if name == "PostgreSQL" else ""
        found.append(row(f"moments of 5 columns in {name}, against reading them", ours, theirs, wanted, slower=True))
    server.stop(immediate=True)
    return found


def memory(files: dict[int, Path]) -> list[dict[str, Any]]:
    """Measure the peak memory of a separate process, for few and for many rows."""
    peaks = [peak_memory(_PEAK, files[count], count) for count in (SIZES[0], SIZES[-1])]
    return [
        {
            "what": f"peak memory for {SIZES[-1]:,} rows, against {SIZES[0]:,}",
            "ours": f"{peaks[1]:,.0f} MiB",
            "peer": f"{peaks[0]:,.0f} MiB",
            "ratio": f"{peaks[1] / peaks[0]:.3g}x",
            "note": "wanted: at most 600 MB, for any number of rows",
        }
    ]


def growth(files: dict[int, Path]) -> list[dict[str, Any]]:
    """Measure the time by the number of rows."""
    second_moment(files[SIZES[0]], SIZES[0])
    times = {count: statistics.median(_timed(files[count], count) for _ in range(size(3, 1))) for count in SIZES}
    base = times[SIZES[0]] / SIZES[0]
    return [
        {
            "what": f"  second moment of {count:,} x {FEATURES} by threads, against 1,000,000 rows",
            "ours": duration(took),
            "peer": duration(took / count * 10**6) + "/M",
            "ratio": f"{took / count / base:.3g}x a row",
            "note": "wanted: linear" if count == SIZES[0] else "",
        }
        for count, took in times.items()
    ]


def _timed(folder: Path, records: int) -> float:
    start = time.perf_counter()
    second_moment(folder, records)
    return time.perf_counter() - start


def on_dask(folder: Path) -> list[dict[str, Any]]:
    """Compare two worker processes with two threads."""
    from distributed import Client, LocalCluster

    records = SIZES[-1]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        dask = second_moment(folder, records, workers=client)
        assert np.array_equal(dask, second_moment(folder, records, workers=2))
        ours, peer = compare(
            lambda: second_moment(folder, records, workers=client),
            lambda: second_moment(folder, records, workers=2),
            rounds=3,
        )
    what = f"second moment of {records:,} x {FEATURES}, two Dask workers against two threads"
    return [row(what, ours, peer, "at most 1.2", slower=True), _rate("  rows a second by Dask", records, ours)]


def on_spark(folder: Path) -> list[dict[str, Any]]:
    """Compare Spark with threads, if Spark is installed."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        return []
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    records = SIZES[0]
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frame = session.read.parquet(str(folder))
        query = mdp.SecondMoment(BOUNDS, records)

        def spark() -> Any:
            return query.evaluate(frame, clip=True, missing="error")

        assert np.array_equal(spark(), second_moment(folder, records))
        ours, peer = compare(spark, lambda: second_moment(folder, records), rounds=3)
    finally:
        session.stop()
    what = f"second moment of {records:,} x {FEATURES}, Spark against threads"
    return [row(what, ours, peer, slower=True), _rate("  rows a second by Spark", records, ours)]


def data_sets(folder: Path, out: Path) -> list[dict[str, Any]]:
    """Compare a noisy data set with a copy of the records from Parquet to Parquet as float64."""
    records = SIZES[0]
    design = mdp.make_design(mdp.Identity(BOUNDS, records), mdp.Privacy(1, 1e-9))

    def copy() -> None:
        table = pq.read_table(folder)
        wide = pa.table([column.cast(pa.float64()) for column in table.columns], names=NAMES)
        pq.write_table(wide, out.with_name("copy.parquet"), compression="none", use_dictionary=False)

    ours, peer = compare(lambda: release_dataset(design, folder, out, force=True), copy, rounds=3)
    what = f"noisy data set of {records:,} x {FEATURES} from Parquet to Parquet, against a copy in float64"
    return [row(what, ours, peer, slower=True), _rate("  rows a second", records, ours)]


def _rate(what: str, rows: int, took: float) -> dict[str, Any]:
    return {"what": what, "ours": f"{rows / took / 1e6:.3g} M/s", "peer": "", "ratio": "", "note": ""}
