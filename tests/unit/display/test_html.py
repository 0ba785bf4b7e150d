"""What objects show in notebooks: escaped, small, without scripts, and never an error in place of a display."""

import html.parser
import re
import warnings

import numpy as np
import pandas
import pytest
from matplotlib import pyplot
from sklearn.pipeline import make_pipeline

import matrixdp
from matrixdp import estimators
from matrixdp.answers.estimate import Estimate
from matrixdp.baselines import release_mechanism
from matrixdp.display import MOST_COLUMNS, MOST_ROWS, Numbers, render_table
from matrixdp.domain.schema import Schema
from matrixdp.estimators import PrivateCovariance, PrivateRidge, PrivateScaler
from matrixdp.release.released import COMPARISON_ONLY, SIMULATION

HOSTILE = '<script>alert("x")</script>\x07'
PRIVACY = matrixdp.Privacy(1, 1e-6)
RECORDS = np.random.default_rng(0).uniform(0, 1, size=(300, 2))
BOUNDS = matrixdp.Bounds([0, 0], [1, 1], names=[HOSTILE, "b"])
COLUMNS = matrixdp.Columns(
    [
        matrixdp.Number(HOSTILE, 0, 1),
        matrixdp.Number("b", 0, 1, missing=True),
        matrixdp.Category("c", [HOSTILE, "v"]),
    ]
)


def simulate(design, data=RECORDS):
    return design.release(data, stream=matrixdp.Stream(seed=1), simulation=True)


@pytest.fixture(scope="module")
def moments():
    return simulate(matrixdp.make_design(matrixdp.Moments(BOUNDS, records=300), PRIVACY))


@pytest.fixture(scope="module")
def table():
    data = {HOSTILE: RECORDS[:, 0], "b": RECORDS[:, 1], "c": np.where(RECORDS[:, 0] > 0.5, HOSTILE, "v")}
    return simulate(matrixdp.make_design(matrixdp.TableMoments(COLUMNS, records=300), matrixdp.Privacy(50, 1e-6)), data)


