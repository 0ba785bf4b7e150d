"""The files in deploy/ fit the program: commands parse, the entry point serves, and the dashboard's metrics exist."""

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest

from ledger_stores import PostgresSchemas, schema_of
from matrixdp.cli.main import run
from matrixdp.cli.studio import start
from matrixdp.errors import LedgerError
from matrixdp.ledger.location import parse_location
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, CURATOR, Site

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
LINES = DEPLOY.joinpath("Containerfile").read_text(encoding="utf-8").splitlines()
EVE = Viewer("eve", frozenset({Role.ANALYST}))
yaml = pytest.importorskip("yaml")
COMPOSE = yaml.safe_load(DEPLOY.joinpath("compose.yaml").read_text(encoding="utf-8"))


def find_engine():
    """A container engine that works here: one that is installed, and whose server answers."""
    for name in ("podman", "docker"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return name
    return None


ENGINE = find_engine()


def read_step(name):
    return next(json.loads(line.split(" ", 1)[1]) for line in LINES if line.startswith(f"{name} ["))


def test_the_image_installs_extras_that_exist_and_gives_up_root():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (wanted,) = re.findall(r"'/src\[([a-z,]+)\]'", "\n".join(LINES))
    assert set(wanted.split(",")) <= set(extras)
    for line in LINES:
        if line.startswith("COPY"):
            assert all((ROOT / name).exists() for name in shlex.split(line)[1:-1]), line
    assert "USER 10001" in LINES


def test_the_entry_point_serves(tmp_path):
    """The steps of the image without an engine: the same command, on other folders and another port."""
    (tmp_path / "tables").mkdir()
    places = {"/tables": str(tmp_path / "tables"), "/state": str(tmp_path / "state"), "0.0.0.0": "127.0.0.1"}
    command = [places.get(word, word) for word in [*read_step("ENTRYPOINT"), *read_step("CMD")]]
    assert command[0] == "matrixdp"
    with subprocess.Popen(
        [sys.executable, "-m", *command, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            lines = [server.stdout.readline() for _ in range(3)]
            assert "Stop with Ctrl-C" in lines[2], server.stderr.read()
            port = re.search(r"127\.0\.0\.1:\d+", " ".join(_find_listening(server.pid)))[0].rpartition(":")[2]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as answer:
                assert json.load(answer) == {"status": "ready"}
            facts = json.loads(server.stderr.readline())
            assert (facts["route"], facts["status"]) == ("/readyz", 200)
        finally:
            server.terminate()
            server.stdout.read()
            server.stderr.read()


def _find_listening(pid):
    """The addresses on which a process listens."""
    inodes = {
        found[1]
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if (found := re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink()) if link.is_symlink() else ""))
    }
    for _ in range(100):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        found = [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]
        if found:
            return [f"127.0.0.1:{int(one.rpartition(':')[2], 16)}" for one in found]
        time.sleep(0.05)
    raise AssertionError("nothing listens")


def test_services_have_no_root_and_keep_their_files_in_named_volumes():
    for name, service in COMPOSE["services"].items():
        assert service["read_only"] is True, name
        assert service["user"] not in ("0", "root"), name
        assert service["cap_drop"] == ["ALL"], name
        for volume in service["volumes"]:
            source = volume.rsplit(":", 2)[0] if volume.endswith(":ro") else volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or volume.endswith(":ro"), volume
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
    start.make_context("start", [str(ROOT), *COMPOSE["services"]["studio"]["command"]])
    unit = DEPLOY.joinpath("studio.service").read_text(encoding="utf-8")
    words = shlex.split(re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1])
    assert words[1:3] == ["studio", "start"]
    start.make_context("start", [str(ROOT), *words[4:]])


def test_the_steps_of_the_ledger_make_one_that_two_studios_share_and_in_which_people_pay(
    tmp_path, postgres_server, capsys
):
    """The commands of docs/operations.md on a server without a container: an owner, roles, and the studio's login."""
    url = PostgresSchemas(postgres_server).new_path("deployed")
    schema = schema_of(url)
    assert run(["ledger", "new", url, "--dataset", "clinic", "--epsilon", "4", "--delta", "1e-6"]) == 0
    capsys.readouterr()
    assert run(["ledger", "roles", url]) == 0
    with contextlib.closing(postgres_server.connect()) as owner:
        owner.execute(f"CREATE ROLE {schema}_studio LOGIN")
        owner.execute(capsys.readouterr().out)
        owner.execute(f"GRANT {schema}_curator TO {schema}_studio")
    location = parse_location(url.replace("postgres@", f"{schema}_studio@"))
    sites = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        sites.append(Site(tmp_path / name, ledger=location))
    first, second = sites
    first.studio.datasets.allow(CURATOR, "clinic", "ann", share="1/4", payers=["ann"])
    for site in sites:
        with pytest.raises(LedgerError, match="is for ann, and not for 'eve'"):
            site.ask(EVE, allowance="ann")
    request = second.ask(allowance="ann")
    second.studio.requests.approve(CURATOR, request.id)
    release_request(second.settings, request.id)
    (charge,) = first.studio.datasets.history("clinic")
    assert (charge.actor, charge.allowance) == ("ann", "ann")
    assert first.browser(CURATOR).get("/readyz").json() == {"status": "ready"}


@pytest.mark.skipif(ENGINE is None, reason="no container engine is at hand")
def test_the_image_is_built_and_serves(tmp_path):
    subprocess.run([ENGINE, "build", "-q", "-f", DEPLOY / "Containerfile", "-t", "matrixdp-test", ROOT], check=True)
    rootless = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp", "--tmpfs=/state"]
    started = subprocess.run(
        [ENGINE, "run", "-d", "--rm", "-p", "127.0.0.1::8765", *rootless, "matrixdp-test"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    try:
        port = subprocess.run([ENGINE, "port", started, "8765"], check=True, capture_output=True, text=True).stdout
        for _ in range(600):
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://{port.split()[0]}/readyz", timeout=5) as answer:
                    assert json.load(answer) == {"status": "ready"}
                return
            time.sleep(0.1)
        raise AssertionError("the container does not serve")
    finally:
        subprocess.run([ENGINE, "stop", started], check=True)


def test_the_dashboard_and_prometheus_ask_for_what_the_studio_gives(tmp_path):
    site = Site(tmp_path)
    site.studio.datasets.allow(ANALYST, "clinic", "ann", share="1/4")
    (job,) = yaml.safe_load(DEPLOY.joinpath("prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    client = site.api(ANALYST)
    for _ in range(2):
        answer = client.get(job["metrics_path"], headers={"Host": job["static_configs"][0]["targets"][0]})
    assert answer.status_code == 200
    panels = json.loads(DEPLOY.joinpath("dashboard.json").read_text(encoding="utf-8"))["panels"]
    asked = {name for panel in panels for name in re.findall(r"matrixdp_\w+", panel["targets"][0]["expr"])}
    assert len(asked) == len(panels)
    assert asked <= set(re.findall(r"^(matrixdp_\w+)", answer.text, re.MULTILINE))
