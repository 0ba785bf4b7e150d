"""The paper's experiments, repeated beside its published figures. `docs/experiments.md` has the findings.

``python -m matrixdp.paper`` runs them all and writes one report.
"""

from matrixdp.paper.command import reproduce

__all__ = ["reproduce"]
