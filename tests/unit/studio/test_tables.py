"""The folder of tables: names, columns and types, and no way out of it."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import DataError, ParameterError
from matrixdp.studio.datasets import TableFolder
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.requests import ReleaseSpec, Status
from matrixdp.studio.worker import load_request, release_request
from studio_site import ANALYST, BOTH, CURATOR, SCHEMA, SPEC, TABLE, Site

ESCAPES = (
    "..",
    ".",
    "",
    "/etc/passwd",
    "../ledger.db",
    "..%2fledger.db",
    "a/../../x.csv",
    ".studio",
    "_x.csv",
    "a\0.csv",
    "long" * 100 + ".csv",
)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "private.csv").write_text("age\n1\n")
    return Site(tmp_path)


def test_tables_are_files_and_folders_of_files(site):
    folder = site.settings.folder
    pq.write_table(pa.table({"age": pa.array([1.5]), "ward": pa.array(["n"])}), folder / "a.parquet")
    (folder / "visits").mkdir()
    pq.write_table(pa.table({"age": pa.array([1])}), folder / "visits" / "1.parquet")
    (folder / "notes.md").write_text("no table")
    (folder / ".hidden.csv").write_text("a\n")
    tables = site.studio.tables
    assert tables.list_all() == ["a.parquet", TABLE, "visits"]
    assert [(c.name, c.type) for c in tables.columns("a.parquet")] == [("age", "double"), ("ward", "string")]
    assert [(c.name, c.type) for c in tables.columns(TABLE)] == [("age", None), ("bmi", None), ("ward", None)]


@pytest.mark.parametrize("name", ["x" * 216 + ".csv", "é" * 125 + "x.csv"])  # 220 and 255 bytes
def test_a_name_may_be_as_long_as_the_file_system_allows(site, name):
    (site.settings.folder / name).write_text((site.settings.folder / TABLE).read_text())
    page = site.browser(BOTH)
    assert page.get(f"/tables/{name}/schema").status_code == 200
    site.studio.schemas.write(name, SCHEMA)
    assert site.studio.schemas.read(name) == SCHEMA
    site.studio.datasets.register(CURATOR, "long", name, epsilon=4.0, delta=1e-6)
    spec = ReleaseSpec.from_mapping(SPEC)
    request = site.studio.requests.submit(ANALYST, "long", name, spec, "a long name", "form")
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    assert load_request(site.studio.state, request.id).status is Status.RELEASED
    for address in ("/tables", "/datasets/long", f"/requests/{request.id}", f"/results/{request.id}"):
        assert page.get(address).status_code == 200


@pytest.mark.parametrize("name", ESCAPES)
def test_names_do_not_leave_the_folder(site, name):
    with pytest.raises(NotFoundError):
        site.studio.tables.path(name)
    with pytest.raises(NotFoundError):
        site.studio.schemas.write(name, SCHEMA)


@pytest.mark.parametrize("name", [*ESCAPES[3:], "..%2f..%2fledger.db", "%2e%2e", "..%5cledger.db"])
def test_addresses_do_not_leave_the_folder(site, name):
    api, page = site.api(BOTH), site.browser(BOTH)
    name = name.replace("\0", "%00")
    for path in (f"/api/tables/{name}", f"/api/tables/{name}/schema", f"/api/results/{name}/files/{name}"):
        assert api.get(path).status_code in (404, 405), path
    for path in (f"/tables/{name}/schema", f"/static/{name}", f"/static/../{name}", f"/results/x/files/{name}"):
        assert page.get(path).status_code in (404, 405), path


def test_links_do_not_leave_the_folder(site, tmp_path):
    folder = site.settings.folder
    (folder / "link.csv").symlink_to(tmp_path / "private.csv")
    (folder / "away").symlink_to(tmp_path)
    (folder / "same.csv").symlink_to(folder / TABLE)
    (folder / "mixed").mkdir()
    (folder / "mixed" / "link.csv").symlink_to(tmp_path / "private.csv")
    tables = site.studio.tables
    assert tables.list_all() == [TABLE, "mixed", "same.csv"]
    for name in ("link.csv", "away"):
        with pytest.raises(NotFoundError):
            tables.path(name)
    with pytest.raises(NotFoundError, match="leads out"):
        tables.columns("mixed")


def test_a_table_that_became_a_link_is_not_released(site, tmp_path):
    asked = site.ask()
    site.studio.requests.approve(CURATOR, asked.id)
    (site.settings.folder / TABLE).unlink()
    (site.settings.folder / TABLE).symlink_to(tmp_path / "private.csv")
    release_request(site.settings, asked.id)
    assert load_request(site.studio.state, asked.id).error_kind == "NotFoundError"


def test_schemas_are_checked_and_kept_whole(site):
    schemas = site.studio.schemas
    with pytest.raises(ParameterError, match=r"clinic\.csv\.toml"):
        schemas.write(TABLE, "[columns.age]\ntype = 'number'\nlower = 5\nupper = 1\n")
    with pytest.raises(DataError, match="no column 'weight'"):
        schemas.write(TABLE, SCHEMA + '\n[columns.weight]\ntype = "yes/no"\n')
    with pytest.raises(ParameterError, match="characters"):
        schemas.write(TABLE, "#" * 600_000)
    assert schemas.read(TABLE) == SCHEMA
    assert parse_schema(schemas.require(TABLE)).records == 200
    os.remove(schemas.path(TABLE))
    with pytest.raises(NotFoundError, match="no schema"):
        parse_schema(schemas.require(TABLE))
    with pytest.raises(NotFoundError, match="no schema"):
        site.ask()


def test_a_folder_that_is_gone_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        TableFolder(tmp_path / "nothing").list_all()
