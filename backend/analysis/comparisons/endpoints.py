"""Statistical comparison of groups of runs: confidence intervals, significance tests, and seeds for these."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Response
from sqlalchemy.orm import Session

from backend.analysis.comparisons import run_groups, service, verdicts
from backend.analysis.comparisons.differences import compare_two
from backend.analysis.comparisons.schemas import (
    At,
    Comparison,
    GroupSort,
    RunDifferences,
    RunGroupPage,
    Score,
    SeedsRequest,
)
from backend.analysis.comparisons.table_files import TableName, comparison_csv, comparison_latex
from backend.http.access import Operator, Viewer
from backend.http.dependencies import AppStateDep, ReadSession, Work, require_room
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit, Ulid
from backend.http.routing import ResourceRouter
from backend.http.streaming import ListTurn
from backend.platform.text import Text
from backend.runs.runs import listing, requests
from backend.runs.runs.schemas import RunItems, RunOut
from backend.specs.run_fields import ProjectName
from backend.specs.states import RunState

router = ResourceRouter(prefix="/comparisons", tags=["comparisons"], route_class=IdempotentRoute)

_TABLE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {media: {"schema": {"type": "string"}} for media in ("text/csv", "application/x-tex")},
        "description": "A file with the table.",
    }
}


@dataclass(frozen=True)
class _Wanted:
    """Which runs are compared, and how."""

    run: list[str]
    score: Score
    at: At
    threshold: float | None
    protocol: str | None
    baseline: str | None
    pairs: Literal["baseline", "all"]

    def compare(self, session: Session) -> Comparison:
        """Compare them."""
        given = (self.run, self.score, self.at, self.threshold, self.protocol, self.baseline)
        return service.compare(session, *given, all_pairs=self.pairs == "all")


async def _wanted(
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
) -> _Wanted:
    return _Wanted(run, score, at, threshold, protocol, baseline, pairs)


Wanted = Annotated[_Wanted, Depends(_wanted)]


@router.get("")
def compare_runs(principal: Viewer, turn: ListTurn, session: ReadSession, wanted: Wanted) -> Comparison:
    """Groups of runs compared: interquartile means, medians, times to a threshold, probabilities of
    improvement, and whether a difference is significant."""
    return wanted.compare(session)


@router.get("/table", response_model=None, responses=_TABLE)
def export_comparison(
    principal: Viewer,
    turn: ListTurn,
    session: ReadSession,
    wanted: Wanted,
    table: Annotated[
        TableName,
        Query(description="The scores of all groups, or how they differ from the baseline or each other."),
    ] = "scores",
    format: Annotated[
        Literal["csv", "latex"], Query(description="`latex` needs the package booktabs.")
    ] = "csv",
) -> Response:
    """A table of a comparison as a file."""
    comparison = wanted.compare(session)
    content = (comparison_csv if format == "csv" else comparison_latex)(comparison, table)
    media_type, ending = ("text/csv", "csv") if format == "csv" else ("application/x-tex", "tex")
    headers = {"Content-Disposition": f'attachment; filename="comparison-{table}.{ending}"'}
    return Response(content, media_type=media_type, headers=headers)


@router.get("/diff")
def read_differences(
    run: Annotated[list[Ulid], Query(min_length=2, max_length=2, description="Ids of two runs.")],
    principal: Viewer,
    session: ReadSession,
) -> RunDifferences:
    """What differs between two runs: settings, live changes, code, packages, host and command."""
    return compare_two(session, *run)


@router.post("/seeds", status_code=201)
def add_seeds(body: SeedsRequest, principal: Operator, state: AppStateDep, work: Work) -> RunItems:
    """Create and queue runs of the configs of these runs, with the lowest seeds that no run of a config
    has."""
    require_room(state.settings)
    created = verdicts.add_seeds(work, body.items, principal.id)
    state.limits.quotas.charge(principal, state.settings, n_runs=len(created))
    return RunItems(
        items=[RunOut.of(run) for run in created],
        warnings=requests.warnings(work.write, created),
        records_scripts=state.settings.record_scripts,
    )


@router.get("/groups")
def list_run_groups(
    principal: Viewer,
    turn: ListTurn,
    session: ReadSession,
    by: Annotated[
        Text,
        Query(
            max_length=250,
            description="What the runs of a group have in common: `config`, or `seed`: everything except the "
            "seed; `algorithm`, `environment`, `group`, `state`, `host` or `queue`; or a setting such as "
            "`config.learning_rate`.",
        ),
    ],
    state: Annotated[list[RunState], Query(description="Any of these.")] = [],  # noqa: B006
    archived: Annotated[
        Literal["false", "true", "all"],
        Query(description="Only archived runs, only runs that are not archived (the default), or all."),
    ] = "false",
    project: Annotated[
        ProjectName | None, Query(description="Only runs that are filed under this project.")
    ] = None,
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
        project=project,
        archived={"false": False, "true": True, "all": None}[archived],
        search=None,
        filter_text=filter,
    )
    listing.check_compared(session, node)
    return run_groups.page(session, node, by, sort, limit, cursor)
