"""Packages are there as attributes, a bare import stays light, and files of other projects are as published."""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_packages_are_attributes():
    code = "import matrixdp as mdp; print(mdp.estimators.PrivateRidge.__name__, mdp.baselines.laplace.__name__)"
    assert run(code) == "PrivateRidge laplace"


def test_what_is_exported_lies_where_it_says():
    code = (
        "import matrixdp as mdp; print([name for name in mdp.__all__ if not hasattr(mdp, name)], "
        "all(name in dir(mdp) for name in ('adaptive', 'estimators', 'Moments')))"
    )
    assert run(code) == "[] True"


def test_a_bare_import_loads_neither_numpy_nor_scipy():
    assert run("import matrixdp, sys; print({'numpy', 'scipy', 'sklearn'} & set(sys.modules))") == "set()"


def test_a_release_loads_no_part_of_scipy_but_its_special_functions():
    release = (
        "import sys; import numpy as np; from matrixdp import Bounds, Moments, Privacy, make_design; "
        "make_design(Moments(Bounds([0], [1]), records=2), Privacy(1, 1e-6)).release(np.array([[0.0], [1.0]])); "
        "print({f'scipy.{name}' for name in ('linalg', 'optimize', 'signal', 'spatial', 'stats')} & set(sys.modules))"
    )
    assert run(release) == "set()"


def test_the_functions_behind_the_estimators_need_no_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; import matrixdp as mdp; print(mdp.adaptive.private_moment.__name__)"
    )
    assert run(code) == "private_moment"


def test_files_of_other_projects_have_their_checksums():
    """`SHA256SUMS` in each folder named vendor, as `sha256sum` writes it, lists all its files."""
    folders = [path for top in ("src", "docs") for path in (ROOT / top).rglob("vendor") if path.is_dir()]
    assert folders
    for folder in folders:
        lines = (folder / "SHA256SUMS").read_text("utf-8").splitlines()
        listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
        files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        own = {"README.md", "SHA256SUMS"}
        assert {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in set(files) - own} == listed
