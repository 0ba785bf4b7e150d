"""Records: where they are stored, how they are read, and who processes them.

`open_records` finds the source that recognises the data, and the engine that `workers` stands for. `StoredRecords.map`
gives the parts of the source to the engine, which runs a task on each (`run_part`); the caller merges the results.
Libraries that read files or run clusters are imported only when they are used.
"""

from matrixdp.domain.file_rules import DateRule, FileRules
from matrixdp.records.clusters import make_engine
from matrixdp.records.opening import as_records, is_out_of_core, open_records, read_array
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

__all__ = ["Blocks", "DateRule", "Engine", "FileRules", "InMemoryPart", "Part", "PartResult", "Records", "Source"]
__all__ += ["StoredRecords", "Task", "as_records", "choose_columns", "is_columnar", "is_out_of_core", "make_engine"]
__all__ += ["open_records", "read_array", "read_numbers", "require_public_order", "require_rereadable", "run_part"]
__all__ += ["split_rows", "to_array", "to_columns", "with_ids"]
