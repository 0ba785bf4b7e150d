"""Results through the app: the list, one release, the explorer, the report and downloads."""

import hashlib
import html
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.answers.estimate import CUT_NOTE
from matrixdp.report.page import write_words
from matrixdp.studio import requests
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, BOTH, CURATOR, SCHEMA, TABLE, Site


def make_release(site, form_id, **changes):
    request = site.ask(form_id=form_id, **changes)
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    assert site.studio.requests.get(CURATOR, request.id).status.value == "released"
    return request.id


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("studio"), epsilon=50.0)


@pytest.fixture(scope="module")
def everything(site):
    return f"/results/{make_release(site, 'a', query='everything', columns=None, method=None, by='ward', epsilon=8.0)}"


@pytest.fixture(scope="module")
def moments(site):
    return f"/results/{make_release(site, 'b', query='moments', method=None)}"


@pytest.fixture(scope="module")
def analyst(site, everything, moments):
    return site.browser(ANALYST)


def spent(site):
    return [charge.event for charge in site.studio.datasets.history("clinic")]


def test_the_list_has_every_release(analyst, everything, moments):
    page = analyst.get("/results").text
    assert f'href="{everything}"' in page
    assert f'href="{moments}"' in page
    assert "Everything by ward" in page


def test_an_empty_list_says_what_to_do(tmp_path):
    assert "Nothing was released yet" in Site(tmp_path).browser(BOTH).get("/results").text


def test_a_result_says_that_exploring_costs_nothing_and_charges_nothing(analyst, site, everything):
    before = spent(site)
    page = analyst.get(everything).text
    assert "costs no privacy" in page
    assert "post-processing" in page
    for kind in ("means", "means_by", "correlation", "covariance", "regression", "components"):
        answer = analyst.get(f"{everything}/explore", params={"kind": kind})
        assert answer.status_code == 200, answer.text
        assert '<table class="numbers' in answer.text
    assert spent(site) == before


def test_the_explorer_answers_what_the_address_asks(analyst, everything):
    page = analyst.get(f"{everything}/explore", params={"kind": "means", "group.0": "north"}).text
    assert "Means, ward north" in page
    page = analyst.get(
        f"{everything}/explore", params={"kind": "regression", "target": "bmi", "on": "age", "group.0": "south"}
    ).text
    assert "Regression of bmi, ward south" in page
    assert "intercept" in page


def test_of_two_columns_of_groups_each_has_its_own_choice(tmp_path):
    site = Site(tmp_path)
    file = tmp_path / "tables" / TABLE
    head, *rows = file.read_text().splitlines()
    file.write_text("\n".join([f"{head},sex", *(f"{row},{'fm'[k % 2]}" for k, row in enumerate(rows))]) + "\n")
    site.studio.schemas.write(TABLE, SCHEMA + '\n[columns.sex]\ntype = "category"\nlevels = ["f", "m"]\n')
    number = make_release(site, "a", query="everything", columns=None, method=None, by="ward,sex", epsilon=4.0)
    analyst = site.browser(ANALYST)
    page = analyst.get(f"/results/{number}/explore", params={"kind": "means_by", "by": "ward"}).text
    assert 'name="group.1"' in page
    assert 'name="group.0"' not in page  # the answer has all wards
    page = analyst.get(f"/results/{number}/explore", params={"kind": "means_by", "by": "ward", "group.1": "m"}).text
    assert "Means by ward, sex m" in page
    page = analyst.get(f"/results/{number}/explore", params={"kind": "table"}).text
    assert "Records by ward and sex" in page
    assert "Only" not in page


def test_hidden_answers_have_intervals(site):
    address = f"/results/{make_release(site, 'c', query='everything', columns=None, method=None, epsilon=0.05)}"
    page = site.browser(ANALYST).get(f"{address}/explore", params={"kind": "correlation"}).text
    assert '<td class="weak">0 <span class="bar">[-1, 1]</span></td>' in page
    assert CUT_NOTE in page


