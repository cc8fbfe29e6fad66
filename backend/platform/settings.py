"""Settings of this installation, from `CALLBOARD_*` environment variables."""

import hashlib
import ipaddress
import os
import re
import socket
import tempfile
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MAX_SOCKET_PATH_BYTES = 100
"""Unix socket paths are limited to 107 bytes, and Redis appends to the name while it starts."""

PRINTABLE = r"^[\x21-\x7e]*$"
"""Characters of ids and secrets of OpenID Connect clients."""

RESERVED_PATHS = frozenset(
    {"api", "docs", "openapi.json", "healthz", "readyz", "metrics", "assets", "help", "login"}
)
"""First parts of addresses that a base path cannot begin with."""

RoleName = Literal["viewer", "operator", "admin"]


def sqlite_url(path: Path) -> str:
    """The SQLAlchemy URL of a SQLite file, whatever characters its path has."""
    return f"sqlite:///{quote(os.fsencode(path))}"


def socket_url(path: Path) -> str:
    """The URL of a Redis on a Unix socket, whatever characters its path has."""
    return f"unix://{quote(os.fsencode(path))}"


class Settings(BaseSettings):
    """Settings of the web process, the workers and the command line. The defaults are the embedded
    installation."""

    model_config = SettingsConfigDict(env_prefix="CALLBOARD_", frozen=True)

    home: Path = Field(Path("~/.callboard"), description="Folder of the installation's state.")
    database_url: str | None = Field(None, description="SQLAlchemy URL; default: SQLite under home.")
    redis_url: str | None = Field(None, description="Redis URL; default: an embedded server's socket.")
    artifacts_url: str | None = Field(
        None, description="fsspec URL of checkpoints, replays and videos; default: a folder under home."
    )
    host: str = Field("127.0.0.1", description="Address to which the web process binds.")
    port: int = Field(8642, ge=0, le=65535, description="Port that the web process uses; 0 for a free one.")
    allowed_hosts: list[str] = Field(
        ["localhost", "127.0.0.1", "[::1]"], description="Allowed Host headers of the web process."
    )
    base_path: str = Field(
        "/",
        max_length=200,
        description="Path of a proxy's host below which the service is, such as /callboard/: pages, API, "
        "documentation and streams.",
    )
    cors_origins: list[str] = Field(
        [],
        max_length=100,
        description="Origins, such as https://notebooks.example, whose pages may send requests to the API "
        "with a token; never with a cookie.",
    )
    mcp_allow_write: bool = Field(
        False,
        description="Whether assistants may start and stop runs and add notes at /mcp, with a token of the "
        "role operator. The address exists with the extra mcp.",
    )
    trusted_proxies: list[str] = Field(
        [],
        description="Addresses or networks of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto "
        "headers give the client's address and whether it uses TLS.",
    )
    public_url: str | None = Field(
        None,
        description="URL by which browsers reach the web process, such as https://callboard.example; "
        "default: taken from each request. OpenID Connect returns to /login/oidc/callback under it.",
    )
    session_idle_hours: int = Field(
        168,
        ge=2,
        le=720,
        description="A browser session ends after this many hours without use; an open page counts as use.",
    )
    oidc_issuer: str | None = Field(
        None,
        max_length=500,
        description="Issuer URL of an OpenID Connect provider by which users can sign in.",
    )
    oidc_client_id: str | None = Field(
        None, min_length=1, description="Client id of Callboard at the provider."
    )
    oidc_client_secret: SecretStr | None = Field(
        None, description="Its client secret; without one it is a public client, protected only by PKCE."
    )
    oidc_client_secret_file: Path | None = Field(
        None, description="File with the client secret, instead of the secret itself."
    )
    oidc_name: str = Field(
        "single sign-on",
        min_length=1,
        max_length=40,
        description="What the button on the login page calls the provider: Sign in with ...",
    )
    oidc_scopes: list[str] = Field(
        ["openid", "profile"],
        description="Requested scopes; some providers name a user's groups only with the scope groups.",
    )
    oidc_role_claim: str = Field(
        "groups",
        min_length=1,
        description="Claim with the values that CALLBOARD_OIDC_ROLES maps; dots separate the levels of a "
        "nested claim: realm_access.roles.",
    )
    oidc_roles: dict[str, RoleName] = Field(
        {},
        description="Values of the role claim and their roles, such as "
        '{"admins": "admin", "lab": "operator"}: at each sign-in the highest one applies. Without them, '
        "roles are changed in Callboard only.",
    )
    oidc_default_role: RoleName | None = Field(
        None,
        description="Role of users whose claim has none of the values, or of all new users if no values are "
        "mapped; default: they are refused.",
    )
    oidc_create_users: bool = Field(
        True,
        description="Whether the first sign-in creates a user; otherwise only linked users can sign in.",
    )
    demo: bool = Field(
        True, description="Whether `callboard up` adds the demo run when it first starts without any run."
    )
    record_scripts: bool = Field(
        True,
        description="Whether runs of scripts keep where they come from (host, command, packages, commit with "
        "changes), what they print, and the CPU, memory and GPU that they use.",
    )
    frontend_dir: Path | None = Field(
        None, description="Folder of the built pages; default: those of the installation."
    )
    host_name: str = Field(
        default_factory=socket.gethostname, description="Name of this worker host; default: this machine's."
    )
    queues: list[str] = Field(["cpu"], description="Queues that this worker serves.")
    environments_file: Path | None = Field(
        None, description="TOML file with this worker host's custom gymnasium environments."
    )
    commands_file: Path | None = Field(
        None, description="TOML file with the commands that runs may start on this worker host."
    )
    slots: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Maximum number of runs that this worker trains at the same time; default: the number of "
        "its GPUs, at least 1.",
    )
    play_sessions: int = Field(
        10,
        ge=0,
        le=100,
        description="Maximum number of play sessions on this worker at the same time, beside its runs.",
    )
    min_free_disk_bytes: int = Field(
        512 * 2**20,
        ge=0,
        description="With less free disk space under home, this worker claims no runs, and the web process "
        "stores nothing that scripts send.",
    )
    token_daily_bytes: int = Field(
        20 * 2**30, ge=0, description="How much the scripts of one API token may store in a day."
    )
    token_daily_runs: int = Field(
        10_000, ge=0, description="How many runs one API token may create in a day."
    )
    token_daily_series: int = Field(
        200_000, ge=0, description="How many series one API token may begin in a day."
    )
    engine_niceness: int = Field(
        10,
        ge=0,
        le=19,
        description="How far training yields the CPU to the web process; 0 on a host that only trains. "
        "An engine that starts does not yield yet: it is waited for.",
    )
    lease_s: float = Field(
        15.0, gt=0, allow_inf_nan=False, description="Lifetime of a worker's lease without renewal."
    )
    reconcile_interval_s: float = Field(
        3.0, gt=0, description="How often a worker renews its leases and looks for work."
    )
    url: str | None = Field(
        None, description="Server that scripts and the command line use; default: the one running under home."
    )
    token: str | None = Field(
        None,
        description="API token of scripts and the command line; created automatically for a local server.",
    )
    log_format: Literal["console", "json"] = Field(
        "console", description="Format of log lines: console or json."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        "INFO", description="Minimum level of log lines: DEBUG, INFO, WARNING, ERROR or CRITICAL."
    )

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, url: str | None) -> str | None:
        # Without the value, which may contain a password.
        if url and re.match(r"(sqlite(\+pysqlite)?|postgresql(\+psycopg)?)://", url) is None:
            raise ValueError("must begin with sqlite:/// or postgresql+psycopg://")
        return url

    @field_validator("redis_url")
    @classmethod
    def _check_redis(cls, url: str | None) -> str | None:
        if url and re.match(r"(rediss?|unix)://", url) is None:
            raise ValueError("must begin with redis://, rediss:// or unix://")
        return url

    @field_validator("artifacts_url")
    @classmethod
    def _check_store(cls, url: str | None) -> str | None:
        if url:
            from fsspec.registry import known_implementations  # its import takes a while

            protocol, colon, _ = url.partition("://")
            known = set(protocol.split("::")) <= known_implementations.keys() if colon else url[0] == "/"
            if not known:
                raise ValueError("must begin with a protocol that fsspec knows, such as file:// or s3://")
        return url

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, trusted_proxies: list[str]) -> list[str]:
        for number, network in enumerate(trusted_proxies, 1):
            try:
                ipaddress.ip_network(network)
            except ValueError:
                raise ValueError(
                    f"entry {number} is not an address or a network: use one such as 172.18.0.0/16"
                ) from None
        return trusted_proxies

    @field_validator("base_path")
    @classmethod
    def _check_path(cls, path: str) -> str:
        if re.fullmatch(r"/([A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*", f"{path.rstrip('/')}/") is None:
            raise ValueError(
                "must be a path such as /callboard/: letters, digits, dots, dashes and underscores between /"
            )
        if path.split("/")[1] in RESERVED_PATHS:
            raise ValueError("must not begin with a path of the service itself: use one such as /callboard/")
        return f"{path.rstrip('/')}/"

    @field_validator("cors_origins")
    @classmethod
    def _check_origins(cls, origins: list[str]) -> list[str]:
        for number, origin in enumerate(origins, 1):
            try:
                parts = urlsplit(origin)
                is_origin = parts.scheme in ("http", "https") and bool(parts.hostname)
                is_origin = is_origin and origin == f"{parts.scheme}://{parts.netloc}" and "@" not in origin
            except ValueError:
                is_origin = False
            if not is_origin:
                raise ValueError(
                    f"entry {number} is not an origin: name a scheme, a host and perhaps a port, such as "
                    "https://notebooks.example:8888, without a path, user name or *"
                )
        return origins

    @field_validator("public_url", "oidc_issuer", "url")
    @classmethod
    def _web_address(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port  # urlsplit itself checks no port
        except ValueError:
            parts, host = urlsplit(""), None
        extra = parts.query or parts.fragment or parts.username
        if parts.scheme not in ("http", "https") or not host or extra:
            # Without the value, which may contain a password.
            raise ValueError("must be a URL such as https://callboard.example, without a user name, ? and #")
        if info.field_name == "public_url" and parts.path not in ("", "/"):
            raise ValueError("must have no path: CALLBOARD_BASE_PATH names that of the pages")
        if info.field_name == "oidc_issuer" and parts.scheme == "http" and not is_loopback(host):
            raise ValueError(
                "must begin with https://: over http, an attacker on the network could sign in as any user; "
                "http is for a provider on this machine only"
            )
        return url.rstrip("/")

    @field_validator("slots", "token", "url", mode="before")
    @classmethod
    def _unset_if_empty(cls, text: object) -> object:
        return None if text == "" else text

    @field_validator("host_name")
    @classmethod
    def _in_addresses(cls, host_name: str) -> str:
        host_name = host_name.strip()
        if not host_name or not host_name.isprintable() or "/" in host_name:
            raise ValueError("must be printable and have no slashes, since it is part of addresses")
        if host_name in (".", ".."):
            raise ValueError("must not be . or .., which addresses cannot hold")
        return host_name

    @field_validator("oidc_client_id")
    @classmethod
    def _complete_client(cls, client_id: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("oidc_issuer") is not None and client_id is None:
            raise ValueError("is needed with CALLBOARD_OIDC_ISSUER: the id of Callboard at the provider")
        if client_id is not None and not re.fullmatch(PRINTABLE, client_id):
            raise ValueError("must have printable ASCII characters only, and no spaces")
        return client_id

    @field_validator("oidc_client_secret_file")
    @classmethod
    def _one_secret(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        if file is not None and info.data.get("oidc_client_secret") is not None:
            raise ValueError("is set together with CALLBOARD_OIDC_CLIENT_SECRET: unset one of them")
        return file

    @field_validator("oidc_scopes")
    @classmethod
    def _with_openid(cls, scopes: list[str]) -> list[str]:
        if "openid" not in scopes:
            raise ValueError("must contain openid: otherwise the provider does not identify the user")
        return scopes

    @field_validator("oidc_create_users")
    @classmethod
    def _created_users_have_roles(cls, creates: bool, info: ValidationInfo) -> bool:
        roles_known = {"oidc_roles", "oidc_default_role"} <= info.data.keys()
        no_role = not info.data.get("oidc_roles") and info.data.get("oidc_default_role") is None
        if creates and info.data.get("oidc_issuer") is not None and roles_known and no_role:
            raise ValueError(
                "new users would have no role: set CALLBOARD_OIDC_ROLES or CALLBOARD_OIDC_DEFAULT_ROLE, or "
                "set this to false"
            )
        return creates

    @field_validator("home", mode="before")
    @classmethod
    def _not_empty(cls, home: object) -> object:
        if isinstance(home, str) and not home.strip():
            raise ValueError(
                "it is set but empty, which would mean the current folder; set it to a folder, or unset it "
                "for ~/.callboard"
            )
        try:
            Path(str(home)).expanduser()
        except RuntimeError:
            raise ValueError(f"{home} is the home of no user of this machine") from None
        return home

    @field_validator("reconcile_interval_s")
    @classmethod
    def _often_enough(cls, reconcile_interval_s: float, info: ValidationInfo) -> float:
        lease_s = info.data.get("lease_s")
        if lease_s is not None and not reconcile_interval_s <= lease_s / 3:
            raise ValueError(
                f"must be at most a third of CALLBOARD_LEASE_S ({lease_s:g}): otherwise leases expire "
                "between renewals, and expired leases of other workers are found too late"
            )
        return reconcile_interval_s

    @cached_property
    def home_dir(self) -> Path:
        """`home`, absolute, with `~` expanded."""
        return self.home.expanduser().absolute()

    @cached_property
    def prefix(self) -> str:
        """`base_path` without its last slash: what stands before every address of the service."""
        return self.base_path.rstrip("/")

    @cached_property
    def session_idle(self) -> timedelta:
        """How long a browser session lasts without being used."""
        return timedelta(hours=self.session_idle_hours)

    @cached_property
    def serves_other_machines(self) -> bool:
        """Whether other machines can reach the web process, directly or through a proxy."""
        return bool(self.trusted_proxies) or not self.binds_loopback

    @cached_property
    def binds_loopback(self) -> bool:
        """Whether the web process listens on this machine only."""
        return is_loopback(self.host)

    @cached_property
    def database(self) -> str:
        """The database's SQLAlchemy URL."""
        return self.database_url or sqlite_url(self.sqlite_file)

    @cached_property
    def sqlite_file(self) -> Path:
        """The embedded installation's database file."""
        return self.home_dir / "callboard.sqlite3"

    @cached_property
    def redis(self) -> str:
        """The Redis URL."""
        return self.redis_url or socket_url(self.redis_socket)

    @cached_property
    def redis_socket(self) -> Path:
        """The embedded Redis' socket: in `home`, or in a short private folder if that path is too long."""
        socket = self.home_dir / "redis.sock"
        if len(os.fsencode(socket)) <= MAX_SOCKET_PATH_BYTES:
            return socket
        digest = hashlib.sha256(os.fsencode(self.home_dir)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"callboard-{os.getuid()}-{digest}" / socket.name

    @cached_property
    def artifacts(self) -> str:
        """The artifact store's fsspec URL."""
        return self.artifacts_url or f"file://{self.home_dir / 'artifacts'}"

    @cached_property
    def runs_dir(self) -> Path:
        """Folder of this host's run directories."""
        return self.home_dir / "runs"


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
