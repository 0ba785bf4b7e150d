"""The pictures of the gallery: each is what a `plot` of the library draws, and the report is one of the command line.

All data are public or simulated. The noise of the plots is seeded, so that every build draws the same ones.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import matrixdp as mdp
from matrixdp.cli.main import run

mpl.use("Agg")
PRIVACY = mdp.Privacy(epsilon=1, delta=1e-5)
FEATURES = {"age": (18, 90), "bmi": (15, 50), "bp": (50, 140), "s1": (80, 320), "s3": (15, 110), "s6": (40, 160)}
BOUNDS = mdp.Bounds.from_dict(FEATURES)


def make_pictures() -> Iterator[tuple[str, bytes]]:
    """Name and content of every file."""
    yield "correlation.svg", to_svg(draw_correlation())
    design = mdp.make_design(mdp.Moments(BOUNDS, records=442), PRIVACY)
    yield "errors.svg", to_svg(mdp.design.error_curve(design).plot())
    yield "ellipse.svg", to_svg(draw_ellipse())
    yield "groups.svg", to_svg(draw_groups())
    yield "mechanisms.svg", to_svg(draw_mechanisms())
    yield "report.html", make_report()


def to_svg(axes: Any) -> bytes:
    """The figure of these axes as SVG, the same in every build."""
    figure = np.atleast_1d(axes)[0].figure
    out = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "matrixdp"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    mpl.pyplot.close(figure)
    return out.getvalue()


def draw_correlation() -> Any:
    """Correlations of 442 patients; cells that may be noise alone are pale."""
    patients = load_diabetes(scaled=False, as_frame=True).data[list(FEATURES)]
    release = mdp.release_table(
        patients, BOUNDS, PRIVACY, question="correlation", stream=mdp.Stream(seed=3), simulation=True
    )
    return release.correlation().plot(title="Private correlations of 442 patients, epsilon 1")


def draw_mechanisms() -> Any:
    """All mechanisms for the second moment of the tutorial for researchers."""
    records = np.clip(np.random.default_rng(0).normal(0, 0.4, (1000, 12)), -1, 1)
    query = mdp.SecondMoment(mdp.Bounds(-np.ones(12), np.ones(12)), records=1000)
    return mdp.compare(query, PRIVACY, data=records).plot()


def draw_ellipse() -> Any:
    """Noise of two features of which one matters more, beside noise that is the same in every direction."""
    bounds = mdp.Bounds([-1, -1], [1, 1], names=["important", "other"])
    design = mdp.make_design(
        mdp.Identity(bounds, records=100), PRIVACY, allocation=mdp.allocations.optimal([25.0, 1.0])
    )
    axes = design.plot(("important", "other"))
    axes.set_aspect("equal")
    return axes


def make_table() -> pd.DataFrame:
    """Simulated patients of three wards."""
    rng = np.random.default_rng(0)
    wards = rng.choice(["north", "south", "west"], 6000, p=[0.55, 0.35, 0.10])
    age = rng.normal(52, 14, 6000) + np.where(wards == "south", 6, 0)
    stay = 2 + 0.06 * age + np.where(wards == "west", 1.5, 0) + rng.normal(0, 1.5, 6000)
    return pd.DataFrame({"ward": wards, "age": age.round(), "stay": stay.round(1)})


def draw_groups() -> Any:
    """Means of each ward with their error bars."""
    columns = mdp.Columns(
        [mdp.Number("age", 18, 100), mdp.Number("stay", 0, 15), mdp.Category("ward", ["north", "south", "west"])]
    )
    query = mdp.TableMoments(columns, records=6000, by=["ward"])
    design = mdp.make_design(query, mdp.Privacy(epsilon=1, delta=1e-6))
    release = design.release(make_table(), stream=mdp.Stream(seed=0), simulation=True)
    return release.means(by="ward").plot()


SCHEMA = """
[columns.age]
lower = 18
upper = 100
[columns.stay]
lower = 0
upper = 15
[columns.ward]
levels = ["north", "south", "west"]
"""
COMMANDS = (
    "ledger new wards.db --dataset wards --epsilon 3 --delta 1e-6",
    "release wards.csv --schema schema.toml --query everything --by ward --epsilon 1 --delta 1e-6"
    " --ledger wards.db --dataset wards --out out",
)


def make_report() -> bytes:
    """The report of a release by group, as the command line writes it."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
        make_table().to_csv("wards.csv", index=False)
        Path("schema.toml").write_text(SCHEMA)
        for command in COMMANDS:
            if run(command.split()) != 0:
                raise RuntimeError(f"the gallery has no report: matrixdp {command} failed")
        return Path("out/report.html").read_bytes()
