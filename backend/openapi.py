"""What the OpenAPI document says beyond what FastAPI finds by itself."""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from backend.errors import MEDIA_TYPE, ProblemDocument
from backend.idempotency.route import KEY_PATTERN


def operation_id(route: APIRoute) -> str:
    """The function's name: what a generated client calls it."""
    return route.name


def install(app: FastAPI) -> None:
    """Have `app` describe its errors as what they are: problem documents."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            _describe_problems(plain())
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _describe_problems(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {}) | {"ProblemDocument": problem}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    answer = {
        "description": "What is wrong, as RFC 9457 tells it.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Sent again with the same key, a request is done once and answered alike for a day.",
        "schema": {"type": "string", "pattern": KEY_PATTERN},
    }
    for address, path in document["paths"].items():
        for method, operation in path.items():
            # Answers with secrets in them are not kept.
            if method == "post" and not address.startswith(("/api/v1/auth", "/api/v1/tokens")):
                operation.setdefault("parameters", []).append(key)
            for response in operation["responses"].values():
                for content in response.get("content", {}).values():
                    content.pop("itemSchema", None)  # OpenAPI 3.2's; the document says 3.1
            operation["responses"].pop("422", None)
            operation["responses"] |= {"4XX": answer}
            operation["responses"].setdefault("503", answer)
