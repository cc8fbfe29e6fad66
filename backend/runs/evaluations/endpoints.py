"""Scores of checkpoints under an evaluation protocol."""

from typing import Annotated

from fastapi import Query, Response

from backend.db.job import EVALUATION
from backend.fleet.jobs import repository as jobs
from backend.http.access import Operator, Viewer
from backend.http.dependencies import AppStateDep, ReadSession, Work, WriteSession, require_room
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit, RunId
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.runs.evaluations import random_agent, repository, service
from backend.runs.evaluations.schemas import (
    EvaluationOut,
    EvaluationPage,
    EvaluationRequest,
    ProtocolOut,
    Protocols,
    RandomEvaluationRequest,
)
from backend.runs.runs import external
from backend.runs.runs import service as runs
from backend.runs.runs.schemas import RunOut
from backend.runs.starts import service as starts
from backend.specs.protocols import protocols_of

router = ResourceRouter(tags=["evaluations"], route_class=IdempotentRoute)
_OF_RUN = "/runs/{run_id}/evaluations"


@router.get(_OF_RUN, response_model=EvaluationPage)
def list_evaluations(
    run_id: RunId,
    principal: Viewer,
    session: ReadSession,
    superseded: Annotated[
        bool, Query(description="Include evaluations after the checkpoint that a later attempt resumed from.")
    ] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """A run's evaluations, by agent steps, latest first."""
    run = runs.get(session, run_id)
    rows, next_cursor = repository.page(session, run_id, superseded=superseded, limit=limit, cursor=cursor)
    doing = jobs.find_all(session, EVALUATION, [row.id for row in rows])
    items = [EvaluationOut.of(row, doing.get(row.id), run) for row in rows]
    return json_response(EvaluationPage(items=items, next_cursor=next_cursor))


@router.get(f"{_OF_RUN}/protocols")
def list_protocols(run_id: RunId, principal: Viewer, session: ReadSession) -> Protocols:
    """The protocols under which the run's checkpoints can be evaluated, with those of its start sets."""
    spec = external.trainable_spec(runs.get(session, run_id), "evaluate")
    supported = spec.catalogue_environment.protocols
    items = [
        ProtocolOut.model_validate(
            protocol.model_dump(exclude={"environment_settings", "greedy"}) | {"n_episodes": n_episodes}
        )
        for protocol, n_episodes in (
            *((protocol, service.N_EPISODES) for protocol in protocols_of(supported)),
            *starts.protocols(session, spec.environment, supported),
        )
    ]
    return Protocols(default=spec.evaluation_protocol, items=items)


@router.post(_OF_RUN, status_code=201)
def request_evaluation(
    run_id: RunId, principal: Operator, session: WriteSession, body: EvaluationRequest | None = None
) -> EvaluationOut:
    """Evaluate a checkpoint; by default the latest, under the protocol of the run's own evaluations."""
    body = body or EvaluationRequest()
    evaluation, job = service.request(
        session,
        run_id,
        protocol=body.protocol,
        n_episodes=body.episodes,
        seed=body.seed,
        checkpoint_id=body.checkpoint,
        requested_by=principal.id,
    )
    return EvaluationOut.of(evaluation, job, runs.get(session, run_id))


@router.post("/evaluations/random", status_code=201)
def evaluate_random_agent(
    body: RandomEvaluationRequest, principal: Operator, state: AppStateDep, work: Work
) -> RunOut:
    """Evaluate a random agent: creates a run of the algorithm `random`, which takes one decision and then is
    evaluated. Its last evaluation has the score."""
    require_room(state.settings)
    run = random_agent.create(work, body, principal)
    state.limits.quotas.charge(principal, state.settings, n_runs=1)
    return RunOut.of(run)
