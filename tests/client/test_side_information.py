"""What stands beside the metrics of a source is kept, and what the source has lost is said by name."""

import json
import math
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from backend.analysis.metrics import tfevents
from callboard.axes import Axes
from callboard.folders import described_by_folder
from callboard.imports import tensorboard, trackio, wandb
from callboard.imports.log import Log
from callboard.imports.rows import JSON_ENDINGS, TABLE_ENDINGS
from callboard.imports.table import ColumnMapping
from callboard.imports.tables import read
from callboard.known_tags import return_metric

FOLDERS = {
    "runs/CartPole-v1__ppo__7__1700000000": ("CartPole-v1", "ppo", 7),
    "tb/A2C_1": (None, "sb3_a2c", None),
    "CartPole-v1/PPO_1": ("CartPole-v1", "sb3_ppo", None),
    "ppo/CartPole-v1_1": ("CartPole-v1", "sb3_ppo", None),
    "PPO_CartPole-v1_34f2c_00000_0_lr=0.1_2024-03-01_12-00-00": ("CartPole-v1", "PPO", None),
    "PPO_CartPole-v1_2024-03-01_12-00-00abcdef": ("CartPole-v1", "PPO", None),
    "log/CartPole-v1/dqn/3/240301-120000": ("CartPole-v1", "dqn", 3),
    "DQN_CartPole_1a2b3c4d_24_03_01-12_00_00": ("CartPole", "DQN", None),
    "torch/Cartpole/24-03-01_12-00-00-123456_PPO": (None, "skrl_ppo", None),
    "a/lr0.1_seed=12_x": (None, None, 12),
    "runs/seed0": (None, None, 0),
    "mine": (None, None, None),
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_of_folders_say_environment_algorithm_and_seed(folder: str) -> None:
    described = described_by_folder(Path("/data") / folder)
    assert tuple(map(described.get, ("environment", "algorithm", "seed"))) == FOLDERS[folder]


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        (
            ["train/reward", "test/returns_stat/mean", "training/returns_stat/mean"],
            "training/returns_stat/mean",
        ),
        (["test/returns_stat/mean", "update/loss"], "test/returns_stat/mean"),
        (["eval/reward", "train/episode_reward"], "train/episode_reward"),
        (["eval/mean", "eval/median"], "eval/mean"),
    ],
)
def test_return_of_each_library_is_known(metrics: list[str], wanted: str) -> None:
    assert return_metric(metrics) == wanted


def events(folder: Path, at: float, written: list[Event]) -> None:
    """An event file."""
    folder.mkdir(parents=True, exist_ok=True)
    data = tfevents.header(at)
    for n, event in enumerate(written):
        event.wall_time = at + n
        data += tfevents.record(event.SerializeToString())
    (folder / f"events.out.tfevents.{int(at)}.host.1.0").write_bytes(data)


def scalar(tag: str, step: int, value: float) -> Event:
    """An event with a value."""
    return Event(step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))


def settings(**given: float) -> Event:
    """What `add_hparams` writes."""
    content = HParamsPluginData()
    for name, value in given.items():
        content.session_start_info.hparams[name].number_value = value
    event = Event(summary=Summary(value=[Summary.Value(tag="_hparams_/session_start_info")]))
    plugin = event.summary.value[0].metadata.plugin_data
    plugin.plugin_name, plugin.content = "hparams", content.SerializeToString()
    return event


def steps(log: Log, metric: str) -> list[int]:
    """The steps of a metric."""
    return list(log.series[metric].agent_steps)


def test_restart_with_purge_step_removes_later_points_of_all_metrics(tmp_path: Path) -> None:
    before = [scalar(tag, step, step) for step in range(0, 100, 10) for tag in ("loss", "warmup")]
    events(tmp_path / "run", 1e9, before)
    start = Event(step=45, session_log=SessionLog(status=SessionLog.START))
    events(tmp_path / "run", 2e9, [start, scalar("loss", 65, 1), scalar("loss", 75, 1)])
    [log] = tensorboard.read(tmp_path)
    assert steps(log, "loss") == [0, 10, 20, 30, 40, 65, 75]
    assert steps(log, "warmup") == [0, 10, 20, 30, 40]
    assert log.not_kept["points that a restart with purge_step has replaced"] == 10


