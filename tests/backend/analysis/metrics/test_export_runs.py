import csv
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from backend.analysis.metrics import npz, service
from backend.analysis.metrics.repository import ALL, Selected
from backend.analysis.metrics.schemas import Format
from tests.backend.analysis.metrics.oracle import METRICS, RecordedRun
from tests.support.rows import PROVENANCE, add_attempt

ATTEMPT = {"attempt": 1, "host": "a"} | PROVENANCE.model_dump()


@pytest.fixture
def two_runs(engine: Engine) -> list[RecordedRun]:
    """Two runs of equal name, the second with a per-actor series."""
    runs = [RecordedRun(engine, seed, {"name": "lr 1e-3/β"}) for seed in (1, 2)]
    runs[0].append({METRICS[0]: 70_000})
    runs[1].append({METRICS[0]: 30, METRICS[2]: 7})
    add_attempt(engine, runs[1].run_id, provenance=PROVENANCE.model_dump())
    return runs


def exported(runs: list[RecordedRun], file_format: Format, selected: Selected = ALL) -> Iterator[bytes]:
    return service.export_runs(runs[0].engine, [run.run_id for run in runs], file_format, selected)


def n_points(run: RecordedRun) -> int:
    return sum(len(rows) for rows in run.live.values())


@pytest.mark.service
def test_csv_of_two_runs_names_the_run_of_each_row(two_runs: list[RecordedRun]) -> None:
    chunks = list(exported(two_runs, "csv"))
    assert len(chunks) > 2  # streamed
    rows = list(csv.DictReader(io.StringIO(b"".join(chunks).decode())))
    assert {row["name"] for row in rows} == {"lr 1e-3/β"}
    for run in two_runs:
        own = [row for row in rows if row["run"] == run.run_id]
        assert len(own) == n_points(run)
        [described] = [json.loads(row["description"]) for row in own if row["description"]]
        assert described["id"] == run.run_id
        assert described["spec"]["seed"] == run.seed
        assert described["provenance"] == ([] if run is two_runs[0] else [ATTEMPT])
        assert {(row["algorithm"], row["environment"], row["seed"]) for row in own} == {
            ("paac", "CartPole-v1", str(run.seed))
        }
        points = [float(row["value"]) for row in own if (row["metric"], row["source"]) == METRICS[0]]
        assert points == pytest.approx([row[4] for row in run.live[METRICS[0]]], nan_ok=True)


@pytest.mark.service
def test_parquet_of_two_runs_holds_all_points_and_the_specs(two_runs: list[RecordedRun]) -> None:
    table = pq.read_table(io.BytesIO(b"".join(exported(two_runs, "parquet"))))
    counts = {key: table["run"].to_pylist().count(key) for key in set(table["run"].to_pylist())}
    assert counts == {run.run_id: n_points(run) for run in two_runs}
    described = json.loads(table.schema.metadata[b"runs"])
    assert [described[run.run_id]["spec"]["seed"] for run in two_runs] == [1, 2]
    assert [described[run.run_id]["provenance"] for run in two_runs] == [[], [ATTEMPT]]


@pytest.mark.service
def test_export_of_several_runs_has_a_column_for_each_setting_in_which_they_differ(engine: Engine) -> None:
    changes = [{"n_e": 8}, {"n_e": 16, "learning_rate": 0.5}]
    runs = [RecordedRun(engine, seed, {"config": config}) for seed, config in enumerate(changes)]
    for run in runs:
        run.append({METRICS[0]: 2})
    table = pq.read_table(io.BytesIO(b"".join(exported(runs, "parquet"))))
    rows = csv.DictReader(io.StringIO(b"".join(exported(runs, "csv")).decode()))
    names = [name for name in table.column_names if name.startswith(("config.", "environment_config."))]
    assert set(names) == {"config.n_e", "config.learning_rate"}
    assert table["config.n_e"].to_pylist() == [8, 8, 16, 16]
    assert {(row["run"], row["config.n_e"]) for row in rows} == {
        (runs[0].run_id, "8"),
        (runs[1].run_id, "16"),
    }


@pytest.mark.service
def test_npz_of_two_runs_holds_every_column_of_every_point(two_runs: list[RecordedRun]) -> None:
    chunks = list(exported(two_runs, "npz"))
    assert len(chunks) > 2  # streamed
    with np.load(io.BytesIO(b"".join(chunks))) as arrays:
        by_series: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
        for at, name in enumerate(zip(*(arrays[key] for key in ("run", "metric", "source")), strict=True)):
            run, metric, source = map(str, name)
            by_series.setdefault((run, metric, source), []).extend(arrays[f"points/{at}"].tolist())
    table = pq.read_table(io.BytesIO(b"".join(exported(two_runs, "parquet")))).to_pylist()
    wanted: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    for row in table:
        points = wanted.setdefault((row["run"], row["metric"], row["source"]), [])
        points.append(tuple(row[column] for column in npz.POINT.names or ()))
    assert list(by_series) == list(wanted)
    for key, points in wanted.items():
        np.testing.assert_array_equal(by_series[key], points)


@pytest.mark.service
@pytest.mark.parametrize("file_format", ["csv", "parquet", "npz", "tensorboard"])
def test_export_of_some_metrics_has_no_other(two_runs: list[RecordedRun], file_format: Format) -> None:
    whole = b"".join(exported(two_runs, file_format))
    assert b"".join(exported(two_runs, file_format, Selected(["none"]))) != whole
    chosen, actor = METRICS[2]
    assert actor
    without = Selected(None, sources=False)
    for selected, names in ((Selected([chosen]), {chosen}), (without, {METRICS[0][0]})):
        data = b"".join(exported(two_runs, file_format, selected))
        if file_format == "csv":
            metrics = {row["metric"] for row in csv.DictReader(io.StringIO(data.decode()))}
        elif file_format == "parquet":
            metrics = set(pq.read_table(io.BytesIO(data))["metric"].to_pylist())
        elif file_format == "npz":
            metrics = set(np.load(io.BytesIO(data))["metric"].tolist())
        else:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                content = b"".join(archive.read(name) for name in archive.namelist())
            metrics = {name for name, _ in METRICS if name.encode() in content}
        assert metrics == names


@pytest.mark.long
@pytest.mark.service
def test_tensorboard_of_two_runs_has_a_folder_per_run(two_runs: list[RecordedRun], tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with zipfile.ZipFile(io.BytesIO(b"".join(exported(two_runs, "tensorboard")))) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    for run in two_runs:
        board = EventAccumulator(
            str(tmp_path / f"lr_1e-3-{run.run_id}" / "run"), size_guidance={"scalars": 0}
        )
        board.Reload()
        assert len(board.Scalars(METRICS[0][0])) == len(run.live[METRICS[0]])
        [text] = board.Tensors("description")
        described = json.loads(text.tensor_proto.string_val[0])
        assert described["provenance"] == ([] if run is two_runs[0] else [ATTEMPT])


def test_export_of_runs_without_points_is_valid_and_empty(engine: Engine) -> None:
    run = RecordedRun(engine, 0)
    assert b"".join(exported([run], "csv")).count(b"\n") == 1
    assert pq.read_table(io.BytesIO(b"".join(exported([run], "parquet")))).num_rows == 0
    assert zipfile.ZipFile(io.BytesIO(b"".join(exported([run], "tensorboard")))).namelist() == []
