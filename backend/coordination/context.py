"""Shared resources of a process that works outside requests, such as a worker: settings, database, artifact
store and bus."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine, exc
from sqlalchemy.orm import Session

from backend.db import engine as database
from backend.platform.artifacts import ArtifactStore
from backend.platform.settings import Settings
from backend.pubsub.bus import Bus

T = TypeVar("T")

TRANSIENT_ERRORS = (
    exc.OperationalError,
    exc.InterfaceError,
    exc.InternalError,  # a PostgreSQL server that is read-only, such as a standby after a failover
    exc.TimeoutError,
    OSError,
)
"""Errors of an unavailable database or artifact store: retried, as the event logs keep everything."""


@dataclass(frozen=True)
class Context:
    """Created once per process; safe to share between its threads."""

    settings: Settings
    db_engine: Engine
    store: ArtifactStore
    bus: Bus

    @classmethod
    def from_settings(cls, settings: Settings) -> "Context":
        """Connect to the database, artifact store and Redis of the settings."""
        return cls(
            settings,
            database.make_engine(settings.database),
            ArtifactStore(settings.artifacts),
            Bus(settings.redis),
        )

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One writing transaction; its changes are published on the bus after the commit."""
        with database.writing(self.db_engine) as session:
            yield session
        self.bus.publish_changes(session)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One snapshot of the database."""
        with database.reading(self.db_engine) as session:
            yield session

    def run_dir(self, run_id: str) -> Path:
        """A run's folder on this host."""
        return self.settings.runs_dir / run_id

    def close(self) -> None:
        """Close the connections."""
        self.bus.close()
        self.db_engine.dispose()


def retry_until_available(action: Callable[[], T], wait: Callable[[Exception], None]) -> T:
    """The result of an action, which is repeated while the database or the artifact store is unavailable.

    Args:
        action: what to do: it may be done several times.
        wait: called with the error of each failed try: it waits, or raises to give up.
    """
    while True:
        try:
            return action()
        except TRANSIENT_ERRORS as error:
            wait(error)
