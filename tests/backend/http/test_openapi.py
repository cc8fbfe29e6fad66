import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from types import NoneType
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from openapi_spec_validator import validate
from pydantic import BaseModel
from sqlalchemy.orm import Session

from backend.app import create_app
from backend.db.changes import record_change, take_changes
from backend.http import frontend
from backend.http.idempotency.route import KEY_PATTERN
from backend.http.openapi import examples
from backend.http.routing import HttpMethods
from backend.platform.settings import Settings
from backend.specs.fields import Schema
from backend.specs.problems import message_of
from backend.specs.protocols import STARTS_PROTOCOL
from backend.specs.run_fields import SEED_PATTERN
from tests.support.service import RunningService

FORMATS = jsonschema.FormatChecker(())


@FORMATS.checks("date-time", ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return create_app(Settings(home=tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def document(app: FastAPI) -> dict[str, dict[str, dict[str, object]]]:
    """The OpenAPI document, which takes a second to create."""
    described: dict[str, dict[str, dict[str, object]]] = app.openapi()
    return described


def test_openapi_document_is_valid(document: dict[str, object]) -> None:
    validate(document)


def test_every_operation_documents_errors_apart_as_problem_documents(document: dict[str, Any]) -> None:
    responses = document["components"]["responses"]
    problem = document["components"]["schemas"]["ProblemDocument"] | {"components": document["components"]}
    for answer in responses.values():
        jsonschema.validate(answer["content"]["application/problem+json"]["example"], problem)
    used = set()
    for operation in _operations(document):
        for status, answer in operation["responses"].items():
            if "$ref" in answer:
                name = answer["$ref"].removeprefix("#/components/responses/")
                used.add(name)
                example = responses[name]["content"]["application/problem+json"]["example"]
                assert status in (str(example["status"]), "default")
            else:
                assert status.startswith("2") or (operation["operationId"], status) == (
                    "read_readiness",
                    "503",
                )
        assert {"503", "default"} <= set(operation["responses"])
    assert used == set(responses)
    assert "HTTPValidationError" not in document["components"]["schemas"]


@pytest.mark.parametrize(
    ("operation_id", "errors"),
    [
        ("list_runs", "401 404 422"),
        ("create_runs", "401 403 409 413 422"),
        ("stop_run", "401 403 404 409 422"),
        ("list_users", "401 403 404 422"),
        ("log_in", "401 403 409 413 422 429"),
        ("read_checkpoint_file", "401 404 410 416 422"),
        ("read_health", ""),
    ],
)
def test_operation_documents_the_errors_that_it_can_answer(
    document: dict[str, Any], operation_id: str, errors: str
) -> None:
    [operation] = [
        candidate for candidate in _operations(document) if candidate["operationId"] == operation_id
    ]
    documented = {status for status in operation["responses"] if status.startswith("4")}
    assert documented == set(errors.split())


def test_no_operation_has_a_range_of_statuses(document: dict[str, Any]) -> None:
    """Generators of clients write them into code, which then does not compile."""
    statuses = {status for operation in _operations(document) for status in operation["responses"]}
    assert all(status.isdecimal() or status == "default" for status in statuses)


def test_every_json_response_has_a_valid_example(document: dict[str, Any]) -> None:
    """Give a field an example, as in `Field(examples=[…])`, if its type alone does not do."""
    components = {"components": document["components"]}
    examined, without = 0, set()
    for operation in _operations(document):
        for response in operation["responses"].values():
            content = response.get("content", {}).get("application/json", {})
            if "example" in content:
                jsonschema.validate(
                    content["example"], content["schema"] | components, format_checker=FORMATS
                )
                examined += 1
            elif content.get("schema"):
                without.add(operation["operationId"])
    assert examined > 50
    # Linters take an example with the key `default` for a schema.
    assert without == {"list_protocols"}


@pytest.mark.service
def test_operation_documents_an_idempotency_key_if_it_reads_one(
    document: dict[str, Any], sqlite_service: RunningService
) -> None:
    documented, read = set(), set()
    with sqlite_service.new_client() as client:
        for address, operations in document["paths"].items():
            if "post" not in operations:
                continue
            named = [parameter["name"] for parameter in operations["post"].get("parameters", [])]
            if "Idempotency-Key" in named:
                documented.add(address)
            url = re.sub(r"\{\w+\}", "01JD3QZ6W9K0Y5T8H2V4B7N1XC", address)
            answer = client.post(url, headers={"Idempotency-Key": "not a key"}).json()
            if [problem["field"] for problem in answer.get("errors", [])] == ["Idempotency-Key"]:
                read.add(address)
    assert documented == read
    assert len(read) > 10
    assert "/api/v1/tokens" not in read, "its response, which would be stored, has a secret"


def test_operation_ids_are_unique(document: dict[str, dict[str, dict[str, dict[str, str]]]]) -> None:
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_run_request_schema_lists_its_fields(
    document: dict[str, Any],
) -> None:
    fields = document["components"]["schemas"]["RunFields"]
    assert {"algorithm", "environment", "stop", "config", "seeds"} <= set(fields["properties"])
    assert fields["required"] == ["algorithm", "environment", "stop"]


def test_address_of_a_name_allows_the_documented_methods_only(document: dict[str, Any], app: FastAPI) -> None:
    """Use `{some_id:ulid}` where a name such as `import` would be taken for an id."""
    methods = HttpMethods(app, catch_all=frontend.CATCH_ALL)
    others = {"head", "options"}
    wrong = {
        path: allowed
        for path, operations in document["paths"].items()
        if "{" not in path
        and (allowed := {method.lower() for method in methods.of(path)} - others)
        != operations.keys() - others
    }
    assert wrong == {}


def test_every_body_of_a_request_is_a_model(app: FastAPI) -> None:
    bodies = {
        route.name: route.body_field.field_info.annotation
        for context in iter_route_contexts(app.routes)
        if isinstance(route := context.original_route, APIRoute) and route.body_field
    }
    assert {"create_runs", "estimate_runs", "fork_run", "create_sweep", "create_study"} <= bodies.keys()
    # `add_points` also reads an Arrow stream. Of runs, algorithm and environment decide the fields.
    others = {name for name, kind in bodies.items() if not _is_model(kind)}
    assert others == {"add_points", "create_runs", "estimate_runs"}


def _is_model(kind: Any) -> bool:
    """Whether every value of the type is one of a model, or None."""
    if isinstance(kind, type):
        return issubclass(kind, BaseModel | NoneType)
    parts = get_args(kind)[:1] if hasattr(kind, "__metadata__") else get_args(kind)
    return bool(parts) and all(_is_model(part) for part in parts)


@pytest.mark.long
@pytest.mark.service
def test_openapi_module_prints_the_document_without_a_server(document: dict[str, object]) -> None:
    printed = subprocess.run([sys.executable, "-m", "backend.openapi"], capture_output=True, check=True)
    assert json.loads(printed.stdout) == document


def _operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def _models(base: type[BaseModel] = Schema) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


@pytest.fixture(scope="module")
def models(document: dict[str, Any]) -> dict[str, type[BaseModel]]:
    """The models of the document's schemas, by name. Enums and JSON values have none."""
    schemas = document["components"]["schemas"]
    by_name = {model.__name__: model for model in _models() if model.__name__ in schemas}
    assert schemas.keys() - by_name.keys() == {"JsonValue", "Role", "RunState"}
    return by_name


def test_every_field_is_described_where_it_is_declared(
    document: dict[str, Any], models: dict[str, type[BaseModel]]
) -> None:
    """Write a docstring below the field, or `Field(description=…)`."""
    for name, model in models.items():
        described = document["components"]["schemas"][name].get("properties", {})
        hints = get_type_hints(model, include_extras=True)
        for field, info in model.model_fields.items():
            assert (info.description or "").strip(), f"{name}.{field} has no text"
            # The document takes the text of the model, and nothing else: no text belongs to a name.
            assert described[info.alias or field]["description"] == info.description, f"{name}.{field}"
            # Nor does one belong to a type that several fields have.
            parts = [*_metadata(hints[field])]
            assert not any(getattr(part, "description", None) for part in parts), f"{name}.{field}"
            assert "description" not in json.dumps(described[info.alias or field].get("anyOf", [])), field


def _metadata(kind: Any) -> Iterator[Any]:
    yield from getattr(kind, "__metadata__", ())
    for part in get_args(kind):
        yield from _metadata(part)


def test_no_two_fields_of_a_schema_have_the_same_text(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        texts = Counter(field["description"] for field in schema.get("properties", {}).values())
        assert [text for text, n in texts.items() if n > 1] == [], name


def test_every_schema_is_described_by_the_docstring_of_its_class(
    document: dict[str, Any], models: dict[str, type[BaseModel]]
) -> None:
    schemas = document["components"]["schemas"]
    for name, model in models.items():
        assert vars(model).get("__doc__"), f"{name} has no docstring"
        assert schemas[name]["description"] == inspect.cleandoc(model.__doc__ or "")
    assert {name for name, schema in schemas.items() if not schema.get("description")} == {"JsonValue"}
    texts = Counter(schema.get("description") for schema in schemas.values())
    assert [text for text, n in texts.items() if n > 1] == []


def test_every_parameter_is_described(document: dict[str, Any]) -> None:
    """Give it a text in `Path`, `Query` or `Header`."""
    without = {
        f"{operation['operationId']}: {parameter['name']}"
        for operation in _operations(document)
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    }
    assert without == set()


def _patterns(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(pattern := part.get("pattern"), str):
            yield pattern
        for inner in part.values():
            yield from _patterns(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _patterns(inner)


def test_text_that_misses_a_pattern_is_answered_in_words(document: dict[str, Any]) -> None:
    """Add the words to PATTERNS of backend/specs/fields.py."""
    own = {KEY_PATTERN, STARTS_PROTOCOL, SEED_PATTERN}  # validators with messages of their own
    for pattern in set(_patterns(document)) - own:
        error = {"type": "string_pattern_mismatch", "input": "x", "ctx": {"pattern": pattern}, "msg": pattern}
        assert pattern not in message_of(error), pattern


def _constants(part: object) -> Iterator[Any]:
    if isinstance(part, dict):
        yield from (value for name, value in part.items() if name == "const")
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _constants(inner)


def test_every_constant_is_text(document: dict[str, Any]) -> None:
    """The modules that openapi-python-client generates for others cannot be imported."""
    constants = list(_constants(document["components"]["schemas"]))
    assert {type(constant) for constant in constants} == {str}, constants


def test_fields_of_one_name_have_the_texts_of_their_meanings(document: dict[str, Any]) -> None:
    def text(name: str, field: str) -> str:
        return str(document["components"]["schemas"][name]["properties"][field]["description"])

    assert text("GroupStatistics", "runs") == "Score of each run of the group."
    assert text("GroupCurve", "runs") == "Ids of the runs."
    assert text("WaitingRunOut", "reason") == "Why no host has claimed the run yet."
    assert text("TransitionOut", "reason") == "Why the state changed."
    assert text("GroupCurve", "mean").startswith("Mean over the runs at each grid point; null where")
    assert text("MetricSummary", "mean") == "Mean of all values."
    assert "of an external run, the name" in text("RunOut", "algorithm")
    assert text("LoginRequest", "name") == "Name with which you log in."
    assert text("FieldOut", "name") == "How `filter` and `sort` of `GET /runs` name the field."


def test_every_tag_is_described_by_the_module_of_its_routes(document: dict[str, Any]) -> None:
    texts = {tag["name"]: tag["description"] for tag in document["tags"]}
    assert {tag for operation in _operations(document) for tag in operation["tags"]} == texts.keys()
    assert texts["users"] == "Users and their roles."
    assert all(texts.values())
    assert len(set(texts.values())) == len(texts)


def test_every_request_body_has_an_example_and_examples_are_valid(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name, example in examples.EXAMPLES.items():
        jsonschema.validate(example, schemas[name] | {"components": document["components"]})
    bodies = re.findall(
        r"#/components/schemas/(\w+)",
        json.dumps([operation.get("requestBody") for operation in _operations(document)]),
    )
    assert {name for name in bodies if "examples" not in schemas[name]} == set()
    for name in bodies:
        for example in schemas[name]["examples"]:
            jsonschema.validate(example, schemas[name] | {"components": document["components"]})


def test_examples_of_properties_are_valid(document: dict[str, Any]) -> None:
    examined = 0
    for schema in document["components"]["schemas"].values():
        for described in schema.get("properties", {}).values():
            for example in described.get("examples", []):
                jsonschema.validate(example, described | {"components": document["components"]})
                examined += 1
    assert examined > 80


def test_payloads_of_events_have_schemas_that_published_changes_match(document: dict[str, Any]) -> None:
    content = document["paths"]["/api/v1/events"]["get"]["responses"]["200"]["content"]
    payload = content["text/event-stream"]["schema"]["contentSchema"]
    schema = payload | {"components": document["components"]}
    with Session() as session:
        record_change(session, "run", "a run", state="running", changed=["episodes"])
        record_change(session, "host", "a host")
        record_change(session, "job", "a job", state="done", parents={"run": "a run"}, changed=["video"])
        for change in take_changes(session):
            jsonschema.validate(change.model_dump(mode="json"), schema)
    assert list(jsonschema.Draft202012Validator(schema).iter_errors({}))
