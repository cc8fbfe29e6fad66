"""Branches: continuations of a recorded episode, played by a worker from any of its decisions."""

from typing import Annotated

from fastapi import Path, Query, Request, Response
from sqlalchemy.orm import Session

from backend.db import Branch
from backend.db.job import BRANCH
from backend.fleet.jobs import repository as jobs
from backend.http.access import Operator, Viewer
from backend.http.dependencies import Artifacts, ReadSession, Work, WriteSession
from backend.http.figures import FORMATS, FormOptions, RequestedForm, figure_response
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit, Ulid
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.replays.branches import figures as drawn
from backend.replays.branches import repository, service
from backend.replays.branches.outcomes import Returns
from backend.replays.branches.schemas import BranchOut, BranchPage, BranchRequest
from backend.specs.fields import ULID

router = ResourceRouter(prefix="/branches", tags=["branches"], route_class=IdempotentRoute)
figures = ResourceRouter(prefix="/figures", tags=["figures"])

BranchId = Annotated[str, Path(pattern=ULID, description="Id of the branch.")]


@router.get("", response_model=BranchPage)
def list_branches(
    principal: Viewer,
    session: ReadSession,
    episode: Annotated[str | None, Query(pattern=ULID, description="Only of this episode.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Branches, latest first."""
    rows, next_cursor = repository.page(session, episode_id=episode, limit=limit, cursor=cursor)
    return json_response(BranchPage(items=_out(session, rows), next_cursor=next_cursor))


@router.post("", status_code=201)
def create_branch(body: BranchRequest, principal: Operator, artifacts: Artifacts, work: Work) -> BranchOut:
    """Branch from a decision of a recorded episode: a worker plays continuations from there with a
    checkpoint's policy, whose returns show what the state was worth beside what the agent expected of it.

    Too many that wait: 429.
    """
    branch, job = service.create(work, artifacts, body, principal.id)
    return BranchOut.of(branch, job, repository.run_names(work.write, {branch.policy_run_id}))


@router.get("/{branch_id}")
def read_branch(branch_id: BranchId, principal: Viewer, session: ReadSession) -> BranchOut:
    """One branch."""
    return _out(session, [service.get(session, branch_id)])[0]


@router.delete("/{branch_id}", status_code=204)
def delete_branch(branch_id: BranchId, principal: Operator, session: WriteSession) -> None:
    """Delete a branch. If a worker is playing it, the result is discarded."""
    service.delete(session, branch_id)


def _out(session: Session, rows: list[Branch]) -> list[BranchOut]:
    playing = jobs.find_all(session, BRANCH, [row.id for row in rows])
    names = repository.run_names(session, {row.policy_run_id for row in rows})
    return [BranchOut.of(row, playing.get(row.id), names) for row in rows]


@figures.get("/branch", response_model=None, responses=FORMATS)
def branch_fan(
    request: Request,
    branch: Annotated[Ulid, Query(description="Branch id.")],
    principal: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    options: FormOptions,
    form: RequestedForm,
    returns: Annotated[
        Returns,
        Query(
            description="`discounted`: of the rewards that the agent learns from, which V predicts. `true`: "
            "of true rewards, undiscounted."
        ),
    ] = "discounted",
) -> Response:
    """The continuations of a branch that has been played, beside the episode itself and the agent's V."""
    figure = drawn.draw_branch(session, artifacts, branch, returns, options)
    return figure_response(request, figure, form, "branch")
