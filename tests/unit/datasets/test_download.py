"""Downloads, from a server on this machine that has raw files made of the canonical tables."""

import csv
import io
import json
import os
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from matrixdp import datasets
from matrixdp.datasets import CATALOGUE, DatasetError, cache_folder, download, load_table
from matrixdp.errors import MissingExtraError

DATA = os.environ.get("MATRIXDP_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="MATRIXDP_DATA does not name a folder with the data sets")


def canonical(name):
    with (Path(DATA) / f"{name}.csv").open(newline="") as file:
        return list(csv.reader(file))[1:]


def raw_liver():
    return "".join(",".join(row) + "\r\n" for row in canonical("liver")).encode()


def raw_movement():
    out, rows = io.BytesIO(), canonical("movement")
    with zipfile.ZipFile(out, "w") as archive:
        for n in {row[0] for row in rows}:
            lines = ["#RSS_anchor1, RSS_anchor2, RSS_anchor3, RSS_anchor4"]
            lines += [",".join(row[2:6]) for row in rows if row[0] == n]
            archive.writestr(f"dataset/MovementAAL_RSS_{n}.csv", "\n".join(lines) + "\n")
        labels = {row[0]: row[6] for row in rows}
        text = "#sequence_ID, class_label\n" + "".join(f"{n}, {label}\n" for n, label in labels.items())
        archive.writestr("dataset/MovementAAL_target.csv", text)
    return out.getvalue()


def raw_ctg():
    """Cells of the sheet as JSON: counts before LB, other names between, a row of sums below."""
    names = list(CATALOGUE["ctg"].columns)
    header = ["b", "e", "AC", "FM", "", *names[:21], "A", "CLASS", "", "NSP"]
    body = [[0.0, 1.0, 9.0, 9.0, "", *map(float, row[:21]), 1.0, 2.0, "", float(row[21])] for row in canonical("ctg")]
    return json.dumps([["Expert"], header, *body, ["", "", 1.0]]).encode()


@pytest.fixture
def server():
    files = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            content = files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *arguments):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/uci", files
    running.shutdown()
    thread.join()
    running.server_close()


@needs_data
@pytest.mark.parametrize(("name", "make"), [("liver", raw_liver), ("movement", raw_movement), ("ctg", raw_ctg)])
def test_raw_files_become_the_canonical_tables(name, make, server, monkeypatch):
    base, files = server
    files[f"/uci/{CATALOGUE[name].path}"] = make()
    monkeypatch.setattr(datasets, "read_sheet", lambda raw, sheet: json.loads(raw))
    expected = (Path(DATA) / f"{name}.csv").read_bytes()
    assert download(CATALOGUE[name], base) == expected
    monkeypatch.delenv("MATRIXDP_DATA")
    monkeypatch.setenv("MATRIXDP_DATA_URL", base)
    assert load_table(name).origin == "download"
    assert (cache_folder() / f"{name}.csv").read_bytes() == expected
    files.clear()
    assert load_table(name).origin == "cache"


def test_a_wrong_file_is_refused(server):
    base, files = server
    files["/uci/liver-disorders/bupa.data"] = b"85,92,45,27,31,0.0,1\n"
    with pytest.raises(DatasetError, match="SHA-256"):
        download(CATALOGUE["liver"], base)


def test_a_web_page_is_not_a_data_set(server):
    base, files = server
    files["/uci/liver-disorders/bupa.data"] = b"<html>moved</html>"
    files["/uci/00348/MovementAAL.zip"] = b"<html>moved</html>"
    for name in ("liver", "movement"):
        with pytest.raises(DatasetError, match="not the file that was published"):
            download(CATALOGUE[name], base)


def test_an_archive_that_is_away(server, monkeypatch):
    base, _ = server
    with pytest.raises(DatasetError, match="404"):
        download(CATALOGUE["liver"], base)
    monkeypatch.delenv("MATRIXDP_DATA", raising=False)
    monkeypatch.setenv("MATRIXDP_DATA_URL", base)
    assert load_table("liver", simulate=True).simulated


def test_only_http():
    with pytest.raises(DatasetError, match="http"):
        download(CATALOGUE["liver"], "file:///etc")


def test_without_xlrd_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[paper\]"):
        datasets.parse_ctg(b"")


def test_sheets_and_archives_of_another_kind(server, monkeypatch):
    monkeypatch.setattr(datasets, "read_sheet", lambda raw, sheet: [["a", "b"]])
    base, files = server
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    files["/uci/00193/CTG.xls"] = b"a,b"
    files["/uci/00348/MovementAAL.zip"] = out.getvalue()
    for name in ("ctg", "movement"):
        with pytest.raises(DatasetError, match="not the file that was published"):
            download(CATALOGUE[name], base)
