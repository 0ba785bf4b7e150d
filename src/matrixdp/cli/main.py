"""The command ``matrixdp`` with all its subcommands."""

import sys

import click

from matrixdp.cli.answer import answer, synthetic
from matrixdp.cli.audit import audit
from matrixdp.cli.exits import run_safely
from matrixdp.cli.extras import bench, demo, reproduce
from matrixdp.cli.ledger import dossier, ledger
from matrixdp.cli.options import Group
from matrixdp.cli.release import design, plan_questions, release
from matrixdp.cli.schema import check, schema
from matrixdp.cli.stream import stream
from matrixdp.cli.studio import studio
from matrixdp.version import __version__

_WORKFLOW = """\
matrixdp schema new clinic.csv -o schema.toml       (then fill in the public bounds)
matrixdp check clinic.csv --schema schema.toml
matrixdp ledger new clinic.db --dataset clinic --epsilon 4 --delta 1e-6
matrixdp design --schema schema.toml --query covariance --records 10000 --epsilon 1 --delta 1e-6
matrixdp release clinic.csv --schema schema.toml --query covariance --epsilon 1 --delta 1e-6 \\
  --ledger clinic.db --dataset clinic --out out/"""


@click.group(
    cls=Group,
    example=_WORKFLOW,
    epilog="Exit codes: 0 success, 1 claim exceeded (audit), 2 usage, 3 data, 4 budget or ledger, 5 internal, "
    "6 cluster, 7 request pending, 8 budget below a threshold (ledger metrics), "
    "9 a step of a stream is late (stream status), 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@click.version_option(__version__, prog_name="matrixdp")
@click.option("--debug", is_flag=True, help="Show a traceback after an error; it may quote data.")
def cli(debug: bool) -> None:
    """Differential privacy for matrices: from a table to a private matrix, without writing code."""


for _command in (
    *(schema, check, design, plan_questions, release, answer, synthetic, stream, ledger, dossier, studio),
    *(audit, demo, reproduce, bench),
):
    cli.add_command(_command)


def run(arguments: list[str] | None = None) -> int:
    """Run a command line, that of the process by default, and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    return run_safely(lambda: cli.main(words, prog_name="matrixdp", standalone_mode=False), debug=debug)
