from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.axes import Axes, automatic_scale
from backend.analysis.metrics.charts import SeriesBuckets, curves
from backend.analysis.metrics.chunks import CHUNK_ROWS, X_COLUMNS
from backend.analysis.metrics.rollups import AGGREGATES
from backend.analysis.metrics.smoothing import Smoothing, smooth_rows
from backend.db import Run
from backend.db.engine import reading, writing
from backend.specs.events import PointsEvent
from backend.statistics.columns import Columns, bucket_rows, merge_at_equal_x
from tests.backend.analysis.metrics.oracle import METRICS, Key, RecordedRun, columns_of, slow_buckets

pytestmark = pytest.mark.service

sizes = st.one_of(st.integers(0, 8), st.integers(0, 300), st.integers(CHUNK_ROWS - 3, 2 * CHUNK_ROWS + 3))
appends = st.dictionaries(st.sampled_from(METRICS), sizes, min_size=1)
steps = st.lists(
    st.one_of(appends, appends, appends, st.floats(0, 1), st.just("update"), st.just("update")),
    min_size=1,
    max_size=12,
)
max_points = st.sampled_from([1, 2, 3, 10, 50, 700, 10_000])
axes = st.one_of(
    st.builds(Axes, st.sampled_from(X_COLUMNS), max_points, st.sampled_from([0.0, 0.5, 0.9, 0.99])),
    st.builds(
        Axes,
        st.sampled_from(X_COLUMNS),
        max_points,
        smoothing=st.just("window"),
        scale=st.sampled_from([0.5, 300.0, 50_000.0]),
    ),
)
handfuls = st.dictionaries(st.sampled_from(METRICS), st.integers(1, 5), min_size=1)
merging = st.builds(
    Axes, x=st.just("episodes"), max_points=st.sampled_from([10, 100]), smooth=st.sampled_from([0.0, 0.9])
)
few = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(
    recorded: RecordedRun,
    how: Axes,
    since: int | None = None,
    *,
    is_merged: bool = False,
    has_gaps: bool = False,
) -> dict[Key, SeriesBuckets]:
    known = None if since is None else {recorded.run_id: since}
    with reading(recorded.engine) as session:
        series = repository.list_series(session, [recorded.run_id])
        by_series = curves(session, series, how, known, is_merged=is_merged, has_gaps=has_gaps)
        return {(row.metric, row.source): by_series[row.id] for row in series}


def same(columns: Columns, other: Columns) -> bool:
    """Whether columns are equal: deviations but for rounding, since later rows move the mean of the series,
    which is subtracted before values are squared."""
    return set(columns) == set(other) and all(
        np.allclose(columns[name], other[name], rtol=1e-7, atol=1e-7, equal_nan=True)
        if name in ("window_low", "window_high")
        else np.array_equal(columns[name], other[name], equal_nan=True)
        for name in columns
    )


@dataclass
class Reader:
    """A client that holds the buckets of a revision and requests what is new."""

    recorded: RecordedRun
    axes: Axes
    revision: int | None = None
    curves: dict[Key, SeriesBuckets] = field(default_factory=dict)
    kept: dict[Key, Columns] = field(default_factory=dict)

    def update(self) -> None:
        for key, curve in read(self.recorded, self.axes, self.revision).items():
            before = self.kept.get(key)
            if curve.reset:
                assert curve.first_bucket == 0
                self.kept[key] = curve.buckets
                cut = self.revision is not None and self.recorded.cut_at.get(key, (0, 0))[0] > self.revision
                other_size = key in self.curves and self.curves[key].bucket_rows != curve.bucket_rows
                new = key not in self.curves
                assert new or cut or other_size, "reset without need"
            else:
                had = before or {name: column[:0] for name, column in curve.buckets.items()}
                first = curve.first_bucket
                if curve.buckets["mean"].size and first < len(had["mean"]):
                    same_first = all(
                        np.array_equal(had[name][first], curve.buckets[name][0], equal_nan=True)
                        for name in had
                    )
                    # A bucket that got only NaN is unchanged but for its x, which may be equal too.
                    end = (first + 1) * curve.bucket_rows
                    new_rows = self.recorded.live[key][self.curves[key].n_rows : end]
                    only_nan = bool(new_rows) and all(np.isnan(row[4]) for row in new_rows)
                    assert not same_first or only_nan, "sent known buckets again"
                self.kept[key] = {
                    name: np.concatenate([had[name][:first], curve.buckets[name]]) for name in had
                }
            self.curves[key] = curve
        self.revision = self.recorded.revision


def replay(reader: Reader, steps: list[Any]) -> None:
    for step in steps:
        if step == "update":
            reader.update()
        elif isinstance(step, dict):
            reader.recorded.append(step)
        else:
            reader.recorded.cut(step)


