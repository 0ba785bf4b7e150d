"""The mechanisms that the paper compares with, one a file, all called alike.

``rival(query, privacy, data, *, stream=None, simulation=False, ...) -> RivalRelease``; the query carries the bounds.
`docs/rivals.md` says what each guarantees, and what to use instead.
"""

from matrixdp.baselines.analyze_gauss import analyze_gauss
from matrixdp.baselines.exponential import exponential
from matrixdp.baselines.gaussian import analytic_gaussian, classical_gaussian
from matrixdp.baselines.johnson_lindenstrauss import johnson_lindenstrauss
from matrixdp.baselines.laplace import laplace
from matrixdp.baselines.ppca import ppca
from matrixdp.baselines.rival import RivalRelease
from matrixdp.baselines.sulq import sulq

__all__ = [
    "RivalRelease",
    "analytic_gaussian",
    "analyze_gauss",
    "classical_gaussian",
    "exponential",
    "johnson_lindenstrauss",
    "laplace",
    "ppca",
    "sulq",
]
