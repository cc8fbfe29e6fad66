import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, func, select

from backend.analysis.metrics import repository
from backend.analysis.metrics.chunks import CHUNK_ROWS, decode
from backend.db import Run, Series, SeriesChunk
from backend.db.engine import reading, writing
from backend.specs.events import PointsEvent
from tests.backend.analysis.metrics.oracle import METRICS, Key, RecordedRun, Row, rows_of

pytestmark = pytest.mark.service

sizes = st.one_of(st.integers(0, 8), st.integers(0, 300), st.integers(CHUNK_ROWS - 3, 2 * CHUNK_ROWS + 3))
appends = st.dictionaries(st.sampled_from(METRICS), sizes, min_size=1)
cuts = st.one_of(st.floats(0, 1), st.just(-1.0))
histories = st.lists(st.one_of(appends, appends, cuts), min_size=1, max_size=9)
few = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def record(engine: Engine, seed: int, steps: list[dict[Key, int] | float]) -> RecordedRun:
    recorded = RecordedRun(engine, seed)
    for step in steps:
        if isinstance(step, dict):
            recorded.append(step)
        else:
            recorded.cut(step)
    return recorded


def same(rows: list[Row], other: list[Row]) -> bool:
    return len(rows) == len(other) and np.array_equal(
        np.array(rows).reshape(-1, 6), np.array(other).reshape(-1, 6), equal_nan=True
    )


def superseded_rows(recorded: RecordedRun, key: Key) -> list[Row]:
    query = (
        select(SeriesChunk.columns)
        .join(Series)
        .where(Series.run_id == recorded.run_id, Series.metric == key[0], SeriesChunk.superseded)
    )
    with reading(recorded.engine) as session:
        return [row for data in session.scalars(query) for row in rows_of(decode(data))]


@few
@given(histories, st.integers(0, 10**6))
def test_stored_points_match_appended_points(engine: Engine, steps: list[Any], seed: int) -> None:
    recorded = record(engine, seed, steps)
    for key in METRICS:
        wanted = recorded.live.get(key, [])
        assert same(recorded.stored(key), wanted)
        # Cut points are kept as superseded, in any order.
        assert same(
            sorted(superseded_rows(recorded, key), key=repr),
            sorted(recorded.superseded.get(key, []), key=repr),
        )
    with reading(engine) as session:
        listed = {(s.metric, s.source): s for s in repository.list_series(session, [recorded.run_id])}
    listed = {key: series for key, series in listed.items() if series.n_points}
    assert set(listed) == {key for key, rows in recorded.live.items() if rows}
    for key, series in listed.items():
        last = recorded.live[key][-1][4]
        assert series.n_points == len(recorded.live[key])
        assert series.last_value == (None if math.isnan(last) else last)
        assert (series.cut_revision, series.cut_agent_steps) == recorded.cut_at.get(key, (0, None))
        finite = [row[4] for row in recorded.live[key] if math.isfinite(row[4])]
        assert series.n_finite == len(finite)
        statistics = (series.mean_value, series.min_value, series.max_value)
        if finite:
            mean = math.fsum(value / len(finite) for value in finite)
            assert statistics == pytest.approx((mean, min(finite), max(finite)))
        else:
            assert statistics == (None, None, None)


@few
@given(histories, st.integers(0, 10**6))
def test_chunks_are_contiguous_and_few(engine: Engine, steps: list[Any], seed: int) -> None:
    recorded = record(engine, seed, steps)
    with reading(engine) as session:
        series = repository.list_series(session, [recorded.run_id])
        for chunks in repository.live_chunks(session, [s.id for s in series]).values():
            row = 0
            for at, chunk in enumerate(chunks):
                assert chunk.first_row == row
                assert (
                    chunk.closed == (chunk.n_rows == CHUNK_ROWS) == (row + CHUNK_ROWS <= chunks[-1].end_row)
                )
                assert chunk.revision >= chunks[at - 1].revision or at == 0
                row = chunk.end_row
            assert sum(not chunk.closed for chunk in chunks) <= math.log2(CHUNK_ROWS)


def test_small_appends_rewrite_few_rows(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    n, written, seen = 256, 0, set()
    for _ in range(n):
        recorded.append({METRICS[0]: 1})
        with reading(engine) as session:
            [series] = repository.list_series(session, [recorded.run_id])
            for chunk in repository.live_chunks(session, [series.id])[series.id]:
                written += 0 if (chunk.id, chunk.end_row) in seen else chunk.n_rows
                seen.add((chunk.id, chunk.end_row))
    assert n <= written <= n * (math.log2(n) + 1)


def test_append_sends_same_number_of_statements_for_any_number_of_series(engine: Engine) -> None:
    def needed(n_series: int) -> int:
        recorded = RecordedRun(engine, n_series)
        points = [
            PointsEvent(
                metric=f"metric/{at}",
                agent_steps=[1, 2],
                frames=[4, 8],
                wall_time_s=[0.1, 0.2],
                episodes=[0, 0],
                value=[1.0, 2.0],
            )
            for at in range(n_series)
        ]
        sent: list[str] = []

        def record_statement(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            sent.append(statement)

        event.listen(engine, "before_cursor_execute", record_statement)
        for revision in (1, 2):
            with writing(engine) as session:
                repository.append(session, recorded.run_id, 1, revision, points)
        event.remove(engine, "before_cursor_execute", record_statement)
        return len(sent)

    assert needed(300) == needed(3)


def test_append_rejects_columns_of_unequal_length_atomically(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    good = PointsEvent(metric="a", agent_steps=[1], frames=[4], wall_time_s=[0.1], episodes=[0], value=[1.0])
    bad = good.model_copy(update={"metric": "b", "value": [1.0, 2.0]})
    with writing(engine) as session, pytest.raises(ValueError, match="b: columns of"):
        repository.append(session, recorded.run_id, 1, 1, [good, bad])
    with reading(engine) as session:
        assert repository.list_series(session, [recorded.run_id]) == []


def test_delete_run_deletes_its_chunks(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 10})
    with writing(engine) as session:
        session.delete(session.get_one(Run, recorded.run_id))
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(SeriesChunk)) == 0
