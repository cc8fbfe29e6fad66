"""The web process: one FastAPI application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends, FastAPI
from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute

from backend import __version__, files, health
from backend.artifacts import ArtifactStore
from backend.audit import endpoints as audit
from backend.audit.requests import record_change
from backend.auth import endpoints as auth
from backend.auth.oidc import endpoints as oidc
from backend.auth.state import AuthState
from backend.catalogue import endpoints as catalogue
from backend.checkpoints import endpoints as checkpoints
from backend.comparisons import endpoints as comparisons
from backend.db.engine import make_engine
from backend.episodes import endpoints as episodes
from backend.evaluations import endpoints as evaluations
from backend.external import endpoints as external
from backend.external.files import uploads_of
from backend.figures import endpoints as figures
from backend.forks import endpoints as forks
from backend.hosts import endpoints as hosts
from backend.http import docs, errors, frontend, openapi
from backend.http.counters import RequestCounters
from backend.http.dependencies import AppState
from backend.http.idempotency import route as idempotency
from backend.http.parameters import refuse_unknown
from backend.http.routing import HttpMethods
from backend.http.security import SecurityMiddleware
from backend.http.transfer import CompressionMiddleware, LargeResponses
from backend.instruments import ServiceCollector
from backend.live import endpoints as live
from backend.live import gameplay
from backend.live_settings import endpoints as live_settings
from backend.metrics import endpoints as metrics
from backend.pubsub.bus import Bus
from backend.pubsub.subscription import Subscription
from backend.retention import endpoints as retention
from backend.runs import endpoints as runs
from backend.settings import Settings
from backend.sweeps import endpoints as sweeps
from backend.tokens import endpoints as tokens
from backend.users import endpoints as users
from backend.videos import endpoints as videos

if TYPE_CHECKING:
    from backend.auth.oidc.provider import Provider


def create_app(settings: Settings) -> FastAPI:
    """Create the application. The database must be migrated; nothing connects before the first request."""
    db_engine = make_engine(settings.database, with_timeouts=True)
    registry = CollectorRegistry()
    counters = RequestCounters(registry)
    registry.register(ServiceCollector(db_engine, settings.lease_s))
    auth_state = AuthState(db_engine, settings.session_idle, _provider(settings))
    state = AppState(
        settings=settings,
        db_engine=db_engine,
        bus=Bus(settings.redis),
        subscription=Subscription(settings.redis),
        artifacts=ArtifactStore(settings.artifacts),
        counters=counters,
        authenticate=auth_state.authenticate,
        record_change=record_change,
        stopping=asyncio.Event(),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        uploads_of(state).remove_stale()
        async with auth_state.running():
            yield
            state.stopping.set()
            await state.subscription.close()
        state.bus.close()
        db_engine.dispose()

    app = FastAPI(
        title="Callboard",
        version=__version__,
        summary="Launch, watch, compare and replay parallel deep reinforcement learning.",
        description=openapi.DESCRIPTION,
        contact={"name": "Callboard"},
        license_info={"name": "MIT", "identifier": "MIT"},
        servers=[{"url": "/", "description": "This server."}],
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        routes=_routes(),
    )
    app.state.app_state = state
    app.state.auth_state = auth_state
    frontend.install(app, settings.frontend_dir or files.pages())
    app.state.methods = HttpMethods(app, catch_all=frontend.CATCH_ALL)
    errors.install(app)
    idempotency.install(app)
    openapi.install(app)
    app.add_middleware(CompressionMiddleware)
    app.add_middleware(LargeResponses)
    app.add_middleware(SecurityMiddleware, allowed_hosts=settings.allowed_hosts, counters=counters)
    return app


def _provider(settings: Settings) -> "Provider | None":
    if settings.oidc_issuer is None:
        return None
    from backend.auth.oidc.provider import Provider  # loads Authlib, which few installations need

    return Provider(settings)


@cache
def _routes() -> list[BaseRoute]:
    """The routes without the pages'. They depend on no setting, and FastAPI takes 0.3 s to analyse them."""
    # FastAPI tries them in this order, and again at each level that includes another: the most requested
    # first, all at one level.
    resources = (
        runs,
        forks,
        metrics,
        figures,
        auth,
        users,
        tokens,
        audit,
        comparisons,
        sweeps,
        episodes,
        checkpoints,
        evaluations,
        external,
        videos,
        hosts,
        catalogue,
        live,
        gameplay,
        live_settings,
        retention,
    )
    root = APIRouter(generate_unique_id_function=openapi.operation_id)
    for resource in resources:
        root.include_router(resource.router, prefix="/api/v1", dependencies=[Depends(refuse_unknown)])
    for router in (health.router, docs.router, auth.link_router, oidc.router):
        root.include_router(router)
    return root.routes