@few
@given(steps, axes, st.integers(0, 10**6))
def test_incremental_reads_add_up_to_full_read(
    engine: Engine, steps: list[Any], how: Axes, seed: int
) -> None:
    reader = Reader(RecordedRun(engine, seed), how)
    replay(reader, steps)
    reader.update()
    whole = read(reader.recorded, how)
    assert set(whole) == set(reader.kept)
    for key, curve in whole.items():
        assert curve.reset
        assert len(curve.buckets["mean"]) == curve.n_buckets == reader.curves[key].n_buckets
        assert same(reader.kept[key], curve.buckets), key


@few
@given(st.lists(st.one_of(handfuls, handfuls, st.floats(0, 1)), min_size=3, max_size=5), merging, st.data())
def test_incremental_reads_of_merged_buckets_add_up_to_full_read(
    engine: Engine, steps: list[Any], how: Axes, data: st.DataObject
) -> None:
    recorded = RecordedRun(engine, data.draw(st.integers(0, 10**6)))
    revisions, kept = list[int](), dict[Key, Columns]()
    for step in steps:
        recorded.append(step) if isinstance(step, dict) else recorded.cut(step)
        # A page requests its charts at once, from the earliest revision that one of them has.
        since = data.draw(st.sampled_from(revisions[::-1])) if revisions else None
        revisions.append(recorded.revision)
        whole = read(recorded, how)
        for key, curve in read(recorded, how, since, is_merged=True).items():
            had = {} if curve.reset else kept.get(key, {})
            before = had["bucket"] < curve.first_bucket if had else slice(0, 0)
            kept[key] = {
                name: np.concatenate([had.get(name, column)[before], column])
                for name, column in curve.buckets.items()
            }
            drawn = whole[key].buckets | {"bucket": np.arange(whole[key].n_buckets)}
            assert same(kept[key], merge_at_equal_x(drawn, how.x)), key


def test_merged_update_sends_again_only_the_buckets_at_the_x_of_new_points(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 500})
    at = np.arange(2)
    while at[-1] != at[-2]:
        known = recorded.revision
        recorded.append({METRICS[0]: 1})
        at = columns_of(recorded.live[METRICS[0]])["episodes"]
    how = Axes("episodes", 1000)
    curve = read(recorded, how, known, is_merged=True)[METRICS[0]]
    assert not curve.reset
    assert curve.first_bucket == len(at) - np.argmax((at != at[-1])[::-1])
    assert curve.buckets["episodes"].tolist() == [at[-1]]
    assert curve.buckets["bucket"].tolist() == [len(at) - 1]
    assert read(recorded, how, recorded.revision, is_merged=True)[METRICS[0]].buckets["bucket"].tolist() == []


@pytest.mark.parametrize("last_x", [CHUNK_ROWS, CHUNK_ROWS + 1])
def test_merged_bucket_that_begins_in_a_closed_chunk_is_known_whole(engine: Engine, last_x: int) -> None:
    """The last row of the closed chunk and that of the open one have the same x."""
    recorded = RecordedRun(engine, 0)
    n_same = 6
    known = 0
    for steps in ([*range(CHUNK_ROWS - n_same), *[CHUNK_ROWS] * n_same], [CHUNK_ROWS], [last_x]):
        known = recorded.revision
        values = [float(at) for at in steps]
        points = PointsEvent(
            metric="m", agent_steps=steps, frames=steps, wall_time_s=values, episodes=steps, value=values
        )
        with writing(engine) as session:
            recorded.revision = recorded.touch(session)
            repository.append(session, recorded.run_id, 1, recorded.revision, [points])
    how = Axes("agent_steps", 10_000)
    with reading(engine) as session:
        series = repository.list_series(session, [recorded.run_id])
        [new], [whole] = (
            curves(session, series, how, since, is_merged=True, has_joining_bucket=True).values()
            for since in ({recorded.run_id: known}, None)
        )
    assert not new.reset
    assert same(new.buckets, {name: column[-2:] for name, column in whole.buckets.items()})
    assert new.first_bucket == (CHUNK_ROWS - n_same if last_x == CHUNK_ROWS else CHUNK_ROWS + 1)


