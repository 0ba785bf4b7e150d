"""Records: where they are stored, how they are read, and who processes them.

`open_records` finds the source that recognises the data, and the engine that `workers` stands for. `StoredRecords.map`
gives the parts of the source to the engine, which runs a task on each (`run_part`); the caller merges the results.
`clusters` and `files` register themselves; each imports the library of its sources only when it is used.
"""

from matrixdp.domain.file_rules import DateRule, FileRules
from matrixdp.records import clusters, files  # noqa: F401
from matrixdp.records.opening import (
    OpenOptions,
    as_records,
    is_out_of_core,
    make_engine,
    open_records,
    read_array,
    register_engine,
    register_source,
)
from matrixdp.records.parts import InMemoryPart, Part, PartResult, Task, run_part
from matrixdp.records.records import (
    Blocks,
    Engine,
    Records,
    Source,
    StoredRecords,
    require_public_order,
    require_rereadable,
    split_rows,
    with_ids,
)
from matrixdp.records.tables import choose_columns, is_columnar, read_numbers, to_array, to_columns

__all__ = ["Blocks", "DateRule", "Engine", "FileRules", "InMemoryPart", "OpenOptions", "Part", "PartResult"]
__all__ += ["Records", "Source", "StoredRecords", "Task", "as_records", "choose_columns", "is_columnar"]
__all__ += ["is_out_of_core", "make_engine", "open_records", "read_array", "read_numbers", "register_engine"]
__all__ += ["register_source", "require_public_order", "require_rereadable", "run_part", "to_array", "to_columns"]
__all__ += ["split_rows", "with_ids"]
