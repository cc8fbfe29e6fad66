"""`callboard import csv` and `jsonl`: each dialect of a table is the same run, and nothing is lost unsaid."""

import csv
import errno
import fcntl
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

import callboard
from backend.analysis.metrics import tfevents
from callboard.imports import tensorboard
from callboard.imports.log import Log, UnreadableLog
from callboard.imports.meaning import has_score
from callboard.imports.rows import JSON_ENDINGS, TABLE_ENDINGS
from callboard.imports.table import ColumnMapping
from callboard.imports.tables import read
from tests.client.support import Target
from tests.client.test_imports import imported, rows
from tests.support.waiting import until

STEPS = (10, 20, 30)
METRICS: Mapping[str, tuple[float, ...]] = {
    "rollout/episode_return": (1.0, 2.5, 4.0),
    "loss/value": (0.5, 0.25, 0.125),
}
COLUMNS = ["step", *METRICS]
ROWS = [list(row) for row in zip(STEPS, *METRICS.values(), strict=True)]
POINTS = {metric: list(zip(STEPS, values, strict=True)) for metric, values in METRICS.items()}


def _text(table: list[list[Any]], delimiter: str = ",", end: str = "\n") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator=end).writerows(table)
    return file.getvalue()


def _long(name: str, value: str) -> str:
    cells = [[row[0], metric, row[at]] for row in ROWS for at, metric in enumerate(METRICS, 1)]
    return _text([["step", name, value], *cells])


def _chart() -> str:
    """W&B's export of a chart: one metric of two runs, with the range of each curve."""
    metric = "rollout/episode_return"
    names = [f"{run} - {metric}{part}" for run in ("sea - 3", "hill-1") for part in ("", "__MIN", "__MAX")]
    return _text([["Step", *names], *([row[0], *[row[1]] * 6] for row in ROWS)])


def _lines(**more: Any) -> str:
    return "".join(
        json.dumps({"step": step, "rollout": {"episode_return": score}, "loss/value": loss} | more) + "\n"
        for step, score, loss in ROWS
    )