def test_named_folder_of_settings_belongs_to_its_training_unless_there_are_several(tmp_path: Path) -> None:
    events(tmp_path / "run", 1e9, [scalar("loss", step, step) for step in range(5)])
    events(tmp_path / "run" / "hparams", 1e9 + 9, [settings(lr=0.5, seed=4), scalar("hparam/return", 0, 4)])
    [log] = tensorboard.read(tmp_path)
    assert (log.config, log.seed) == ({"lr": 0.5, "seed": 4}, 4)
    events(tmp_path / "run" / "other", 1e9 + 9, [settings(lr=0.1), scalar("hparam/return", 0, 4)])
    assert len(list(tensorboard.read(tmp_path))) == 3


MONITOR = '#{"t_start": 1.0, "env_id": "None"}\nr,l,t\n1.0,10,0.5\n'


def test_placeholder_of_a_name_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "seed3").mkdir()
    (tmp_path / "seed3" / "monitor.csv").write_text(MONITOR)
    [log] = read(tmp_path, ColumnMapping(), TABLE_ENDINGS)
    assert (log.environment, log.seed) == (None, 3)


def test_trial_of_ray_tune_is_read_from_its_rows_and_a_repeated_iteration_once(tmp_path: Path) -> None:
    rows = [(1, 1, None), (2, 2, 5.0), (3, 3, 6.0), (4, 4, 7.0), (4, 1, 8.0), (5, 2, 9.0)]
    with (tmp_path / "result.json").open("w") as file:
        for iteration, since, value in rows:
            row: dict[str, Any] = {
                "training_iteration": iteration,
                "iterations_since_restore": since,
                "loss": 1.0,
            }
            row |= {} if value is None else {"env_runners": {"episode_return_mean": value}}
            file.write(f"{json.dumps(row)}\n")
    (tmp_path / "progress.csv").write_text("training_iteration,loss\n1,1.0\n2,1.0\n")
    [log] = read(tmp_path, ColumnMapping(), TABLE_ENDINGS)
    returns = log.series["env_runners/episode_return_mean"]
    assert (list(returns.agent_steps), list(returns.value)) == ([2, 3, 4, 5], [5.0, 6.0, 8.0, 9.0])
    assert log.not_kept["rows of iterations that a restored trial has repeated"] == 1
    assert [sentence for sentence in log.said if "result.json was read instead of progress.csv" in sentence]
    [alone] = read(tmp_path / "progress.csv", ColumnMapping(), TABLE_ENDINGS)
    assert "is only in result.json beside it" in alone.said[0]
    [same] = read(tmp_path, ColumnMapping(), JSON_ENDINGS)
    assert list(same.series["loss"].agent_steps) == [1, 2, 3, 4, 5]


def test_scores_of_pfrl_have_their_return_and_settings(tmp_path: Path) -> None:
    (tmp_path / "scores.txt").write_text(
        "steps\tepisodes\telapsed\tmean\tmedian\tstdev\tmax\tmin\n100\t2\t1.5\t20.0\t20.0\t1.0\t21.0\t19.0\n"
    )
    (tmp_path / "args.txt").write_text(json.dumps({"env": "CartPole-v1", "seed": 5}))
    [log] = read(tmp_path / "scores.txt", ColumnMapping(), TABLE_ENDINGS)
    assert return_metric(log.series) == "eval/mean"
    assert (log.environment, log.seed, steps(log, "eval/mean")) == ("CartPole-v1", 5, [100])
    assert list(log.series["eval/mean"].wall_time_s) == [1.5]


