"""Table `hosts`: machines with a worker, and what they say of themselves."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Host(Base):
    """One worker host, by its name."""

    __tablename__ = "hosts"

    id: Mapped[str] = mapped_column(String(200), primary_key=True)
    first_seen_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    queues: Mapped[list[str]]
    slots: Mapped[int]
    draining: Mapped[bool] = mapped_column(default=False)
    cpu_count: Mapped[int]
    memory_bytes: Mapped[int] = mapped_column(BigInteger)
    devices: Mapped[list[str]]
    environments: Mapped[list[str]]
    """Ids of the worlds it can make."""
    own_environments: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    """Its own worlds among them, as `OwnWorld` describes them."""
    versions: Mapped[dict[str, str]]
    load: Mapped[dict[str, Any]]
    """Latest readings, as `backend.hosts.schemas.HostLoad` has them."""
