"""Predicted errors at several epsilons."""

import numpy as np
import pytest

from matrixdp.answers.estimate import Estimate
from matrixdp.report.answers import Answer
from matrixdp.report.forecast import let_answers_fall, let_fall

RISING = [[0.2, 0.9], [0.5, np.nan], [0.1, 0.3]]  # by rising epsilon; NaN: noise hides the answer
FALLING = [[0.5, 0.9], [0.5, np.nan], [0.1, 0.3]]


def test_predicted_errors_do_not_grow_with_epsilon_and_hidden_answers_stay_hidden():
    for found, expected in zip(let_fall(RISING), FALLING, strict=True):
        assert found == pytest.approx(np.array(expected), nan_ok=True)


def test_errors_of_answers_do_not_grow_with_epsilon():
    def predict(std):
        return {"hostile": [Answer("t", "column", Estimate(np.zeros((1, 2)), np.array([std]), ("r",), ("a", "b")))]}

    changed = let_answers_fall([predict(std) for std in RISING])
    for found, expected in zip(changed, FALLING, strict=True):
        assert found["hostile"][0].estimate.std[0] == pytest.approx(np.array(expected), nan_ok=True)
