"""Where a ledger is: the path of a file, or the URL of a PostgreSQL database, whose password is never shown."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from matrixdp.errors import LedgerError, ParameterError

FORM = "postgresql://USER@HOST:PORT/DATABASE"
_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<login>[^@/?#]*)@)?(?P<hosts>[^@/?#]*)(?:/(?P<database>[^@/?#]*))?(?:\?(?P<options>[^#]*))?",
    re.IGNORECASE | re.DOTALL,
)
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^:\[\]]*))(?::([0-9]*))?")
_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_SECRET = {"password", "sslpassword"}
# What says where the server is and how to reach it. Other options of libpq could weaken a commit.
_OPTIONS = {
    *("host", "hostaddr", "port", "user", "passfile", "target_session_attrs", "gssencmode", "krbsrvname"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "require_auth"),
    *_SECRET,
}


@dataclass(frozen=True)
class PostgresURL:
    """The URL of a ledger in a PostgreSQL database. As text, it is `shown` without passwords."""

    parameters: Mapping[str, str] = field(repr=False)  # of the connection, with the password if the URL has one
    schema: str  # of the database, which holds the ledger; an option of the URL
    shown: str

    @property
    def has_password(self) -> bool:
        """Whether the URL has a password."""
        return not _SECRET.isdisjoint(self.parameters)

    def __str__(self) -> str:
        return self.shown

    __repr__ = __str__


Location = Path | PostgresURL
Address = str | os.PathLike[str] | PostgresURL
"""What a caller may give as the place of a ledger; `parse_location` makes it a `Location`."""


def parse_location(value: Address) -> Location:
    """The absolute path, or the URL, that `value` names; a `LedgerError` if it is a URL that cannot be read."""
    if isinstance(value, PostgresURL):
        return value
    if not isinstance(value, str | os.PathLike):
        raise ParameterError(f"ledger must be the path of a ledger, got {type(value).__name__} instead.")
    text = os.fspath(value)
    if not isinstance(text, str) or not re.match(r"postgres(ql)?:/", text, re.IGNORECASE):
        return Path(text).absolute()
    match = _URL.fullmatch(text)
    if match is None or not text.isprintable():
        # The text is not shown: a password may be anywhere in it.
        raise LedgerError(
            f"the ledger's URL cannot be read. Write it as {FORM}, in text and not as a Path, with special characters "
            "percent-encoded: %40 for @, %2F for /, %3A for :, %3F for ?, %23 for #, %25 for %."
        )
    parameters: dict[str, str] = {}
    user, _, password = (match["login"] or "").partition(":")
    hosts, ports = _parse_hosts(match["hosts"])
    found = {"user": user, "password": password, "host": hosts, "port": ports, "dbname": match["database"] or ""}
    parameters.update({name: _decode(part) for name, part in found.items() if part.strip(",")})
    schema, options = "matrixdp", []
    for option in (match["options"] or "").split("&"):
        name, equals, part = option.partition("=")
        if name == "schema" and equals:
            schema = part
        elif name in _OPTIONS and equals:
            parameters[name] = _decode(part)
        elif option:
            # Its name is not shown, either: it may be the rest of a password with an unencoded &.
            raise LedgerError(
                f"the ledger's URL has an option that is not supported. Write NAME=VALUE&..., with the names schema, "
                f"{', '.join(sorted(_OPTIONS))}; the environment variables of libpq can set others."
            )
        if option and name not in _SECRET:
            options.append(option)
    if _SCHEMA.fullmatch(schema) is None:
        raise LedgerError(
            "the ledger's URL cannot be read: schema must be a name of lower-case letters, digits and _, at most 63, "
            "that does not begin with a digit or pg_."
        )
    shown = f"postgresql://{user}{'@' if user else ''}{match['hosts']}/{match['database'] or ''}"
    shown += f"?{'&'.join(options)}" if options else ""
    if "dbname" not in parameters:
        raise LedgerError(f"{shown} names no database. Write the URL as {FORM}.")
    return PostgresURL(parameters, schema, shown)


def _parse_hosts(text: str) -> tuple[str, str]:
    """Hosts and ports, each separated by commas as libpq takes them."""
    found = [_HOST.fullmatch(part) for part in text.split(",")]
    if not all(found):
        raise LedgerError(f"the ledger's URL cannot be read: it has no valid HOST:PORT. Write it as {FORM}.")
    parts = [match.groups(default="") for match in found if match is not None]
    return ",".join(address or name for address, name, _ in parts), ",".join(port for _, _, port in parts)


def _decode(text: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        decoded = "\0"
    if "\0" in decoded or re.search("%(?![0-9A-Fa-f]{2})", text):
        raise LedgerError("the ledger's URL cannot be read: % must be followed by two hexadecimal digits, in UTF-8.")
    return decoded
