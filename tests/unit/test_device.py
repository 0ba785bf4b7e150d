"""Arrays on a GPU on a machine without one: recognised, and refused before anything is charged."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import device
from matrixdp.device import is_on_device, load_cupy


class OnDevice:
    """An array that says that it is on a CUDA device."""

    shape, ndim, dtype = (100, 2), 2, np.dtype(np.float64)

    def __init__(self, kind=2):
        self.kind = kind

    def __dlpack_device__(self):
        return self.kind, 0

    def __len__(self):
        return 100


@pytest.fixture(autouse=True)
def fresh():
    load_cupy.cache_clear()
    yield
    load_cupy.cache_clear()


def test_where_arrays_are():
    assert is_on_device(OnDevice(2))
    assert is_on_device(OnDevice(13))
    assert not is_on_device(OnDevice(1))
    for data in (np.zeros(3), [1, 2], "records.csv", None, {"a": 1}):
        assert not is_on_device(data)

    class Broken(OnDevice):
        def __dlpack_device__(self):
            raise RuntimeError

    assert not is_on_device(Broken())


@pytest.mark.parametrize("query", [mdp.Moments, mdp.SecondMoment, mdp.Identity])
@pytest.mark.parametrize("installed", [False, True])
def test_without_a_gpu_nothing_is_charged(query, installed, tmp_path, monkeypatch):
    def no_driver():
        raise RuntimeError

    runtime = SimpleNamespace(CUDARuntimeError=RuntimeError, getDeviceCount=no_driver)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", cupy if installed else None)
    design = mdp.make_design(query(mdp.Bounds([0, 0], [1, 1]), records=100), mdp.Privacy(1, 1e-6))
    ledger = mdp.Ledger.create(tmp_path / "x.db")
    ledger.register("x", mdp.Privacy(1, 1e-6), neighbours="replace")
    before = ledger.remaining("x")
    expected = (mdp.ParameterError, "NVIDIA GPU") if installed else (mdp.MissingExtraError, r"pip install .*\[cuda\]")
    for data in (OnDevice(), {"a": OnDevice(), "b": OnDevice()}):
        with pytest.raises(expected[0], match=expected[1]):
            design.release(data, ledger=ledger, dataset="x")
    assert ledger.remaining("x") == before
    with pytest.raises(expected[0], match=expected[1]):
        mdp.open_records(iter([np.zeros((3, 2))]), device="cuda")


def test_other_devices_and_clusters_are_refused(monkeypatch):
    with pytest.raises(mdp.ParameterError, match="device must be 'cuda'"):
        mdp.open_records(iter([np.zeros((3, 2))]), device="gpu")
    monkeypatch.setattr("matrixdp.records.opening.load_cupy", lambda: device)

    class Cluster:
        def run(self, task, parts, *, whole=False):
            yield

    with pytest.raises(mdp.ParameterError, match="cluster"):
        mdp.open_records(iter([np.zeros((3, 2))]), workers=Cluster(), device="cuda")


def test_histograms_of_data_on_a_device_are_refused():
    query = mdp.TableMoments(mdp.Columns([mdp.Number("x", 0, 1), mdp.Number("y", 0, 1)]), 100, shapes=0.1)
    with pytest.raises(mdp.DataError, match="shapes, bins: data on a GPU must be moved to the memory of the host"):
        query.evaluate(OnDevice(), clip=True, missing="error")
