"""Public names, documented and importable."""

import importlib
import inspect
import pkgutil

import matrixdp

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
