"""Writes the numbers that `prove.py` proves inequalities about: `python -m proofs.export numbers.json`.

Floats are written in hexadecimal, so that no digit is lost. This is the only module here that imports matrixdp.
"""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp import Bounds, Moments, Privacy, SecondMoment, __version__, make_design
from matrixdp.gdp import compose_mu, gdp_delta, gdp_epsilon, gdp_mu, pure_mu, share_mu
from matrixdp.noise import envelope as module
from matrixdp.sensitivity.limit import least_ball_error, least_moment_error

EPSILONS = (1e-6, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e6)
DELTAS = (0.5, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-16, 1e-30, 1e-100, 1e-300)
MUS = (1e-6, 1e-3, 0.01, 0.1, 0.268, 0.5, 0.999, 1.0, 1.5, 2.0, 5.0, 10.0, 30.0)


def hexadecimal(value: Any) -> Any:
    """The same lists and dicts with floats as hexadecimal text; integers beyond a float as decimal text."""
    if isinstance(value, dict):
        return {key: hexadecimal(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [hexadecimal(one) for one in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return str(int(value)) if abs(int(value)) >= 1 << 53 else int(value)
    return float(value).hex()


def sampler(quick: bool) -> dict[str, Any]:
    """The envelope's tables, and enclosures of the exponential function."""
    table = module.envelope()
    curve = [(k * k, 2 * module.BLOCKS_PER_UNIT**2, 128) for k in range(module.BLOCKS + 1)]
    centres = [((2 * k + 1) ** 2, 8 * module.BLOCKS_PER_UNIT**2, 128) for k in range(module.BLOCKS)]
    rng = np.random.default_rng(1)
    others = [
        (*rng.integers(1, 10**6, 2).tolist(), bits) for bits in (20, 128, 400) for _ in range(20 if quick else 500)
    ]
    return {
        **{name.lower(): getattr(module, name) for name in ("BLOCKS", "BLOCKS_PER_UNIT", "BLOCKS_PER_SUPERBLOCK")},
        **{name.lower(): getattr(module, name) for name in ("CELL_BITS", "PLACE_BITS", "FINEST")},
        **{name: getattr(table, name) for name in ("height", "certain", "tail", "tail_bound", "error")},
        **{name: getattr(table, name) for name in ("masks", "level", "curve", "centre", "polynomials")},
        "exponentials": [(*case, *module.exp_bounds(*case)) for case in [*curve, *centres, *others]],
    }


def calibrations(quick: bool) -> dict[str, Any]:
    """What the functions between (epsilon, delta) and mu give, on a grid of public values."""
    step = 3 if quick else 1
    grid = list(itertools.product(EPSILONS, DELTAS))[::step]
    mu_delta = [(mu, delta) for mu in MUS for delta in DELTAS][::step]
    rng = np.random.default_rng(2)
    sets = [rng.uniform(0.01, 3, size).tolist() for size in (1, 2, 3, 10, 100, 1000)]
    shares = [(mu, share) for mu in MUS for share in (1e-6, 0.02, 1 / 3, 0.5, 0.7, 0.999)]
    parts = [
        (epsilon, delta, share) for epsilon, delta in ((0.1, 1e-5), (1.0, 1e-6), (8.0, 1e-9)) for share in (0.1, 0.6)
    ]
    taken = [(*case, Privacy(*case[:2]).take_share(case[2])) for case in parts]
    nodes, weights = np.polynomial.legendre.leggauss(24)
    return {
        "mu": [(epsilon, delta, gdp_mu(epsilon=epsilon, delta=delta)) for epsilon, delta in grid],
        "epsilon": [(mu, delta, gdp_epsilon(mu=mu, delta=delta)) for mu, delta in mu_delta],
        "delta": [(mu, epsilon, gdp_delta(mu=mu, epsilon=epsilon)) for mu in MUS for epsilon in EPSILONS][::step],
        "pure": [(epsilon, pure_mu(epsilon)) for epsilon in EPSILONS if epsilon < 700],
        "composed": [(some, compose_mu(some)) for some in sets],
        "shares": [(mu, share, share_mu(mu, share)) for mu, share in shares],
        "parts": [(*case, part.epsilon, part.mu) for *case, part in taken if part is not None],
        "nodes": nodes,
        "weights": weights,
    }


def limits(quick: bool) -> dict[str, Any]:
    """Lower bounds on the total squared error of a moment, for a replaced, or an added or removed record."""
    sizes = (1, 2, 3, 4, 5, 10) if quick else (*range(1, 13), 20, 21, 50)
    kinds = [(d, replace, constant) for d in sizes for replace in (True, False) for constant in (True, False)]
    return {
        "box": [(*kind, least_moment_error(kind[0], replace=kind[1], constant=kind[2])) for kind in kinds],
        "ball": [(d, radius, least_ball_error(d, radius)) for d in sizes for radius in (1.0, 0.3)],
    }


def designs(quick: bool) -> list[dict[str, Any]]:
    """Designs of moments in a box: their noise, the distance and the excess that they claim."""
    rng = np.random.default_rng(3)
    boxes = [np.ones(d) for d in ((1, 2, 5) if quick else (1, 2, 3, 4, 5, 8, 10, 20))]
    boxes += [np.array([1e-3, 1.0, 50.0]), rng.uniform(0.1, 10, 6)]
    found = []
    for half, kind, neighbours in itertools.product(boxes, (SecondMoment, Moments), ("replace", "add-remove")):
        for allocation, privacy in (("uniform", Privacy(1, 1e-6)), ("isotropic", Privacy(0.1, 1e-9))):
            query = kind(Bounds(-half, half), 1000, neighbours=neighbours)
            design = make_design(query, privacy, allocation=allocation)
            squares: Any = design.structure
            found.append(
                {
                    "name": f"{kind.__name__}, {half.size} features, {neighbours}, {allocation}",
                    "halfwidths": half,
                    "records": 1000,
                    "replace": neighbours == "replace",
                    "constant": kind is Moments,
                    "privacy": (privacy.epsilon, privacy.delta, design.mu),
                    "variances": design.colcov.variances,
                    "whitening": np.broadcast_to(design.colcov.whitening, design.colcov.variances.shape),
                    "squares": None if squares is None else (squares.weights, squares.strengths, squares.shift),
                    "distance": (design.ideal_distance().value, design.distance),
                    "grid_bits": design.grid.bits,
                    "std": design.std,
                    "units": np.broadcast_to(query.error_units, query.shape),
                    "limit": design.limit,
                    "excess": design.excess,
                }
            )
    return found


def export(*, quick: bool = False) -> dict[str, Any]:
    """All numbers; fewer of them where it must be quick."""
    parts = {part.__name__: part(quick) for part in (sampler, calibrations, limits, designs)}
    exported: dict[str, Any] = hexadecimal({"version": __version__, **parts})
    return exported


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(export(quick="--quick" in sys.argv)), "utf-8")
