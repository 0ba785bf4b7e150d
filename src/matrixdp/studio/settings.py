"""What a studio is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matrixdp.ledger.location import Location

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a studio is started with.

    Attributes
    ----------
    folder : Path
        The folder of tables.
    ledger : Path or PostgresURL
        The ledger that releases are charged to.
    state : Path
        The folder of the studio's own files: its database, schemas and releases.
    port : int
        The port that it listens on.
    hosts : tuple of str
        Names, without ports, under which browsers reach it; other values of the header ``Host`` are refused.
    tls : bool
        Whether it speaks TLS itself.
    origins : tuple of str
        The addresses under which browsers reach it by way of a proxy, such as ``https://studio.example.org``, in place
        of those that `hosts`, `port` and `tls` say.
    session_hours : float
        How long a browser stays signed in.
    body_limit : int
        Largest body of a request, in bytes.
    wrong_tokens : int
        Wrong tokens that an address may send in a minute before it gets no other answer than 429.
    releases_at_once : int
        Releases that run at the same time; others wait.
    isolated : bool
        Whether each release runs in a process of its own, which finishes even if the server is killed.
    """

    folder: Path
    ledger: Location
    state: Path
    port: int = 8765
    hosts: tuple[str, ...] = LOCAL_HOSTS
    tls: bool = False
    origins: tuple[str, ...] = ()
    session_hours: float = 12.0
    body_limit: int = 1 << 20
    wrong_tokens: int = 10
    releases_at_once: int = 1
    isolated: bool = True

    @property
    def addresses(self) -> tuple[str, ...]:
        """Accepted values of the header ``Origin``, the one to print first."""
        scheme, usual = ("https", 443) if self.tls else ("http", 80)
        place = "" if self.port == usual else f":{self.port}"
        return self.origins or tuple(f"{scheme}://{name.lower()}{place}" for name in self.hosts)

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Accepted values of the header ``Host``."""
        return frozenset(address.partition("://")[2] for address in self.addresses)

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by HTTPS alone."""
        return all(address.startswith("https:") for address in self.addresses)

    @property
    def database(self) -> Path:
        """The studio's own SQLite file."""
        return self.state / "studio.db"

    @property
    def schemas(self) -> Path:
        """The folder of schemas, one TOML file for each table."""
        return self.state / "schemas"

    @property
    def releases(self) -> Path:
        """The folder of releases, one folder for each request."""
        return self.state / "releases"
