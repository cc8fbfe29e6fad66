"""The built pages: files with a hash in their name for ever, everything else is the one page."""

import mimetypes
from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from backend.routing import Methods

router = APIRouter(include_in_schema=False)

CATCH_ALL = "/{path:path}"

OWN_PATHS = ("api", "docs", "openapi.json", "healthz", "readyz", "metrics", "assets")
"""First parts of addresses that are never pages."""


class _ForEver(StaticFiles):
    """Files whose name changes with their content; compressed where the build has left such a copy."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            with suppress(HTTPException):
                packed = await super().get_response(f"{path}.gz", scope)
                packed.headers["Content-Type"] = mimetypes.guess_type(path)[0] or "application/octet-stream"
                packed.headers["Content-Encoding"] = "gzip"
                return packed
        return await super().get_response(path, scope)

    def file_response(self, *args: object, **kw: object) -> Response:
        response = super().file_response(*args, **kw)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        response.headers["Vary"] = "Accept-Encoding"
        return response


def install(app: FastAPI, folder: Path) -> None:
    """Serve the pages built into `folder`. Call last: it takes every address left."""
    app.state.frontend = folder
    app.mount("/assets", _ForEver(directory=folder / "assets", check_dir=False))
    app.include_router(router)


def page(request: Request) -> Response:
    """The one page, which reads the address itself."""
    index = request.app.state.frontend / "index.html"
    if not index.is_file():
        return PlainTextResponse("The pages are not built: run `make frontend`.", 503)
    return FileResponse(index, headers={"Cache-Control": "no-cache"})


@router.get(CATCH_ALL)
def read_page(request: Request, path: str) -> Response:
    """A file of the front end's root folder, or the page."""
    if path.split("/", 1)[0] in OWN_PATHS:
        methods: Methods = request.app.state.methods
        raise HTTPException(405 if methods.of(request.url.path) else 404)
    folder: Path = request.app.state.frontend
    # Only names that lie there: the address is compared, never joined.
    for file in folder.iterdir() if folder.is_dir() else ():
        if file.name == path and file.is_file() and path != "index.html":
            return FileResponse(file)
    return page(request)
