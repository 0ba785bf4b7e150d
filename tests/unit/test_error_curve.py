"""The predicted error against epsilon is that of designs made for each epsilon."""

import matplotlib as mpl
import numpy as np
import pytest

import matrixdp
from matrixdp import Bounds, Identity, Moments, ParameterError, Privacy, make_design
from matrixdp.design import error_curve

BOUNDS = Bounds([0, 0], [1, 5], names=["a", "b"])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"allocation": matrixdp.allocations.binary(["a"], 0.8)},
        {"share": 0.3},
        {"calibration": "theorem2-corrected"},
        {"directions": np.array([[0.6, -0.8], [0.8, 0.6]])},
    ],
)
def test_each_point_is_the_design_of_its_epsilon(options):
    query = Identity(BOUNDS, records=50)
    curve = error_curve(make_design(query, Privacy(1, 1e-5), **options), [4, 0.5, 1])
    assert curve.epsilons.tolist() == [0.5, 1, 4]
    for epsilon, rmse, relative in zip(curve.epsilons, curve.rmse, curve.relative_error, strict=True):
        design = make_design(query, Privacy(epsilon, 1e-5), **options)
        assert rmse == pytest.approx(design.rmse, rel=1e-9)
        assert relative == pytest.approx(design.relative_error, rel=1e-9)


def test_unstructured_noise_stays_unstructured():
    design = make_design(Moments(BOUNDS, records=50), Privacy(1, 1e-5), structured=False)
    other = make_design(Moments(BOUNDS, records=50), Privacy(2, 1e-5), structured=False)
    assert error_curve(design, [2]).rmse[0] == pytest.approx(other.rmse)


def test_the_default_curve_is_about_the_design_and_falls():
    design = make_design(Moments(BOUNDS, records=50), Privacy(1, 1e-5))
    curve = error_curve(design)
    assert curve.epsilons[4] == 1.0
    assert curve.rmse[4] == design.rmse
    assert (np.diff(curve.rmse) < 0).all()
    frame = curve.to_frame()
    assert frame.index.name == "epsilon"
    assert frame.loc[1.0, "median_std"] == np.median(design.std[design.std > 0])
    ax = curve.plot()
    ax.figure.canvas.draw()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), curve.relative_error)
    mpl.pyplot.close("all")


@pytest.mark.parametrize("epsilons", [[], [[1.0]], [0.0], ["one"]])
def test_other_epsilons_are_refused(epsilons):
    with pytest.raises(ParameterError, match="epsilon"):
        error_curve(make_design(Identity(BOUNDS, records=50), Privacy(1, 1e-5)), epsilons)


def test_only_designs_have_a_curve():
    with pytest.raises(ParameterError, match="design must be a Design"):
        error_curve("design")
