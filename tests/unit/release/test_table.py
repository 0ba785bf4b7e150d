"""One entry point for covariances: method, charges, requests, JSON, engines, and errors that cost nothing."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.adaptive.moment import PreparedFit
from matrixdp.errors import DataError, LedgerError, ParameterError
from matrixdp.ledger import Gaussian
from matrixdp.privacy import LargeDeltaWarning
from matrixdp.release.adaptive_release import AdaptiveRelease, digest_content

NAMES = ["age", "bmi", "pressure"]
BOUNDS = mdp.Bounds([0, 10, 60], [100, 60, 180], names=NAMES)
PRIVACY = mdp.Privacy(1, 1e-6)


def release_covariance(data, columns, privacy, question="covariance", **options):
    return mdp.release_table(data, columns, privacy, question=question, **options)


def make_data(records=3000):
    rng = np.random.default_rng(0)
    common = rng.normal(size=records)
    age = 50 + 12 * common
    bmi = 26 + 3 * common + 2 * rng.normal(size=records)
    return np.column_stack([age, bmi, 110 + 10 * rng.normal(size=records)])


DATA = make_data()


def simulate(data=DATA, columns=BOUNDS, seed=1, **options):
    return release_covariance(data, columns, PRIVACY, stream=mdp.Stream(seed=seed), simulation=True, **options)


@pytest.fixture
def ledger(tmp_path):
    with mdp.Ledger.create(tmp_path / "clinic.db") as found:
        found.register("clinic", mdp.Privacy(3, 1e-6), neighbours="replace")
        yield found


class TestMethod:
    def test_numbers_are_fitted_adaptively_and_the_result_says_why(self):
        found = simulate(question="correlation")
        assert isinstance(found, AdaptiveRelease)
        assert found.method == "adaptive"
        assert "3 features" in found.reason
        assert found.names == tuple(NAMES)

    def test_a_single_number_is_released_plainly(self):
        found = simulate(DATA[:, :1], mdp.Bounds([0], [100], names=["age"]))
        assert isinstance(found, mdp.Release)
        assert "one feature" in found.reason

    def test_its_short_form_names_what_it_is_and_print_shows_the_numbers(self):
        found = simulate(question="correlation")
        assert repr(found).startswith("<AdaptiveRelease for correlation: N = 3,000, 3 columns, (1, 1e-06)-DP, replace")
        assert "PROTECTS NOTHING" in repr(found)
        assert "pressure" in str(found)

    def test_the_method_can_be_overruled(self):
        assert simulate(method="plain").reason == "It was requested."
        assert simulate(DATA[:, :1], mdp.Bounds([0], [100]), method="adaptive").method == "adaptive"

    def test_categories_and_missing_values_take_the_moments_of_a_table(self):
        frame = pd.DataFrame(DATA, columns=NAMES).assign(ward=np.where(DATA[:, 0] > 50, "a", "b"))
        columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.Number("bmi", 10, 60), mdp.Category("ward", ["a", "b"])])
        found = simulate(frame, columns, question="means")
        assert found.method == "plain"
        assert "categories" in found.reason
        assert found.regression("bmi").names == ("intercept", "age", "ward=b")
        frame.loc[3, "bmi"] = np.nan
        some = mdp.Columns([mdp.Number("age", 0, 100), mdp.Number("bmi", 10, 60, missing=True)])
        assert "missing values" in simulate(frame, some).reason
        with pytest.raises(ParameterError, match="method must be auto or plain"):
            simulate(frame, some, method="adaptive")

    @pytest.mark.parametrize("rows", [None, 3])
    def test_rows_of_a_person_are_protected_together_by_the_same_method(self, rows):
        frame = pd.DataFrame(DATA, columns=NAMES).assign(patient=np.arange(len(DATA)) // 3)
        person = mdp.Person("patient", rows)
        options = {} if rows is None else {"records": 3100}  # people are counted, rows of people are private
        found = simulate(frame, person=person, question="correlation", **options)
        assert found.method == "adaptive"
        assert str(found.unit) == "person:patient"
        assert ("1000 people" if rows is None else "3100 rows") in found.reason
        assert mdp.from_json(found.to_json()).to_json() == found.to_json()
        assert np.abs(found.correlation().value - np.corrcoef(DATA.T)).max() < 0.3
        plain = simulate(frame, person=person, method="plain", **options)
        assert isinstance(plain, mdp.Release)
        assert plain.unit == found.unit
        for released in (found, plain):  # each person has three rows, or one that counts
            sampling = released.error_parts("means")["age", "sampling std"]
            assert sampling == pytest.approx(DATA[:, 0].std() / np.sqrt(1000), rel=0.3)
        if rows is not None:
            with pytest.raises(ParameterError, match="records must be given"):
                simulate(frame, person=person)

    def test_one_row_a_person_is_the_release_of_records_to_the_last_bit(self):
        frame = pd.DataFrame(DATA, columns=NAMES)
        people = simulate(frame.assign(patient=np.arange(len(DATA))[::-1]), person="patient", question="correlation")
        records = simulate(frame, question="correlation")
        for answer in ("means", "covariance", "correlation", "components"):
            one, other = getattr(people, answer)(), getattr(records, answer)()
            assert np.array_equal(one.value, other.value, equal_nan=True)
            assert np.array_equal(one.std, other.std, equal_nan=True)

    def test_columns_of_numbers_are_the_same_as_bounds(self):
        columns = mdp.Columns([mdp.Number(*one) for one in zip(NAMES, BOUNDS.lower, BOUNDS.upper, strict=True)])
        frame = pd.DataFrame(DATA, columns=NAMES)
        assert simulate(frame, columns).to_json() == simulate(frame).to_json()


class TestAnswers:
    @pytest.mark.parametrize("method", ["adaptive", "plain"])
    def test_all_answers_are_near_the_truth(self, method):
        found = simulate(method=method)
        for answer, truth in (
            (found.covariance(), np.cov(DATA.T, bias=True)),
            (found.correlation(), np.corrcoef(DATA.T)),
        ):
            assert answer.rows == answer.columns == tuple(NAMES)
            assert (np.abs(answer.value - truth) <= 5 * answer.std + 1e-12).all()
        means = found.means()
        assert (np.abs(means.value[:, 0] - DATA.mean(axis=0)) <= 5 * means.std[:, 0]).all()
        components = found.components(1)
        assert components.columns == ("PC1",)
        loading = components["age", "PC1"]
        assert abs(loading) > 0.5 or (method == "plain" and np.isnan(loading))  # noise may hide it
        fit = found.regression("bmi", ["age"])
        slope = np.polyfit(DATA[:, 0], DATA[:, 1], 1)[0]
        assert abs(fit.coefficients[1] - slope) < 4 * fit.std[1]
        assert "simulation" in str(found).lower()

    def test_the_adaptive_method_is_more_accurate(self):
        truth, asked = np.corrcoef(DATA.T), {"question": "correlation"}
        errors = {
            method: np.mean([
                np.abs(np.nan_to_num(simulate(method=method, seed=seed, **asked).correlation().value) - truth)
                for seed in range(5)
            ])
            for method in ("adaptive", "plain")
        }  # fmt: skip
        assert errors["adaptive"] < 0.5 * errors["plain"]

    @pytest.mark.parametrize(
        ("target", "on", "words"),
        [
            ("weight", None, "target must be one of age, bmi, pressure"),
            ("bmi", ["bmi"], "not the target"),
            ("bmi", ["age", "age"], "different columns"),
            ("bmi", ["weight"], "on must name columns among"),
            ("bmi", "age", "on must be a list"),
            ("bmi", [], "at least one column"),
        ],
    )
    def test_a_regression_names_columns_that_exist(self, target, on, words):
        with pytest.raises(ParameterError, match=words):
            simulate().regression(target, on)

    def test_columns_without_names_are_numbered(self):
        found = simulate(DATA, mdp.Bounds(BOUNDS.lower, BOUNDS.upper))
        assert found.names == ("0", "1", "2")
        assert found.regression("1", ["0"]).names == ("intercept", "0")
        plain = simulate(pd.DataFrame(DATA, columns=NAMES), mdp.Bounds(BOUNDS.lower, BOUNDS.upper), method="plain")
        assert plain.names == ("0", "1", "2")


class TestJson:
    @pytest.mark.parametrize("method", ["adaptive", "plain"])
    def test_a_release_is_read_back_bit_by_bit(self, method):
        found = simulate(method=method, question="components")
        again = mdp.from_json(found.to_json())
        assert again.to_json() == found.to_json()
        assert type(again) is type(found)
        assert (again.method, again.reason, again.aim, again.mu) == (method, found.reason, "components", found.mu)
        assert np.array_equal(again.covariance().value, found.covariance().value)
        assert np.array_equal(again.covariance().std, found.covariance().std)

    def test_read_release_reads_every_kind(self):
        design = mdp.make_design(mdp.Moments(BOUNDS, 3000), PRIVACY)
        assert isinstance(mdp.from_json(design.release(DATA).to_json()), mdp.Release)
        query = mdp.Identity(mdp.Bounds([0], [1]), 2)
        other = mdp.release_mechanism("Laplace", query, PRIVACY, [[0], [1]])
        assert isinstance(mdp.from_json(other.to_json()), mdp.baselines.MechanismRelease)
        for text in ("", "{}", "[]", '{"format": "x"}', '{"format": []}'):
            with pytest.raises(ParameterError):
                mdp.from_json(text)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (["mu"], 0.1),
            (["mu"], 5.0),
            (["privacy", "epsilon"], 0.5),
            (["steps", 0, "mu"], 1e-3),
            (["steps", 0, "share"], 0.9),
            (["steps", 0, "releases"], 0),
            (["steps"], []),
            (["neighbours"], "none"),
            (["records"], 0),
            (["method"], "plain"),
            (["reason"], "a\nb"),
            (["aim"], "anything"),
            (["settings"], "anything"),
            (["targets"], 3),
            (["targets"], "one"),
            (["simulation"], "no"),
            (["version"], 3),
            (["fitted", "mean"], {"array": [0.0, 0.0]}),
            (["fitted", "mean"], {"array": [0.0, 0.0, 3.0]}),
            (["fitted", "covariance"], {"array": [[1, 0, 0], [0, 1, 0], [0.5, 0, 1]]}),
            (["fitted", "covariance"], {"array": [[0.1, 0.5, 0], [0.5, 0.1, 0], [0, 0, 1]]}),
            (["fitted", "covariance"], {"array": [[4, 0, 0], [0, 1, 0], [0, 0, 1]]}),
            (["fitted", "std"], {"array": [[-1, 0, 0], [0, 1, 0], [0, 0, 1]]}),
            (["fitted", "noise_std"], float("nan")),
            (["fitted", "kind"], "Step"),
            (["bounds", "kind"], "Fitted"),
            (["bounds", "lower"], {"array": [0.0, 10.0]}),
        ],
    )
    def test_an_altered_text_is_refused(self, path, value):
        content = json.loads(simulate().to_json())
        place = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(ParameterError):
            mdp.from_json(json.dumps(content))
        if value != value:  # NaN has no digest
            return
        content["digest"] = digest_content(content)  # what does not fit together is refused all the same
        with pytest.raises(ParameterError):
            mdp.from_json(json.dumps(content))

    @pytest.mark.parametrize(
        ("name", "value"), [("neighbours", "add-remove"), ("records", 10**6), ("simulation", False), ("unit", "edge")]
    )
    def test_altered_facts_are_found_by_the_digest(self, name, value):
        content = {**json.loads(simulate().to_json()), name: value}
        with pytest.raises(ParameterError, match="digest"):
            mdp.from_json(json.dumps(content))

    def test_directions_and_unit_are_read_back(self):
        moment = simulate().moment
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(BOUNDS.size, BOUNDS.size)))[0]
        given = replace(simulate(), moment=replace(moment, basis=turn, person=mdp.Person("id", rows=3)))
        read = mdp.from_json(given.to_json())
        assert (read.moment.basis == turn).all()
        assert read.moment.person == given.moment.person
        altered = {**json.loads(given.to_json()), "unit": "record"}
        with pytest.raises(ParameterError, match="this or an earlier version"):
            mdp.from_json(json.dumps({**altered, "digest": digest_content(altered)}))
        assert read.to_json() == given.to_json()

    @pytest.mark.parametrize("method", ["adaptive", "plain"])
    def test_a_release_is_saved_and_loaded(self, method, tmp_path):
        release = simulate(method=method)
        release.save(tmp_path / "release.json")
        for place in (tmp_path, tmp_path / "release.json"):
            assert mdp.load(place).to_json() == release.to_json()
        assert [path.name for path in tmp_path.iterdir()] == ["release.json"]
        with pytest.raises(ParameterError, match="cannot be read"):
            mdp.load(tmp_path / "other.json")


class TestLedger:
    def test_people_are_charged_to_a_data_set_of_people_and_a_request_is_charged_once(self, ledger):
        frame = pd.DataFrame(DATA, columns=NAMES).assign(patient=np.arange(len(DATA)) // 3)
        ledger.register("people", mdp.Privacy(3, 1e-6), neighbours="replace", unit="person:patient")
        options = {"person": "patient", "ledger": ledger, "request": "week 7"}
        with pytest.raises(LedgerError, match="protect"):
            release_covariance(frame, BOUNDS, PRIVACY, dataset="clinic", **options)
        first = release_covariance(frame, BOUNDS, PRIVACY, dataset="people", **options)
        assert release_covariance(frame, BOUNDS, PRIVACY, dataset="people", **options).to_json() == first.to_json()
        (charge,) = ledger.history()
        assert str(charge.unit) == "person:patient"
        options |= {"person": mdp.Person("patient", rows=2), "records": 1000}
        with pytest.raises(LedgerError, match="week 7"):  # for something else
            release_covariance(frame, BOUNDS, PRIVACY, dataset="people", **options)
        assert len(ledger.history()) == 1

    @pytest.mark.parametrize("method", ["adaptive", "plain"])
    def test_the_charge_is_what_was_claimed_and_a_request_is_charged_once(self, ledger, method):
        options = {"method": method, "ledger": ledger, "dataset": "clinic", "request": "week 7"}
        first = release_covariance(DATA, BOUNDS, PRIVACY, **options)
        again = release_covariance(DATA, BOUNDS, PRIVACY, **options)
        assert again.to_json() == first.to_json()
        (charge,) = ledger.history("clinic")
        assert charge.released
        assert charge.event == Gaussian(PRIVACY.mu if method == "adaptive" else first.mu)
        assert first.mu <= charge.event.mu <= PRIVACY.mu
        assert not first.simulation

    def test_the_charge_is_committed_before_the_first_bit(self, ledger, monkeypatch):
        charged = []
        fit = PreparedFit.fit
        monkeypatch.setattr(PreparedFit, "fit", lambda self: (charged.append(len(ledger.history())), fit(self))[1])
        release_covariance(DATA, BOUNDS, PRIVACY, ledger=ledger, dataset="clinic")
        assert charged == [1]

    def test_a_stored_release_does_not_read_the_data(self, ledger):
        options = {"ledger": ledger.path, "dataset": "clinic", "request": "r", "records": 3000}
        first = release_covariance(DATA, BOUNDS, PRIVACY, **options)
        assert release_covariance(None, BOUNDS, PRIVACY, **options).to_json() == first.to_json()

    def test_an_allowance_pays(self, ledger):
        ledger.allow("clinic", "ann", share=0.5)
        release_covariance(DATA, BOUNDS, PRIVACY, ledger=ledger, dataset="clinic", allowance="ann")
        (allowance,) = ledger.allowances("clinic")
        assert ledger.remaining("clinic", allowance="ann").mu < allowance.mu

    @pytest.mark.parametrize(
        ("data", "columns", "changed", "error"),
        [
            (np.where(DATA[5, 0] == DATA, np.nan, DATA), BOUNDS, {}, DataError),
            (DATA[:, :2], BOUNDS, {}, DataError),
            (np.empty((0, 3)), BOUNDS, {}, DataError),
            (DATA, "bounds", {}, ParameterError),
            (DATA, mdp.Columns([mdp.YesNo("a")]), {}, ParameterError),
            (DATA, BOUNDS, {"question": "median"}, ParameterError),
            (DATA, BOUNDS, {"method": "best"}, ParameterError),
            (DATA, BOUNDS, {"records": 10}, ParameterError),
            (DATA, BOUNDS, {"neighbours": "add-remove"}, ParameterError),
            (DATA, BOUNDS, {"dataset": "other"}, LedgerError),
            (DATA, BOUNDS, {"privacy": mdp.Privacy(100, 1e-6)}, LedgerError),
            (DATA, BOUNDS, {"simulation": True}, ParameterError),
            (iter([DATA]), BOUNDS, {}, ParameterError),
        ],
    )
    def test_errors_cost_nothing_and_show_no_data(self, ledger, data, columns, changed, error):
        options = {"privacy": PRIVACY, "ledger": ledger, "dataset": "clinic", **changed}
        with pytest.raises(error) as raised:
            release_covariance(data, columns, **options)
        assert not ledger.history("clinic")
        assert f"{DATA[5, 0]:.6f}" not in str(raised.value)


class TestEngines:
    @pytest.fixture
    def folder(self, tmp_path):
        for part in range(3):
            rows = DATA[part * 1000 : (part + 1) * 1000]
            pq.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), tmp_path / f"{part}.parquet")
        return tmp_path

    @pytest.mark.parametrize("method", ["adaptive", "plain"])
    def test_files_give_the_bits_of_memory(self, folder, method):
        whole = simulate(method=method)
        assert simulate(str(folder), method=method).to_json() == whole.to_json()
        csv = folder / "all.csv"
        pd.DataFrame(DATA, columns=NAMES).to_csv(csv, index=False)
        assert simulate(str(csv), method=method).to_json() == whole.to_json()

    def test_dask_gives_the_bits_of_memory(self):
        dask = pytest.importorskip("dask.dataframe")
        frame = dask.from_pandas(pd.DataFrame(DATA, columns=NAMES), npartitions=4)
        assert simulate(frame).to_json() == simulate().to_json()


class TestDelta:
    @pytest.mark.parametrize("method", ["adaptive", "plain"])
    def test_a_delta_above_one_over_the_number_of_records_warns_before_the_charge(self, ledger, method):
        with pytest.warns(LargeDeltaWarning, match="1/3000"), pytest.raises(LedgerError):
            release_covariance(DATA, BOUNDS, mdp.Privacy(50, 1e-3), method=method, ledger=ledger, dataset="clinic")
        assert not ledger.history("clinic")

    def test_designs_and_fits_warn_too(self):
        large = mdp.Privacy(1, 1e-3)
        with pytest.warns(LargeDeltaWarning):
            mdp.make_design(mdp.Moments(BOUNDS, 3000), large).release(DATA)
        with pytest.warns(LargeDeltaWarning):
            mdp.adaptive.private_moment(DATA, BOUNDS, large)


class TestTarget:
    @pytest.mark.parametrize("kind", [np.asarray, lambda data: pd.DataFrame(data, columns=NAMES)])
    def test_a_regression_may_name_its_target(self, kind):
        found = simulate(kind(DATA), question="regression", target="bmi")
        assert found.names == ("age", "pressure", "bmi")
        assert found.regression("bmi").coefficients[1] == pytest.approx(0.25, abs=0.1)

    def test_a_target_is_found_in_blocks_without_names(self):
        known = simulate(question="regression", target="bmi")
        given = mdp.records.Blocks(lambda: iter(np.array_split(DATA, 3)))
        people = mdp.records.with_ids(DATA, np.arange(len(DATA))[::-1])
        for data, options in ((given, {}), (people, {"person": "id"})):
            found = simulate(data, question="regression", target="bmi", **options)
            assert found.names == ("age", "pressure", "bmi")
            assert np.array_equal(found.moment.covariance, known.moment.covariance)
            assert np.array_equal(found.moment.mean, known.moment.mean)

    def test_columns_without_names_are_known_by_their_positions(self):
        columns = mdp.Bounds(BOUNDS.lower, BOUNDS.upper)
        found = simulate(DATA, columns, question="regression", target="1")
        assert found.names == ("0", "2", "1")
        assert np.allclose(found.moment.covariance, simulate(question="regression", target="bmi").moment.covariance)

    def test_where_noise_hides_all_else_it_is_the_mean_alone(self):
        few = release_covariance(
            DATA[:10], BOUNDS, PRIVACY, question="regression", target="bmi", stream=mdp.Stream(seed=0), simulation=True
        )
        assert [step.name for step in few.moment.steps] == ["target mean", "radius"]

    @pytest.mark.parametrize("seed", range(3))
    def test_nothing_is_claimed_of_coefficients_where_only_the_mean_of_the_target_was_released(self, seed):
        few = simulate(DATA[:10], seed=seed, question="regression", target="bmi")
        found = few.regression("bmi")
        assert np.isnan(found.coefficients).all()
        assert np.isnan(found.noise_std).all()
        assert [float(end[0, 0]) for end in found.fit.interval()] == [0.0, 1.0]
        assert 0 < few.means().std[-1, 0] < BOUNDS.halfwidths[1]  # what was measured has an error bar

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"target": "bmi"}, "target must be left out for question covariance"),
            ({"question": "regression", "target": "weight"}, "has no column 'weight'; it has age, bmi, pressure"),
        ],
    )
    def test_errors_name_what_fits(self, options, words):
        with pytest.raises(ParameterError, match=words):
            simulate(**options)

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("colums", "release_table.. got .* 'colums'. Did you mean 'columns'?"),
            ("x", "'x'. The docstring lists them"),
        ],
    )
    def test_an_option_that_does_not_exist_is_named(self, name, words):
        with pytest.raises(TypeError, match=words):
            simulate(**{name: "age"})
