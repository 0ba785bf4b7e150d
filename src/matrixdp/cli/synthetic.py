"""``matrixdp synthetic``: a table of made-up rows with the moments of a release, at no further cost."""

from pathlib import Path

import click

from matrixdp.cli.options import PATH, Command


@click.command(cls=Command, example="matrixdp synthetic out/ --rows 10000 --seed 0 -o table.csv")
@click.argument("release", metavar="RELEASE", type=PATH)
@click.option("--rows", type=int, help="Number of rows. [default: the public number of records or people]")
@click.option("--seed", type=int, default=0, help="The same seed gives the same table.")
@click.option("--tables", type=int, metavar="M", help="Write M tables, for intervals with matrixdp.combine.")
@click.option("-o", "--output", type=PATH, required=True, help="A .csv, .parquet or .feather file.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def synthetic(release: Path, rows: int | None, seed: int, tables: int | None, output: Path, force: bool) -> None:
    """Make a synthetic table from the release of a table (--query everything), and a report beside it.

    It costs no privacy: only the release is read. With --tables, names of files end with -1, -2, ...
    """
    from matrixdp.release.output_folder import refuse_existing, write_file
    from matrixdp.release.reading import load
    from matrixdp.report.dates import read_dates
    from matrixdp.report.synthetic import list_remarks, load_table_release, make_files

    found = load_table_release(load(release))
    dates = read_dates(release if release.is_dir() else release.parent)
    files, table = make_files(found, output, rows=rows, tables=tables, seed=seed, dates=dates)
    if not force:
        refuse_existing(files, "output")
    for path, content in files.items():
        write_file(path, content, option="output")
    for line in list_remarks(found, table):
        click.echo(line, err=True)
    click.echo(f"Written to {', '.join(map(str, files))}")
