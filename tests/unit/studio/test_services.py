"""Data sets, requests and what they are asked with."""

import json
import uuid

import pytest

from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import LedgerError, MatrixDPError, ParameterError
from matrixdp.studio import requests
from matrixdp.studio.forecasts import plan_release
from matrixdp.studio.refusals import ConflictError, NotFoundError, find_status
from matrixdp.studio.requests import ReleaseSpec, Status
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, BOTH, CURATOR, SCHEMA, SPEC, TABLE, Site


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_a_spec_is_the_command_line():
    spec = ReleaseSpec.from_mapping({**SPEC, "epsilon": "0.5", "records": "1000", "by": "", "importance": "age=4"})
    assert (spec.epsilon, spec.records, spec.by) == (0.5, 1000, None)
    assert ReleaseSpec.from_mapping(json.loads(json.dumps(spec.to_mapping()))) == spec
    assert "--importance age=4" in spec.write_command("schema.toml", TABLE, "clinic")
    rows = ReleaseSpec.from_mapping({"query": "means", "epsilon": 1, "delta": 1e-6, "rows_per_person": 2})
    assert "--rows-per-person 2" in rows.write_command("schema.toml", TABLE, "clinic")
    assert rows.to_mapping()["rows_per_person"] == 2


@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "x", [1], True, 1.5, "1.5"])
def test_numbers_must_be_numbers(value):
    with pytest.raises(ParameterError, match="records must be a whole number"):
        ReleaseSpec.from_mapping({**SPEC, "records": value})


@pytest.mark.parametrize("value", ["a\nb", 5, "x" * 30_000])
def test_texts_must_be_printable(value):
    with pytest.raises(ParameterError, match="columns must be printable"):
        ReleaseSpec.from_mapping({**SPEC, "columns": value})


def test_a_plan_says_what_is_charged(site):
    schema = parse_schema(site.studio.schemas.require(TABLE))
    plain = ReleaseSpec.from_mapping(SPEC)
    whole = plan_release(plain, schema)
    adaptive = plan_release(ReleaseSpec.from_mapping({**SPEC, "method": "adaptive"}), schema)
    assert whole.design is not None
    assert adaptive.design is None
    assert whole.event.mu == pytest.approx(adaptive.event.mu)
    assert str(whole.unit) == "record"


def test_large_noisy_data_sets_are_left_to_the_command_line(site):
    site.studio.schemas.write(TABLE, SCHEMA.replace("records = 200", "records = 600000"))
    with pytest.raises(ParameterError, match="matrixdp release"):
        site.ask(query="identity", method="auto")


def test_the_number_of_records_must_be_public(site):
    site.studio.schemas.write(TABLE, SCHEMA.replace("records = 200", ""))
    with pytest.raises(ParameterError, match="public number of records"):
        site.ask()


def test_data_sets_are_registered_once(site):
    book = site.studio.datasets
    with pytest.raises(LedgerError, match="cannot be changed"):
        book.register(CURATOR, "clinic", TABLE, epsilon=5, delta=1e-6)
    with pytest.raises(NotFoundError):
        book.register(CURATOR, "other", "missing.csv", epsilon=5, delta=1e-6)
    with pytest.raises(ParameterError, match="without /"):
        book.register(CURATOR, "a/b", TABLE, epsilon=5, delta=1e-6)
    with pytest.raises(ParameterError, match="without /"):  # nobody could return it
        book.allow(CURATOR, "clinic", "a/b", epsilon=1.0)
    with pytest.raises(NotFoundError):
        book.get("other")
    with pytest.raises(ParameterError, match="not both"):
        book.allow(CURATOR, "clinic", "ann")
    assert book.allow(CURATOR, "clinic", "ann", epsilon=1.0).epsilon == 1.0
    assert book.return_allowance(CURATOR, "clinic", "ann").returned
    assert [dataset.tables for dataset in book.list_all()] == [(TABLE,)]


