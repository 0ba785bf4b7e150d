"""No room reaches upwards: what each part of the package may import."""

import ast
from pathlib import Path

import matrixdp

ROOT = Path(matrixdp.__file__).parent

# From the ground up; a room may import itself and the rooms before it.
FLOORS = [
    {"errors", "version"},
    {"plain", "rowwise"},
    {"privacy", "bounds"},
    {"noise", "ledger"},
    {"sensitivity"},
    {"queries"},
    {"calibration"},
    {"design"},
    {"postprocess", "account"},
    {"release"},
    {"components"},
    {"baselines", "datasets"},
    {"paper", "report"},
    {"estimators", "engines", "web", "cli", "demo", "__main__"},
]
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}

# Two doors lead up: a design releases itself, and records outside of memory are opened.
DOORS = {("design/design.py", "release"), ("queries/table.py", "engines")}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("matrixdp."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("matrixdp."))


def test_no_room_reaches_upwards():
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        room = relative.split("/")[0].removesuffix(".py")
        if room == "__init__":
            continue
        for target in imports(path):
            if (relative, target) not in DOORS:
                assert FLOOR[target] <= FLOOR[room], f"{relative} imports {target}"


def test_rooms_on_one_floor_leave_each_other_alone():
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        room = relative.split("/")[0].removesuffix(".py")
        for target in imports(path) if room in {"noise", "ledger", "privacy", "bounds"} else ():
            assert target == room or FLOOR[target] < FLOOR[room], f"{relative} imports {target}"


def test_data_and_noise_meet_in_one_module():
    """Of the parts that see private data, only `release` draws exact Gaussian noise."""
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        if relative.split("/")[0] in {"queries", "bounds.py", "design", "postprocess.py", "sensitivity"}:
            assert "draw_gaussian" not in path.read_text(encoding="utf-8"), relative
