"""The result of a registered mechanism."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matrixdp.display import matrix_text
from matrixdp.errors import ParameterError
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.queries.base import OfQuery
from matrixdp.release.notebook import ShownRelease
from matrixdp.release.result import Release
from matrixdp.serialise import from_json_content, to_json_content
from matrixdp.types import Floats
from matrixdp.version import __version__

_FORMAT = "matrixdp mechanism release 1"


@dataclass(frozen=True, eq=False)
class MechanismRelease(OfQuery, ShownRelease):
    """A noisy matrix, the mechanism that made it, and the guarantee that it has.

    Attributes
    ----------
    query : MatrixQuery
        What was answered; the guarantee is for its neighbours.
    matrix : float64 array
        A noisy answer of the query's shape; or directions as columns, of shape (m, k); or pseudo-records, of shape
        (draws, m); or coefficients, of shape (m, 1).
    mechanism : str
        The name under which the mechanism is registered.
    privacy : Privacy
        The budget that was asked for.
    epsilon, delta : float
        The guarantee, never weaker than `privacy`; `delta` is 0 for a pure one. Stronger than `privacy` where the
        mechanism adds more noise than it needs.
    comparison_only : bool
        Whether the noise is floating-point. The low bits of floats reveal the answer (Mironov 2012), so the guarantee
        holds for ideal real numbers only, and the release must not be published.
    simulation : bool
        Whether the noise came from a seeded stream, which protects nothing.
    mu : float or None
        The guarantee as Gaussian differential privacy, for mechanisms with Gaussian noise.
    std : float64 array of the matrix's shape, or None
        Standard deviation of the noise in each entry; None if it is unknown.
    parameters : mapping from str to float
        Public numbers of the mechanism, such as the scale of its noise.
    version : str
        The version of matrixdp that made the release.
    """

    query: MatrixQuery
    matrix: Floats
    mechanism: str
    privacy: Privacy
    epsilon: float
    delta: float
    comparison_only: bool
    simulation: bool = False
    mu: float | None = None
    std: Floats | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    version: str = __version__

    @classmethod
    def from_release(cls, mechanism: str, release: Release) -> MechanismRelease:
        """The release of a design, under the name of a mechanism."""
        design = release.design
        return cls(
            query=design.query,
            matrix=release.matrix,
            mechanism=mechanism,
            privacy=design.privacy,
            epsilon=min(design.epsilon, design.privacy.epsilon),
            delta=design.privacy.delta,
            comparison_only=False,
            simulation=release.simulation,
            mu=design.distance,
            std=design.std,
            parameters={"std": design.rmse},
        )

    def __repr__(self) -> str:
        return f"<MechanismRelease of {self.query.summary} by {self._guarantee()}; print shows the matrix>"

    def __str__(self) -> str:
        return f"{self._guarantee()}\n{matrix_text(self.matrix)}"

    def _guarantee(self) -> str:
        guarantee = f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
        marks = [", for comparison only"] * self.comparison_only
        marks += [", A SIMULATION THAT PROTECTS NOTHING"] * self.simulation
        guarantee += f", {self.neighbours} neighbours, protects {self.query.protects}"
        return f"{self.mechanism}: {guarantee}{''.join(marks)}"

    def to_json(self) -> str:
        """The release as JSON text, from which `from_json` restores every bit."""
        content = {
            "format": _FORMAT,
            "version": self.version,
            "mechanism": self.mechanism,
            "simulation": self.simulation,
            "comparison_only": self.comparison_only,
            "neighbours": str(self.neighbours),
            "unit": str(self.unit),
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "mu": None if self.mu is None else float(self.mu),
            "parameters": {name: to_json_content(value) for name, value in self.parameters.items()},
            "privacy": to_json_content(self.privacy),
            "query": to_json_content(self.query),
            "std": None if self.std is None else self.std.tolist(),
            "matrix": self.matrix.tolist(),
        }
        return json.dumps(content, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> MechanismRelease:
        """The release that `to_json` wrote."""
        try:
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise KeyError("format")
            released = cls(
                query=from_json_content(content["query"]),
                matrix=np.array(content["matrix"], np.float64),
                mechanism=_typed(content, "mechanism", str),
                privacy=from_json_content(content["privacy"]),
                epsilon=_typed(content, "epsilon", float),
                delta=_typed(content, "delta", float),
                comparison_only=_typed(content, "comparison_only", bool),
                simulation=_typed(content, "simulation", bool),
                mu=None if content["mu"] is None else _typed(content, "mu", float),
                std=None if content["std"] is None else np.array(content["std"], np.float64),
                parameters=dict(content["parameters"]),
                version=_typed(content, "version", str),
            )
            check_content(released)
            if content["neighbours"] != str(released.neighbours):
                raise ParameterError("neighbours do not match the query; the text was altered.")
            if content.get("unit", str(released.unit)) != str(released.unit):  # earlier versions wrote none
                raise ParameterError("the unit does not match the query; the text was altered.")
        except Exception as error:  # the text may hold anything
            reason = f": {error}" if isinstance(error, ParameterError) else ""
            raise ParameterError(f"text must be JSON as written by MechanismRelease.to_json{reason or '.'}") from None
        return released


def check_content(release: MechanismRelease) -> None:
    """Raise unless the parts of a release fit together: arrays, and a guarantee within the budget."""
    query, privacy, matrix, std = release.query, release.privacy, release.matrix, release.std
    if not isinstance(query, MatrixQuery) or not isinstance(privacy, Privacy):
        raise ParameterError("a mechanism's release must have a query and Privacy(epsilon, delta).")
    if not isinstance(matrix, np.ndarray) or matrix.dtype != np.float64 or matrix.ndim != 2:
        raise ParameterError("matrix must be a float64 array with two axes.")
    if not np.isfinite(matrix).all():
        raise ParameterError("matrix must be finite.")
    if std is not None and (np.shape(std) != matrix.shape or not np.isfinite(std).all()):
        raise ParameterError(f"std must be None or a finite array of the matrix's shape {matrix.shape}.")
    if not (0 <= release.epsilon <= privacy.epsilon and 0 <= release.delta <= privacy.delta):
        raise ParameterError(
            f"epsilon and delta must be at most those of the budget, ({privacy.epsilon:g}, {privacy.delta:g}), "
            f"got ({release.epsilon:g}, {release.delta:g}) instead."
        )
    if release.mu is not None and not 0 < release.mu <= privacy.mu:
        raise ParameterError(f"mu must be positive and at most {privacy.mu:g}, got {release.mu:g} instead.")


def _typed(content: Mapping[str, Any], name: str, kind: type) -> Any:
    """An entry of JSON content of the right type."""
    value = content[name]
    if type(value) is not kind:
        raise KeyError(name)
    return value