def test_answers_can_be_downloaded(analyst, everything):
    params = {"kind": "means_by", "by": "ward"}
    table = analyst.get(f"{everything}/explore", params={**params, "format": "csv"})
    assert table.headers["content-disposition"].startswith('attachment; filename="means_by-')
    assert table.text.startswith("row,column,value,std,low,high,note,source\n")
    assert (
        f"SHA-256: {hashlib.sha256(analyst.get(f'{everything}/files/release.json').content).hexdigest()}" in table.text
    )
    facts = analyst.get(f"{everything}/explore", params={**params, "format": "json"}).json()
    assert facts["title"] == "Means by ward"
    assert facts["source"]["citation"] in html.unescape(analyst.get(everything).text)
    assert "costs no privacy" in " ".join(facts["notes"])
    assert analyst.get(f"{everything}/explore", params={**params, "format": "xml"}).status_code == 422


def test_no_file_explains_a_date_unless_it_is_asked_to(tmp_path):
    site = Site(tmp_path, epsilon=20.0)
    rows = "".join(f"19{i % 90 + 10}-01-01,{i % 40}\n" for i in range(200))
    (site.settings.folder / TABLE).write_text(f"birth,stay\n{rows}")
    date = '[columns.birth]\ntype = "date"\nlower = 1900-01-01\nupper = 2000-01-01\n'
    site.studio.schemas.write(TABLE, f"records = 200\n{date}[columns.stay]\nlower = 0\nupper = 50\n")
    request = site.ask(query="everything", columns=None, method=None, epsilon=8.0)
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    analyst, address = site.browser(ANALYST), f"/results/{request.id}"
    assert "release.regression('stay')" in analyst.get(f"{address}/explore?format=ipynb").text
    answer = analyst.get(f"{address}/explore", params={"kind": "regression", "format": "json"}).json()
    assert answer["target"] == "stay"
    page = site.browser(ANALYST).get("/design").text
    assert "1900-01-01 to 2000-01-01" in page


def test_a_notebook_repeats_the_exploration(analyst, everything, tmp_path, monkeypatch):
    params = {"kind": "means_by", "by": "ward"}
    notebook = analyst.get(f"{everything}/explore", params={**params, "format": "ipynb"}).json()
    assert (notebook["nbformat"], len({cell["id"] for cell in notebook["cells"]})) == (4, len(notebook["cells"]))
    (tmp_path / "release.json").write_bytes(analyst.get(f"{everything}/files/release.json").content)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for text in code:
        exec(text, names)
    assert code[1] == "release.means('ward')"
    assert len(code) > 4
    explorer = analyst.get(f"{everything}/explore", params=params).text.partition('id="explorer"')[2]
    assert explorer.index(f"{everything}/explore?kind=means_by&amp;by=ward&amp;format=ipynb") < explorer.index(
        "</section>"
    )
    (tmp_path / "release.json").write_text("{}")
    with pytest.raises(AssertionError, match="another"):
        exec(code[0], names)


@pytest.mark.parametrize(
    "params",
    [
        {"kind": "medians"},
        {"kind": "regression", "chosen": "yes"},
        {"kind": "means_by", "by": "bmi"},
        {"kind": "regression", "target": "ward"},
    ],
)
def test_a_question_that_has_no_answer_is_explained(analyst, everything, params):
    answer = analyst.get(f"{everything}/explore", params=params)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert analyst.get(f"{everything}/explore", params={**params, "format": "csv"}).status_code == 422


def test_moments_of_numbers_have_fewer_questions(analyst, moments):
    page = analyst.get(moments).text
    assert "kind=covariance" in page
    assert "kind=regression" not in page


def test_a_release_of_another_kind_has_only_its_report(site):
    address = f"/results/{make_release(site, 'd', query='identity', method=None)}"
    client = site.browser(ANALYST)
    page = client.get(address)
    assert page.status_code == 200
    assert "report shows the matrix" in page.text
    assert client.get(f"{address}/explore", params={"format": "csv"}).status_code == 422


