"""What REST tells of series: names, charts, groups of seeds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db import Run, Series
from backend.db.engine import reading
from backend.errors import Invalid, NotFound
from backend.metrics import repository
from backend.metrics.charts import Axes, Curve, curves
from backend.metrics.chunks import Array
from backend.metrics.grouping import INTERVAL_NAMES, Interval, group_key
from backend.metrics.schemas import Format
from backend.metrics.seed_groups import group_curve

MAX_BUCKETS = 1_000_000
"""Of one answer."""

ANY_SOURCE = "*"


@dataclass(frozen=True)
class ChartRequest:
    """Which series, and how."""

    runs: Sequence[str]
    metrics: Sequence[str]
    sources: Sequence[str]
    axes: Axes
    grouped: bool
    interval: Interval
    since: Sequence[int]


def series_of(session: Session, run_id: str) -> Sequence[Series]:
    """The series of one run that have points.

    Raises:
        NotFound: there is no such run.
    """
    find_runs(session, [run_id])
    return [series for series in repository.list_series(session, [run_id]) if series.n_points]


def chart(session: Session, request: ChartRequest) -> bytes:
    """A `schemas.Chart` as JSON.

    Raises:
        NotFound: there is no such run.
        Invalid: the answer would be too large, or `since` fits no run.
    """
    runs = find_runs(session, request.runs)
    since = _since(request, runs)
    chosen = choose(session, request.runs, request.metrics, request.sources)
    if len(chosen) * request.axes.max_points > MAX_BUCKETS:
        message = f"{len(chosen)} series of up to {request.axes.max_points} points: ask for fewer"
        raise Invalid.field("points", message)
    answer: dict[str, Any] = {"x": request.axes.x, "smooth": request.axes.smooth, "series": [], "groups": []}
    if request.grouped:
        answer["groups"] = [
            _group_document(session, request, members, runs, since) for members in seed_groups(chosen, runs)
        ]
    else:
        found = curves(session, chosen, request.axes, since)
        answer["series"] = [
            _curve_document(series, found[series.id], request.axes, runs[series.run_id].revision)
            for series in chosen
        ]
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def began_at(session: Session, run_id: str) -> datetime:
    """When a run's training time was 0.

    Raises:
        NotFound: there is no such run.
    """
    run = find_runs(session, [run_id])[run_id]
    return run.started_at or run.created_at


def export(engine: Engine, run_id: str, file_format: Format, began: datetime) -> Iterator[bytes]:
    """A run's points as a file, piece by piece, from one snapshot of the database."""
    from backend.metrics import export as exported  # pyarrow's import takes a tenth of a second

    with reading(engine) as session:
        if file_format == "csv":
            yield from exported.csv(session, run_id)
        elif file_format == "parquet":
            yield from exported.parquet(session, run_id)
        else:
            yield from exported.tensorboard(session, run_id, began)


def find_runs(session: Session, run_ids: Sequence[str]) -> dict[str, Run]:
    """The runs by id, in the order asked for.

    Raises:
        NotFound: one is not there.
    """
    found = {run.id: run for run in repository.runs_of(session, run_ids)}
    for run_id in run_ids:
        if run_id not in found:
            raise NotFound(f"there is no run {run_id}")
    return {run_id: found[run_id] for run_id in run_ids}


def _since(request: ChartRequest, runs: Mapping[str, Run]) -> dict[str, int] | None:
    given = request.since
    if not given:
        return None
    if len(given) not in (1, len(request.runs)):
        message = f"give one revision, or one a run: {len(request.runs)} runs, {len(given)} revisions"
        raise Invalid.field("since_revision", message)
    each = given if len(given) == len(request.runs) else [given[0]] * len(request.runs)
    # A reader from the future has the data of another database: it starts again.
    return {run: at if at <= runs[run].revision else -1 for run, at in zip(request.runs, each, strict=True)}


def choose(
    session: Session, run_ids: Sequence[str], metrics: Sequence[str], sources: Sequence[str]
) -> list[Series]:
    """The series asked for, in the order asked for.

    Without a source it is the run as a whole, or, where only parts of it have this metric, each of them.
    """
    by_name: dict[tuple[str, str], list[Series]] = {}
    for series in repository.list_series(session, run_ids, metrics):
        by_name.setdefault((series.run_id, series.metric), []).append(series)
    chosen = []
    for run in dict.fromkeys(run_ids):
        for metric in dict.fromkeys(metrics):
            there = by_name.get((run, metric), [])
            if ANY_SOURCE in sources:
                chosen += there
            elif sources:
                chosen += [series for series in there if series.source in sources]
            else:
                chosen += [series for series in there if series.source == ""] or there
    return chosen


def seed_groups(chosen: Iterable[Series], runs: Mapping[str, Run]) -> Iterable[list[Series]]:
    """The series of runs that differ in their seed alone, by metric and source."""
    groups: dict[tuple[str, str, str], list[Series]] = {}
    for series in chosen:
        key = (group_key(runs[series.run_id].spec), series.metric, series.source)
        groups.setdefault(key, []).append(series)
    return groups.values()


def _curve_document(series: Series, curve: Curve, axes: Axes, revision: int) -> dict[str, Any]:
    columns = {name: _plain(column) for name, column in curve.buckets.items()}
    columns["x"] = columns.pop(axes.x)
    return {
        "run": series.run_id,
        "metric": series.metric,
        "source": series.source,
        "revision": revision,
        "n_total": curve.n_rows,
        "n_shown": curve.n_buckets,
        "bucket_rows": curve.bucket_rows,
        "reset": curve.reset,
        "first_bucket": curve.first_bucket,
        "smoothed": None,
        **columns,
    }


def _group_document(
    session: Session,
    request: ChartRequest,
    members: list[Series],
    runs: Mapping[str, Run],
    since: Mapping[str, int] | None,
) -> dict[str, Any]:
    curve = group_curve(session, members, request.axes, request.interval, since)
    grouped = [runs[series.run_id] for series in members]
    return {
        "id": group_key(grouped[0].spec),
        "algorithm": grouped[0].algorithm,
        "environment": grouped[0].environment,
        "group": grouped[0].group,
        "runs": [run.id for run in grouped],
        "seeds": [run.seed for run in grouped],
        "revisions": [run.revision for run in grouped],
        "metric": members[0].metric,
        "source": members[0].source,
        "interval": INTERVAL_NAMES[request.interval],
        "step": curve.step,
        "n_total": curve.n_rows,
        "n_shown": curve.n_points,
        "reset": curve.reset,
        "first_bucket": curve.first_bucket,
        **{name: _plain(column) for name, column in curve.grid.items()},
    }


def _plain(column: Array) -> Array:
    """As the JSON writer wants it; it writes null for what is no finite number."""
    return np.ascontiguousarray(column)
