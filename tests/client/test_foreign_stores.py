"""MLflow's stores and W&B's offline runs become runs. Both are written and read by these tools' own packages,
each in an environment of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from callboard.imports import mlflow as mlflow_reader
from callboard.imports import tensorboard as tensorboard_reader
from callboard.imports import wandb as wandb_reader
from callboard.imports.log import UnreadableLog
from tests.client.support import Target
from tests.support import pythons

CLIENT = Path(__file__).parents[2] / "client"

OFFLINE = """
import sys, wandb
run = wandb.init(mode="offline", dir=sys.argv[1], project="p", name="first", id=(sys.argv[3:] or [None])[0],
                 config={"env_id": "CartPole-v1", "seed": 4, "lr": 0.5, "net": {"layers": 2}})
for step in range(300):
    row = {"charts/episodic_return": float(step), "losses": {"value": 0.5}}
    run.log(row | ({"global_step": step * 10} if sys.argv[2] == "steps" else {}))
run.log({"huge": 10**400, "text": "x" * 70_000, "nan": float("nan"), "hist": wandb.Histogram([1, 2, 3])})
run.finish(exit_code=int((sys.argv[4:] or [0])[0]))
"""


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("mlflow", "mlflow.tracking"),
        ("tensorboard", "tensorboard.compat.proto.event_pb2"),
        ("wandb", "wandb.proto.wandb_internal_pb2"),
    ],
)
def test_missing_reader_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    for name in (module, package):
        monkeypatch.setitem(sys.modules, name, None)
    reader = {"mlflow": mlflow_reader, "tensorboard": tensorboard_reader, "wandb": wandb_reader}[module]
    (tmp_path / "events.out.tfevents.1.host").touch()
    with pytest.raises(UnreadableLog, match=rf"pip install 'callboard-client\[{module}\]'"):
        list(reader.read(tmp_path))


def test_file_that_is_no_store_of_mlflow_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("text")
    with pytest.raises(UnreadableLog, match=r"neither a folder of MLflow's nor an SQLite file"):
        list(mlflow_reader.read(tmp_path / "a.db"))


def test_offline_runs_of_one_id_are_distinguished_by_their_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_record(start: bytes) -> SimpleNamespace:
        """What is read of a record. W&B's package is in another environment."""
        seconds, nanos = map(int, start.split())
        start_time, config = SimpleNamespace(seconds=seconds, nanos=nanos), SimpleNamespace(update=[])
        run = SimpleNamespace(
            run_id="abc",
            display_name="first",
            start_time=start_time,
            config=config,
            run_group="rates",
            project="atari",
            entity="",
            tags=["baseline", "atari"],
            notes="seed of the paper",
        )
        return SimpleNamespace(WhichOneof=lambda group: "run", run=run)

    messages = SimpleNamespace(Record=SimpleNamespace(FromString=run_record))
    monkeypatch.setitem(sys.modules, "wandb.proto.wandb_internal_pb2", messages)
    monkeypatch.setattr("callboard.imports.wandb._records", lambda path: [path.read_bytes()])
    for at, start in enumerate((b"1700000000 0", b"1700000000 5000000", b"1700000001 0")):
        folder = tmp_path / f"offline-run-{at}-abc"
        folder.mkdir()
        (folder / "run-abc.wandb").write_bytes(start)
    [log, *others] = wandb_reader.read(tmp_path)
    identities = [log.identity, *(other.identity for other in others)]
    assert len(set(identities)) == 3
    assert (log.project, log.group, log.tags) == ("atari", "rates", ["baseline", "atari"])
    assert log.lines == [(1_700_000_000.0, "notes: seed of the paper")]
    assert [log.identity for log in wandb_reader.read(tmp_path)] == identities


DUMP = """
import importlib, json, sys
from pathlib import Path

reader = importlib.import_module(f"callboard.imports.{sys.argv[1]}")
fields = ("name", "state", "seed", "environment", "config", "step_unit", "problem", "lines", "not_kept")
for log in reader.read(Path(sys.argv[2])):
    series = {name: list(zip(map(int, c.agent_steps), map(float, c.value))) for name, c in log.series.items()}
    print(json.dumps({name: getattr(log, name) for name in fields} | {"series": series}, default=str))
"""
"""Prints the logs of a store as the client reads it."""

STORE = """
import sys
from mlflow.tracking import MlflowClient

client = MlflowClient(tracking_uri=sys.argv[1])
experiment = client.create_experiment("pong", artifact_location=sys.argv[2])
for seed in range(2):
    run = client.create_run(experiment, run_name=f"seed {seed}", tags={"team": "a"})
    client.log_param(run.info.run_id, "seed", seed)
    client.log_param(run.info.run_id, "env_id", "CartPole-v1")
    client.log_metric(run.info.run_id, "best", float("-inf"), step=3)
    for step in range(150):
        client.log_metric(run.info.run_id, "loss/a", step / 2, step=step * 10)
    client.log_metric(run.info.run_id, "rollout/ep_rew_mean", float("nan"), step=7)
    client.set_terminated(run.info.run_id, ["FINISHED", "FAILED"][seed])
deleted = client.create_run(experiment)
client.delete_run(deleted.info.run_id)
"""


