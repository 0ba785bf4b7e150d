"""``matrixdp studio``: pages on which curators and analysts agree on releases."""

from pathlib import Path
from typing import Any

import click

from matrixdp.cli.options import LEDGER, PATH, Group, combine_options, echo_table, text_option

_START = "start"


class _StudioGroup(Group):
    """Commands, of which ``start`` may be left out: ``matrixdp studio FOLDER``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [_START, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_StudioGroup, example="matrixdp studio tables/")
def studio() -> None:
    """Start pages for curators and analysts on a folder of tables, and manage their tokens."""


_folder = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
_state = click.option("--state", type=PATH, help="Folder for the studio's own files. [default: .studio in FOLDER]")
_place = combine_options(_folder, _state)


@studio.command(_START, example="matrixdp studio start tables/ --port 0")
@_folder
@click.option(
    "--ledger",
    type=LEDGER,
    metavar="PATH|URL",
    help="The ledger that releases are charged to. [default: ledger.db among the studio's own files]",
)
@_state
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, help="Port; 0 takes a free one.")
@click.option(
    "--origin",
    multiple=True,
    metavar="URL",
    help="Address under which browsers reach the server, as of a proxy: https://studio.example.org",
)
@click.option("--tls-cert", type=PATH, help="File with the TLS certificate (PEM).")
@click.option("--tls-key", type=PATH, help="File with its private key (PEM).")
@click.option("--without-tls", is_flag=True, help="Listen on a --host that is not local without TLS.")
@click.option("--log-requests", is_flag=True, help="Write a line of JSON for each request to standard error.")
@click.option(
    "--trust-proxy",
    multiple=True,
    metavar="ADDRESS",
    help="Address or network of a proxy that signs people in and says who they are. Headers from others are ignored.",
)
@click.option("--user-header", default="X-Forwarded-User", help="Header in which the proxy names the person.")
@click.option("--groups-header", default="X-Forwarded-Groups", help="Header with the person's groups.")
@click.option("--curators", multiple=True, metavar="GROUP", help="A group whose members are curators.")
@click.option(
    "--analysts", multiple=True, metavar="GROUP", help="A group whose members are analysts. [default: everybody]"
)
def start(**options: Any) -> None:
    """Start the studio for the tables in FOLDER, and print the address that signs in.

    Whoever opens that address is both curator and analyst. Others need a token: matrixdp studio token new.
    """
    from matrixdp.studio.launch import start_studio

    start_studio(**options)


@studio.command("backup", example="matrixdp studio backup tables/ backups/2031-01-05")
@_place
@click.argument("target", metavar="NEW", type=PATH)
@click.option("--ledger", type=LEDGER, metavar="PATH|URL", help="As for start. [default: among the studio's own files]")
def backup(folder: Path, target: Path, state: Path | None, ledger: Any) -> None:
    """Copy the studio, which may be running, to the folder NEW: ledger, tokens, requests, schemas and releases."""
    from matrixdp.studio.launch import back_up, find_state

    back_up(find_state(folder, state), ledger, target)
    left_out = "" if ledger is None or isinstance(ledger, Path) else " Back up the ledger with PostgreSQL's own means."
    click.echo(f"{target} has the studio of {folder}.{left_out} The tables themselves are not in it.")


@studio.command("restore", example="matrixdp studio restore backups/2031-01-05 tables/")
@click.argument("source", metavar="BACKUP", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_place
@click.option("--ledger", type=PATH, help="Where to restore the ledger to. [default: among the studio's own files]")
def restore(source: Path, folder: Path, state: Path | None, ledger: Path | None) -> None:
    """Make a studio for FOLDER from a backup, once the original is lost."""
    from matrixdp.studio import launch

    place = launch.find_state(folder, state)
    launch.restore(source, place, ledger)
    click.echo(
        f"{place} has the studio. What was charged since the backup is not known: matrixdp ledger settle "
        f"{ledger or place / 'ledger.db'} --dataset NAME --spent EPSILON (or --all), for each data set."
    )


@studio.command("moved", example="matrixdp studio moved tables/")
@_place
def moved(folder: Path, state: Path | None) -> None:
    """Confirm that the studio's own files were moved here, with the ledger among them."""
    from matrixdp.studio.launch import confirm_move, find_state

    place = find_state(folder, state)
    confirm_move(place)
    click.echo(f"The studio is at {place}.")


@studio.group(cls=Group)
def token() -> None:
    """Tokens of people, for browsers and for the JSON API."""


@token.command("new", example="matrixdp studio token new tables/ --name ann --role analyst")
@_place
@text_option("--name", required=True, help="The person, as pages and the ledger name them.")
@click.option(
    "--role",
    "roles",
    type=click.Choice(("curator", "analyst")),
    multiple=True,
    required=True,
    help="What the person may do; give it twice for both roles.",
)
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of the person, for allowances.")
@click.option("--days", type=float, help="Days until it expires. [default: never]")
def new(
    folder: Path, state: Path | None, name: str, roles: tuple[str, ...], groups: tuple[str, ...], days: float | None
) -> None:
    """Make a token for a person and print it; it is not shown again."""
    from matrixdp.studio.launch import open_state
    from matrixdp.studio.roles import Role
    from matrixdp.studio.sign_in import create_token, write_roles

    secret, made = create_token(open_state(folder, state), name, map(Role, roles), days, groups or None)
    click.echo(f"Token {made.id} for {name} ({write_roles(made.roles)}); it is not shown again:", err=True)
    click.echo(secret)


@token.command("list", example="matrixdp studio token list tables/")
@_place
def list_(folder: Path, state: Path | None) -> None:
    """List all tokens by their ids, which are no secret."""
    from matrixdp.studio.launch import open_state
    from matrixdp.studio.sign_in import list_tokens, write_roles

    rows = []
    for one in list_tokens(open_state(folder, state)):
        is_now = "valid" if one.is_valid else "revoked" if one.revoked else "expired"
        rows.append([one.id, one.name, write_roles(one.roles), one.created[:10], (one.expires or "")[:10], is_now])
    echo_table(["id", "name", "roles", "created", "expires", "state"], rows)


@token.command("revoke", example="matrixdp studio token revoke tables/ 1f3a9c02")
@_place
@click.argument("token_id", metavar="ID")
def revoke(folder: Path, token_id: str, state: Path | None) -> None:
    """Revoke the token ID, or link-ID of a printed address; browsers that signed in with it are signed out."""
    from matrixdp.studio.launch import open_state
    from matrixdp.studio.sign_in import revoke_token

    revoked, sessions = revoke_token(open_state(folder, state), token_id)
    ended = "no browser was signed in with it" if not sessions else f"browsers that were signed out: {sessions}"
    what = "The printed address that signed in" if revoked.is_link else f"Token {revoked.id} of"
    click.echo(f"{what} {revoked.name} is revoked; {ended}.")
