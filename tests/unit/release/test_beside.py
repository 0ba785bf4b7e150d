"""Everything with an adaptive fit of its numbers beside it: one budget, one charge, one release."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.audit import replay
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.gdp import compose_mu
from matrixdp.ledger import Gaussian
from matrixdp.release import plan as planning
from matrixdp.release.plan import plan
from matrixdp.release.request import Request
from matrixdp.report.content import make_content
from matrixdp.report.forecast import list_predictions
from matrixdp.report.page import write_words

PRIVACY = mdp.Privacy(1, 1e-6)
NUMBERS = list("abcd")
SCHEMA = {**dict.fromkeys(NUMBERS, (-8, 8)), "kind": ["x", "y"]}


def make_frame(records=1200):
    rng = np.random.default_rng(0)
    common = rng.normal(size=(records, 1))
    frame = pd.DataFrame(common * [1.0, 0.9, 0.7, 0.5] + 0.4 * rng.normal(size=(records, 4)), columns=NUMBERS)
    frame.insert(0, "kind", np.where(rng.random(records) < 0.4, "x", "y"))  # not in the order of the schema
    return frame


FRAME = make_frame()


def release(data=FRAME, schema=SCHEMA, privacy=PRIVACY, **options):
    return mdp.release_table(data, schema, privacy, stream=mdp.Stream(seed=1), simulation=True, **options)


def make_plan(schema=SCHEMA, epsilon=1.0, records=1200, **options):
    return plan(Request(schema=schema, question="everything", epsilon=epsilon, delta=1e-6, records=records, **options))


class TestGuarantee:
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
    @pytest.mark.parametrize("share", [1e-3, 0.2, 0.9])
    def test_both_parts_together_spend_no_more_than_the_budget(self, epsilon, share):
        made = make_plan(epsilon=epsilon, correlation_share=share)
        most = made.request.privacy.mu
        assert compose_mu([made.design.distance, made.beside.request.privacy.mu]) <= most
        assert made.event == Gaussian(most)
        assert (made.beside.request.privacy.mu / most) ** 2 == pytest.approx(share, rel=1e-6)

    @pytest.mark.parametrize("share", [1e-12, 1e-13, 1e-17, 1e-20])
    def test_a_share_that_floats_cannot_take_from_the_budget_is_refused(self, share):
        """Otherwise the design would have the whole budget, and the text of a paid release could not be read."""
        asked = Request(schema=SCHEMA, question="everything", epsilon=10, delta=1e-12, records=1200)
        asked = replace(asked, correlation_share=share)
        if share < 1e-12:
            with pytest.raises(ParameterError, match="correlation_share"):
                plan(asked)
            return
        made = plan(asked)
        assert compose_mu([made.design.distance, made.beside.request.privacy.mu]) <= asked.privacy.mu

    def test_people_shapes_and_a_fit_together_are_within_the_charge(self):
        """All rows of a person go from one corner to the opposite one, and become more."""
        near, far = (FRAME[:60].assign(id=range(60)) for _ in range(2))
        own = pd.DataFrame({"kind": "x", **dict.fromkeys(NUMBERS, 8.0), "id": 99}, index=range(3))
        other = pd.DataFrame({"kind": "y", **dict.fromkeys(NUMBERS, -8.0), "id": 99}, index=range(5))
        near, far = (pd.concat([one, mine], ignore_index=True) for one, mine in ((near, own), (far, other)))
        options = {"person": mdp.Person("id", rows=3), "records": 61, "correlation_share": 0.3, "shapes": 0.5}
        found = replay(lambda data: mdp.release_table(data, SCHEMA, PRIVACY, **options), near, far, claim=PRIVACY)
        assert not found.broken
        assert 0.5 * PRIVACY.mu < found.distance <= PRIVACY.mu

    def test_a_stream_refuses_a_share(self):
        asked = Request(schema=SCHEMA, question="everything", epsilon=1, delta=1e-6, records=100)
        with pytest.raises(ParameterError, match="correlation_share"):
            planning.plan_stream(replace(asked, correlation_share=0.3))

    @pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
    def test_neighbours_are_no_further_apart_than_the_charge(self, neighbours):
        """In integers before noise, for a record that moves between corners of the bounds, or is removed."""
        near, far = FRAME.copy(), FRAME.copy()
        near.loc[0], far.loc[0] = ["x", 8, 8, 8, 8], ["y", 8, 8, -8, -8]
        far = far if neighbours == "replace" else far.drop(index=0)
        options = {"neighbours": neighbours, "records": len(FRAME), "correlation_share": 0.3}
        found = replay(lambda data: mdp.release_table(data, SCHEMA, PRIVACY, **options), near, far, claim=PRIVACY)
        assert not found.broken
        assert 0.5 * PRIVACY.mu < found.distance <= PRIVACY.mu

    def test_a_design_that_spends_all_beside_a_fit_is_caught(self, monkeypatch):
        own = planning.make_request_design
        monkeypatch.setattr(planning, "make_request_design", lambda *args, **_: own(*args))
        far, near = FRAME.copy(), FRAME.copy()
        near.loc[0], far.loc[0] = ["x", 8, 8, 8, 8], ["y", 8, 8, -8, -8]
        found = replay(
            lambda data: mdp.release_table(data, SCHEMA, PRIVACY, correlation_share=0.9), near, far, claim=PRIVACY
        )
        assert found.distance > PRIVACY.mu

    def test_it_is_charged_once_and_a_repeat_costs_nothing(self, tmp_path):
        with mdp.Ledger.create(tmp_path / "ledger.db") as ledger:
            ledger.register("clinic", mdp.Privacy(3, 1e-6), neighbours="replace")
            asked = {"ledger": ledger, "dataset": "clinic", "request": "all"}
            first = mdp.release_table(FRAME, SCHEMA, PRIVACY, **asked)
            again = mdp.release_table(FRAME, SCHEMA, PRIVACY, **asked)
            assert first.fit is not None
            assert again.to_json() == first.to_json()
            (charge,) = ledger.history("clinic")
            assert charge.event == Gaussian(PRIVACY.mu)
            with pytest.raises(LedgerError, match="share"):
                mdp.release_table(FRAME, SCHEMA, PRIVACY, correlation_share=0, **asked)

    def test_an_altered_text_is_refused(self):
        whole, larger = release(), release(correlation_share=0.9).fit
        content, more = json.loads(whole.to_json()), json.loads(larger.to_json())
        for changed in ({**content, "fit": more}, {**content, "fit": None}, {**content, "simulation": False}):
            with pytest.raises(ParameterError, match="altered"):
                mdp.Release.from_json(json.dumps(changed))
        spent = compose_mu([whole.design.distance, larger.mu])  # more than the guarantee, and stated as it is
        with pytest.raises(ParameterError, match="within the guarantee"):
            mdp.Release.from_json(json.dumps({**content, "fit": more, "mu": spent}))


class TestAnswers:
    def test_correlations_and_components_of_all_records_are_those_of_the_fit(self):
        found = release()
        assert str(found.correlation()) == str(found.fit.correlation())
        assert str(found.components(2)) == str(found.fit.components(2))
        truth = FRAME[NUMBERS].corr().to_numpy()
        assert np.abs(found.correlation(shrunk=True).value - truth).max() < 0.2
        assert release(correlation_share=0).correlation().hidden.any()

    def test_it_is_restored_from_its_text(self):
        found = release()
        again = mdp.Release.from_json(found.to_json())
        assert again.to_json() == found.to_json()
        assert again.mu == found.mu <= PRIVACY.mu

    def test_columns_without_names_are_found_by_their_places(self):
        columns = mdp.Columns([mdp.Category("kind", ["x", "y"]), *(mdp.Number(name, -8, 8) for name in NUMBERS)])
        unnamed = release(FRAME.to_numpy(object), columns)
        assert unnamed.to_json() == release(FRAME, columns).to_json()

    def test_the_report_and_the_design_say_so(self):
        made = make_plan()
        assert "20% of the budget" in release().reason == made.choice.reason
        assert release(correlation_share=0).reason == ""
        assert f"μ = {release().mu:.6g}" in "".join(write_words("cost", make_content(release())))
        fitted, plain = (
            next(one.estimate for one in list_predictions(each) if one.name == "correlation")
            for each in (made, make_plan(correlation_share=0))
        )
        assert np.nanmedian(fitted.std[fitted.std > 0]) < 0.7 * np.nanmedian(plain.std[plain.std > 0])
        assert fitted.reliable.all()


class TestShare:
    def test_it_follows_from_public_numbers(self):
        chosen = {
            "few numbers": make_plan({**dict.fromkeys("abc", (-8, 8)), "kind": ["x", "y"]}),
            "few records": make_plan(records=30, epsilon=0.1),
            "exact without": make_plan(records=10**7),
            "by groups": make_plan(by=["kind"]),
            "missing values": make_plan({**SCHEMA, "a": mdp.Number("a", -8, 8, missing=True)}),
            "none": make_plan(correlation_share=0),
        }
        assert [name for name, made in chosen.items() if made.beside is not None] == []
        assert 1 - make_plan().design.share == pytest.approx(0.2)

    def test_a_plan_at_another_epsilon_has_the_same_share(self):
        made = make_plan(correlation_share=0.3).at(2.0)
        assert made.design.share == 0.7
        assert made.beside.request.privacy.mu == pytest.approx(np.sqrt(0.3) * made.request.privacy.mu)

    @pytest.mark.parametrize(
        "options",
        [{"by": ["kind"]}, {"columns": ["a", "kind"]}, {"missing": "midpoint"}, {"epsilon": 1e-7}],
        ids=["by", "one number", "midpoint", "no budget"],
    )
    def test_a_share_that_cannot_be_used_is_refused(self, options):
        with pytest.raises(ParameterError, match="correlation_share"):
            make_plan(correlation_share=0.3, **options)

    def test_a_part_of_a_guarantee_is_rounded_down(self):
        for epsilon, delta in [(1e-3, 1e-9), (1, 1e-6), (1e4, 1e-12)]:
            whole = mdp.Privacy(epsilon, delta)
            part = whole.take_share(0.3)
            assert part.mu**2 <= 0.3 * whole.mu**2
            assert part.mu**2 > 0.3 * (1 - 1e-6) * whole.mu**2
        assert replace(whole, epsilon=1e-12, delta=0.5).take_share(0.3) is None