def test_a_table_is_charged_to_its_own_data_set(site):
    (site.settings.folder / "other.csv").write_text("age\n1\n", encoding="utf-8")
    site.studio.datasets.register(CURATOR, "other", "other.csv", epsilon=1, delta=1e-6)
    with pytest.raises(NotFoundError, match="not a table of the data set"):
        site.studio.requests.submit(ANALYST, "other", TABLE, ReleaseSpec.from_mapping(SPEC), "a test", "1")


def test_a_request_of_a_unit_that_is_not_registered_is_refused(site):
    person = SCHEMA.partition("[columns.ward]")[0] + '[person]\ncolumn = "ward"\n'
    site.studio.schemas.write(TABLE, person)
    with pytest.raises(LedgerError, match="protect"):
        site.ask()


def test_a_person_has_a_limited_number_of_open_requests(site, monkeypatch):
    monkeypatch.setattr(requests, "_MOST_PENDING", 2)
    for number in range(2):
        site.ask(form_id=str(number))
    with pytest.raises(ConflictError, match="wait for a curator"):
        site.ask(form_id="2")
    site.ask(BOTH, form_id="2")
    assert len(site.studio.requests.list_all(CURATOR, Status.PENDING)) == 3
    assert [one.asker for one in site.studio.requests.list_all(ANALYST, Status.PENDING)] == ["ann", "ann"]


def test_an_unknown_error_of_the_library_is_a_fault_of_the_server():
    from matrixdp.errors import StreamError

    assert find_status(StreamError("")) == 500
    assert find_status(LedgerError("")) == 503


def test_results_are_for_everybody_once_they_are_released(site):
    from matrixdp.studio.worker import release_request

    asked = site.ask()
    with pytest.raises(NotFoundError, match="not released"):
        site.studio.results.files(asked.id)
    site.studio.requests.approve(CURATOR, asked.id)
    release_request(site.settings, asked.id)
    release_request(site.settings, asked.id)
    results = site.studio.results
    assert [one.id for one in results.list_all()] == [asked.id]
    assert results.path(asked.id, "report.html").is_file()
    for name in ("missing", "../report.html", ""):
        with pytest.raises(NotFoundError):
            results.path(asked.id, name)
    (site.settings.releases / asked.id / "link").symlink_to(site.settings.database)
    assert "link" not in results.files(asked.id)
    (site.settings.releases / asked.id).rename(site.settings.releases / "elsewhere")
    with pytest.raises(NotFoundError, match="gone"):
        results.files(asked.id)


def test_a_request_that_is_refused_meanwhile_is_not_approved(site, monkeypatch):
    request, book = site.ask(), site.studio.requests
    monkeypatch.setattr(book, "_require_affordable", lambda *_: book.refuse(CURATOR, request.id, "no"))
    with pytest.raises(ConflictError, match="refused by cara"):
        book.approve(CURATOR, request.id)


def test_a_request_that_failed_unpaid_needs_the_schema_that_it_was_asked_with(site):
    request, table = site.ask(), site.settings.folder / TABLE
    text = table.read_text(encoding="utf-8")
    table.write_text(text + "1,2\n", encoding="utf-8")
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    table.write_text(text, encoding="utf-8")
    site.studio.schemas.write(TABLE, SCHEMA.replace("upper = 100", "upper = 120"))
    with pytest.raises(ConflictError, match=r"has changed since\. It has to be asked again"):
        site.studio.requests.approve(CURATOR, request.id)
    site.studio.schemas.write(TABLE, SCHEMA)
    assert site.studio.requests.approve(CURATOR, request.id).status is Status.APPROVED


def test_a_table_of_two_data_sets_has_two_totals_and_the_page_says_so(site):
    curator = site.browser(CURATOR)
    assert "Also released as" not in curator.get("/datasets/clinic").text
    site.studio.datasets.register(CURATOR, "again", TABLE, epsilon=4, delta=1e-6)
    assert "Also released as again." in curator.get("/datasets/clinic").text
    assert "Also released as clinic." in site.browser(ANALYST).get("/datasets/again").text


