"""Routes of evaluations."""

from typing import Annotated

from fastapi import APIRouter, Query

from backend.auth.access import Operator, Viewer
from backend.dependencies import ReadSession, WriteSession
from backend.evaluations import repository, service
from backend.evaluations.schemas import EvaluationOut, EvaluationPage, EvaluationRequest
from backend.idempotency.route import IdempotentRoute
from backend.ids import Ulid
from backend.jobs import repository as jobs
from backend.pagination import Cursor, Limit
from backend.runs import service as runs

router = APIRouter(prefix="/runs/{run_id}/evaluations", tags=["evaluations"], route_class=IdempotentRoute)


@router.get("")
def list_evaluations(
    run_id: Ulid,
    actor: Viewer,
    session: ReadSession,
    superseded: Annotated[
        bool, Query(description="Also those after the checkpoint a later attempt went on from.")
    ] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> EvaluationPage:
    """A run's evaluations, of the newest agent steps first."""
    runs.get(session, run_id)
    rows, next_cursor = repository.page(session, run_id, superseded=superseded, limit=limit, cursor=cursor)
    doing = jobs.find_all(session, service.EVALUATION, [row.id for row in rows])
    items = [EvaluationOut.of(row, doing.get(row.id)) for row in rows]
    return EvaluationPage(items=items, next_cursor=next_cursor)


@router.post("", status_code=201)
def request_evaluation(
    run_id: Ulid, actor: Operator, session: WriteSession, body: EvaluationRequest | None = None
) -> EvaluationOut:
    """Score a checkpoint from fresh starts; by default the newest, by the world's own protocol."""
    evaluation, job = service.request(session, run_id, body or EvaluationRequest())
    return EvaluationOut.of(evaluation, job)
