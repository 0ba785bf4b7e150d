"""Releases: what is drawn, what is carried, what is refused."""

import json

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers import nearest_psd
from matrixdp.mechanisms.mechanism import _noisy_rows, prepare
from matrixdp.release.result import release_design

release = mdp.Design.release

PRIVACY = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([0, -1], [4, 3], names=["a", "b"])
RNG = np.random.default_rng(0)
DATA = RNG.uniform([0, -1], [4, 3], (50, 2))
GRAPH = np.triu(RNG.random((6, 6)) < 0.4, 1).astype(float)
GRAPH = GRAPH + GRAPH.T
ROTATION = np.array([[0.6, -0.8], [0.8, 0.6]])


def cases():
    return {
        "identity": (mdp.make_design(mdp.Identity(BOUNDS, 50), PRIVACY), DATA),
        "identity rotated": (mdp.make_design(mdp.Identity(BOUNDS, 50), PRIVACY, directions=ROTATION), DATA),
        "identity in a ball": (
            mdp.make_design(mdp.Identity(mdp.Bounds([0, -1], [4, 3], radius=1.0), 50), PRIVACY),
            DATA,
        ),
        "second moment": (mdp.make_design(mdp.SecondMoment(BOUNDS, 50), PRIVACY), DATA),
        "second moment elsewhere": (mdp.make_design(mdp.SecondMoment(BOUNDS, 50, centre=[0, 0]), PRIVACY), DATA),
        "moments": (mdp.make_design(mdp.Moments(BOUNDS, 50), PRIVACY), DATA),
        "moments rotated": (mdp.make_design(mdp.Moments(BOUNDS, 50), PRIVACY, directions=ROTATION), DATA),
        "moments of a private number": (
            mdp.make_design(mdp.Moments(BOUNDS, 60, neighbours="add-remove"), PRIVACY),
            DATA,
        ),
        "gram": (mdp.make_design(mdp.GramMatrix(BOUNDS, 50, points=[[1.0, 1.0]]), PRIVACY), DATA),
        "gram of records": (mdp.make_design(mdp.GramMatrix(BOUNDS, 50), PRIVACY), DATA),
        "adjacency": (mdp.make_design(mdp.Adjacency(6), PRIVACY), GRAPH),
        "laplacian": (mdp.make_design(mdp.Laplacian(6), PRIVACY), GRAPH),
        "counts": (
            mdp.make_design(mdp.ContingencyTable([0, 1], [0, 1], records=3), PRIVACY),
            [[0, 1], [1, 1], [0, 0]],
        ),
        "own": (
            mdp.make_design(mdp.Query((1, 2), mdp.sensitivity.FrobeniusBall(0.1), bound=9.0), PRIVACY),
            DATA.mean(axis=0)[None],
        ),
        "vertices": (
            mdp.make_design(
                mdp.Query((2, 2), mdp.sensitivity.Vertices([[[1.0, 0.5], [0.5, 0.0]]]), bound=9.0, side="both"),
                PRIVACY,
                allocation=mdp.allocations.optimal(),
            ),
            np.eye(2),
        ),
        "theorem 2": (mdp.make_design(mdp.Moments(BOUNDS, 50), PRIVACY, calibration="theorem2"), DATA),
    }


CASES = cases()
every_case = pytest.mark.parametrize("case", CASES)


def simulate(design, data, seed):
    return release(design, data, stream=mdp.Stream(seed=seed), simulation=True)


@every_case
def test_noise_is_unbiased_and_as_large_as_stated(case):
    design, data = CASES[case]
    truth = design.query.finish(design.query.evaluate(data, clip=True, missing="error"))
    n = 400
    stream = mdp.Stream(seed=1)
    noise = np.array([release(design, data, stream=stream, simulation=True).matrix for _ in range(n)]) - truth
    z = noise.mean(axis=0)[design.std > 0] / (design.std[design.std > 0] / np.sqrt(n))
    assert np.abs(z).max() < 6.0
    ratio = np.sqrt((noise**2).mean(axis=0))[design.std > 0] / design.std[design.std > 0]
    assert np.abs(ratio - 1).max() < 6 / np.sqrt(2 * n)
    assert np.array_equal(noise[:, design.std == 0], np.zeros_like(noise[:, design.std == 0]))


