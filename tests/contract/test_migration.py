"""The blocks of the migration guide that show other libraries run, where these can be used."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from document_blocks import BLOCK

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the other libraries
GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "migrate.md"
BLOCKS = [
    (code.splitlines()[0], code) for language, code in BLOCK.findall(GUIDE.read_text("utf-8")) if language == "py"
]


def require(library):
    """Skip unless the library works with the versions of others that are installed."""
    try:
        if library == "diffprivlib":
            import diffprivlib  # noqa: F401
        else:
            import opendp.prelude as dp
            import polars as pl

            dp.enable_features("contrib")
            unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0, delta=1e-6)
            frame = pl.LazyFrame({"x": [1.0]})
            margins = [dp.polars.Margin(max_length=1)]
            context = dp.Context.compositor(
                data=frame, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=margins
            )
            context.query().select(dp.len()).release().collect()
    except Exception as error:
        pytest.skip(f"{library} cannot be used here ({type(error).__name__}); make others runs it")


@pytest.mark.parametrize("library", ["diffprivlib", "OpenDP"])
def test_blocks_of_other_libraries_run(library):
    require(library)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(18, 100, 5000), "bmi": rng.uniform(12, 60, 5000)})
    table["ward"], table["days"] = rng.choice(["north", "south", "west"], 5000), rng.uniform(0, 30, 5000)
    scope = {"table": table}
    for head, code in BLOCKS:
        if head == f"# {library}":
            exec(compile(code, GUIDE.name, "exec"), scope)


@pytest.mark.parametrize("library", ["diffprivlib", "OpenDP"])
def test_each_library_is_shown_for_every_task(library):
    assert sum(head == f"# {library}" for head, _ in BLOCKS) == 6