def test_files_of_single_metrics_are_one_run_whose_names_are_their_paths(tmp_path: Path) -> None:
    torchrl, dvc = tmp_path / "DQN_CartPole_1a2b3c4d_24_03_01-12_00_00", tmp_path / "dvclive"
    for path, text in {
        torchrl / "scalars/train/return.csv": "10,1.0\n5,2.0\n20,nan\n",
        torchrl / "scalars/loss.csv": "10,0.5\n",
        torchrl / "texts/hparams0.txt": "lr: 0.1\nseed: 3",
        dvc / "plots/metrics/a/b.tsv": "step\tb\n0\t1.0\n1\t2.0\n",
        dvc / "plots/metrics/b.tsv": "step\tb\n0\t3.0\n",
        dvc / "params.yaml": "seed: 4\nnet:\n  layers: 2\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    logs = {log.name: log for log in read(tmp_path, ColumnMapping(), TABLE_ENDINGS)}
    assert set(logs) == {torchrl.name, "dvclive"}
    log = logs[torchrl.name]
    assert (log.algorithm, log.seed, log.config["lr"]) == ("DQN", 3, 0.1)
    assert (steps(log, "train/return"), steps(log, "loss")) == ([5, 10, 20], [10])
    assert math.isnan(log.series["train/return"].value[2])
    assert "no times" in log.said[0]
    log = logs["dvclive"]
    assert (list(log.series["a/b"].value), list(log.series["b"].value)) == ([1.0, 2.0], [3.0])
    assert (log.config, log.seed) == ({"seed": 4, "net": {"layers": 2}}, 4)


@pytest.mark.parametrize("has_ids", [True, False])
def test_database_of_trackio_keeps_settings_infinities_and_alerts(tmp_path: Path, has_ids: bool) -> None:
    key, run = ("run_id", "83096f") if has_ids else ("run_name", "first")
    columns = "run_id TEXT, run_name TEXT" if has_ids else "run_name TEXT"
    name = (run, "first") if has_ids else ("first",)
    marks = ", ".join("?" * (len(name) + 3))
    with sqlite3.connect(tmp_path / "proj.db") as database:
        database.execute(
            f"CREATE TABLE metrics (id INTEGER PRIMARY KEY, {columns}, timestamp, step, metrics)"
        )
        database.execute(f"CREATE TABLE configs ({columns}, config)")
        rows: list[dict[str, Any]] = [{"loss": 1.0, "env_steps": 64}, {"loss": "Infinity", "env_steps": 128}]
        for step, row in enumerate(rows):
            cells = (*name, "2026-11-30T18:00:39+00:00", step, json.dumps(row).encode())
            database.execute(f"INSERT INTO metrics VALUES (NULL, {marks})", cells)
        config = json.dumps({"seed": 3, "_Group": "g", "_Username": None}).encode()
        database.execute(f"INSERT INTO configs VALUES ({', '.join('?' * (len(name) + 1))})", (*name, config))
    database.close()
    [log] = trackio.read(tmp_path)
    assert (log.name, log.project, log.group, log.config) == ("proj/first", "proj", "g", {"seed": 3})
    assert log.identity == f"trackio proj {run}", key
    assert list(log.series["loss"].value) == [1.0, math.inf]
    assert any("share a training time" in sentence for sentence in log.said)


def test_axis_that_a_script_names_is_that_of_its_run() -> None:
    axes = Axes()
    assert axes.of_rows({"loss"}) is None
    axes.define("val/*", "val/epoch")
    axes.define("*", "env_steps")
    axis = axes.of_rows({"loss", "env_steps", "val/epoch"})
    assert axis is not None
    assert (axis.metric, axis.unit) == ("env_steps", "agent_steps")
    assert len(axes.said) == 1, "val/epoch is no axis"
    alone = Axes()
    alone.define("*", "train/global_step")
    axis = alone.of_rows({"loss", "train/global_step"})
    assert axis is not None
    assert (axis.metric, axis.unit) == ("train/global_step", "iterations"), "steps of the optimizer"


def record(**fields: Any) -> SimpleNamespace:
    """A record of W&B's. Its package is in another environment."""
    [kind] = fields
    return SimpleNamespace(WhichOneof=lambda group: kind, **fields)


def row(**values: Any) -> SimpleNamespace:
    """A row of the history."""
    items = [
        SimpleNamespace(nested_key=[], key=name, value_json=json.dumps(value))
        for name, value in values.items()
    ]
    return record(history=SimpleNamespace(item=items))


@pytest.mark.parametrize(("exit_code", "state"), [(0, "finished"), (3, "failed"), (None, "stopped")])
def test_offline_run_of_wandb_keeps_its_end_its_axis_and_its_times(
    tmp_path: Path, exit_code: int | None, state: str
) -> None:
    reader = wandb.Reader(tmp_path / "run-a.wandb")
    started = SimpleNamespace(seconds=1_000, nanos=0)
    config = SimpleNamespace(update=[])
    described = {"run_id": "a", "display_name": "first", "start_time": started, "config": config, "tags": []}
    described |= dict.fromkeys(("run_group", "project", "entity", "notes"), "")
    reader.add(record(run=SimpleNamespace(**described)))
    names = {"step_metric_index": 0, "glob_name": "", "step_metric": ""}
    reader.add(record(metric=SimpleNamespace(**names | {"name": "env_steps"})))
    reader.add(
        record(metric=SimpleNamespace(**names | {"name": "", "glob_name": "*", "step_metric": "env_steps"}))
    )
    for at in range(3):
        reader.add(row(_step=at, env_steps=at * 64, loss=1.0, _timestamp=1_000.0 + at, _runtime=5.0))
    if exit_code is not None:
        reader.add(record(exit=SimpleNamespace(exit_code=exit_code)))
    log = reader.finished()
    assert (log.state, log.step_unit) == (state, None)
    assert steps(log, "loss") == [0, 64, 128]
    assert list(log.series["loss"].wall_time_s) == [0.0, 1.0, 2.0], "when it was logged, not when it was read"