@every_case
def test_json_gives_the_release_back_bit_by_bit(case):
    design, data = CASES[case]
    before = simulate(design, data, seed=2)
    text = before.to_json()
    after = mdp.Release.from_json(text)
    assert np.array_equal(before.matrix, after.matrix)
    assert np.array_equal(before.std, after.std)
    assert (after.mu, after.privacy, after.neighbours) == (before.mu, before.privacy, before.neighbours)
    assert (after.version, after.simulation) == (mdp.__version__, True)
    assert after.to_json() == text
    assert str(after.design) == str(before.design)


@every_case
def test_symmetric_answers_stay_symmetric(case):
    design, data = CASES[case]
    if design.query.symmetric:
        matrix = simulate(design, data, seed=3).matrix
        assert np.array_equal(matrix, matrix.T)


@every_case
def test_possible_values_only(case):
    design, data = CASES[case]
    low, high = design.query.possible
    matrix = simulate(design, data, seed=3).possible()
    assert (matrix >= low).all()
    assert (matrix <= high).all()


@pytest.fixture
def untouched(monkeypatch):
    """Noise must not be drawn."""

    def words(self, size, out=None):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(mdp.Stream, "words", words)


@pytest.mark.parametrize(
    "data",
    [
        np.where(np.eye(50, 2), np.nan, DATA),
        np.where(np.eye(50, 2), np.inf, DATA),
        DATA[:10],
        DATA[:, :1],
        np.zeros((0, 2)),
        [["x", "y"]] * 50,
        DATA[0],
        None,
    ],
)
@pytest.mark.parametrize("case", ["identity", "identity rotated", "moments"])
@pytest.mark.usefixtures("untouched")
def test_an_error_in_the_data_comes_before_anything_is_drawn(case, data):
    with pytest.raises((mdp.DataError, mdp.ParameterError)) as caught:
        release(CASES[case][0], data)
    assert not any(f"{value:.6g}"[:6] in str(caught.value) for value in DATA[:10].ravel())


def test_records_outside_are_moved_or_refused():
    design = CASES["moments"][0]
    wild = DATA * 100
    assert np.isfinite(design.release(wild).matrix).all()
    for case in ("moments", "identity"):
        with pytest.raises(mdp.DataError, match="clip=False"):
            CASES[case][0].release(wild, clip=False)


def test_missing_values_may_stand_for_the_midpoint():
    data = DATA.copy()
    data[3] = np.nan
    for case in ("identity", "identity rotated", "moments", "gram"):
        assert np.isfinite(CASES[case][0].release(data, missing="midpoint").matrix).all()


def test_a_stream_is_refused_unless_it_is_a_simulation():
    design = CASES["moments"][0]
    for stream in (mdp.Stream(seed=1), mdp.Stream(seed=1).child(2), mdp.Stream().child(0)):
        with pytest.raises(mdp.StreamError, match="simulation=True"):
            design.release(DATA, stream=stream)
    marked = design.release(DATA, stream=mdp.Stream(seed=1), simulation=True)
    assert marked.simulation
    assert mdp.Release.from_json(marked.to_json()).simulation
    assert not design.release(DATA).simulation


def test_two_releases_differ():
    design = CASES["moments"][0]
    assert not np.array_equal(design.release(DATA).matrix, design.release(DATA).matrix)


def test_blocks_of_records_do_not_change_the_release(monkeypatch):
    import matrixdp.mechanisms.mechanism as module

    design = CASES["identity"][0]
    truth = prepare(design, DATA, clip=True, missing="error")
    whole = _noisy_rows(design, truth, mdp.Stream(seed=1))
    monkeypatch.setattr(module, "BLOCK", 14)
    parts = _noisy_rows(design, truth, mdp.Stream(seed=1))
    assert parts.shape == whole.shape
    assert np.abs(parts - whole).max() < 30 * design.std.max()


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "other"}', '{"format": "matrixdp release 1"}'])
def test_unfit_json_is_named(text):
    with pytest.raises(mdp.ParameterError, match="text must be a release"):
        mdp.Release.from_json(text)


@pytest.mark.parametrize("text", ["", "release.json", None, {}])
def test_what_is_not_json_is_named(text):
    with pytest.raises(mdp.ParameterError, match="text must be JSON"):
        mdp.Release.from_json(text)


def test_a_release_shows_itself():
    released = simulate(*CASES["moments"], seed=1)
    assert str(released).startswith(
        "Mean and second moment, 3 x 3, (1, 1e-06)-DP, replace neighbours, protects one record (row), spent"
    )
    assert "SIMULATION" in str(released)
    assert np.array_equal(np.asarray(released), released.matrix)
    assert "±" in str(released.covariance())
    assert str(released.covariance()).splitlines()[0].split() == ["a", "b"]
    assert len(str(released.means()).splitlines()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream": 7}, "stream must be a Stream"),
        ({"clip": "no"}, "clip must be"),
        ({"missing": DATA}, "missing must be"),
    ],
)
def test_unfit_options_are_named_and_show_no_data(options, message):
    with pytest.raises(mdp.ParameterError, match=message) as caught:
        CASES["moments"][0].release(DATA, **options)
    assert len(str(caught.value)) < 200


