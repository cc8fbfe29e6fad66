"""Health, readiness and Prometheus metrics, for monitoring; the first two without authentication."""

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from fastapi import APIRouter, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from backend.db.engine import reading
from backend.fleet.hosts import service as hosts
from backend.http.access import find_viewer
from backend.http.dependencies import AppState, AppStateDep
from backend.platform.errors import Unauthenticated
from backend.specs.fields import Schema

_WRITTEN_BYTES = 2**16

OTHER_SCHEMA = "database: its schema is of another version; run `callboard db upgrade`"

router = APIRouter(tags=["health"])


class Health(Schema):
    """The process responds."""

    status: str = "ok"
    """Always `ok`."""


class Readiness(Schema):
    """Whether each dependency of the service is available."""

    ready: bool
    """Whether everything below is available, so that requests can be answered."""
    database: bool
    """Whether the database responds."""
    migrated: bool
    """Whether the database has the schema of this version."""
    redis: bool
    """Whether Redis responds; without it, pages learn of changes late."""
    disk: bool
    """Whether this process can write to the disk of its state."""
    host_disks: bool
    """Whether every host whose worker was not stopped can write to its disk, as far as is known:
    `GET /api/v1/hosts` has their problems. Requests are answered all the same."""
    problems: list[str]
    """What is unavailable, and why."""


@router.get("/healthz")
async def read_health() -> Health:
    """Whether this process responds. Needs no thread: requests that wait for the database do not delay it."""
    return Health()


@router.get("/readyz", responses={503: {"model": Readiness}})
async def read_readiness(state: AppStateDep, response: Response) -> Readiness:
    """Whether the database is available and migrated, Redis responds and the disk is writable; else 503.
    The answer may be a second old."""
    readiness = await state.limits.shared.get("readiness", partial(_readiness, state))
    if not readiness.ready:
        response.status_code = 503
    return readiness


def _readiness(state: AppState) -> Readiness:
    from backend.db.migrate import is_current  # slow to import: Alembic

    host_disks = True
    try:
        database, migrated = True, is_current(state.db_engine)
        if migrated:
            with reading(state.db_engine) as session:
                host_disks = not hosts.has_disk_problem(session, state.settings)
    except SQLAlchemyError:
        database = migrated = False
    redis = state.bus.ping()
    disk = _disk_problem(state.settings.home_dir)
    problems = [
        problem
        for ready, problem in (
            (database, "database: it does not respond"),
            (
                migrated or not database,
                OTHER_SCHEMA,
            ),
            (redis, "Redis: it does not respond"),
            (disk is None, f"disk of CALLBOARD_HOME: {disk}"),
        )
        if not ready
    ]
    return Readiness(
        ready=not problems,
        database=database,
        migrated=migrated,
        redis=redis,
        disk=disk is None,
        host_disks=host_disks,
        problems=problems,
    )


def _disk_problem(home: Path) -> str | None:
    """Why a file cannot be written; None if it can. A folder that does not exist is not used."""
    if not home.is_dir():
        return None
    try:
        with TemporaryFile(dir=home) as file:
            file.write(bytes(_WRITTEN_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{error.strerror}; free some space, or make it writable"
    return None


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def read_metrics(request: Request, state: AppStateDep) -> Response:
    """Metrics in Prometheus' text format, at most a second old. A server that other machines can reach
    requires a token."""
    if state.settings.serves_other_machines and await run_in_threadpool(find_viewer, request) is None:
        raise Unauthenticated("/metrics needs a token of role viewer, since other machines can reach it")
    exposition = await state.limits.shared.get("metrics", state.counters.exposition)
    return Response(exposition, media_type="text/plain; version=1.0.0; charset=utf-8")
