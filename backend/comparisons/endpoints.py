"""Route of comparisons."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from backend.auth.access import Viewer
from backend.comparisons import run_groups, service
from backend.comparisons.schemas import At, By, Comparison, RunGroupPage, Score
from backend.dependencies import ReadSession
from backend.ids import Ulid
from backend.pagination import Cursor, Limit
from backend.runs import service as runs
from backend.specs.states import RunState
from backend.text import Text

router = APIRouter(prefix="/comparisons", tags=["comparisons"])


@router.get("")
def compare_runs(
    actor: Viewer,
    session: ReadSession,
    run: Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")],
    score: Annotated[
        Score,
        Query(description="Mean return of the last 100 training episodes, or of the newest evaluation."),
    ] = "training",
    at: Annotated[
        At, Query(description="Where the shortest run of a world ends, or each run at its own end.")
    ] = "common",
    threshold: Annotated[
        float | None, Query(allow_inf_nan=False, description="A score: when is it first reached?")
    ] = None,
) -> Comparison:
    """Groups of seeds side by side: interquartile means, times to a score, and which beats which."""
    return service.compare(session, run, score, at, threshold)


@router.get("/groups")
def list_run_groups(
    actor: Viewer,
    session: ReadSession,
    by: Annotated[By, Query(description="What the runs of a group share; by `seed`, all but the seed.")],
    state: Annotated[list[RunState], Query(description="Any of these.")] = [],  # noqa: B006
    archived: Literal["false", "true", "all"] = "false",
    filter: Annotated[Text | None, Query(max_length=2_000, description="As for `GET /runs`.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> RunGroupPage:
    """The list of runs in groups, the one with the newest run first."""
    asked = runs.listing(
        states=state,
        algorithms=[],
        environments=[],
        tags=[],
        group=None,
        archived={"false": False, "true": True, "all": None}[archived],
        search=None,
        filter_text=filter,
    )
    return run_groups.page(session, asked, by, limit, cursor)
