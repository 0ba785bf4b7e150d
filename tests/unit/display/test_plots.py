"""Plots and data frames: what they show, and what they say if a package is missing."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

import matrixdp
from matrixdp.answers.estimate import Estimate, relate_to_diagonal
from matrixdp.design.explain import outline_ellipse, pair_covariance
from matrixdp.display import Numbers
from matrixdp.plots import plot_matrix

PRIVACY = matrixdp.Privacy(1, 1e-6)
RECORDS = np.random.default_rng(0).uniform(0, 1, size=(400, 3)) * [1, 10, 100]
BOUNDS = matrixdp.Bounds([0, 0, 0], [1, 10, 100], names=["a", "b", "cost in $ and $"])
DESIGN = matrixdp.make_design(matrixdp.Moments(BOUNDS, records=400), PRIVACY)
RELEASE = DESIGN.release(RECORDS, stream=matrixdp.Stream(seed=1), simulation=True)


@pytest.fixture(autouse=True)
def _figures():
    yield
    mpl.pyplot.close("all")


def draw(axes):
    """Draw the figure, which raises for text that cannot be drawn."""
    figure = np.atleast_1d(axes)[0].figure
    figure.canvas.draw()
    return np.atleast_1d(axes)


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_matrices_have_names_and_numbers():
    (ax,) = draw(RELEASE.covariance().plot(title="covariance"))
    assert labels(ax.xaxis)[:2] == labels(ax.yaxis)[:2] == ["a", "b"]
    assert len(ax.texts) == 9
    assert ax.get_title(loc="left") == "covariance"


def test_uncertain_entries_fade_and_those_without_noise_are_grey():
    value, std = np.array([[1.0, 1.0], [1.0, np.nan]]), np.array([[0.1, 5.0], [0.0, np.nan]])
    (ax,) = draw(plot_matrix(Numbers(value, std, ["r", "s"], ["c", "d"])))
    painted = np.asarray(ax.images[0].get_array())
    assert painted[0, 1].min() > 0.85 > 0.6 > painted[0, 0].min()
    np.testing.assert_allclose(painted[1], 0.85)


def test_colours_of_a_covariance_do_not_depend_on_units():
    value, unit = np.array([[4.0, 1.0], [1.0, 9.0]]), np.diag([1000.0, 1.0])
    shade, legend = relate_to_diagonal(value, np.zeros((2, 2)))
    np.testing.assert_allclose(relate_to_diagonal(unit @ value @ unit, np.zeros((2, 2)))[0], shade)
    assert "diagonal" in legend
    one = np.array([[1.0, -0.3], [-0.3, 1.0]])
    assert relate_to_diagonal(one, np.zeros((2, 2)))[0] is one


def test_means_have_error_bars_of_the_level():
    estimate = Estimate(np.array([[1.0], [-2.0]]), np.array([[0.5], [0.1]]), ("a", "b"), ("mean",))
    (ax,) = draw(estimate.plot(level=0.9)).tolist()
    segments = ax.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose(segments[0][:, 0], [1 - 0.822427, 1 + 0.822427], rtol=1e-5)
    assert "90%" in ax.get_xlabel()


def test_other_estimates_have_a_panel_a_column():
    estimate = Estimate(np.ones((2, 3)), np.ones((2, 3)), ("r", "s"), ("a", "b", "c"))
    assert draw(estimate.plot()).shape == (3,)
    assert draw(estimate.plot(kind="matrix")).shape == (1,)
    with pytest.raises(matrixdp.ParameterError, match="kind must be 'matrix' or 'bars', got 'pie'"):
        estimate.plot(kind="pie")
    with pytest.raises(matrixdp.ParameterError, match="3 axes"):
        estimate.plot(ax=mpl.pyplot.subplots()[1])


def test_releases_and_designs_are_drawn_relative_to_the_largest_value():
    (ax,) = draw(RELEASE.plot())
    assert len(ax.texts) == 16
    draw(DESIGN.plot())
    identity = matrixdp.make_design(matrixdp.Identity(BOUNDS, records=400), PRIVACY)
    draw(identity.plot())
    (ax,) = draw(identity.release(RECORDS, stream=matrixdp.Stream(seed=1), simulation=True).plot())
    assert len(labels(ax.yaxis)) == 60


def test_ellipses_are_those_of_the_noise():
    (ax,) = draw(DESIGN.plot(("a", 2)))
    covariance = pair_covariance(DESIGN, 0, 2)
    points = outline_ellipse(covariance)
    np.testing.assert_allclose(ax.lines[0].get_xydata().T, points)
    distances = np.einsum("ik,ij,jk->k", points, np.linalg.inv(covariance), points)
    np.testing.assert_allclose(np.exp(-distances / 2), 0.05)


@pytest.mark.parametrize("pair", [("a", "z"), ("a", 3), ("a", "a"), ("a",), "ab", (True, 2)])
def test_other_pairs_are_refused(pair):
    with pytest.raises(matrixdp.ParameterError, match="pair must be"):
        DESIGN.plot(pair)


def test_models_are_drawn_and_framed():
    columns = matrixdp.Columns([matrixdp.Number("x", 0, 1), matrixdp.Number("y", 0, 1), matrixdp.YesNo("z")])
    design = matrixdp.make_design(matrixdp.TableMoments(columns, records=400), matrixdp.Privacy(50, 1e-6))
    x = RECORDS[:, 0]
    table = {"x": x, "y": x, "z": x > 0.5}
    release = design.release(table, stream=matrixdp.Stream(seed=1), simulation=True)
    regression, discriminant = release.regression("y"), release.discriminant("z")
    assert labels(draw(regression.terms.plot())[0].yaxis) == ["intercept", "x", "z=yes"]
    frame = regression.named.to_frame()
    assert list(frame.index) == ["intercept", "x", "z=yes"]
    assert (frame["95% low"] < frame["coefficient"]).all()
    assert (frame["coefficient"] < frame["95% high"]).all()
    assert draw(discriminant.terms.plot()).shape == (2,)
    assert discriminant.terms.to_frame().shape == (3, 2)
    draw(release.plot())


def test_frames_have_names_and_error_bars():
    frame = RELEASE.to_frame()
    assert list(frame.columns) == list(frame.index) == ["1", *BOUNDS.names]
    np.testing.assert_array_equal(frame.to_numpy(), RELEASE.matrix)
    long = RELEASE.covariance().to_frame(long=True, level=0.5)
    assert list(long.columns) == ["row", "column", "value", "std", "low", "high", "plausible"]
    assert not long.plausible.any()
    assert list(long.iloc[1, :2]) == ["a", "b"]
    np.testing.assert_allclose(long.high - long.value, 0.67449 * long["std"], rtol=1e-4)
    means = RELEASE.means().to_frame()
    assert list(means.index) == list(BOUNDS.names)
    np.testing.assert_array_equal(means["mean"], RELEASE.means().value[:, 0])
    assert RELEASE.to_frame(long=True).shape == (16, 7)


def test_a_frame_is_a_copy():
    before = RELEASE.matrix.copy()
    frame = RELEASE.to_frame()
    frame.iloc[:, :] = 0.0
    np.testing.assert_array_equal(RELEASE.matrix, before)


@pytest.mark.parametrize(
    ("package", "call"),
    [("pandas", RELEASE.to_frame), ("matplotlib", RELEASE.plot), ("matplotlib", RELEASE.means().plot)],
)
def test_missing_packages_are_named(package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(matrixdp.MissingExtraError, match=rf"need {package}.* -m pip install -e '.*\[plot\]'"):
        call()
