"""``python -m benchmarks.studio``: how quick and how large the studio is.

Starts real servers for a table of 20 columns. Times are also given as ratios to a peer in the same run: a forecast to a
static file from the same server, a start to a Python process that imports FastAPI and NumPy and nothing else. Processor
times hardly depend on what else the machine does.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from importlib import metadata
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import numpy as np

import matrixdp
from benchmarks.sizes import size
from matrixdp.studio.datasets import DatasetBook, SchemaStore, TableFolder
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.state import State

FEATURES, MOVES, STARTS = size((20, 100, 5), (3, 1, 1))
_BARE = "import fastapi, uvicorn, numpy"
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


class _Form(HTMLParser):
    """The fields of the design page, with the values that the browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self._select: str | None = None
        self._options: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a field."""
        found = dict(attrs)
        kind = found.get("type") or "text"
        if tag == "input" and "name" in found and (kind not in ("checkbox", "radio") or "checked" in found):
            self.fields.append((found["name"] or "", found.get("value") or ""))
        elif tag == "select":
            self._select, self._options = found.get("name"), []
        elif tag == "option":
            self._options.append((found.get("value") or "", "selected" in found))

    def handle_endtag(self, tag: str) -> None:
        """Choose the option of a list."""
        if tag == "select" and self._select and self._options:
            chosen = next((value for value, selected in self._options if selected), self._options[0][0])
            self.fields.append((self._select, chosen))


class Server:
    """A running studio, and a browser that is signed in to it."""

    def __init__(self, folder: Path) -> None:
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "matrixdp", "studio", str(folder), "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None, "the server did not start"
        self.browser: OpenerDirector = build_opener(HTTPCookieProcessor(CookieJar()))
        self.read(found[0])
        self.seconds, self.start_cpu = time.perf_counter() - start, self.cpu()  # until the first page is there
        parts = urlsplit(found[0])
        self.origin = f"{parts.scheme}://{parts.netloc}"

    def read(self, address: str) -> str:
        """The page at an address."""
        with self.browser.open(address) as answer:
            return str(answer.read().decode())

    def post(self, path: str, fields: list[tuple[str, str]], csrf: str) -> str:
        """The answer to a form."""
        headers = {"Origin": self.origin, "X-CSRF-Token": csrf, "HX-Request": "true"}
        with self.browser.open(Request(self.origin + path, urlencode(fields).encode(), headers)) as answer:
            return str(answer.read().decode())

    def cpu(self) -> float:
        """Processor seconds so far, of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) / 1000 if found else float("nan")


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.communicate()


def make_folder(folder: Path) -> None:
    """A table with 20 columns, its schema, and a data set."""
    names = [f"x{i}" for i in range(FEATURES)]
    rows = np.random.default_rng(0).uniform(0, 1, (1000, FEATURES))
    np.savetxt(folder / "table.csv", rows, delimiter=",", header=",".join(names), comments="", fmt="%.4f")
    state = folder / ".studio"
    database, tables = State(state / "studio.db"), TableFolder(folder)
    matrixdp.Ledger.create(state / "ledger.db").close()
    columns = [f'[columns.{name}]\ntype = "number"\nlower = 0\nupper = 1\n' for name in names]
    schemas = SchemaStore(state / "schemas", tables)
    schemas.write("table.csv", "\n".join(["records = 100000\n", *columns]))
    book = DatasetBook(state / "ledger.db", database, tables, schemas)
    book.register(Viewer("bench", frozenset(Role)), "table", "table.csv", epsilon=10, delta=1e-6)


def measure_starts(folder: Path) -> tuple[float, float, float]:
    """Median seconds to the first page, processor seconds of it, and seconds to import FastAPI and NumPy."""
    ours, cpu, bare = [], [], []
    for _ in range(STARTS):
        with serve(folder) as server:
            ours.append(server.seconds)
            cpu.append(server.start_cpu)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", _BARE], check=True)
        bare.append(time.perf_counter() - start)
    return statistics.median(ours), statistics.median(cpu), statistics.median(bare)


