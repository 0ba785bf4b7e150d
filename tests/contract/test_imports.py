"""The layers of the package: no module imports from a layer above its own, and data meet noise in one module only."""

import ast
from pathlib import Path

import pytest

import matrixdp

ROOT = Path(matrixdp.__file__).parent

# From the bottom up. A module may import its own package and the layers before it.
LAYERS = [
    {"errors", "types", "version"},
    {"checks", "device", "serialise"},
    {"intervals"},
    {"display", "gdp"},
    {"plots"},
    {"privacy"},
    {"noise", "domain", "ledger"},
    {"records", "sensitivity"},
    {"queries"},
    {"design"},
    {"allocations"},
    {"answers", "mechanisms"},
    {"adaptive", "datasets"},
    {"release"},
    {"baselines", "estimators"},
    {"report"},
    {"audit", "paper"},
    {"cli"},
    {"studio"},
    {"__main__"},
]
LAYER = {name: height for height, names in enumerate(LAYERS) for name in names}

# The imports upwards: a design releases itself, and a command starts the studio.
ALLOWED = {("design/design.py", "release"), ("cli/studio.py", "studio")}


def imported(source):
    """Packages and modules of matrixdp that a module imports, at its top or inside of its functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "matrixdp":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "a relative import"
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("matrixdp."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "matrixdp":
                    yield "the whole package"
                elif alias.name.startswith("matrixdp."):
                    yield alias.name.split(".")[1]


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        if relative != "__init__.py":
            yield relative, relative.split("/")[0].removesuffix(".py"), path.read_text(encoding="utf-8")


def test_the_layers_are_the_packages_that_exist():
    assert set(LAYER) == {package for _, package, _ in modules()}


def test_no_module_imports_from_a_layer_above_or_beside_its_own():
    for relative, package, source in modules():
        for target in imported(source):
            assert target in LAYER, f"{relative} imports {target}"
            if (relative, target) not in ALLOWED and target != package:
                assert LAYER[target] < LAYER[package], f"{relative} imports {target}"


@pytest.mark.parametrize(
    "line",
    ["from matrixdp import cli", "import matrixdp.cli.main", "from matrixdp.cli import main", "import matrixdp"],
)
def test_every_form_of_import_is_seen(line):
    assert list(imported(f"def function():\n    {line}\n")) in (["cli"], ["the whole package"])


NOISE = {"draw_gaussian", "draw_normal", "draw_laplace", "draw_blocks", "draw_on_device", "Sampler", "BlockKey"}

# Modules outside of `noise` that may name the samplers, and why.
DRAWS = {
    "mechanisms/mechanism.py": "adds noise to an answer",
    "release/dataset.py": "makes the key of a data set's noise",
    "mechanisms/dataset_rows.py": "sends that key to the workers",
    "release/stream_state.py": "keeps the key of a stream's noise",
    "baselines/johnson_lindenstrauss.py": "a mechanism for comparison",
    "baselines/pure.py": "mechanisms for comparison",
    "paper/components.py": "simulates on public data",
}


def test_private_data_and_noise_meet_in_one_package():
    """Queries, records, adaptive fits, estimators, reports and commands never draw noise: they call `release`."""
    found = set()
    for relative, package, source in modules():
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
        if package != "noise" and names & NOISE:
            found.add(relative)
    assert found == set(DRAWS)
