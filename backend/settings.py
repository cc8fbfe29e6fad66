"""Settings of this installation, from `CALLBOARD_*` environment variables."""

import hashlib
import os
import socket
import tempfile
from functools import cached_property
from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MAX_SOCKET_PATH_BYTES = 100
"""Unix sockets take 107 bytes; the server adds to the name while it starts."""


class Settings(BaseSettings):
    """One object for web, worker and command line; the defaults are the embedded installation."""

    model_config = SettingsConfigDict(env_prefix="CALLBOARD_", frozen=True)

    home: Path = Field(Path("~/.callboard"), description="Where state lives.")
    database_url: str | None = Field(None, description="SQLAlchemy URL; SQLite under home by default.")
    redis_url: str | None = Field(None, description="Redis URL; an embedded server's socket by default.")
    artifacts_url: str | None = Field(
        None, description="fsspec URL for checkpoints, replays, videos; a folder under home by default."
    )
    host: str = Field("127.0.0.1", description="Address the web process binds.")
    port: int = Field(8642, ge=0, le=65535, description="Port the web process binds; 0 takes a free one.")
    allowed_hosts: list[str] = Field(
        ["localhost", "127.0.0.1", "[::1]"], description="Host headers the web process answers to."
    )
    frontend_dir: Path | None = Field(None, description="The built pages; frontend/dist by default.")
    host_name: str = Field(default_factory=socket.gethostname, description="This worker host's name.")
    queues: list[str] = Field(["cpu"], description="Queues this worker serves.")
    environments_file: Path | None = Field(
        None, description="TOML file with this worker host's own gymnasium environments."
    )
    slots: int = Field(1, ge=1, le=64, description="Runs this worker trains at once.")
    lease_s: float = Field(
        15.0, gt=0, allow_inf_nan=False, description="How long a worker's claim holds without renewal."
    )
    reconcile_interval_s: float = Field(
        3.0, gt=0, description="How often a worker renews its claims and looks for work itself."
    )
    url: str | None = Field(
        None, description="Server that the command line talks to; the one running under home by default."
    )
    token: str | None = Field(None, description="Key the command line shows it; made for the local one.")
    log_format: str = Field("console", pattern="^(console|json)$", description="How log lines look.")
    log_level: str = Field("INFO", description="Least level that is logged.")

    @field_validator("reconcile_interval_s")
    @classmethod
    def _often_enough(cls, reconcile_interval_s: float, info: ValidationInfo) -> float:
        lease_s = info.data.get("lease_s")
        if lease_s is not None and not reconcile_interval_s <= lease_s / 3:
            raise ValueError(
                f"at most a third of CALLBOARD_LEASE_S, which is {lease_s:g}: a worker that renews less "
                "often loses what it holds, and takes back nothing that others have lost"
            )
        return reconcile_interval_s

    @cached_property
    def home_dir(self) -> Path:
        """`home` with `~` expanded, absolute."""
        return self.home.expanduser().absolute()

    @cached_property
    def database(self) -> str:
        """The database's SQLAlchemy URL."""
        return self.database_url or f"sqlite:///{self.home_dir / 'callboard.sqlite3'}"

    @cached_property
    def redis(self) -> str:
        """The Redis URL."""
        return self.redis_url or f"unix://{self.redis_socket}"

    @cached_property
    def redis_socket(self) -> Path:
        """The embedded Redis' socket: in `home`, or in a short private folder where that path is too long."""
        socket = self.home_dir / "redis.sock"
        if len(os.fsencode(socket)) <= MAX_SOCKET_PATH_BYTES:
            return socket
        digest = hashlib.sha256(os.fsencode(self.home_dir)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"callboard-{os.getuid()}-{digest}" / socket.name

    @cached_property
    def artifacts(self) -> str:
        """The artifact store's fsspec URL."""
        return self.artifacts_url or (self.home_dir / "artifacts").as_uri()

    @cached_property
    def runs_dir(self) -> Path:
        """Where this host's engines write."""
        return self.home_dir / "runs"