@few
@given(steps, axes, st.integers(0, 10**6))
def test_full_read_matches_definition(engine: Engine, steps: list[Any], how: Axes, seed: int) -> None:
    recorded = RecordedRun(engine, seed)
    replay(Reader(recorded, how), [step for step in steps if step != "update"])
    for key, curve in read(recorded, how).items():
        rows = columns_of(recorded.live[key])
        size = bucket_rows(len(recorded.live[key]), how.max_points)
        assert (curve.n_rows, curve.bucket_rows) == (len(recorded.live[key]), size)
        wanted = slow_buckets(rows, size, how.x)
        for name in (how.x, *AGGREGATES):
            np.testing.assert_allclose(curve.buckets[name], [b[name] for b in wanted], rtol=1e-12, atol=1e-13)
        if how.smooth:
            smooth = smooth_rows(rows["value"], how.smooth)
            ends = [min(first + size, len(smooth)) - 1 for first in range(0, len(smooth), size)]
            known = np.isfinite(curve.buckets["mean"])
            assert np.array_equal(np.isfinite(curve.buckets["smoothed"]), known)
            known &= np.isfinite(rows["value"][ends])
            assert np.array_equal(curve.buckets["smoothed"][known], smooth[ends][known])


@few
@given(steps, axes, st.integers(0, 10**6))
def test_what_is_not_finite_is_counted_by_kind(
    engine: Engine, steps: list[Any], how: Axes, seed: int
) -> None:
    recorded = RecordedRun(engine, seed, infinite=True)
    replay(Reader(recorded, how), [step for step in steps if step != "update"])
    for key, curve in read(recorded, how, has_gaps=True).items():
        values = columns_of(recorded.live[key])["value"]
        kinds = {"nan": np.isnan(values), "inf": values == np.inf, "neg_inf": values == -np.inf}
        if not sum(kind.sum() for kind in kinds.values()):
            assert "nan" not in curve.buckets
            continue
        for name, kind in kinds.items():
            firsts = range(0, len(values), curve.bucket_rows)
            wanted = [int(kind[first : first + curve.bucket_rows].sum()) for first in firsts]
            assert curve.buckets[name].tolist() == wanted, name
        merged = read(recorded, how, is_merged=True, has_gaps=True)[key].buckets
        assert [merged[name].sum() for name in kinds] == [kind.sum() for kind in kinds.values()]


def test_read_without_new_points_sends_nothing(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 5000})
    curve = read(recorded, Axes("frames", 100, 0.9), recorded.revision)[METRICS[0]]
    assert not curve.reset
    assert curve.first_bucket == curve.n_buckets == 79
    assert not len(curve.buckets["smoothed"])


def test_read_after_growth_sends_only_the_tail(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 100_000})
    known_revision = recorded.revision
    recorded.append({METRICS[0]: 3})
    curve = read(recorded, Axes("agent_steps", 1000, 0.9), known_revision)[METRICS[0]]
    assert not curve.reset
    assert curve.first_bucket == 100_000 // 128
    assert len(curve.buckets["mean"]) == 1


