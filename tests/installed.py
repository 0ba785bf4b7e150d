"""Smoke test of an installed matrixdp, with nothing else on the path: `python -I installed.py` (`make dist`)."""

import contextlib
import importlib.metadata
import importlib.resources
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

SUFFIXES = {".css", ".cu", ".html", ".js", ".json", ".py", ".sql", ".svg", ".toml", ".txt"}


def check_files():
    """Files of all kinds are there, and none lies outside of the environment."""
    import matrixdp

    assert Path(matrixdp.__file__).is_relative_to(sys.prefix), matrixdp.__file__
    assert importlib.metadata.version("matrixdp") == matrixdp.__version__
    files = importlib.metadata.files("matrixdp")
    assert {path.suffix for path in files} >= SUFFIXES
    assert all(path.locate().is_file() for path in files if "__pycache__" not in path.parts)
    package = importlib.resources.files("matrixdp")
    json.loads((package / "summaries.json").read_text("utf-8"))
    assert "__global__" in (package / "noise" / "draws.cu").read_text("utf-8")


def check_names():
    """Every public name can be used, and a release can be made and read back."""
    import numpy as np

    import matrixdp as mdp

    assert all(getattr(mdp, name) is not None for name in mdp.__all__)
    assert mdp.estimators.PrivateRidge()
    design = mdp.make_design(mdp.Moments(mdp.Bounds([0], [1]), records=100), mdp.Privacy(1, 1e-6))
    released = design.release(np.linspace(0, 1, 100)[:, None])
    assert mdp.from_json(released.to_json()).matrix.tolist() == released.matrix.tolist()


def check_demo(folder):
    """The demo writes a report with its styles."""
    subprocess.run([sys.executable, "-I", "-m", "matrixdp", "demo", "--out", "demo"], cwd=folder, check=True)
    reports = list((folder / "demo").rglob("*.html"))
    assert reports
    assert all("<style" in page.read_text("utf-8") for page in reports)


def check_studio(folder):
    """The studio shows a page, and sends the scripts and styles that the page names."""
    (folder / "tables").mkdir()
    (folder / "tables" / "clinic.csv").write_text("age\n30\n", encoding="utf-8")
    command = [sys.executable, "-I", "-u", "-m", "matrixdp", "studio", "tables", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with contextlib.closing(opener.open(address)) as answer:
            page, origin = answer.read().decode(), re.match(r"http://[^/]+", answer.url)[0]
        files = re.findall(r'(?:src|href)="(/static[^"]+)"', page)
        assert any("htmx" in file for file in files), page
        for file in files:
            with contextlib.closing(opener.open(origin + file)) as answer:
                assert answer.read()
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    check_files()
    check_names()
    with tempfile.TemporaryDirectory() as name:
        check_demo(Path(name))
        check_studio(Path(name))
    print(f"matrixdp {importlib.metadata.version('matrixdp')} works on Python {sys.version.split()[0]}.")
