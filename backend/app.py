"""The web process: one FastAPI application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from fastapi import APIRouter, Depends, FastAPI
from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute

from backend import __version__
from backend.access.audit.requests import record_change
from backend.access.auth import endpoints as auth
from backend.access.auth.oidc import endpoints as oidc
from backend.access.auth.state import AuthState
from backend.analysis.shares import endpoints as shares
from backend.db.engine import make_engine
from backend.http import docs, errors, frontend, openapi
from backend.http.access import Guards
from backend.http.assistants import AssistantMiddleware
from backend.http.base_path import BasePathMiddleware
from backend.http.bodies import RequestMiddleware
from backend.http.conditional import ConditionalMiddleware
from backend.http.counters import RequestCounters
from backend.http.dependencies import AppState
from backend.http.head import HeadMiddleware
from backend.http.idempotency import route as idempotency
from backend.http.parameters import refuse_unknown
from backend.http.routing import HttpMethods, ResourceRouter
from backend.http.security import SecurityMiddleware
from backend.http.transfer import CompressionMiddleware, LargeResponses
from backend.platform import files
from backend.platform.artifacts import ArtifactStore
from backend.platform.settings import Settings
from backend.pubsub.bus import Bus
from backend.pubsub.subscription import Subscription
from backend.replays.live import gameplay
from backend.replays.play import stream as play_stream
from backend.specs.algorithms import PACKAGE_PROBLEMS
from backend.upkeep import health
from backend.upkeep.instruments import ServiceCollector

if TYPE_CHECKING:
    from backend.access.auth.oidc.provider import Provider

log = structlog.get_logger(__name__)


_FIRST = (
    "runs",
    "forks",
    "metrics",
    "figures",
    "auth",
    "users",
    "tokens",
    "audit",
    "comparisons",
    "sweeps",
    "studies",
    "papers",
    "scores",
    "episodes",
    "checkpoints",
    "evaluations",
    "external",
    "videos",
    "media",
    "hosts",
    "catalogue",
    "live",
    "live_settings",
    "step_notes",
    "symptoms",
    "retention",
    "play",
    "recordings",
    "alerts",
    "rules",
    "targets",
)
"""Resources in the order of the API's document, the most requested first: FastAPI tries their routes in this
order. A resource that is not named here follows, by its name."""

OPEN_PATHS = frozenset({"/api/v1/auth/login", "/api/v1/auth/methods"})
"""Addresses of the API that need no login."""
LARGE_BODIES = {"points": 110_000, "episodes": 60_000}
"""Last part of an address -> how many values JSON may have there: scripts of external runs send batches of
10,000 rows. A point that stands alone, as of a script that logs once in a while, has ten values: the list of
each of five columns and what is in it, but for the name, and the object itself."""


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

    for package, reason in PACKAGE_PROBLEMS.items():
        log.warning("package.refused", package=package, reason=reason)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
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
        servers=[{"url": settings.prefix or "/", "description": "This server."}],
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # `docs.router` has it
        routes=_routes(),
    )
    app.state.app_state = state
    app.state.auth_state = auth_state
    frontend.install(
        app, settings.frontend_dir or files.pages(), files.documentation(), prefix=settings.prefix
    )
    app.state.methods = HttpMethods(app, catch_all=frontend.CATCH_ALL)
    app.state.guards = Guards(app)
    errors.install(app)
    idempotency.install(app)
    openapi.install(app)
    app.add_middleware(ConditionalMiddleware)
    app.add_middleware(CompressionMiddleware)
    app.add_middleware(LargeResponses)
    app.add_middleware(RequestMiddleware, open_paths=OPEN_PATHS, values=LARGE_BODIES)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(
        SecurityMiddleware,
        allowed_hosts=_hosts(settings),
        cors_origins=settings.cors_origins,
        counters=counters,
    )
    app.add_middleware(
        AssistantMiddleware,
        allow_write=settings.mcp_allow_write,
        cors_origins=settings.cors_origins,
        version=__version__,
    )
    if settings.prefix:
        app.add_middleware(BasePathMiddleware, prefix=settings.prefix)
    return app


def _hosts(settings: Settings) -> list[str]:
    """Names by which the server may be addressed: those of the settings, and the address that it binds to."""
    try:
        address = ip_address(settings.host)
    except ValueError:
        return [*settings.allowed_hosts, settings.host]
    own = [] if address.is_unspecified else [f"[{address}]" if address.version == 6 else str(address)]
    return [*settings.allowed_hosts, *own]


def _provider(settings: Settings) -> "Provider | None":
    if settings.oidc_issuer is None:
        return None
    from backend.access.auth.oidc.provider import Provider  # loads Authlib, which few installations need

    return Provider(settings)


def find_resources() -> dict[str, list[ResourceRouter]]:
    """The routers of each resource, by the name of its package, which has an `endpoints.py`."""
    backend = Path(__file__).parent
    # Of a wing, or of a folder in one. Other routers are included by name: they are below other addresses.
    paths = (*backend.glob("*/endpoints.py"), *backend.glob("*/*/endpoints.py"))
    folders = {path.parent.name: path.parent for path in paths}
    order = (*_FIRST, *sorted(folders.keys() - set(_FIRST)))
    packages = {name: ".".join(folders[name].relative_to(backend).parts) for name in order}
    modules = {name: import_module(f"backend.{package}.endpoints") for name, package in packages.items()}
    return {
        name: [router for router in vars(module).values() if isinstance(router, ResourceRouter)]
        for name, module in modules.items()
    }


@cache
def _routes() -> list[BaseRoute]:
    """The routes without the pages'. They depend on no setting, and FastAPI takes 0.3 s to analyse them."""
    root = APIRouter(generate_unique_id_function=openapi.operation_id)
    # All at one level: FastAPI tries them again at each level that includes another.
    for resource in (*chain(*find_resources().values()), gameplay.router, play_stream.router):
        root.include_router(resource, prefix="/api/v1", dependencies=[Depends(refuse_unknown)])
    for router in (health.router, docs.router, auth.link_router, oidc.router, shares.page_router):
        root.include_router(router)
    return root.routes
