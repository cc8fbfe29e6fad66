"""What every part of a worker needs: settings, database, artifact store and bus."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, exc
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactStore
from backend.db import engine as database
from backend.live.bus import Bus
from backend.settings import Settings

AWAY = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, OSError)
"""Errors of a database or an artifact store that is away: waited out, for the logs keep everything."""


@dataclass(frozen=True)
class Context:
    """Made once a worker process; safe to share between its threads."""

    settings: Settings
    engine: Engine
    store: ArtifactStore
    bus: Bus

    @classmethod
    def of(cls, settings: Settings) -> "Context":
        """Connect to what the settings name."""
        return cls(
            settings,
            database.make_engine(settings.database),
            ArtifactStore(settings.artifacts),
            Bus(settings.redis),
        )

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One writing transaction; what it changed is told after the commit."""
        with database.writing(self.engine) as session:
            yield session
        self.bus.announce(session)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One snapshot of the database."""
        with database.reading(self.engine) as session:
            yield session

    def run_dir(self, run_id: str) -> Path:
        """A run's folder on this host."""
        return self.settings.runs_dir / run_id

    def close(self) -> None:
        """Close the connections."""
        self.bus.close()
        self.engine.dispose()
