"""An engine that moves blocks of records to a GPU before a task sums them there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from matrixdp.device import load_cupy
from matrixdp.records.parts import Part, PartResult
from matrixdp.records.records import Task
from matrixdp.records.stored import Engine
from matrixdp.records.tables import arrow_numbers, is_columnar

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class OnDevice:
    """Runs tasks like another engine of this process, on blocks that it moves to the GPU.

    A task that can work there says so by an attribute, ``on_device = True``; others get the blocks as they are.
    """

    engine: Engine

    def run(self, task: Task[T], parts: Iterable[Part], *, whole: bool = False) -> Iterator[PartResult[T]]:
        """Yield the result of each part, in any order."""
        if getattr(task, "on_device", False):
            task = _MovingTask(task)
        return self.engine.run(task, parts, whole=whole)


@dataclass(frozen=True, eq=False)
class _MovingTask:
    """Moves the blocks of a part to the device."""

    task: Task[Any]

    def __call__(self, number: int, blocks: Iterable[Any]) -> Any:
        return self.task(number, (_to_device(block) for block in blocks))


def _to_device(block: Any) -> Any:
    """Numbers of a block on the device; columns of texts stay in the memory of the host."""
    cupy = load_cupy()
    if is_columnar(block):
        import pyarrow as pa

        def moves(kind: Any) -> bool:
            return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))

        return {
            name: cupy.asarray(arrow_numbers(name, block.column(name))) if moves(kind) else block.column(name)
            for name, kind in zip(block.schema.names, block.schema.types, strict=True)
        }
    return cupy.asarray(block) if isinstance(block, np.ndarray) and block.dtype.kind in "biuf" else block