def test_a_table_that_is_gone_leaves_the_pages_of_others(site):
    (site.settings.folder / "first.csv").write_text("age\n1\n", encoding="utf-8")
    site.studio.datasets.register(CURATOR, "a", "first.csv", epsilon=1, delta=1e-6)
    (site.settings.folder / "first.csv").unlink()
    analyst = site.browser(ANALYST)
    assert "not in the folder any more" in analyst.get("/datasets/a").text
    assert "first.csv" not in analyst.get("/design").text
    assert analyst.get("/design", params={"dataset": "clinic"}).status_code == 200


def test_who_asks_does_not_choose_the_estimate_of_a_private_number_of_records(site):
    """A release fails if there are more than twice as many, so that requests could search for the true number."""
    (site.settings.folder / "private.csv").write_text("age,bmi,ward\n", encoding="utf-8")
    site.studio.schemas.write("private.csv", SCHEMA)
    site.studio.datasets.register(CURATOR, "private", "private.csv", epsilon=4, delta=1e-6, neighbours="add-remove")

    def ask(**options):
        spec = ReleaseSpec.from_mapping({**SPEC, "neighbours": "add-remove", **options})
        return site.studio.requests.submit(ANALYST, "private", "private.csv", spec, "a test", str(options))

    for records in (2, 199, 201):
        with pytest.raises(ParameterError, match="records must be that of the schema"):
            ask(records=records)
    assert ask(records=200).status is ask().status is Status.PENDING
    site.studio.schemas.write("private.csv", SCHEMA.replace("records = 200", ""))
    with pytest.raises(ParameterError, match="a curator gives it in the schema"):
        ask(records=100)


def test_who_asks_does_not_choose_how_many_rows_of_a_person_count(site):
    (site.settings.folder / "visits.csv").write_text("id,age,bmi,ward\n", encoding="utf-8")
    site.studio.schemas.write("visits.csv", SCHEMA + '\n[person]\ncolumn = "id"\nrows = 3\n')
    site.studio.datasets.register(CURATOR, "visits", "visits.csv", epsilon=4, delta=1e-6, unit="person:id")

    def ask(**options):
        spec = ReleaseSpec.from_mapping({**SPEC, **options})
        return site.studio.requests.submit(ANALYST, "visits", "visits.csv", spec, "a test", str(options))

    assert ask().status is Status.PENDING
    with pytest.raises(ParameterError, match="records must be that of the schema"):
        ask(records=100)
    site.studio.schemas.write("visits.csv", SCHEMA)
    with pytest.raises(ParameterError, match="rows must be that of the schema"):
        ask(person="id", rows_per_person=2)


@pytest.mark.parametrize("query", ["identity", "means", "covariance"])
def test_requests_do_not_search_for_the_largest_number_of_rows_of_a_person(site, query):
    """Whether a release with K rows fails tells whether a person has more; five requests would find the number."""
    (site.settings.folder / "visits.csv").write_text("id,age,bmi,ward\n", encoding="utf-8")
    site.studio.datasets.register(CURATOR, "visits", "visits.csv", epsilon=4, delta=1e-6, unit="person:id")

    def ask(**options):
        spec = ReleaseSpec.from_mapping({"query": query, "epsilon": 1, "delta": 1e-6, "columns": "age,bmi", **options})
        return site.studio.requests.submit(ANALYST, "visits", "visits.csv", spec, "a test", uuid.uuid4().hex)

    for schema in (SCHEMA, SCHEMA + '\n[person]\ncolumn = "id"\n', SCHEMA + '\n[person]\ncolumn = "id"\nrows = 8\n'):
        site.studio.schemas.write("visits.csv", schema)
        for rows in (1, 2, 4, 6, 7, 9, 16):
            with pytest.raises(MatrixDPError, match="rows"):
                ask(person="id", rows_per_person=rows)
    assert site.studio.requests.list_all(CURATOR) == []
