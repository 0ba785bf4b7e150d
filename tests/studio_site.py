"""A small studio for tests: a folder with one table, its schema, a ledger, and clients that are signed in."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

from matrixdp import Ledger
from matrixdp.studio.app import create_app
from matrixdp.studio.requests import ReleaseSpec
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.sign_in import create_token
from matrixdp.studio.state import Settings

ORIGIN = "http://127.0.0.1:8765"
CURATOR = Viewer("cara", frozenset({Role.CURATOR}))
ANALYST = Viewer("ann", frozenset({Role.ANALYST}))
BOTH = Viewer("desk", frozenset(Role))
TABLE = "clinic.csv"
SCHEMA = """\
records = 200

[columns.age]
type = "number"
lower = 0
upper = 100

[columns.bmi]
type = "number"
lower = 10
upper = 60

[columns.ward]
type = "category"
levels = ["north", "south"]
"""
SPEC = {"query": "covariance", "epsilon": 1.0, "delta": 1e-6, "columns": "age,bmi", "method": "plain"}


def make_settings(folder: Path, **changes) -> Settings:
    """The settings of a studio in an empty folder, in which a table and an empty ledger are written."""
    tables = folder / "tables"
    tables.mkdir()
    rng = np.random.default_rng(0)
    rows = [f"{a:.1f},{b:.1f},{w}" for a, b, w in zip(
        rng.uniform(20, 80, 200), rng.normal(27, 4, 200), rng.choice(["north", "south"], 200), strict=True
    )]  # fmt: skip
    (tables / TABLE).write_text("\n".join(["age,bmi,ward", *rows]) + "\n", encoding="utf-8")
    Ledger.create(folder / "ledger.db").close()
    return replace(read_settings(folder), **{"isolated": False, **changes})


def read_settings(folder: Path) -> Settings:
    """The settings of the studio in a folder that `make_settings` has filled, as a server has them."""
    return Settings(folder=folder / "tables", ledger=folder / "ledger.db", state=folder / "state")


class Site:
    """A studio with the data set ``clinic``, whose total is (4, 1e-6), and clients that are signed in to it."""

    def __init__(self, folder: Path, *, epsilon: float = 4.0, **changes) -> None:
        self.settings = make_settings(folder, **changes)
        self.app = create_app(self.settings)
        self.studio = self.app.state.studio
        self.studio.schemas.write(TABLE, SCHEMA)
        self.studio.datasets.register(CURATOR, "clinic", TABLE, epsilon=epsilon, delta=1e-6)

    def browser(self, viewer: Viewer | None = BOTH) -> TestClient:
        """A client with a cookie, which sends Origin and the token against forged forms as the pages do."""
        client = TestClient(self.app, base_url=ORIGIN, headers={"Origin": ORIGIN})
        if viewer is not None:
            client.get("/enter", params={"token": self.studio.links.create(viewer)}, follow_redirects=False)
            client.headers["X-CSRF-Token"] = self.csrf()
        return client

    def csrf(self) -> str:
        """The token of the latest session."""
        with self.studio.state.reading() as connection:
            return connection.execute("SELECT csrf FROM sessions ORDER BY rowid DESC").fetchone()["csrf"]

    def api(self, viewer: Viewer = BOTH) -> TestClient:
        """A client with a bearer token."""
        secret, _ = create_token(self.studio.state, viewer.name, viewer.roles)
        return TestClient(self.app, base_url=ORIGIN, headers={"Authorization": f"Bearer {secret}"})

    def ask(self, viewer: Viewer = ANALYST, form_id: str = "form", purpose: str = "a test", **changes):
        """A request for a release."""
        spec = ReleaseSpec.from_mapping({**SPEC, **changes})
        return self.studio.requests.submit(viewer, "clinic", TABLE, spec, purpose, form_id)
