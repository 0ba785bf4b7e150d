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


def test_the_reference_lists_its_pages():
    index = (REFERENCE / "index.md").read_text()
    for page in REFERENCE.glob("*.md"):
        assert page.name in ("index.md", "commands.md") or f"({page.name})" in index, page.name
