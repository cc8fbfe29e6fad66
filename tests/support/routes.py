"""Addresses of the API, from the application's own routes."""

from collections.abc import Iterator

from fastapi.routing import iter_route_contexts

from tests.support.service import RunningService


def addresses(service: RunningService, run_id: str, **ids: str) -> Iterator[tuple[str, str]]:
    """Method and address of every route of the API, with this run, and with ids of nothing else but `ids`, by
    name of the parameter."""
    known = {"{run_id}": run_id, "{run_id:ulid}": run_id, "{environment_id:path}": "CartPole-v1"}
    known |= {f"{{{name}}}": value for name, value in ids.items()}
    for route in iter_route_contexts(service.app.routes):
        if not route.path or not route.path.startswith("/api/") or not route.methods:
            continue
        path = route.path
        for name, value in known.items():
            path = path.replace(name, value)
        while "{" in path:
            path = path[: path.index("{")] + "0" * 26 + path[path.index("}") + 1 :]
        for method in sorted(route.methods):
            yield method, path
