"""The reference of the documentation has every public name, once."""

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

import matrixdp

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
LISTED = Counter(
    name for page in REFERENCE.glob("*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
)
PACKAGES = ("matrixdp", "matrixdp.adaptive", "matrixdp.answers", "matrixdp.audit", "matrixdp.baselines")
PACKAGES += ("matrixdp.estimators", "matrixdp.ledger")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name(package):
    module = importlib.import_module(package)
    for name in set(module.__all__) - {"__version__"}:
        in_package = LISTED[f"{package}.{name}"]
        shorter = LISTED[f"matrixdp.{name}"] if name in matrixdp.__all__ else 0  # by the name that users import
        assert in_package + shorter >= 1, f"docs/reference has no ::: {package}.{name}"


def test_the_reference_has_each_name_once_and_none_that_is_not_there():
    for name, times in LISTED.items():
        package, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(package), attribute), name
        assert times == 1, name


def has_example(name, page):
    """Whether the docstring of a name has an example, or the code on its page of the reference uses it."""
    package, _, attribute = name.rpartition(".")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    text = getattr(importlib.import_module(package), attribute).__doc__ or ""
    return bool(">>> " in text or re.search(rf"\b{attribute}\b", code))


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: page.stem)
def test_every_public_class_and_function_has_an_example(page):
    """Doctest runs those in docstrings, and `test_documents` those on pages."""
    text = page.read_text()
    assert [name for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE) if not has_example(name, text)] == []


def test_a_name_without_an_example_is_found():
    assert not has_example("matrixdp.DataError", "```python\nmdp.MatrixDPError\n```\nDataError\n")
    assert has_example("matrixdp.DataError", "```python\nmdp.DataError\n```\n")
    assert has_example("matrixdp.release_table", "")


def test_the_reference_lists_its_pages():
    index = (REFERENCE / "index.md").read_text()
    for page in REFERENCE.glob("*.md"):
        assert page.name in ("index.md", "commands.md") or f"({page.name})" in index, page.name
