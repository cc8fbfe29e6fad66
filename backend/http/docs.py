"""Routes `/openapi.json` and `/docs`: Swagger UI, from files of an installed package, so that it needs no
internet."""

from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse
from starlette.responses import Response

from backend.http.dependencies import PAGE_SECRET_HEADER, AppState
from backend.http.transfer import JsonDocument
from backend.platform.errors import NotFound

router = APIRouter(include_in_schema=False)

DOCUMENT = "/openapi.json"

STORED_PAGE_SECRET = "callboard-page-secret"  # noqa: S105 - the name of a field
"""Where a page keeps the secret of its session, in the local storage of its origin: the base path follows."""

FILES = frozenset({"swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"})

PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Callboard API</title>
    <link rel="stylesheet" href="docs/swagger-ui.css">
    <link rel="icon" href="docs/favicon.png">
  </head>
  <body>
    <div id="api"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
"""

# A separate file: the content security policy allows no inline script. Requests carry the secret that the
# pages of this origin keep; where there is a token too, that counts.
START = f"""\
function withPageSecret(request) {{
  const base = location.pathname.replace(/\\/docs$/, "");
  const secret = localStorage.getItem("{STORED_PAGE_SECRET}" + base);
  const ours = new URL(request.url, location.origin).origin === location.origin;
  if (secret !== null && ours) request.headers["{PAGE_SECRET_HEADER}"] = secret;
  return request;
}}
SwaggerUIBundle({{
  url: "openapi.json", dom_id: "#api", deepLinking: true, requestInterceptor: withPageSecret,
}});
"""


@router.get(DOCUMENT)
async def read_openapi(request: Request) -> Response:
    """The OpenAPI document, serialised once."""
    app: FastAPI = request.app
    document: JsonDocument | None = getattr(app.state, "openapi_document", None)
    if document is None:
        state: AppState = app.state.app_state
        document = await state.limits.shared.get("openapi", lambda: JsonDocument.of_json(app.openapi()))
        app.state.openapi_document = document
    return document.respond(request)


@router.get("/docs")
def read_docs() -> HTMLResponse:
    """The page."""
    return HTMLResponse(PAGE)


@router.get("/docs/start.js")
def read_start() -> Response:
    """The script that starts Swagger UI."""
    return Response(START, media_type="text/javascript")


@router.get("/docs/{name}")
def read_file(name: str) -> FileResponse:
    """A file of Swagger UI."""
    if name not in FILES:
        raise NotFound("there is nothing at this address")
    return FileResponse(Path(fastapi_offline.__file__).parent / "static" / name)
