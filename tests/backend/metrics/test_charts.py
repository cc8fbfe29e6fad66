from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from backend.db.engine import reading
from backend.metrics import repository
from backend.metrics.charts import Axes, Curve, curves
from backend.metrics.chunks import CHUNK_ROWS, X_COLUMNS, Columns
from backend.metrics.rollups import AGGREGATES, bucket_rows
from backend.metrics.smoothing import smoothed
from tests.backend.metrics.oracle import METRICS, Key, Life, columns_of
from tests.backend.metrics.test_rollups import slow_buckets

pytestmark = pytest.mark.service

sizes = st.one_of(st.integers(0, 8), st.integers(0, 300), st.integers(CHUNK_ROWS - 3, 2 * CHUNK_ROWS + 3))
appends = st.dictionaries(st.sampled_from(METRICS), sizes, min_size=1)
steps = st.lists(
    st.one_of(appends, appends, appends, st.floats(0, 1), st.just("look"), st.just("look")),
    min_size=1,
    max_size=12,
)
axes = st.builds(
    Axes,
    x=st.sampled_from(X_COLUMNS),
    max_points=st.sampled_from([1, 2, 3, 10, 50, 700, 10_000]),
    smooth=st.sampled_from([0.0, 0.0, 0.5, 0.9, 0.99]),
)
few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(life: Life, how: Axes, since: int | None = None) -> dict[Key, Curve]:
    with reading(life.engine) as session:
        series = repository.list_series(session, [life.run_id])
        found = curves(session, series, how, None if since is None else {life.run_id: since})
        return {(one.metric, one.source): found[one.id] for one in series}


def same(one: Columns, other: Columns) -> bool:
    return set(one) == set(other) and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )


@dataclass
class Reader:
    """A page: it has a revision's buckets and asks for what is new."""

    life: Life
    axes: Axes
    revision: int | None = None
    curves: dict[Key, Curve] = field(default_factory=dict)
    kept: dict[Key, Columns] = field(default_factory=dict)

    def look(self) -> None:
        for key, curve in read(self.life, self.axes, self.revision).items():
            before = self.kept.get(key)
            if curve.reset:
                assert curve.first_bucket == 0
                self.kept[key] = curve.buckets
                cut = self.revision is not None and self.life.cut_at.get(key, 0) > self.revision
                other_size = key in self.curves and self.curves[key].bucket_rows != curve.bucket_rows
                new = key not in self.curves
                assert new or cut or other_size, "started again without need"
            else:
                had = before or {name: column[:0] for name, column in curve.buckets.items()}
                first = curve.first_bucket
                if curve.buckets["mean"].size and first < len(had["mean"]):
                    same_first = all(
                        np.array_equal(had[name][first], curve.buckets[name][0], equal_nan=True)
                        for name in had
                    )
                    # A bucket to which only NaN came looks as before but for its x, which may be equal too.
                    assert not same_first or np.isnan(self.life.live[key][-1][4]), "sent what was there"
                self.kept[key] = {
                    name: np.concatenate([had[name][:first], curve.buckets[name]]) for name in had
                }
            self.curves[key] = curve
        self.revision = self.life.revision


def live(reader: Reader, steps: list) -> None:
    for step in steps:
        if step == "look":
            reader.look()
        elif isinstance(step, dict):
            reader.life.append(step)
        else:
            reader.life.cut(step)


@few
@given(steps, axes, st.integers(0, 10**6))
def test_what_a_reader_pieces_together_is_the_whole(
    engine: Engine, steps: list, how: Axes, seed: int
) -> None:
    reader = Reader(Life(engine, seed), how)
    live(reader, steps)
    reader.look()
    whole = read(reader.life, how)
    assert set(whole) == set(reader.kept)
    for key, curve in whole.items():
        assert curve.reset
        assert len(curve.buckets["mean"]) == curve.n_buckets == reader.curves[key].n_buckets
        assert same(reader.kept[key], curve.buckets), key


@few
@given(steps, axes, st.integers(0, 10**6))
def test_the_whole_is_what_the_definition_says(engine: Engine, steps: list, how: Axes, seed: int) -> None:
    life = Life(engine, seed)
    live(Reader(life, how), [step for step in steps if step != "look"])
    for key, curve in read(life, how).items():
        rows = columns_of(life.live[key])
        size = bucket_rows(len(life.live[key]), how.max_points)
        assert (curve.n_rows, curve.bucket_rows) == (len(life.live[key]), size)
        wanted = slow_buckets(rows, size, how.x)
        for name in (how.x, *AGGREGATES):
            np.testing.assert_allclose(curve.buckets[name], [b[name] for b in wanted], rtol=1e-12, atol=1e-13)
        if how.smooth:
            smooth = smoothed(rows["value"], how.smooth)
            ends = [min(first + size, len(smooth)) - 1 for first in range(0, len(smooth), size)]
            assert np.array_equal(curve.buckets["smoothed"], smooth[ends], equal_nan=True)


def test_nothing_new_is_nothing_sent(engine: Engine) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 5000})
    curve = read(life, Axes("frames", 100, 0.9), life.revision)[METRICS[0]]
    assert not curve.reset
    assert curve.first_bucket == curve.n_buckets == 79
    assert not len(curve.buckets["smoothed"])


def test_growth_sends_the_tail_alone(engine: Engine) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 100_000})
    seen = life.revision
    life.append({METRICS[0]: 3})
    curve = read(life, Axes("agent_steps", 1000, 0.9), seen)[METRICS[0]]
    assert not curve.reset
    assert curve.first_bucket == 100_000 // 128
    assert len(curve.buckets["mean"]) == 1


def test_a_cut_that_takes_all_leaves_an_empty_curve(engine: Engine) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 100})
    seen = life.revision
    life.agent_steps = 0
    life.cut(0.0)
    curve = read(life, Axes("agent_steps", 1000), seen)[METRICS[0]]
    assert curve.reset
    assert curve.n_rows == len(curve.buckets["mean"]) == len(life.live[METRICS[0]])


def test_only_the_needed_chunks_are_read(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 10 * CHUNK_ROWS})
    seen = life.revision
    life.append({METRICS[0]: 3})
    read_rows: list[int] = []
    blobs = repository._blobs

    def counting(session, column, chunks):  # type: ignore[no-untyped-def]
        chunks = list(chunks)
        read_rows.append(sum(chunk.n_rows for chunk in chunks))
        return blobs(session, column, chunks)

    monkeypatch.setattr(repository, "_blobs", counting)
    read(life, Axes("agent_steps", 1000, 0.9), seen)
    assert sum(read_rows) <= CHUNK_ROWS + 2 * 3


def test_a_long_series_is_drawn_without_reading_its_points(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 10 * CHUNK_ROWS + 100})
    decoded: list[int] = []
    points_of = repository.points_of

    def counting(session, chunks, names):  # type: ignore[no-untyped-def]
        chunks = list(chunks)
        decoded.append(sum(chunk.n_rows for chunk in chunks))
        return points_of(session, chunks, names)

    monkeypatch.setattr(repository, "points_of", counting)
    curve = read(life, Axes("agent_steps", 1000))[METRICS[0]]
    assert curve.n_rows == 10 * CHUNK_ROWS + 100
    assert sum(decoded) == 100
