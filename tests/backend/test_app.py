"""The web process finds its resources and tables by itself."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from backend.app import create_app, find_resources
from backend.db import Base
from backend.platform.settings import Settings

BACKEND = Path(__file__).parents[2] / "backend"


def routes_of(app: FastAPI) -> set[str]:
    """The modules whose functions answer a request."""
    contexts = iter_route_contexts(app.routes)
    routes = [context.original_route for context in contexts]
    return {route.endpoint.__module__ for route in routes if isinstance(route, APIRoute)}


def test_every_package_with_endpoints_is_a_resource(tmp_path: Path) -> None:
    every = {path.relative_to(BACKEND.parent).with_suffix("") for path in BACKEND.rglob("endpoints.py")}
    paths = every - {Path("backend/access/auth/oidc/endpoints")}  # pages of the login, outside of the API
    assert set(find_resources()) == {path.parent.name for path in paths}
    answering = routes_of(create_app(Settings(home=tmp_path)))
    assert {".".join(path.parts) for path in paths} <= answering


def test_every_module_with_a_table_is_imported_with_the_tables() -> None:
    declaring = {
        f"backend.db.{path.stem}"
        for path in (BACKEND / "db").glob("*.py")
        if "__tablename__" in path.read_text("utf-8")
    }
    registered = {mapper.class_.__module__ for mapper in Base.registry.mappers}
    assert registered >= declaring > set()
