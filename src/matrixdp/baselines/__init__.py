"""The mechanisms that matrixdp is compared with, all with one signature and registered by name.

``mechanism(query, privacy, data, *, stream=None, simulation=False, **options) -> MechanismRelease``; the query holds
the bounds. `docs/rivals.md` says what each guarantees, what to use instead, and how to register a mechanism.

The functions that register, find and release mechanisms by name are exported here as well: whoever takes them from
here finds the names of the built-in mechanisms registered.
"""

from matrixdp.baselines.covariances import adaptive_cov, adassp, coinpress, separate_cov
from matrixdp.baselines.gaussian import analytic_gaussian, analyze_gauss, classical_gaussian, sulq
from matrixdp.baselines.johnson_lindenstrauss import johnson_lindenstrauss
from matrixdp.baselines.pure import exponential, laplace, ppca
from matrixdp.release.registered import Mechanism as Mechanism
from matrixdp.release.registered import MechanismRelease as MechanismRelease
from matrixdp.release.registered import find_mechanism as find_mechanism
from matrixdp.release.registered import gaussian_cost as gaussian_cost
from matrixdp.release.registered import pure_cost as pure_cost
from matrixdp.release.registered import register_mechanism as register_mechanism
from matrixdp.release.registered import registered_mechanisms as registered_mechanisms
from matrixdp.release.registered import release_mechanism as release_mechanism

__all__ = ["adaptive_cov", "adassp", "analytic_gaussian", "analyze_gauss", "classical_gaussian", "coinpress"]
__all__ += ["exponential", "johnson_lindenstrauss", "laplace", "ppca", "separate_cov", "sulq"]