def test_cut_of_all_points_resets_to_empty_curve(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 100})
    known_revision = recorded.revision
    recorded.agent_steps = 0
    recorded.cut(0.0)
    curve = read(recorded, Axes("agent_steps", 1000), known_revision)[METRICS[0]]
    assert curve.reset
    assert curve.n_rows == len(curve.buckets["mean"]) == len(recorded.live[METRICS[0]])


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of the chunks whose points are fetched from now on, in each query."""
    reads: list[int] = []
    blobs = repository.stored_blobs

    def counting(session: Session, column: Any, chunks: Iterable[repository.ChunkInfo]) -> Any:
        chunks = list(chunks)
        if column == "columns":
            reads.append(sum(chunk.n_rows for chunk in chunks))
        return blobs(session, column, chunks)

    monkeypatch.setattr(repository, "stored_blobs", counting)
    return reads


def test_incremental_read_loads_only_needed_chunks(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 10 * CHUNK_ROWS})
    known_revision = recorded.revision
    recorded.append({METRICS[0]: 3})
    read_rows = rows_read(monkeypatch)
    read(recorded, Axes("agent_steps", 1000, 0.9), known_revision)
    assert sum(read_rows) <= CHUNK_ROWS + 3, "open chunks once, and what is averaged"


@pytest.mark.parametrize("x", X_COLUMNS)
def test_tail_of_window_means_fetches_only_what_is_new(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, x: str
) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 10 * CHUNK_ROWS + 1000})
    width = float(columns_of(recorded.live[METRICS[0]])[x][-1]) / 20
    how = Axes(x, 500, smoothing="window", scale=width)
    read(recorded, how)
    for n_new in (3, 5):
        known_revision = recorded.revision
        recorded.append({METRICS[0]: n_new})
        if n_new == 3:  # reads the range of x of each chunk
            read(recorded, how, known_revision)
    read_rows = rows_read(monkeypatch)
    tail = read(recorded, how, known_revision)[METRICS[0]]
    assert sum(read_rows) <= 8
    whole = read(recorded, how)[METRICS[0]].buckets
    for name, column in tail.buckets.items():
        np.testing.assert_array_equal(column, whole[name][tail.first_bucket :], err_msg=name)


def test_points_of_a_deleted_run_are_not_those_of_one_with_its_ids(engine: Engine) -> None:
    ids, means = [], []
    for value in (1.0, 2.0):
        recorded = RecordedRun(engine, 0)
        points = PointsEvent(
            metric="m", source="", agent_steps=[1], frames=[1], wall_time_s=[1], episodes=[1], value=[value]
        )
        with writing(engine) as session:
            repository.append(session, recorded.run_id, 1, recorded.touch(session), [points])
        with reading(engine) as session:
            series = repository.list_series(session, [recorded.run_id])
            ids.append(repository.live_chunks(session, [row.id for row in series]))
        means += list(read(recorded, Axes("agent_steps", 10))["m", ""].buckets["mean"])
        with writing(engine) as session:
            session.delete(session.get_one(Run, recorded.run_id))
    if engine.dialect.name == "sqlite":
        assert ids[0] == ids[1], "the database gave the same ids again"
    assert means == [1.0, 2.0]


def test_full_read_of_long_series_decodes_only_open_chunks(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 10 * CHUNK_ROWS + 100})
    read_rows = rows_read(monkeypatch)
    curve = read(recorded, Axes("agent_steps", 1000))[METRICS[0]]
    assert curve.n_rows == 10 * CHUNK_ROWS + 100
    assert sum(read_rows) == 100


@pytest.mark.parametrize("smoothing", ["points", "ema", "window"])
@pytest.mark.parametrize("x", X_COLUMNS)
@pytest.mark.parametrize("n", [300, 2 * CHUNK_ROWS + 77])
def test_range_of_x_has_finer_buckets_with_the_same_values(
    engine: Engine, n: int, x: str, smoothing: Smoothing
) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: n})
    scale = float(columns_of(recorded.live[METRICS[0]])[x][-1]) / 50
    how = Axes(x, 10_000, 0.9 if smoothing == "points" else 0.0, smoothing, scale)
    fine = read(recorded, how)[METRICS[0]].buckets
    at = fine[x].astype("f8")
    low, high = float(at[n // 2]), float(at[n // 2 + 100])
    zoomed = read(recorded, replace(how, max_points=200, span=(low, high)))[METRICS[0]]
    assert zoomed.bucket_rows == 1
    assert zoomed.n_rows == zoomed.n_buckets == len(zoomed.buckets["mean"]) <= 200
    assert zoomed.buckets[x][0] <= low
    assert zoomed.buckets[x][-1] >= high
    # Rows are read from a multiple of 16 on; several rows may have one x.
    first = next(row for row in range(0, n, 16) if at[row] == zoomed.buckets[x][0] and at[row + 15] <= high)
    for name, column in zoomed.buckets.items():
        same_rows = fine[name][first : first + len(column)]
        np.testing.assert_allclose(column, same_rows, rtol=1e-9, atol=1e-9, err_msg=name)


def test_range_of_x_is_sent_again_only_when_rows_in_it_arrived(engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 2000})
    at = columns_of(recorded.live[METRICS[0]])["agent_steps"]
    past = Axes("agent_steps", 100, 0.9, span=(float(at[500]), float(at[900])))
    recent = replace(past, span=(float(at[1900]), 1e12))
    known = recorded.revision
    recorded.append({METRICS[0]: 40})
    unchanged, changed = (read(recorded, how, known)[METRICS[0]] for how in (past, recent))
    assert not unchanged.reset
    assert unchanged.first_bucket == unchanged.n_buckets > 50
    assert not len(unchanged.buckets["mean"])
    assert changed.reset
    assert len(changed.buckets["mean"]) == changed.n_buckets


def test_zoom_of_a_long_series_reads_only_the_chunks_in_view(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 10 * CHUNK_ROWS})
    at = columns_of(recorded.live[METRICS[0]])["agent_steps"]
    middle = 5 * CHUNK_ROWS + 100
    read_rows = rows_read(monkeypatch)
    how = Axes("agent_steps", 1000, span=(float(at[middle]), float(at[middle + 500])))
    assert read(recorded, how)[METRICS[0]].bucket_rows == 1
    assert sum(read_rows) == CHUNK_ROWS


@pytest.mark.parametrize(
    ("furthest", "scale"),
    [(0, 1), (1, 0.05), (19.9, 0.5), (20, 1), (60_000, 2000), (100_000, 5000), (200_000, 10_000), (1e9, 5e7)],
)
def test_automatic_scale_is_round_and_at_most_a_twentieth(furthest: float, scale: float) -> None:
    assert automatic_scale(furthest) == pytest.approx(scale)
