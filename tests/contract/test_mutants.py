"""The list of mutations still fits the source: each text occurs once, and each test exists."""

import ast
from collections import Counter

import pytest

from mutants.catalogue import ROOT, SOURCE, read_mutations

MUTATIONS = read_mutations()
NAMES = {mutation.name for mutation in MUTATIONS}
PACKAGES = {
    "adaptive", "answers", "cli", "design", "domain", "estimators", "ledger", "noise", "queries", "records", "release",
    "sensitivity",
}  # fmt: skip


@pytest.mark.parametrize("file", sorted({mutation.file for mutation in MUTATIONS}))
def test_the_mutations_of_a_file_apply(file):
    source = (ROOT / SOURCE / file).read_text(encoding="utf-8")
    tree = ast.dump(ast.parse(source)) if file.endswith(".py") else None
    for mutation in (one for one in MUTATIONS if one.file == file):
        assert source.count(mutation.text) == 1, mutation.name
        if tree is not None:  # valid, and not in a comment only
            assert ast.dump(ast.parse(source.replace(mutation.text, mutation.into))) != tree, mutation.name
        assert mutation.claim.endswith("."), mutation.name


def test_names_are_unique():
    assert [name for name, count in Counter(m.name for m in MUTATIONS).items() if count > 1] == []


def test_all_packages_that_privacy_depends_on_are_covered():
    assert {mutation.file.partition("/")[0] for mutation in MUTATIONS} >= PACKAGES
    assert len(MUTATIONS) >= 300


def test_the_named_tests_exist():
    for name in {test for mutation in MUTATIONS for test in mutation.tests}:
        path, *parts = name.split("::")
        body = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8")).body
        for part in parts:
            found = [node for node in body if getattr(node, "name", None) == part]
            assert found, name
            body = found[0].body


def test_mutations_that_survive_are_explained_in_the_documents():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `") and line.split("`")[1] in NAMES}
    assert rows == {mutation.name for mutation in MUTATIONS if mutation.equivalent}
