"""A studio is backed up and restored whole, and a copy beside the original is refused."""

import shutil

import pytest

from matrixdp.cli.main import run
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.studio.app import create_app
from matrixdp.studio.launch import back_up, check_place, confirm_move, restore
from matrixdp.studio.sign_in import find_token
from matrixdp.studio.state import Settings, State
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, CURATOR, Site


@pytest.fixture
def site(tmp_path):
    """A studio whose ledger is among its own files, with a release."""
    (tmp_path / "state").mkdir()
    found = Site(tmp_path, ledger=tmp_path / "ledger.db")
    request = found.ask()
    found.studio.requests.approve(CURATOR, request.id)
    release_request(found.settings, request.id)
    found.request = request
    return found


def test_a_backup_has_everything_and_can_be_restored_once_the_original_is_lost(site, tmp_path):
    client = site.api(ANALYST)
    secret = client.headers["Authorization"].removeprefix("Bearer ")
    backup, place = tmp_path / "backup", tmp_path / "restored"
    back_up(site.settings.state, site.settings.ledger, backup)
    with pytest.raises(ParameterError, match="is there already"):
        back_up(site.settings.state, site.settings.ledger, backup)
    with pytest.raises(ParameterError, match=r"the ledger cannot be restored .*still there"):
        restore(backup, place, None)
    assert not (place / "studio.db").exists()
    site.settings.ledger.rename(tmp_path / "lost.db")
    (tmp_path / "lost.db").unlink()
    shutil.rmtree(site.settings.state)
    restore(backup, place, None)
    with pytest.raises(ParameterError, match="there is a studio at"):
        restore(backup, place, None)
    settings = Settings(folder=site.settings.folder, ledger=place / "ledger.db", state=place, isolated=False)
    studio = create_app(settings).state.studio
    assert find_token(studio.state, secret).name == "ann"
    assert "release.json" in studio.results.files(site.request.id)
    assert studio.schemas.read("clinic.csv")
    assert studio.datasets.get("clinic").summary.restored_from is not None
    with Ledger.open(place / "ledger.db") as ledger:
        (charge,) = ledger.history()
        with pytest.raises(LedgerError, match="settle"):
            ledger.whatif("clinic", charge.event)
        ledger.settle("clinic", 0)
        ledger.verify()


def test_a_copy_that_is_started_beside_the_original_is_refused_with_its_path(site, tmp_path):
    check_place(site.settings.state)
    check_place(site.settings.state)
    copied = tmp_path / "copy"
    shutil.copytree(site.settings.state, copied)
    for act in (check_place, confirm_move):
        with pytest.raises(ParameterError, match=str(site.settings.state)):
            act(copied)
    shutil.rmtree(site.settings.state)
    with pytest.raises(ParameterError, match="matrixdp studio moved"):
        check_place(copied)
    confirm_move(copied)
    check_place(copied)


def test_the_commands_do_it(tmp_path, capsys):
    folder = tmp_path / "tables"
    folder.mkdir()
    assert run(["studio", "backup", str(folder), str(tmp_path / "b")]) != 0
    assert "there is no studio" in capsys.readouterr().err
    State(folder / ".studio" / "studio.db")
    Ledger.create(folder / ".studio" / "ledger.db").close()
    check_place(folder / ".studio")
    assert run(["studio", "backup", str(folder), str(tmp_path / "b")]) == 0
    folder.rename(tmp_path / "moved")
    assert run(["studio", "moved", str(tmp_path / "moved")]) == 0
    shutil.rmtree(tmp_path / "moved")
    folder.mkdir()
    assert run(["studio", "restore", str(tmp_path / "b"), str(folder)]) == 0
    assert "matrixdp ledger settle" in capsys.readouterr().out
