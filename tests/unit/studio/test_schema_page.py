"""The schema editor through the app: what it shows, what it saves, and that no value of the table is in it."""

import re
from urllib.parse import quote

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matrixdp.domain.fields import COLUMN_FIELDS, SECTIONS
from matrixdp.domain.schema_file import parse_schema
from studio_site import ANALYST, CURATOR, SCHEMA, TABLE, Site

EDITOR = f"/tables/{TABLE}/schema"
HOSTILE = '<script>alert("x")</script>'
SENT = {
    "column.0.name": "age",
    "column.0.type": "number",
    "column.0.lower": "0",
    "column.0.upper": "100",
    "column.1.name": "ward",
    "column.1.type": "category",
    "column.1.levels": "north\r\nsouth",
    "records": "200",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    site = Site(folder)
    table = pa.table({HOSTILE: [7.5], "day": pa.array([1], pa.date32()), "held": pa.array([1], pa.duration("s"))})
    pq.write_table(table, folder / "tables" / "hostile.parquet")
    (folder / "tables" / "broken.parquet").write_text("no table")
    return site


@pytest.fixture
def curator(site):
    site.studio.schemas.write(TABLE, SCHEMA)
    return site.browser(CURATOR)


def version(client, address=EDITOR):
    return re.search(r'name="version" value="(\w*)"', client.get(address).text)[1]


def test_the_list_has_all_tables_and_their_state(curator):
    page = curator.get("/tables").text
    assert "Edit schema" in page
    assert "Write schema" in page
    assert "cannot be read" in page
    assert "clinic.csv" in page


def test_the_editor_shows_the_schema_and_no_value(curator, site):
    page = curator.get(EDITOR).text
    assert 'value="column' not in page
    assert '<input id="column.0.lower" name="column.0.lower"' in page
    assert "north\nsouth</textarea>" in page
    values = {line.split(",")[0] for line in (site.settings.folder / TABLE).read_text().splitlines()[1:]}
    assert not any(f">{value}<" in page or f'"{value}"' in page for value in values if "." in value)


def test_the_editor_has_every_field_of_a_schema(curator):
    page = curator.get(EDITOR).text
    names = {f"column.0.{one.name}" for one in COLUMN_FIELDS}
    names |= {f"{section}.{one.name}".strip(".") for section, ones in SECTIONS.items() for one in ones}
    assert {name for name in names if f'name="{name}"' not in page} == {"files.sheet"}  # for workbooks alone


def test_a_new_schema_begins_with_the_types_of_the_files(curator):
    page = curator.get("/tables/hostile.parquet/schema").text
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert "held holds lengths of time" in page
    assert '<option value="date" selected>' in page
    assert "7.5" not in page


def test_saving_writes_what_the_form_says(curator, site):
    answer = curator.post(EDITOR, data={**SENT, "action": "save", "version": version(curator)}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{EDITOR}?saved=yes")
    assert parse_schema(site.studio.schemas.require(TABLE)).columns.names == ("age", "ward")
    assert "Saved." in curator.get(answer.headers["location"]).text
    text = curator.get(f"/tables/{TABLE}/schema.toml")
    assert text.headers["content-disposition"] == 'attachment; filename="schema.toml"'
    assert "[columns.ward]" in text.text


def test_mistakes_are_beside_their_fields_and_nothing_is_saved(curator, site):
    sent = {**SENT, "column.0.upper": "-1", "records": "x", "action": "save", "version": version(curator)}
    answer = curator.post(EDITOR, data=sent)
    assert answer.status_code == 422
    assert '<p class="error" id="column.0.upper-error">Column &#39;age&#39;: lower must be below upper' in answer.text
    assert '<p class="error" id="records-error">Records must be a positive integer' in answer.text
    assert 'aria-describedby="records-hint records-error" aria-invalid="true"' in answer.text
    assert site.studio.schemas.read(TABLE) == SCHEMA


def test_a_column_that_the_table_does_not_have_is_refused(curator, site):
    sent = {**SENT, "column.0.name": "height", "action": "save", "version": version(curator)}
    answer = curator.post(EDITOR, data=sent)
    assert answer.status_code == 422
    assert "height" in answer.text
    assert site.studio.schemas.read(TABLE) == SCHEMA


def test_a_second_tab_does_not_overwrite_the_first_unseen(curator, site):
    old = version(curator)
    first = {**SENT, "records": "100", "action": "save", "version": old}
    assert curator.post(EDITOR, data=first, follow_redirects=False).status_code == 303
    second = curator.post(EDITOR, data={**first, "records": "150"})
    assert second.status_code == 409
    assert "saved from another page" in second.text
    assert 'value="150"' in second.text
    assert parse_schema(site.studio.schemas.require(TABLE)).records == 100
    again = re.search(r'name="version" value="(\w*)"', second.text)[1]
    assert curator.post(EDITOR, data={**first, "records": "150", "version": again}, follow_redirects=False).is_redirect
    assert parse_schema(site.studio.schemas.require(TABLE)).records == 150


def test_columns_are_added_and_removed_without_saving(curator, site):
    page = curator.post(EDITOR, data={**SENT, "action": "remove.0"}).text
    assert 'id="column-1"' not in page
    page = curator.post(EDITOR, data={**SENT, "action": "add", "new": "bmi"}).text
    assert 'name="column.2.name" value="bmi"' in page
    page = curator.post(EDITOR, data={**SENT, "action": "add", "new": "age"}).text
    assert 'id="column-2"' not in page  # it is there
    page = curator.post(EDITOR, data={"action": "add all"}).text
    assert 'id="column-2"' in page
    assert curator.post(EDITOR, data={**SENT, "action": "add", "new": "height"}).status_code == 404
    assert curator.post(EDITOR, data={**SENT, "action": "remove.x"}).status_code == 200
    assert site.studio.schemas.read(TABLE) == SCHEMA


def test_the_preview_shows_toml_and_what_is_missing(curator):
    page = curator.post(f"{EDITOR}/check", data={**SENT, "column.0.upper": ""}).text
    assert "[columns.age]" in page
    assert '<a href="#column.0.upper">' in page
    assert "<html" not in page
    page = curator.post(f"{EDITOR}/check", data={**SENT, "column.1.levels": '"a'}).text
    assert "# levels must have a quotation mark at both ends" in page
    assert "Complete" in curator.post(f"{EDITOR}/check", data=SENT).text


def test_a_stored_schema_that_the_form_cannot_show_is_kept(curator, site):
    path = site.studio.schemas.path(TABLE)
    path.write_text("[columns.age]\nlower = 1\n")
    page = curator.get(EDITOR).text
    assert "cannot be shown as a form" in page
    assert path.read_text() == "[columns.age]\nlower = 1\n"


def test_a_schema_of_another_sheet_of_a_workbook(curator, site):
    book = openpyxl.Workbook()
    book.active.append(["other"])
    book.create_sheet("second").append(["age"])
    book.save(site.settings.folder / "book.xlsx")
    address = "/tables/book.xlsx/schema"
    assert 'name="column.0.name" value="other"' in curator.get(address).text
    column = {name: value for name, value in SENT.items() if name.startswith("column.0.")}
    wrong = curator.post(address, data={**column, "files.sheet": "third", "action": "check"}).text
    assert 'id="files.sheet-error"' in wrong
    added = curator.post(address, data={"files.sheet": "second", "action": "add all"}).text
    assert 'name="column.0.name" value="age"' in added
    saved = curator.post(address, data={**column, "files.sheet": "second", "action": "save"}, follow_redirects=False)
    assert saved.is_redirect
    assert parse_schema(site.studio.schemas.require("book.xlsx")).rules.sheet == "second"


def test_what_is_not_there_is_not_found(curator):
    assert curator.get("/tables/none.csv/schema").status_code == 404
    assert curator.post("/tables/none.csv/schema/check", data=SENT).status_code == 404
    assert curator.get("/tables/hostile.parquet/schema.toml").status_code == 404
    assert curator.get(f"/tables/{quote('../ledger.db', safe='')}/schema").status_code == 404


@pytest.mark.parametrize("address", ["/tables", EDITOR, f"/tables/{TABLE}/schema.toml"])
def test_analysts_are_refused(site, address):
    assert site.browser(ANALYST).get(address).status_code == 403
    assert site.browser(ANALYST).post(EDITOR, data={**SENT, "action": "save"}).status_code == 403


def test_wide_tables_have_a_form(site):
    names = [f"c{number}" for number in range(80)]
    (site.settings.folder / "wide.csv").write_text(",".join(names) + "\n", encoding="utf-8")
    sent = {"records": "9", "action": "save"}
    for number, name in enumerate(names):
        values = {"name": name, "type": "number", "lower": "0", "upper": "1"}
        sent |= {f"column.{number}.{field}": value for field, value in values.items()}
        sent |= {f"column.{number}.other-{more}": "" for more in range(10)}  # as many fields as the page has
    browser = site.browser(CURATOR)
    del browser.headers["X-CSRF-Token"]
    answer = browser.post("/tables/wide.csv/schema", data={**sent, "csrf_token": site.csrf()}, follow_redirects=False)
    assert answer.status_code == 303
    page = browser.get("/tables/wide.csv/schema").text
    assert re.search(r'name="column.79.upper"[^>]* value="1"', page)
    assert 'id="column-79" data-name="c79">' in page  # closed
    for number in ("", "x", "9" * 5000):
        action = {**sent, "csrf_token": site.csrf(), "action": f"remove.{number}"}
        assert browser.post("/tables/wide.csv/schema", data=action).status_code == 200
