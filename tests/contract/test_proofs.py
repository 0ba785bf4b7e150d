"""The numbers behind guarantees, proved in ball arithmetic; numbers that are a little wrong are not proved."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from proofs import prove  # noqa: E402
from proofs.export import export  # noqa: E402


@pytest.fixture(scope="module")
def numbers():
    return json.loads(json.dumps(export(quick=True)))


def unproved(part, numbers):
    return {claim for claim, cases in prove.PARTS[part](numbers[part]) if not all(list(cases) or [False])}


@pytest.mark.parametrize("part", prove.PARTS)
def test_every_inequality_is_proved(part, numbers):
    assert unproved(part, numbers) == set()


def moved(text, by):
    return (float.fromhex(text) * (1 + by)).hex()


def test_a_mu_that_is_rounded_up_is_found(numbers):
    altered = copy.deepcopy(numbers)
    altered["calibrations"]["mu"][7][2] = moved(altered["calibrations"]["mu"][7][2], 1e-10)
    assert unproved("calibrations", altered) == {"mu of (epsilon, delta) gives (epsilon, delta)"}


def test_a_limit_above_the_least_error_is_found(numbers):
    altered = copy.deepcopy(numbers)
    altered["limits"]["box"][5][3] = moved(altered["limits"]["box"][5][3], 1e-11)
    assert unproved("limits", altered) == {"limits of moments in a box are proved by weights"}


@pytest.mark.parametrize("by", [-1e-12, 1e-3])
def test_a_distance_that_is_too_small_is_found(numbers, by):
    altered = copy.deepcopy(numbers)
    design = altered["designs"][8]
    if by < 0:
        design["distance"][0] = moved(design["distance"][0], by)
    else:  # or squares that are too precise for it
        design["squares"][1] = [moved(strength, by) for strength in design["squares"][1]]
    assert any("further apart" in claim for claim in unproved("designs", altered))


def test_a_cut_cell_that_is_taken_for_certain_is_found(numbers):
    altered = copy.deepcopy(numbers)
    table = altered["sampler"]
    table["certain"] += 1
    for name in ("level", "curve", "centre"):
        table[name] = table[name][2:]
    table["polynomials"] = [column[2:] for column in table["polynomials"]]
    assert "certain cells lie under the curve" in unproved("sampler", altered)


def test_the_proofs_do_not_import_the_package():
    code = "import sys; from proofs import prove; print('matrixdp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
