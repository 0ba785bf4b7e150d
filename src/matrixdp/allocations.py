"""How a design divides its noise among features: allocations, for `make_design` and for rules of your own.

Examples
--------
>>> import matrixdp as mdp
>>> query = mdp.Moments(mdp.Bounds([0, 0], [1, 1], names=["age", "bmi"]), records=1000)
>>> design = mdp.make_design(query, mdp.Privacy(1, 1e-6), allocation=mdp.allocations.binary(["bmi"], share=0.8))
>>> design.allocation.rule
'binary'
"""

from matrixdp.design.allocations import Allocation, binary, isotropic, optimal, shares, uniform

__all__ = ["Allocation", "binary", "isotropic", "optimal", "shares", "uniform"]
