"""The paper's experiments, repeated and compared with its published figures; results are in `docs/experiments.md`.

``matrixdp reproduce`` runs them all and writes one report.
"""

from matrixdp.paper.report import reproduce

__all__ = ["reproduce"]
