"""Series over REST: names, charts, groups of seeds, exports."""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.analysis.metrics import npz, repository, tensorboard_files
from backend.analysis.metrics.axes import Axes, with_scales
from backend.analysis.metrics.charts import LARGE_BUCKETS, WINDOW, SeriesBuckets, curves
from backend.analysis.metrics.export_common import ExportedRun
from backend.analysis.metrics.schemas import Format
from backend.analysis.metrics.seed_groups import group_curve
from backend.db import Run, Series
from backend.db.engine import reading
from backend.platform.errors import Invalid, NotFound
from backend.runs.runs import listing
from backend.runs.runs import repository as run_rows
from backend.runs.runs.groups import group_key, surplus_runs
from backend.specs.extras import installed
from backend.specs.run import in_declared_order
from backend.specs.run_fields import EXTERNAL
from backend.statistics.columns import Array
from backend.statistics.grouping import Spread, interval_name
from callboard.known_tags import EPISODE_RETURN, StepUnit, return_candidates

MAX_BUCKETS = 250_000
"""Maximum number of buckets per response, whose JSON has some 25 MB."""

_large = Lock()

ANY_SOURCE = "*"
MAX_CANDIDATES = 10

MAX_MATCHED = 1_000
"""Runs of one export by a filter."""


@dataclass(frozen=True)
class ChartRequest:
    """Parameters of `GET /series`."""

    runs: Sequence[str]
    metrics: Sequence[str]
    sources: Sequence[str]
    axes: Axes
    grouped: bool
    spread: Spread
    since: Sequence[int]
    is_merged: bool = False
    """Whether consecutive buckets at one x are merged."""
    scored: bool = False
    """Whether `rollout/episode_return` stands for the return metric of each run."""


def series_of(session: Session, run_id: str) -> Sequence[Series]:
    """The series of one run that have points.

    Raises:
        NotFound: there is no such run.
    """
    find_runs(session, [run_id])
    return [series for series in repository.list_series(session, [run_id]) if series.n_points]


def return_of(session: Session, run_id: str) -> tuple[str | None, list[str]]:
    """A run's return metric, and without one the metrics that may be it."""
    run = find_runs(session, [run_id])[run_id]
    names = dict.fromkeys(series.metric for series in repository.list_series(session, [run_id]))
    if run.return_metric is not None or run.origin != EXTERNAL:
        return run.return_metric, []
    return None, return_candidates(names)[:MAX_CANDIDATES]


def metrics_of(session: Session, run_ids: Sequence[str]) -> list[tuple[str, int]]:
    """The metrics that some of the runs have points of, with the number of those runs.

    Raises:
        NotFound: there is no such run.
    """
    find_runs(session, run_ids)
    return repository.count_runs_by_metric(session, run_ids)


def chart(session: Session, request: ChartRequest) -> memoryview:
    """A `schemas.Chart` as JSON.

    Raises:
        NotFound: there is no such run.
        Invalid: the response would be too large, or the number of revisions in `since` is wrong.
    """
    runs = find_runs(session, request.runs)
    axes = with_scales(session, request.axes, runs.values())
    since = revisions_had(request.since, request.runs, runs, request.axes, axes)
    request = replace(request, axes=axes)
    candidates = choose(session, runs, request.metrics, request.sources, scored=request.scored)
    chosen = on_one_axis(candidates, request.axes.x)
    with bounded(len(chosen), request.axes):
        documents: Iterable[dict[str, Any]]
        if request.grouped:
            groups = seed_groups(session, chosen, runs)
            documents = (_group_document(session, request, members, runs, since) for members in groups)
        else:
            documents = _curve_documents(session, request, chosen, runs, since)
        return _chart_document(request, documents, len(candidates) - len(chosen))


@contextmanager
def bounded(n_series: int, axes: Axes) -> Iterator[None]:
    """Compute one large chart at a time, and none that is too large.

    Raises:
        Invalid: it is too large.
    """
    n_buckets = n_series * axes.max_points
    if n_buckets > MAX_BUCKETS:
        total = f"{n_series} series of up to {axes.max_points} points"
        message = f"{total} exceed the maximum of {MAX_BUCKETS:,} points: request fewer"
        raise Invalid.field("points", message)
    with _large if n_buckets > LARGE_BUCKETS else nullcontext():
        yield


