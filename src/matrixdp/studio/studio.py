"""The services of a studio, which pages and the API call."""

from __future__ import annotations

from matrixdp.studio.datasets import DatasetBook, SchemaStore, TableFolder
from matrixdp.studio.requests import RequestBook, Results
from matrixdp.studio.sign_in import OneTimeLinks, WrongTokens
from matrixdp.studio.state import Settings, State
from matrixdp.studio.worker import Runner


class Studio:
    """The services of a studio."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State(settings.database)
        self.links = OneTimeLinks()
        self.wrong_tokens = WrongTokens()
        self.tables = TableFolder(settings.folder)
        self.schemas = SchemaStore(settings.state / "schemas", self.tables)
        self.datasets = DatasetBook(settings.ledger, self.state, self.tables)
        self.runner = Runner(settings, self.state)
        self.requests = RequestBook(self.state, self.datasets, self.schemas, self.runner.wake)
        self.results = Results(settings.releases, self.state)