def measure_forecasts(server: Server, query: str, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of forecasts at moving epsilons, and of a static file between them."""
    chosen = urlencode({"dataset": "table", "table": "table.csv"})
    page = server.read(f"{server.origin}/design?{chosen}")
    form = _Form()
    form.feed(page)
    csrf = dict(form.fields)["csrf_token"]
    static = re.search(r'href="(/static/[^"]+\.css[^"]*)"', page)
    assert static is not None
    fields = [(name, value) for name, value in form.fields if name not in ("epsilon", "query", "method")]
    ours, peer = [], []
    for i in range(MOVES + 5):
        epsilon = f"{10 ** (-1 + 2 * (i * 37 % MOVES) / MOVES):.4g}"
        moved = [*fields, ("query", query), ("method", method), ("epsilon", epsilon)]
        start = time.perf_counter()
        answer = server.post("/design/forecast", moved, csrf)
        middle = time.perf_counter()
        server.read(server.origin + static[1])
        assert f"x{FEATURES - 1}" in answer, f"the forecast must have all columns: {answer[:2000]}"
        if i >= 5:  # the first ones import modules and fill caches
            ours.append(middle - start)
            peer.append(time.perf_counter() - middle)
    return np.array(ours), np.array(peer)


def find_closure(extra: str) -> set[str]:
    """Names of the distributions that an extra of matrixdp needs, with all that they need."""
    found: set[str] = set()
    waiting = [("matrixdp", frozenset({extra}))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in _list_requirements(name):
            requirement, _, marker = text.partition(";")
            wanted = re.search(r"extra == ['\"]([^'\"]+)['\"]", marker)
            if wanted and wanted[1] not in extras:
                continue
            if "python_version <" in marker or "win32" in marker or "platform_system ==" in marker:
                continue
            needed = _REQUIREMENT.match(requirement)
            assert needed is not None
            inner = re.search(r"\[([^\]]*)\]", requirement)
            try:
                metadata.distribution(needed[0])
            except metadata.PackageNotFoundError:
                continue
            if needed[0].lower() != "matrixdp":
                found.add(needed[0].lower().replace("_", "-"))
            waiting.append(
                (needed[0], frozenset(part.strip() for part in inner[1].split(",")) if inner else frozenset())
            )
    return found


def _list_requirements(name: str) -> list[str]:
    """What a distribution needs; of matrixdp, what the clone says, which may be newer than what is installed."""
    if name != "matrixdp":
        return metadata.requires(name) or []
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [
        *project["dependencies"],
        *(f"{text}; extra == '{extra}'" for extra, needed in extras.items() for text in needed),
    ]


def measure_disk() -> tuple[float, list[str]]:
    """MB that the extra adds to those of the command line, with the studio's own files; and the packages."""
    added = sorted(find_closure("studio") - find_closure("cli"))
    files = [metadata.distribution(name).locate_file(file) for name in added for file in metadata.files(name) or ()]
    own = Path(matrixdp.__file__).parent / "studio"
    paths = [*(Path(str(file)) for file in files), *own.rglob("*")]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6, added


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_folder(folder)
        start, cpu, bare = measure_starts(folder)
        print(
            f"start to the first page: {start:.2f} s (target 1.5), {cpu:.2f} s of the processor, "
            f"{start / bare:.1f} times '{_BARE}'"
        )
        with serve(folder) as server:
            server.read(f"{server.origin}/results")  # waits for all modules
            print(f"memory idle: {server.memory():.0f} MB (target 150)")
            for query, method in (("correlation", "plain"), ("correlation", "auto"), ("everything", "auto")):
                before = server.cpu()
                ours, peer = measure_forecasts(server, query, method)
                print(
                    f"forecast of {FEATURES} columns, {query}, method {method}: "
                    f"p50 {1e3 * np.median(ours):.0f} ms, p95 {1e3 * np.quantile(ours, 0.95):.0f} ms (target 150), "
                    f"{1e3 * (server.cpu() - before) / MOVES:.0f} ms of the processor, "
                    f"{np.median(ours) / np.median(peer):.1f} times a static file"
                )
            print(f"memory after {3 * MOVES} forecasts: {server.memory():.0f} MB")
    size, added = measure_disk()
    print(f"disk beyond [cli]: {size:.1f} MB (target 60), with {', '.join(added)}")


if __name__ == "__main__":
    main()
