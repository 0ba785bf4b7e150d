"""Public names, documented and importable."""

import copy
import importlib
import inspect
import json
import pkgutil

import matrixdp
import public_api

NAMES = {
    "AdaptiveRelease", "Adjacency", "Bounds", "BudgetExceededError", "Category", "Columns", "ContingencyTable",
    "DataError", "DatasetRelease", "Design", "EngineError", "GramMatrix", "Identity", "Laplacian", "Ledger",
    "LedgerError", "MatrixDPError", "MatrixStream", "MechanismError", "MissingExtraError", "Moments", "Neighbours",
    "Number", "ParameterError", "Person", "Privacy", "PublishedStream", "Query", "Release", "RequestPendingError",
    "Schema", "SecondMoment", "Stream", "StreamError", "Studio", "TableMoments", "YesNo", "__version__", "combine",
    "compare", "from_json", "load", "make_design", "make_stream", "open_records", "principal_directions",
    "release_dataset", "release_mechanism", "release_table",
}  # fmt: skip


def test_public_names_are_these():
    assert set(matrixdp.__all__) == NAMES
    assert len(NAMES) <= 49
    assert all(hasattr(matrixdp, name) for name in NAMES)


def test_every_public_thing_says_what_it_is():
    for name in NAMES - {"__version__"}:
        assert inspect.getdoc(getattr(matrixdp, name)), name


def test_whatever_touches_a_guarantee_says_which():
    for name in (
        "Bounds",
        "Design",
        "make_design",
        "make_stream",
        "MatrixStream",
        "release_table",
        "Identity",
        "GramMatrix",
    ):
        assert "Privacy\n-------" in inspect.getdoc(getattr(matrixdp, name)), name


def test_errors_form_one_tree():
    from matrixdp import errors

    found = [value for value in vars(errors).values() if inspect.isclass(value) and value.__module__ == errors.__name__]
    assert all(issubclass(error, errors.MatrixDPError) for error in found)
    for error in found:
        assert error.__name__ in errors.__doc__


def test_every_module_can_be_imported_on_its_own():
    for module in pkgutil.walk_packages(matrixdp.__path__, "matrixdp."):
        if not module.name.endswith("__main__"):
            assert importlib.import_module(module.name).__doc__, module.name


def test_nothing_of_the_last_published_interface_is_gone():
    """What was removed or renamed must be deprecated first (docs/versions.md).

    The file is written anew for a release, and before 1.0 also when something is removed: python tests/public_api.py
    """
    before = json.loads(public_api.SNAPSHOT.read_text("utf-8"))
    now = json.loads(public_api.write(public_api.collect()))
    assert list(public_api.differences(before, now)) == []
    assert {"release", "ledger show"} <= set(before["commands"])


def test_what_is_taken_away_is_noticed():
    before = json.loads(public_api.SNAPSHOT.read_text("utf-8"))
    now = copy.deepcopy(before)
    now["names"]["matrixdp.make_design"]["parameters"] = ["privacy", "query", "-allocation", "-more"]
    del now["names"]["matrixdp.Ledger"]["members"]["charge"]
    del now["names"]["matrixdp.Moments"]
    now["commands"]["release"].remove("--out")
    now["exit codes"]["DATA"] = 9
    now["kinds of JSON"].remove("Privacy")
    found = " ".join(public_api.differences(before, now))
    for words in (
        "matrixdp.make_design: parameter -share is gone",
        "parameter -allocation is required now",
        "parameter -more is new and required",
        "parameters are in another order",
        "matrixdp.Ledger.charge is gone",
        "matrixdp.Moments is gone",
        "matrixdp release --out is gone",
        "exit code DATA changed",
        "JSON of kind Privacy cannot be read",
    ):
        assert words in found
    assert list(public_api.differences(before, before)) == []
