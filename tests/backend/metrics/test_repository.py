import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, func, select

from backend.db import Run, Series, SeriesChunk
from backend.db.engine import reading, writing
from backend.metrics import repository
from backend.metrics.chunks import CHUNK_ROWS, decode
from backend.specs.events import Points
from tests.backend.metrics.oracle import METRICS, Key, Life, Row, rows_of

pytestmark = pytest.mark.service

sizes = st.one_of(st.integers(0, 8), st.integers(0, 300), st.integers(CHUNK_ROWS - 3, 2 * CHUNK_ROWS + 3))
appends = st.dictionaries(st.sampled_from(METRICS), sizes, min_size=1)
cuts = st.one_of(st.floats(0, 1), st.just(-1.0))
lives = st.lists(st.one_of(appends, appends, cuts), min_size=1, max_size=9)
few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def live(engine: Engine, seed: int, steps: list[dict[Key, int] | float]) -> Life:
    life = Life(engine, seed)
    for step in steps:
        if isinstance(step, dict):
            life.append(step)
        else:
            life.cut(step)
    return life


def same(one: list[Row], other: list[Row]) -> bool:
    return len(one) == len(other) and np.array_equal(
        np.array(one).reshape(-1, 6), np.array(other).reshape(-1, 6), equal_nan=True
    )


def set_aside(life: Life, key: Key) -> list[Row]:
    query = (
        select(SeriesChunk.columns)
        .join(Series)
        .where(Series.run_id == life.run_id, Series.metric == key[0], SeriesChunk.superseded)
    )
    with reading(life.engine) as session:
        return [row for data in session.scalars(query) for row in rows_of(decode(data))]


@few
@given(lives, st.integers(0, 10**6))
def test_what_is_stored_is_what_came(engine: Engine, steps: list, seed: int) -> None:
    life = live(engine, seed, steps)
    for key in METRICS:
        wanted = life.live.get(key, [])
        assert same(life.stored(key), wanted)
        # Nothing that was cut is thrown away, whatever the order it is kept in.
        assert same(sorted(set_aside(life, key), key=repr), sorted(life.set_aside.get(key, []), key=repr))
    with reading(engine) as session:
        listed = {(s.metric, s.source): s for s in repository.list_series(session, [life.run_id])}
    listed = {key: series for key, series in listed.items() if series.n_points}
    assert set(listed) == {key for key, rows in life.live.items() if rows}
    for key, series in listed.items():
        last = life.live[key][-1][4]
        assert series.n_points == len(life.live[key])
        assert series.last_value == (None if math.isnan(last) else last)
        assert series.cut_revision == life.cut_at.get(key, 0)


@few
@given(lives, st.integers(0, 10**6))
def test_chunks_lie_side_by_side_and_stay_few(engine: Engine, steps: list, seed: int) -> None:
    life = live(engine, seed, steps)
    with reading(engine) as session:
        series = repository.list_series(session, [life.run_id])
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


def test_small_appends_rewrite_little(engine: Engine) -> None:
    life = Life(engine, 0)
    n, written, seen = 256, 0, set()
    for _ in range(n):
        life.append({METRICS[0]: 1})
        with reading(engine) as session:
            [series] = repository.list_series(session, [life.run_id])
            for chunk in repository.live_chunks(session, [series.id])[series.id]:
                written += 0 if (chunk.id, chunk.end_row) in seen else chunk.n_rows
                seen.add((chunk.id, chunk.end_row))
    assert n <= written <= n * (math.log2(n) + 1)


def test_as_many_statements_for_many_series_as_for_few(engine: Engine) -> None:
    def needed(n_series: int) -> int:
        life = Life(engine, n_series)
        points = [
            Points(
                metric=f"metric/{at}",
                agent_steps=[1, 2],
                frames=[4, 8],
                wall_time_s=[0.1, 0.2],
                episodes=[0, 0],
                value=[1.0, 2.0],
            )
            for at in range(n_series)
        ]
        made: list[str] = []

        def note(connection, cursor, statement, *rest) -> None:
            made.append(statement)

        event.listen(engine, "before_cursor_execute", note)
        for revision in (1, 2):
            with writing(engine) as session:
                repository.append(session, life.run_id, 1, revision, points)
        event.remove(engine, "before_cursor_execute", note)
        return len(made)

    assert needed(300) == needed(3)


def test_columns_of_unequal_length_are_refused_whole(engine: Engine) -> None:
    life = Life(engine, 0)
    good = Points(metric="a", agent_steps=[1], frames=[4], wall_time_s=[0.1], episodes=[0], value=[1.0])
    bad = good.model_copy(update={"metric": "b", "value": [1.0, 2.0]})
    with writing(engine) as session, pytest.raises(ValueError, match="b: columns of"):
        repository.append(session, life.run_id, 1, 1, [good, bad])
    with reading(engine) as session:
        assert repository.list_series(session, [life.run_id]) == []


def test_a_deleted_run_leaves_no_chunk(engine: Engine) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 10})
    with writing(engine) as session:
        session.delete(session.get_one(Run, life.run_id))
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(SeriesChunk)) == 0
