"""The web process: one FastAPI application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import APIRouter, FastAPI

from backend import docs, errors, frontend, health, openapi
from backend.artifacts import ArtifactStore
from backend.audit import endpoints as audit
from backend.auth import endpoints as auth
from backend.auth.passwords import Throttle
from backend.catalog import endpoints as catalog
from backend.checkpoints import endpoints as checkpoints
from backend.comparisons import endpoints as comparisons
from backend.db.engine import make_engine
from backend.dependencies import Parts
from backend.episodes import endpoints as episodes
from backend.evaluations import endpoints as evaluations
from backend.figures import endpoints as figures
from backend.guard import Guard
from backend.hosts import endpoints as hosts
from backend.idempotency import route as idempotency
from backend.instruments import Instruments
from backend.live import endpoints as live
from backend.live import watching
from backend.live.bus import Bus
from backend.live_settings import endpoints as live_settings
from backend.metrics import endpoints as metrics
from backend.routing import Methods
from backend.runs import endpoints as runs
from backend.settings import Settings
from backend.tokens import endpoints as tokens
from backend.users import endpoints as users

VERSION = "0.1.0"


def create_app(settings: Settings) -> FastAPI:
    """The application. The database must be migrated; nothing is connected to before the first request."""
    engine = make_engine(settings.database)
    instruments = Instruments(engine, settings.lease_s)
    parts = Parts(
        settings=settings,
        engine=engine,
        bus=Bus(settings.redis),
        artifacts=ArtifactStore(settings.artifacts),
        instruments=instruments,
        throttle=Throttle(),
        stopping=asyncio.Event(),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        parts.stopping.set()
        parts.bus.close()
        engine.dispose()

    app = FastAPI(
        title="Callboard",
        version=VERSION,
        summary="Launch, watch, compare and replay parallel deep reinforcement learning.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        generate_unique_id_function=openapi.operation_id,
    )
    app.state.parts = parts
    api = APIRouter(prefix="/api/v1")
    rooms = (
        auth,
        users,
        tokens,
        audit,
        runs,
        metrics,
        figures,
        comparisons,
        episodes,
        checkpoints,
        evaluations,
        hosts,
        catalog,
        live,
        watching,
        live_settings,
    )
    for room in rooms:
        api.include_router(room.router)
    app.include_router(api)
    app.include_router(health.router)
    app.include_router(docs.router)
    app.include_router(auth.link_router)
    frontend.install(app, settings.frontend_dir or Path(__file__).resolve().parents[1] / "frontend" / "dist")
    app.state.methods = Methods(app, catch_all=frontend.CATCH_ALL)
    errors.install(app)
    idempotency.install(app)
    openapi.install(app)
    app.add_middleware(Guard, allowed_hosts=settings.allowed_hosts, instruments=instruments)
    return app