def test_a_large_release_is_not_read_for_its_page(site, analyst, moments, monkeypatch):
    monkeypatch.setattr(requests, "_LARGEST_RELEASE", 100)
    monkeypatch.setattr(requests, "_read_release", None)
    page = analyst.get(moments)
    assert page.status_code == 200
    assert "report shows the matrix" in page.text
    assert analyst.get(f"{moments}/files/release.json").status_code == 200


def test_the_report_names_who_asked_and_who_approved(analyst, everything):
    page = analyst.get(f"{everything}/report").text
    for name, who in (("Purpose", "a test"), ("Asked by", ANALYST.name), ("Approved by", CURATOR.name)):
        assert f"<dt>{name}</dt><dd>{who}</dd>" in page


def test_the_report_runs_no_script_and_reaches_nothing(analyst, everything):
    answer = analyst.get(f"{everything}/report")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script" not in policy
    assert "<h1" in answer.text


def test_files_are_downloads(analyst, everything):
    answer = analyst.get(f"{everything}/files/release.json")
    assert 'attachment; filename="release.json"' in answer.headers["content-disposition"]
    assert json.loads(answer.text)["format"].startswith("matrixdp")
    assert analyst.get(f"{everything}/files/..%2F..%2Fstudio.db").status_code == 404
    assert analyst.get(f"{everything}/files/none.csv").status_code == 404
    assert analyst.get("/results/none").status_code == 404


def test_a_stream_is_shown_as_the_ledger_has_it(tmp_path):
    site = Site(tmp_path)
    columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.Category("ward", ["north", "south"])])
    plan = mdp.make_stream(mdp.TableMoments(columns, records=200, neighbours="replace"), mdp.Privacy(1, 1e-6))
    site.settings.streams.mkdir()
    with mdp.Ledger.open(site.settings.ledger) as ledger:
        stream = plan.open(site.settings.streams / "weekly", ledger=ledger, dataset="clinic")
        for week in ("2031-w01", "2031-w02"):
            stream.publish({"age": [50.0] * 200, "ward": ["north", "south"] * 100}, step=week)
    browser, address = site.browser(ANALYST), "/datasets/clinic/streams/weekly"
    assert f'href="{address}"' in browser.get("/datasets/clinic").text
    page = browser.get(address)
    assert "2031-w02" in page.text
    assert "ward south" in page.text
    assert "sandbox" in page.headers["content-security-policy"]
    assert mdp.PublishedStream.from_json(browser.get(f"{address}/file").text).steps == stream.steps
    assert browser.get("/datasets/clinic/streams/weekly.state").status_code == 404
    assert browser.get("/datasets/clinic/streams/..%2fweekly").status_code == 404
    file = site.settings.streams / "weekly.json"
    file.write_text(replace(stream.public, published=stream.published[:1]).to_json())
    assert "2031-w02" not in browser.get(address).text  # an older copy is a part of what the ledger has
    altered = replace(stream.published[0], noisy=(0,) * plan.dimension)
    file.write_text(replace(stream.public, published=(altered,)).to_json())
    assert browser.get(address).status_code == 503


def test_a_synthetic_table_comes_with_its_report_and_its_warning(analyst, site, everything, moments):
    before = spent(site)
    assert html.escape(write_words("synthetic_warning")[0], quote=False) in analyst.get(everything).text
    found = analyst.get(f"{everything}/synthetic")
    packed = zipfile.ZipFile(io.BytesIO(found.content))
    table, report = sorted(packed.namelist())
    assert (Path(table).suffix, report) == (".csv", f"{Path(table).stem}.report.html")
    lines = packed.read(table).decode().splitlines()
    assert len(lines) > 100
    assert "not records of anyone" not in packed.read(table).decode()
    assert "not records of anyone" in packed.read(report).decode()
    assert analyst.get(f"{everything}/synthetic").content == found.content
    assert spent(site) == before
    assert "/synthetic" not in analyst.get(moments).text
    assert analyst.get(f"{moments}/synthetic").status_code == 422