def test_json_of_an_unknown_kind_is_named():
    content = json.loads(simulate(*CASES["moments"], seed=1).to_json())
    content["design"]["kind"] = "os"
    with pytest.raises(mdp.ParameterError, match="cannot read an object"):
        mdp.Release.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["design"]["grid"].update(distance=c["design"]["grid"]["distance"] / 2), "mu|altered"),
        (lambda c: (c["design"]["grid"].update(distance=1e-3), c.update(mu=1e-3)), "altered"),
        (
            lambda c: [c["design"][x]["variances"]["array"].__setitem__(1, 1e-9) for x in ("rowcov", "colcov")],
            "altered",
        ),
        (lambda c: c["design"]["colcov"]["variances"]["array"].__setitem__(1, 1e-9), "altered"),
        (lambda c: c["design"]["privacy"].update(epsilon=0.1), "altered"),
        (lambda c: c.update(neighbours="add-remove"), "altered"),
        (lambda c: c.update(mu=0.1), "altered"),
        (lambda c: c.update(matrix=[[1.0]]), "text must be"),
        (lambda c: c.update(matrix=[[1.0], [2.0, 3.0]]), "text must be"),
        (lambda c: c.update(design={"kind": "Privacy", "epsilon": 1, "delta": 0.1}), "text must be"),
    ],
)
def test_json_that_was_altered_is_found(change, message):
    content = json.loads(simulate(*CASES["moments"], seed=1).to_json())
    change(content)
    with pytest.raises(mdp.ParameterError, match=message):
        mdp.Release.from_json(json.dumps(content))


def test_a_query_read_from_json_has_lost_its_function_and_says_so():
    query = mdp.Query(
        (1, 2), mdp.sensitivity.FrobeniusBall(0.1), bound=9.0, function=lambda data: data.mean(axis=0)[None] / 1e6
    )
    released = mdp.make_design(query, PRIVACY).release(DATA)
    design = mdp.Release.from_json(released.to_json()).design
    with pytest.raises(mdp.ParameterError, match="without its function"):
        design.release(DATA[:1])


def test_a_single_entry_takes_the_optimal_covariance():
    """Shapes that coincide must not hide that the noise is one covariance for all entries."""
    for side in ("both", "rows", "columns"):
        query = mdp.Query((1, 1), mdp.sensitivity.Vertices([[[10.0]]]), bound=100.0, side=side)
        design = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal())
        assert design.std[0, 0] == pytest.approx(10 / PRIVACY.mu, rel=1e-6)


def test_error_bars_know_of_a_private_number_of_records():
    design = mdp.make_design(mdp.Moments(BOUNDS, 2000, neighbours="add-remove"), PRIVACY)
    data = np.random.default_rng(3).uniform([2, 0], [4, 3], (2000, 2))
    stream = mdp.Stream(seed=7)
    releases = [release(design, data, stream=stream, simulation=True) for _ in range(600)]
    for name in ("means", "covariance"):
        values = np.array([getattr(r, name)().value for r in releases])
        std = np.mean([getattr(r, name)().std for r in releases], axis=0)
        noisy = std > 0
        np.testing.assert_allclose(values.std(axis=0)[noisy] / std[noisy], 1.0, atol=0.15)


def test_covariance_and_correlation_have_true_error_bars():
    bounds = mdp.Bounds([0, -1], [4, 3])
    rng = np.random.default_rng(5)
    data = rng.multivariate_normal([1.0, 2.0], [[0.1, 0.05], [0.05, 0.2]], 50_000)
    data = np.clip(data, bounds.lower, bounds.upper)
    for directions in (None, ROTATION):
        design = mdp.make_design(mdp.Moments(bounds, 50_000), mdp.Privacy(1, 1e-6), directions=directions)
        truth = np.cov(data.T, bias=True)
        stream = mdp.Stream(seed=7)
        releases = [release(design, data, stream=stream, simulation=True) for _ in range(400)]
        for name, expected in (
            ("means", np.stack([data.mean(axis=0), data.std(axis=0), [1.0, 1.0]], axis=1)),
            ("covariance", truth),
            ("correlation", truth / np.sqrt(np.outer(np.diag(truth), np.diag(truth)))),
        ):
            estimates = [getattr(r, name)() for r in releases]
            values = np.array([e.value for e in estimates])
            std = np.mean([e.std for e in estimates], axis=0)
            some = std > 0
            np.testing.assert_allclose(values.std(axis=0)[some] / std[some], 1.0, atol=0.2)
            assert (np.abs(values.mean(axis=0) - expected)[some] < 6 * std[some] / 20 + 1e-5).all()


