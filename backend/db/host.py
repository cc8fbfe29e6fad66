"""Table `hosts`: machines with a worker, and the facts they report."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.db.checked_json import CheckedJson
from backend.specs.host_commands import requirement_name
from backend.specs.host_load import HostLoad


class Host(Base):
    """One worker host, by name."""

    __tablename__ = "hosts"

    id: Mapped[str] = mapped_column(String(200), primary_key=True)
    first_seen_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    stopped_at: Mapped[datetime | None]
    """When its worker stopped; None while it runs, and where no orderly stop was recorded."""
    worker_id: Mapped[str | None] = mapped_column(String(32))
    """Identifies the home directory of the worker that sent the latest heartbeat."""
    queues: Mapped[list[str]]
    slots: Mapped[int]
    draining: Mapped[bool] = mapped_column(default=False)
    cpu_count: Mapped[int]
    memory_bytes: Mapped[int] = mapped_column(BigInteger)
    devices: Mapped[list[str]]
    """The CPU, such as `cpu (avx512_bf16)` if it has bf16 instruction sets, and each GPU."""
    environments: Mapped[list[str]]
    """Ids of the environments it can run."""
    custom_environments: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    """The custom environments among them, as `CustomEnvironment` describes them."""
    commands: Mapped[list[dict[str, Any]]] = mapped_column(default=list, server_default="[]")
    """The commands that runs may start on it, as `HostCommand` describes them."""
    versions: Mapped[dict[str, str]]
    load: Mapped[dict[str, Any]] = mapped_column(CheckedJson(HostLoad))
    """Latest measurements, in the form of `HostLoad`."""

    @property
    def provided(self) -> dict[str, str]:
        """What runs may require: versions of packages, and definitions of commands."""
        commands = {
            requirement_name(str(row.get("name"))): str(row.get("definition")) for row in self.commands or ()
        }
        return self.versions | commands
