"""Route `/docs`: Swagger UI, from files of an installed package, so that it needs no internet."""

from pathlib import Path

import fastapi_offline
from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse
from starlette.responses import Response

from backend.errors import NotFound

router = APIRouter(prefix="/docs", include_in_schema=False)

FILES = frozenset({"swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"})

PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Callboard API</title>
    <link rel="stylesheet" href="/docs/swagger-ui.css">
    <link rel="icon" href="/docs/favicon.png">
  </head>
  <body>
    <div id="api"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
"""

# A separate file: the content security policy allows no inline script.
START = 'SwaggerUIBundle({url: "/openapi.json", dom_id: "#api", deepLinking: true});\n'


@router.get("")
def read_docs() -> HTMLResponse:
    """The page."""
    return HTMLResponse(PAGE)


@router.get("/start.js")
def read_start() -> Response:
    """The script that starts Swagger UI."""
    return Response(START, media_type="text/javascript")


@router.get("/{name}")
def read_file(name: str) -> FileResponse:
    """A file of Swagger UI."""
    if name not in FILES:
        raise NotFound("there is nothing at this address")
    return FileResponse(Path(fastapi_offline.__file__).parent / "static" / name)
