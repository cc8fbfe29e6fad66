"""Algorithms and environments, with JSON Schemas of their settings."""

import json
from functools import cache, lru_cache
from typing import Annotated

from fastapi import Path, Request, Response
from sqlalchemy.orm import Session

from backend.fleet.hosts.repository import custom_environments
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession
from backend.http.routing import ResourceRouter
from backend.http.transfer import JsonDocument
from backend.platform.errors import NotFound
from backend.runs.catalogue import service
from backend.runs.catalogue.schemas import (
    AlgorithmOut,
    AlgorithmPage,
    CommandPage,
    EnvironmentOut,
    EnvironmentPage,
)
from backend.specs.environments.custom import CustomEnvironment
from backend.specs.problems import quoted, similar_ids

router = ResourceRouter(tags=["catalogue"])


@router.get("/algorithms", response_model=AlgorithmPage)
def list_algorithms(request: Request, principal: Viewer) -> Response:
    """Every algorithm, with the JSON Schema of its settings. The response has an `ETag`."""
    return _algorithms().respond(request)


@router.get("/algorithms/{algorithm_id}")
def read_algorithm(
    algorithm_id: Annotated[str, Path(description="Id of the algorithm.")], principal: Viewer
) -> AlgorithmOut:
    """One algorithm."""
    algorithm = service.algorithms().get(algorithm_id)
    if algorithm is None:
        known = ", ".join(service.algorithms())
        raise NotFound(f"algorithm {quoted(algorithm_id)} does not exist; use one of {known}")
    return algorithm


@router.get("/environments", response_model=EnvironmentPage)
def list_environments(request: Request, principal: Viewer, session: ReadSession) -> Response:
    """Every environment, with the JSON Schema of its settings; hosts' custom environments last. The response
    has an `ETag`."""
    return _environments(session).respond(request)


@router.get("/environments/{environment_id:path}")
def read_environment(
    environment_id: Annotated[
        str, Path(description="Id of the environment, whose slash is part of the path, as in `ALE/Pong-v5`.")
    ],
    principal: Viewer,
    session: ReadSession,
) -> EnvironmentOut:
    """One environment; its id may contain a slash, as in `ALE/Pong-v5`."""
    known = service.environments(session)
    environment = known.get(environment_id)
    if environment is None:
        similar = similar_ids(environment_id, known)
        hint = f"did you mean {' or '.join(similar)}?" if similar else "see GET /environments"
        raise NotFound(f"environment {quoted(environment_id)} does not exist: {hint}")
    return environment


@router.get("/commands")
def list_commands(principal: Viewer, session: ReadSession) -> CommandPage:
    """Commands of hosts that runs start, with the JSON Schema of their parameters. Files on the hosts name
    them."""
    return CommandPage(items=service.commands(session))


@cache
def _algorithms() -> JsonDocument:
    """Every algorithm as one JSON document, serialised once."""
    return JsonDocument.of(AlgorithmPage(items=list(service.algorithms().values())))


def _environments(session: Session) -> JsonDocument:
    """Every environment as one JSON document, serialised once for the same custom environments."""
    custom = custom_environments(session)
    return _document_of(
        json.dumps([(environment.model_dump(mode="json"), hosts) for environment, hosts in custom.values()])
    )


@lru_cache(maxsize=4)
def _document_of(custom_json: str) -> JsonDocument:
    custom = [(CustomEnvironment.model_validate(fields), hosts) for fields, hosts in json.loads(custom_json)]
    by_id = service.with_custom({environment.id: (environment, hosts) for environment, hosts in custom})
    return JsonDocument.of(EnvironmentPage(items=list(by_id.values())))
