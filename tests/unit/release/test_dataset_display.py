"""What a noisy data set in files shows in a notebook."""

import numpy as np

import matrixdp as mdp
from matrixdp.display import format_number
from matrixdp.release.released import SIMULATION


def test_a_noisy_data_set_shows_its_guarantee_and_its_noise(tmp_path):
    bounds = mdp.Bounds([0, -1], [10, 1], names=["<age>", "bmi"])
    design = mdp.make_design(mdp.Identity(bounds, 50), mdp.Privacy(1, 1e-6))
    blocks = mdp.records.Blocks(lambda: iter([np.zeros((50, 2))]))
    release = mdp.release_dataset(design, blocks, tmp_path / "out", stream=mdp.Stream(0), simulation=True)
    page = release._repr_html_()
    for words in ("Noisy data set, 50 × 2", "&lt;age&gt;", "1 in Parquet,", SIMULATION, "(1, 1e-06)-DP", "mu 0."):
        assert words in page
    assert f">{format_number(release.std[0])}<" in page
    assert "<age>" not in page
