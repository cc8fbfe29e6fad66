"""Statistical comparison of groups of runs: confidence intervals and significance tests."""

from typing import Annotated, Literal

from fastapi import Query

from backend.analysis.comparisons import run_groups, service
from backend.analysis.comparisons.schemas import At, Comparison, GroupSort, RunGroupPage, Score
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession
from backend.http.pages import Cursor, Limit, Ulid
from backend.http.routing import ResourceRouter
from backend.http.streaming import ListTurn
from backend.platform.text import Text
from backend.runs.runs import listing
from backend.specs.states import RunState

router = ResourceRouter(prefix="/comparisons", tags=["comparisons"])


@router.get("")
def compare_runs(
    principal: Viewer,
    turn: ListTurn,
    session: ReadSession,
    run: Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")],
    score: Annotated[
        Score,
        Query(description="Mean return of the last 100 training episodes, or of the latest evaluation."),
    ] = "training",
    at: Annotated[
        At,
        Query(
            description="At the last step where all runs of an environment that have not failed, been lost "
            "or been stopped have a score, or at their ends."
        ),
    ] = "common",
    threshold: Annotated[
        float | None,
        Query(
            allow_inf_nan=False,
            description="Also return when this score is first reached: by the mean of 100 training episodes, "
            "or by an evaluation of at least 30 episodes.",
        ),
    ] = None,
    protocol: Annotated[
        Text | None,
        Query(max_length=50, description="Protocol of the evaluations; default: that of each group."),
    ] = None,
    baseline: Annotated[
        Text | None,
        Query(
            max_length=50,
            description="Id of the group with which the others of its environment are compared; default, and "
            "in other environments: the first.",
        ),
    ] = None,
    pairs: Annotated[
        Literal["baseline", "all"],
        Query(
            description="Compare each group with the baseline, or all pairs: p-values are corrected for it."
        ),
    ] = "baseline",
) -> Comparison:
    """Groups of runs compared: interquartile means, medians, times to a threshold, probabilities of
    improvement, and whether a difference is significant."""
    return service.compare(session, run, score, at, threshold, protocol, baseline, all_pairs=pairs == "all")


@router.get("/groups")
def list_run_groups(
    principal: Viewer,
    turn: ListTurn,
    session: ReadSession,
    by: Annotated[
        Text,
        Query(
            max_length=250,
            description="What the runs of a group have in common: `seed`: everything except the seed; "
            "`algorithm`, `environment`, `group`, `state`, `host` or `queue`; or a setting such as "
            "`config.learning_rate`.",
        ),
    ],
    state: Annotated[list[RunState], Query(description="Any of these.")] = [],  # noqa: B006
    archived: Annotated[
        Literal["false", "true", "all"],
        Query(description="Only archived runs, only runs that are not archived (the default), or all."),
    ] = "false",
    filter: Annotated[Text | None, Query(max_length=2_000, description="As for `GET /runs`.")] = None,
    sort: Annotated[
        GroupSort | None,
        Query(
            description="Order of the groups, with `-` descending; those without a value come last. "
            "`score` is the median, `created_at` the time of the latest run. Default: by the value of a "
            "setting, otherwise the group with the latest run first."
        ),
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> RunGroupPage:
    """Runs in groups, in the requested order."""
    node = listing.build_filter(
        states=state,
        algorithms=[],
        environments=[],
        tags=[],
        group=None,
        archived={"false": False, "true": True, "all": None}[archived],
        search=None,
        filter_text=filter,
    )
    listing.check_compared(session, node)
    return run_groups.page(session, node, by, sort, limit, cursor)
