"""Backups, restored and moved ledgers, anchors, authors and pending requests, on the command line."""

import shutil
from pathlib import Path

from matrixdp import Ledger
from unit.cli.conftest import argv


def test_a_ledger_is_backed_up_restored_and_settled(clinic, matrixdp):
    saved = matrixdp("ledger", "backup", "clinic.db", "backup.db", "--json").json()
    assert saved["entry"] == 2
    assert "matrixdp ledger restore again.db LEDGER" in matrixdp("ledger", "backup", "clinic.db", "again.db").out
    assert matrixdp(*argv()).code == 0
    refused = matrixdp("ledger", "restore", "backup.db", "clinic.db")
    assert refused.code == 4
    assert "clinic.db already exists and is not replaced" in refused.err
    Path("clinic.db").rename("lost.db")
    shown = matrixdp("ledger", "restore", "backup.db", "clinic.db")
    assert shown.code == 0
    assert "--dataset clinic --spent EPSILON (or --all)" in shown.out
    refused = matrixdp(*argv(), "--force")
    assert refused.code == 4
    assert "was restored from a backup that ends at entry 2" in refused.err
    settle = ("ledger", "settle", "clinic.db", "--dataset", "clinic")
    assert matrixdp(*settle).code == matrixdp(*settle, "--all", "--spent", "1").code == 2
    settled = matrixdp(*settle, "--spent", "1", "--actor", "ann", "--json").json()
    assert settled["datasets"][0]["restored_from"] is None
    assert settled["datasets"][0]["left"]["epsilon"] < 4
    assert matrixdp(*argv(), "--force").code == 0
    assert matrixdp(*settle, "--all").code == 0
    assert matrixdp(*argv(), "--force").code == 4
    assert matrixdp("ledger", "verify", "clinic.db").code == 0


def test_a_missing_backup_is_an_error(clinic, matrixdp):
    done = matrixdp("ledger", "restore", "nowhere.db", "new.db")
    assert "there is no backup at" in done.err
    assert "nowhere.db" in done.err
    assert not Path("new.db").exists()


def test_a_copy_is_refused_and_a_move_confirmed(clinic, matrixdp):
    shutil.copy("clinic.db", "copy.db")
    words = ["copy.db" if word == "clinic.db" else word for word in argv()]
    refused = matrixdp(*words)
    assert refused.code == 4
    assert "is a copy of the ledger" in refused.err
    assert matrixdp("ledger", "moved", "copy.db").code == 4
    Path("clinic.db").unlink()
    assert matrixdp("ledger", "moved", "copy.db", "--purpose", "new disk").code == 0
    assert matrixdp(*words).code == 0
    assert matrixdp("ledger", "moved", "nowhere.db").code == 4


def test_a_file_system_that_hides_old_copies_is_named_when_a_ledger_is_made(tmp_path, matrixdp, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new = ("ledger", "new", "--dataset", "clinic", "--epsilon", "4", "--delta", "1e-6")
    assert "does not show" not in matrixdp(*new, "good.db").out
    assert "unnoticed" not in matrixdp("ledger", "show", "good.db", "--json").json()
    monkeypatch.delattr("os.getxattr")
    shown = matrixdp(*new, "bad.db").out
    assert "does not show that an old copy was written over the file" in shown
    assert "matrixdp release --anchor-to FILE" in shown
    assert matrixdp("ledger", "show", "bad.db", "--json").json()["unnoticed"] == [
        "that an old copy was written over the file"
    ]


def test_a_verified_anchor_is_resumed(clinic, matrixdp):
    verified = matrixdp("ledger", "verify", "clinic.db", "--json").json()
    assert matrixdp(*argv()).code == 0
    anchor = f"{verified['entry']}:{verified['hash']}"
    resumed = matrixdp("ledger", "verify", "clinic.db", "--anchor", anchor, "--resume")
    assert resumed.code == 0
    assert "2 since the anchor entries" in resumed.out
    assert matrixdp("ledger", "verify", "clinic.db", "--resume").code == 2


def test_the_history_shows_who_and_why(clinic, matrixdp):
    assert matrixdp(*argv(), "--actor", "ann@clinic", "--purpose", "annual report").code == 0
    (charge,) = matrixdp("ledger", "history", "clinic.db", "--json").json()
    assert (charge["actor"], charge["purpose"]) == ("ann@clinic", "annual report")
    assert charge["version"]
    shown = matrixdp("ledger", "history", "clinic.db").out
    assert "ann@clinic" in shown
    assert "annual report" in shown


def test_a_roll_back_shows_by_its_anchor(clinic, matrixdp):
    anchored = (*argv(), "--force", "--anchor-to", "anchors.txt")
    assert matrixdp(*anchored).code == 0
    assert len(Path("anchors.txt").read_text().splitlines()) == 1
    Path("anchors.txt").write_text("99:abc\n")
    refused = matrixdp(*anchored)
    assert refused.code == 4
    assert "the anchored entry 99 is not in it" in refused.err
    assert len(Ledger.open("clinic.db").history()) == 1


def test_a_pending_request_has_its_own_exit_code(clinic, matrixdp, monkeypatch):
    def die(*_):
        raise MemoryError

    request = ("--request", "may", "--wait", "0")
    with monkeypatch.context() as patch:
        patch.setattr("matrixdp.mechanisms.mechanism.add_noise", die)
        assert matrixdp(*argv(), *request).code == 2
    pending = matrixdp(*argv(), *request)
    assert pending.code == 7
    assert "request 'may' of 'clinic' was charged by" in pending.err
    assert "run the same command again, with --wait SECONDS" in pending.err
    assert "new --request" in pending.err
    assert "Python" not in pending.err
    assert "ledger.stored" not in pending.err
    assert len(Ledger.open("clinic.db").history()) == 1
