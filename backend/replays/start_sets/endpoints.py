"""Start sets: states of recorded games from which agents are evaluated (Nair et al. 2015, section 5.2)."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query, Response

from backend.db.job import VERIFICATION
from backend.fleet.jobs import repository as jobs
from backend.http.access import Operator, Viewer
from backend.http.dependencies import Artifacts, ReadSession, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.platform.text import Text
from backend.replays.start_sets import service
from backend.replays.start_sets.schemas import (
    StartSetImport,
    StartSetOut,
    StartSetPage,
    StartSetRequest,
    StartSetSource,
    StartSetSources,
)
from backend.runs.starts import repository
from backend.specs.fields import ULID
from backend.specs.start_sets import StartSetFile

router = ResourceRouter(prefix="/start-sets", tags=["start sets"], route_class=IdempotentRoute)

SetId = Annotated[str, Path(pattern=ULID, description="Id of the start set.")]


@router.get("")
def list_start_sets(
    principal: Viewer,
    session: ReadSession,
    environment: Annotated[
        Text | None, Query(max_length=200, description="Only sets of this environment.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> StartSetPage:
    """Start sets, each version of a name by itself, latest first."""
    rows, next_cursor = repository.page(session, environment=environment, limit=limit, cursor=cursor)
    verifying = jobs.find_all(session, VERIFICATION, [row.id for row in rows])
    items = [StartSetOut.of(row, verifying.get(row.id)) for row in rows]
    return StartSetPage(items=items, next_cursor=next_cursor)


@router.post("", status_code=201)
def create_start_set(
    body: StartSetRequest,
    principal: Operator,
    session: ReadSession,
    artifacts: Artifacts,
    writing: WriteSession,
) -> StartSetOut:
    """Create a start set from recorded episodes of agents, or from recordings of people: states sampled at
    random from their games. A set of scripts' recordings is never one of people.

    A worker then replays the games and keeps the emulator's state at each point; until then the set is
    `verifying`. The set has its own copy of seeds and actions.
    """
    if body.run is not None:
        source = service.games_of_run(session, artifacts, body.run, body.kind)
    elif body.episodes is not None:
        source = service.games_of_episodes(session, artifacts, body.episodes)
    elif body.environment is not None:
        source = service.games_of_environment(session, body.environment, body.players or "people")
    else:
        source = service.games_of_recordings(session, body.recordings or [])
    content = service.sample(source, body.points, body.seed)
    row = service.create(writing, body.name, content, origin=source.origin, created_by=principal.id)
    return StartSetOut.of(row, None)


@router.post("/import", status_code=201)
def import_start_set(body: StartSetImport, principal: Operator, session: WriteSession) -> StartSetOut:
    """Import an exported start set. A worker verifies every state of it before agents can start from it."""
    content = service.checked(body.file)
    origin = f"imported from {body.file.name}@{body.file.version}"
    row = service.create(
        session, body.name or body.file.name, content, origin=origin, created_by=principal.id
    )
    return StartSetOut.of(row, None)


@router.get("/sources")
def list_start_set_sources(principal: Viewer, session: ReadSession) -> StartSetSources:
    """The Atari games of which people or scripts have played games that a set can have; of these it has the
    latest."""
    return StartSetSources(
        items=[StartSetSource.model_validate(asdict(games)) for games in service.sources(session)]
    )


@router.get("/{set_id:ulid}")
def read_start_set(set_id: SetId, principal: Viewer, session: ReadSession) -> StartSetOut:
    """One version of a start set."""
    return StartSetOut.of(service.get(session, set_id), jobs.find(session, VERIFICATION, set_id))


@router.get("/{set_id}/export", response_model=StartSetFile)
def export_start_set(set_id: SetId, principal: Viewer, session: ReadSession) -> Response:
    """The seeds, actions and points of a verified set, as a file that another installation can import."""
    row = service.get(session, set_id, with_content=True)
    response = json_response(service.export(row))
    name = f"{row.name}-v{row.version}.json"
    response.headers["Content-Disposition"] = f'attachment; filename="start-set-{name}"'
    return response


@router.delete("/{set_id:ulid}", status_code=204)
def delete_start_set(set_id: SetId, principal: Operator, session: WriteSession) -> None:
    """Delete a version of a start set. Scores from it stay; nothing can be evaluated from it any more."""
    service.delete(session, set_id)