def test_negative_variances_have_no_correlation():
    design = mdp.make_design(mdp.Moments(BOUNDS, 50), mdp.Privacy(0.01, 1e-6))
    for seed in range(20):
        r = simulate(design, DATA, seed)
        found, own = r.correlation(), np.eye(len(r.correlation().value), dtype=bool)
        negative = np.diag(r.covariance().measured) <= 0
        hidden = (negative | negative[:, None]) & ~own
        assert not found.reliable[hidden].any()
        low, high = found.interval()
        assert (low[hidden] == -1).all()
        assert (high[hidden] == 1).all()
        assert (np.abs(found.value) <= 1).all()
        assert (found.value[own] == 1).all()


def test_nearest_psd_is_nearest():
    r = simulate(*CASES["second moment"], seed=4)
    psd = nearest_psd(r.matrix)
    values = np.linalg.eigvalsh(r.matrix)
    assert np.linalg.eigvalsh(psd).min() > -1e-9
    assert np.linalg.norm(psd - r.matrix) == pytest.approx(np.linalg.norm(np.minimum(values, 0)))
    with pytest.raises(mdp.ParameterError, match="symmetric"):
        simulate(*CASES["identity"], seed=4).nearest_psd()
    with pytest.raises(mdp.ParameterError, match="follow from Moments"):
        simulate(*CASES["identity"], seed=4).covariance()


def test_principal_directions_cost_their_share_and_find_the_component():
    rng = np.random.default_rng(2)
    data = rng.uniform(-1, 1, (20_000, 1)) * [1.0, 1.0] + rng.uniform(-0.05, 0.05, (20_000, 2))
    bounds = mdp.Bounds([-2, -2], [2, 2])
    learned = mdp.principal_directions(data, bounds, PRIVACY, records=20_000, share=0.2)
    assert learned.mu**2 == pytest.approx(0.2 * PRIVACY.mu**2, rel=1e-6)
    assert abs(learned.directions[:, 0] @ [1, 1]) / np.sqrt(2) > 0.99
    assert learned.moments[0] > learned.moments[1]
    rest = mdp.make_design(mdp.Identity(bounds, 20_000), PRIVACY, directions=learned.directions, share=0.8)
    assert np.hypot(learned.mu, rest.distance) <= PRIVACY.mu


def test_the_paper_s_algorithms_release_an_answer_in_the_paper_s_orientation():
    answer = DATA.T / 10
    design = mdp.design.unimodal(
        epsilon=1, delta=1 / 50, sensitivity=2**0.5, gamma=10.0, theta=[0.7, 0.3], columns=50, calibration="exact"
    )
    assert design.release(answer).matrix.shape == (2, 50)
    square = mdp.design.equimodal(epsilon=1, delta=1 / 50, sensitivity=0.1, gamma=2.0, theta=[0.7, 0.3])
    assert square.release(np.eye(2)).matrix.shape == (2, 2)


@pytest.mark.parametrize(
    ("options", "name"), [({"clip": "no"}, "clip"), ({"simulation": 1}, "simulation"), ({"clip": 1}, "clip")], ids=str
)
def test_flags_are_true_or_false(options, name, tmp_path):
    design = mdp.make_design(mdp.Identity(mdp.Bounds([0], [1]), 2), PRIVACY)
    with pytest.raises(mdp.ParameterError, match=f"{name} must be True or False"):
        design.release([[0.5], [0.5]], **options)
    with pytest.raises(mdp.ParameterError, match=f"{name} must be True or False"):
        mdp.release_dataset(design, iter([np.full((2, 1), 0.5)]), tmp_path / "out", **options)


def test_a_release_needs_a_design(tmp_path):
    query = mdp.Identity(mdp.Bounds([0], [1]), 2)
    with pytest.raises(mdp.ParameterError, match="design must be a Design"):
        release_design(query, [[0.5], [0.5]], None)
    with pytest.raises(mdp.ParameterError, match="design must be a Design"):
        mdp.release_dataset(query, iter([np.full((2, 1), 0.5)]), tmp_path / "out")
