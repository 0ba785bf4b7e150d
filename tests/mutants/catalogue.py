"""The mutations, read from the TOML files of this folder."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SOURCE = "src/matrixdp"


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One mistake: `text`, which occurs once in `file`, becomes `into`.

    Attributes
    ----------
    name : str
    file : str
        Path below ``src/matrixdp``.
    text, into : str
        What is replaced, and by what.
    claim : str
        What is no longer true.
    tests : tuple of str
        Test files or node ids below ``tests``, of which at least one must fail.
    equivalent : str
        Why no test can fail, for a mutation that breaks no claim.
    """

    name: str
    file: str
    text: str
    into: str
    claim: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def apply(self, root: Path) -> None:
        """Make the mistake in the source below `root`."""
        path = root / SOURCE / self.file
        before = path.read_text(encoding="utf-8")
        if before.count(self.text) != 1:
            raise ValueError(f"{self.name}: its text occurs {before.count(self.text)} times in {self.file}, not once")
        path.write_text(before.replace(self.text, self.into), encoding="utf-8")

    def undo(self, root: Path) -> None:
        """Restore the source below `root`."""
        path = root / SOURCE / self.file
        path.write_bytes((ROOT / SOURCE / self.file).read_bytes())


def read_mutations() -> list[Mutation]:
    """All mutations, in the order of the files."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]:
            found.append(Mutation(**{**entry, "tests": tuple(entry["tests"])}))
    return found
