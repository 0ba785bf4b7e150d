"""The numbers printed in the paper's sections "Experimental Results" and "Discussion"."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A published mean and half its 95% interval (0 where none is printed)."""

    mean: float
    half: float = 0.0


# Table "Results from Exp. I": RMSE.
REGRESSION = {
    "non-private": Figure(1.226e-2),
    "random guess": Figure(3.989e-2),
    "mvg-1": Figure(1.624e-2, 0.026e-2),
    "mvg-2": Figure(1.643e-2, 0.023e-2),
    "gaussian": Figure(1.913e-2, 0.069e-2),
    "jl": Figure(1.682e-2, 0.015e-2),
    "laplace": Figure(2.482e-2, 0.189e-2),
    "exponential": Figure(2.202e-2, 0.721e-2),
}

# Table "Results from Exp. II": error in captured variance. (Its text says 0.2387 where its table says 0.2384.)
COMPONENT = {
    "non-private": Figure(0.0),
    "random guess": Figure(3.671e-1),
    "mvg": Figure(2.384e-1, 0.215e-1),
    "gaussian": Figure(2.485e-1, 0.207e-1),
    "jl": Figure(2.394e-1, 0.216e-1),
    "laplace": Figure(2.634e-1, 0.174e-1),
    "exponential": Figure(2.455e-1, 0.209e-1),
}

# Table "Results from Exp. III": residual sum of squares.
COVARIANCE = {
    "non-private": Figure(0.0),
    "random guess": Figure(12.393e-2),
    "mvg": Figure(6.657e-2, 0.193e-2),
    "gaussian": Figure(7.029e-2, 0.216e-2),
    "jl": Figure(6.718e-2, 0.229e-2),
    "laplace": Figure(7.109e-2, 0.211e-2),
    "exponential": Figure(7.223e-2, 0.211e-2),
}

# Sec. "Directional Noise as a Generalized Subspace Projection": RMSE with two features alone.
SUBSPACE = {
    "random guess": REGRESSION["random guess"],
    "gaussian": Figure(2.538e-2, 0.065e-2),
    "jl": Figure(2.863e-2, 0.022e-2),
    "mvg-1": REGRESSION["mvg-1"],
}

# Table "Runtime": milliseconds for Exp. I, II, III.
RUNTIME = {
    "mvg": (36.2, 1.8, 3.2e3),
    "gaussian": (1.0, 0.4, 10.0),
    "jl": (192.7, 637.4, 2.57e6),
    "laplace": (0.4, 0.5, 8.0),
    "exponential": (627.2, 2112.7, 2.00e6),
}

TABLES = {"exp1": REGRESSION, "exp2": COMPONENT, "exp3": COVARIANCE, "subspace": SUBSPACE}
