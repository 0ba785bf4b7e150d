"""The schema editor in a real browser."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from browser.checks import check_page
from browser.conftest import RunningSite
from matrixdp.domain.schema_file import parse_schema
from studio_site import CURATOR, SCHEMA, TABLE

EDITOR = f"/tables/{TABLE}/schema"
HOSTILE = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "a\nb",
    "{{7*7}}",
    "x" * 300,
    "عمر",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with RunningSite(tmp_path_factory.mktemp("studio")) as site:
        table = pa.table({name: pa.array([1.5]) for name in HOSTILE})
        pq.write_table(table, site.settings.folder / "hostile.parquet")
        yield site


def test_a_schema_is_written_from_the_columns_of_a_table(open_page, site):
    site.studio.schemas.path(TABLE).unlink(missing_ok=True)
    page = open_page(CURATOR)
    page.get_by_role("link", name="Schema", exact=True).click()
    page.get_by_role("link", name=f"Write schema of {TABLE}").click()
    expect(page.locator("#preview")).to_contain_text("3 to fill in or correct")
    first = page.locator("#column-0")
    first.get_by_label("Type").select_option("number")
    expect(first.get_by_label("Levels, one to a line")).to_be_hidden()
    first.get_by_label("Lower bound").fill("0")
    first.get_by_label("Upper bound").fill("-5")
    page.get_by_role("button", name="Remove bmi").click()
    expect(page.locator("#column-2")).to_have_count(0)
    ward = page.locator("#column-1")
    ward.get_by_label("Type").select_option("category")
    ward.get_by_label("Levels, one to a line").fill("north\nsouth")
    page.get_by_label("Number of records").fill("200")
    expect(page.locator("#toml")).to_contain_text('"south",')  # live, without saving
    page.get_by_role("button", name="Save schema").click()
    expect(page.locator("[id='column.0.upper-error']")).to_contain_text("lower must be below upper, got 0 and -5")
    check_page(page)
    page.locator("#column-0").get_by_label("Upper bound").fill("100")
    page.get_by_role("button", name="Save schema").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert parse_schema(site.studio.schemas.require(TABLE)).columns.names == ("age", "ward")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download TOML").click()
    assert download.value.path().read_text() == site.studio.schemas.read(TABLE)
    site.studio.schemas.write(TABLE, SCHEMA)


def test_columns_are_added_without_losing_what_was_typed(open_page, site):
    site.studio.schemas.write(TABLE, SCHEMA)
    page = open_page(CURATOR)
    page.goto(EDITOR)
    page.get_by_role("button", name="Remove bmi").click()
    page.locator("#column-0").get_by_label("Upper bound").fill("110")
    page.get_by_label("Add a column of the table").select_option("bmi")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#column-2")).to_contain_text("bmi")
    expect(page.locator("#column-0").get_by_label("Upper bound")).to_have_value("110")
    assert site.studio.schemas.read(TABLE) == SCHEMA


def test_the_editor_works_with_the_keyboard_alone(open_page, site):
    site.studio.schemas.write(TABLE, SCHEMA)
    page = open_page(CURATOR)
    page.goto(EDITOR)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    target = page.locator("[id='column.0.upper']")
    for _ in range(15):
        page.keyboard.press("Tab")
        if target.evaluate("(one) => one === document.activeElement"):
            break
    expect(target).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("105")
    expect(page.locator("#toml")).to_contain_text("upper = 105")
    expect(target).to_be_focused()  # the preview does not take the focus
    with page.expect_navigation():
        page.keyboard.press("Enter")  # checks, and does not save
    expect(page.locator("[id='column.0.upper']")).to_have_value("105")
    assert site.studio.schemas.read(TABLE) == SCHEMA
    save = page.get_by_role("button", name="Save schema")
    save.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert parse_schema(site.studio.schemas.require(TABLE)).columns["age"].upper == 105


def test_two_tabs_do_not_overwrite_each_other_unseen(open_page, site):
    site.studio.schemas.write(TABLE, SCHEMA)
    first = open_page(CURATOR)
    first.goto(EDITOR)
    second = first.context.new_page()
    second.goto(EDITOR)
    for page, number, answer in ((first, "210", "Saved."), (second, "220", "saved from another page")):
        page.get_by_label("Number of records").fill(number)
        page.get_by_role("button", name="Save schema").click()
        expect(page.get_by_text(answer)).to_be_visible()
    assert parse_schema(site.studio.schemas.require(TABLE)).records == 210
    expect(second.get_by_label("Number of records")).to_have_value("220")
    second.get_by_role("button", name="Save schema").click()
    expect(second.get_by_text("Saved.")).to_be_visible()
    assert parse_schema(site.studio.schemas.require(TABLE)).records == 220


def test_hostile_names_are_texts(open_page, site):
    page = open_page(CURATOR, width=400)
    page.goto("/tables/hostile.parquet/schema")
    page.get_by_label("Lower bound").first.wait_for()
    for number in range(len(HOSTILE)):
        column = page.locator(f"#column-{number}")
        column.get_by_label("Lower bound").fill("0")
        column.get_by_label("Upper bound").fill("9")
    page.get_by_role("button", name="Save schema").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert parse_schema(site.studio.schemas.require("hostile.parquet")).columns.names == tuple(HOSTILE)
    expect(page.locator("#column-0 > summary .name")).to_have_text(HOSTILE[0])
    assert "49" not in page.locator("#column-3 > summary").inner_text()
    check_page(page)
    site.studio.schemas.path("hostile.parquet").unlink()


def test_columns_of_a_long_form_are_closed_until_they_are_opened(open_page, site):
    (site.settings.folder / "wide.csv").write_text(",".join(f"c{number}" for number in range(50)) + "\n")
    page = open_page(CURATOR)
    page.goto("/tables/wide.csv/schema")
    page.locator("#column-45 > summary").click()
    column = page.locator("#column-45")
    column.get_by_label("Type").select_option("number")
    expect(page.locator("#column-45 > summary")).to_be_focused()
    column.get_by_label("Lower bound").fill("0")
    page.locator("#column-3 > summary").click()
    page.get_by_role("button", name="Remove c3", exact=True).click()
    column = page.locator("#column-44")  # what was opened stays open
    column.get_by_label("Upper bound").fill("9")
    expect(page.locator("#toml")).to_contain_text('[columns.c45]\ntype = "number"\nlower = 0\nupper = 9')
    page.locator("#preview").get_by_role("link", name="'c0'").click()
    expect(page.locator("#column-0").get_by_label("Type")).to_be_visible()
    check_page(page)
