"""Routes outside the API: is this process alive, can it work, what does it count?"""

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from backend.dependencies import ThisParts

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether each thing the service stands on is there."""

    ready: bool
    database: bool
    migrated: bool
    redis: bool


@router.get("/healthz")
def read_health() -> Health:
    """Whether this process answers."""
    return Health()


@router.get("/readyz", responses={503: {"model": Readiness}})
def read_readiness(parts: ThisParts, response: Response) -> Readiness:
    """Whether the database is there and migrated, and Redis answers; 503 when not."""
    from backend.db.migrate import is_current  # Alembic: for whoever asks first

    try:
        database, migrated = True, is_current(parts.engine)
    except SQLAlchemyError:
        database = migrated = False
    redis = parts.bus.ping()
    ready = database and migrated and redis
    if not ready:
        response.status_code = 503
    return Readiness(ready=ready, database=database, migrated=migrated, redis=redis)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def read_metrics(parts: ThisParts) -> Response:
    """Counters in Prometheus' text format."""
    return Response(parts.instruments.exposition(), media_type="text/plain; version=1.0.0; charset=utf-8")
