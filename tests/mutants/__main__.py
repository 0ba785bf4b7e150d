"""Make each mistake of the list in a copy of the source, and run the tests that should catch it.

The working tree is never altered. A mutation is caught if a test fails; an error while tests are collected, or a run
that does not end, does not count.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue

from mutants.catalogue import ROOT, Mutation, read_mutations

LIMIT = 600  # seconds for the tests of one mutation
COPIED = ("src", "tests", "pyproject.toml")
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider")


class Copy:
    """A copy of the source and the tests in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=ignored)
            else:
                shutil.copy(source, folder / name)
        # Hashes rather than times decide whether compiled code is used: a mutation may be as long as its original.
        self.run(sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src")
        found = self.run(sys.executable, "-c", "import matrixdp; print(matrixdp.__file__)").stdout.strip()
        if not Path(found).is_relative_to(folder):
            raise SystemExit(f"mutants: the tests would import {found} instead of the copy in {folder}")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy, whose package comes before any installed one."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        return subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT
        )

    def test(self, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
        """Run tests, given below ``tests``."""
        return self.run(*PYTEST, *(f"tests/{test}" for test in tests))

    def try_mutation(self, mutation: Mutation) -> tuple[str, str]:
        """Whether the mutation is caught, and by which test."""
        mutation.apply(self.root)
        try:
            done = self.test(mutation.tests)
        except subprocess.TimeoutExpired:
            return "error", f"the tests did not end within {LIMIT} s"
        finally:
            mutation.undo(self.root)
        if done.returncode == 0:
            return ("explained", mutation.equivalent) if mutation.equivalent else ("SURVIVED", mutation.claim)
        failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(\S.*?)(?: - |$)", done.stdout, re.MULTILINE)
        if done.returncode != 1 or failed is None:
            return "error", done.stdout[-2000:] + done.stderr[-2000:]
        if mutation.equivalent:
            return "caught", f"{failed[1]}; its explanation is out of date"
        return "caught", failed[1]


def main() -> int:
    """Run the command; the exit status is 1 if a mutation survived without an explanation."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="a name, or a pattern such as 'noise-*'")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="tests that run at a time")
    parser.add_argument("--list", action="store_true", help="print the mutations and what they break")
    options = parser.parse_args()
    chosen = [m for m in read_mutations() if not options.only or any(fnmatch(m.name, p) for p in options.only)]
    if not chosen:
        parser.error("no mutation has such a name")
    if options.list:
        for mutation in chosen:
            print(f"{mutation.name:40} {mutation.file:34} {mutation.claim}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        return run(chosen, Path(folder), max(1, options.jobs))


def run(chosen: list[Mutation], folder: Path, jobs: int) -> int:
    """Try the mutations, after the tests passed without any."""
    start = time.monotonic()
    copies: SimpleQueue[Copy] = SimpleQueue()
    for number in range(jobs):
        (folder / str(number)).mkdir()
        copies.put(Copy(folder / str(number)))
    tests: dict[str, dict[str, None]] = {}
    for test in (test for mutation in chosen for test in mutation.tests):
        tests.setdefault(test.partition("::")[0], {})[test] = None

    def without_mutation(names: Iterable[str]) -> str:
        copy = copies.get()
        try:
            done = copy.test(names)
            return "" if done.returncode == 0 else done.stdout + done.stderr
        finally:
            copies.put(copy)

    def with_mutation(mutation: Mutation) -> tuple[Mutation, str, str]:
        copy = copies.get()
        try:
            return (mutation, *copy.try_mutation(mutation))
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(jobs) as pool:
        for output in pool.map(without_mutation, tests.values()):
            if output:
                print(output)
                print("mutants: these tests fail without any mutation, so nothing can be concluded")
                return 1
        print(f"{len(tests)} test files pass without a mutation ({time.monotonic() - start:.0f} s)", flush=True)
        found: Counter[str] = Counter()
        for future in as_completed([pool.submit(with_mutation, mutation) for mutation in chosen]):
            mutation, verdict, detail = future.result()
            found[verdict] += 1
            print(f"{verdict:10} {mutation.name:44} {detail}", flush=True)
    counts = ", ".join(f"{number} {verdict}" for verdict, number in sorted(found.items()))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = f"{time.monotonic() - start:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time"
    print(f"{len(chosen)} mutations ({spent}): {counts}")
    return 1 if found["SURVIVED"] or found["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
