"""The oldest versions that are allowed are those that `make oldest` tests with."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PINS = dict(
    line.split("==") for line in (ROOT / "constraints-oldest.txt").read_text("utf-8").splitlines() if "==" in line
)
# What the unit tests need no more of: other machines, other programs, tools.
LEFT_OUT = {"accuracy", "bench", "cuda", "dev", "dist", "docs", "others", "proofs", "spark", "synthesis"}


def requirements():
    """Names and lower bounds of everything that `make oldest` installs by name."""
    extras = PROJECT["optional-dependencies"].items()
    for line in [*PROJECT["dependencies"], *(one for extra, some in extras if extra not in LEFT_OUT for one in some)]:
        if not line.startswith("matrixdp["):
            name, bound = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", line).groups()
            yield name, bound


def version(text):
    return [int(part) for part in text.split(".")]


def test_every_lower_bound_is_tested():
    """A bound such as 8.2 stands for the first release of 8.2."""
    for name, bound in requirements():
        assert name in PINS, f"constraints-oldest.txt has no {name}"
        pinned = version(PINS[name])
        assert pinned[: len(version(bound))] == version(bound), (name, bound, PINS[name])


def test_the_versions_that_tests_ran_with_are_allowed():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    current = {line.split("==")[0].replace("_", "-"): line.split("==")[1] for line in lines if "==" in line}
    for name, bound in requirements():
        assert name not in current or version(current[name]) >= version(bound), name
