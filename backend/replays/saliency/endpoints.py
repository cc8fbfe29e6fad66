"""Saliency of recorded decisions: where an agent's input matters to what it does and expects."""

from functools import partial
from typing import Annotated

from fastapi import Path, Query, Response

from backend.db import Episode, Job
from backend.db.job import SALIENCY
from backend.fleet.jobs import repository as jobs
from backend.http.access import Viewer
from backend.http.dependencies import AppStateDep, ReadSession, RequestContextDep
from backend.http.rendering import RenderingPending, found_or_requested
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.replays.episodes import service as episodes
from backend.replays.saliency import service
from backend.replays.saliency.schemas import SaliencyOut
from backend.specs.fields import ULID

router = ResourceRouter(tags=["episodes"])


@router.get(
    "/episodes/{episode_id}/saliency",
    response_model=SaliencyOut,
    responses={
        202: {
            "model": RenderingPending,
            "description": "Not computed yet; retry after `Retry-After` seconds.",
        }
    },
)
async def read_saliency(
    episode_id: Annotated[str, Path(pattern=ULID, description="Id of the episode.")],
    principal: Viewer,
    session: ReadSession,
    state: AppStateDep,
    context: RequestContextDep,
    decision: Annotated[int, Query(ge=0, le=2**31 - 1, description="Number of the decision, from 0.")],
    checkpoint: Annotated[
        str | None,
        Query(
            pattern=ULID,
            description="Id of a checkpoint of any run in the same environment; default: that of the "
            "episode's run whose agent steps are nearest to the episode's.",
        ),
    ] = None,
    again: Annotated[bool, Query(description="Compute again if that has failed.")] = False,
) -> Response:
    """How an agent's logits, or Q, and its V change where its input at a decision is blurred, computed on the
    first request. Too many that are not computed yet: 429."""

    def find() -> tuple[Episode, Response | Job | None]:
        episode = episodes.get(session, episode_id)
        chosen, _ = service.policy_of(session, episode, decision, checkpoint)
        row = service.stored(session, episode_id, decision, chosen.id)
        if row is not None and row.map is not None:
            return episode, json_response(SaliencyOut.of(row))
        job = None if row is None else jobs.find(session, SALIENCY, row.id)
        session.close()  # so that no connection is held during the wait for a turn
        return episode, job

    request = partial(service.request, decision=decision, checkpoint_id=checkpoint, again=again)
    return await found_or_requested(state, context, find, request)
