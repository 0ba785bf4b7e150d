"""The public choice between an adaptive and a plain release."""

import pytest

from matrixdp import ParameterError
from matrixdp.adaptive import choose_method


@pytest.mark.parametrize("aim", ["covariance", "correlation", "components", "regression"])
def test_choice_names_a_method_and_a_reason(aim):
    for features in (1, 2, 30):
        method, reason = choose_method(features, 1000, 0.2, aim)
        assert method in ("adaptive", "plain")
        assert reason.endswith(".")


def test_choice_checks_its_arguments():
    for arguments in ((0, 10, 1.0, "covariance"), (2, 0, 1.0, "covariance"), (2, 10, 0.0, "covariance")):
        with pytest.raises(ParameterError):
            choose_method(*arguments)
    with pytest.raises(ParameterError, match="aim must be one of"):
        choose_method(2, 10, 1.0, "other")
