import httpx
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from backend.http.routing import ResourceRouter
from tests.support import asynchronous


def test_routes_of_a_resource_are_tried_for_its_own_addresses_only() -> None:
    tried: list[str] = []

    class Counted(APIRoute):
        def matches(self, scope: Scope) -> tuple[Match, Scope]:
            tried.append(scope["path"])
            return super().matches(scope)

    app = FastAPI()
    for name in ("runs", "hosts"):
        router = ResourceRouter(prefix=f"/{name}", route_class=Counted)
        router.add_api_route("", lambda: "all")
        router.add_api_route("/{item}/load", lambda item: item)
        app.include_router(router, prefix="/api/v1")

    async def ask() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.get("/api/v1/hosts")).json() == "all"
            assert (await client.get("/api/v1/hosts/lab/load")).json() == "lab"
            assert set(tried) == {"/api/v1/hosts", "/api/v1/hosts/lab/load"}
            tried.clear()
            for other in ("/", "/api/v1", "/assets/a.js", "/api/v1/figures/hosts", "/hosts"):
                assert (await client.get(other)).status_code == 404
            assert tried == []

    asynchronous.run(ask())