def _chart_document(
    request: ChartRequest, documents: Iterable[dict[str, Any]], n_left_out: int
) -> memoryview:
    """The chart as JSON; each series or group is serialised, and freed, before the next."""
    axes = request.axes
    fields = {"x": axes.x, "smooth": axes.smooth, "scales": axes.scales}
    head = orjson.dumps(fields | {"n_left_out": n_left_out}).removesuffix(b"}")
    full, empty = (b"groups", b"series") if request.grouped else (b"series", b"groups")
    body = bytearray(b'%s,"%s":[],"%s":[' % (head, empty, full))
    for n, document in enumerate(documents):
        if n:
            body += b","
        body += orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    body += b"]}"
    return memoryview(body)


def training_started_at(session: Session, run_id: str) -> datetime:
    """The time at which a run's training time was 0.

    Raises:
        NotFound: there is no such run.
    """
    run = find_runs(session, [run_id])[run_id]
    return run.started_at or run.created_at


def require_format(file_format: Format) -> None:
    """Check that this process can write files of a format.

    Raises:
        Invalid: it lacks the extra `parquet`.
    """
    if file_format in ("csv", "parquet") and not installed("parquet"):
        others = "npz and tensorboard need nothing more"
        raise Invalid.missing_extra("format", f"{file_format} files", "parquet", others)


def export(
    db_engine: Engine, run_id: str, file_format: Format, started_at: datetime, selected: repository.Selected
) -> Generator[bytes]:
    """A run's points as a file, in pieces, from one snapshot of the database."""
    with reading(db_engine) as session:
        if file_format == "npz":
            yield from npz.npz(session, [run_id], selected)
            return
        provenance = _provenance(session, run_id)
        if file_format == "tensorboard":
            yield from tensorboard_files.of_run(session, run_id, provenance, started_at, selected)
            return
        from backend.analysis.metrics import export as exported  # pyarrow: optional, slow to import

        write = {"csv": exported.csv, "parquet": exported.parquet}
        yield from write[file_format](session, run_id, provenance, selected)


def export_runs(
    db_engine: Engine, run_ids: Sequence[str], file_format: Format, selected: repository.Selected
) -> Generator[bytes]:
    """The points of several runs as one file, in pieces, from one snapshot of the database."""
    if file_format == "npz":
        with reading(db_engine) as session:
            yield from npz.npz(session, list(find_runs(session, run_ids)), selected)
        return
    with reading(db_engine) as session:
        runs = [
            ExportedRun(
                id=run.id,
                name=run.name,
                started_at=run.started_at or run.created_at,
                description={
                    "id": run.id,
                    "name": run.name,
                    "tags": run.tags,
                    "notes": run.notes,
                    "spec": in_declared_order(run.spec),
                    "provenance": _provenance(session, run.id),
                },
            )
            for run in find_runs(session, run_ids).values()
        ]
        if file_format == "tensorboard":
            yield from tensorboard_files.of_runs(session, runs, selected)
            return
        from backend.analysis.metrics import export_runs as exported  # pyarrow: optional, slow to import

        write = {"csv": exported.csv, "parquet": exported.parquet}
        yield from write[file_format](session, runs, selected)


def matching(session: Session, filter_text: str) -> list[str]:
    """The ids of the runs that a filter matches.

    Raises:
        Invalid: the filter is invalid, or matches no run or more than `MAX_MATCHED`.
    """
    node = listing.parse_selection(filter_text)
    listing.check_compared(session, node)
    ids = run_rows.ids(session, node, limit=MAX_MATCHED + 1)
    if not ids:
        raise Invalid.field("filter", "matches no run")
    if len(ids) > MAX_MATCHED:
        raise Invalid.field("filter", f"matches more than {MAX_MATCHED:,} runs: narrow the filter")
    return ids


def _provenance(session: Session, run_id: str) -> list[dict[str, Any]]:
    """What trained each attempt, and where each process of a script came from."""
    attempts = [
        {"attempt": attempt.number, "host": attempt.host} | (attempt.provenance or {})
        for attempt in run_rows.attempts(session, run_id)
    ]
    processes = [
        {"source": process.source} | process.provenance for process in run_rows.processes(session, run_id)
    ]
    return attempts + processes


