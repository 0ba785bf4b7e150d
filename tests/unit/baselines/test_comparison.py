"""Simulations beside the truth; releases of private data are refused."""

import numpy as np
import pytest

from matrixdp import (
    Adjacency,
    Bounds,
    Identity,
    Moments,
    ParameterError,
    Privacy,
    SecondMoment,
    Stream,
    compare,
    make_design,
)

RECORDS = np.random.default_rng(0).uniform(0, 1, size=(500, 3))
DESIGN = make_design(Moments(Bounds([0] * 3, [1] * 3, names=["a", "b", "c"]), records=500), Privacy(1, 1e-6))
TRUE = np.cov(RECORDS.T, bias=True)


def simulate(seed=1):
    return DESIGN.release(RECORDS, stream=Stream(seed=seed), simulation=True)


def test_a_release_of_private_data_is_refused():
    with pytest.raises(ParameterError, match="release must be a simulation"):
        compare(DESIGN.release(RECORDS), TRUE, answer="covariance")
    with pytest.raises(ParameterError, match="release must be a simulation"):
        compare(simulate().covariance(), TRUE)  # an estimate does not say where it is from


def test_each_pair_is_compared_once():
    release = simulate()
    found = compare(release, TRUE, answer="covariance")
    estimate = release.covariance()
    assert list(zip(found.rows, found.columns, strict=True))[:3] == [("a", "a"), ("a", "b"), ("a", "c")]
    assert found.true.size == 6
    np.testing.assert_array_equal(found.error, (estimate.value - TRUE)[np.triu_indices(3)])
    assert found.rmse == pytest.approx(np.sqrt(np.mean(found.error**2)))


def test_coverage_is_near_its_level():
    found = [compare(simulate(seed), TRUE, answer="covariance", level=0.8).coverage for seed in range(60)]
    assert 0.7 < np.mean(found) < 0.9


def test_means_and_matrices_are_compared():
    release = simulate()
    means = compare(release, np.stack([RECORDS.mean(axis=0), RECORDS.std(axis=0), np.ones(3)], axis=1), answer="means")
    assert means.rows[::3] == ("a", "b", "c")
    assert means.columns[:3] == ("mean", "standard deviation", "share observed")
    matrix = compare(release, release.matrix)
    assert matrix.rmse == 0.0
    assert np.isnan(matrix.covered[0])  # the constant has no noise
    assert matrix.coverage == 1.0


def test_frames_mark_what_is_not_covered():
    release = simulate()
    true = release.means().value + np.array([[0.0], [100.0], [0.0]])
    found = compare(release, true, answer="means")
    frame = found.to_frame()
    assert frame.covered[::3].tolist() == [1.0, 0.0, 1.0]
    assert frame.error[3] == pytest.approx(-100)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"answer": "median"}, "answer must be one of matrix, means, covariance, correlation"),
        ({"answer": "correlation", "true": np.eye(2)}, r"non_private must have the shape \(3, 3\)"),
        ({"answer": "covariance", "level": 1.5}, "level must be"),
    ],
)
def test_other_arguments_are_refused(options, words):
    options = dict(options)
    true = options.pop("true", TRUE)
    with pytest.raises(ParameterError, match=words):
        compare(simulate(), true, **options)


def test_all_mechanisms_for_a_query_are_in_one_table():
    query, privacy = SecondMoment(Bounds([-1] * 3, [1] * 3), records=100), Privacy(1, 1e-5)
    table = compare(query, privacy, trials=5)
    rows = {one.name: one for one in table.rows}
    assert {"matrixdp", "MVG, as printed", "Laplace", "analytic Gaussian", "exponential"} <= set(rows)
    assert [one.error for one in table.rows] == sorted(one.error for one in table.rows)
    assert rows["matrixdp"].std == pytest.approx(make_design(query, privacy).rmse)
    assert rows["matrixdp"].error == pytest.approx(rows["matrixdp"].std, rel=0.3)
    assert rows["Laplace"].delta == 0
    assert not rows["exponential"].exact
    assert "SuLQ" not in rows  # its directions have the shape of the answer, and do not estimate it
    assert table.to_csv().count("\n") == len(rows) + 1
    assert table.to_latex().count(r"\pm") == len(rows)
    assert str(table).count("±") == len(rows)
    assert len(table.to_frame()) == len(rows)
    assert table.plot().get_xscale() == "log"
    assert "Simulated" in table._repr_html_()


def test_mechanisms_that_do_not_answer_a_query_are_named():
    table = compare(Identity(Bounds([-1] * 2, [1] * 2), records=20), Privacy(1, 1e-5), trials=2)
    assert "must be symmetric" in table.left_out["Analyze Gauss"]
    assert table.left_out["Johnson-Lindenstrauss"] == "its result is no estimate of the entries"
    assert "left out: Johnson-Lindenstrauss" in str(table)


def test_records_stand_for_their_second_moment():
    records = RECORDS - 0.5
    query = SecondMoment(Bounds(records.min(axis=0), records.max(axis=0)), len(records))
    one, other = (
        compare(what, Privacy(1, 1e-5), trials=2, **more) for what, more in ((records, {}), (query, {"data": records}))
    )
    assert str(one) == str(other)
    with pytest.raises(ParameterError, match="what must be records of shape"):
        compare([1.0, 2.0], Privacy(1, 1e-5))
    with pytest.raises(ParameterError, match="data must be given for Adjacency"):
        compare(Adjacency(4), Privacy(1, 1e-5))