PLAIN = _text([COLUMNS, *ROWS])
DIALECTS: Mapping[str, tuple[str, bytes]] = {
    "csv": ("a.csv", PLAIN.encode()),
    "no end of the last line": ("a.csv", PLAIN.rstrip("\n").encode()),
    "byte order mark": ("a.csv", PLAIN.encode("utf-8-sig")),
    "utf-16": ("a.csv", PLAIN.encode("utf-16")),
    "gzip": ("a.csv.gz", gzip.compress(PLAIN.encode())),
    "gzip without its ending": ("a.csv", gzip.compress(PLAIN.encode())),
    "tsv": ("a.tsv", _text([COLUMNS, *ROWS], "\t").encode()),
    "tabs": ("scores.txt", _text([COLUMNS, *ROWS], "\t").encode()),
    "semicolons": ("a.csv", _text([COLUMNS, *ROWS], ";").encode()),
    "decimal commas": ("a.csv", _text([COLUMNS, *ROWS], ";").replace(".", ",").encode()),
    "Windows": ("a.csv", _text([COLUMNS, *ROWS], end="\r\n").encode()),
    "not sorted": ("a.csv", _text([COLUMNS, *ROWS[::-1]]).encode()),
    "long": ("a.csv", _long("metric", "value").encode()),
    "long tags": ("a.csv", _long("tag", "Value").encode()),
    "json lines": ("a.jsonl", _lines().encode()),
    "json lines by gzip": ("a.jsonl.gz", gzip.compress(_lines().encode())),
    "ray": ("result.json", _lines(config={"lr": 0.1, "env": "CartPole-v1"}).encode()),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_table_is_the_same_run_in_every_dialect(tmp_path: Path, dialect: str) -> None:
    name, content = DIALECTS[dialect]
    (tmp_path / name).write_bytes(content)
    [log] = read(tmp_path / name, ColumnMapping(), JSON_ENDINGS if "json" in name else TABLE_ENDINGS)
    assert (log.not_kept, log.problem) == ({}, None)
    points = {
        metric: list(zip(column.agent_steps, column.value, strict=True))
        for metric, column in log.series.items()
    }
    assert points == POINTS
    assert has_score(log)
    if dialect == "ray":
        assert (log.environment, log.config["lr"]) == ("CartPole-v1", 0.1)


@pytest.mark.service
def test_folder_is_a_run_for_each_file_or_subfolder(target: Target, tmp_path: Path) -> None:
    for name in ("a.csv", "b.tsv", "seed1/progress.csv", "seed2/progress.csv", "seed2/deep/x.csv.gz"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _text([COLUMNS, *ROWS], "\t" if name.endswith("tsv") else ",").encode()
        path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (tmp_path / "logs" / "seed2" / "notes.md").write_text("no table")
    (tmp_path / "logs" / "bad").mkdir()
    (tmp_path / "logs" / "bad" / "config.csv").write_text("key,setting\nlr,0.1\n")
    done = imported("csv", tmp_path / "logs")
    assert done.exit_code == 1, done.output
    assert "config.csv: no column of agent steps was recognised; name it with --step" in done.output
    assert "5 runs, 30 points; 1 could not be imported" in done.output
    names = {"logs/a", "logs/b", "seed1", "seed2", "seed2/deep"}
    assert {run["name"] for run in target.runs()} == names
    assert imported("csv", tmp_path / "logs").output.count("unchanged") == 5


@pytest.mark.service
def test_table_with_a_new_column_is_the_same_run(target: Target, tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("step,loss/value,train/note\n10,0.5,\n20,0.25,7\n")
    done = imported("csv", path)
    assert done.exit_code == 0, done.output
    [first] = target.runs()
    # Stable-Baselines3 writes the file again, with empty cells in the earlier rows.
    path.write_text("step,loss/value,train/note,eval/return\n10,0.5,,\n20,0.25,7,\n30,0.125,8,3.0\n")
    done = imported("csv", path)
    assert done.exit_code == 0, done.output
    assert [run["id"] for run in target.runs()] == [first["id"]]
    assert rows(target, first["id"]) == {
        "loss/value": [(10, 0.5), (20, 0.25), (30, 0.125)],
        "train/note": [(20, 7.0), (30, 8.0)],
        "eval/return": [(30, 3.0)],
    }


@pytest.mark.service
def test_run_that_mentions_an_import_in_its_notes_is_left_alone(target: Target, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(PLAIN)
    assert imported("csv", tmp_path / "a.csv").exit_code == 0
    [first] = target.runs()
    notes = f"the same setup as {first['notes'].split()[-1]}"
    with callboard.init(algorithm="a", environment="e", notes=notes) as other:
        other.log({"loss/other": 1.0}, agent_steps=1)
    (tmp_path / "b.csv").write_text(PLAIN)
    assert imported("csv", tmp_path / "b.csv").exit_code == 0
    [second] = [run["id"] for run in target.runs() if run["id"] not in (first["id"], other.id)]
    changed = target.service.client.patch(f"/api/v1/runs/{second}", json={"notes": f"Imported: b\n{notes}"})
    assert changed.status_code == 200, changed.text
    again = imported("csv", tmp_path / "a.csv", "--environment", "Pong")
    assert again.exit_code == 0, again.output
    assert {other.id, second} <= {run["id"] for run in target.runs()}
    assert first["id"] not in {run["id"] for run in target.runs()}


def test_settings_that_are_too_many_are_left_out_and_the_points_are_kept(
    target: Target, tmp_path: Path
) -> None:
    (tmp_path / "progress.csv").write_text(PLAIN)
    (tmp_path / "params.json").write_text(json.dumps({f"setting_{k}": k for k in range(600)}))
    done = imported("csv", tmp_path / "progress.csv")
    assert done.exit_code == 0, done.output
    assert "not kept: settings, which are more than a run may have (600)" in done.stderr
    [run] = target.runs()
    assert run["spec"]["config"] == {}
    assert rows(target, run["id"]) == POINTS


def test_chart_of_wandb_is_a_run_for_each_curve(target: Target, tmp_path: Path) -> None:
    (tmp_path / "chart.csv").write_text(_chart())
    done = imported("csv", tmp_path / "chart.csv")
    assert done.exit_code == 0, done.output
    assert "columns with the range of a curve (4)" in done.output
    runs = {run["name"]: run for run in target.runs()}
    assert runs.keys() == {"sea - 3", "hill-1"}
    for run in runs.values():
        assert run["step_unit"] == "iterations"
        assert rows(target, run["id"]) == {"rollout/episode_return": POINTS["rollout/episode_return"]}


@pytest.mark.service
def test_monitors_of_a_folder_are_one_run_with_its_progress(target: Target, tmp_path: Path) -> None:
    for n, start in enumerate((100.0, 101.0)):
        lines = [f'#{{"t_start": {start}, "env_id": "CartPole-v1"}}', "r,l,t"]
        lines += [f"{score},10,{seconds}" for score, seconds in ((n + 0.5, 1.5), (n + 2.5, 3.75))]
        (tmp_path / f"{n}.monitor.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "progress.csv").write_text("time/total_timesteps,train/loss\n20,0.5\n40,0.25\n")
    done = imported("csv", tmp_path)
    assert done.exit_code == 0, done.output
    [run] = target.runs()
    assert (run["name"], run["environment"], run["score"]) == (tmp_path.name, "CartPole-v1", 2.0)
    assert rows(target, run["id"]) == {
        "rollout/episode_return": [(10, 0.5), (20, 1.5), (30, 2.5), (40, 3.5)],
        "rollout/episode_length": [(step, 10.0) for step in (10, 20, 30, 40)],
        "train/loss": [(20, 0.5), (40, 0.25)],
    }
    times = [float(row["wall_time_s"]) for row in target.points(run["id"])["rollout/episode_return"]]
    assert times == [1.5, 2.5, 3.75, 4.75]


def test_steps_of_monitors_below_a_frame_skip_are_named(tmp_path: Path) -> None:
    episodes = [f"{n},{39 + n % 3},{10 * n}" for n in range(1, 13)]  # about 4 frames a second
    (tmp_path / "monitor.csv").write_text("\n".join(['#{"t_start": 5.0}', "r,l,t", *episodes, ""]))
    table = ["time/total_timesteps,time/time_elapsed,train/loss"]
    table += [f"{10 * n},{10 * n},0.5" for n in range(1, 13)]
    (tmp_path / "progress.csv").write_text("\n".join([*table, ""]))
    (tmp_path / "log.txt").write_text("------\n| time/fps | 100 |\n------\n")
    [log] = read(tmp_path, ColumnMapping(), TABLE_ENDINGS)
    lengths = [39 + n % 3 for n in range(1, 13)]
    column = log.series["rollout/episode_return"]
    assert list(column.agent_steps) == [sum(lengths[: n + 1]) for n in range(12)]
    assert log.problem is None
    assert log.not_kept == {
        "agent steps of monitors, which count 4 steps for each of the table": 12,
        "text files that are no tables": 1,
    }


def test_folder_of_texts_leaves_the_others_to_be_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    for name in ("out.txt", "err.txt"):
        (tmp_path / "a" / name).write_text("no table\n")
    (tmp_path / "b" / "x.csv").write_text(PLAIN)
    logs = {log.name: log.problem for log in read(tmp_path, ColumnMapping(), TABLE_ENDINGS)}
    assert logs == {"a": f"{tmp_path / 'a'}: none of its text files is a table", "b": None}


def test_long_table_with_run_ids_is_a_run_for_each(tmp_path: Path) -> None:
    lines = ["run_id,key,value,step,timestamp", "a,reward,1,0,9", "a,reward,2,1,9"]
    (tmp_path / "m.csv").write_text("\n".join([*lines, "b,reward,10,0,9", "b,reward,20,1,9", ""]))
    logs = read(tmp_path / "m.csv", ColumnMapping(), TABLE_ENDINGS)
    assert {log.name: list(log.series["reward"].value) for log in logs} == {"m a": [1, 2], "m b": [10, 20]}


def test_column_of_steps_without_numbers_gives_way_to_the_next(tmp_path: Path) -> None:
    results = [{"timesteps_total": None, "training_iteration": n, "reward_mean": n} for n in (1, 2)]
    (tmp_path / "result.json").write_text("".join(json.dumps(row) + "\n" for row in results))
    [log] = read(tmp_path / "result.json", ColumnMapping(), JSON_ENDINGS)
    assert list(log.series["reward_mean"].agent_steps) == [1, 2]
    assert log.step_unit == "iterations"


def test_times_are_read_as_durations_and_missing_ones_are_those_before(tmp_path: Path) -> None:
    rows = ["step,elapsed,loss", "1,0:00:05,1", "2,,1", '3,"1 day, 0:00:10.5",1', "4,soon,1", ""]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    [log] = read(tmp_path / "a.csv", ColumnMapping(), TABLE_ENDINGS)
    assert list(log.series["loss"].wall_time_s) == [5.0, 5.0, 86_410.5, 86_410.5]
    assert log.not_kept == {'cells that are no times in column "elapsed"': 1}


def test_monitor_that_a_later_process_has_appended_to_keeps_its_order(tmp_path: Path) -> None:
    rows = ["1,10,1", "1,10,2", "9,10,1", "9,10,2"]  # the second process counts its seconds from 0 again
    (tmp_path / "monitor.csv").write_text("\n".join(['#{"t_start": 100.0}', "r,l,t", *rows, ""]))
    [log] = read(tmp_path / "monitor.csv", ColumnMapping(), TABLE_ENDINGS)
    column = log.series["rollout/episode_return"]
    assert list(column.agent_steps) == [10, 20, 30, 40]
    assert list(column.value) == [1.0, 1.0, 9.0, 9.0]
    assert list(column.wall_time_s) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.service
def test_monitors_and_a_table_of_iterations_are_one_run_only_with_a_factor(
    target: Target, tmp_path: Path
) -> None:
    (tmp_path / "monitor.csv").write_text('#{"t_start": 100.0}\nr,l,t\n1,10,1.5\n3,20,3.5\n')
    (tmp_path / "progress.csv").write_text("epoch,train/loss\n1,0.5\n2,0.25\n")
    monitors = {
        "rollout/episode_return": [(10, 1.0), (30, 3.0)],
        "rollout/episode_length": [(10, 10.0), (30, 20.0)],
    }

    def stored(*options: str) -> dict[tuple[str, str], dict[str, list[tuple[int, float]]]]:
        done = imported("csv", tmp_path, *options)
        assert done.exit_code == 0, done.output
        return {(run["name"], run["step_unit"]): rows(target, run["id"]) for run in target.runs()}

    name = tmp_path.name
    apart = {
        (name, "agent_steps"): monitors,
        (f"{name}/progress", "iterations"): {"train/loss": [(1, 0.5), (2, 0.25)]},
    }
    together = {(name, "agent_steps"): monitors | {"train/loss": [(15, 0.5), (30, 0.25)]}}
    assert stored() == apart
    assert stored("--step", "epoch*15") == together, "instead of both"
    assert stored("--step", "epoch*15") == together
    assert stored() == apart


MONITOR = '#{"t_start": 100.0, "env_id": "CartPole-v1"}\nr,l,t,level,total\n1,10,1.5,a,11\n3,20,3.5,b,33\n'
SPECIAL_TABLES: Mapping[
    str, tuple[str, ColumnMapping, dict[str, dict[str, list[tuple[int, float, float]]]]]
] = {
    "metric of TensorBoard's export": (
        "Wall time,Step,Value\n1000,1,0.5\n1002,2,0.25\n",
        ColumnMapping(metrics={"Value": "loss/value"}),
        {"a": {"loss/value": [(1, 0.0, 0.5), (2, 2.0, 0.25)]}},
    ),
    "wall time of TensorBoard's export": (
        "Wall time,Step,Value\n1000,1,5\n1002,2,6\n",
        ColumnMapping(step="Step", wall_time="Step"),
        {"a": {"a": [(1, 1.0, 5.0), (2, 2.0, 6.0)]}},
    ),
    "wall time of W&B's export": (
        "Step,sea - x,sea - x__MIN,sea - x__MAX,s\n1,5,5,5,0.5\n2,6,6,6,0.75\n",
        ColumnMapping(wall_time="s"),
        {"sea": {"x": [(1, 0.5, 5.0), (2, 0.75, 6.0)]}},
    ),
    "runs of W&B's export": (
        "Step,sea - x,sea - x__MIN,sea - x__MAX,task\n1,5,4,6,7\n2,6,5,7,8\n",
        ColumnMapping(run="task"),
        {
            f"a {task}": {f"sea - x{part}": [(step, 0.0, value)] for part, value in values.items()}
            for task, step, values in (
                (7, 1, {"": 5.0, "__MIN": 4.0, "__MAX": 6.0}),
                (8, 2, {"": 6.0, "__MIN": 5.0, "__MAX": 7.0}),
            )
        },
    ),
    "runs by a column that could name metrics": (
        "step,key,value\n1,sea,5\n2,hill,6\n",
        ColumnMapping(run="key"),
        {"a sea": {"value": [(1, 0.0, 5.0)]}, "a hill": {"value": [(2, 0.0, 6.0)]}},
    ),
    "metric of a monitor": (
        MONITOR,
        ColumnMapping(metrics={"r": "my/return"}),
        {"a": {"my/return": [(10, 1.5, 1.0), (30, 3.5, 3.0)]}},
    ),
    "steps of a monitor": (
        MONITOR,
        ColumnMapping(step="total", metrics={"r": "my/return"}),
        {"a": {"my/return": [(11, 0.0, 1.0), (33, 0.0, 3.0)]}},
    ),
    "runs of a monitor": (
        MONITOR,
        ColumnMapping(step="total", wall_time="t", run="level", metrics={"r": "my/return"}),
        {"a a": {"my/return": [(11, 1.5, 1.0)]}, "a b": {"my/return": [(33, 3.5, 3.0)]}},
    ),
}


@pytest.mark.parametrize("case", SPECIAL_TABLES)
def test_options_win_over_what_a_known_kind_of_table_means(tmp_path: Path, case: str) -> None:
    content, mapping, expected = SPECIAL_TABLES[case]
    (tmp_path / "a.csv").write_text(content)
    logs = {log.name: log for log in read(tmp_path / "a.csv", mapping, TABLE_ENDINGS)}
    assert {name: points_of(log) for name, log in logs.items()} == expected


def points_of(log: Log) -> dict[str, list[tuple[int, float, float]]]:
    return {
        metric: list(zip(column.agent_steps, column.wall_time_s, column.value, strict=True))
        for metric, column in log.series.items()
    }


def test_column_that_an_option_names_replaces_the_values_of_monitors(tmp_path: Path) -> None:
    (tmp_path / "monitor.csv").write_text(MONITOR)
    (tmp_path / "progress.csv").write_text("global_step,true_return\n20,7\n")
    mapping = ColumnMapping(metrics={"true_return": "rollout/episode_return"})
    [log] = read(tmp_path, mapping, TABLE_ENDINGS)
    assert points_of(log) == {
        "rollout/episode_return": [(20, 0.0, 7.0)],
        "rollout/episode_length": [(10, 1.5, 10.0), (30, 3.5, 20.0)],
    }
    message = 'values of monitors, since --metric names another column "rollout/episode_return"'
    assert log.not_kept == {message: 1, 'column "level"': 1, 'column "total"': 1}


@pytest.mark.parametrize(
    ("content", "n_series", "n_points"),
    [
        ("step,=a,'=a,''=a\n1,5,6,7\n", 3, 3),
        ("step,metric,value\n1,=a,5\n1,'=a,6\n1,''=a,7\n1,=a,8\n", 3, 4),
        ("step,metric,value\n1,''=a,7\n1,'=a,6\n1,=a,5\n1,''=a,8\n", 3, 4),
        ("step,metric,value,run\n1,a,5,=a\n1,a,6,'=a\n1,a,7,''=a\n", 3, 3),
    ],
)
def test_names_that_differ_in_apostrophes_do_not_become_one(
    tmp_path: Path, content: str, n_series: int, n_points: int
) -> None:
    (tmp_path / "a.csv").write_text(content)
    logs = list(read(tmp_path / "a.csv", ColumnMapping(), TABLE_ENDINGS))
    assert sum(len(log.series) for log in logs) == n_series
    assert sum(log.n_points for log in logs) == n_points
    assert all(not log.not_kept for log in logs)


def test_what_is_torn_or_ragged_is_counted(tmp_path: Path) -> None:
    cases = [
        ("csv", PLAIN + "40,5", "a last line that is not complete"),
        ("jsonl", _lines() + '{"step": 40, "loss/va', "a last line that is not complete"),
        ("jsonl", _lines() + 'none\n{"step": 40, "loss/value": 1}', "lines that are no JSON objects"),
        (
            "csv",
            PLAIN.replace("20,2.5,0.25", "20"),
            "rows with fewer cells than columns, whose last values are missing",
        ),
        ("csv", PLAIN.replace("20,2.5", "20,2.5,1"), "rows with more cells than columns, in part"),
        ("csv", "step,a,a\n1,2,3\n", 'column "a", which comes 2 times, but for its last'),
        ("jsonl", _lines() + "[1]\n", "lines that are no JSON objects"),
    ]
    for at, (kind, content, message) in enumerate(cases):
        path = tmp_path / f"{at}.{kind}"
        path.write_text(content)
        [log] = read(path, ColumnMapping(), TABLE_ENDINGS)
        assert log.not_kept == {message: 1}


APPENDS: Mapping[str, Callable[[int], str]] = {
    "csv": lambda step: f"{step},{step / 2},0.5\n",
    "jsonl": lambda step: json.dumps(dict(zip(COLUMNS, (step, step / 2, 0.5), strict=True))) + "\n",
}


def test_torn_compressed_file_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    whole = gzip.compress(
        "".join(f"{step},{random.Random(step).random()}\n" for step in range(20_000)).encode(), mtime=0
    )
    content = gzip.compress(b"step,loss\n", mtime=0) + whole
    (tmp_path / "torn.csv.gz").write_bytes(content[: len(content) // 2])
    [log] = read(tmp_path / "torn.csv.gz", ColumnMapping(), TABLE_ENDINGS)
    assert log.not_kept["the rest of a compressed file that is not complete"] == 1
    steps = list(log.series["loss"].agent_steps)
    assert steps == list(range(len(steps)))
    assert 1_000 < len(steps) < 20_000
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    for torn in (content[:5], bytes(damaged)):  # nothing in it; what is before a wrong byte may be wrong too
        (tmp_path / "bad.csv.gz").write_bytes(torn)
        with pytest.raises(UnreadableLog, match="bad"):
            list(read(tmp_path / "bad.csv.gz", ColumnMapping(), TABLE_ENDINGS))


@pytest.mark.parametrize("at", ["name", "row"])
def test_text_in_another_encoding_is_refused_with_what_to_do(tmp_path: Path, at: str) -> None:
    name, row = ("gr\u00f6\u00dfe", "2") if at == "name" else ("size", "\u00fc")
    text = f"step,{name}\n" + "1,2\n" * 10_000 + f"10001,{row}\n"
    (tmp_path / "a.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(UnreadableLog, match=r"a\.csv: it is neither UTF-8 nor UTF-16; convert it to UTF-8"):
        assert [log.series for log in read(tmp_path / "a.csv", ColumnMapping(), TABLE_ENDINGS)]
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert list(read(tmp_path / "a.csv", ColumnMapping(), TABLE_ENDINGS))


@pytest.mark.service
@pytest.mark.long
@pytest.mark.parametrize("command", APPENDS)
def test_followed_file_is_a_running_run_until_interrupted(
    target: Target, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "logs" / f"a.{command}"
    process = subprocess.Popen(
        [sys.executable, "-m", "callboard_cli.main", "import", command, str(path.parent), "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def returns() -> list[tuple[int, float]]:
        runs = target.runs()
        return rows(target, runs[0]["id"]).get("rollout/episode_return", []) if runs else []

    try:
        path.parent.mkdir()
        wanted = []
        with path.open("w") as file:
            file.write(",".join(COLUMNS) + "\n" if command == "csv" else "")
            for step in (10, 20):
                line = APPENDS[command](step)
                file.write(line + APPENDS[command](step + 1)[:-4])
                file.flush()
                wanted.append((step, step / 2))
                until(lambda: returns() == wanted)
                [run] = target.runs()
                assert run["state"] == "running"
                file.seek(file.tell() - len(APPENDS[command](step + 1)[:-4]))
        later = path.with_stem("b")  # a run of its own, as of a folder that has several
        later.write_bytes(path.read_bytes())
        until(lambda: len(target.runs()) == 2)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert {run["state"] for run in target.runs()} == {"finished"}
    finally:
        process.kill()
        process.communicate()
    assert rows(target, run["id"])["rollout/episode_return"][:2] == wanted


@pytest.mark.service
@pytest.mark.long
def test_followed_event_files_are_running_runs_until_interrupted(target: Target, tmp_path: Path) -> None:
    def events(*steps: int) -> bytes:
        """A record for each step, with a return of half of it."""
        return b"".join(map(_event, steps))

    def points(name: str = "a") -> list[tuple[int, float]]:
        ids = [run["id"] for run in target.runs() if run["name"] == name]
        return rows(target, ids[0]).get("charts/episodic_return", []) if ids else []

    def wanted(*steps: int) -> list[tuple[int, float]]:
        return [(step, step / 2) for step in steps]

    def are_imported(last: int) -> bool:
        return points() == wanted(*range(10, last + 1, 10))

    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "callboard_cli.main",
            "import",
            "tensorboard",
            str(tmp_path / "logs"),
            "--follow",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        folder = tmp_path / "logs" / "a"
        folder.mkdir(parents=True)
        with (folder / "events.out.tfevents.1000.host.1.0").open("wb") as file:
            file.write(tfevents.header(1_000.0))
            written = 0
            for steps in ((10,), (20, 30)):
                begun = events(*steps)[written:] + events(steps[-1] + 10)[:15]
                file.write(begun)
                file.flush()
                until(partial(are_imported, steps[-1]))
                [run] = target.runs()
                assert run["state"] == "running"
                written = 15
        # The process that had written it was killed; the next one has a file of its own.
        with (folder / "events.out.tfevents.2000.host.2.0").open("wb") as file:
            file.write(tfevents.header(2_000.0) + events(40, 50))
        until(lambda: points() == wanted(10, 20, 30, 40, 50))
        assert [run["id"] for run in target.runs()] == [run["id"]]
        (tmp_path / "logs" / "b").mkdir()
        (tmp_path / "logs" / "b" / "events.out.tfevents.3000.host.3.0").write_bytes(
            tfevents.header(3_000.0) + events(10)
        )
        until(lambda: points("b") == wanted(10))
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
        assert process.returncode == 0, output
        assert {(run["name"], run["state"]) for run in target.runs()} == {
            ("a", "finished"),
            ("b", "finished"),
        }
        assert "the end of events.out.tfevents.1000.host.1.0, which is not complete" in output
    finally:
        process.kill()
        process.wait()


def _event(step: int) -> bytes:
    event = Event(wall_time=1_000.0 + 20 * step, step=step, summary=Summary())
    event.summary.value.add(tag="charts/episodic_return", simple_value=step / 2)
    return tfevents.record(event.SerializeToString())


def test_file_of_another_kind_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import gymnasium\n\nenv = gymnasium.make('CartPole-v1')\n")
    (tmp_path / "short.txt").write_text("a,b\n")
    (tmp_path / "short.gz").write_bytes(gzip.compress(b"a,b\n")[:12])
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(UnreadableLog, match="it is no event file of TensorBoard"):
            list(tensorboard.read(path))
    for path in (tmp_path / "a.py", tmp_path / "short.txt"):
        with pytest.raises(UnreadableLog, match="it is not JSON lines"):
            list(read(path, ColumnMapping(), JSON_ENDINGS))
    (tmp_path / "renamed").write_bytes(tfevents.header(1.0) + _event(2))
    [log] = tensorboard.read(tmp_path / "renamed")
    assert list(log.series["charts/episodic_return"].agent_steps) == [2]


@pytest.mark.parametrize("variable", ["CALLBOARD_HOME", "XDG_CACHE_HOME"])
def test_folder_that_cannot_be_locked_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (tmp_path / "log.csv").write_text(PLAIN)
    monkeypatch.setenv("CALLBOARD_URL", "http://localhost:1")
    monkeypatch.setenv("CALLBOARD_TOKEN", "cb_x")
    monkeypatch.delenv("CALLBOARD_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", fails)
    result = imported("csv", tmp_path / "log.csv")
    folder = tmp_path if variable == "CALLBOARD_HOME" else tmp_path / "callboard"
    assert (result.exit_code, result.stderr) == (
        1,
        f"callboard: {folder} cannot be locked: No locks available; set {variable} to a folder that can be "
        "written and locked, such as one on a local disk\n",
    )
