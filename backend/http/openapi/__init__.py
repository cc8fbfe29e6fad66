"""Additions to the OpenAPI document that FastAPI generates."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel

from backend import descriptions
from backend.http.openapi import errors, examples
from backend.http.openapi.events import EVENT_SCHEMAS


def operation_id(route: APIRoute) -> str:
    """The function's name, which generated clients use."""
    return route.name


def install(app: FastAPI) -> None:
    """Complete the document of `app`: errors as problem documents, events, descriptions and examples."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            errors.describe(document, app.routes)
            _describe_events(document)
            _describe_fields(document)
            examples.describe(document)
            document["tags"] = [
                {"name": name, "description": text} for name, text in descriptions.TAGS.items()
            ]
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _describe_events(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    schemas |= EVENT_SCHEMAS
    events = document["paths"]["/api/v1/events"]["get"]["responses"]["200"]
    events["content"]["text/event-stream"] = {
        "schema": {
            "type": "string",
            "description": "The `data` of each unnamed event.",
            "contentMediaType": "application/json",
            "contentSchema": {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in EVENT_SCHEMAS]},
        }
    }


def _describe_fields(document: dict[str, Any]) -> None:
    """Describe every property and parameter: by its own description, the docstring below its field, or what
    its name means everywhere. Add examples."""
    schemas = document["components"]["schemas"]
    docstrings = {model.__name__: _docstrings(model) for model in _models(BaseModel)}
    for name, schema in schemas.items():
        own = docstrings.get(name, {})
        for field, described in schema.get("properties", {}).items():
            # A type that carries its description, where null is allowed too.
            of_type = [
                part.pop("description") for part in described.get("anyOf", ()) if "description" in part
            ]
            if not described.get("description"):
                text = descriptions.FIELDS.get(f"{name}.{field}") or own.get(field) or next(iter(of_type), "")
                described["description"] = text or descriptions.FIELDS.get(field, "")
            value = descriptions.VALUES.get(f"{name}.{field}", descriptions.VALUES.get(field))
            if value is not None and _JSON_TYPES[type(value)] in _types(described):
                described.setdefault("examples", [value])
        if name in examples.EXAMPLES:
            schema["examples"] = [examples.EXAMPLES[name]]
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                if not parameter.get("description"):
                    parameter["description"] = descriptions.PARAMETERS.get(parameter["name"], "")


_JSON_TYPES = {str: "string", int: "integer", float: "number"}


def _types(schema: dict[str, Any]) -> set[str]:
    return {each.get("type", "") for each in [schema, *schema.get("anyOf", [])]}


def _models(of: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in of.__subclasses__():
        yield model
        yield from _models(model)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below each field, also of the models it extends. Read when the document is requested:
    pydantic's `use_attribute_docstrings` reads the sources at each start."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not each.__module__.startswith("backend.") or "[" in each.__name__:
            continue
        [tree] = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(inspect.cleandoc(text).split())
    return found
