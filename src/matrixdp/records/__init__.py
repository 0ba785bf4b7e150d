"""Records: where they are stored, how they are read, and who processes them.

`open_records` opens whatever a source registered for. The modules of sources and engines are imported here so that
they register themselves; each imports its own library only when it is used.
"""

from matrixdp.records import arrays, dask_cluster, files, spark_frame, threads
from matrixdp.records.opening import (
    as_records,
    is_out_of_core,
    open_records,
    read_array,
    register_engine,
    register_source,
)
from matrixdp.records.records import Blocks, Records, Task, require_public_order, require_rereadable
from matrixdp.records.tables import choose_columns, is_columnar, to_array, to_columns

__all__ = [
    "Blocks",
    "Records",
    "Task",
    "arrays",
    "as_records",
    "choose_columns",
    "dask_cluster",
    "files",
    "is_columnar",
    "is_out_of_core",
    "open_records",
    "read_array",
    "register_engine",
    "register_source",
    "require_public_order",
    "require_rereadable",
    "spark_frame",
    "threads",
    "to_array",
    "to_columns",
]