class Reader(html.parser.HTMLParser):
    """Names of the tags, whether they are balanced, and the text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        assert all(not name.startswith("on") and name not in ("src", "href") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(thing):
    page = thing if isinstance(thing, str) else thing._repr_html_()
    reader = Reader(page)
    assert reader.open == []
    assert reader.tags <= {"style", "div", "span", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "\x07" not in page
    return reader.text


def shown_things(moments, table):
    yield BOUNDS
    yield COLUMNS
    yield moments.design
    yield moments
    yield moments.means()
    yield moments.covariance()
    yield table.design
    yield table
    yield table.means(by="c")
    yield table.regression(HOSTILE)
    yield table.regression("b")
    yield table.discriminant("c")


def test_names_are_escaped_and_nothing_runs(moments, table):
    for thing in shown_things(moments, table):
        assert "<script>" in read(thing), type(thing).__name__


def test_displays_say_what_matters(moments):
    text = read(moments)
    assert SIMULATION in text
    assert "(1, 1e-06)-DP, replace neighbours" in text
    assert "Correlation" in text
    assert "epsilon 1 at delta 1e-06" in read(moments.design)
    assert "Not private" in read(matrixdp.compare(moments, np.eye(2), answer="covariance"))
    assert "0 to 1" in read(COLUMNS)


def test_a_real_release_has_no_warning(moments):
    assert "simulation" not in read(moments.design.release(RECORDS))


def test_missing_values_that_were_replaced_are_marked(moments):
    data = RECORDS.copy()
    data[0, 0] = np.nan
    assert "Missing values" in read(moments.design.release(data, missing="midpoint"))


@pytest.mark.parametrize("name", ["Analyze Gauss", "CoinPress"])
def test_mechanisms_show_their_matrix_and_that_they_are_for_comparison(name):
    query = matrixdp.SecondMoment(BOUNDS, records=300)
    found = release_mechanism(name, query, PRIVACY, RECORDS, stream=matrixdp.Stream(seed=1), simulation=True)
    text = read(found)
    assert f"by {name}" in text
    assert ("error bars unknown" in text) == (found.std is None)
    assert (COMPARISON_ONLY in text) == found.comparison_only == (name == "CoinPress")
    assert list(found.to_frame().columns) == [HOSTILE, "b"]
    assert found.to_frame(long=True)["std"].isna().all() == (found.std is None)


def test_a_release_without_a_matrix_shows_its_means_and_correlation():
    options = {"question": "covariance", "stream": matrixdp.Stream(seed=1), "simulation": True}
    assert "plain: It was requested." in read(
        matrixdp.release_table(RECORDS, BOUNDS, PRIVACY, method="plain", **options)
    )
    release = matrixdp.release_table(RECORDS, BOUNDS, PRIVACY, method="adaptive", **options)
    text = read(release)
    assert "adaptive: It was requested." in text
    assert "Means" in text
    assert "Correlation" in text
    assert SIMULATION in text
    np.testing.assert_array_equal(release.to_frame().to_numpy(), release.covariance().value)
    comparison = matrixdp.compare(release, np.cov(RECORDS.T, bias=True))
    np.testing.assert_array_equal(comparison.released, release.covariance().value[np.triu_indices(2)])
    assert len(release.plot().texts) == 4
    pyplot.close("all")


def test_a_data_set_shows_its_first_rows_only():
    design = matrixdp.make_design(matrixdp.Identity(BOUNDS, records=300), PRIVACY)
    assert "each row" in read(design)
    assert f"{300 - MOST_ROWS} more rows" in read(simulate(design))


def test_large_tables_are_cut_and_say_so():
    page = Numbers(np.ones((30, 40)), None, [f"r{i}" for i in range(30)], [f"c{i}" for i in range(40)]).render()
    assert page.count('<th scope="row">') == MOST_ROWS
    assert f"{30 - MOST_ROWS} more rows and {40 - MOST_COLUMNS} more columns" in read(page)
    assert "10 more rows" in read(render_table(("a", "b"), [("x", "y")] * (MOST_ROWS + 10)))


def test_uncertain_numbers_fade_and_unknown_ones_say_why():
    estimate = Estimate(np.array([[5.0, 0.1, np.nan]]), np.array([[1.0, 1.0, np.nan]]), ("r",), ("a", "b", "c"))
    cells = re.findall(r"<td( class=\"(?:weak|note)\")?>(.*?)</td>", estimate._repr_html_())
    assert [bool(weak) for weak, _ in cells[1:]] == [False, True, True]
    assert cells[-1][1] == "too few"
    value, names = np.array([[1.0, np.nan], [np.nan, 1.0]]), ("a", "b")
    hidden = Estimate(value, value - 1, names, names, np.full((2, 2), "hidden by noise", object))
    assert read(hidden).count("hidden by noise") == 2


def test_ledgers_show_what_is_left(tmp_path, moments):
    ledger = matrixdp.Ledger.create(tmp_path / "clinic.db")
    assert "no data set is registered" in read(ledger)
    ledger.register(HOSTILE.strip("\x07"), matrixdp.Privacy(2, 1e-6), neighbours="replace")
    moments.design.release(RECORDS, ledger=ledger, dataset=HOSTILE.strip("\x07"))
    text = read(ledger)
    assert "<script>" in text
    cells = re.findall(r"<td.*?>(.*?)</td>", ledger._repr_html_())
    assert cells[-8:-3] == ["record", "replace", "2", "1", f"{ledger.remaining(HOSTILE.strip(chr(7))).epsilon:.4g}"]
    ledger.close()


def test_a_ledger_that_cannot_be_read_says_why(tmp_path):
    ledger = matrixdp.Ledger.create(tmp_path / "clinic.db")
    ledger.close()
    (tmp_path / "clinic.db").unlink()
    assert "clinic.db" in read(ledger)


def test_a_restored_ledger_asks_to_be_settled(tmp_path):
    ledger = matrixdp.Ledger.create(tmp_path / "clinic.db")
    ledger.register("clinic", PRIVACY, neighbours="replace")
    ledger.backup(tmp_path / "backup.db")
    ledger.close()
    (tmp_path / "clinic.db").unlink()
    restored = matrixdp.Ledger.restore(tmp_path / "backup.db", tmp_path / "new.db")
    assert "settle clinic" in read(restored)
    restored.close()


def test_schemas_show_their_columns(tmp_path):
    text = read(Schema(COLUMNS, records=300, path=tmp_path / "s.toml"))
    assert "300" in text
    assert "may be missing" in text
    assert "s.toml" in read(Schema(path=tmp_path / "s.toml"))


@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name.startswith("Private")])
def test_scikit_learn_understands_the_docstrings(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert name in getattr(estimators, name)()._repr_html_()


def test_estimators_show_their_guarantee_and_cause_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateCovariance(bounds=BOUNDS, random_state=0, simulation=True)
        assert "mdp-title" not in model._repr_html_()
        model.fit(RECORDS)
        for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
            assert page.count("-DP, replace neighbours, protects one record") == 1
            assert SIMULATION in page
        model.set_params(person="id", epsilon=9.0)  # the guarantee is that of the fit
        assert "(1, 1e-06)-DP, replace neighbours, protects one record" in model._repr_html_()
        make_pipeline(PrivateScaler(bounds=(0, 1)), PrivateRidge(bounds=(0, 1), target_bounds=(0, 1)))._repr_html_()


def test_a_fit_of_people_says_so():
    table = pandas.DataFrame({"who": np.arange(300) // 2, "a": RECORDS[:, 0], "b": RECORDS[:, 1]})
    bounds = matrixdp.Bounds([0, 0], [1, 1], names=["a", "b"])
    model = PrivateCovariance(bounds=bounds, person="who", random_state=0, simulation=True).fit(table)
    assert "protects one person with all their rows" in model._repr_html_()
    model.set_params(person=None)
    assert str(model.unit_) == "person:who"