def find_runs(session: Session, run_ids: Sequence[str]) -> dict[str, Run]:
    """The runs by id, in the requested order.

    Raises:
        NotFound: one of them does not exist.
    """
    by_id = {run.id: run for run in repository.runs_of(session, run_ids)}
    for run_id in run_ids:
        if run_id not in by_id:
            raise NotFound(f"run {run_id} does not exist or has been deleted")
    return {run_id: by_id[run_id] for run_id in run_ids}


def revisions_had(
    given: Sequence[int], run_ids: Sequence[str], runs: Mapping[str, Run], asked: Axes, axes: Axes
) -> dict[str, int] | None:
    """By run id, the revision that a client has; None for a client without data, or with data of other
    automatic scales.

    Args:
        given: one revision for all runs, or one per run.
        run_ids: the runs, in the requested order.
        runs: the runs by id.
        asked: the requested axes.
        axes: the horizontal axes, with the scales of the runs.

    Raises:
        Invalid: the number of revisions is wrong.
    """
    if not given:
        return None
    if len(given) not in (1, len(run_ids)):
        message = f"must be one revision, or one per run: got {len(given)} revisions for {len(run_ids)} runs"
        raise Invalid.field("since_revision", message)
    if asked.scale is None and [*asked.scales_had] != axes.scales:
        return None
    revisions = given if len(given) == len(run_ids) else [given[0]] * len(run_ids)
    # A client with a later revision has the data of another database: it starts from scratch.
    return {run: at if at <= runs[run].revision else -1 for run, at in zip(run_ids, revisions, strict=True)}


def choose(
    session: Session,
    runs: Mapping[str, Run],
    metrics: Sequence[str],
    sources: Sequence[str],
    *,
    scored: bool = False,
) -> list[Series]:
    """The requested series, by run and then by metric in the requested order.

    The default source is the run as a whole, or, for a metric that only single sources have, all of these.
    Of a run without `rollout/episode_return` its return metric is taken instead, under that name; with
    `scored`, also of a run that has both.
    """
    by_name: dict[tuple[str, str], list[Series]] = {}
    returns: dict[str, str] = {}
    if EPISODE_RETURN in metrics:
        returns = {run.id: run.return_metric for run in runs.values() if run.return_metric is not None}
    for series in repository.list_series(session, list(runs), [*metrics, *set(returns.values())]):
        by_name.setdefault((series.run_id, series.metric), []).append(series)
    chosen = []
    for run in runs:
        for metric in dict.fromkeys(metrics):
            recorded = by_name.get((run, metric), [])
            if metric == EPISODE_RETURN and returns.get(run, metric) != metric and (scored or not recorded):
                instead = by_name.get((run, returns[run]), [])
                recorded = [_rename(series, metric) for series in instead] or recorded
            if ANY_SOURCE in sources:
                chosen += recorded
            elif sources:
                chosen += [series for series in recorded if series.source in sources]
            else:
                chosen += [series for series in recorded if series.source == ""] or recorded
    return chosen


def stored_returns(session: Session, runs: Iterable[Run], chosen: Sequence[Series]) -> set[str]:
    """The stored names of the returns among series that `choose` has chosen from these runs."""
    returns = [series for series in chosen if series.metric == EPISODE_RETURN]
    others = {name for run in runs if (name := run.return_metric) and name != EPISODE_RETURN}
    stored: dict[int, str] = {}
    if others:
        rows = repository.list_series(session, [series.run_id for series in returns], [*others])
        stored = {row.id: row.metric for row in rows}
    return {stored.get(series.id, EPISODE_RETURN) for series in returns}


def _rename(series: Series, metric: str) -> Series:
    """A copy of a series' row under another name, which no session knows."""
    columns = {column.name: getattr(series, column.name) for column in Series.__table__.columns}
    return Series(**columns | {"metric": metric})


