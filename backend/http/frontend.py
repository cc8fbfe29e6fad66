"""The built pages: assets with a hash in their name are cached permanently, the documentation is below
`/help/`; every other address gets the page."""

import mimetypes
from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from backend.http.base_path import page_below
from backend.http.routing import HttpMethods
from backend.http.transfer import accepts_gzip

router = APIRouter(include_in_schema=False)

CATCH_ALL = "/{path:path}"

RESERVED_PATHS = ("api", "docs", "openapi.json", "healthz", "readyz", "metrics", "assets", "help", "s")
"""First path segments that are never pages."""


class _ImmutableFiles(StaticFiles):
    """Files whose name changes with their content, served compressed if the build created a compressed
    copy."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if accepts_gzip(Headers(scope=scope)):
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


_UNKNOWN_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Page not found · Callboard documentation</title>
<style>
:root {{ color-scheme: light dark }}
body {{ max-width: 36em; margin: 4em auto; padding: 0 1em; font: 16px/1.5 system-ui, sans-serif }}
</style>
<h1>Page not found</h1>
<p>The documentation has no page at this address.</p>
<p><a href="{start}">Go to the start of the documentation</a></p>
</html>
"""


class _Documentation(StaticFiles):
    """The built documentation, of which a browser asks each time whether it has changed.

    Args:
        directory: folder of the built pages.
        start: address of the first page.
    """

    def __init__(self, directory: Path, start: str) -> None:
        super().__init__(directory=directory, html=True)
        self._start = start

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != 404:
                raise
            page = _UNKNOWN_PAGE.format(start=self._start)
            return HTMLResponse(page, 404, headers={"Cache-Control": "no-cache"})

    def file_response(self, *args: object, **kw: object) -> Response:
        response = super().file_response(*args, **kw)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def install(app: FastAPI, folder: Path, documentation: Path, prefix: str = "") -> None:
    """Serve the pages built into `folder`, and the documentation built into another one, to browsers that ask
    for them below `prefix`.

    Call it last: it matches every remaining address.
    """
    app.state.frontend = folder
    app.state.base_path = prefix
    if documentation.is_dir():
        app.mount("/help", _Documentation(documentation, f"{prefix}/help/"))
    app.mount("/assets", _ImmutableFiles(directory=folder / "assets", check_dir=False))
    app.include_router(router)


def page(request: Request) -> Response:
    """The single page of the application, which routes in the browser."""
    index = request.app.state.frontend / "index.html"
    if not index.is_file():
        return PlainTextResponse("The pages are not built: run `make up` once.", 503)
    if prefix := request.app.state.base_path:
        return HTMLResponse(
            page_below(index.read_text("utf-8"), prefix), headers={"Cache-Control": "no-cache"}
        )
    return FileResponse(index, headers={"Cache-Control": "no-cache"})


@router.get(CATCH_ALL)
def read_page(request: Request, path: str) -> Response:
    """A file of the frontend's root folder, or the page."""
    if path == "help":
        return RedirectResponse("/help/")
    if path == "help/":
        return PlainTextResponse("The documentation is not built: run `make up` once.", 503)
    if path.split("/", 1)[0] in RESERVED_PATHS:
        methods: HttpMethods = request.app.state.methods
        raise HTTPException(405 if methods.of(request.scope["path"]) else 404)
    folder: Path = request.app.state.frontend
    # Compared with existing names, never joined to a path.
    for file in folder.iterdir() if folder.is_dir() else ():
        if file.name == path and file.is_file() and path != "index.html":
            return FileResponse(file)
    return page(request)