def run_in(extra: str, *arguments: object) -> str:
    """Run Python in the environment of an extra, with the client of this checkout; what it prints."""
    variables = os.environ | {"PYTHONPATH": str(CLIENT), "WANDB_SILENT": "true", "WANDB_MODE": "offline"}
    if arguments[:2] == ("-c", STORE):  # MLflow itself refuses to write a folder without it
        variables["MLFLOW_ALLOW_FILE_STORE"] = "true"
    command = [str(pythons.with_extra(extra)), *map(str, arguments)]
    # In another folder: this one has the metadata of the server, which that environment has not.
    done = subprocess.run(command, env=variables, cwd=CLIENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def logs_of(extra: str, path: Path) -> list[dict[str, Any]]:
    """The logs of a store, read in the environment of the extra."""
    return [json.loads(line) for line in run_in(extra, "-c", DUMP, extra, path).splitlines() if line]


def points(log: dict[str, Any], metric: str) -> list[tuple[int, float]]:
    """The agent steps and values of a metric."""
    return [(int(step), float(value)) for step, value in log["series"][metric]]


def mlflow_store(tmp_path: Path, store: str) -> Path:
    """A store that MLflow has written, with two runs and a deleted one."""
    root = tmp_path / store
    address = root.as_uri() if store == "mlruns" else f"sqlite:///{root}"
    run_in("mlflow", "-c", STORE, address, (tmp_path / "files").as_uri())
    return root


@pytest.mark.long
@pytest.mark.parametrize("store", ["mlruns", "mlflow.db"])
def test_runs_of_mlflow_keep_params_metrics_and_names(tmp_path: Path, store: str) -> None:
    logs = {log["name"]: log for log in logs_of("mlflow", mlflow_store(tmp_path, store))}
    assert set(logs) == {"pong/seed 0", "pong/seed 1"}
    log = logs["pong/seed 1"]
    assert (log["seed"], log["environment"]) == (1, "CartPole-v1")
    assert log["config"] == {"seed": 1, "env_id": "CartPole-v1"}
    assert points(log, "loss/a") == [(step * 10, step / 2) for step in range(150)]
    assert [step for step, _ in points(log, "rollout/ep_rew_mean")] == [7]
    assert points(log, "best") == [(3, float("-inf"))]
    assert log["state"] == "failed"
    assert "team: a" in [text for _, text in log["lines"]]


@pytest.mark.long
@pytest.mark.parametrize("counted", ["steps", "rows"])
def test_offline_runs_of_wandb_keep_config_history_and_steps(tmp_path: Path, counted: str) -> None:
    run_in("wandb", "-c", OFFLINE, tmp_path, counted, "an-id", 3)
    [log] = logs_of("wandb", tmp_path)
    assert log["state"] == "failed"
    assert (log["name"], log["seed"], log["environment"]) == ("first", 4, "CartPole-v1")
    assert log["problem"] is None
    assert (log["config"]["lr"], log["config"]["net"]) == (0.5, {"layers": 2})
    factor = 10 if counted == "steps" else 1
    assert log["step_unit"] == (None if counted == "steps" else "iterations")
    returns = [(step * factor, float(step)) for step in range(300)]
    assert points(log, "charts/episodic_return") == returns
    assert points(log, "losses.value") == [(step * factor, 0.5) for step in range(300)]
    assert len(points(log, "nan")) == 1
    assert "values of the type histogram" not in log["not_kept"]
    [path] = tmp_path.rglob("run-*.wandb")
    whole = path.read_bytes()
    for content, n_least in ((whole[:20_000], 10), (whole[:9_000] + b"!" + whole[9_001:], 1)):
        path.write_bytes(content)
        [log] = logs_of("wandb", path)
        values = [value for _, value in points(log, "charts/episodic_return")]
        assert values == [float(step) for step in range(len(values))]
        assert n_least <= len(values) < 300
    path.write_bytes(b"text")
    [log] = logs_of("wandb", path)
    assert log["problem"] is not None


@pytest.mark.service
@pytest.mark.long
@pytest.mark.parametrize("tool", pythons.FOREIGN)
def test_command_imports_a_store_once_and_groups_its_seeds(tool: str, target: Target, tmp_path: Path) -> None:
    if tool == "mlflow":
        root, metric = mlflow_store(tmp_path, "mlflow.db"), "loss/a"
    else:
        root, metric = tmp_path, "charts/episodic_return"
        for _ in range(2):  # the second resumes the first
            run_in(tool, "-c", OFFLINE, root, "steps", "same-id")
    for _ in range(2):  # the second adds nothing
        run_in(tool, "-m", "callboard", "import", tool, root)
    runs = target.runs()
    assert sorted(run["state"] for run in runs) == (
        ["failed", "finished"] if tool == "mlflow" else ["finished"] * 2
    )
    assert {run["environment"] for run in runs} == {"CartPole-v1"}
    assert {run["seed"] for run in runs} == ({0, 1} if tool == "mlflow" else {4})
    for run in runs:
        stored = target.points(run["id"])[metric]
        assert [int(row["agent_steps"]) for row in stored] == [10 * n for n in range(len(stored))]
        assert len(stored) == (150 if tool == "mlflow" else 300)