def on_one_axis(chosen: Sequence[Series], x: str) -> list[Series]:
    """Those of the series that can be drawn on an axis of steps together with the others of their metric.

    Those in agent steps, if there are any; else those in iterations; else those in seconds. An axis of frames
    or updates has series in agent steps only; all have a training time and a number of episodes.
    """
    if x not in ("agent_steps", "frames", "updates"):
        return list(chosen)
    units: dict[str, set[str]] = {}
    for series in chosen:
        units.setdefault(series.metric, set()).add(series.step_unit)
    drawn = {metric: axis_unit(metric_units, x) for metric, metric_units in units.items()}
    return [series for series in chosen if series.step_unit == drawn[series.metric]]


def axis_unit(units: Collection[str], x: str) -> StepUnit:
    """What an axis of steps counts with series of these units."""
    if x != "agent_steps" or not units or "agent_steps" in units:
        return "agent_steps"
    return "iterations" if "iterations" in units else "seconds"


def seed_groups(
    session: Session, chosen: Iterable[Series], runs: Mapping[str, Run]
) -> Iterable[list[Series]]:
    """The series of runs that differ in their seed alone, by metric and source; without runs that are no
    further samples."""
    groups: dict[tuple[str, str, str], list[Series]] = {}
    surplus = surplus_runs(runs.values(), run_rows.lineage_roots(session, runs.values()))
    for series in chosen:
        if series.run_id in surplus:
            continue
        key = (group_key(runs[series.run_id]), series.metric, series.source)
        groups.setdefault(key, []).append(series)
    return groups.values()


def _curve_documents(
    session: Session,
    request: ChartRequest,
    chosen: Sequence[Series],
    runs: Mapping[str, Run],
    since: Mapping[str, int] | None,
) -> Iterator[dict[str, Any]]:
    new_curves = curves(session, chosen, request.axes, since, is_merged=request.is_merged)
    left = Counter(series.id for series in chosen)
    for series in chosen:
        left[series.id] -= 1
        curve = new_curves[series.id] if left[series.id] else new_curves.pop(series.id)
        yield _curve_document(series, curve, request.axes, runs[series.run_id].revision)


def _curve_document(series: Series, curve: SeriesBuckets, axes: Axes, revision: int) -> dict[str, Any]:
    columns = {name: _plain(column) for name, column in curve.buckets.items() if name not in WINDOW}
    columns["x"] = columns.pop(axes.x)
    return {
        "run": series.run_id,
        "metric": series.metric,
        "source": series.source,
        "step_unit": series.step_unit,
        "revision": revision,
        "n_total": curve.n_rows,
        "n_shown": curve.n_buckets,
        "bucket_rows": curve.bucket_rows,
        "reset": curve.reset,
        "first_bucket": curve.first_bucket,
        "smoothed": None,
        "bucket": None,
        **columns,
    }


def _group_document(
    session: Session,
    request: ChartRequest,
    members: list[Series],
    runs: Mapping[str, Run],
    since: Mapping[str, int] | None,
) -> dict[str, Any]:
    curve = group_curve(session, members, request.axes, request.spread, since)
    grouped = [runs[series.run_id] for series in members]
    return {
        "id": group_key(grouped[0]),
        "algorithm": grouped[0].algorithm,
        "environment": grouped[0].environment,
        "group": grouped[0].group,
        "runs": [run.id for run in grouped],
        "seeds": [run.seed for run in grouped],
        "revisions": [run.revision for run in grouped],
        "metric": members[0].metric,
        "source": members[0].source,
        "step_unit": members[0].step_unit,
        "interval": interval_name(len(members), request.spread),
        "centre": request.spread.centre,
        "step": curve.step,
        "n_total": curve.n_rows,
        "n_shown": curve.n_points,
        "reset": curve.reset,
        "first_bucket": curve.first_bucket,
        **{name: _plain(column) for name, column in curve.grid.items()},
        "seed_values": [_plain(row) for row in curve.seed_values],
    }


def _plain(column: Array) -> Array | list[Any]:
    """The column for orjson, with infinite numbers as text: orjson would write null, as it does for NaN."""
    if column.dtype.kind != "f":
        return np.ascontiguousarray(column)
    infinite = np.flatnonzero(np.isinf(column))
    if not len(infinite):
        return np.ascontiguousarray(column)
    values: list[Any] = column.tolist()
    for at in infinite:
        values[at] = "Infinity" if values[at] > 0 else "-Infinity"
    return values
