"""Builds wheel and sdist twice, and runs what was built in an empty environment: `make dist`.

The second build is made from the unpacked sdist, in another folder, with another umask and time zone, and must have the
same bytes. The wheel must have every file of the package. For each interpreter an empty environment is made in
`build/dist`, the wheel installed with all extras of `full`, and `installed.py` run in it. `dist` gets the software bill
of materials of the first environment, as CycloneDX JSON, and the SHA-256 of everything.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST, BUILD = ROOT / "dist", ROOT / "build" / "dist"


def call(*words, **options):
    print("$", *(str(word) for word in words), flush=True)
    return subprocess.run([str(word) for word in words], check=True, **options)


def read_epoch():
    """Time of the last commit, which files of the build get as theirs; hatchling's own default outside of git."""
    found = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {"SOURCE_DATE_EPOCH": found.stdout.strip()} if found.returncode == 0 else {}


def build(source, into, **environment):
    """The sdist, and the wheel that is built from it."""
    command = (sys.executable, "-m", "build", "--no-isolation", "--quiet", "--outdir", into, source)
    call(*command, env={**os.environ, **read_epoch(), **environment})
    return {path.name: path for path in sorted(into.iterdir())}


def build_twice():
    shutil.rmtree(DIST, ignore_errors=True)
    built = build(ROOT, DIST)
    with tempfile.TemporaryDirectory() as folder:
        sdist = next(path for name, path in built.items() if name.endswith(".tar.gz"))
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        source = next(Path(folder).iterdir())
        before = os.umask(0o077)
        try:
            again = build(source, Path(folder) / "again", TZ="Pacific/Kiritimati", PYTHONHASHSEED="7")
        finally:
            os.umask(before)
        if {name: digest(path) for name, path in built.items()} != {name: digest(path) for name, path in again.items()}:
            sys.exit("The second build has other bytes than the first.")
    print("Built twice, with the same bytes.")
    return next(path for name, path in built.items() if name.endswith(".whl"))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_contents(wheel):
    """Every file of the package is in the wheel, and nothing else but the metadata."""
    files = (path for path in (ROOT / "src" / "matrixdp").rglob("*") if path.is_file())
    wanted = {str(path.relative_to(ROOT / "src")) for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    if found != wanted:
        sys.exit(f"The wheel and src/matrixdp differ: {sorted(found ^ wanted)}")
    print(f"The wheel has all {len(found)} files of the package.")


def run_installed(wheel, interpreter, constraints):
    """Path of the interpreter of a new environment in which the wheel is installed, after the smoke test passed."""
    place = BUILD / Path(interpreter).name
    call(interpreter, "-m", "venv", "--clear", place)
    python = place / "bin" / "python"
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    call(*install, *constraints, f"{wheel}[full]")
    with tempfile.TemporaryDirectory() as folder:  # where no source lies that could be imported instead
        call(python, "-I", ROOT / "tests" / "installed.py", cwd=folder)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", required=True, help="an interpreter to install the wheel with")
    parser.add_argument(
        "--newest", action="store_true", help="the newest versions of all packages, not the pinned ones"
    )
    options = parser.parse_args()
    wheel = build_twice()
    check_contents(wheel)
    constraints = () if options.newest else ("--constraint", ROOT / "constraints.txt")
    environments = [run_installed(wheel, shutil.which(one) or one, constraints) for one in options.python]
    bill = DIST / f"{wheel.name.split('-py3')[0]}.cdx.json"
    tool = (
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--output-reproducible",
        "--pyproject",
        "pyproject.toml",
    )
    call(*tool, "--output-file", bill, environments[0], cwd=ROOT)
    lines = [f"{digest(path)}  {path.name}" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
